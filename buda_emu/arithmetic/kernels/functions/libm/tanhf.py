"""tanhf: hyperbolic tangent in single precision.

With t = e^s - 1: tanh x = 1 - 2 / (t + 2) for x >= 1, where s = 2x, and -t / (t + 2) for 0 <= x < 1, where s = -2x. So
e^s - 1 is needed for -2 < s <= 0 and for 2 <= s <= 44 alone; beyond, the tangent is 1.

The library's tanhf and expm1f have no form for processors with fused multiply-add: every step is rounded. There are no
branches here, so that a loop over `tanhf` becomes vector code.
"""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel

# Literals of single precision: a Python float would make a double of the result.
_ZERO: Final = np.float32(0)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1)
_TWO: Final = np.float32(2)
_THREE: Final = np.float32(3)
_SIX: Final = np.float32(6)
_MINUS_ONE: Final = np.float32(-1)
_SATURATED: Final = np.float32(22)  # the tangent of larger numbers is 1, as is that of this one

_INVERSE_LN2: Final = np.float32(float.fromhex("0x1.715476p+0"))
_LN2_HIGH: Final = np.float32(float.fromhex("0x1.62e3p-1"))  # few bits: its product with a small integer is exact
_LN2_LOW: Final = np.float32(float.fromhex("0x1.2fefa2p-17"))
_UNREDUCED: Final = np.float32(float.fromhex("0x1.62e430p-2"))  # up to ln 2 / 2, s is not reduced

# (r/2) * (e^r + 1) / (e^r - 1) = 1 + Q1 h + Q2 h^2 + ... with h = r^2 / 2.
_Q1: Final = np.float32(float.fromhex("-0x1.111112p-5"))
_Q2: Final = np.float32(float.fromhex("0x1.a01a02p-10"))
_Q3: Final = np.float32(float.fromhex("-0x1.4ce19ap-14"))
_Q4: Final = np.float32(float.fromhex("0x1.0cfca8p-18"))
_Q5: Final = np.float32(float.fromhex("-0x1.afdb76p-23"))

# For these powers of two, of 1 and e^s the smaller one is small enough to be added last.
_MANY: Final = np.float32(23)
_TOO_MANY: Final = np.float32(56)

# A small integer n added to it leaves n + 127, the exponent field of 2^n, in the low bits of the sum.
_EXPONENT: Final = np.float32(1.5 * 2.0**23 + 127)
_MANTISSA_BITS: Final = np.int32(23)


@kernel
def tanhf(x: np.float32) -> np.float32:
    """Return the hyperbolic tangent of x in single precision, bit for bit as the C library does."""
    magnitude = abs(x)
    if not magnitude < _SATURATED:  # or x is NaN
        magnitude = _SATURATED
    large = magnitude >= _ONE
    twice = magnitude + magnitude
    t = _expm1f(twice if large else -twice)
    quotient = (_TWO if large else -t) / (t + _TWO)
    tangent = quotient
    if large:
        tangent = _ONE - quotient
    # Zeros keep their sign; a NaN becomes a quiet one.
    if x > _ZERO:
        return tangent
    if x < _ZERO:
        return -tangent
    return x + x


@helper
def _expm1f(s: np.float32) -> np.float32:
    """Return e^s - 1 for -2 < s <= 0 and 2 <= s <= 44."""
    # s = n ln 2 + r + c, where c is what the rounding of r has lost.
    nearest = np.float32(np.int32(s * _INVERSE_LN2 + (_HALF if s > _ZERO else -_HALF)))
    n = _ZERO
    if abs(s) > _UNREDUCED:
        n = nearest
    high = s - n * _LN2_HIGH
    low = n * _LN2_LOW
    r = high - low
    c = (high - r) - low
    # e^r - 1 = r - e, from the quotient of polynomials; e takes in c.
    half = _HALF * r
    h = r * half
    q = _ONE + h * (_Q1 + h * (_Q2 + h * (_Q3 + h * (_Q4 + h * _Q5))))
    t = _THREE - q * half
    e = h * ((q - t) / (_SIX - r * t))
    e = (r * (e - c) - c) - h
    # e^s - 1 = 2^n (1 + r - e) - 1, where the ones are added in the order that loses least.
    inverse = _power_of_two(-n)
    difference = e - r
    one_by_one = (r - (e + inverse)) + _ONE
    at_once = (_ONE - inverse) - difference
    significand = at_once
    last = _ZERO
    if n >= _MANY:
        significand = one_by_one
    if (n < _ZERO) | (n > _TOO_MANY):
        significand = _ONE - difference
        last = _ONE
    if (n == _ZERO) | (n == _MINUS_ONE):
        significand = -difference
    if n == _MINUS_ONE:
        last = _HALF
    return significand * _power_of_two(n) - last


@helper
def _power_of_two(n: np.float32) -> np.float32:
    """Return 2^n for an integer -127 < n < 128."""
    return np.int32(np.float32(n + _EXPONENT).view(np.int32) << _MANTISSA_BITS).view(np.float32)
