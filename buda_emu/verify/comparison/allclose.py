"""Which elements of two tensors are close (NETLIST 5.3, allclose)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEAR_INFINITY = 2.0**126
"""A finite value of at least this magnitude matches an infinity of its sign."""


def close(a: Floats, b: Floats, atol: float, rtol: float) -> Flags:
    """Element by element: |a - b| <= atol + rtol * max(|a|, |b|), in float64 (the elements are float32 or integers).

    Two NaN match, one does not; an infinity matches itself and finite values of its sign near the end of float32.
    """
    with np.errstate(all="ignore"):
        size_a, size_b = np.abs(a), np.abs(b)
        result: Flags = np.abs(a - b) <= atol + rtol * np.maximum(size_a, size_b)
        special = ~(np.isfinite(a) & np.isfinite(b))
        if special.any():
            x, y = a[special], b[special]
            infinite = np.isinf(x) | np.isinf(y)
            one_sign = np.signbit(x) == np.signbit(y)
            both_large = np.minimum(size_a[special], size_b[special]) >= NEAR_INFINITY
            result[special] = np.where(infinite, (x == y) | (one_sign & both_large), np.isnan(x) & np.isnan(y))
    return result


def equal(a: Floats, b: Floats) -> Flags:
    """Element by element: the same value, where NaN equals NaN."""
    return (a == b) | (np.isnan(a) & np.isnan(b))
