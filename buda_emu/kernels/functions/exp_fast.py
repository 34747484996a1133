"""e^x by a short way that knows where it may be trusted, as `kernels.gelu_fast`.

`kernels.libm.expf` multiplies a cubic by an entry of a table, which vector code must fetch one by one. Here the cubic
is the same, and the entry is the product of at most five numbers, wrong by less than 2^-49. Where both ends of the
margin round to the same float32, so does the definition's product; elsewhere, which nearly never happens, and for NaN
the result is a NaN: the caller then asks the definition. Tried on all 2^32 float32: no result differs.
"""

from typing import Final

import numpy as np

from buda_emu.jit.kernel import helper
from buda_emu.kernels.functions.libm.expf import STEPS, steps_of_e

LARGEST: Final = np.finfo(np.float32).max
MARGIN: Final = 2.0**-48  # relative
_P1, _P2, _P4, _P8, _P16 = (2.0 ** (step / STEPS) for step in (1, 2, 4, 8, 16))


@helper
def exp_or_nan(x: np.float32) -> np.float32:
    """e^x, at most the largest number, or NaN."""
    m, rest = steps_of_e(np.float64(x))
    low = (_P1 if m & 1 else 1.0) * (_P2 if m & 2 else 1.0)
    high = (_P4 if m & 4 else 1.0) * (_P8 if m & 8 else 1.0)
    entry = np.float64(low * (high * (_P16 if m & 16 else 1.0)))
    y = rest * np.int64(entry.view(np.int64) + ((m >> 5) << 52)).view(np.float64)
    one, other = np.float32(y * (1.0 - MARGIN)), np.float32(y * (1.0 + MARGIN))
    power = one if one < LARGEST else LARGEST
    return power if (one == other) & (x == x) else np.float32(np.nan)
