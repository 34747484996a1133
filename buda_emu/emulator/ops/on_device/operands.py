"""The operands of device ops: tiles in L1, or results that a fused op left in Dst."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.kernels.tiles.tile_memory import AS_IS, FIRST_COLUMN, FIRST_ELEMENT, FIRST_ROW, TRANSPOSE
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.emulator.ops.base import Parallel
from buda_emu.emulator.ops.on_device.units import Index, Units, Words, family_of
from buda_emu.spec.blocking import FULL_TILE, TILE_ELEMENTS

BLOCK: Final = 128
"""Tiles that go through all units before the next ones, so that their words stay in a core's cache in between."""


class OperandSource(Protocol):
    """An operand of an op, after its TMs."""

    @property
    def register(self) -> str:
        """The register format of the operand."""
        ...

    def words(self, units: Units, start: int, stop: int) -> U32:
        """Return register words uint32[stop - start, 1024] of post-TM tiles start..stop, counted over all entries."""
        ...

    def image(self, units: Units, start: int, stop: int) -> U32:
        """Return the Dst image uint32[stop - start, 1024] of post-TM tiles start..stop, counted over all entries
        (DEVICE_NUMERICS 2.7)."""
        ...

    def image_at(self, units: Units, positions: NDArray[np.int64]) -> U32:
        """Return the Dst image uint32[len(positions), 1024] of the post-TM tiles of these numbers, counted over all
        entries."""
        ...


def _places(index: Index, shape: tuple[int, ...], start: int, stop: int) -> tuple[slice | NDArray[np.int64], Index]:
    """Return where post-TM tiles start..stop come from in a tensor of `shape` [w or 1, tiles]: rows of all its tiles (a
    slice where they are consecutive), and the source tile in its entry by `index`, negative for a pad."""
    entry, first = divmod(start, index.size)
    if first + stop - start <= index.size:  # of one entry
        at = index[first : first + stop - start]
        rows = np.maximum(at, 0) + (entry * shape[1] if shape[0] > 1 else 0)
    else:
        rows, at = _places_at(index, shape, np.arange(start, stop))
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
        return slice(int(rows[0]), int(rows[0]) + len(rows)), at
    return rows, at


def _places_at(index: Index, shape: tuple[int, ...], positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], Index]:
    """Return rows and source tiles as `_places` does, for the post-TM tiles of these numbers."""
    entries, tile = np.divmod(positions, index.size)
    at = index[tile]
    return np.maximum(at, 0) + (entries * shape[1] if shape[0] > 1 else 0), at


def arrange_words(tiles: U32, arrange: int) -> U32:
    """Move the elements of each tile of uint32[n, 1024] as the code `arrange` of `kernels.gather` says: transpose, or
    repeat row, column or element."""
    if arrange == AS_IS:
        return tiles
    square = tiles.reshape(-1, 32, 32)
    moved = {
        TRANSPOSE: square.swapaxes(-1, -2),
        FIRST_ROW: square[:, :1, :],
        FIRST_COLUMN: square[:, :, :1],
        FIRST_ELEMENT: square[:, :1, :1],
    }[arrange]
    return np.ascontiguousarray(np.broadcast_to(moved, square.shape)).reshape(-1, TILE_ELEMENTS)


