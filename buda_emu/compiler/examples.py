"""Example inputs for a model if the caller gave none."""

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, host_shape
from buda_emu.image.model_io import made_up as values


def made_up(graph: Graph, seed: int = 0) -> tuple[Array, ...]:
    """One for each input, in order: normal numbers for floats, indices that their tables have, else zeros and ones."""
    rng = np.random.default_rng(seed)
    nodes = [graph[name] for name in graph.inputs]
    return tuple(values(rng, host_shape(node), node.dtype, below(graph, node)) for node in nodes)


def below(graph: Graph, node: Node) -> int:
    """The exclusive upper bound of an input's integers: the rows of the smallest table that it indexes, else 2."""
    return min((_rows(graph, name) for name in _reached(graph, node.name)), default=2)


def _reached(graph: Graph, start: str) -> list[str]:
    """Embeddings whose indices are picked of an input."""
    found: list[str] = []
    known = {start}
    for node in graph:
        if known.isdisjoint(node.inputs):
            continue
        if node.op == "embedding" and node.inputs[1] in known:
            found.append(node.name)
        elif len(node.inputs) == 1:
            known.add(node.name)
    return found


def _rows(graph: Graph, name: str) -> int:
    return graph[graph[name].inputs[0]].shape[0]
