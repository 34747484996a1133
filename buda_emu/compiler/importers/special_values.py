"""Handling of models that test for NaN or infinities and select other values for them."""

from typing import Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.attention import find_unmasked_rows

_TESTS: Final = ("is_nan", "is_infinite", "is_finite")
_EQUALITY: Final = ("equal", "not_equal")


def is_nan(b: Builder, x: Node) -> Node:
    """Return 1 where a value is NaN. For a softmax these are the rows that are masked completely, for which the device
    has numbers.

    Raise NotSupportedError if infinite scores of a softmax cannot be traced to a mask.
    """
    if np.dtype(x.dtype).kind != "f":
        return b.constant(np.zeros(x.shape, bool))
    if x.op != "softmax":
        return b.is_nan(x)
    unmasked_rows = find_unmasked_rows(b, b.graph.nodes[x.inputs[0]], x.attrs["dim"])
    if unmasked_rows is None:
        return b.constant(np.zeros(x.shape, bool))
    return b.expand(b.logical_not(unmasked_rows), shape=x.shape)


def is_infinite(b: Builder, x: Node, *, above: bool = True, below: bool = True) -> Node:
    """Return 1 where a value is infinite, on the sides of 0 that are asked for."""
    if np.dtype(x.dtype).kind != "f" or not (above or below):
        return b.constant(np.zeros(x.shape, bool))
    return b.is_infinite(x, above=above, below=below)


def is_finite(b: Builder, x: Node) -> Node:
    """Return 1 where a value is neither NaN nor infinite."""
    if np.dtype(x.dtype).kind != "f":
        return b.constant(np.ones(x.shape, bool))
    return b.is_finite(x)


def select_values(b: Builder, condition: Node, x: Node | float, y: Node | float) -> Node:
    """Return x where a condition holds, else y. If the condition tests for NaN or infinities, guard against those that
    it does not select, since 0 times such a value is NaN."""
    if _asks_for_special_values(b, condition):
        select = b.guarded_where
    else:
        select = b.where
    return select(condition, x, y)


def _asks_for_special_values(b: Builder, condition: Node) -> bool:
    """Return whether a condition depends on a test for NaN or infinities through logical values."""
    pending = [condition]
    seen = {condition.name}
    while pending:
        node = pending.pop()
        operands = [b.graph.nodes[name] for name in node.inputs]
        if node.op in _TESTS or (node.op in _EQUALITY and _concerns_special_values(operands)):
            return True
        unseen = [operand for operand in operands if operand.dtype == "bool" and operand.name not in seen]
        seen.update(operand.name for operand in unseen)
        pending += unseen
    return False


def _concerns_special_values(operands: list[Node]) -> bool:
    """Return whether comparing two values for equality detects NaN or infinities: both are the same value, or one is
    such a constant."""
    constants = [operand.value for operand in operands if operand.op == "constant" and operand.value.dtype.kind == "f"]
    return operands[0].name == operands[1].name or any(not np.isfinite(value).all() for value in constants)
