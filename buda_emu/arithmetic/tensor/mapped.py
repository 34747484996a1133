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

from buda_emu.arithmetic.formats.codecs import PACKED_AS
from buda_emu.arithmetic.formats.packing import unpack_tiles
from buda_emu.arithmetic.tensor.boxes import Box
from buda_emu.arithmetic.tensor.layout import TILE_SIDE, EntryLayout, tile_order, untilize
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.spec.blocking import Blocking
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.records import dataclass

_MAPS: Final = Path("/proc/self/maps")
_PAGE_OUT: Final = 21
"""MADV_PAGEOUT of Linux 5.4: pages that were written to stay."""
_NO_FILES: Final = ("/dev/", "/memfd:", "[")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Bytes [start, stop) of this process's memory that are those of the file `path`. `shared`: whatever is written to
    them is written to the file, so that they can be dropped from memory at any time."""

    start: int
    stop: int
    shared: bool
    path: str


class FileMappings:
    """The files that were mapped into this process's memory when the object was made; none on systems other than
    Linux."""

    def __init__(self) -> None:
        self._mappings = list(_read_file_mappings())
        self._starts = [mapping.start for mapping in self._mappings]

    def of(self, address: int, size: int) -> Mapping | None:
        """Return the mapping that contains all `size` bytes from the address on; None where no file does."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        mapping = self._mappings[place]
        if address + size > mapping.stop:
            return None
        return mapping


def _read_file_mappings() -> list[Mapping]:
    """Return the file mappings of this process in the order of addresses, as Linux lists them; an empty list on other
    systems."""
    try:
        lines = _MAPS.read_text(errors="replace").splitlines()
    except OSError:
        return []
    mappings: list[Mapping] = []
    for line in lines:
        parts = line.split(None, 5)
        if len(parts) < 6 or parts[5].startswith(_NO_FILES) or parts[5].endswith("(deleted)"):
            continue
        start, _, stop = parts[0].partition("-")
        mappings.append(Mapping(int(start, 16), int(stop, 16), parts[1].endswith("s"), parts[5]))
    return mappings


def map_bytes(stream: IO[bytes], offset: int, size: int) -> NDArray[np.uint8]:
    """Map `size` bytes of a file from an offset on, without reading them, as uint8[size] that is not writable. The
    stream may be closed afterwards. Raises OSError, and ValueError where the file is shorter."""
    begin = offset - offset % mmap.ALLOCATIONGRANULARITY
    mapping = mmap.mmap(stream.fileno(), offset - begin + size, offset=begin, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, np.uint8, size, offset - begin)


def page_releaser(array: NDArray[Any], *, shared: bool = True) -> Callable[[], None]:
    """Return a function that gives the pages of an array in a file back to the system; the array's contents stay as
    they are. `shared`: the mapping is shared with the file (`Mapping`), so that pages may be dropped at once; those of
    a private one are only paged out. Off Linux, and for less than a page, the function does nothing."""
    low, high = np.lib.array_utils.byte_bounds(array)
    page = mmap.PAGESIZE
    start = -(-low // page) * page
    size = high // page * page - start
    advice = _PAGE_OUT
    if shared and hasattr(mmap, "MADV_DONTNEED"):
        advice = mmap.MADV_DONTNEED
    if size <= 0 or os.name != "posix" or not _MAPS.exists():
        return lambda: None
    call = ctypes.CDLL(None).madvise

    def give_back() -> None:
        """Give the pages back; they are read from the file again when they are next used."""
        _ = array  # keeps its memory alive
        call(ctypes.c_void_p(start), ctypes.c_size_t(size), advice)

    return give_back


def pushed_layout(df: str, blocking: Blocking, alignment: int) -> EntryLayout:
    """Return the layout of packed tiles whose values become the same bytes again when they are pushed into a queue of
    the format `df`: tilized, in the format that the packer takes for it (Lf8 for Fp8_e4m3, FORMATS 3.6)."""
    return EntryLayout(PACKED_AS.get(df, df), blocking, "tilized", alignment)


def packed_tiles(
    data: NDArray[np.uint8],
    layout: EntryLayout,
    origin: str,
    check: Callable[[], None] = lambda: None,
    error: Callable[[str], BudaError] = HostError,
) -> Referenced:
    """Return packed tiles (LAYOUT 3.1) as a reference to float32 [entries, t, rows, cols] that are unpacked only when
    they are read.

    `data` are their bytes uint8[size], in which all entries of a core follow each other; raw formats, which hold words
    and no numbers, are not allowed. `check` is called before and after a read and raises if the file behind `data` has
    changed; a read raises error(message) for tiles whose headers do not state their size.
    """
    blocking = layout.blocking
    order = tile_order(blocking)
    t, rows, columns = blocking.shape
    height, width = blocking.tile_dim
    places = np.empty(order.size, np.int64)
    places[order.reshape(-1)] = np.arange(order.size)
    places = places.reshape(t, rows, columns)
    images = data.reshape(blocking.cells, -1, blocking.tiles_per_core, layout.entry_bytes // blocking.tiles_per_core)

    def read(box: Box) -> NDArray[Any]:
        """Unpack the tiles that the box lies in, and return the elements of the box."""
        check()
        entries, slices, down, across = box
        first = down.start // height
        left = across.start // width
        tiles = places[slices, first : -(-down.stop // height), left : -(-across.stop // width)]
        cells, at = np.divmod(tiles, blocking.tiles_per_core)
        count = entries.stop - entries.start
        tiles_read = np.empty((count, *tiles.shape, TILE_SIDE, TILE_SIDE), np.float32)
        for number in range(count):
            image = images[cells, entries.start + number, at].reshape(tiles.size, -1)
            try:
                with np.errstate(all="ignore"):
                    unpacked = unpack_tiles(layout.format, image, blocking.tile_dim, layout.alignment)
            except HostError as wrong:
                check()
                raise error(f"entry {entries.start + number}: {wrong}") from None
            tiles_read[number] = unpacked.reshape(tiles_read.shape[1:])
        check()
        part = untilize(tiles_read, blocking.tile_dim)
        top = down.start - first * height
        edge = across.start - left * width
        return part[:, :, top : top + down.stop - down.start, edge : edge + across.stop - across.start]

    def read_bytes() -> NDArray[np.uint8]:
        """Return the bytes of all tiles, if the file has not changed."""
        check()
        return data

    shape = (images.shape[1], *blocking.element_shape)
    reference = Referenced(
        shape=shape,
        dtype=np.float32,
        read=read,
        key=(data.__array_interface__["data"][0], shape),
        origin=origin,
        bound=lambda: np.inf,
        give_back=page_releaser(data),
    )
    reference.packed = read_bytes
    return reference
