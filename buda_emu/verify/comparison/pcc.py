"""Pearson's correlation as the vendor's comparison computes and judges it (NETLIST 5.3, PCC).

All arithmetic is in float64. Sums run element after element, as a plain loop would, so that a verdict near the bound
does not depend on the way of summing.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.records import dataclass

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FLT_MAX: Final = float(np.finfo(np.float32).max)
LIMIT: Final = 1.0000001  # of |pcc|, and of ratios that count as rounding
CONSTANT_DEVIATION: Final = 1e-5  # in place of a standard deviation of zero


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a PCC is judged by."""

    check_pcc: float
    atol: float
    rtol: float


def cleaned(values: Floats, *, nan_is_zero: bool) -> Floats:
    """Infinities become the largest float32; NaN becomes 0 where the flat comparison looks."""
    result = np.clip(values, -FLT_MAX, FLT_MAX)
    return np.where(np.isnan(result), 0.0, result) if nan_is_zero else result


def pcc(a: Floats, b: Floats, count: int) -> tuple[Floats, Flags]:
    """The coefficient of each row of a and b [rows, elements], and where all three rounding cases fired.

    `count` divides the sums: the number of elements, or more where the vendor's loops leave some out.
    """
    value, rounded, _, _ = _correlation(a, b, count)
    return value, rounded


def _correlation(a: Floats, b: Floats, count: int) -> tuple[Floats, Flags, Floats, Floats]:
    """`pcc`, and the means of a and b."""
    with np.errstate(all="ignore"):
        mean_a, mean_b = _sum(a) / count, _sum(b) / count
        var_a, rounded_a = _not_negative(_sum(a * a) / count, mean_a * mean_a)
        var_b, rounded_b = _not_negative(_sum(b * b) / count, mean_b * mean_b)
        cov, rounded_cov = _not_negative(_sum(a * b) / count, mean_a * mean_b)
        value = cov / (_deviation(var_a) * _deviation(var_b))
    return value, rounded_a & rounded_b & rounded_cov, mean_a, mean_b


def passes(a: Floats, b: Floats, count: int, bounds: Bounds, constant: Flags, *, signed: bool) -> tuple[Flags, Floats]:
    """The verdict on each row, and the coefficient that it rests on.

    `constant`: rows in which both inputs are constant. `signed`: the tolerance of constants follows the sign of the
    mean of b, as the vendor's does; else its magnitude.
    """
    with np.errstate(all="ignore"):
        value, rounded, mean_a, mean_b = _correlation(a, b, count)
        same_sign = np.signbit(value) == np.signbit(bounds.check_pcc)
        correlated = (np.abs(value) >= abs(bounds.check_pcc)) & same_sign & (np.abs(value) <= LIMIT)
        reference = mean_b if signed else np.abs(mean_b)
        same_constant = constant & (np.abs(mean_a - mean_b) <= bounds.atol + bounds.rtol * reference)
    counted_as_one = same_constant | rounded
    value = np.where(counted_as_one & ~correlated, 1.0, value)
    return correlated | counted_as_one | (bounds.check_pcc == 0), value


def _sum(values: Floats) -> Floats:
    """Of each row, one element after the other."""
    return np.add.accumulate(values, axis=-1)[..., -1]


def _not_negative(mean_of_product: Floats, product_of_means: Floats) -> tuple[Floats, Flags]:
    """E[xy] - E[x]E[y], and where a negative one is a matter of rounding, which makes it zero."""
    difference = mean_of_product - product_of_means
    ratio = product_of_means / mean_of_product
    rounding = (difference < 0) & (ratio >= 1) & (ratio <= LIMIT)
    return np.where(rounding, 0.0, difference), rounding


def _deviation(variance: Floats) -> Floats:
    deviation = np.sqrt(variance)
    return np.where(deviation == 0, CONSTANT_DEVIATION, deviation)
