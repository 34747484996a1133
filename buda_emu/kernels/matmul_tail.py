"""What a matmul checks between its product and its requantisation (OPS 6.1)."""

import numpy as np

from buda_emu.kernels.gather import Tensor
from buda_emu.kernels.jit import kernel


@kernel
def count_beyond(start: int, stop: int, tiles: Tensor, limit: np.float32) -> int:
    """How many elements of float32[w, n, 1024] exceed `limit` in magnitude; NaN does not. Items: the w*n tiles."""
    per_entry = tiles.shape[1]
    count = 0
    for item in range(start, stop):
        entry = item // per_entry
        tile = tiles[entry, item - entry * per_entry]
        for k in range(1024):
            count += abs(tile[k]) > limit
    return count
