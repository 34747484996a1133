"""expf: e to the power x in single precision.

e^x = 2^(m/32) * e^r with m the integer nearest to 32x / ln 2. The first factor is a table entry with m // 32 added to
its exponent; the second a cubic in r' = r * 32 / ln 2, which lies within -1/2 and 1/2. All in double precision.
"""

from decimal import Context, Decimal
from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.fma import fma

STEPS: Final = 32  # table entries per power of two
_STEPS_PER_UNIT: Final = float.fromhex("0x1.71547652b82fep+5")  # 32 / ln 2
# Added to a number of magnitude below 2^51 this rounds it to an integer, which the low bits of the sum then hold.
_ROUNDER: Final = 1.5 * 2.0**52
_LIMIT: Final = 700.0  # beyond it the result is 0 or infinite, below it no step leaves the range of a double

# The cubic 1 + C1 r' + C2 r'^2 + C3 r'^3.
_C1: Final = float.fromhex("0x1.62e42ff0c52d6p-6")
_C2: Final = float.fromhex("0x1.ebfce50fac4f3p-13")
_C3: Final = float.fromhex("0x1.c6af84b912394p-20")


def _power_bits() -> list[int]:
    """Return for each step the bits of 2^(step/32) as a double, less `step` << 47: m << 47 is added later, and of their
    sum only m // 32 reaches the exponent."""
    digits = Context(prec=40)
    ratio = Decimal(2)
    for _ in range(5):
        ratio = digits.sqrt(ratio)
    power = Decimal(1)
    bits = list[int]()
    for step in range(STEPS):
        bits.append(int(np.float64(float(power)).view(np.int64)) - (step << 47))
        power = digits.multiply(power, ratio)
    return bits


_POWERS: Final = np.array(_power_bits(), np.int64)


@kernel
def expf(x: np.float32) -> np.float32:
    """Return e^x in single precision, bit for bit as the C library does; 0 below about -103.97, inf above about
    88.72."""
    if x != x:
        return x + x
    m, rest = steps_of_e(np.float64(x))
    scale = np.int64(_POWERS[m & (STEPS - 1)] + (m << 47)).view(np.float64)
    return np.float32(rest * scale)


@helper
def steps_of_e(x: np.float64) -> tuple[np.int64, np.float64]:
    """Return m and y with e^x = 2^(m/32) * y, where y is the cubic in r'; of m only the low 17 bits count. x is clamped
    to magnitudes up to 700, where the power is 0 or infinite in single precision."""
    clamped = min(max(x, -_LIMIT), _LIMIT)
    rounded = np.float64(fma(_STEPS_PER_UNIT, clamped, _ROUNDER))
    r = fma(_STEPS_PER_UNIT, clamped, -(rounded - _ROUNDER))
    low = fma(_C1, r, 1.0)
    high = fma(_C3, r, _C2)
    return rounded.view(np.int64), fma(high, r * r, low)
