"""logf: the natural logarithm in single precision.

x = 2^k * z with z between 0.7 and 1.4, and log x = k ln 2 + log c + log(z / c), where c is the centre of the sixteenth
of z's range. The table holds 1 / c and log c; the last term is a cubic in r = z / c - 1. All in double precision.
"""

from decimal import Context, Decimal
from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.fma import fma

_INVERSES: Final = np.array(
    [
        float.fromhex(inverse)
        for inverse in (
            "0x1.661ec79f8f3bep+0",
            "0x1.571ed4aaf883dp+0",
            "0x1.49539f0f010b0p+0",
            "0x1.3c995b0b80385p+0",
            "0x1.30d190c8864a5p+0",
            "0x1.25e227b0b8ea0p+0",
            "0x1.1bb4a4a1a343fp+0",
            "0x1.12358f08ae5bap+0",
            "0x1.0953f419900a7p+0",
            "0x1.0000000000000p+0",
            "0x1.e608cfd9a47acp-1",
            "0x1.ca4b31f026aa0p-1",
            "0x1.b2036576afce6p-1",
            "0x1.9c2d163a1aa2dp-1",
            "0x1.886e6037841edp-1",
            "0x1.767dcf5534862p-1",
        )
    ]
)
_LOGARITHMS: Final = np.array([float(-Context(prec=40).ln(Decimal(float(inverse)))) for inverse in _INVERSES])
_LN2: Final = float.fromhex("0x1.62e42fefa39efp-1")

# log(1 + r) = r + C2 r^2 + C3 r^3 + C4 r^4.
_C2: Final = float.fromhex("-0x1.ffffef20a4123p-2")
_C3: Final = float.fromhex("0x1.5575b0be00b6ap-2")
_C4: Final = float.fromhex("-0x1.00ea348b88334p-2")

_Z_FROM: Final = 0x3F330000  # bits of the least z
_MIN_NORMAL: Final = np.float32(2.0**-126)  # of single precision
_INVALID: Final = 0xFFC00000  # bits of the NaN of an invalid operation


@kernel
def logf(x: np.float32) -> np.float32:
    """Return the natural logarithm of x in single precision, bit for bit as the C library does; NaN for x < 0, -inf for
    a zero of either sign."""
    if x != x:
        return x + x
    if x < np.float32(0):
        return np.uint32(_INVALID).view(np.float32)
    if x == np.float32(0):
        return np.float32(-np.inf)
    if x == np.float32(np.inf):
        return x
    bits = np.int64(np.float32(x).view(np.uint32))
    if x < _MIN_NORMAL:
        bits = np.int64(np.float32(x * np.float32(2.0**23)).view(np.uint32)) - (23 << 23)
    offset = bits - _Z_FROM
    k = offset >> 23
    sixteenth = (offset >> 19) & 15
    z = np.float64(np.uint32(bits - (k << 23)).view(np.float32))
    r = fma(z, _INVERSES[sixteenth], -1.0)
    r2 = r * r
    linear = fma(np.float64(k), _LN2, _LOGARITHMS[sixteenth]) + r
    return np.float32(fma(fma(_C4, r2, fma(_C3, r, _C2)), r2, linear))
