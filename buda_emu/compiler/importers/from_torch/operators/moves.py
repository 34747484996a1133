"""Handlers of reshapes, transpositions, slices, concatenations and padding."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import aten, dims_of
from buda_emu.compiler.importers.from_torch.operators.elementwise import to_type
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.emulator.image.element_places import strided_places


@aten("view", "reshape", "_unsafe_view")
def view(b: Builder, x: Node, shape: Sequence[int]) -> Node:
    """`reshape`

    A size of -1 takes what the others leave."""
    rest = prod(size for size in shape if size != -1)
    full = tuple(prod(x.shape) // rest if size == -1 else int(size) for size in shape)
    if full == x.shape:
        return x
    return b.reshape(x, shape=full)


@aten("squeeze")
def squeeze(b: Builder, x: Node, dims: Any = None) -> Node:
    """`reshape` without dimensions of size 1

    Of `dims` only those of size 1 go; None stands for all dimensions."""
    gone = {dim for dim in ([] if dims == [] else dims_of(x, dims)) if x.shape[dim] == 1}
    return view(b, x, [size for place, size in enumerate(x.shape) if place not in gone])


@aten("unsqueeze")
def unsqueeze(b: Builder, x: Node, dim: int) -> Node:
    """`reshape` with one more dimension"""
    place = dim % (len(x.shape) + 1)
    return view(b, x, [*x.shape[:place], 1, *x.shape[place:]])


@aten("permute")
def permute(b: Builder, x: Node, perm: Any) -> Node:
    """`transpose`

    `perm`: the dimensions in their new order, negative ones counted from the end."""
    return b.transpose(x, perm=tuple(dim % len(x.shape) for dim in perm))


@aten("transpose", "t")
def transpose(b: Builder, x: Node, first: int = 0, second: int = 1) -> Node:
    """`transpose` of two dimensions"""
    perm = list(range(len(x.shape)))
    first = first % len(perm)
    second = second % len(perm)
    perm[first], perm[second] = second, first
    return b.transpose(x, perm=tuple(perm))


@aten("expand")
def expand(b: Builder, x: Node, shape: Any) -> Node:
    """`expand`"""
    padded = (*(1,) * (len(shape) - len(x.shape)), *x.shape)
    full = tuple(operand_size if size == -1 else int(size) for size, operand_size in zip(shape, padded, strict=True))
    x = view(b, x, padded)
    if full == x.shape:
        return x
    return b.expand(x, shape=full)


@aten("repeat")
def repeat(b: Builder, x: Node, times: Any) -> Node:
    """`tile`

    `times`: how often each dimension is repeated; further ones in front are new."""
    return b.tile(view(b, x, (*(1,) * (len(times) - len(x.shape)), *x.shape)), repeats=tuple(times))


@aten("slice")
def slice_(b: Builder, x: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Node:
    """`take` of a part of one dimension"""
    dim %= len(x.shape)
    index = np.arange(*slice(start, end, step).indices(x.shape[dim]))
    return b.take(x, dim=dim, index=index)


@aten("select")
def select(b: Builder, x: Node, dim: int, place: int) -> Node:
    """`take` of one element of a dimension

    Element number `place` of dimension `dim`, which is removed.
    """
    dim = dim % len(x.shape)
    place = place % x.shape[dim]
    if x.op == "concat" and x.attrs["dim"] == dim:
        parts = [b.graph[name] for name in x.inputs]
    else:
        parts = []
    if len(parts) == x.shape[dim]:  # one of those that were stacked
        return view(b, parts[place], [*x.shape[:dim], *x.shape[dim + 1 :]])
    element = b.take(x, dim=dim, index=np.asarray([place]))
    return view(b, element, [*x.shape[:dim], *x.shape[dim + 1 :]])


@aten("split_with_sizes", "split")
def split(b: Builder, x: Node, sizes: Any, dim: int = 0) -> list[Node]:
    """`slice` for each part"""
    dim %= len(x.shape)
    if isinstance(sizes, int):
        sizes = [min(sizes, x.shape[dim] - start) for start in range(0, x.shape[dim], sizes)]
    starts = np.cumsum([0, *sizes])
    return [b.slice(x, dim=dim, start=int(start), count=int(n)) for start, n in zip(starts, sizes, strict=False)]


@aten("unbind")
def unbind(b: Builder, x: Node, dim: int = 0) -> list[Node]:
    """`take` of every element of one dimension"""
    return [select(b, x, dim, place) for place in range(x.shape[dim])]


@aten("cat")
def cat(b: Builder, parts: Sequence[Node], dim: int = 0) -> Node:
    """`concat`"""
    full = [part for part in parts if 0 not in part.shape]
    if len(full) == 1:
        return full[0]
    return b.concat(*full, dim=dim % len(full[0].shape))


@aten("stack")
def stack(b: Builder, parts: Sequence[Node], dim: int = 0) -> Node:
    """`concat` along a new dimension"""
    return cat(b, [unsqueeze(b, part, dim) for part in parts], dim % (len(parts[0].shape) + 1))


@aten("flip")
def flip(b: Builder, x: Node, dims: Any) -> Node:
    """`take`, backwards

    Reverses the dimensions `dims`.
    """
    for dim in dims_of(x, dims) if dims else ():
        x = b.take(x, dim=dim, index=np.arange(x.shape[dim])[::-1])
    return x


@aten("roll")
def roll(b: Builder, x: Node, shifts: Any, dims: Any) -> Node:
    """`take`, the end first

    Moves the elements of each of `dims` by its shift; those that leave at the end come in at the front.
    """
    for shift, dim in zip(shifts, dims_of(x, dims), strict=True):
        x = b.take(x, dim=dim, index=np.roll(np.arange(x.shape[dim]), shift))
    return x


@aten("unfold")
def unfold(b: Builder, x: Node, dim: int, size: int, step: int) -> Node:
    """`take` of the windows of one dimension, which become the last dimension

    `size`: elements of a window; `step`: distance of the windows.
    """
    dim %= len(x.shape)
    starts = np.arange(0, x.shape[dim] - size + 1, step)
    windows = b.take(x, dim=dim, index=(starts[:, None] + np.arange(size)).reshape(-1))
    split = view(b, windows, [*x.shape[:dim], len(starts), size, *x.shape[dim + 1 :]])
    return b.transpose(split, perm=(*(place for place in range(len(split.shape)) if place != dim + 1), dim + 1))


@aten("as_strided")
def as_strided(
    b: Builder,
    x: Node,
    size: Sequence[int],
    strides: Sequence[int],
    start: int | None = None,
    *,
    stored: tuple[Sequence[int], int],
) -> Node:
    """`reshape` if every element stays in its place, else `take`: by their places in the memory of torch

    `size`, `strides` and `start` describe the view, `stored` the strides and the offset of x itself in memory. Raises
    NotSupportedError for a view of other elements than those of x.
    """
    index = _view_elements(x.shape, stored, size, strides, start)
    if np.array_equal(index, np.arange(prod(x.shape))):
        return view(b, x, size)
    return view(b, b.take(view(b, x, (prod(x.shape),)), dim=0, index=index), size)


@aten("as_strided_scatter")
def as_strided_scatter(
    b: Builder,
    x: Node,
    part: Node,
    size: Sequence[int],
    strides: Sequence[int],
    start: int | None = None,
    *,
    stored: tuple[Sequence[int], int],
) -> Node:
    """`take` of both, and their sum: by the places of elements in the memory of torch

    Returns x with `part` in the elements that the view names (as in `as_strided`). Raises NotSupportedError for a view
    that names an element twice.
    """
    index = _view_elements(x.shape, stored, size, strides, start)
    if np.unique(index).size < index.size:
        raise NotSupportedError("elements that are written twice")
    flat = replace_along(b, view(b, x, (prod(x.shape),)), view(b, part, (index.size,)), 0, index)
    return view(b, flat, x.shape)


def _view_elements(
    shape: Sequence[int],
    stored: tuple[Sequence[int], int],
    size: Sequence[int],
    strides: Sequence[int],
    start: int | None,
) -> NDArray[np.int64]:
    """Return the indices of the elements of a tensor that a view of its memory reads, in the view's order. `stored`:
    the tensor's own strides and offset; `size`, `strides`, `start`: those of the view. Raise NotSupportedError if the
    view reads others."""
    tensor_places = _memory_places(shape, *stored)
    view_places = _memory_places(size, strides, stored[1] if start is None else start)
    order = np.argsort(tensor_places, kind="stable")
    positions = np.searchsorted(tensor_places[order], view_places)
    if (positions == tensor_places.size).any() or (tensor_places[order][positions] != view_places).any():
        raise NotSupportedError("elements that its operand does not have")
    return order[positions]


def _memory_places(shape: Sequence[int], strides: Sequence[int], start: int) -> NDArray[np.int64]:
    """Return the positions of a tensor's elements in memory, in their order."""
    return start + strided_places(zip(shape, strides, strict=True))


