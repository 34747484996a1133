"""What is known of the signs of a graph's values. Nothing is known of a value that the graph does not hold, as in the
graph of one op that a builder makes for its shape."""

from typing import Final

from buda_emu.compiler.graph.graph import Graph, Node

_SIGN_STAYS: Final = {"linear", "reshape", "transpose", "expand", "identity", "add", "multiply", "concat"}
"""Ops whose result is not below 0 if no operand is; `linear` if no weight is."""


def never_negative(graph: Graph, name: str) -> bool:
    """Return whether a value, its padding included, cannot be below 0, so that nothing in the padding needs to be
    zeroed, and what is normalised stays small there, too."""
    node = graph.nodes.get(name)
    if node is None:
        return False
    if node.op == "constant":
        return bool((node.value >= 0).all())
    if node.op in ("square", "abs", "exp", "relu", "sigmoid", "sqrt"):
        return True
    return _keeps_sign(node) and all(never_negative(graph, operand) for operand in node.inputs)


def _keeps_sign(node: Node) -> bool:
    """Return whether the result of a node is not below 0 if no operand is."""
    if node.op == "linear" and (node.attrs["matrix"].weight < 0).any():
        return False
    return node.op in _SIGN_STAYS


def is_nonnegative(graph: Graph, name: str) -> bool:
    """Return whether a value cannot be below 0. In contrast to `never_negative`, which decides about masks, it knows
    the larger one of two values and a product of a value with itself."""
    node = graph.nodes.get(name)
    if node is None:
        return False
    if node.op == "maximum":
        return any(is_nonnegative(graph, operand) for operand in node.inputs)
    if node.op == "multiply" and node.inputs[0] == node.inputs[1]:
        return True
    if _keeps_sign(node):
        return all(is_nonnegative(graph, operand) for operand in node.inputs)
    return never_negative(graph, name)


def is_positive(graph: Graph, name: str) -> bool:
    """Return whether a value is above 0, and not 0 itself: a positive constant, the larger one of such a value and
    another, or the sum of such a value and another that cannot be below 0."""
    node = graph.nodes.get(name)
    if node is None:
        return False
    if node.op == "constant":
        return bool((node.value > 0).all())
    if node.op == "maximum":
        return any(is_positive(graph, operand) for operand in node.inputs)
    if node.op == "add":
        return is_nonnegative(graph, name) and any(is_positive(graph, operand) for operand in node.inputs)
    if node.op in ("reshape", "transpose", "expand", "identity"):
        return is_positive(graph, node.inputs[0])
    return False
