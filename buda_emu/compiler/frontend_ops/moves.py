"""Slices, pads, repeats, gathers: all constant matrices along one dimension (FRONTEND 2)."""

from collections.abc import Sequence

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size, check_index_size
from buda_emu.compiler.graph.graph import Array, Node, dim_of
from buda_emu.compiler.graph.registry import composite
from buda_emu.compiler.graph.sparse import Sparse

_op = composite("moves")


@_op
def take(b: Builder, x: Node, *, dim: int, index: Array) -> Node:
    """elements of one dimension by constant indices; 0 where an index is negative

    Returns x with the elements number `index` of dimension `dim`, in that order.
    """
    dim = dim_of(dim, len(x.shape))
    index = np.asarray(index, np.int64)
    if index.size == x.shape[dim] and (index == np.arange(index.size)).all():
        return x
    return b.linear(x, dim=dim, matrix=Sparse.gather(index, x.shape[dim]), dtype=x.dtype)


@_op
def slice_(b: Builder, x: Node, *, dim: int, start: int, count: int, step: int = 1) -> Node:
    """`count` elements of one dimension from `start` on"""
    check_index_size("slice", count)
    return b.take(x, dim=dim, index=start + step * np.arange(count))


@_op
def pad(b: Builder, x: Node, *, pads: Sequence[tuple[int, int]], mode: str = "constant", value: float = 0.0) -> Node:
    """more elements around: a value, the edge, or what is mirrored or wrapped; fewer where a count is negative"""
    sizes = tuple(size + sum(around) for size, around in zip(x.shape, pads, strict=True))
    check_index_size("pad", max(sizes, default=1))
    if mode == "constant" and value:
        check_constant_size("pad", sizes)
        inside = b.pad(b.constant(np.ones(x.shape, np.float32)), pads=pads)
        around = np.where(inside.value == 1, np.float32(0), np.float32(value))
        return b.add(b.pad(x, pads=pads), b.constant(around), dtype=x.dtype)
    for dim, (low, high) in enumerate(pads):
        if low or high:
            x = b.take(x, dim=dim, index=_pad_indices(x.shape[dim], low, high, mode))
    return x


def _pad_indices(size: int, low: int, high: int, mode: str) -> Array:
    """Return the index that each element of a padded dimension of `size` elements reads, -1 for a constant; `low` and
    `high`: elements that are added before and after."""
    index = np.arange(-low, size + high)
    if mode == "constant":
        return np.where((index >= 0) & (index < size), index, -1)
    if mode == "edge":
        return np.clip(index, 0, size - 1)
    if mode == "wrap":
        return _wrap_indices(size, low, high)
    period = max(1, 2 * (size - 1))
    return size - 1 - np.abs(size - 1 - index % period)


def _wrap_indices(size: int, low: int, high: int) -> Array:
    """Return the indices of a dimension that is padded from its other end. Where one side is negative it is cut off
    first, and what is left is repeated, as torch and onnxruntime do."""
    left = np.arange(size)[max(0, -low) : size - max(0, -high)]
    if not left.size:
        raise ValueError(f"pads {low} and {high} leave nothing of {size} elements to repeat")
    return left[np.arange(-max(0, low), left.size + max(0, high)) % left.size]


@_op
def repeat(b: Builder, x: Node, *, dim: int, times: int) -> Node:
    """each element of one dimension several times

    Each element of dimension `dim` is followed by its copies, `times` of it in all.
    """
    shape = x.shape
    wide = b.reshape(x, shape=(*shape[: dim + 1], 1, *shape[dim + 1 :]))
    wide = b.expand(wide, shape=(*shape[: dim + 1], times, *shape[dim + 1 :]))
    return b.reshape(wide, shape=(*shape[:dim], shape[dim] * times, *shape[dim + 1 :]))


@_op
def tile(b: Builder, x: Node, *, repeats: Sequence[int]) -> Node:
    """the whole several times along each dimension"""
    for size, times in zip(x.shape, repeats, strict=True):
        check_index_size("tile", size * times)
    for dim, times in enumerate(repeats):
        if times != 1:
            x = b.take(x, dim=dim, index=np.tile(np.arange(x.shape[dim]), times))
    return x


