"""Memory that is a file: which arrays lie in one, and how their pages are given back once they were read.

Pages of a file that a process has looked at count as its own until somebody needs the room. Who reads many gigabytes
once gives them back at once (docs/run/memory.md). Elsewhere than on Linux nothing is known of an array's memory, and it
counts as memory of its own.
"""

import ctypes
import mmap
import os
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.records import dataclass

_MAPS: Final = Path("/proc/self/maps")
_PAGE_OUT: Final = 21
"""MADV_PAGEOUT of Linux 5.4: pages that were written to stay."""
_NO_FILES: Final = ("/dev/", "/memfd:", "[")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Bytes [start, stop) of this process's memory that are those of a file. `shared`: whatever is written to them is
    written to the file, so that they can be dropped at any time."""

    start: int
    stop: int
    shared: bool
    path: str


class FileMappings:
    """The files that are in this process's memory now."""

    def __init__(self) -> None:
        self._found = list(_mappings())
        self._starts = [item.start for item in self._found]

    def of(self, address: int, size: int) -> Mapping | None:
        """The one that holds so many bytes from there on."""
        place = bisect_right(self._starts, address) - 1
        found = self._found[place] if place >= 0 else None
        return found if found is not None and address + size <= found.stop else None


def _mappings() -> list[Mapping]:
    try:
        lines = _MAPS.read_text(errors="replace").splitlines()
    except OSError:
        return []
    found: list[Mapping] = []
    for line in lines:
        parts = line.split(None, 5)
        if len(parts) < 6 or parts[5].startswith(_NO_FILES) or parts[5].endswith("(deleted)"):
            continue
        start, _, stop = parts[0].partition("-")
        found.append(Mapping(int(start, 16), int(stop, 16), parts[1].endswith("s"), parts[5]))
    return found


def map_bytes(stream: IO[bytes], offset: int, size: int) -> NDArray[np.uint8]:
    """So many bytes of a file from an offset on, without reading them: uint8[size], not writable. The stream may be
    closed. Raises OSError, ValueError where the file is shorter."""
    begin = offset - offset % mmap.ALLOCATIONGRANULARITY
    mapping = mmap.mmap(stream.fileno(), offset - begin + size, offset=begin, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, np.uint8, size, offset - begin)


def giving_back(array: NDArray[Any], *, shared: bool = True) -> Callable[[], None]:
    """A function that gives the pages of an array in a file back to the system: its contents stay as they are."""
    low, high = np.lib.array_utils.byte_bounds(array)
    page = mmap.PAGESIZE
    start, size = -(-low // page) * page, 0
    size = high // page * page - start
    advice = mmap.MADV_DONTNEED if shared and hasattr(mmap, "MADV_DONTNEED") else _PAGE_OUT
    if size <= 0 or os.name != "posix" or not _MAPS.exists():
        return lambda: None
    call = ctypes.CDLL(None).madvise

    def give_back() -> None:
        _ = array  # whose memory it is
        call(ctypes.c_void_p(start), ctypes.c_size_t(size), advice)

    return give_back
