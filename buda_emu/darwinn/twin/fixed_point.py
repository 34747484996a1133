"""Fixed-point exponential, logistic and hyperbolic tangent (DARWINN_TWIN 5), of 32 or 16 bits, in int64 numpy.

A value of `bits` bits with `i` integer bits has bits - 1 - i fraction bits.
"""

from typing import Any, Final

import numpy as np

from buda_emu.darwinn.twin.rounding import Ints, high, right

_K: Final = 1895147668
_SIXTH: Final = 715827883
_FACTORS: Final = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_FIRST_STEP: Final = -2  # the first factor is exp(-1/4)
_RECIPROCAL: Final = (1515870810, -1010580540)


def _constant(value: int, bits: int) -> int:
    return value if bits == 32 else int(right(value, 32 - bits))


def _saturated(x: Any, bits: int) -> Ints:
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def shifted(x: Any, n: int, bits: int) -> Ints:
    """Sh: x * 2^n, saturated to the left, rounded to the right."""
    return _saturated(np.asarray(x, np.int64) << n, bits) if n > 0 else right(x, -n)


def exp(a: Any, i: int, bits: int) -> Ints:
    """The exponential of a <= 0 with `i` integer bits; the result has none."""
    value = np.asarray(a, np.int64)
    fraction = bits - 1 - i
    quarter = 1 << (fraction - 2)
    u = (value & (quarter - 1)) - quarter
    k = _constant(_K, bits)
    x = shifted(u, i, bits) + (1 << (bits - 4))
    x2 = high(x, x, bits)
    x3, x4 = high(x2, x, bits), high(x2, x2, bits)
    t = shifted(high(shifted(x4, -2, bits) + x3, _constant(_SIXTH, bits), bits) + x2, -1, bits)
    r = k + high(k, x + t, bits)
    r = _saturated(r, bits) if bits == 16 else r
    steps = u - value
    for number, factor in enumerate(_FACTORS):
        step = number + _FIRST_STEP
        if step >= i:
            break
        r = np.where(steps >> (fraction + step) & 1, high(r, _constant(factor, bits), bits), r)
    if i > 5:
        r = np.where(value < -(1 << (fraction + 5)), 0, r)
    return np.where(value == 0, (1 << (bits - 1)) - 1, r)


def _newton(a: Any, bits: int) -> Ints:
    """Half of 1 / (1 + a), for a in 0 to 1 without integer bits; the result has two."""
    h = (np.asarray(a, np.int64) + (1 << (bits - 1))) >> 1  # (a + one) / 2, halves away from zero
    x = _constant(_RECIPROCAL[0], bits) + high(h, _constant(_RECIPROCAL[1], bits), bits)
    for _ in range(3):
        x = x + shifted(high(x, (1 << (bits - 3)) - high(h, x, bits), bits), 2, bits)
    return x


def recip(a: Any, bits: int) -> Ints:
    """1 / (1 + a) for a in 0 to 1 without integer bits."""
    return shifted(_newton(a, bits), 1, bits)


def ratio(a: Any, bits: int) -> Ints:
    """(1 - a) / (1 + a) for a in 0 to 1 without integer bits."""
    return shifted(_newton(a, bits) - (1 << (bits - 3)), 2, bits)


def logistic(a: Any, i: int, bits: int) -> Ints:
    """1 / (1 + exp(-a)); the result has no integer bits."""
    value = np.asarray(a, np.int64)
    positive = recip(exp(-np.abs(value), i, bits), bits)
    negative = (1 << (bits - 1)) - 1 - positive
    return np.where(value == 0, 1 << (bits - 2), np.where(value > 0, positive, negative))


def tanh(a: Any, i: int, bits: int) -> Ints:
    """The hyperbolic tangent; the result has no integer bits."""
    value = np.asarray(a, np.int64)
    size = ratio(exp(-np.abs(value), i + 1, bits), bits)  # the same bits with one integer bit more: doubled
    return np.where(value == 0, 0, np.where(value > 0, size, -size))
