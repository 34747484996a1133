"""Evaluates a graph in plain numpy, node by node: the reference that its netlist is compared with."""

from collections.abc import Mapping, Sequence

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node
from buda_emu.compiler.graph.registry import front_op


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The value of every node, float32 for floats; `inputs` by label."""
    values: dict[str, Array] = {}
    for node in graph:
        if node.op == "input":
            given, windows = np.asarray(inputs[node.attrs["label"]]), node.attrs.get("windows")
            values[node.name] = windows.apply(given) if windows else given
            continue
        if node.op in ("constant", "state"):
            values[node.name] = node.attrs["value" if node.op == "constant" else "initial"]
            continue
        values[node.name] = evaluate_node(node, [values[name] for name in node.inputs])
    return values


def evaluate_node(node: Node, operands: Sequence[Array]) -> Array:
    """The value of one node."""
    reference = front_op(node.op).reference
    with np.errstate(all="ignore"):
        if reference is not None:
            return np.asarray(reference(*operands, **node.attrs))
        return Builder(Graph()).emit(node.op, *operands, **node.attrs).value
