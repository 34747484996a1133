"""Rounding, rescaling, and fixed-point exponential, logistic and hyperbolic tangent of the reference kernels
(DARWINN_TWIN).
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_Q31 = 1 << 31  # one in numbers of 31 bits of fraction


class Multiplier(NamedTuple):
    """A real number as q * 2^(e - 31); both are arrays where each channel has its own number."""

    q: Any
    e: Any


def half_away(value: Any) -> Any:
    """Return values rounded to the nearest integer, halves away from zero, in double precision."""
    exact = np.asarray(value, np.float64)
    return np.where(exact >= 0, np.floor(exact + 0.5), np.ceil(exact - 0.5)).astype(np.int64)


def multiplier(real: float) -> Multiplier:
    """Return the multiplier of a real number above 0, saturated where e would be out of -31 to 30."""
    fraction, exponent = np.frexp(np.float64(real))
    q = int(half_away(fraction * _Q31))
    e = int(exponent)
    if q == _Q31:
        q = q // 2
        e = e + 1
    if e < -31:
        return Multiplier(0, 0)
    if e > 30:
        return Multiplier(_Q31 - 1, 30)
    return Multiplier(q, e)


def multipliers(reals: Any) -> Multiplier:
    """Return the multipliers of several real numbers above 0 as one with arrays."""
    pairs = [multiplier(real) for real in reals]
    return Multiplier(np.array([by.q for by in pairs], np.int64), np.array([by.e for by in pairs], np.int64))


def high(a: Any, b: Any, bits: int = 32) -> Ints:
    """Return H of DARWINN_TWIN: the high half of the doubled product, rounded, halves away from zero; -1 times -1
    saturates to the largest value below 1."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    unit = 1 << (bits - 1)
    nudged = product + np.where(product >= 0, unit >> 1, 1 - (unit >> 1))
    result = np.where(nudged >= 0, nudged // unit, -(-nudged // unit))
    return np.minimum(result, unit - 1)


def right(x: Any, n: Any) -> Ints:
    """Return R of DARWINN_TWIN: x / 2^n, rounded, halves away from zero."""
    value = np.asarray(x, np.int64)
    shift = np.asarray(n, np.int64)
    mask = (np.int64(1) << shift) - 1
    return (value >> shift) + ((value & mask) > (mask >> 1) + (value < 0))


def apply_multiplier(x: Any, by: Multiplier) -> Ints:
    """Return Q of DARWINN_TWIN: x times a multiplier, rounded twice as the kernels do."""
    e = np.asarray(by.e, np.int64)
    return right(high(np.asarray(x, np.int64) << np.maximum(e, 0), by.q), np.maximum(-e, 0))


def apply_multiplier_once(x: Any, by: Multiplier) -> Ints:
    """Return x times a multiplier, rounded once, halves up."""
    n = 31 - np.asarray(by.e, np.int64)
    return (np.asarray(x, np.int64) * by.q + (np.int64(1) << (n - 1))) >> n


_K: Final = 1895147668  # exp(-1/8) in 31 bits of fraction (DARWINN_TWIN 5)
_SIXTH: Final = 715827883  # 1/3 in 31 bits of fraction; the product is halved
# exp(-2^k) in 31 bits of fraction, k from -2 to 4 (DARWINN_TWIN 5).
_FACTORS: Final = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_FIRST_STEP: Final = -2  # the first factor is exp(-1/4)
_RECIPROCAL: Final = (1515870810, -1010580540)  # 48/17 and -32/17 in 29 bits: the start of the Newton steps


def _constant(value: int, bits: int) -> int:
    """Return a constant of 32 bits, rounded to `bits`."""
    if bits == 32:
        return value
    return int(right(value, 32 - bits))


def _saturate(x: Any, bits: int) -> Ints:
    """Clip to the range of a signed integer of `bits` bits."""
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def shift_saturating(x: Any, n: int, bits: int) -> Ints:
    """Return Sh of DARWINN_TWIN: x * 2^n, saturated for n > 0, rounded for n <= 0."""
    if n > 0:
        return _saturate(np.asarray(x, np.int64) << n, bits)
    return right(x, -n)


def exp(a: Any, i: int, bits: int) -> Ints:
    """Return the exponential of a <= 0, which has `i` integer bits; the result has none. Both have `bits` bits, 16
    or 32."""
    value = np.asarray(a, np.int64)
    fraction = bits - 1 - i
    quarter = 1 << (fraction - 2)
    u = (value & (quarter - 1)) - quarter
    k = _constant(_K, bits)
    x = shift_saturating(u, i, bits) + (1 << (bits - 4))
    x2 = high(x, x, bits)
    x3 = high(x2, x, bits)
    x4 = high(x2, x2, bits)
    t = shift_saturating(high(shift_saturating(x4, -2, bits) + x3, _constant(_SIXTH, bits), bits) + x2, -1, bits)
    r = k + high(k, x + t, bits)
    if bits == 16:
        r = _saturate(r, bits)
    steps = u - value
    for number, factor in enumerate(_FACTORS):
        step = number + _FIRST_STEP
        if step >= i:
            break
        r = np.where(steps >> (fraction + step) & 1, high(r, _constant(factor, bits), bits), r)
    if i > 5:
        r = np.where(value < -(1 << (fraction + 5)), 0, r)
    return np.where(value == 0, (1 << (bits - 1)) - 1, r)


def _half_reciprocal(a: Any, bits: int) -> Ints:
    """Return half of 1 / (1 + a), for a in 0 to 1 without integer bits; the result has two integer bits."""
    h = (np.asarray(a, np.int64) + (1 << (bits - 1))) >> 1  # (a + one) / 2, halves away from zero
    x = _constant(_RECIPROCAL[0], bits) + high(h, _constant(_RECIPROCAL[1], bits), bits)
    for _ in range(3):
        x = x + shift_saturating(high(x, (1 << (bits - 3)) - high(h, x, bits), bits), 2, bits)
    return x


def recip(a: Any, bits: int) -> Ints:
    """Return 1 / (1 + a) for a in 0 to 1 without integer bits."""
    return shift_saturating(_half_reciprocal(a, bits), 1, bits)


def ratio(a: Any, bits: int) -> Ints:
    """Return (1 - a) / (1 + a) for a in 0 to 1 without integer bits."""
    return shift_saturating(_half_reciprocal(a, bits) - (1 << (bits - 3)), 2, bits)


def logistic(a: Any, i: int, bits: int) -> Ints:
    """Return 1 / (1 + exp(-a)), where a has `i` integer bits; the result has none. Both have `bits` bits, 16 or 32."""
    value = np.asarray(a, np.int64)
    positive = recip(exp(-np.abs(value), i, bits), bits)
    negative = (1 << (bits - 1)) - 1 - positive
    return np.where(value == 0, 1 << (bits - 2), np.where(value > 0, positive, negative))


def tanh(a: Any, i: int, bits: int) -> Ints:
    """Return the hyperbolic tangent of a, which has `i` integer bits; the result has none. Both have `bits` bits,
    16 or 32."""
    value = np.asarray(a, np.int64)
    size = ratio(exp(-np.abs(value), i + 1, bits), bits)  # the same bits with one integer bit more: doubled
    return np.where(value == 0, 0, np.where(value > 0, size, -size))
