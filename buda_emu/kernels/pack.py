"""What happens to a result on its way out of an op: gradient accumulation and relu, in place (OPS 3 steps 7 and 8)."""

import numpy as np

from buda_emu.kernels.crew import claimed
from buda_emu.kernels.gather import Tensor
from buda_emu.kernels.jit import kernel


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
def relu_tiles(start: int, stop: int, tiles: Tensor, clamp: bool, threshold: np.float32) -> None:
    """Relu of float32[w, n, 1024] in place (OPS 5, 6.13). Items: the w*n tiles.

    `clamp` False (relu_mode min or none): x where x >= threshold, else +0. True (max): x into [0, threshold].
    NaN becomes 0.
    """
    n = tiles.shape[1]
    for item in claimed(start, stop):
        entry = item // n
        tile = tiles[entry, item - entry * n]
        if clamp:
            for k in range(1024):
                x = tile[k]
                low = x if x >= np.float32(0) else np.float32(0)
                tile[k] = threshold if x >= threshold else low
        else:
            for k in range(1024):
                x = tile[k]
                tile[k] = x if x >= threshold else np.float32(0)