@_op
def depth_to_space(b: Builder, x: Node, *, block: int, columns_first: bool = True) -> Node:
    """channels as blocks of pixels

    `block`: rows and columns of a block; `columns_first`: whether a block's place is the outer part of a channel's
    number.
    """
    n, c, h, w = x.shape
    if columns_first:
        parts = b.transpose(b.reshape(x, shape=(n, block, block, c // block**2, h, w)), perm=(0, 3, 4, 1, 5, 2))
    else:
        parts = b.transpose(b.reshape(x, shape=(n, c // block**2, block, block, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return b.reshape(parts, shape=(n, c // block**2, h * block, w * block))


@_op
def space_to_depth(b: Builder, x: Node, *, block: int, block_first: bool = True) -> Node:
    """blocks of pixels as channels"""
    n, c, h, w = x.shape
    parts = b.reshape(x, shape=(n, c, h // block, block, w // block, block))
    parts = b.transpose(parts, perm=(0, 3, 5, 1, 2, 4) if block_first else (0, 1, 3, 5, 2, 4))
    return b.reshape(parts, shape=(n, c * block**2, h // block, w // block))


@_op
def one_hot(b: Builder, index: Node, *, depth: int, from_end: bool = True) -> Node:
    """1 where the new last dimension counts the index; negative ones count from the end, or are nowhere"""
    last = b.reshape(index, shape=(*index.shape, 1))
    if from_end and index.op == "constant":
        last = b.constant(np.where(last.value < 0, last.value + depth, last.value))
    elif from_end:
        last = b.add(last, b.multiply(b.less(last, 0.0), float(depth), dtype="float32"))
    return b.equal(last, b.constant(np.arange(depth, dtype=np.float32)), dtype="float32")


@_op
def gather(b: Builder, x: Node, index: Node, *rows: Node, dim: int) -> Node:
    """elements along one dimension by indices that are an input: one-hot rows times x

    `rows`: those rows, where there are some already."""
    dim = dim_of(dim, len(x.shape))
    other_sizes = (*x.shape[:dim], *x.shape[dim + 1 :])
    order = (dim, *[place for place in range(len(x.shape)) if place != dim])
    flat = b.reshape(b.transpose(x, perm=order), shape=(x.shape[dim], int(np.prod(other_sizes))))
    count = int(np.prod(index.shape))
    if rows:
        hot = b.reshape(rows[0], shape=(count, x.shape[dim]))
    else:
        hot = b.one_hot(b.reshape(index, shape=(count,)), depth=x.shape[dim])
    picked = b.reshape(b.matmul(hot, flat), shape=(*index.shape, *other_sizes))
    rank = len(index.shape)
    perm = (*range(rank, rank + dim), *range(rank), *range(rank + dim, rank + len(other_sizes)))
    if x.dtype != "float32":
        return b.retype(b.transpose(picked, perm=perm), x.dtype)
    return b.transpose(picked, perm=perm)


@_op
def gather_elements(b: Builder, x: Node, index: Node, *rows: Node, dim: int) -> Node:
    """out[.., i, ..] = x[.., index[.., i, ..], ..]: one-hot along the dimension, summed

    `rows`: one-hot rows of the index, where there are some already."""
    dim = dim_of(dim, len(x.shape))
    for place, size in enumerate(index.shape):
        if place != dim and size != x.shape[place]:
            x = b.slice(x, dim=place, start=0, count=size)
    hot = rows[0] if rows else b.one_hot(index, depth=x.shape[dim])  # [..., depth]
    order = (*[place for place in range(len(x.shape)) if place != dim], dim)
    last = b.transpose(x, perm=order)  # [rest, depth]
    hot = b.transpose(hot, perm=(*order, len(x.shape)))  # [rest, n, depth]
    picked = b.matmul(hot, b.reshape(last, shape=(*last.shape, 1)))  # [rest, n, 1]
    elements = b.reshape(picked, shape=picked.shape[:-1])
    back = b.transpose(elements, perm=[order.index(place) for place in range(len(order))])
    if x.dtype != "float32":
        return b.retype(back, x.dtype)
    return back
