"""A part of an array, for kernels: numba makes over a hundred LLVM instructions of `array[first : first + size]`."""

from typing import Any


def part_of(array: Any, first: int, size: int) -> Any:
    """Return `size` elements, from `first` on, of an array of one axis that has them: neither is less than 0."""
    return array[first : first + size]
