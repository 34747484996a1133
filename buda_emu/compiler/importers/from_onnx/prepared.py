"""A model as the reader takes it: its own functions inlined, sizes of example inputs put in, shapes inferred."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import inliner

from buda_emu.compiler.graph.builder import MOST_ELEMENTS
from buda_emu.compiler.importers.open_sizes import OpenSizes
from buda_emu.errors import UnsupportedError

MOST_OPERATORS: Final = 1 << 17
"""Of a model with its own functions in their places: functions that call functions grow without bound."""


def prepared(model: Any, inputs: Sequence[Any] | None, sizes: OpenSizes) -> Any:
    """An onnx.ModelProto. Raises what onnx raises for a broken one."""
    return _inferred(_bound(_without_functions(model), inputs, sizes))


def _without_functions(model: Any) -> Any:
    """With the nodes of its own functions in their place. Raises UnsupportedError for too many."""
    if not model.functions:
        return model
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    counts: dict[Any, int] = {}

    def count(nodes: Iterable[Any]) -> int:
        return sum(
            counted((node.domain, node.op_type, node.overload))
            + sum(count(item.g.node) for item in node.attribute if item.HasField("g"))
            for node in nodes
        )

    def counted(key: Any) -> int:
        if key not in functions:
            return 1
        if key not in counts:
            counts[key] = 0  # of one that calls itself, which onnx refuses
            counts[key] = count(functions[key].node)
        return counts[key]

    if count(model.graph.node) > MOST_OPERATORS:
        raise UnsupportedError(f"compile: {MOST_OPERATORS:,} operators, and more, with its own functions in place")
    return inliner.inline_local_functions(model)


def _bound(model: Any, inputs: Sequence[Any] | None, sizes: OpenSizes) -> Any:
    """With the sizes of example inputs, or those that were given, in place of symbolic ones."""
    if inputs is None and not sizes.given:
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    held = {item.name for item in own.graph.initializer}
    values = [item for item in own.graph.input if item.name not in held]
    for value in values:
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            size = None if dim.HasField("dim_value") else sizes.of(value.name, place, dim.dim_param)
            if size is not None:
                dim.dim_value = size
    for value, array in zip(values, inputs or (), strict=False):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for size in np.shape(array):
            shape.dim.add().dim_value = size
    return own


def _inferred(model: Any) -> Any:
    if model.ByteSize() > 1 << 30:
        return model  # beyond what protobuf can hand over; exporters state the shapes
    sizes = (dim.dim_value for value in model.graph.input for dim in value.type.tensor_type.shape.dim)
    if max(sizes, default=0) > MOST_ELEMENTS:
        return model  # no tensor is as large, which is said below: onnx would take memory for it
    return onnx.shape_inference.infer_shapes(model, data_prop=True)
