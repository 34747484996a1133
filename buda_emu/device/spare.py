"""Memory that closed machines leave behind, for the next one of the same process.

Memory fresh from the system is cleared by it page by page, which can take longer than the work done on it. What a
machine frees is kept here up to a limit and handed out again. Contents are undefined, as of `numpy.empty`.
"""

import os
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES: Final = 1 << 20  # smaller pieces the allocator keeps by itself
SHARE_OF_MEMORY: Final = 8  # an eighth of the machine's memory is kept, at most


class SpareMemory:
    """Flat float32 arrays that nobody uses, the least recently freed dropped first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free: list[NDArray[np.float32]] = []
        self._bytes = 0
        self._lock = Lock()

    def take(self, count: int) -> NDArray[np.float32]:
        """float32[count]: the smallest that fits and is not twice as large, else fresh. Raises MemoryError."""
        if 4 * count >= LEAST_BYTES:
            with self._lock:
                fitting = [n for n, flat in enumerate(self._free) if count <= flat.size <= 2 * count]
                if fitting:
                    flat = self._free.pop(min(fitting, key=lambda n: self._free[n].size))
                    self._bytes -= flat.nbytes
                    return flat[:count]
        return np.empty(count, np.float32)

    def give(self, array: NDArray[np.float32]) -> None:
        """Take back an array of `take`, or any part of it that shows all of its memory; nobody may use it any more."""
        flat = array
        while isinstance(flat.base, np.ndarray):
            flat = flat.base
        if not LEAST_BYTES <= flat.nbytes <= self._limit:
            return
        with self._lock:
            self._free.append(flat)
            self._bytes += flat.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._free.pop(0).nbytes

    def drop(self) -> int:
        """Give everything to the system. The bytes that were kept."""
        with self._lock:
            kept, self._bytes = self._bytes, 0
            self._free.clear()
        return kept


def _limit() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE_OF_MEMORY
    except (ValueError, OSError, AttributeError):  # not a POSIX system
        return 1 << 30


SPARE: Final = SpareMemory(_limit())
"""Of this process."""
