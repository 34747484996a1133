"""Row-major tensors as tiles and back (LAYOUT 2), and one queue entry as the bytes of its buffers and back (LAYOUT 3,
3.1, 3.3, 3.4)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.codecs import Rounding
from buda_emu.arithmetic.formats.packing import pack_datums, pack_tiles, unpack_datums, unpack_tiles
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.formats import FORMATS, is_raw, tile_bytes
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.records import dataclass

F32 = NDArray[np.float32]
TILE_SIDE: Final = 32  # rows and columns of a full tile (LAYOUT 2)


def tilize(array: F32, tile_dim: tuple[int, int] = FULL_TILE, megarow: bool = False) -> F32:
    """Return float32[w, t, rows, cols] as a new float32[w, t, R, C, 32, 32]; rows = R * tile height, cols = C * tile
    width, smaller tiles are filled up with zeros. `megarow`: tiles hold consecutive runs of the row-major data. Raises
    HostError for another type or shape."""
    if array.ndim != 4 or array.dtype != np.float32:
        raise HostError(f"expected a float32 tensor of 4 dimensions, got {array.dtype} of {array.ndim}")
    w, t, rows, cols = array.shape
    height, width = tile_dim
    if rows % height or cols % width:
        raise HostError(f"{rows}x{cols} elements do not divide into tiles of {height}x{width}")
    down = rows // height
    across = cols // width
    if megarow:
        return _pad_runs_to_tiles(array.reshape(w, t, down, across, height * width))
    part = array.reshape(w, t, down, height, across, width).swapaxes(3, 4)
    if tile_dim == FULL_TILE:
        return part.copy()
    tiles = np.zeros((w, t, down, across, TILE_SIDE, TILE_SIDE), np.float32)
    tiles[..., :height, :width] = part
    return tiles


def untilize(tiles: F32, tile_dim: tuple[int, int] = FULL_TILE, megarow: bool = False) -> F32:
    """Return float32[w, t, R, C, 32, 32] as a new float32[w, t, R * height, C * width]: the inverse of `tilize`,
    without what a tile smaller than 32x32 was filled up with."""
    w, t, down, across = tiles.shape[:4]
    height, width = tile_dim
    if megarow:
        runs = tiles.reshape(w, t, down, across, TILE_SIDE * TILE_SIDE)[..., : height * width]
        return runs.copy().reshape(w, t, down * height, across * width)
    part = tiles[..., :height, :width].swapaxes(3, 4)
    return part.copy().reshape(w, t, down * height, across * width)


def _pad_runs_to_tiles(runs: F32) -> F32:
    """Return runs float32[w, t, R, C, n] as tiles float32[w, t, R, C, 32, 32], each with a run in its first n datums
    and zeros after it."""
    tiles = np.zeros((*runs.shape[:4], TILE_SIDE * TILE_SIDE), np.float32)
    tiles[..., : runs.shape[4]] = runs
    return tiles.reshape(*runs.shape[:4], TILE_SIDE, TILE_SIDE)


Bytes = NDArray[np.uint8]
Form = Literal["tilized", "flat", "untilized"]


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """The layout of an entry of a queue or ram in memory.

    `tilized`: every grid cell has a buffer of tiles with headers. `flat`: every grid cell has a buffer of row-major
    elements. `untilized` (written by an op with `untilize_output`): one buffer with the whole tensor row-major, on a
    grid of 1x1. `alignment`, of tiles, is 32 bytes, 64 on blackhole. Raises UnsupportedError for a format without
    elements of whole bytes (Bfp*, Lf8, Fp8_e4m3) that is not tilized, or for an untilized entry on several buffers.
    """

    format: str
    blocking: Blocking
    form: Form = "tilized"
    alignment: int = 32

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a combination of form, format and blocking that does not exist."""
        if self.form == "tilized":
            return
        if FORMATS[self.format].flat_bytes is None:
            raise UnsupportedError(f"{self.format} has no {self.form} form")
        if self.form == "untilized" and self.blocking.cells != 1:
            raise UnsupportedError(f"an untilized entry lies in one buffer, not in a grid of {self.blocking.grid_size}")

    @property
    def entry_bytes(self) -> int:
        """The bytes that one entry takes in one buffer; headers and alignment count for the tilized form only (LAYOUT
        3)."""
        height, width = self.blocking.tile_dim
        size = tile_bytes(self.format, height, width, self.alignment, header=self.form == "tilized")
        return self.blocking.tiles_per_core * size

    @property
    def megarow(self) -> bool:
        """True where a tile, or what counts as one, is a run of the row-major data instead of a square part: for raw
        formats and the flat form (LAYOUT 2)."""
        return self.form == "flat" or is_raw(self.format)


def tile_order(blocking: Blocking, raw: bool = False) -> NDArray[np.int64]:
    """Return which tile stands at each place of each buffer of a queue entry: int64[cells, tiles_per_core] of flat
    indices into (t, R, C).

    Buffers are in row-major order of the grid. `raw`, for raw formats: `ublock_order` is ignored (LAYOUT 2 Megarow,
    3.1).
    """
    (grid_r, grid_c) = blocking.grid_size
    (rows, cols) = blocking.mblock
    (tile_r, tile_c) = blocking.ublock
    count = blocking.cells * blocking.tiles_per_core
    tiles = np.arange(count).reshape(blocking.t, grid_r, rows, tile_r, grid_c, cols, tile_c)
    z, gr, mr, ur, gc, mc, uc = range(7)
    ublocks = (mr, mc)
    if blocking.ublock_order == "c" and not raw:
        ublocks = (mc, mr)
    return tiles.transpose(gr, gc, z, *ublocks, ur, uc).reshape(blocking.cells, blocking.tiles_per_core)


