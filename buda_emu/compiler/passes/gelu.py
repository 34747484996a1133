"""The error function's GELU, as exporters write it, becomes one op."""

from dataclasses import replace
from math import sqrt

from buda_emu.compiler.graph.graph import Graph, Node


def gelu(graph: Graph) -> Graph:
    """`x / sqrt 2 -> erf -> + 1 -> * x -> * 0.5`, factors in any order, becomes `gelu(x)`."""
    users = graph.users()
    nodes = dict(graph.nodes)
    for node in graph:
        found = _matched(graph, users, node) if node.op == "erf" else None
        if found is not None:
            last, x = found
            nodes[last] = replace(graph[last], op="gelu", inputs=(x,), attrs={})
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


def _matched(graph: Graph, users: dict[str, list[str]], node: Node) -> tuple[str, str] | None:
    """The last node of the pattern around an erf, and x."""
    x = _scaled(graph, graph[node.inputs[0]])
    one = _only(graph, users, node.name, "add")
    if x is None or one is None or _number(graph, _other(one, node.name)) != 1.0:
        return None
    first = _only(graph, users, one.name, "multiply")
    if first is None:
        return None
    other = _other(first, one.name)
    if _half_of(graph, other) == x:
        return first.name, x
    last = _only(graph, users, first.name, "multiply")
    if last is None:
        return None
    factors = {other, _other(last, first.name)}
    rest = factors - {x}
    if x in factors and len(rest) == 1 and _number(graph, rest.pop()) == 0.5:
        return last.name, x
    return None


def _scaled(graph: Graph, node: Node) -> str | None:
    """x of x / sqrt 2."""
    if node.op == "divide" and abs((_number(graph, node.inputs[1]) or 0) - sqrt(2)) < 1e-4:
        return node.inputs[0]
    if node.op == "multiply":
        for name in node.inputs:
            if abs((_number(graph, _other(node, name)) or 0) - sqrt(0.5)) < 1e-4:
                return name
    return None


def _half_of(graph: Graph, name: str) -> str | None:
    node = graph[name]
    if node.op == "multiply":
        for factor in node.inputs:
            if _number(graph, _other(node, factor)) == 0.5:
                return factor
    return None


def _only(graph: Graph, users: dict[str, list[str]], name: str, op: str) -> Node | None:
    """The one reader of a value, if it is that op."""
    if len(users[name]) != 1 or any(item.value == name for item in graph.outputs):
        return None
    node = graph[users[name][0]]
    return node if node.op == op else None


def _other(node: Node, name: str) -> str:
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def _number(graph: Graph, name: str) -> float | None:
    node = graph[name]
    return float(node.value.reshape(-1)[0]) if node.op == "constant" and node.value.size == 1 else None
