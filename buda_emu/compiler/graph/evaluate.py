"""A graph in plain numpy, node by node: what its netlist is held against."""

from collections.abc import Mapping

import numpy as np

from buda_emu.compiler.frontend_ops.registry import front_op
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The value of every node, float32 for floats; `inputs` by label."""
    values: dict[str, Array] = {}
    for node in graph:
        if node.op == "input":
            values[node.name] = np.asarray(inputs[node.attrs["label"]])
            continue
        if node.op in ("constant", "state"):
            values[node.name] = node.attrs["value" if node.op == "constant" else "initial"]
            continue
        operands = [values[name] for name in node.inputs]
        reference = front_op(node.op).reference
        with np.errstate(all="ignore"):
            if reference is not None:
                values[node.name] = np.asarray(reference(*operands, **node.attrs))
            else:
                aside = Builder(Graph())
                values[node.name] = aside.emit(node.op, *operands, **node.attrs).value
    return values
