"""Memory fresh from the system: it begins at a cache line, and lies in pages as large as the system has."""

import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CACHE_LINE: Final = 64  # bytes; kernels are slower where vectors straddle two
LARGE_PAGE: Final = 2 << 20  # of the machines where there is more than one size


class _Memory(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A class of its own: so numpy names the array made on it as base of that array's views, not this."""


def address_of(array: NDArray[Any]) -> int:
    """Where an array begins in memory: `ctypes.data`, which takes four times as long."""
    return array.__array_interface__["data"][0]


def fresh(count: int) -> NDArray[np.float32]:
    """float32[count] with undefined contents, in memory that is nobody else's.

    It begins at the start of a cache line, from one large page on at the start of one. Only whole large pages are asked
    for, so nothing is wasted at the end. Raises MemoryError.
    """
    size = 4 * count
    if size < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        piece = _Memory(size + CACHE_LINE, np.uint8)
        return np.ndarray((count,), np.float32, piece, -address_of(piece) % CACHE_LINE)
    try:
        mapping = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    # an address that nobody touches costs nothing, so the first large page may lie anywhere in the mapping
    first = -np.frombuffer(mapping, np.uint8).ctypes.data % LARGE_PAGE
    mapping.madvise(mmap.MADV_HUGEPAGE, first, size // LARGE_PAGE * LARGE_PAGE)
    return np.ndarray((count,), np.float32, mapping, first)
