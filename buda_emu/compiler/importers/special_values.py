"""Infinities and NaN in models: masks of softmax rows, traced to where they come from, and tests that select other
values for NaN or infinities."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.spec.precision import INFINITE, MASKED

_TESTS: Final = ("is_nan", "is_infinite", "is_finite")
_EQUALITY: Final = ("equal", "not_equal")
_MOVES = ("reshape", "transpose", "expand", "identity", "take", "slice", "concat")
"""Ops that only move or repeat elements."""
_PASS = ("add", "subtract", "multiply", "divide", "where", *_MOVES)
"""Ops whose results may be infinite because an operand is: with these, a constant is known to be a mask's."""
_PASS_INPUTS = (*_PASS, "negative", "maximum", "minimum", "pad", "repeat", "tile", "linear", "gather", "embedding")
"""Ops whose results may be infinite because an input of the model is."""


def find_unmasked_rows(b: Builder, scores: Node, dim: int) -> Node | None:
    """Return 1 for each row of scores with an element that is not masked, and 0 for each row that a mask fills with
    minus infinity; None if no row is masked completely. The result has size 1 along `dim`, the dimension of the rows.

    Of scores that inputs of the model reach, which may hold infinities, the largest of each row is compared. Raises
    NotSupportedError if constant infinities cannot be traced to a mask."""
    unmasked = _trace_mask(b, scores)
    if _reaches(b, scores, _is_float_input, _PASS_INPUTS):
        return b.logical_not(_is_minus_infinity_row(b, b.reduce_largest(scores, axes=[dim])))
    if unmasked is None:
        return None
    rank = len(scores.shape)
    if len(unmasked.shape) < rank:
        unmasked = b.reshape(unmasked, shape=(*(1,) * (rank - len(unmasked.shape)), *unmasked.shape))
    if unmasked.op != "constant":
        return b.reduce_largest(unmasked, axes=[dim])
    nonempty = unmasked.value.astype(bool).any(dim, keepdims=True)
    if nonempty.all():
        return None
    return b.constant(nonempty)


def zero_masked_rows(b: Builder, result: Node, unmasked_rows: Node | None) -> Node:
    """Return what a softmax, or an attention, gives with zeros in the rows that are masked completely, which
    `find_unmasked_rows` found."""
    if unmasked_rows is None:
        return result
    return b.multiply(result, unmasked_rows, dtype=result.dtype)


def _is_minus_infinity_row(b: Builder, largest: Node) -> Node:
    """Return 1 where the largest score of a row is minus infinity. A row of the least float32 is no masked row."""
    return b.logical_and(b.less_equal(largest, -INFINITE), b.greater_equal(largest, MASKED))


def _trace_mask(b: Builder, x: Node) -> Node | None:
    """Return 1 where a value is above minus infinity, in a shape that broadcasts to it; None if all of it is. Raises
    NotSupportedError if constant infinities cannot be traced to a mask."""
    if x.op == "constant":
        return _find_unmasked_constants(b, x)
    if not _reaches(b, x, _is_infinite_constant, _PASS):
        return None
    operands = [b.graph.nodes[name] for name in x.inputs]
    if x.op == "add":
        return _mask_of_sum(b, operands)
    if x.op == "where":
        unmasked = _condition_of_mask(b, operands)
        if unmasked is not None:
            return unmasked
    if x.op in _MOVES and len(operands) == 1:
        return _move_unmasked(b, x, operands[0])
    raise _unknown_infinities_error()


def _mask_of_sum(b: Builder, operands: Sequence[Node]) -> Node:
    """Return 1 where the sum of values, of which some are minus infinity somewhere, is above minus infinity. Raises
    NotSupportedError if constant infinities cannot be traced to a mask."""
    masks = [mask for mask in (_trace_mask(b, operand) for operand in operands) if mask is not None]
    if len(masks) == 1:
        return masks[0]
    return b.logical_and(*masks)


def _condition_of_mask(b: Builder, operands: Sequence[Node]) -> Node | None:
    """Return the condition under which a `where` of these operands is above minus infinity: one of its branches is
    minus infinity, the other one never. None for any other `where`."""
    condition, first, second = operands
    if _is_minus_infinity(second) and _trace_mask(b, first) is None:
        return condition
    if _is_minus_infinity(first) and _trace_mask(b, second) is None:
        return b.logical_not(condition)
    return None


def _move_unmasked(b: Builder, x: Node, operand: Node) -> Node | None:
    """Return 1 where the result of a move of elements, `x`, is above minus infinity; None if all of it is."""
    unmasked = _trace_mask(b, operand)
    if unmasked is None or x.op == "expand":
        return unmasked
    if unmasked.shape != operand.shape:
        unmasked = b.expand(unmasked, shape=operand.shape)
    return b.emit(x.op, unmasked, **x.attrs)


def _find_unmasked_constants(b: Builder, x: Node) -> Node | None:
    """Return where a constant is finite, or None if it is everywhere. Raise NotSupportedError for plus infinity."""
    if x.value.dtype.kind != "f":
        return None
    finite = ~np.isinf(x.value)
    if (x.value[~finite] > 0).any():
        raise _unknown_infinities_error()
    if finite.all():
        return None
    return b.constant(finite)


def _unknown_infinities_error() -> NotSupportedError:
    """Return the error for infinities in attention scores that do not come from a mask."""
    return NotSupportedError("infinities that are not those of a mask")


def _is_minus_infinity(x: Node) -> bool:
    """Return whether a node is a constant of floats that are all minus infinity."""
    return x.op == "constant" and x.value.dtype.kind == "f" and bool(np.isneginf(x.value).all())


def _is_infinite_constant(node: Node) -> bool:
    return node.op == "constant" and node.value.dtype.kind == "f" and bool(np.isinf(node.value).any())


def _is_float_input(node: Node) -> bool:
    return node.op == "input" and np.dtype(node.dtype).kind == "f"


def _reaches(b: Builder, x: Node, is_source: Callable[[Node], bool], ops: Sequence[str]) -> bool:
    """Return whether a source of infinities reaches a value through ops of these names."""
    seen = {x.name}
    pending = [x]
    while pending:
        node = pending.pop()
        if is_source(node):
            return True
        unseen = {name for name in node.inputs if node.op in ops} - seen
        seen |= unseen
        pending += [b.graph.nodes[name] for name in unseen]
    return False


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
    """Return whether a test for equality of two values tests for NaN or infinities: both are the same value, or one is
    a constant with NaN or an infinity."""
    constants = [operand.value for operand in operands if operand.op == "constant" and operand.value.dtype.kind == "f"]
    return operands[0].name == operands[1].name or any(not np.isfinite(value).all() for value in constants)
