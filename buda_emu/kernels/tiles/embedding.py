"""Rows of a table picked by indices (OPS 6.9)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.jit.kernel import kernel
from buda_emu.jit.thread_team import claimed
from buda_emu.kernels.tiles.gather import Tensor


@kernel
def embedding_tiles(start: int, stop: int, out: Tensor, table: Tensor, picked: NDArray[np.int64], cols: int) -> None:
    """Element row n of every t slice of `out` is row picked[w, n] of the table, zeros where that is < 0.

    out: float32[w, t * rows * cols, 1024]; picked: [w or 1, rows * 32]; table: float32[w or 1, tiles, 1024] with its
    elements in host row-major order, `cols` tiles wide. Items: the tiles of `out`, over all w.
    """
    tiles = out.shape[1]
    rows = picked.shape[1] // 32
    for item in claimed(start, stop):
        entry = item // tiles
        tile = item - entry * tiles
        column = tile % cols
        first = tile // cols % rows * 32
        to = out[entry, tile]
        numbers = picked[entry if picked.shape[0] > 1 else 0]
        source = table[entry if table.shape[0] > 1 else 0]
        for i in range(32):
            row = numbers[first + i]
            at = (row * cols + column) * 32  # 32 neighbours never cross a tile of 1024
            for j in range(32):
                to[32 * i + j] = source[at // 1024, at % 1024 + j] if row >= 0 else np.float32(0)
