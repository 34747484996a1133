"""Operations on arrays and integers, for kernels, of which numba itself makes long or slow code. Their LLVM code is in
`intrinsics`."""

from typing import Any

import numpy as np


def part_of(array: Any, first: int, size: int) -> Any:
    """Return a view of elements first .. first + size - 1 of an array of one axis, which has to have them: machine code
    does not test that. numba makes over a hundred LLVM instructions of `array[first : first + size]`."""
    return array[first : first + size]


# numba computes with integers of 64 bits, which LLVM narrows again where it can see that nothing is lost; of a shift by
# a variable distance it cannot. These shifts stay 32 bits wide, so that a vector holds twice as many.
def shift_right(value: Any, distance: Any) -> Any:
    """Return the floor of value / 2^distance, both np.int32; distance 0 to 31."""
    return np.int32(int(value) >> int(distance))


def shift_left(value: Any, distance: Any) -> Any:
    """Return value * 2^distance, both np.int32, which must fit; distance 0 to 31."""
    return np.int32(int(value) << int(distance))
