"""Comparisons and logic on 0 and 1 (FRONTEND 3.2)."""

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.registry import composite
from buda_emu.errors import UnsupportedError
from buda_emu.spec.infinity import INFINITE, STAND_IN

_op = composite("compare", dtype="bool")
_STEEP = 1e30
"""Makes a 1 of every difference but 0. The vendor's compiler has 1e10, which calls differences below 1e-10 equal."""


def _constants(x: Node, y: Node) -> bool:
    return x.op == y.op == "constant"


@_op
def greater_equal(b: Builder, x: Node, y: Node) -> Node:
    """x >= y: (x - y) * 1e30 + 1, then relu from 0.5, then relu up to 1"""
    if _constants(x, y):
        return b.constant(x.value >= y.value)
    steep = b.add(b.multiply(b.subtract(x, y, dtype="float32"), _STEEP), 1.0)
    # from 0.5: the packer's relu drops what is just its threshold (DEVICE_NUMERICS 4.3), and 1 is what is equal
    return b.relu(b.relu(steep, threshold=0.5), threshold=1.0, mode="max", dtype="bool")


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
    if _constants(x, y):
        return b.constant(x.value == y.value)
    for value, other in ((x, y), (y, x)):
        if value.op == "constant" and value.value.size and np.isneginf(value.value).all():
            return b.less_equal(other, b.constant(np.full(value.shape, -INFINITE, np.float32)))
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
    for same, chosen in ((True, x), (False, y)):
        if c.op == "constant" and (c.value.astype(bool) == same).all() and chosen.shape == shape:
            return chosen
    small = b.graph.nodes.get(c.inputs[0], c) if c.op == "expand" else c  # there when it is computed
    c = small if np.broadcast_shapes(small.shape, x.shape, y.shape) == shape else c
    x, y = _finite(b, x), _finite(b, y)
    first, second = b.multiply(c, x, dtype=x.dtype), b.multiply(b.logical_not(c), y, dtype=x.dtype)
    for part, other in ((first, y), (second, x)):
        if other.op == "constant" and not other.value.any() and part.shape == shape:
            return part
    return b.add(first, second, dtype=x.dtype)


def _finite(b: Builder, x: Node) -> Node:
    if x.op != "constant" or np.isfinite(x.value).all():
        return x
    if np.isnan(x.value).any():
        raise UnsupportedError("a constant with NaN, for which no value of the device stands")
    return b.constant(np.nan_to_num(x.value, posinf=STAND_IN, neginf=-STAND_IN))
