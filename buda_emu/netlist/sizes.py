"""Sizes of tiles, entries and buffers of queues in bytes (NETLIST 1.9, FORMATS 2)."""

from collections.abc import Mapping

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.spec.archs import Arch
from buda_emu.spec.formats import FORMATS, tile_bytes


def has_tile_headers(queue: Queue, ops: Mapping[str, Op]) -> bool:
    """Return whether the entries hold tiles with headers: tilized data of the host, or the output of an op that does
    not untilize."""
    if queue.host_fed:
        return queue.layout == "tilized"
    producer = ops.get(queue.input)
    return producer is None or not producer.untilize_output


def entry_bytes(queue: Queue, arch: Arch, headers: bool) -> int:
    """Return the bytes of one entry in one buffer of the queue; 0 when its format or sizes are not valid. `headers`
    tells whether its tiles have headers (`has_tile_headers`).
    """
    blocking = queue.blocking
    if queue.df not in FORMATS or min(blocking.t, *blocking.mblock, *blocking.ublock) < 1:
        return 0
    height, width = blocking.tile_dim
    return blocking.tiles_per_core * tile_bytes(queue.df, height, width, arch.alignment, headers)


def buffer_bytes(queue: Queue, netlist: Netlist, ops: Mapping[str, Op] | None = None) -> int:
    """Return the bytes of one buffer: the queue header and all entries. `ops` are the netlist's ops by name, None to
    take them from the netlist."""
    if ops is None:
        ops = netlist.ops
    headers = has_tile_headers(queue, ops)
    return entry_bytes(queue, netlist.arch, headers) * queue.entries + netlist.arch.alignment


def align_up(size: int, alignment: int) -> int:
    """Return the least multiple of `alignment` that is not below `size`."""
    return -(-size // alignment) * alignment
