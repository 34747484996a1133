"""Functions of float64 arrays, made of additions, products, quotients and roots alone, so that bits are the same on
every machine. Errors are a few units in the last place of a double, which do not show in a half or a float."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2: Final = float.fromhex("0x1.71547652b82fep+0")
# pi/2 in three parts: products of the first two with integers below 2^20 are exact
_HALF_PI: Final = (
    float.fromhex("0x1.921fb54400000p+0"),
    float.fromhex("0x1.0b4611a600000p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)
_PI: Final = float.fromhex("0x1.921fb54442d18p+1")
_TAN_EIGHTH: Final = 0.41421356237309503


def _series(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Return the value of a polynomial whose coefficients begin with the constant."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _factorials(start: int, step: int, count: int, signs: int = 1) -> tuple[float, ...]:
    """Return the coefficients 1/start!, signs/(start + step)!, ... of a power series."""
    coefficients: list[float] = []
    product = 1
    at = 1
    for n in range(count):
        while at <= start + n * step:
            product *= at
            at += 1
        coefficients.append(float(signs**n) / product)
    return tuple(coefficients)


_EXP: Final = _factorials(0, 1, 14)
_SIN: Final = _factorials(1, 2, 9, -1)
_COS: Final = _factorials(0, 2, 9, -1)
_SINH: Final = _factorials(1, 2, 10)
_LOG: Final = tuple(2.0 / (2 * n + 1) for n in range(11))
_ATAN: Final = tuple((-1.0) ** n / (2 * n + 1) for n in range(24))


def exp(x: Floats) -> Floats:
    """Return e to the power x."""
    inside = np.clip(np.nan_to_num(x), -746.0, 710.0)
    steps = np.rint(inside * _PER_LN2)
    rest = (inside - steps * _LN2_HIGH) - steps * _LN2_LOW
    # in two steps, so that results below the normal range are rounded once
    half = np.floor(steps / 2)
    result = np.ldexp(np.ldexp(_series(rest, _EXP), half.astype(np.int64)), (steps - half).astype(np.int64))
    return np.where(np.isnan(x), x, np.where(x > 709.9, np.inf, np.where(x < -745.5, 0.0, result)))


def log(x: Floats) -> Floats:
    """Return the natural logarithm; NaN below 0."""
    mantissa, exponent = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, mantissa * 2, mantissa)
    exponent = exponent - low
    part = (mantissa - 1) / (mantissa + 1)
    result = exponent * _LN2_HIGH + (part * _series(part * part, _LOG) + exponent * _LN2_LOW)
    special = np.where(x == 0, -np.inf, np.where(x < 0, np.nan, x))
    return np.where((x > 0) & np.isfinite(x), result, special)


def sin_cos(x: Floats) -> tuple[Floats, Floats]:
    """Return sine and cosine. They have full precision up to about a million; beyond, the error grows with x."""
    inside = np.where(np.isfinite(x), x, 0.0)
    turns = np.rint(inside / _HALF_PI[0])
    rest = ((inside - turns * _HALF_PI[0]) - turns * _HALF_PI[1]) - turns * _HALF_PI[2]
    square = rest * rest
    sine = rest * _series(square, _SIN)
    cosine = _series(square, _COS)
    quarter = np.mod(turns, 4)
    odd = np.mod(quarter, 2) == 1
    first = np.where(odd, cosine, sine)
    other = np.where(odd, sine, cosine)
    bad = ~np.isfinite(x)
    return (
        np.where(bad, np.nan, np.where(quarter >= 2, -first, first)),
        np.where(bad, np.nan, np.where((quarter == 1) | (quarter == 2), -other, other)),
    )


def sinh(x: Floats) -> Floats:
    """Return the hyperbolic sine."""
    small = np.clip(np.nan_to_num(x), -1.0, 1.0)
    near = small * _series(small * small, _SINH)
    half = exp(np.abs(x) / 2)  # squared, so that nothing overflows early
    far = np.copysign(half * (half / 2) - 0.5 / (half * half), x)
    return np.where(np.abs(x) < 1, near, far)


def cosh(x: Floats) -> Floats:
    """Return the hyperbolic cosine."""
    half = exp(np.abs(x) / 2)
    return half * (half / 2) + 0.5 / (half * half)


def tanh(x: Floats) -> Floats:
    """Return the hyperbolic tangent."""
    small = np.clip(np.nan_to_num(x), -1.0, 1.0)
    near = small * _series(small * small, _SINH) / cosh(small)
    far = np.copysign(1 - 2 / (exp(2 * np.abs(x)) + 1), x)
    return np.where(np.abs(x) < 1, near, far)


def atan(x: Floats) -> Floats:
    """Return the arc tangent."""
    size = np.abs(x)
    inverted = size > 1
    part = np.where(inverted, 1 / np.where(inverted, size, 1.0), size)
    shifted = part > _TAN_EIGHTH
    part = np.where(shifted, (part - 1) / (part + 1), part)
    result = part * _series(part * part, _ATAN) + np.where(shifted, _PI / 4, 0.0)
    return np.copysign(np.where(inverted, _PI / 2 - result, result), x)


def asin(x: Floats) -> Floats:
    """Return the arc sine; NaN outside of -1 to 1."""
    return np.where(np.abs(x) == 1, np.copysign(_PI / 2, x), atan(x / np.sqrt((1 - x) * (1 + x))))


def acos(x: Floats) -> Floats:
    """Return the arc cosine; NaN outside of -1 to 1."""
    return np.where(x == -1, _PI, 2 * atan(np.sqrt((1 - x) / (1 + x))))


def asinh(x: Floats) -> Floats:
    """Return the inverse hyperbolic sine."""
    size = np.abs(x)
    far = log(size + np.sqrt(size * size + 1))
    square = size * size
    near = size * (1 - square / 6 + 3 * square * square / 40)
    return np.copysign(np.where(size < 1e-3, near, far), x)


def acosh(x: Floats) -> Floats:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    return np.where(x < 1, np.nan, log(x + np.sqrt(x * x - 1)))


def atanh(x: Floats) -> Floats:
    """Return the inverse hyperbolic tangent; NaN outside of -1 to 1."""
    square = x * x
    near = x * (1 + square / 3 + square * square / 5)
    return np.where(np.abs(x) < 1e-3, near, log((1 + x) / (1 - x)) / 2)


def erf(x: Floats) -> Floats:
    """Return the error function, by a series of positive terms up to 3 and by a continued fraction beyond."""
    size = np.minimum(np.where(np.isnan(x), 0.0, np.abs(x)), 6.5)
    square = size * size
    near_square = np.minimum(square, 9.0)
    term = np.ones_like(size)
    total = np.ones_like(size)
    for n in range(1, 70):
        term = term * (2 * near_square / (2 * n + 1))
        total = total + term
    bell = exp(-square) * (2 / np.sqrt(_PI))
    fraction = np.zeros_like(size)
    far_size = np.maximum(size, 3.0)
    for n in range(40, 0, -1):
        fraction = (n / 2) / (far_size + fraction)
    far = 1 - bell / (2 * (far_size + fraction))
    near: Floats = size * bell * total
    return np.where(np.isnan(x), x, np.copysign(np.where(size < 3, near, far), x))


def power(x: Floats, y: Floats) -> Floats:
    """Return x to the power y; whole exponents up to 64 by multiplication, so that whole results are exact."""
    x, y = np.broadcast_arrays(x, y)
    integral = np.isfinite(y) & (np.rint(y) == y)
    few = integral & (np.abs(y) <= 64)
    count = np.where(few, np.abs(y), 0).astype(np.int64)
    product = np.ones_like(x)
    base = x.astype(np.float64)
    for bit in range(7):
        product = np.where(count >> bit & 1 == 1, product * base, product)
        base = base * base
    multiplied = np.where(y < 0, 1 / product, product)
    size = exp(y * log(np.abs(x)))
    size = np.where(y == 0, 1.0, np.where(x == 0, np.where(y < 0, np.inf, 0.0), size))
    odd = integral & (np.mod(y, 2) == 1)
    general = np.where(x < 0, np.where(integral, np.where(odd, -size, size), np.nan), size)
    return np.where(few, multiplied, general)