@aten("constant_pad_nd")
def constant_pad(b: Builder, x: Node, pads: Any, value: float = 0.0) -> Node:
    """`pad` by a number

    `pads`: elements before and after, for the last dimension first."""
    return b.pad(x, pads=_pad_pairs(x, pads), value=float(value))


def _pad_pairs(x: Node, pads: Any) -> tuple[tuple[int, int], ...]:
    """Return the pads of each dimension, before and after, from torch's flat list, which begins with the last
    dimension."""
    pairs = [(0, 0)] * len(x.shape)
    for number in range(len(pads) // 2):
        pairs[len(x.shape) - 1 - number] = (pads[2 * number], pads[2 * number + 1])
    return tuple(pairs)


@aten("reflection_pad1d", "reflection_pad2d")
def reflection_pad(b: Builder, x: Node, pads: Any) -> Node:
    """`pad` by mirrored elements"""
    return b.pad(x, pads=_pad_pairs(x, pads), mode="reflect")


@aten("replication_pad1d", "replication_pad2d")
def replication_pad(b: Builder, x: Node, pads: Any) -> Node:
    """`pad` by the edge"""
    return b.pad(x, pads=_pad_pairs(x, pads), mode="edge")


@aten("pixel_shuffle")
def pixel_shuffle(b: Builder, x: Node, factor: int) -> Node:
    """`depth_to_space`

    `factor`: rows and columns of pixels that replace one.
    """
    return b.depth_to_space(x, block=factor, columns_first=False)


@aten("_pad_circular", intact=True)
def pad_circular(b: Builder, x: Node, pads: Any) -> Node:
    """`pad` by elements from the other end"""
    sides = [(0, 0)] * (len(x.shape) - len(pads) // 2) + [(pads[k], pads[k + 1]) for k in range(len(pads) - 2, -1, -2)]
    return b.pad(x, pads=tuple(sides), mode="wrap")


@aten("slice_scatter")
def slice_scatter(
    b: Builder, x: Node, part: Node, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Node:
    """`take` of both, and their sum

    Returns x with `part` in place of a slice of one dimension.
    """
    dim %= len(x.shape)
    return replace_along(b, x, part, dim, np.arange(*slice(start, end, step).indices(x.shape[dim])))


@aten("select_scatter")
def select_scatter(b: Builder, x: Node, part: Node, dim: int, place: int) -> Node:
    """`take` of both, and their sum

    Returns x with `part` in place of one element of a dimension.
    """
    dim %= len(x.shape)
    wide = b.reshape(part, shape=(*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    return replace_along(b, x, wide, dim, np.asarray([place % x.shape[dim]]))


def replace_along(b: Builder, x: Node, part: Node, dim: int, positions: NDArray[np.int64]) -> Node:
    """Return x with the elements `positions` of a dimension replaced by those of `part`, in the element type of x."""
    part = to_type(b, part, x.dtype)
    base_index = np.arange(x.shape[dim])
    part_index = np.full(x.shape[dim], -1)
    base_index[positions] = -1
    part_index[positions] = np.arange(positions.size)
    if np.array_equal(part_index, np.arange(positions.size)):
        return part
    moved_part = b.take(part, dim=dim, index=part_index)
    if (base_index < 0).all() or (x.op == "constant" and not x.value.any()):
        return moved_part
    return b.add(b.take(x, dim=dim, index=base_index), moved_part, dtype=x.dtype)


@aten("diagonal")
def diagonal(b: Builder, x: Node, offset: int = 0, first: int = 0, second: int = 1) -> Node:
    """`take` of the diagonal elements of two dimensions, which become the last dimension

    `offset`: the number of the diagonal; `first` and `second`: the two dimensions.
    """
    first = first % len(x.shape)
    second = second % len(x.shape)
    others = [dim for dim in range(len(x.shape)) if dim not in (first, second)]
    rows = x.shape[first]
    columns = x.shape[second]
    places = np.flatnonzero(np.eye(rows, columns, offset))
    sizes = [x.shape[dim] for dim in others]
    flat = b.reshape(b.transpose(x, perm=(*others, first, second)), shape=(*sizes, rows * columns))
    return b.take(flat, dim=len(sizes), index=places)


@aten("sym_numel")
def sym_numel(_: Builder, x: Node) -> int:
    """A number: open sizes of a program are known here

    Returns the number of elements of x.
    """
    return prod(x.shape)


@aten("sym_size")
def sym_size(_: Builder, x: Node, dim: int) -> int:
    """A number: open sizes of a program are known here

    Returns the size of one dimension of x.
    """
    return x.shape[dim]
