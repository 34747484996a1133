"""Whole tiles moved as memory: operands read through a tile-index map, results on their way out of an op, rows of a
table. A little LLVM code (`intrinsics/loads_and_stores.py`) stands in place of array loops, which numba is slow to
compile.

A tile is named by `tile_at`: in a kernel its address, in Python a view of 1024 floats. An address does not keep an
array alive: take it of an argument of the kernel, or of its working tiles.

An operand is a tuple `(source, index, pad_value, arrange)`: `source` float32[w or 1, tiles, 1024] (1: the same entry
for every w), `index` int32[n] with the source tile of each of the n post-TM tiles, or -1 for a tile full of `pad_value`
(OPS 7), and `arrange`, what is done inside the tile. Fetching and gathering only move 32-bit words, they never compute
with them: raw words must keep their bits, those of signalling NaNs too.
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
    """Return tile number `tile` of entry `entry` of float32[w, n, 1024]; in a kernel its address."""
    return tiles[entry, tile]


def starts_cache_line(tile: Any) -> bool:
    """Return whether a tile begins at a cache line."""
    return tile.ctypes.data % CACHE_LINE == 0


def is_same(tile: Any, other: Any) -> bool:
    """Return whether both are one tile in memory."""
    return tile.ctypes.data == other.ctypes.data


def is_zero(tile: Any) -> bool:
    """Return whether all elements are zeros, of either sign."""
    return not tile.any()


def is_finite(tile: Any) -> bool:
    """Return whether a tile holds neither infinity nor NaN."""
    return bool(np.isfinite(tile).all())


def working_tiles() -> Any:
    """Return WORKING_TILES tiles of working memory, as float32[1, n, 1024] for `tile_at`; each begins at a cache line.
    In a kernel they lie on the stack, and only one such array can be made in a kernel."""
    return np.empty((1, WORKING_TILES, TILE), np.float32)


def expect_tile(tile: Any, part: int, parts: int) -> None:
    """Let part number `part` of `parts` of a tile be fetched into the second level of cache: a matter of speed."""


def copy_tile(target: Any, source: Any) -> None:
    """Copy every bit of the source to the target; they may not overlap."""
    target[:] = source


def add_tile(target: Any, first: Any, second: Any) -> None:
    """Write first + second to the target; they may not overlap."""
    target[:] = first + second


def add_row(target: Any, first: Any, second: Any) -> None:
    """Write first + row 0 of second, in every row, to the target; they may not overlap."""
    target[:] = (first.reshape(EDGE, EDGE) + second[:EDGE]).reshape(TILE)


def relu_tile(tile: Any, relu: int, threshold: Any) -> None:
    """Apply relu in place (OPS 5, 6.13): NO_RELU, RELU_FROM or RELU_WITHIN; NaN becomes 0, and -0 is not below 0."""
    if relu == RELU_FROM:
        tile[:] = np.where(tile >= threshold, tile, np.float32(0))
    elif relu == RELU_WITHIN:
        tile[:] = np.where(tile >= threshold, threshold, np.where(tile >= 0, tile, np.float32(0)))


def fill_tile(target: Any, value: Any) -> None:
    """Write the value (np.float32) to every element of the target."""
    target[:] = value


def transpose_tile(target: Any, source: Any) -> None:
    """Write target[j][i] = source[i][j], every bit; they may not overlap."""
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
    """Return the number of the entry of [w or 1, ...] that serves entry `entry`: where there is one, that one."""
    if array.shape[0] > 1:
        return entry
    return 0


@helper
def arrange_tile(out: Tile, data: Tile, arrange: int) -> None:
    """Write `data` into `out` (both 1024) in the given arrangement."""
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
    """Return one tile of an operand: a view of its source, or `scratch` (1024) filled where no tile of it will do."""
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
    """Multiply elements outside `height` x `width` by 0: NaN stays NaN, -x becomes -0 (OPS 6)."""
    for i in range(32):
        first = 0
        if i < height:
            first = width
        for j in range(first, 32):
            tile[32 * i + j] *= np.float32(0)


@kernel
def blank_tiles(start: int, stop: int, tiles: Tensor, height: int, width: int) -> None:
    """Blank float32[w, n, 1024] in place outside `height` x `width`. Items: the w*n tiles."""
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
    """Write out[w, n, 1024]: tile i is tile index[i] of the source, its elements moved as `arrange` says, or filled
    with `pad_value` where index[i] is negative; elements outside `dims`, rows and columns, are multiplied by 0. The
    items that threads share are the w*n tiles."""
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
    """Compute tiles = previous + tiles (OPS 6.12). Both float32[w, n, 1024]. Items: the w*n tiles."""
    n = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // n
        new = tiles[entry, index - entry * n]
        old = previous[entry, index - entry * n]
        for k in range(TILE):
            new[k] = old[k] + new[k]


@kernel
def relu_tiles(start: int, stop: int, tiles: Tensor, relu: int, threshold: np.float32) -> None:
    """Apply `tile_memory.relu_tile` to float32[w, n, 1024] in place. Items: the w*n tiles."""
    n = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // n
        relu_tile(tile_at(tiles, entry, index - entry * n), relu, threshold)


@kernel
def place_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, chosen: NDArray[np.int32], places: NDArray[np.int32]
) -> None:
    """Copy tile chosen[n] of the operand's post-TM tiles to out[w, places[n]]. Items: n, over all w."""
    count = places.shape[0]
    scratch = np.empty(TILE, np.float32)
    for index in claim_items(start, stop):
        entry = index // count
        n = index - entry * count
        arrange_tile(out[entry, places[n]], fetch_tile(operand, entry, int(chosen[n]), scratch), 0)


@kernel
def embedding_tiles(start: int, stop: int, out: Tensor, table: Tensor, picked: NDArray[np.int64], cols: int) -> None:
    """Copy row picked[w, n] of the table to element row n of every t slice of `out`, zeros where that is < 0.

    out: float32[w, t * rows * cols, 1024]; picked: [w or 1, rows * 32]; table: float32[w or 1, tiles, 1024] with its
    elements in host row-major order, `cols` tiles wide. Items: the tiles of `out`, over all w.
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
