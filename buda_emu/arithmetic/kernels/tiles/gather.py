"""Reading tiles through a tile-index map, and moving them: every operand of every kernel is fetched here.

An operand is a tuple `(source, index, pad_value, arrange)`: `source` float32[w or 1, tiles, 1024] (1: the same entry
for every w), `index` int32[n] with the source tile of each of the n post-TM tiles, or -1 for a tile full of `pad_value`
(OPS 7), and `arrange`, what is done inside the tile. Fetching and gathering only move 32-bit words, they never compute
with them: raw words must keep their bits, those of signalling NaNs too.
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claimed
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE, expect_tile, tile_at, transpose_tile

Tile: TypeAlias = NDArray[np.float32]
Tensor: TypeAlias = NDArray[np.float32]
Operand: TypeAlias = tuple[Tensor, NDArray[np.int32], np.float32, int]

AS_IS: Final = 0
TRANSPOSE: Final = 1  # in-tile transpose flag (OPS 7.4); equal to True
FIRST_ROW: Final = 2  # tile_broadcast r: row 0 in every row (OPS 7)
FIRST_COLUMN: Final = 3  # tile_broadcast c
FIRST_ELEMENT: Final = 4  # tile_broadcast rc


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
    data = source[entry if source.shape[0] > 1 else 0, at]
    if arrange == AS_IS:
        return data
    arrange_tile(scratch, data, arrange)
    return scratch


@helper
def blank_tile(tile: Tile, height: int, width: int) -> None:
    """Multiply elements outside `height` x `width` by 0: NaN stays NaN, -x becomes -0 (OPS 6)."""
    for i in range(32):
        for j in range(width if i < height else 0, 32):
            tile[32 * i + j] *= np.float32(0)


@kernel
def blank_tiles(start: int, stop: int, tiles: Tensor, height: int, width: int) -> None:
    """Blank float32[w, n, 1024] in place outside `height` x `width`. Items: the w*n tiles."""
    n = tiles.shape[1]
    for index in claimed(start, stop):
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
    for result_index in claimed(start, stop):
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
            transpose_tile(tile_at(out, entry, tile), tile_at(source, entry if source.shape[0] > 1 else 0, at))
        else:
            arrange_tile(to, source[entry if source.shape[0] > 1 else 0, at], arrange)
        if height < 32 or width < 32:
            blank_tile(to, height, width)
