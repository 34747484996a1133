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
    """Return a box of the array that has elements `index` of dimension `dim` of a source, and 0 where an index is
    negative. `read` reads a box of the source, whose elements have the type `dtype`; `box` counts in the new array. The
    result may be a view of what `read` gave."""
    part = index[box[dim]]
    inside = part >= 0
    indices = part[inside]
    if not indices.size:
        return np.zeros([side.stop - side.start for side in box], dtype)
    low = int(indices.min())
    high = int(indices.max()) + 1
    elements = read((*box[:dim], slice(low, high), *box[dim + 1 :]))
    ordered = indices.size == high - low and bool((np.diff(indices) == 1).all())
    if ordered and indices.size == part.size:
        return elements
    if not ordered:
        elements = np.take(elements, indices - low, dim)
    result = np.zeros([side.stop - side.start for side in box], dtype)
    result[(*(slice(None),) * dim, inside)] = elements
    return result


Groups = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Dimensions before and after a reshape."""


def group_dimensions(old: Sequence[int], new: Sequence[int]) -> Groups:
    """Return the dimensions of two shapes cut into pairs of neighbouring ones, (old, new), that have equally many
    elements, each pair as short as possible: `reshape_box` reads one pair at a time. The shapes must have equally many
    elements."""
    pairs: Groups = []
    first = second = 0
    while first < len(old) or second < len(new):
        begin = first
        new_begin = second
        while True:
            a = prod(old[begin:first])
            b = prod(new[new_begin:second])
            if a == b and (first > begin or second > new_begin):
                break
            if (a <= b and first < len(old)) or second == len(new):
                first += 1
            else:
                second += 1
        pairs.append((tuple(old[begin:first]), tuple(new[new_begin:second])))
    return pairs


def reshape_box(read: Read, dimension_groups: Groups, box: Box) -> Array:
    """Return a box of a reshaped array. `read` reads a box of the array before the reshape, `dimension_groups` is what
    `group_dimensions` gives for the shapes before and after, `box` counts in the new shape. More is read than the box
    where its elements do not follow each other."""
    old_box: list[slice] = []
    picks: list[Any] = []
    at = 0
    for old, new in dimension_groups:
        cover, pick = _pick_group(old, new, box[at : at + len(new)])
        at += len(new)
        old_box += cover
        picks.append(pick)
    elements = read(tuple(old_box))
    sizes = [side.stop - side.start for side in old_box]
    flat: list[int] = []
    for old, _ in dimension_groups:
        flat.append(prod(sizes[: len(old)]))
        del sizes[: len(old)]
    elements = elements.reshape(flat)
    for axis, pick in enumerate(picks):
        elements = elements[(*(slice(None),) * axis, pick)]
    return elements.reshape([side.stop - side.start for side in box])


def _pick_group(old: tuple[int, ...], new: tuple[int, ...], part: Box) -> tuple[list[slice], Any]:
    """Return, for one pair of dimension groups (`old`, `new`), the box of the old dimensions that covers the box `part`
    of the new ones, and the flat places in that cover of the part's elements: a slice where they follow each other,
    else an array."""
    strides = [prod(new[number + 1 :]) for number in range(len(new))]
    low = sum(side.start * stride for side, stride in zip(part, strides, strict=True))
    high = sum((side.stop - 1) * stride for side, stride in zip(part, strides, strict=True))
    cover = _cover(low, high, old)
    begin = sum(side.start * prod(old[number + 1 :]) for number, side in enumerate(cover))
    if high - low + 1 == prod(side.stop - side.start for side in part):
        return list(cover), slice(low - begin, high + 1 - begin)
    ranges: list[Any] = [np.arange(side.start, side.stop) * stride for side, stride in zip(part, strides, strict=True)]
    grid: Any = sum(np.ix_(*ranges))
    return list(cover), grid.reshape(-1) - begin


def _cover(low: int, high: int, sizes: Sequence[int]) -> list[slice]:
    """Return the smallest box of an array of these sizes whose elements follow each other in memory and that contains
    the flat places `low` to `high`, both included."""
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


def largest_magnitude(values: Array) -> float:
    """Return the largest magnitude of the elements, NaN if one is not a number, 0 for an array without elements."""
    if not values.size:
        return 0.0
    with np.errstate(all="ignore"):
        if values.dtype.kind != "f":
            return max(float(values.max()), -float(values.min()))
        return float(np.maximum(values.max(), -values.min()))
