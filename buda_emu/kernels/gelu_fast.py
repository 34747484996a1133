"""gelu and its derivative by a short way that knows where it may be trusted.

Both are the float32 nearest to a double that the definition (`kernels.transcendental`) works out in many steps. Here
two doubles that enclose that one are worked out in few. Where both round to the same float32, so does the definition's;
elsewhere, once or twice in 10,000 numbers, the result is a NaN: the caller then asks the definition. There are no
branches, so that a loop becomes vector code. Tried on all 2^32 float32: no result differs.

Why they enclose it: e^v is the Taylor series of e^r to the 11th power, wrong by less than 2^-46, all else are few
roundings of 2^-53, and MARGIN is more than these together. What the definition loses where tanh is near -1 is lost
here, too: 1 + tanh is 1 - (1 - d), of a small d that both know well, so its ends are rounded as the definition's. And
sums, products and roundings keep the order of what they are made of.
"""

from math import factorial
from typing import Final

import numpy as np

from buda_emu.kernels.fma import fma
from buda_emu.kernels.jit import helper

__all__ = ["GELU_SCALE", "gelu_derivative_or_nan", "gelu_or_nan"]

MARGIN: Final = 2.0**-40  # relative, of 1 + tanh and of the bell

GELU_SCALE: Final = float.fromhex("0x1.9884533d4365p-1")  # sqrt(2 / pi)
_POWER_SCALE: Final = -2 * GELU_SCALE
_LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_ROUNDER: Final = 1.5 * 2.0**52
_BIAS: Final = 1023
_DEGREE: Final = 11
_SERIES: Final = tuple(1 / factorial(k) for k in range(_DEGREE + 1))
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = _SERIES[2:]
_LEAST_POWER: Final = -60.0  # 1 less 2 e^-60 is 1
_LEAST_BELL: Final = -700.0  # from here on down x e^.. is the zero of its sign
_NO_BELL: Final = -745.0  # about here e^.. becomes 0 in the definition


@helper
def gelu_or_nan(x: np.float32) -> np.float32:
    """gelu, or NaN."""
    wide = np.float64(x)
    low, high = _one_plus_tanh(wide)
    one, other = np.float32(0.5 * wide * low), np.float32(0.5 * wide * high)
    return one if one == other else np.float32(np.nan)


@helper
def gelu_derivative_or_nan(x: np.float32) -> np.float32:
    """The derivative of gelu, or NaN."""
    wide = np.float64(x)
    half = -0.5 * (wide * wide)
    bell = _exp(np.float64(half if half > _LEAST_BELL else _LEAST_BELL))
    slope = wide * (bell if half > _NO_BELL else 0.0) * (0.5 * GELU_SCALE)
    margin = abs(slope) * MARGIN
    low, high = _one_plus_tanh(wide)
    one, other = np.float32(0.5 * low + (slope - margin)), np.float32(0.5 * high + (slope + margin))
    return one if (one == other) & (abs(half - _NO_BELL) > 1.0) else np.float32(np.nan)


@helper
def _one_plus_tanh(x: np.float64) -> tuple[float, float]:
    """Two numbers that enclose what the definition has for 1 plus the tangent that gelu takes, tanh u: 2 / (1 + p),
    where p is e to the power -2 |u|, or 2 p / (1 + p) where x is below 0."""
    v = _POWER_SCALE * abs(x + 0.044715 * (x * x * x))  # that of |x|: below 0
    p = _exp(np.float64(v if v > _LEAST_POWER else _LEAST_POWER))
    d = (2.0 if x > 0.0 else 2.0 * p) / (1.0 + p)
    return 1.0 - (1.0 - d * (1.0 - MARGIN)), 1.0 - (1.0 - d * (1.0 + MARGIN))


@helper
def _exp(v: np.float64) -> np.float64:
    """e^v for -700 <= v <= 700."""
    rounded = np.float64(fma(v, _LOG2_E, _ROUNDER + _BIAS))
    n = rounded - (_ROUNDER + _BIAS)
    r = fma(n, -_LN2_LOW, fma(n, -_LN2_HIGH, v))
    r2 = r * r
    r4 = r2 * r2
    # in pairs, so that the processor may work on several at once
    a = fma(fma(_C3, r, _C2), r2, 1.0 + r)
    b = fma(fma(_C7, r, _C6), r2, fma(_C5, r, _C4))
    c = fma(fma(_C11, r, _C10), r2, fma(_C9, r, _C8))
    p = fma(fma(c, r4, b), r4, a)
    return p * np.int64(rounded.view(np.int64) << 52).view(np.float64)
