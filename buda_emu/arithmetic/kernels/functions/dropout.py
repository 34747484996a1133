"""The fixed pattern of dropout (OPS 5.1): every tile draws from a fresh std::mt19937 with its default seed."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DEFAULT_SEED = 5489  # of std::mt19937; the netlist's `seed` is ignored


@lru_cache(maxsize=64)
def keep_mask(p: float, rows: int, columns: int) -> NDArray[np.float32]:
    """Return float32[1024] of one tile: 1 where an element is kept, 0 where it is dropped, 1 outside rows x columns.
    Draws go row-major over the processed rows and columns. One draw takes two 32-bit outputs, low word first. `p`, the
    probability of a drop, is rounded to float32 first."""
    # RandomState seeds MT19937 with the reference's init_genrand, and full-range 32-bit integers are its raw outputs.
    raw = np.random.RandomState(DEFAULT_SEED).randint(0, 1 << 32, size=(rows, columns, 2), dtype=np.uint32)
    low = raw[..., 0].astype(np.float64)
    high = raw[..., 1].astype(np.float64)
    u = (low + high * 2.0**32) / 2.0**64
    mask = np.ones((32, 32), np.float32)
    mask[:rows, :columns] = np.where(u < float(np.float32(p)), np.float32(0), np.float32(1))
    mask.flags.writeable = False
    return mask.reshape(-1)


def keep_scale(p: float, has_p: bool) -> np.float32:
    """Return the factor of kept elements, 1 / (1 - p); 0 where the netlist has no `p`, so that everything becomes zero
    (OPS 5.1)."""
    if not has_p:
        return np.float32(0)
    rounded = float(np.float32(p))
    return np.float32(1) if rounded == 1.0 else np.float32(1.0 / (1.0 - rounded))
