"""Maximum over rows, columns, whole tiles or z (OPS 6.7)."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.jit.kernel import helper, kernel
from buda_emu.jit.thread_team import claimed
from buda_emu.kernels.tiles.gather import Operand, Tensor, fetch_tile

ROWS: Final = 0
COLUMNS: Final = 1
BOTH: Final = 2
Z: Final = 3


@helper
def greater(value: np.float32, best: np.float32) -> np.float32:
    """The value where it is greater than the best so far, which is kept where either is NaN."""
    return value if value > best else best


@kernel
def reduce_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, bases: NDArray[np.int64], stride: int, count: int, dim: int
) -> None:
    """out[w, n, 1024]: tile i reduces the operand's tiles bases[i] + s*stride, s in 0..count-1. Items: the w*n tiles.

    Rows, columns, both: NaN is ignored (all NaN: -inf), of equal values the first one met is kept, what is not a result
    is 0. For columns the operand comes with its tiles transposed. Z: element by element, "the new value unless it is
    less", so a NaN replaces the accumulator and the next value replaces the NaN.
    """
    tiles = out.shape[1]
    scratch = np.empty(1024, np.float32)
    best = np.empty(32, np.float32)
    for item in claimed(start, stop):
        entry = item // tiles
        tile = item - entry * tiles
        base = int(bases[tile])
        to = out[entry, tile]
        if dim == Z:
            for k in range(1024):
                to[k] = np.float32(-np.inf)
            for step in range(count):
                data = fetch_tile(operand, entry, base + step * stride, scratch)
                for k in range(1024):
                    to[k] = to[k] if data[k] < to[k] else data[k]
            continue
        for j in range(32):
            best[j] = np.float32(-np.inf)
        for step in range(count):
            data = fetch_tile(operand, entry, base + step * stride, scratch)
            for i in range(0, 1024, 256):  # eight rows at a time keep the values in registers
                for j in range(32):
                    value = greater(data[i + j], best[j])
                    value = greater(data[i + 32 + j], value)
                    value = greater(data[i + 64 + j], value)
                    value = greater(data[i + 96 + j], value)
                    value = greater(data[i + 128 + j], value)
                    value = greater(data[i + 160 + j], value)
                    value = greater(data[i + 192 + j], value)
                    best[j] = greater(data[i + 224 + j], value)
        for k in range(1024):
            to[k] = np.float32(0)
        if dim == ROWS:
            for j in range(32):
                to[j] = best[j]
        elif dim == COLUMNS:
            for i in range(32):
                to[32 * i] = best[i]
        else:
            greatest = best[0]
            for j in range(1, 32):
                greatest = greater(best[j], greatest)
            to[0] = greatest
