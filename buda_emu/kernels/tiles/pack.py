"""What happens to a result on its way out of an op: gradient accumulation and relu, in place (OPS 3 steps 7 and 8)."""

import numpy as np

from buda_emu.jit.kernel import kernel
from buda_emu.jit.thread_team import claimed
from buda_emu.kernels.tiles.gather import Tensor
from buda_emu.kernels.tiles.tile_memory import relu_tile, tile_at


@kernel
def accumulate_tiles(start: int, stop: int, tiles: Tensor, previous: Tensor) -> None:
    """tiles = previous + tiles (OPS 6.12). Both float32[w, n, 1024]. Items: the w*n tiles."""
    n = tiles.shape[1]
    for item in claimed(start, stop):
        entry = item // n
        new = tiles[entry, item - entry * n]
        old = previous[entry, item - entry * n]
        for k in range(1024):
            new[k] = old[k] + new[k]


@kernel
def relu_tiles(start: int, stop: int, tiles: Tensor, relu: int, threshold: np.float32) -> None:
    """`tile_memory.relu_tile` of float32[w, n, 1024] in place. Items: the w*n tiles."""
    n = tiles.shape[1]
    for item in claimed(start, stop):
        entry = item // n
        relu_tile(tile_at(tiles, entry, item - entry * n), relu, threshold)
