"""Layouts: the places of a value's elements in its tiles.

A tensor of the device is [t, rows, columns], the last two in whole tiles of 32. A layout states for each dimension of
the value which of the three axes it runs along and with what stride; a dimension may be cut into several pieces, on
several axes. So a reshape or a transposition of the model moves nothing: it only changes the layout. Data moves when an
op needs it elsewhere (`relayout`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.image.element_places import strided_places
from buda_emu.spec.blocking import TILE_EDGE
from buda_emu.spec.formats import BLOCK_DATUMS

Index = NDArray[np.int64]
Extent = tuple[int, int, int]
TILE = TILE_EDGE


SHARED = 10
"""Number of tiles along one axis up to which any grid can take them whole."""


def tiles_along(size: int) -> int:
    """Return the number of tiles that `size` elements of one axis lie in."""
    return -(-size // TILE)


@cache
def padded_size(size: int) -> int:
    """Return the size padded to whole tiles, and to a number of tiles that cores can share (FRONTEND 4.2: a grid
    divides the tiles): 1500 rows are 47 tiles, which no grid divides, and become 48. The number is a multiple of 8, or
    of more if there are very many, as long as that adds at most a thirty-second; otherwise a multiple of 5, 6 or 7 if
    an eighth more is enough."""
    tiles = tiles_along(max(size, 1))
    if tiles > SHARED:
        steps = [step for step in (64, 32, 16, 8) if step == 8 or step <= tiles // TILE]
        even = (-(-tiles // step) * step for step in steps)
        odd = (count for count in range(tiles, tiles + tiles // 8 + 1) if any(count % n == 0 for n in (5, 6, 7, 8)))
        tiles = next((count for count in even if count <= tiles + tiles // TILE), next(odd, tiles))
    return tiles * TILE


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a dimension: `size` elements along axis "z", "r" or "c", `stride` apart. Axis "-" stands for one
    element that is seen `size` times."""

    size: int
    axis: str
    stride: int

    def split(self, inner: int) -> tuple["Piece", "Piece"]:
        """Return the outer and the inner part of the piece, the inner one of size `inner`, which must divide it."""
        return Piece(self.size // inner, self.axis, self.stride * inner), Piece(inner, self.axis, self.stride)


Dim = tuple[Piece, ...]
"""The pieces of a dimension, outermost first; () is a dimension of size 1."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a value's elements: `dims` of the value in pieces, and the extent (t, rows, columns) of its tensor
    in elements."""

    dims: tuple[Dim, ...]
    extent: Extent

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return tuple(prod(piece.size for piece in dim) for dim in self.dims)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces in the order of the dimensions."""
        return tuple(chain.from_iterable(self.dims))

    def on(self, axis: str) -> tuple[Piece, ...]:
        """Return the pieces that lie along one axis ("z", "r" or "c"), largest stride first."""
        return tuple(sorted((piece for piece in self.pieces if piece.axis == axis), key=lambda piece: -piece.stride))

    @property
    def rows_full(self) -> bool:
        """Return whether no row of a tile is padding."""
        return prod(piece.size for piece in self.on("r")) == self.extent[1]

    @property
    def columns_full(self) -> bool:
        """Return whether no column of a tile is padding."""
        return prod(piece.size for piece in self.on("c")) == self.extent[2]

    def cuts_groups(self, axis: str) -> bool:
        """Return whether some sixteen positions along `axis` ("r" or "c"), counted from the tensor's edge, hold both
        elements and padding. Sixteen numbers of a row share an exponent in a block format (FORMATS 4); along "r" this
        tells it of the transposed tensor."""
        if prod(piece.size for piece in self.on(axis)) == self.extent["zrc".index(axis)]:
            return False
        return bool((np.bincount(self.positions(axis) // BLOCK_DATUMS) % BLOCK_DATUMS).any())

    def positions(self, axis: str) -> Index:
        """Return the numbers of the rows ("r"), columns ("c") or slices ("z") of the tensor that hold elements."""
        return piece_places(self.on(axis))

    def place(self, axes: str) -> Index:
        """Return the position of every element in the axes `axes` of the tensor, flattened with z outermost, as an
        array with one dimension for each piece: "zrc" gives its place in the whole tensor, "c" its column."""
        strides = {"c": 1, "r": self.extent[2] if "c" in axes else 1, "z": 1, "-": 0}
        if "z" in axes:
            strides["z"] = (self.extent[1] if "r" in axes else 1) * (self.extent[2] if "c" in axes else 1)
        total: Index = np.zeros(tuple(piece.size for piece in self.pieces), np.int64)
        for number, piece in enumerate(self.pieces):
            if piece.axis in axes:
                shape = [1] * total.ndim
                shape[number] = piece.size
                total = total + (np.arange(piece.size) * piece.stride * strides[piece.axis]).reshape(shape)
        return total


def piece_places(pieces: Iterable[Piece]) -> Index:
    """Return the positions along an axis of the elements of pieces on it, those of the first piece outermost."""
    return strided_places((piece.size, piece.stride) for piece in pieces)


def main_axis(dim: Dim) -> str:
    """Return the axis along which a dimension has most of its elements; if several have as many, that of the innermost
    piece among them. Raises ValueError for a dimension without pieces."""
    sizes: dict[str, int] = {}
    for piece in reversed(dim):
        sizes[piece.axis] = sizes.get(piece.axis, 1) * piece.size
    return max(sizes, key=lambda axis: sizes[axis])


def standard(shape: Sequence[int], rows: int = 1, columns: int = 1) -> Layout:
    """Return the layout of a shape with the last `columns` dimensions along c, the `rows` dimensions before them along
    r and the others along z, without gaps."""
    rank = len(shape)
    axes = ["c" if place >= rank - columns else "r" if place >= rank - columns - rows else "z" for place in range(rank)]
    return layout_on_axes(shape, axes)


def axes_of(pieces: Iterable[Piece]) -> set[str]:
    """Return the axes on which the pieces lie."""
    return {piece.axis for piece in pieces}


def layout_on_axes(shape: Sequence[int], axes: Sequence[str]) -> Layout:
    """Return the layout of a shape with each dimension whole along the axis that `axes` has for it ("z", "r" or "c"),
    in order, without gaps."""
    order = {axis: [place for place, dim_axis in enumerate(axes) if dim_axis == axis] for axis in "zrc"}
    return dense_layout(shape, order["z"], order["r"], order["c"])


def dense_layout(shape: Sequence[int], z: Sequence[int], r: Sequence[int], c: Sequence[int]) -> Layout:
    """Return the layout of a value of this shape without gaps. `z`, `r` and `c` are the numbers of the dimensions along
    each axis, outermost first."""
    dims: list[Dim] = [() for _ in shape]
    extent: list[int] = []
    for axis, members in (("z", z), ("r", r), ("c", c)):
        stride = 1
        for place in reversed(members):
            if shape[place] > 1:
                dims[place] = (Piece(shape[place], axis, stride),)
            stride *= shape[place]
        extent.append(stride if axis == "z" else padded_size(stride))
    return Layout(tuple(dims), (extent[0], extent[1], extent[2]))


def reshape_layout(layout: Layout, shape: Sequence[int]) -> Layout | None:
    """Return the layout of the same elements in another shape; None if pieces would have to be cut at places that do
    not divide them."""
    cuts: list[int] = []
    for size in reversed(shape):
        cuts.append(size * (cuts[-1] if cuts else 1))
    inner = list(reversed(layout.pieces))
    dims = list[Dim]()
    elements = 1
    for size, end in zip(reversed(shape), cuts, strict=True):
        new_pieces: list[Piece] = []
        while elements < end:
            piece = inner.pop(0)
            room = end // elements
            if piece.size <= room:
                if room % piece.size:
                    return None
            else:
                if piece.size % room:
                    return None
                outer, piece = piece.split(room)
                inner.insert(0, outer)
            new_pieces.insert(0, piece)
            elements *= piece.size
        if prod(piece.size for piece in new_pieces) != size:
            return None
        dims.insert(0, merge_pieces(new_pieces))
    return Layout(tuple(dims), layout.extent)


def merge_pieces(pieces: Iterable[Piece]) -> Dim:
    """Return the pieces with neighbours that continue each other merged, and without those of size 1."""
    merged_pieces: list[Piece] = []
    for piece in pieces:
        if merged_pieces:
            last = merged_pieces[-1]
        else:
            last = None
        if last and last.axis == piece.axis and (piece.axis == "-" or last.stride == piece.size * piece.stride):
            merged_pieces[-1] = Piece(last.size * piece.size, piece.axis, piece.stride)
        elif piece.size > 1:
            merged_pieces.append(piece)
    return tuple(merged_pieces)


@dataclass(frozen=True, slots=True)
class Move:
    """One piece of a value, at its present and at its wanted place."""

    have: Piece
    want: Piece

    @property
    def size(self) -> int:
        """Number of elements in the piece."""
        return self.have.size


def moves(have: Layout, want: Layout) -> list[Move] | None:
    """Return how each piece of a value moves from the layout `have` to the layout `want`, outermost piece first; None
    if they cut a dimension at places that do not nest."""
    shared: list[Move] = []
    for have_pieces, want_pieces in zip(have.dims, want.dims, strict=True):
        a = list(have_pieces)
        b = list(want_pieces)
        part: list[Move] = []
        while a and b:
            first = a.pop()
            second = b.pop()
            size = min(first.size, second.size)
            if first.size % size or second.size % size:
                return None
            for piece, rest in ((first, a), (second, b)):
                if piece.size > size:
                    rest.append(piece.split(size)[0])
            part.append(Move(replace(first, size=size), replace(second, size=size)))
        shared += reversed(part)
    return shared
