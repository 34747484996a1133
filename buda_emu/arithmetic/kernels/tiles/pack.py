"""Tiles that are moved as they are: a result on its way out of an op, pieces of operands, rows of a table."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.thread_team import claimed
from buda_emu.arithmetic.kernels.tiles.gather import Operand, Tensor, arrange_tile, fetch_tile
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE, relu_tile, tile_at


@kernel
def accumulate_tiles(start: int, stop: int, tiles: Tensor, previous: Tensor) -> None:
    """Compute tiles = previous + tiles (OPS 6.12). Both float32[w, n, 1024]. Items: the w*n tiles."""
    n = tiles.shape[1]
    for index in claimed(start, stop):
        entry = index // n
        new = tiles[entry, index - entry * n]
        old = previous[entry, index - entry * n]
        for k in range(TILE):
            new[k] = old[k] + new[k]


@kernel
def relu_tiles(start: int, stop: int, tiles: Tensor, relu: int, threshold: np.float32) -> None:
    """Apply `tile_memory.relu_tile` to float32[w, n, 1024] in place. Items: the w*n tiles."""
    n = tiles.shape[1]
    for index in claimed(start, stop):
        entry = index // n
        relu_tile(tile_at(tiles, entry, index - entry * n), relu, threshold)


@kernel
def place_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, chosen: NDArray[np.int32], places: NDArray[np.int32]
) -> None:
    """Copy tile chosen[n] of the operand's post-TM tiles to out[w, places[n]]. Items: n, over all w."""
    count = places.shape[0]
    scratch = np.empty(TILE, np.float32)
    for index in claimed(start, stop):
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
    for index in claimed(start, stop):
        entry = index // tiles
        tile = index - entry * tiles
        column = tile % cols
        first = tile // cols % rows * 32
        to = out[entry, tile]
        numbers = picked[entry if picked.shape[0] > 1 else 0]
        source = table[entry if table.shape[0] > 1 else 0]
        for i in range(32):
            row = numbers[first + i]
            at = (row * cols + column) * 32  # 32 neighbours never cross a tile of 1024
            for j in range(32):
                to[32 * i + j] = source[at // TILE, at % TILE + j] if row >= 0 else np.float32(0)
