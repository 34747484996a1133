"""exp: e to the power x in double precision.

e^x = 2^(m/128) * e^r with m the integer nearest to 128x / ln 2 and r within about -ln 2 / 256 and ln 2 / 256. The first
factor is a table entry with m // 128 added to its exponent, and a tail, the relative error of the entry; the second
factor is a polynomial.
"""

from decimal import Context, Decimal
from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.fma import fma

_STEPS: Final = 128  # table entries per power of two
_STEPS_PER_UNIT: Final = float.fromhex("0x1.71547652b82fep+7")  # 128 / ln 2
_STEP_HIGH: Final = float.fromhex("0x1.62e42fefa0000p-8")  # ln 2 / 128
_STEP_LOW: Final = float.fromhex("0x1.cf79abc9e3b3ap-47")
# Added to a number of magnitude below 2^51 this rounds it to an integer, which the low bits of the sum then hold.
_ROUNDER: Final = 1.5 * 2.0**52

# e^r = 1 + r + C2 r^2 + C3 r^3 + C4 r^4 + C5 r^5.
_C2: Final = float.fromhex("0x1.ffffffffffdbdp-2")
_C3: Final = float.fromhex("0x1.555555555543cp-3")
_C4: Final = float.fromhex("0x1.55555cf172b91p-5")
_C5: Final = float.fromhex("0x1.1111167a4d017p-7")

_IN_RANGE: Final = 512.0  # up to it the result and all steps are normal numbers
_LIMIT: Final = 1024.0  # from it on the result is 0 or infinite
_DOWN: Final = 1009  # powers of two taken from a result that may overflow, and lent to one that may underflow
_UP: Final = 1022  # the same for underflow


def _power_table() -> list[tuple[int, float]]:
    """Return for each step the bits of 2^(step/128) rounded to a double, and the relative error of that rounding.

    `step` << 45 is subtracted from the bits: m << 45 is added later, and of their sum only m // 128 reaches the
    exponent.
    """
    digits = Context(prec=60)
    ratio = Decimal(2)
    for _ in range(7):
        ratio = digits.sqrt(ratio)
    power = Decimal(1)
    table = list[tuple[int, float]]()
    for step in range(_STEPS):
        rounded = Decimal(float(power))
        tail = digits.divide(digits.subtract(power, rounded), rounded)
        table.append((int(np.float64(float(power)).view(np.int64)) - (step << 45), float(tail)))
        power = digits.multiply(power, ratio)
    return table


_TABLE: Final = _power_table()
_POWERS: Final = np.array([power for power, _ in _TABLE], np.int64)
_TAILS: Final = np.array([tail for _, tail in _TABLE])


@kernel
def exp(x: np.float64) -> np.float64:
    """Return e^x in double precision, bit for bit as the C library does; 0 below about -745.13, inf above about
    709.78."""
    if abs(x) < _IN_RANGE:
        return exp_in_range(x)
    if x != x:
        return x + x
    if abs(x) >= _LIMIT:
        if x > 0.0:
            return np.float64(np.inf)
        return np.float64(0.0)
    m, r = reduce_by_ln2(x)
    scale_bits, p = power_of_e(m, r)
    if x > 0.0:
        scale = np.int64(scale_bits - (_DOWN << 52)).view(np.float64)
        return np.float64(2.0**_DOWN * fma(scale, p, scale))
    scale = np.int64(scale_bits + (_UP << 52)).view(np.float64)
    return np.float64(2.0**-_UP * _round_early(scale, scale * p))


@kernel
def exp_in_range(x: np.float64) -> np.float64:
    """Return `exp` of x for |x| < 512. It has no branches, so that a loop over it becomes vector code."""
    m, r = reduce_by_ln2(x)
    scale_bits, p = power_of_e(m, r)
    scale = np.int64(scale_bits).view(np.float64)
    return fma(scale, p, scale)


@helper
def reduce_by_ln2(x: float) -> tuple[np.int64, np.float64]:
    """Return m and r with x = m ln 2 / 128 + r, for |x| < 1024; of m only the low 19 bits count."""
    rounded = np.float64(fma(_STEPS_PER_UNIT, x, _ROUNDER))
    steps = rounded - _ROUNDER
    return rounded.view(np.int64), fma(steps, -_STEP_LOW, fma(steps, -_STEP_HIGH, x))


@helper
def power_of_e(m: np.int64, r: np.float64) -> tuple[np.int64, np.float64]:
    """Return the bits of s, and p, with s + s * p = 2^(m/128) * e^r. Where s leaves the range of a double its exponent
    wraps around in the bits."""
    entry = m & (_STEPS - 1)
    r2 = r * r
    p = fma(fma(_C3, r, _C2), r2, _TAILS[entry] + r)
    p = fma(r2 * r2, fma(_C5, r, _C4), p)
    return _POWERS[entry] + (m << 45), p


@helper
def _round_early(scale: np.float64, rest: np.float64) -> np.float64:
    """Return scale + rest, rounded to the bits that are left after a multiplication by 2^-1022, so that this one does
    not round again: a sum below 1 becomes subnormal then."""
    total = scale + rest  # not fused
    if not total < 1.0:
        return total
    lost = (scale - total) + rest
    above = 1.0 + total
    lost = ((1.0 - above) + total) + lost
    return np.float64((above + lost) - 1.0)
