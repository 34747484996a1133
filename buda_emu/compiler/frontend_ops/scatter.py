"""Values combined with the elements of a tensor at computed places of one dimension."""

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.graph.registry import composite
from buda_emu.spec.precision import STAND_IN
from buda_emu.support.errors import UnsupportedError

_op = composite("scatter")
REDUCTIONS = ("none", "sum", "mean", "prod", "amax", "amin")
"""Ways to combine several values for one place with each other and with the element itself."""


@_op
def scatter(
    b: Builder, x: Node, hot: Node, values: Node, *, dim: int, reduction: str = "none", include_self: bool = True
) -> Node:
    """x with values at places of `dim`, which are one-hot rows of its indices, the last dimension: the last value, or
    all of a place reduced, with the element itself or without it"""
    if reduction not in REDUCTIONS:
        raise UnsupportedError(f"reduction {reduction!r} of several values for one place")
    dim = dim_of(dim, len(x.shape))
    values = b.reshape(values, shape=(*values.shape, 1))
    if reduction == "none":
        return _replace_elements(b, x, hot, values, dim)
    if reduction in ("sum", "mean"):
        return _add_elements(b, x, hot, values, dim, mean=reduction == "mean", include_self=include_self)
    if reduction == "amin":
        values = b.negative(values)
        reduced = b.scatter(
            b.negative(x), hot, _drop_last_dim(b, values), dim=dim, reduction="amax", include_self=include_self
        )
        return b.negative(reduced)
    if reduction == "amax":
        bounded = b.add(b.multiply(hot, values), b.multiply(b.subtract(hot, 1.0), STAND_IN), dtype=x.dtype)
        reduced = _move_to_places(b, b.reduce_largest(bounded, axes=[dim]), x, dim)
        combined = b.maximum(x, reduced, dtype=x.dtype)
    else:
        factors = b.add(b.multiply(hot, values), b.subtract(1.0, hot), dtype=x.dtype)
        reduced = _move_to_places(b, b.reduce_product(factors, axes=[dim]), x, dim)
        combined = b.multiply(x, reduced, dtype=x.dtype)
    if include_self:
        return combined
    return b.where(_target_mask(b, x, hot, dim), reduced, x, dtype=x.dtype)


def _drop_last_dim(b: Builder, values: Node) -> Node:
    """Reshape values without their last dimension, which has one element."""
    return b.reshape(values, shape=values.shape[:-1])


def _move_to_places(b: Builder, values: Node, x: Node, dim: int) -> Node:
    """Return values that stand for the elements of dimension `dim` of x along their last dimension, and have size 1
    along `dim`, with the last dimension in the place of that one."""
    rank = len(x.shape)
    squeezed = b.reshape(values, shape=(*values.shape[:dim], *values.shape[dim + 1 :]))
    return b.transpose(squeezed, perm=(*range(dim), rank - 1, *range(dim, rank - 1)))


def _target_mask(b: Builder, x: Node, hot: Node, dim: int) -> Node:
    """Return 1 for each element of x that an index names, else 0. `hot`: one-hot rows of the indices along dimension
    `dim`."""
    return b.boolean(_move_to_places(b, b.reduce_largest(hot, axes=[dim]), x, dim))


def _replace_elements(b: Builder, x: Node, hot: Node, values: Node, dim: int) -> Node:
    """Return x with the last value for each place of dimension `dim` written over it. `hot`: one-hot rows of the
    places."""
    is_target = _target_mask(b, x, hot, dim)
    if hot.shape[dim] > 1:  # only the last one for a place counts
        hot = b.multiply(hot, b.equal(b.cumsum(hot, dim=dim, reverse=True), 1.0, dtype="float32"))
    replacements = _move_to_places(b, b.reduce_sum(b.multiply(hot, values, dtype="float32"), axes=[dim]), x, dim)
    if x.op == "constant" and not x.value.any():
        return replacements
    return b.where(is_target, replacements, x, dtype=x.dtype)


def _add_elements(b: Builder, x: Node, hot: Node, values: Node, dim: int, *, mean: bool, include_self: bool) -> Node:
    """Return x with the sum or mean of the values for each place; with `include_self` the element of x counts as one of
    them. Raise UnsupportedError for a mean of integers."""
    total = _move_to_places(b, b.reduce_sum(b.multiply(hot, values, dtype="float32"), axes=[dim]), x, dim)
    if include_self and not mean:
        return b.add(x, total, dtype=x.dtype)
    if not mean:
        return b.where(_target_mask(b, x, hot, dim), total, x, dtype=x.dtype)
    if np.dtype(x.dtype).kind != "f":
        raise UnsupportedError("a mean of integers at computed places")
    counts = _move_to_places(b, b.reduce_sum(hot, axes=[dim]), x, dim)
    if include_self:
        return b.divide(b.add(x, total), b.add(counts, 1.0))
    return b.where(_target_mask(b, x, hot, dim), b.divide(total, b.maximum(counts, 1.0)), x)
