"""Constants that change nothing are removed: added zeros and multiplied ones. Those of channels, with one number for
each column, stay: they are parameters, and the ops of a model depend on its form, not on what it has learned."""

from dataclasses import replace
from math import prod

from buda_emu.compiler.graph.graph import Graph, Node

_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0}


def neutral(graph: Graph) -> Graph:
    """`y = add(x, zeros); z = exp(y)` becomes `z = exp(x)`, where y has x's shape and element type."""
    same: dict[str, str] = {}
    made = Graph(graph.name, inputs=list(graph.inputs))
    for node in graph:
        node = replace(node, inputs=tuple(same.get(name, name) for name in node.inputs))
        left = _unchanged(graph, node)
        if left is None:
            made.nodes[node.name] = node
        else:
            same[node.name] = left
    made.outputs = [replace(item, value=same.get(item.value, item.value)) for item in graph.outputs]
    return made


def _unchanged(graph: Graph, node: Node) -> str | None:
    """The operand that an op gives as it is."""
    number = _NEUTRAL.get(node.op)
    places = () if number is None else (0,) if node.op == "subtract" else (0, 1)
    for place in places:
        left, other = graph[node.inputs[place]], graph[node.inputs[1 - place]]
        if other.op != "constant" or left.op == "constant" or (left.shape, left.dtype) != (node.shape, node.dtype):
            continue
        channels = other.shape[-1:] != (1,) and prod(other.shape[:-1]) == 1 and other.shape
        if not channels and bool((other.value == number).all()):
            return left.name
    return None
