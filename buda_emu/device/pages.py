"""Memory fresh from the system: it begins at a cache line, and lies in pages as large as the system has."""

import mmap
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CACHE_LINE: Final = 64  # bytes; kernels are slower where vectors straddle two
LARGE_PAGE: Final = 2 << 20  # of the machines where there is more than one size
SMALL_PAGE: Final = 4 << 10  # smaller pieces come from the allocator
_SHEET_BYTES: Final = 4 * LARGE_PAGE


class _Memory(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A class of its own: so numpy names the array made on it as base of that array's views, not this."""


def address_of(array: NDArray[Any]) -> int:
    """Where an array begins in memory: `ctypes.data`, which takes four times as long."""
    return array.__array_interface__["data"][0]


class _Sheet:
    """Large pages that pieces smaller than one are cut from, one after the other.

    Every small page that a kernel comes to has to be found first, which takes a virtual machine longer than reading the
    tile that lies there. The piece that lives longest keeps the sheet that it was cut from.
    """

    def __init__(self) -> None:
        self._mapping: mmap.mmap | None = None
        self._at = self._end = 0
        self._lock = Lock()

    def cut(self, count: int) -> NDArray[np.float32]:
        """float32[count] with undefined contents, at the start of a cache line."""
        size = -(-4 * count // CACHE_LINE) * CACHE_LINE
        with self._lock:
            if self._mapping is None or self._at + size > self._end:
                self._mapping, self._at = _large_pages(_SHEET_BYTES)
                self._end = self._at + _SHEET_BYTES
            piece = np.ndarray((count,), np.float32, self._mapping, self._at)
            self._at += size
        return piece


_SHEET: Final = _Sheet()


def _large_pages(size: int) -> tuple[mmap.mmap, int]:
    """A mapping, and where in it the first large page begins; so many bytes from there on, whole pages of them large.

    Raises MemoryError.
    """
    try:
        mapping = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    # an address that nobody touches costs nothing, so the first large page may lie anywhere in the mapping
    first = -np.frombuffer(mapping, np.uint8).ctypes.data % LARGE_PAGE
    mapping.madvise(mmap.MADV_HUGEPAGE, first, size // LARGE_PAGE * LARGE_PAGE)
    return mapping, first


def fresh(count: int) -> NDArray[np.float32]:
    """float32[count] with undefined contents, in memory that is nobody else's.

    It begins at the start of a cache line, from one large page on at the start of one. Only whole large pages are asked
    for, so nothing is wasted at the end. Raises MemoryError.
    """
    size = 4 * count
    if size < SMALL_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        piece = _Memory(size + CACHE_LINE, np.uint8)
        return np.ndarray((count,), np.float32, piece, -address_of(piece) % CACHE_LINE)
    if size < LARGE_PAGE:
        return _SHEET.cut(count)
    mapping, first = _large_pages(size)
    return np.ndarray((count,), np.float32, mapping, first)
