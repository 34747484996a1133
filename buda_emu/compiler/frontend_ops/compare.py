"""Comparisons and logic on 0 and 1 (FRONTEND 3.2)."""

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.registry import composite
from buda_emu.spec.precision import INFINITE, LARGEST, STAND_IN
from buda_emu.support.errors import UnsupportedError

_op = composite("compare", dtype="bool")
_STEEP = 1e30
"""A factor that turns every difference except 0 into at least 1. The vendor's compiler has 1e10, which calls
differences below 1e-10 equal."""


def _are_constants(x: Node, y: Node) -> bool:
    """Return whether both operands are constants."""
    return x.op == y.op == "constant"


@_op
def greater_equal(b: Builder, x: Node, y: Node) -> Node:
    """x >= y: (x - y) * 1e30 + 1, then relu from 0.5, then relu up to 1"""
    if _are_constants(x, y):
        return b.constant(x.value >= y.value)
    steep = b.add(b.multiply(b.subtract(x, y, dtype="float32"), _STEEP), 1.0)
    # from 0.5: the packer's relu drops what is just its threshold (DEVICE_NUMERICS 4.3), and 1 is what is equal
    return b.relu(b.relu(steep, threshold=0.5), threshold=1.0, mode="max", dtype="bool")


@_op
def not_less(b: Builder, x: Node, y: Node) -> Node:
    """not y > x: 1 - (y - x) * 1e30 within 0 and 1; also 1 where the difference is no number, as that of infinities"""
    if _are_constants(x, y):
        return b.constant(~(y.value > x.value))
    steep = b.multiply(b.subtract(y, x, dtype="float32"), _STEEP)
    return b.logical_not(b.relu(b.relu(steep, threshold=0.5), threshold=1.0, mode="max"))


@_op
def less_equal(b: Builder, x: Node, y: Node) -> Node:
    """x <= y: y >= x"""
    return b.greater_equal(y, x)


@_op
def greater(b: Builder, x: Node, y: Node) -> Node:
    """x > y: 1 - (y >= x)"""
    return b.logical_not(b.greater_equal(y, x))


@_op
def less(b: Builder, x: Node, y: Node) -> Node:
    """x < y: 1 - (x >= y)"""
    return b.logical_not(b.greater_equal(x, y))


@_op
def equal(b: Builder, x: Node, y: Node) -> Node:
    """x == y: (x >= y) * (y >= x)"""
    if _are_constants(x, y):
        return b.constant(x.value == y.value)
    if x.name == y.name:  # all that this asks is whether x is NaN
        return b.logical_not(b.is_nan(x))
    for value, other in ((x, y), (y, x)):
        if value.op == "constant" and value.value.size and np.isneginf(value.value).all():
            return b.less_equal(other, b.constant(np.full(value.shape, -INFINITE, np.float32)))
        if value.op == "constant" and value.value.size and np.isposinf(value.value).all():
            return b.greater_equal(other, b.constant(np.full(value.shape, INFINITE, np.float32)))
    return b.multiply(b.greater_equal(x, y), b.greater_equal(y, x), dtype="bool")


@_op
def not_equal(b: Builder, x: Node, y: Node) -> Node:
    """x != y: 1 - (x == y)"""
    return b.logical_not(b.equal(x, y))


@_op
def logical_not(b: Builder, x: Node) -> Node:
    """not x: 1 - x"""
    if x.op == "constant":
        return b.constant(~x.value.astype(bool))
    return b.subtract(1.0, x, dtype="bool")


@_op
def logical_and(b: Builder, x: Node, y: Node) -> Node:
    """x and y: x * y"""
    return b.multiply(x, y, dtype="bool")


@_op
def logical_or(b: Builder, x: Node, y: Node) -> Node:
    """x or y: max(x, y)"""
    return b.maximum(x, y, dtype="bool")


@_op
def logical_xor(b: Builder, x: Node, y: Node) -> Node:
    """either: (x - y)^2"""
    return b.square(b.subtract(x, y, dtype="float32"), dtype="bool")


# Every comparison of the device with NaN is false where it is `greater_equal`, which the others are made of.
@_op
def is_nan(b: Builder, x: Node) -> Node:
    """x is not a number: neither x >= 0 nor 0 >= x"""
    if x.op == "constant":
        return b.constant(np.isnan(x.value))
    return b.logical_not(b.maximum(b.greater_equal(x, 0.0), b.greater_equal(0.0, x)))