def pack_entry(tiles: F32, layout: EntryLayout, rounding: Rounding = "nearest") -> list[Bytes]:
    """Return float32[t, R, C, 32, 32] as the bytes of a queue entry, uint8[entry_bytes] for each buffer, buffers
    row-major over the grid. `rounding` is for block formats."""
    blocking = layout.blocking
    if layout.form == "tilized":
        flat = tiles.reshape(-1, *tiles.shape[-2:])
        order = tile_order(blocking, is_raw(layout.format))
        return [
            pack_tiles(layout.format, flat[places], blocking.tile_dim, layout.alignment, True, rounding).reshape(-1)
            for places in order
        ]
    rows = untilize(tiles[np.newaxis], blocking.tile_dim, layout.megarow)[0]
    return [pack_datums(layout.format, part) for part in _grid_parts(rows, blocking.grid_size)]


def pack_strips(read: Callable[[int, slice, slice], F32], layout: EntryLayout, limit: int) -> Iterator[Bytes]:
    """Yield the bytes that `pack_entry` gives for tilized entries, buffers row-major over the grid, in strips of about
    `limit` elements, at least one row (column, by `ublock_order`) of ublocks: for an entry that is too large to be in
    memory. read(t, rows, columns) returns float32[rows, columns] of those ranges of elements. Not for megarow tiles."""
    blocking = layout.blocking
    (grid_r, grid_c) = blocking.grid_size
    (height, width) = blocking.tile_dim
    down = blocking.mblock[0] * blocking.ublock[0]
    across = blocking.mblock[1] * blocking.ublock[1]
    by_column = blocking.ublock_order == "c"
    axis = int(by_column)
    count = blocking.mblock[axis]
    step = blocking.ublock[axis]
    line_elements = down * across * height * width // count  # elements of a row (column) of ublocks
    for row, column, t in product(range(grid_r), range(grid_c), range(blocking.t)):
        for first, last in _strips(count, max(1, limit // line_elements)):
            rows = (0, down)
            columns = (0, across)
            if by_column:
                columns = first * step, last * step
            else:
                rows = first * step, last * step
            part = read(
                t,
                slice((row * down + rows[0]) * height, (row * down + rows[1]) * height),
                slice((column * across + columns[0]) * width, (column * across + columns[1]) * width),
            )
            tiles = tilize(part[np.newaxis, np.newaxis], blocking.tile_dim)[0, 0]
            tile_r, tile_c = blocking.ublock
            ublocks = tiles.reshape(-1, tile_r, tiles.shape[1] // tile_c, tile_c, *tiles.shape[2:])
            order = (0, 2, 1, 3, 4, 5)
            if by_column:
                order = (2, 0, 1, 3, 4, 5)
            flat = ublocks.transpose(order).reshape(-1, *tiles.shape[2:])
            yield pack_tiles(layout.format, flat, blocking.tile_dim, layout.alignment, True)


def _strips(count: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the strips of `step` items into which 0 .. count - 1 is cut, as (first, first of the next); the last one
    may be shorter."""
    return ((first, min(first + step, count)) for first in range(0, count, step))


def unpack_entry(buffers: Sequence[Bytes], layout: EntryLayout) -> F32:
    """Return float32[t, R, C, 32, 32] of the buffers of an entry, the inverse of `pack_entry`. Raises HostError for a
    wrong number of buffers, size, or tile header."""
    blocking = layout.blocking
    if len(buffers) != blocking.cells:
        raise HostError(f"an entry on a grid of {blocking.grid_size} has {blocking.cells} buffers, got {len(buffers)}")
    for buffer in buffers:
        if buffer.shape != (layout.entry_bytes,):
            raise HostError(f"an entry has {layout.entry_bytes} bytes in each buffer, got {buffer.shape}")
    if layout.form == "tilized":
        tiles = np.empty((blocking.cells * blocking.tiles_per_core, 32, 32), np.float32)
        for places, buffer in zip(tile_order(blocking, is_raw(layout.format)), buffers, strict=True):
            image = buffer.reshape(blocking.tiles_per_core, -1)
            tiles[places] = unpack_tiles(layout.format, image, blocking.tile_dim, layout.alignment)
        return tiles.reshape(*blocking.shape, 32, 32)
    rows = np.empty(blocking.element_shape, np.float32)
    for part, buffer in zip(_grid_parts(rows, blocking.grid_size), buffers, strict=True):
        part[...] = unpack_datums(layout.format, buffer).reshape(part.shape)
    return tilize(rows[np.newaxis], blocking.tile_dim, layout.megarow)[0]


def _grid_parts(rows: F32, grid: tuple[int, int]) -> list[F32]:
    """Return views of the elements [t, rows, cols] that each grid cell has, cells row by row."""
    t, height, width = rows.shape
    cells = rows.reshape(t, grid[0], height // grid[0], grid[1], width // grid[1])
    return [cells[:, r, :, c] for r, c in product(range(grid[0]), range(grid[1]))]
