"""The cube of a number as pow(x, 3) computes it: e^(3 log x), with a logarithm of some 68 bits.

One in four hundred results differs from the correctly rounded cube, x * x * x. In gelu and gelu_derivative (OPS 5) this
never shows: with either cube the float32 results are the same for all 2^32 float32 x, as trying them has shown.

For the logarithm, x = 2^k * z with z between about 0.7 and 1.4, and log x = k ln 2 + log c + log(z / c), where c is the
centre of one of 128 parts of z's range. The last term is a polynomial in r = z / c - 1, which is exact. The sum is kept
as a high and a low part.
"""

from decimal import Context, Decimal
from typing import Final

import numpy as np

from buda_emu.kernels.fma import fma
from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.libm.exp import power_of_e, reduce_by_ln2
from buda_emu.kernels.libm.inline import inline

__all__ = ["cube"]

_Z_FROM: Final = 0x3FE6955500000000  # bits of the least z
_PARTS: Final = 128
_PART_SHIFT: Final = 45  # a part spans 2^45 bit patterns

_LN2_HIGH: Final = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW: Final = float.fromhex("0x1.ef35793c76730p-45")

# log(1 + r) = r + A2 r^2 + A2 r^3 (A3 + A4 r + A2 r^2 (A5 + A6 r + A2 r^2 (A7 + A8 r))).
_A2: Final = -0.5
_A3: Final = float.fromhex("-0x1.5555555555560p-1")
_A4: Final = float.fromhex("0x1.0000000000006p-1")
_A5: Final = float.fromhex("0x1.999999959554ep-1")
_A6: Final = float.fromhex("-0x1.555555529a47ap-1")
_A7: Final = float.fromhex("-0x1.2495b9b4845e9p+0")
_A8: Final = float.fromhex("0x1.0002b8b263fc3p+0")


def _part(index: int) -> tuple[float, float, float]:
    """1 / c, rounded to few bits, and log c: a multiple of 2^-43, and what that lacks."""
    digits = Context(prec=40)
    centre = float(np.int64(_Z_FROM + (2 * index + 1 << _PART_SHIFT - 1)).view(np.float64))
    grain = 128 if centre < 1 else 256
    inverse = round(grain / centre) / grain
    logarithm = digits.minus(digits.ln(Decimal(inverse)))
    high = round(digits.multiply(logarithm, Decimal(2**43))) / 2**43
    return inverse, high, float(digits.subtract(logarithm, Decimal(high)))


_TABLE: Final = [_part(index) for index in range(_PARTS)]
_INVERSES: Final = np.array([inverse for inverse, _, _ in _TABLE])
_LOGARITHMS: Final = np.array([high for _, high, _ in _TABLE])
_LOGARITHM_TAILS: Final = np.array([tail for _, _, tail in _TABLE])


@inline
@kernel
def cube(x: np.float64) -> np.float64:
    """pow(x, 3), where x or -x lies between 2^-149 and 2^128; zeros, infinities and NaN too.

    It has no branches, so that a loop over it becomes vector code.
    """
    high, low = _log(abs(x))
    power = 3.0 * high
    power_low = fma(low, 3.0, fma(high, 3.0, -power))
    m, r = reduce_by_ln2(power)
    scale_bits, p = power_of_e(m, r + power_low)
    scale = np.int64(scale_bits).view(np.float64)
    magnitude = fma(scale, p, scale)
    # Zeros and infinities stay what they are; a NaN becomes a quiet one without sign.
    special = x + x if x == x else abs(x) + abs(x)
    return (magnitude if x > 0.0 else -magnitude) if (abs(x) > 0.0) & (abs(x) < np.inf) else special


@inline
@helper
def _log(x: np.float64) -> tuple[np.float64, np.float64]:
    """log x as a sum of two, for a normal positive x."""
    bits = np.float64(x).view(np.int64)
    offset = bits - _Z_FROM
    part = (offset >> _PART_SHIFT) & (_PARTS - 1)
    k = offset >> 52
    z = np.int64(bits - (k << 52)).view(np.float64)
    r = fma(z, _INVERSES[part], -1.0)
    # Sum of the terms from the largest on; each `lost` is what the rounding of a sum has lost.
    log_c = fma(np.float64(k), _LN2_HIGH, _LOGARITHMS[part])
    log_c_lost = fma(np.float64(k), _LN2_LOW, _LOGARITHM_TAILS[part])
    linear = log_c + r
    linear_lost = (log_c - linear) + r
    ar = _A2 * r
    ar2 = r * ar
    ar2_lost = fma(ar, r, -ar2)
    quadratic = linear + ar2
    quadratic_lost = (linear - quadratic) + ar2
    tail = fma(ar2, fma(ar2, fma(_A8, r, _A7), fma(_A6, r, _A5)), fma(_A4, r, _A3))
    lost = ((log_c_lost + linear_lost) + ar2_lost) + quadratic_lost
    lost = fma(r * ar2, tail, lost)
    high = quadratic + lost
    return high, (quadratic - high) + lost
