"""Fused multiply-add: a * b + c with one rounding, in kernels and in numpy.

In a kernel `fma` is the machine's instruction (LLVM's `llvm.fma`, an exact call where a machine has none); called from
Python it is computed exactly by other means. `fma_f32` is the same for arrays, from Python only.
"""

from math import isfinite, isinf, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c rounded once. All three are np.float32 or all three float64 (a Python float is one), and so is
    the result."""
    if type(a) is np.float32:
        return fma_f32(a, b, c)[()]
    return np.float64(_fma_f64(float(a), float(b), float(c)))


def fma_f32(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[np.float32]:
    """Return a * b + c of float32, element by element and rounded once to float32; the arguments broadcast.

    The product of two float32 is exact in float64. Its sum with c is rounded to odd there, which keeps enough of the
    exact value for the second rounding, to float32, to come out as if it were the only one.
    """
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)
        addend = np.asarray(c, dtype=np.float64)
        total = np.add(product, addend)
        # What the rounded total lacks (Knuth's two-sum: exact for any order of magnitudes).
        part = total - product
        lost = np.asarray((product - (total - part)) + (addend - part))
        bits = np.asarray(total).view(np.int64)
        inexact = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
        outward = (lost > 0) == (total > 0)  # the exact value lies further from zero than the total
        odd = np.where(inexact, np.where(outward, bits + 1, bits - 1), bits)
        return np.asarray(odd.view(np.float64).astype(np.float32))


def _fma_f64(a: float, b: float, c: float) -> float:
    """Return a * b + c of Python floats, rounded once by way of exact fractions; an infinity for results too large."""
    if not (isfinite(a) and isfinite(b)) or isnan(c):
        return a * b + c
    if isinf(c):
        return c
    from fractions import Fraction  # only where a kernel is called in Python

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        # a * b may only have underflowed to zero; then it was not zero and c, its opposite, is not zero either.
        if a == 0 or b == 0:
            return a * b + c
        return 0.0
    try:
        return float(exact)
    except OverflowError:
        if exact > 0:
            return float("inf")
        return float("-inf")