@dataclass(frozen=True, slots=True)
class Stored:
    """A `Source` that lies in L1: bits [w or 1, tiles], read through a tile map, unpacked to `register`."""

    bits: Bits
    index: Index
    pad_value: float
    arrange: int
    register: str
    mode: DstMode
    in_order: bool = False
    """True where the map leaves every tile in its place, so that it need not be evaluated for each block."""

    def words(self, units: Units, start: int, stop: int) -> U32:
        """Return register words uint32[stop - start, 1024] of post-TM tiles start..stop."""
        if self._is_contiguous(stop):
            return arrange_words(units.unpack(self.bits.rows()[start:stop], self.register), self.arrange)
        return self._words(units, *_places(self.index, self.bits.shape, start, stop))

    def _words(self, units: Units, rows: slice | NDArray[np.int64], at: Index) -> U32:
        """Return the register words of these rows of the tensor; tiles whose source `at` is negative are full of the
        pad value."""
        words = units.unpack(self.bits.rows()[rows], self.register)
        missing = at < 0
        if missing.any():
            words[missing] = self.pad(units)
        return arrange_words(words, self.arrange)

    def stored_tiles(self, start: int, stop: int) -> Bits:
        """Return post-TM tiles start..stop with unchanged bits, [stop - start]; a pad is encoded as the host would."""
        if self._is_contiguous(stop):
            return self.bits.rows()[start:stop]
        rows, at = _places(self.index, self.bits.shape, start, stop)
        bits = self.bits.rows()[rows]
        if (at >= 0).all():
            return bits
        bits = bits.copy()
        bits.assign(at < 0, Bits.encode(self.bits.df, np.full((1, TILE_ELEMENTS), self.pad_value, np.float32)))
        return bits

    def _is_contiguous(self, stop: int) -> bool:
        """Return whether post-TM tiles up to `stop` are those of `bits` in order, so that the tile map need not be
        applied."""
        return self.in_order and (len(self.bits) > 1 or stop <= self.index.size)

    def image(self, units: Units, start: int, stop: int) -> U32:
        """Return the Dst image of tiles start..stop."""
        return units.copy(self.words(units, start, stop), self.register, self.mode)

    def image_at(self, units: Units, positions: NDArray[np.int64]) -> U32:
        """Return the Dst image of the tiles of these numbers."""
        words = self._words(units, *_places_at(self.index, self.bits.shape, positions))
        return units.copy(words, self.register, self.mode)

    def pad(self, units: Units) -> np.uint32:
        """Return the register word of the pad value, which is stored in L1 in the operand's format."""
        tile = Bits.encode(self.bits.df, np.full((1, TILE_ELEMENTS), self.pad_value, np.float32))
        return units.unpack(tile, self.register)[0, 0]

    def product_words(self, units: Units, parallel: Parallel, dims: tuple[int, int]) -> Words:
        """Return the operand for a product of floats: as 16-bit halves of words where the units take these and they
        hold all bits, else unpacked to words, with zeros outside `dims`."""
        halves = None
        if dims == FULL_TILE:
            halves = units.halves(self.bits, self.register, parallel)
        if halves is None:
            return self.all_words(units, parallel, dims)
        if bool((self.index < 0).any()):
            pad = self.pad(units)
        else:
            pad = np.uint32(0)
        return Words(
            register=self.register, tiles=halves, index=self.index, pad=pad, transposed=self.arrange == TRANSPOSE
        )

    def all_words(self, units: Units, parallel: Parallel, dims: tuple[int, int] = FULL_TILE) -> Words:
        """Return the whole tensor as register words: every source tile is unpacked once, with zeros outside `dims`, the
        tile dim before the in-tile transpose."""
        tiles = units.room(*self.bits.shape)
        flat = tiles.reshape(-1, TILE_ELEMENTS)
        parallel(_unpack, len(flat), flat, units, self.bits.rows(), self.register, dims)
        index = self.index
        pad = np.uint32(0)
        if bool((index < 0).any()):
            pad = self.pad(units)
        if family_of(self.register) is None and pad:
            # The kernels of integers know pads of zeros only: this one becomes a tile of its own.
            entries, count = self.bits.shape
            tiles = np.concatenate((tiles, np.full((entries, 1, TILE_ELEMENTS), pad)), axis=1)
            index = np.where(index < 0, np.int32(count), index)
            index.flags.writeable = False
        return Words(register=self.register, tiles=tiles, index=index, pad=pad, transposed=self.arrange == TRANSPOSE)


def frozen(index: Index) -> Index:
    """Return an index as a flat, contiguous, read-only int32 array, like those of tile maps, so that one compiled
    kernel serves both."""
    index = np.ascontiguousarray(index, np.int32).reshape(-1)
    index.flags.writeable = False
    return index


def _unpack(start: int, stop: int, out: U32, units: Units, rows: Bits, register: str, dims: tuple[int, int]) -> None:
    """Unpack tiles start..stop of `rows` into `out`, with zeros outside `dims`."""
    words = units.unpack(rows[start:stop], register, out[start:stop])
    if dims != FULL_TILE:
        words[...] = blank_words(words, dims)


def blank_words(tiles: U32, dims: tuple[int, int]) -> U32:
    """Return uint32[n, 1024] with zeros outside `dims`: rows and columns that a smaller tile does not have."""
    if dims == FULL_TILE:
        return tiles
    inside = np.zeros((32, 32), np.bool_)
    inside[: dims[0], : dims[1]] = True
    return np.where(inside.reshape(-1), tiles, np.uint32(0))


@dataclass(frozen=True, slots=True)
class InDest:
    """A `Source` of a fused op that lies in Dst: images uint32[w, tiles, 1024] of `mode`, used as `register`."""

    images: U32
    index: Index
    register: str
    mode: DstMode

    def words(self, units: Units, start: int, stop: int) -> U32:
        """Return the image of tiles start..stop, moved from Dst to the Src register."""
        return units.to_src(self.image(units, start, stop), self.mode, self.register)

    def image(self, units: Units, start: int, stop: int) -> U32:  # noqa: ARG002
        """Return the image of post-TM tiles start..stop, which is in Dst already."""
        rows, _ = _places(self.index, self.images.shape, start, stop)
        return np.ascontiguousarray(self.images.reshape(-1, TILE_ELEMENTS)[rows])

    def image_at(self, units: Units, positions: NDArray[np.int64]) -> U32:  # noqa: ARG002
        """Return the image of the tiles of these numbers, which is in Dst already."""
        rows, _ = _places_at(self.index, self.images.shape, positions)
        return self.images.reshape(-1, TILE_ELEMENTS)[rows]
