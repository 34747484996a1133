"""Whole tiles moved as memory: operands read through a tile-index map, results on their way out of an op, rows of a
table. A little LLVM code (`intrinsics/loads_and_stores.py`) stands in place of array loops, which numba is slow to
compile.

A tile is named by `tile_at`: in a kernel its address, in Python a view of 1024 floats. An address does not keep an
array alive: take it of an argument of the kernel, or of its working tiles.

An operand is a tuple `(source, index, pad_value, arrange)`: `source` float32[w or 1, tiles, 1024] (1: the same entry
for every w), `index` int32[n] with the source tile of each of the n post-TM tiles, or -1 for a tile full of `pad_value`
(OPS 7), and `arrange`, how elements move inside the tile (AS_IS to FIRST_ELEMENT). Fetching and gathering only move
32-bit words, they never compute with them: raw words must keep their bits, those of signalling NaNs too.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.spec.blocking import TILE_EDGE, TILE_ELEMENTS

EDGE: Final = TILE_EDGE
TILE: Final = TILE_ELEMENTS
CACHE_LINE: Final = 64  # bytes
WORKING_TILES: Final = 8  # for each thread: no fewer than the dense product's (`products/matmul.py`)
NO_RELU: Final = 0  # x
RELU_FROM: Final = 1  # x where x >= threshold, else +0
RELU_WITHIN: Final = 2  # threshold where x >= threshold, else x where x >= 0, else +0


def tile_at(tiles: Any, entry: int, tile: int) -> Any:
    """Return tile number `tile` of entry `entry` of float32[w, n, 1024]: in Python a view, in a kernel its address."""
    return tiles[entry, tile]


def starts_cache_line(tile: Any) -> bool:
    """Return whether a tile, from `tile_at`, begins at a cache line."""
    return tile.ctypes.data % CACHE_LINE == 0


def is_same(tile: Any, other: Any) -> bool:
    """Return whether two tiles, from `tile_at`, begin at the same address."""
    return tile.ctypes.data == other.ctypes.data


def is_zero(tile: Any) -> bool:
    """Return whether all elements of a tile are zeros, of either sign."""
    return not tile.any()


def is_finite(tile: Any) -> bool:
    """Return whether a tile holds neither infinity nor NaN."""
    return bool(np.isfinite(tile).all())


def working_tiles() -> Any:
    """Return WORKING_TILES tiles of memory to work in, as float32[1, n, 1024] for `tile_at`. In a kernel each begins at
    a cache line; they lie on its stack, and only one such array can be made in a kernel."""
    return np.empty((1, WORKING_TILES, TILE), np.float32)


def expect_tile(tile: Any, part: int, parts: int) -> None:
    """Begin to fetch part number `part` of `parts` of a tile into the second level of cache: a matter of speed, nothing
    in Python."""


def copy_tile(target: Any, source: Any) -> None:
    """Copy every bit of the source to the target, tiles that may not overlap."""
    target[:] = source


def add_tile(target: Any, first: Any, second: Any) -> None:
    """Write first + second, element by element, to the target; it may not overlap them."""
    target[:] = first + second


def add_row(target: Any, first: Any, second: Any) -> None:
    """Write first + row 0 of second, in every row, to the target; it may not overlap them."""
    target[:] = (first.reshape(EDGE, EDGE) + second[:EDGE]).reshape(TILE)


def relu_tile(tile: Any, relu: int, threshold: Any) -> None:
    """Apply relu to a tile in place (OPS 5, 6.13): NO_RELU changes nothing, RELU_FROM makes +0 of what is below the
    threshold, RELU_WITHIN clamps to 0..threshold; with the last two, NaN becomes +0. -0 is not below 0."""
    if relu == RELU_FROM:
        tile[:] = np.where(tile >= threshold, tile, np.float32(0))
    elif relu == RELU_WITHIN:
        tile[:] = np.where(tile >= threshold, threshold, np.where(tile >= 0, tile, np.float32(0)))


def fill_tile(target: Any, value: Any) -> None:
    """Write the value (np.float32) to every element of the target, a tile."""
    target[:] = value


def transpose_tile(target: Any, source: Any) -> None:
    """Write target[j][i] = source[i][j], every bit, for tiles that may not overlap."""
    target[:] = source.reshape(EDGE, EDGE).T.reshape(TILE)


Tile: TypeAlias = NDArray[np.float32]
Tensor: TypeAlias = NDArray[np.float32]
Operand: TypeAlias = tuple[Tensor, NDArray[np.int32], np.float32, int]

AS_IS: Final = 0  # the tile in its order
TRANSPOSE: Final = 1  # in-tile transpose flag (OPS 7.4); equal to True
FIRST_ROW: Final = 2  # tile_broadcast r: row 0 in every row (OPS 7)
FIRST_COLUMN: Final = 3  # tile_broadcast c
FIRST_ELEMENT: Final = 4  # tile_broadcast rc


@helper
def entry_in(array: Any, entry: int) -> int:
    """Return the entry of an array [w or 1, ...] that serves entry `entry`: 0 where it has but one."""
    if array.shape[0] > 1:
        return entry
    return 0


@helper
def arrange_tile(out: Tile, data: Tile, arrange: int) -> None:
    """Write a tile of 1024 to `out` with its elements moved as `arrange` says (AS_IS, TRANSPOSE, FIRST_ROW,
    FIRST_COLUMN or FIRST_ELEMENT)."""
    if arrange == TRANSPOSE:
        for i in range(32):
            for j in range(32):
                out[32 * i + j] = data[32 * j + i]
    elif arrange == FIRST_ROW:
        for i in range(32):
            for j in range(32):
                out[32 * i + j] = data[j]
    elif arrange == FIRST_COLUMN:
        for i in range(32):
            for j in range(32):
                out[32 * i + j] = data[32 * i]
    elif arrange == FIRST_ELEMENT:
        for k in range(TILE):
            out[k] = data[0]
    else:
        for k in range(TILE):
            out[k] = data[k]


@helper
def fetch_tile(operand: Operand, entry: int, tile: int, scratch: Tile) -> Tile:
    """Return one post-TM tile of an operand: a view of its source where the elements stay as they are, else `scratch`,
    float32[1024], which is filled."""
    source, index, pad_value, arrange = operand
    at = index[tile]
    if at < 0:
        for k in range(TILE):
            scratch[k] = pad_value
        return scratch
    data = source[entry_in(source, entry), at]
    if arrange == AS_IS:
        return data
    arrange_tile(scratch, data, arrange)
    return scratch


@helper
def blank_tile(tile: Tile, height: int, width: int) -> None:
    """Multiply the elements outside the first `height` rows and `width` columns by 0, in place: NaN and infinities
    become NaN, -x becomes -0 (OPS 6)."""
    for i in range(32):
        first = 0
        if i < height:
            first = width
        for j in range(first, 32):
            tile[32 * i + j] *= np.float32(0)


@kernel
def blank_tiles(start: int, stop: int, tiles: Tensor, height: int, width: int) -> None:
    """Multiply the elements outside the first `height` rows and `width` columns of tiles start to stop - 1 by 0, in
    place, as `blank_tile` does: float32[w, n, 1024], counted over all w."""
    n = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // n
        blank_tile(tiles[entry, index - entry * n], height, width)


@kernel
def gather_tiles(
    start: int,
    stop: int,
    out: Tensor,
    source: Tensor,
    index: NDArray[np.int32],
    pad_value: np.float32,
    arrange: int,
    dims: tuple[int, int],
) -> None:
    """Write tiles start to stop - 1 of out, float32[w, n, 1024] counted over all w: tile i is tile index[i] of the
    source, its elements moved as `arrange` says, or full of `pad_value` where index[i] is negative. Elements outside
    `dims` (rows, columns of a tile) are multiplied by 0."""
    height, width = dims
    tiles = out.shape[1]
    for result_index in claim_items(start, stop):
        entry = result_index // tiles
        tile = result_index - entry * tiles
        if tile + 1 < tiles and arrange != TRANSPOSE:
            expect_tile(tile_at(out, entry, tile + 1), 0, 1)
        to = out[entry, tile]
        at = int(index[tile])
        if at < 0:
            for k in range(TILE):
                to[k] = pad_value
        elif arrange == TRANSPOSE:
            transpose_tile(tile_at(out, entry, tile), tile_at(source, entry_in(source, entry), at))
        else:
            arrange_tile(to, source[entry_in(source, entry), at], arrange)
        if height < 32 or width < 32:
            blank_tile(to, height, width)


@kernel
def accumulate_tiles(start: int, stop: int, tiles: Tensor, previous: Tensor) -> None:
    """Compute tiles = previous + tiles for tiles start to stop - 1 of float32[w, n, 1024], counted over all w (OPS
    6.12)."""
    n = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // n
        new = tiles[entry, index - entry * n]
        old = previous[entry, index - entry * n]
        for k in range(TILE):
            new[k] = old[k] + new[k]


@kernel
def relu_tiles(start: int, stop: int, tiles: Tensor, relu: int, threshold: np.float32) -> None:
    """Apply `relu_tile` in place to tiles start to stop - 1 of float32[w, n, 1024], counted over all w."""
    n = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // n
        relu_tile(tile_at(tiles, entry, index - entry * n), relu, threshold)


@kernel
def place_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, chosen: NDArray[np.int32], places: NDArray[np.int32]
) -> None:
    """Copy tile chosen[n] of the operand's post-TM tiles to out[w, places[n]], for items start to stop - 1: all n of
    each w."""
    count = places.shape[0]
    scratch = np.empty(TILE, np.float32)
    for index in claim_items(start, stop):
        entry = index // count
        n = index - entry * count
        arrange_tile(out[entry, places[n]], fetch_tile(operand, entry, int(chosen[n]), scratch), 0)


@kernel
def embedding_tiles(start: int, stop: int, out: Tensor, table: Tensor, picked: NDArray[np.int64], cols: int) -> None:
    """Copy row picked[w, n] of the table to element row n of every t slice of `out`, zeros where it is negative; for
    the tiles start to stop - 1 of `out`, counted over all w.

    out: float32[w, t * rows * cols, 1024]; picked: int64[w or 1, rows * 32]; table: float32[w or 1, tiles, 1024], its
    elements in row-major order of the whole table, `cols` tiles wide, not tile by tile.
    """
    tiles = out.shape[1]
    rows = picked.shape[1] // 32
    for index in claim_items(start, stop):
        entry = index // tiles
        tile = index - entry * tiles
        column = tile % cols
        first = tile // cols % rows * 32
        to = out[entry, tile]
        numbers = picked[entry_in(picked, entry)]
        source = table[entry_in(table, entry)]
        for i in range(32):
            row = numbers[first + i]
            at = (row * cols + column) * 32  # 32 neighbours never cross a tile of 1024
            for j in range(32):
                to[32 * i + j] = source[at // TILE, at % TILE + j] if row >= 0 else np.float32(0)
