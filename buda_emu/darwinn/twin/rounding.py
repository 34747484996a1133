"""Rounding and rescaling of the reference kernels (DARWINN_TWIN 3), in int64 numpy; exact."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_Q31 = 1 << 31


class Multiplier(NamedTuple):
    """A real number as q * 2^(e - 31); arrays for one number each channel."""

    q: Any
    e: Any


def half_away(value: Any) -> Any:
    """To the nearest integer, halves away from zero, in double."""
    exact = np.asarray(value, np.float64)
    return np.where(exact >= 0, np.floor(exact + 0.5), np.ceil(exact - 0.5)).astype(np.int64)


def multiplier(real: float) -> Multiplier:
    """Of a real number above 0."""
    fraction, exponent = np.frexp(np.float64(real))
    q, e = int(half_away(fraction * _Q31)), int(exponent)
    if q == _Q31:
        q, e = q // 2, e + 1
    if e < -31:
        return Multiplier(0, 0)
    if e > 30:
        return Multiplier(_Q31 - 1, 30)
    return Multiplier(q, e)


def multipliers(reals: Any) -> Multiplier:
    """Of several; arrays."""
    each = [multiplier(real) for real in reals]
    return Multiplier(np.array([item.q for item in each], np.int64), np.array([item.e for item in each], np.int64))


def high(a: Any, b: Any, bits: int = 32) -> Ints:
    """H: the high half of the doubled product, rounded, halves away from zero; -1 times -1 is the largest below 1."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    unit = 1 << (bits - 1)
    nudged = product + np.where(product >= 0, unit >> 1, 1 - (unit >> 1))
    result = np.where(nudged >= 0, nudged // unit, -(-nudged // unit))
    return np.minimum(result, unit - 1)


def right(x: Any, n: Any) -> Ints:
    """R: x / 2^n, rounded, halves away from zero."""
    value, shift = np.asarray(x, np.int64), np.asarray(n, np.int64)
    mask = (np.int64(1) << shift) - 1
    return (value >> shift) + ((value & mask) > (mask >> 1) + (value < 0))


def scaled(x: Any, by: Multiplier) -> Ints:
    """Q: x times a multiplier, rounded twice as the kernels do."""
    e = np.asarray(by.e, np.int64)
    return right(high(np.asarray(x, np.int64) << np.maximum(e, 0), by.q), np.maximum(-e, 0))


def scaled_once(x: Any, by: Multiplier) -> Ints:
    """x times a multiplier, rounded once: halves up."""
    n = 31 - np.asarray(by.e, np.int64)
    return (np.asarray(x, np.int64) * by.q + (np.int64(1) << (n - 1))) >> n
