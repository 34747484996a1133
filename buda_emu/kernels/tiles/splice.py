"""Copying tiles of one operand to chosen places of a tensor."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.jit.kernel import kernel
from buda_emu.jit.thread_team import claimed
from buda_emu.kernels.tiles.gather import Operand, Tensor, arrange_tile, fetch_tile


@kernel
def place_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, taken: NDArray[np.int32], places: NDArray[np.int32]
) -> None:
    """out[w, places[n]] = tile taken[n] of the operand's post-TM tiles. Items: n, over all w."""
    count = places.shape[0]
    scratch = np.empty(1024, np.float32)
    for item in claimed(start, stop):
        entry = item // count
        n = item - entry * count
        arrange_tile(out[entry, places[n]], fetch_tile(operand, entry, int(taken[n]), scratch), 0)
