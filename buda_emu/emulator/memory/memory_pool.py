"""Memory fresh from the system and memory that is used again: arrays that begin at a cache line."""

import mmap
import os
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

CACHE_LINE: Final = 64  # bytes; kernels are slower where vectors straddle two
LARGE_PAGE: Final = 2 << 20  # of the machines where there is more than one size
SMALL_PAGE: Final = 4 << 10  # smaller pieces come from the allocator
_SHEET_BYTES: Final = 4 * LARGE_PAGE  # mapped at once, for pieces smaller than a large page


class _Memory(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A subclass of ndarray: numpy then names the array made on it as base of that array's views, instead of this
    one."""


def address_of(array: NDArray[Any]) -> int:
    """Return the address at which an array begins; `ctypes.data` would take four times as long."""
    return array.__array_interface__["data"][0]


class _Sheet:
    """A stock of large pages from which pieces of memory are cut one after the other. The first access to a small page
    costs a page fault, which takes a virtual machine longer than reading a tile. A sheet stays until its last piece is
    gone."""

    def __init__(self) -> None:
        self._mapping: mmap.mmap | None = None
        self._at = self._end = 0
        self._lock = Lock()

    def cut(self, count: int) -> NDArray[np.float32]:
        """Return float32[count], at most a large page, with undefined contents, at the start of a cache line. Raises
        MemoryError."""
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
    """Map anonymous memory, and return it with the offset of its first large page, from which `size` bytes follow.
    Raises MemoryError."""
    try:
        mapping = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    # an address that nobody touches costs nothing, so the first large page may lie anywhere in the mapping
    first = -np.frombuffer(mapping, np.uint8).ctypes.data % LARGE_PAGE
    mapping.madvise(mmap.MADV_HUGEPAGE, first, size // LARGE_PAGE * LARGE_PAGE)
    return mapping, first


def fresh(count: int) -> NDArray[np.float32]:
    """Return float32[count] with undefined contents, in memory that no other array uses, at the start of a cache line.
    Arrays of a large page or more begin at one; only whole large pages are asked for, so that nothing is wasted at the
    end. Raises MemoryError."""
    size = 4 * count
    if size < SMALL_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        piece = _Memory(size + CACHE_LINE, np.uint8)
        return np.ndarray((count,), np.float32, piece, -address_of(piece) % CACHE_LINE)
    if size < LARGE_PAGE:
        return _SHEET.cut(count)
    mapping, first = _large_pages(size)
    return np.ndarray((count,), np.float32, mapping, first)


LEAST_BYTES: Final = SMALL_PAGE  # smaller pieces the allocator keeps by itself
SHARE_OF_MEMORY: Final = 4  # a quarter of the machine's memory is kept, at most


_FLOAT32: Final = np.dtype(np.float32).char  # to compare types themselves takes four times as long

_Piece: TypeAlias = tuple[int, str, NDArray[np.float32]]
"""A free piece: its number in the order in which pieces were given back, its user, and flat memory."""


def memory_of(array: NDArray[Any]) -> NDArray[np.float32] | None:
    """Return the whole array that `array` is a view of, or itself; None where that is not of float32 or not writable,
    so that a pool cannot use it again."""
    memory = array
    while type(base := memory.base) is np.ndarray:
        memory = base
    if memory.dtype.char == _FLOAT32 and memory.flags.writeable:
        return memory
    return None


class MemoryPool:
    """A pool of flat float32 arrays that nobody uses, up to `limit` bytes; those given back first are dropped first.
    Arrays below LEAST_BYTES are not kept, as the allocator does that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._fresh = fresh
        self._free: dict[int, list[_Piece]] = {}  # by size, none of them empty
        self._given = 0
        self._bytes = 0
        self._lock = Lock()

    def take(self, count: int, user: str = "") -> NDArray[np.float32]:
        """Return float32[count]: the smallest piece that fits and is not twice as large, else fresh memory. Raises
        MemoryError.

        Of several large pieces of one size the one that this user gave back is preferred: a user who touches only a
        part of it needs no other part cleared by the system."""
        if 4 * count < LEAST_BYTES:
            return self._fresh(count)
        with self._lock:
            size = count if count in self._free else self._nearest_size(count)
            if size:
                flat = self._remove(size, user)
                return flat if size == count else flat[:count]
        return self._fresh(count)

    def _nearest_size(self, count: int) -> int:
        """Return the smallest size of a piece in the pool that is from `count` to twice that; 0 where there is none."""
        return min((size for size in self._free if count <= size <= 2 * count), default=0)

    def _remove(self, size: int, user: str | None) -> NDArray[np.float32]:
        """Take a piece of that size out of the pool and return it: one that this user gave back, else the one given
        last; with None the one given first."""
        pieces = self._free[size]
        at = -1 if user is not None else 0
        if user and len(pieces) > 1 and 4 * size >= LARGE_PAGE:
            at = next((at for at in range(len(pieces) - 1, -1, -1) if pieces[at][1] == user), -1)
        _, _, flat = pieces.pop(at)
        if not pieces:
            del self._free[size]
        self._bytes -= flat.nbytes
        return flat

    def give(self, array: NDArray[Any], user: str = "") -> None:
        """Take back an array that `take` returned, or a view of it, which stands for all of it; nobody may use it any
        more. `user` names who gives it, and is preferred by `take`. Memory that was not made for float32, or is too
        small or large for the pool, is left to the system."""
        flat = memory_of(array)
        if flat is None or not LEAST_BYTES <= flat.nbytes <= self._limit:
            return
        if flat.ndim > 1:  # `take` did not make it
            flat = flat.reshape(-1)
        with self._lock:
            self._given += 1
            self._free.setdefault(flat.size, []).append((self._given, user, flat))
            self._bytes += flat.nbytes
            if self._bytes > self._limit:
                self._drop_oldest(self._limit)

    def shrink(self, byte_limit: int) -> None:
        """Keep at most `byte_limit` bytes of what is in the pool now, and give the rest to the system, the oldest
        first."""
        if self._bytes <= byte_limit:
            return
        with self._lock:
            self._drop_oldest(byte_limit)

    def _drop_oldest(self, byte_limit: int) -> None:
        """Drop the pieces given back first until at most `byte_limit` bytes are left."""
        while self._bytes > byte_limit:
            self._remove(min(self._free, key=lambda size: self._free[size][0][0]), None)

    def drop(self) -> int:
        """Give all free pieces back to the system, and return how many bytes they had."""
        with self._lock:
            self._free.clear()
            byte_count = self._bytes
            self._bytes = 0
        return byte_count


def _limit() -> int:
    """Return the bytes that the pool may keep: a share of the computer's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE_OF_MEMORY
    except (ValueError, OSError, AttributeError):  # not a POSIX system
        return 1 << 30


POOL: Final = MemoryPool(_limit())
"""The pool of this process: closed machines leave their memory here for the next one."""
