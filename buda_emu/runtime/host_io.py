"""Host tensors into queue entries and back (NETLIST 4.6, FORMATS 3.10 and 3.11, LAYOUT 2)."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.channel import Fifo
from buda_emu.device.store import TILE_ELEMENTS
from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.numerics import host_decode, host_read, host_widen
from buda_emu.ops.base import Parallel
from buda_emu.runtime.execute import convert
from buda_emu.runtime.machine import Memory
from buda_emu.spec.formats import is_raw
from buda_emu.tensor.layout import EntryLayout, Form, pack_entry
from buda_emu.tensor.tilize import tilize, untilize

Readout = Literal["raw", "host"]


class HostIo:
    """The host's side of every queue. `quantised`: pushes are rounded to the queue's format (precision "format")."""

    def __init__(self, netlist: Netlist, memory: Memory, parallel: Parallel, quantised: bool) -> None:
        self._netlist = netlist
        self._memory = memory
        self._parallel = parallel
        self._quantised = quantised
        self._ops = netlist.ops

    def push(self, name: str, array: NDArray[Any], slot: int | None) -> list[int]:
        """Write entries, return the slots they went to. Raises HostError, in which case nothing was written."""
        channel = self._memory.channel(name)
        queue = self._netlist.queues[name]
        values = self._checked(queue, array)
        slots = self._slots(queue, len(values), slot)
        label = queue.df if self._quantised or is_raw(queue.df) else "Float32"
        flat = channel.flat
        channel.view.reserve(max(slots, default=-1) + 1)
        for first in range(0, len(slots), 64):  # bounded temporaries
            part = slice(first, first + 64)
            tiles = self._tiles(queue, values[part])
            channel.view.write(slots[part], tiles, label)
            if flat is not None:
                for position, entry in zip(slots[part], values[part], strict=True):
                    flat[position] = _whole_tiles(entry)
        if isinstance(channel, Fifo):
            for _ in slots:
                channel.ring.advance_write()
        return slots

    def read(self, name: str, slots: Sequence[int], readout: Readout, *, missing_is_zero: bool = False) -> NDArray[Any]:
        """Entries in those slots: [len(slots), t, rows, cols], float32 or uint32 (RawUInt)."""
        if readout not in ("raw", "host"):
            raise HostError(f"readout {readout!r} is not one of: raw, host")
        queue, view = self._netlist.queues[name], self._memory.channel(name).view
        t, rows, cols = queue.blocking.shape
        entries: list[NDArray[Any]] = []
        for slot in slots:
            if view.label(slot):
                entries.append(view.entry(slot))
            elif missing_is_zero:
                entries.append(np.zeros((view.tiles, TILE_ELEMENTS), np.float32))
            else:
                raise HostError(f"entry {slot} of {name} was never written")
        stacked = np.stack(entries) if entries else np.empty((0, view.tiles, TILE_ELEMENTS), np.float32)
        tiles = stacked.reshape(len(entries), t, rows, cols, 32, 32)
        values = untilize(tiles, queue.blocking.tile_dim, _is_megarow(queue))
        if is_raw(queue.df):
            return values.view(np.uint32)
        if readout == "raw" or not self._quantised:
            return values
        return host_widen(queue.df, host_read(queue.df, values))

    def image(self, name: str, slot: int) -> list[NDArray[np.uint8]]:
        """The bytes of one entry in each buffer of the grid, row-major (LAYOUT 3); see `Emulator.memory_image`."""
        queue, channel = self._netlist.queues[name], self._memory.channel(name)
        if not 0 <= slot < queue.entries or not channel.view.label(slot):
            raise HostError(f"entry {slot} of {name} was never written")
        producer = self._ops.get(queue.input)
        form: Form = "flat" if queue.layout == "flat" else "tilized"
        if producer is not None and producer.untilize_output:
            form = "untilized"
        layout = EntryLayout(queue.df, queue.blocking, form, self._netlist.arch.alignment)
        tiles = channel.view.entry(slot).reshape(*queue.blocking.shape, 32, 32)
        with np.errstate(all="ignore"):
            return pack_entry(tiles, layout)

    def _checked(self, queue: Queue, array: NDArray[Any]) -> NDArray[np.float32]:
        """The host array as float32 [entries, t, rows, cols]; raw words as the bits of float32."""
        shape = queue.blocking.element_shape
        array = np.asarray(array)
        if array.ndim != 4 or array.shape[1:] != shape:
            raise HostError(
                f"push to {queue.name}: shape {list(array.shape)}, "
                f"expected [entries, {shape[0]}, {shape[1]}, {shape[2]}]"
            )
        if is_raw(queue.df):
            if array.dtype.kind not in "iu":
                raise HostError(f"push to {queue.name}: {queue.df} takes unsigned integers (uint32), not {array.dtype}")
            return np.ascontiguousarray(array.astype(np.uint32, copy=False)).view(np.float32)
        if array.dtype == np.float32:
            return array
        if array.dtype == np.float64:
            return array.astype(np.float32)
        return _decoded(queue, array)

    def _slots(self, queue: Queue, count: int, slot: int | None) -> list[int]:
        channel = self._memory.channel(queue.name)
        if isinstance(channel, Fifo):
            if slot is not None:
                raise HostError(f"push to {queue.name}: slot= is for rams; a queue takes entries in order")
            ring = channel.ring
            if count > ring.entries - ring.occupancy:
                raise HostError(f"push of {count} entries to {channel.describe()}: it is full")
            return [ring.slot(ring.wr + i) for i in range(count)]
        first = slot or 0
        if first < 0 or first + count > channel.entries:
            raise HostError(f"push of slots {first}..{first + count - 1} to {channel.describe()}")
        return list(range(first, first + count))

    def _tiles(self, queue: Queue, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[w, tiles, 1024] of one part of a push, rounded to the queue's format in precision "format"."""
        tiles = tilize(values, queue.blocking.tile_dim, _is_megarow(queue))
        t, rows, cols = queue.blocking.shape
        result = tiles.reshape(len(values), t * rows * cols, TILE_ELEMENTS)
        if self._quantised and queue.df != "Float32":
            with np.errstate(all="ignore"):
                convert(result, queue.df, self._parallel, truncate=False)
        return result


def _is_megarow(queue: Queue) -> bool:
    """Tiles hold consecutive runs of the host's data (LAYOUT 2 Megarow)."""
    return is_raw(queue.df) or queue.layout == "flat"


def _decoded(queue: Queue, array: NDArray[Any]) -> NDArray[np.float32]:
    """A host tensor of another element type as float32 (FORMATS 3.10)."""
    if array.dtype == np.float16:
        return host_decode("Float16", array)
    if array.dtype.kind in "iub" or array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    raise HostError(f"push to {queue.name}: element type {array.dtype} is not one a host tensor may have")


def _whole_tiles(entry: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row-major elements of one entry in whole 1024-element rows: float32[tiles, 1024]."""
    count = -(-entry.size // TILE_ELEMENTS)
    flat = np.zeros(count * TILE_ELEMENTS, np.float32)
    flat[: entry.size] = entry.reshape(-1)
    return flat.reshape(count, TILE_ELEMENTS)
