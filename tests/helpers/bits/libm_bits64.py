"""`libm_bits` for functions of double precision."""

import hashlib
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from math import ulp
from typing import Any

import numpy as np

MIDDLE = 1048573  # a stride for `libm_bits.sample`: 4097 patterns, as plain Python is slow in double precision


def digest64(function: Callable[[Any], Any], arguments: Iterable[np.float64]) -> str:
    """SHA-256 of the function's results, as little-endian words; NaNs with their sign and payload."""
    results = np.array([function(x) for x in arguments], np.float64)
    return hashlib.sha256(results.astype("<f8").tobytes()).hexdigest()


def words64(function: Callable[[Any], Any], *values: Any) -> list[str]:
    """The bits of the results, in hexadecimal."""
    return [f"{np.float64(function(np.float64(value))).view(np.uint64):016x}" for value in values]


def ulps64(result: Any, exact: Decimal) -> float:
    """Distance of a finite result from the exact value, in float64 spacings."""
    return float(Context(prec=60).subtract(Decimal(float(result)), exact).copy_abs() / Decimal(ulp(float(result))))
