"""Memory that nobody uses at the moment, handed out again rather than given to the system.

Memory fresh from the system is cleared by it page by page, which can take longer than the work done on it. Contents are
undefined, as of `numpy.empty`.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.device import pages

LEAST_BYTES: Final = 1 << 20  # smaller pieces the allocator keeps by itself
SHARE_OF_MEMORY: Final = 4  # a quarter of the machine's memory is kept, at most


class SpareMemory:
    """Flat float32 arrays that nobody uses, up to `limit` bytes, those given back first dropped first.

    `least`: bytes from which an array is kept; `fresh`: where a new one comes from.
    """

    def __init__(
        self, limit: int, least: int = LEAST_BYTES, fresh: Callable[[int], NDArray[np.float32]] | None = None
    ) -> None:
        self._limit = limit
        self._least = least
        self._fresh = fresh or pages.fresh
        self._free: list[NDArray[np.float32]] = []
        self._bytes = 0
        self._lock = Lock()

    def take(self, count: int) -> NDArray[np.float32]:
        """float32[count]: the smallest that fits and is not twice as large, else fresh. Raises MemoryError."""
        if 4 * count >= self._least:
            with self._lock:
                best = -1
                for n, flat in enumerate(self._free):
                    if count <= flat.size <= 2 * count and (best < 0 or flat.size < self._free[best].size):
                        best = n
                if best >= 0:
                    flat = self._free.pop(best)
                    self._bytes -= flat.nbytes
                    return flat[:count]
        return self._fresh(count)

    def give(self, array: NDArray[np.float32]) -> None:
        """Take back an array of `take`, or any part of it that shows all of its memory; nobody may use it any more."""
        flat = array
        while isinstance(flat.base, np.ndarray):
            flat = flat.base
        if not self._least <= flat.nbytes <= self._limit:
            return
        with self._lock:
            self._free.append(flat)
            self._bytes += flat.nbytes
            while self._bytes > self._limit:
                self._bytes -= self._free.pop(0).nbytes

    def drop(self, into: "SpareMemory | None" = None) -> int:
        """Give everything to the system, or to another. The bytes that were kept."""
        with self._lock:
            dropped, self._free = self._free, []
            kept, self._bytes = self._bytes, 0
        if into is not None:
            for flat in dropped:
                into.give(flat)
        return kept


def _limit() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE_OF_MEMORY
    except (ValueError, OSError, AttributeError):  # not a POSIX system
        return 1 << 30


SPARE: Final = SpareMemory(_limit())
"""Of this process: what closed machines leave behind for the next one."""
