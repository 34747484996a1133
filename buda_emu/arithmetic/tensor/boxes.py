"""Boxes of arrays: which box of an array the elements of another array's box lie in, and how they come out of it."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Box = tuple[slice, ...]
"""A range with start and stop for each dimension."""
Read = Callable[[Box], Array]


def take_box(read: Read, dtype: np.dtype[Any], dim: int, index: NDArray[np.int64], box: Box) -> Array:
    """A box of what has the elements `index` of a dimension, 0 where one is negative."""
    part = index[box[dim]]
    inside = part >= 0
    wanted = part[inside]
    if not wanted.size:
        return np.zeros([own.stop - own.start for own in box], dtype)
    low = int(wanted.min())
    high = int(wanted.max()) + 1
    own = read((*box[:dim], slice(low, high), *box[dim + 1 :]))
    ordered = wanted.size == high - low and bool((np.diff(wanted) == 1).all())
    if ordered and wanted.size == part.size:
        return own
    found = np.zeros([own.stop - own.start for own in box], dtype)
    found[(*(slice(None),) * dim, inside)] = own if ordered else np.take(own, wanted - low, dim)
    return found


Groups = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Dimensions before and after a reshape."""


def groups(old: Sequence[int], new: Sequence[int]) -> Groups:
    """Neighbouring dimensions of both shapes that hold the same elements, as few at a time as can be."""
    found: Groups = []
    first = second = 0
    while first < len(old) or second < len(new):
        mine = first
        theirs = second
        while True:
            a = prod(old[mine:first])
            b = prod(new[theirs:second])
            if a == b and (first > mine or second > theirs):
                break
            if (a <= b and first < len(old)) or second == len(new):
                first += 1
            else:
                second += 1
        found.append((tuple(old[mine:first]), tuple(new[theirs:second])))
    return found


def reshape_box(read: Read, of: Groups, box: Box) -> Array:
    """A box of what was reshaped: for each group the box of the old dimensions that holds the new one, and of it the
    elements that are wanted."""
    own: list[slice] = []
    picks: list[Any] = []
    at = 0
    for old, new in of:
        part = box[at : at + len(new)]
        at += len(new)
        strides = [prod(new[number + 1 :]) for number in range(len(new))]
        low = sum(item.start * stride for item, stride in zip(part, strides, strict=True))
        high = sum((item.stop - 1) * stride for item, stride in zip(part, strides, strict=True))
        cover = _cover(low, high, old)
        begin = sum(item.start * prod(old[number + 1 :]) for number, item in enumerate(cover))
        own += cover
        if high - low + 1 == prod(item.stop - item.start for item in part):
            picks.append(slice(low - begin, high + 1 - begin))
            continue
        ranges: list[Any] = [
            np.arange(item.start, item.stop) * stride for item, stride in zip(part, strides, strict=True)
        ]
        grid: Any = sum(np.ix_(*ranges))
        picks.append(grid.reshape(-1) - begin)
    found = read(tuple(own))
    sizes = [item.stop - item.start for item in own]
    flat: list[int] = []
    for old, _ in of:
        flat.append(prod(sizes[: len(old)]))
        del sizes[: len(old)]
    found = found.reshape(flat)
    for axis, pick in enumerate(picks):
        found = found[(*(slice(None),) * axis, pick)]
    return found.reshape([item.stop - item.start for item in box])


def _cover(low: int, high: int, sizes: Sequence[int]) -> list[slice]:
    """The smallest box whose elements follow each other and hold those from `low` to `high`."""
    box: list[slice] = []
    for number in range(len(sizes)):
        inner = prod(sizes[number + 1 :])
        first = low // inner
        last = high // inner
        box.append(slice(first, last + 1))
        if first != last:
            return [*box, *(slice(0, size) for size in sizes[number + 1 :])]
        low = low - first * inner
        high = high - last * inner
    return box


def largest(values: Array) -> float:
    """The largest magnitude; NaN if one is not a number."""
    if not values.size:
        return 0.0
    with np.errstate(all="ignore"):
        return (
            max(float(values.max()), -float(values.min()))
            if values.dtype.kind != "f"
            else float(np.maximum(values.max(), -values.min()))
        )
