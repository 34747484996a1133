"""Memory fresh from the system, in pages as large as it has."""

import mmap
from typing import Final

import numpy as np
from numpy.typing import NDArray

LARGE_PAGE: Final = 2 << 20  # of the machines where there is more than one size


def fresh(count: int) -> NDArray[np.float32]:
    """float32[count] with undefined contents. From one large page on it begins at the start of one.

    Only whole large pages are asked for, so nothing is wasted at the end. Raises MemoryError.
    """
    size = 4 * count
    if size < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(count, np.float32)
    try:
        mapping = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    # an address that nobody touches costs nothing, so the first large page may lie anywhere in the mapping
    first = -np.frombuffer(mapping, np.uint8).ctypes.data % LARGE_PAGE
    mapping.madvise(mmap.MADV_HUGEPAGE, first, size // LARGE_PAGE * LARGE_PAGE)
    return np.ndarray((count,), np.float32, mapping, first)