@_op
def is_infinite(b: Builder, x: Node, *, above: bool = True, below: bool = True) -> Node:
    """|x| >= 0.99e30: x is infinite, or stands for what is; only `above` or `below` 0 if one of them is false"""
    if x.op == "constant":
        return b.constant((above & np.isposinf(x.value)) | (below & np.isneginf(x.value)))
    if above and below:
        return b.greater_equal(b.abs(x), INFINITE)
    if above:
        return b.greater_equal(x, INFINITE)
    return b.greater_equal(-INFINITE, x)


@_op
def is_finite(b: Builder, x: Node) -> Node:
    """0.99e30 > |x|: x is a number, and not infinite"""
    if x.op == "constant":
        return b.constant(np.isfinite(x.value))
    return b.greater_equal(float(np.nextafter(np.float32(INFINITE), np.float32(0))), b.abs(x))


_value = composite("compare")


@_value
def boolean(b: Builder, x: Node) -> Node:
    """x != 0"""
    return b.not_equal(x, 0.0)


@_value
def where(b: Builder, c: Node, x: Node, y: Node) -> Node:
    """c x + (1 - c) y; infinities become 2^100, as 0 * inf is not a number"""
    if c.op == x.op == y.op == "constant":
        return b.constant(np.where(c.value.astype(bool), x.value, y.value))
    shape = np.broadcast_shapes(c.shape, x.shape, y.shape)
    if c.op == "constant":
        mask = c.value.astype(bool)
        if mask.all() and x.shape == shape:
            return x
        if not mask.any() and y.shape == shape:
            return y
    # there when it is computed
    if c.op == "expand":
        unexpanded = b.graph.nodes.get(c.inputs[0], c)
    else:
        unexpanded = c
    if np.broadcast_shapes(unexpanded.shape, x.shape, y.shape) == shape:
        c = unexpanded
    x = _replace_infinities(b, x)
    y = _replace_infinities(b, y)
    first = b.multiply(c, x, dtype=x.dtype)
    second = b.multiply(b.logical_not(c), y, dtype=x.dtype)
    for part, other in ((first, y), (second, x)):
        if other.op == "constant" and not other.value.any() and part.shape == shape:
            return part
    return b.add(first, second, dtype=x.dtype)


@_value
def guarded_where(b: Builder, c: Node, x: Node, y: Node) -> Node:
    """c ? x : y, of values that may be NaN or infinite: each is between -2^126 c and 2^126 c, so 0 if not chosen"""
    if c.op == "constant" or x.op == y.op == "constant":
        return b.where(c, x, y, dtype=x.dtype)
    first = _mask_value(b, c, x)
    second = _mask_value(b, b.logical_not(c), y)
    return b.add(first, second, dtype=x.dtype)


def _mask_value(b: Builder, c: Node, x: Node) -> Node:
    """Return x where c is 1, else 0, for values that may be NaN or infinite. A maximum gives its second operand if the
    first one is NaN; a selected NaN is produced again as a difference of infinities."""
    if x.op == "constant":
        return b.multiply(c, _replace_infinities(b, x), dtype=x.dtype)
    above = b.maximum(x, b.multiply(c, -LARGEST, dtype="float32"), dtype=x.dtype)
    bounded = b.minimum(above, b.multiply(c, LARGEST, dtype="float32"), dtype=x.dtype)
    if np.dtype(x.dtype).kind != "f":
        return bounded
    large = b.exp(b.multiply(b.logical_and(c, b.is_nan(x)), 100.0, dtype="float32"))
    infinite = b.multiply(large, LARGEST)
    return b.add(bounded, b.subtract(infinite, infinite), dtype=x.dtype)


def _replace_infinities(b: Builder, x: Node) -> Node:
    """Return a constant with its infinities replaced by the largest value that stands for them; any other node
    unchanged. Raise UnsupportedError for a NaN."""
    if x.op != "constant" or np.isfinite(x.value).all():
        return x
    if np.isnan(x.value).any():
        raise UnsupportedError("a constant with NaN, for which no value of the device stands")
    return b.constant(np.nan_to_num(x.value, posinf=STAND_IN, neginf=-STAND_IN))
