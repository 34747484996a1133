"""Host tensors into queue entries and back (NETLIST 4.6, FORMATS 3.10 and 3.11, LAYOUT 2)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.store import TILE_ELEMENTS, Source
from buda_emu.errors import HostError
from buda_emu.formats import host_read, host_widen
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.ops.base import Parallel
from buda_emu.ops.operands import convert
from buda_emu.runtime.host.arrays import as_float32, host_array
from buda_emu.spec.formats import is_raw
from buda_emu.tensor.layout import EntryLayout, Form, pack_entry, unpack_entry
from buda_emu.tensor.referenced import BLOCK, Referenced
from buda_emu.tensor.tilize import tilize, untilize

Readout = Literal["raw", "host"]


class HostIo:
    """What a host tensor is in tiles, and back. `quantised`: pushes are rounded to the queue's format (precision
    "format"). Pointers and slots are the business of `buda_emu.runtime.host.exchange`."""

    def __init__(self, netlist: Netlist, parallel: Parallel, quantised: bool) -> None:
        self._netlist = netlist
        self._parallel = parallel
        self._quantised = quantised
        self._ops = netlist.ops

    def label(self, queue: Queue) -> str:
        """The format label of pushed entries (OPS 3.1)."""
        return queue.df if self._quantised or is_raw(queue.df) else "Float32"

    def values(self, queue: Queue, tiles: NDArray[np.float32], readout: Readout) -> NDArray[Any]:
        """Entries float32[w, tiles, 1024] as the host reads them: [w, t, rows, cols], float32 or uint32 (RawUInt)."""
        t, rows, cols = queue.blocking.shape
        shaped = tiles.reshape(len(tiles), t, rows, cols, 32, 32)
        values = untilize(shaped, queue.blocking.tile_dim, _is_megarow(queue))
        if is_raw(queue.df):
            return values.view(np.uint32)
        if readout == "raw" or not self._quantised:
            return values
        return host_widen(queue.df, host_read(queue.df, values))

    def image(self, queue: Queue, tiles: NDArray[np.float32]) -> list[NDArray[np.uint8]]:
        """The bytes of one entry, float32[tiles, 1024], in each buffer of the grid, row-major (LAYOUT 3); see
        `Emulator.memory_image`."""
        with np.errstate(all="ignore"):
            return pack_entry(tiles.reshape(*queue.blocking.shape, 32, 32), self._layout(queue))

    def with_bytes(self, queue: Queue, tiles: NDArray[np.float32], offset: int, data: bytes) -> NDArray[np.float32]:
        """One entry, float32[tiles, 1024], after bytes of its image, all buffers one after the other, were written;
        what they do not change stays as it is. Raises HostError where they lie outside, or in the header of a tile."""
        before = self.image(queue, tiles)
        whole = np.concatenate(before)
        if not 0 <= offset <= offset + len(data) <= whole.size:
            raise HostError(
                f"an entry of {queue.name} has bytes 0..{whole.size - 1}, not {offset}..{offset + len(data) - 1}"
            )
        whole[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        layout = self._layout(queue)
        old, new = (
            unpack_entry(buffers, layout).reshape(tiles.shape) for buffers in (before, np.split(whole, len(before)))
        )
        return np.where(old.view(np.uint32) == new.view(np.uint32), tiles, new)

    def _layout(self, queue: Queue) -> EntryLayout:
        producer = self._ops.get(queue.input)
        form: Form = "flat" if queue.layout == "flat" else "tilized"
        if producer is not None and producer.untilize_output:
            form = "untilized"
        return EntryLayout(queue.df, queue.blocking, form, self._netlist.arch.alignment)

    def host_array(self, queue: Queue, array: object) -> NDArray[np.float32]:
        """What the caller gave as float32 [entries, t, rows, cols]; raw words as the bits of float32 (NETLIST 7.4).
        Raises HostError for a shape or element type that does not fit."""
        return host_array(array, queue)

    def tiles(self, queue: Queue, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[w, tiles, 1024] of one part of a push, rounded to the queue's format in precision "format"."""
        tiles = tilize(values, queue.blocking.tile_dim, _is_megarow(queue))
        result = tiles.reshape(len(values), -1, TILE_ELEMENTS)
        if self._quantised and queue.df != "Float32":
            with np.errstate(all="ignore"):
                convert(result, queue.df, self._parallel, truncate=False)
        return result

    def source(self, queue: Queue, array: Referenced) -> Source:
        """What a push of an array by reference would store, slice by slice. `array` is [entries, t, rows, cols]."""
        _, rows, cols = queue.blocking.shape
        height, width = queue.blocking.tile_dim
        slices = array.reshape(-1, rows * height, cols * width)
        step = max(1, BLOCK // (cols * TILE_ELEMENTS))

        def read(first: int, last: int) -> NDArray[np.float32]:
            found = np.empty((last - first, rows, cols, TILE_ELEMENTS), np.float32)
            for number in range(first, last):
                for row in range(0, rows, step):
                    end = min(row + step, rows)
                    box = slice(number, number + 1), slice(row * height, end * height), slice(0, cols * width)
                    values = np.ascontiguousarray(slices.read(box))[np.newaxis]
                    own = (
                        values.astype(np.uint32).view(np.float32)
                        if is_raw(queue.df)
                        else as_float32(values, queue.name)
                    )
                    found[number - first, row:end] = self.tiles(queue, own).reshape(end - row, cols, TILE_ELEMENTS)
            array.give_back()
            return found.reshape(last - first, rows * cols, TILE_ELEMENTS)

        return read


def _is_megarow(queue: Queue) -> bool:
    """Tiles hold consecutive runs of the host's data (LAYOUT 2 Megarow)."""
    return is_raw(queue.df) or queue.layout == "flat"


def whole_tiles(entry: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row-major elements of one entry in whole 1024-element rows: float32[tiles, 1024]."""
    count = -(-entry.size // TILE_ELEMENTS)
    flat = np.zeros(count * TILE_ELEMENTS, np.float32)
    flat[: entry.size] = entry.reshape(-1)
    return flat.reshape(count, TILE_ELEMENTS)
