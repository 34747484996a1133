"""tanh: hyperbolic tangent in double precision, by the formulas of `tanhf`.

The library's tanh rounds every step; its expm1 has a form for processors with fused multiply-add, which came into glibc
2.36 with Debian's revision 10. There are no branches here, so that a loop over `tanh` becomes vector code.
"""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.fma import fma

_SATURATED: Final = 22.0  # the tangent of larger numbers is 1, as is that of this one

_INVERSE_LN2: Final = float.fromhex("0x1.71547652b82fep+0")
_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")  # few bits: its product with a small integer is exact
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_REDUCED: Final = float.fromhex("0x1.62e4300000000p-2")  # below this, about ln 2 / 2, s is not reduced

# (r/2) * (e^r + 1) / (e^r - 1) = 1 + Q1 h + Q2 h^2 + ... with h = r^2 / 2.
_Q1: Final = float.fromhex("-0x1.11111111110f4p-5")
_Q2: Final = float.fromhex("0x1.a01a019fe5585p-10")
_Q3: Final = float.fromhex("-0x1.4ce199eaadbb7p-14")
_Q4: Final = float.fromhex("0x1.0cfca86e65239p-18")
_Q5: Final = float.fromhex("-0x1.afdb76e09c32dp-23")

# From the first power of two on, of 1 and e^s the 1 is added last, and from the second on not inside the parentheses.
_MANY: Final = 20.0
_TOO_MANY: Final = 56.0

# A small integer n added to it leaves n + 1023, the exponent field of 2^n, in the low bits of the sum.
_EXPONENT: Final = 1.5 * 2.0**52 + 1023


@kernel
def tanh(x: np.float64) -> np.float64:
    """Return the hyperbolic tangent of x in double precision, bit for bit as the C library does."""
    magnitude = abs(x)
    if not magnitude < _SATURATED:  # or x is NaN
        magnitude = _SATURATED
    large = magnitude >= 1.0
    twice = magnitude + magnitude
    t = _expm1(twice if large else -twice)
    quotient = (2.0 if large else -t) / (t + 2.0)
    tangent = quotient
    if large:
        tangent = 1.0 - quotient
    # Zeros keep their sign; a NaN becomes a quiet one.
    if x > 0.0:
        return np.float64(tangent)
    if x < 0.0:
        return np.float64(-tangent)
    return np.float64(x + x)


@helper
def _expm1(s: float) -> float:
    """Return e^s - 1 for -2 < s <= 0 and 2 <= s <= 44."""
    # s = n ln 2 + r + c, where c is what the rounding of r has lost.
    nearest = np.float64(np.int32(s * _INVERSE_LN2 + (0.5 if s > 0.0 else -0.5)))
    n = 0.0
    if abs(s) >= _REDUCED:
        n = nearest
    high = fma(-n, _LN2_HIGH, s)
    low = n * _LN2_LOW
    r = high - low
    c = (high - r) - low
    # e^r - 1 = r - e, from the quotient of polynomials; e takes in c.
    half = 0.5 * r
    h = r * half
    h2 = h * h
    q = fma(h2 * h2, fma(_Q5, h, _Q4), fma(h2, fma(_Q3, h, _Q2), fma(_Q1, h, 1.0)))
    t = fma(-q, half, 3.0)
    e = h * ((q - t) / fma(-r, t, 6.0))
    if n == 0.0:
        e = fma(e, r, -h)
    else:
        e = fma(e - c, r, -c) - h
    # e^s - 1 = 2^n (1 + r - e) - 1, where the ones are added in the order that loses least.
    inverse = _power_of_two(-n)
    difference = e - r
    one_by_one = (r - (e + inverse)) + 1.0
    at_once = (1.0 - inverse) - difference
    significand = at_once
    last = 0.0
    if n >= _MANY:
        significand = one_by_one
    if (n < 0.0) | (n > _TOO_MANY):
        significand = 1.0 - difference
        last = 1.0
    if (n == 0.0) | (n == -1.0):
        significand = -difference
    if n == -1.0:
        last = 0.5
    return significand * _power_of_two(n) - last


@helper
def _power_of_two(n: float) -> float:
    """Return 2^n for an integer -1023 < n < 1024."""
    return np.int64(np.float64(n + _EXPONENT).view(np.int64) << 52).view(np.float64)
