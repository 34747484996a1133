"""What the tests of the C-library functions share: samples of all float32, digests of results, distances in ulps."""

import hashlib
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

DENSE = 65537  # a stride over the 2^32 bit patterns that changes their low and their high halves alike
SPARSE = 8388593

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


def sample(stride: int) -> NDArray[np.float32]:
    """Every `stride`-th bit pattern: both signs, all exponents, subnormal numbers, infinities and NaNs."""
    return np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def digest(function: Callable[[Any], Any], stride: int) -> str:
    """SHA-256 of the function's results on the sample, as little-endian words; NaNs with their sign and payload."""
    results = np.array([function(x) for x in sample(stride)], np.float32)
    return hashlib.sha256(results.astype("<f4").tobytes()).hexdigest()


def words(function: Callable[[Any], Any], *values: Any) -> list[str]:
    """The bits of the results, in hexadecimal."""
    return [f"{np.float32(function(np.float32(value))).view(np.uint32):08x}" for value in values]


def ulps(result: Any, exact: Decimal) -> float:
    """Distance of a finite result from the exact value, in float32 spacings; compiled code gives a Python float."""
    spacing = abs(Decimal(float(np.spacing(np.float32(result)))))
    return float(Context(prec=60).subtract(Decimal(float(result)), exact).copy_abs() / spacing)
