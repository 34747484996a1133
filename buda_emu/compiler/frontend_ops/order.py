"""Sorting along one dimension: every element is compared with every other, n * n comparisons. For the first few of very
many elements, chunks of them are sorted first."""

import numpy as np

from buda_emu.compiler.graph.builder import Builder, check_constant_size, check_index_size
from buda_emu.compiler.graph.graph import Node, dim_of
from buda_emu.compiler.graph.registry import composite

_op = composite("order")
_MOST_COMPARED = 1 << 12
"""Elements of a row that are all compared with each other although only a few of them are wanted: a constant of n * n
elements then has 64 MiB."""
_CHUNK = 512
"""Elements of a chunk of a longer row. The first 40 of 20,480 elements take 13 million comparisons with chunks of 512,
44 million with chunks of 128, and 22 million with chunks of 1024; all with all would take 419 million."""


@_op
def rank(b: Builder, x: Node, *, descending: bool = True) -> Node:
    """how many elements of the last dimension come before each; of equal ones the first comes first

    Returns for each element the number of elements of its row that come before it in sorted order.
    """
    n = x.shape[-1]
    check_constant_size("order", (n, n))
    high = b.reshape(x, shape=(*x.shape, 1))
    low = b.reshape(x, shape=(*x.shape[:-1], 1, n))
    # [i, j]: j comes before i, or equal
    if descending:
        not_later = b.greater_equal(low, high)
    else:
        not_later = b.greater_equal(high, low)
    rows = len(x.shape)
    strictly_later = b.logical_not(b.transpose(not_later, perm=(*range(rows - 1), rows, rows - 1)))
    before = np.tril(np.ones((n, n), np.float32), -1)
    earlier = b.multiply(not_later, b.constant(before), dtype="float32")
    later = b.multiply(strictly_later, b.constant(before.T), dtype="float32")
    return b.reduce_sum(b.add(earlier, later), axes=[rows], keepdims=False)


@_op
def ordered(b: Builder, x: Node, *, dim: int, count: int, descending: bool = True) -> Node:
    """the first `count` elements in order: one-hot rows of ranks times x

    Returns the `count` smallest elements of dimension `dim`, or with `descending` the largest, in sorted order.
    """
    x, order = _move_dim_last(b, x, dim)
    if _comes_from_chunks(x, count):
        x, _ = _first_of_chunks(b, x, count, descending)
    rank_rows = _one_hot_ranks(b, x, count, descending)
    elements = b.matmul(rank_rows, b.reshape(x, shape=(*x.shape, 1)))
    return b.transpose(b.reshape(elements, shape=(*x.shape[:-1], count)), perm=order)


@_op
def order(b: Builder, x: Node, *, dim: int, count: int, descending: bool = True) -> Node:
    """where they stood: one-hot rows of ranks times 0, 1, 2, ...

    Returns the places along dimension `dim` at which the results of `ordered` stood.
    """
    x, perm = _move_dim_last(b, x, dim)
    if _comes_from_chunks(x, count):
        x, all_places = _first_of_chunks(b, x, count, descending)
        all_places = b.reshape(all_places, shape=(*x.shape, 1))
    else:
        all_places = b.constant(np.arange(x.shape[-1], dtype=np.float32).reshape(-1, 1))
    places = b.matmul(_one_hot_ranks(b, x, count, descending), all_places)
    places = b.transpose(b.reshape(places, shape=(*x.shape[:-1], count)), perm=perm)
    return b.retype(places, "int64")


def _comes_from_chunks(x: Node, count: int) -> bool:
    """Return whether the first `count` elements of each row are looked for among the first of its chunks."""
    return x.shape[-1] > _MOST_COMPARED and count <= _CHUNK // 4


def _first_of_chunks(b: Builder, x: Node, count: int, descending: bool) -> tuple[Node, Node]:
    """Return the first `count` elements of each chunk of the rows of x, all in one row again, and their places in the
    rows of x. Equal elements keep their order."""
    rows = x.shape[:-1]
    chunks = -(-x.shape[-1] // _CHUNK)
    check_constant_size("order", (chunks, _CHUNK, _CHUNK))
    missing = chunks * _CHUNK - x.shape[-1]
    if missing:
        last = np.float32(-np.inf if descending else np.inf)
        x = b.concat(x, b.constant(np.full((*rows, missing), last)), dim=len(rows))
    in_chunks = b.reshape(x, shape=(*rows, chunks, _CHUNK))
    elements = b.ordered(in_chunks, dim=-1, count=count, descending=descending)
    places = b.order(in_chunks, dim=-1, count=count, descending=descending)
    first_places = b.constant(np.arange(chunks, dtype=np.float32).reshape(chunks, 1) * _CHUNK)
    places = b.add(b.retype(places, "float32"), first_places, dtype="float32")
    shape = (*rows, chunks * count)
    return b.reshape(elements, shape=shape), b.reshape(places, shape=shape)


def _move_dim_last(b: Builder, x: Node, dim: int) -> tuple[Node, list[int]]:
    """Return x with a dimension moved to the end, and the permutation that moves it back."""
    dim = dim_of(dim, len(x.shape))
    places = [place for place in range(len(x.shape)) if place != dim]
    places.append(dim)
    return b.transpose(x, perm=places), [places.index(place) for place in range(len(places))]


def _one_hot_ranks(b: Builder, x: Node, count: int, descending: bool) -> Node:
    """Return [..., count, n]: a row of zeros and a one that selects the element of rank 0, 1, ..."""
    ranks = b.reshape(b.rank(x, descending=descending), shape=(*x.shape[:-1], 1, x.shape[-1]))
    return b.equal(ranks, b.constant(np.arange(count, dtype=np.float32).reshape(count, 1)), dtype="float32")


@_op
def cumprod(b: Builder, x: Node, *, dim: int, exclusive: bool = False, reverse: bool = False) -> Node:
    """running product: times what stood 1, 2, 4, ... places before, 1 where nothing did"""
    dim = dim_of(dim, len(x.shape))
    n = x.shape[dim]
    check_index_size("cumprod", n)
    if exclusive:
        x = _shift(b, x, dim, 1, reverse)
    step = 1
    while step < n:
        x = b.multiply(x, _shift(b, x, dim, step, reverse), dtype=x.dtype)
        step *= 2
    return x


def _shift(b: Builder, x: Node, dim: int, step: int, reverse: bool) -> Node:
    """Move the elements of a dimension by `step` places towards the end, or with `reverse` towards the beginning,
    filling up with ones."""
    place = np.arange(x.shape[dim]) + (step if reverse else -step)
    outside = (place < 0) | (place >= x.shape[dim])
    neutral = outside.astype(np.float32).reshape(-1, *[1] * (len(x.shape) - 1 - dim))
    return b.add(b.take(x, dim=dim, index=np.where(outside, -1, place)), b.constant(neutral), dtype=x.dtype)
