"""One operator by itself, by onnx's own evaluator."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from buda_emu.compiler.graph.graph import Array


def evaluated(node: Any, values: Mapping[str, Array], model: Any) -> list[Array]:
    """The results of one operator of a model. Raises what the evaluator raises."""
    from onnx.reference import ReferenceEvaluator  # most models have nothing for it

    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in values.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "constant", types, results)
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    with np.errstate(all="ignore"):
        return [np.asarray(array) for array in ReferenceEvaluator(alone).run(None, dict(values))]
