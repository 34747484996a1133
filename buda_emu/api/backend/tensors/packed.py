"""Entries as bytes of device memory: tilize_tensor, pushes of packed tensors, dumps (NETLIST 7.3, LAYOUT 3)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.spec.formats import is_raw
from buda_emu.tensor.layout import EntryLayout, pack_entry, unpack_entry
from buda_emu.tensor.tilize import tilize, untilize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]


def packed_layout(netlist: Netlist, queue: Queue) -> EntryLayout:
    """How the queue's entries lie in memory. Raises HostError unless they are tilized."""
    if queue.layout != "tilized":
        raise HostError(f"queue {queue.name} is {queue.layout}: packed tensors are for tilized queues")
    return EntryLayout(queue.df, queue.blocking, "tilized", netlist.arch.alignment)


def pack(netlist: Netlist, queue: Queue, entries: "NDArray[Any]") -> "Bytes":
    """Entries [w, t, rows, cols] as uint8[grid cells, w * entry_bytes]; float32, or uint32 for raw queues."""
    layout = packed_layout(netlist, queue)
    tiles = tilize(entries.view("<f4"), queue.blocking.tile_dim, layout.megarow)
    with np.errstate(all="ignore"):
        packed = [np.stack(pack_entry(entry, layout)) for entry in tiles]
    return np.concatenate(packed, axis=1)


def unpack(netlist: Netlist, queue: Queue, data: "Bytes", df: str) -> "NDArray[Any]":
    """The inverse of `pack`. Raises HostError: another format than the queue's, a wrong number or size of buffers."""
    layout = packed_layout(netlist, queue)
    if df != queue.df:
        raise HostError(f"push to {queue.name}: packed as {df}, the queue holds {queue.df}")
    cells, size = data.shape
    if cells != queue.blocking.cells or not size or size % layout.entry_bytes:
        raise HostError(
            f"push to {queue.name}: {cells} buffers of {size} bytes, "
            f"expected {queue.blocking.cells} of a multiple of {layout.entry_bytes}"
        )
    parts = data.reshape(cells, -1, layout.entry_bytes).swapaxes(0, 1)
    tiles = np.stack([unpack_entry(list(entry), layout) for entry in parts])
    values = untilize(tiles, queue.blocking.tile_dim, layout.megarow)
    return values.view("<u4") if is_raw(queue.df) else values


def write_words(path: str, data: "NDArray[Any]") -> None:
    """Write the bytes of an array in whole 32-bit words; the last one is filled up with zeros."""
    raw = data.tobytes()
    Path(path).write_bytes(raw + bytes(-len(raw) % 4))


def read_words(path: str, size: int) -> bytes:
    """The first `size` bytes of a file of whole words. Raises HostError for a file of another size."""
    expected = -(-size // 4) * 4
    with Path(path).open("rb") as file:
        raw = file.read(expected + 1)
    if len(raw) != expected:
        has = f"{len(raw)}" if len(raw) < expected else f"more than {expected}"
        raise HostError(f"{path} has {has} bytes, expected {expected}")
    return raw[:size]
