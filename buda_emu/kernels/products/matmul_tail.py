"""What a matmul checks between its product and its requantisation (OPS 6.1)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.jit.kernel import kernel
from buda_emu.jit.thread_team import claimed
from buda_emu.kernels.tiles.gather import Tensor


@kernel
def count_beyond(start: int, stop: int, tiles: Tensor, limit: np.float32, counts: NDArray[np.int64]) -> None:
    """counts[w*n] = how many elements of each tile of float32[w, n, 1024] exceed `limit` in magnitude; NaN does not.

    Items: the w*n tiles.
    """
    per_entry = tiles.shape[1]
    for item in claimed(start, stop):
        count = 0
        entry = item // per_entry
        tile = tiles[entry, item - entry * per_entry]
        for k in range(1024):
            count += abs(tile[k]) > limit
        counts[item] = count
