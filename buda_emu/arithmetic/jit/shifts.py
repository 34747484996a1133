"""Shifts of 32-bit integers by a distance that varies.

numba computes with integers of 64 bits, which LLVM narrows again where it can see that nothing is lost; of a shift by a
variable distance it cannot. These stay 32 bits wide, so that a vector holds twice as many.
"""

from typing import Any

import numpy as np


def shift_right(value: Any, distance: Any) -> Any:
    """Return the floor of value / 2^distance, both np.int32; distance 0 to 31."""
    return np.int32(int(value) >> int(distance))


def shift_left(value: Any, distance: Any) -> Any:
    """Return value * 2^distance, both np.int32, which must fit; distance 0 to 31."""
    return np.int32(int(value) << int(distance))
