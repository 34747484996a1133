"""Sums, means, products and extremes over dimensions (FRONTEND 2, 3.2)."""

from collections.abc import Sequence
from math import isinf
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size, check_index_size
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.graph.registry import composite
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.support.errors import UnsupportedError

_op = composite("reduce")


def _normalise_axes(x: Node, axes: Sequence[int] | None) -> list[int]:
    """Return the numbers of the dimensions of x that the axes name, each once, in ascending order; negative axes count
    from the end, None names all. Raises ValueError for an axis that x does not have."""
    rank = len(x.shape)
    if axes is not None:
        return sorted({dim_of(axis, rank) for axis in axes})
    return list(range(rank))


def squeeze_dims(b: Builder, x: Node, dims: Sequence[int], keepdims: bool) -> Node:
    """Remove the dimensions `dims`, which have size 1, unless `keepdims`."""
    if keepdims:
        return x
    return b.reshape(x, shape=tuple(n for place, n in enumerate(x.shape) if place not in dims))


@_op
def reduce_sum(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """sum over dimensions: a row of ones along each"""
    return _sum_with_weights(b, x, axes, keepdims, mean=False)


@_op
def reduce_mean(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """mean over dimensions: a row of 1/n along each"""
    return _sum_with_weights(b, x, axes, keepdims, mean=True)


def _sum_with_weights(b: Builder, x: Node, axes: Sequence[int] | None, keepdims: bool, *, mean: bool) -> Node:
    """Sum or average over dimensions by multiplying with a row of equal weights. Raise UnsupportedError for a dimension
    without elements, and for one that is too long."""
    dims = _normalise_axes(x, axes)
    if x.op == "constant":
        axis_tuple = tuple(dims)
        return b.constant(
            np.mean(x.value, axis_tuple, keepdims=keepdims) if mean else np.sum(x.value, axis_tuple, keepdims=keepdims),
            dtype=x.dtype if not mean else None,
        )
    for dim in reversed(dims):
        size = x.shape[dim]
        if size == 0:
            raise UnsupportedError("a mean or sum over nothing")
        weight = 1 / size if mean else 1.0
        if size > 1:
            check_index_size("sum", size)
            matrix = Sparse.of((1, size), np.zeros(size), np.arange(size), weight)
            x = b.linear(x, dim=dim, matrix=matrix, dtype=x.dtype)
    return squeeze_dims(b, x, dims, keepdims)


@_op
def reduce_largest(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """largest over dimensions, one after the other"""
    dims = _normalise_axes(x, axes)
    for dim in reversed(dims):
        if x.shape[dim] != 1:
            x = b.reduce_max(x, dim=dim, dtype=x.dtype)
    return squeeze_dims(b, x, dims, keepdims)


@_op
def reduce_smallest(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """-max(-x)"""
    return b.negative(b.reduce_largest(b.negative(x), axes=axes, keepdims=keepdims))


@_op
def reduce_product(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """product over dimensions: halves multiplied until one is left"""
    dims = _normalise_axes(x, axes)
    for dim in dims:
        while x.shape[dim] > 1:
            half = x.shape[dim] // 2
            low, high = (b.slice(x, dim=dim, start=start, count=half) for start in (0, half))
            if x.shape[dim] % 2:
                odd_element = b.slice(x, dim=dim, start=2 * half, count=1)
            else:
                odd_element = None
            x = b.multiply(low, high)
            if odd_element is not None:
                x = b.concat(x, odd_element, dim=dim)
    return squeeze_dims(b, x, dims, keepdims)


@_op
def reduce_l1(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """sum |x|"""
    return b.reduce_sum(b.abs(x), axes=axes, keepdims=keepdims)


@_op
def reduce_sum_square(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """sum x^2"""
    return b.reduce_sum(b.square(x), axes=axes, keepdims=keepdims)


@_op
def reduce_l2(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """sqrt(sum x^2)"""
    return b.sqrt(b.reduce_sum_square(x, axes=axes, keepdims=keepdims))


@_op
def reduce_lp(b: Builder, x: Node, *, p: float, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """(sum |x|^p)^(1/p); p 0 counts what is not 0, infinite p is the largest or smallest |x|"""
    options: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    if p == 0:
        return b.reduce_sum(b.not_equal(x, 0.0, dtype="float32"), **options)
    if isinf(p):
        return (b.reduce_largest if p > 0 else b.reduce_smallest)(b.abs(x), **options)
    if p in (1, 2):
        return (b.reduce_l1 if p == 1 else b.reduce_l2)(x, **options)
    # A norm of negative order is 0 where an element is: a stand-in for 0 keeps its inverse finite.
    if p > 0:
        size = b.abs(x)
    else:
        size = b.maximum(b.abs(x), max(1e27 ** (1 / p), 1e-30))
    powers = b.pow(size, b.constant(np.float32(p)))
    return b.pow(b.reduce_sum(powers, **options), b.constant(np.float32(1 / p)))


@_op
def reduce_log_sum(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """log(sum x)"""
    return b.log(b.reduce_sum(x, axes=axes, keepdims=keepdims))


@_op
def reduce_log_sum_exp(b: Builder, x: Node, *, axes: Sequence[int] | None = None, keepdims: bool = True) -> Node:
    """m + log(sum exp(x - m)), m the largest"""
    dims = _normalise_axes(x, axes)
    m = b.reduce_largest(x, axes=dims)
    total = b.add(m, b.log(b.reduce_sum(b.exp(b.subtract(x, m)), axes=dims)))
    return squeeze_dims(b, total, dims, keepdims)


@_op
def argmax(b: Builder, x: Node, *, dim: int, keepdims: bool = True, last: bool = False) -> Node:
    """place of the first (`last`: last) largest: n - max((x >= max x) * (n - place), 1)

    Returns the place along dimension `dim`, as a number.
    """
    dim = dim_of(dim, len(x.shape))
    size = x.shape[dim]
    shape = [1] * len(x.shape)
    shape[dim] = size
    check_index_size("argmax", size)
    place = np.arange(size, dtype=np.float32).reshape(shape)
    hit = b.not_less(x, b.reduce_largest(x, axes=[dim]))
    # counted from 1, and at least 1: the maximum of a row of true -inf is that of its padding, which no element reaches
    if last:
        numbers = place + 1
    else:
        numbers = size - place
    number = b.reduce_largest(b.multiply(hit, b.constant(numbers), dtype="float32"), axes=[dim])
    number = b.maximum(number, 1.0)
    if last:
        position = b.subtract(number, 1.0)
    else:
        position = b.subtract(float(size), number)
    return b.retype(squeeze_dims(b, position, [dim], keepdims), "int64")


@_op
def cumsum(b: Builder, x: Node, *, dim: int, exclusive: bool = False, reverse: bool = False) -> Node:
    """running sum: a triangular matrix"""
    dim = dim_of(dim, len(x.shape))
    size = x.shape[dim]
    check_constant_size("cumsum", (size, size))
    matrix = np.tril(np.ones((size, size), np.float32), -1 if exclusive else 0)
    return b.linear(x, dim=dim, matrix=Sparse.dense(matrix.T if reverse else matrix), dtype=x.dtype)
