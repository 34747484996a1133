"""Zeros that are put around a convolution's operand become the convolution's own padding. Models in TensorFlow style
have such padding as a separate op, as it depends on the size. After the pass no op moves these zeros, and the host may
lay out the windows of a first convolution (`host_windows.py`).
"""

from dataclasses import replace

import numpy as np

from buda_emu.compiler.graph.graph import Graph, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.passes.dce import dce


def fold_pads(graph: Graph) -> Graph:
    """`conv(pad(x, a), w, pads=b)` becomes `conv(x, w, pads=a + b)`, where only dimensions of places are padded; what
    nobody reads then goes."""
    folded = {name: _folded(graph, node) for name, node in graph.nodes.items() if node.op == "conv"}
    if all(node is graph[name] for name, node in folded.items()):
        return graph
    return dce(Graph(graph.name, {**graph.nodes, **folded}, graph.inputs, graph.outputs))


def _folded(graph: Graph, conv: Node) -> Node:
    pads = list(conv.attrs["pads"])
    source = graph[conv.inputs[0]]
    while source.op == "linear" and (place := source.attrs["dim"] - 2) >= 0:
        around = _zeros_around(source.attrs["matrix"])
        if around is None:
            break
        (low, high), (more_low, more_high) = pads[place], around
        pads[place] = low + more_low, high + more_high
        source = graph[source.inputs[0]]
    if source.name == conv.inputs[0]:
        return conv
    return replace(conv, inputs=(source.name, *conv.inputs[1:]), attrs={**conv.attrs, "pads": tuple(pads)})


def _zeros_around(matrix: Sparse) -> tuple[int, int] | None:
    """How many zeros a matrix puts before and after what it is given; None where it does anything else."""
    (outputs, inputs), count = matrix.shape, matrix.row.size
    if count != inputs or (matrix.col != np.arange(inputs)).any() or (matrix.weight != 1).any():
        return None
    low = int(matrix.row[0]) if count else 0
    return (low, outputs - inputs - low) if (matrix.row == low + matrix.col).all() else None
