"""Free space in DRAM."""

from buda_emu.advice.evaluate import Variant
from buda_emu.netlist.model import Buffer, Queue
from buda_emu.netlist.sizes import align_up, buffer_bytes

_ALIGNMENT = 64
_FIRST = 0x10000000  # of a channel that no queue lies in: above what the backend keeps for itself


class Channels:
    """The DRAM of one chip, as a netlist's queues lie in it; addresses are given out after the last of each."""

    def __init__(self, variant: Variant, chip: int, count: int) -> None:
        self._end = dict.fromkeys(range(count), _FIRST)
        netlist = variant.netlist
        self._netlist, self._ops = netlist, netlist.ops
        ends: dict[int, int] = {}
        for queue in netlist.queues.values():
            if queue.loc.lower() != "dram" or queue.target_device != chip:
                continue
            size = buffer_bytes(queue, netlist, self._ops)
            for buffer in queue.buffers:
                ends[buffer.channel] = max(ends.get(buffer.channel, 0), buffer.address + size)
        self._end.update(ends)

    def place(self, queue: Queue, channel: int) -> Buffer:
        """Room for one buffer of a queue, which is taken then."""
        address = align_up(self._end[channel], _ALIGNMENT)
        self._end[channel] = address + buffer_bytes(queue, self._netlist, self._ops)
        return Buffer(channel, address)


def may_move(variant: Variant, queue: Queue) -> bool:
    """Whether a queue can lie elsewhere: it is in DRAM, and nobody else sees its memory.

    Queues that share bytes see each other's values: a ram that an op writes and one that the next run reads, as in
    caches of transformers (NETLIST 1.10).
    """
    if queue.loc.lower() != "dram" or not queue.buffers or queue.alias:
        return False
    netlist = variant.netlist
    ops = netlist.ops
    own = _ranges(queue, buffer_bytes(queue, netlist, ops))
    for other in netlist.queues.values():
        if other is queue or other.target_device != queue.target_device or other.loc.lower() != "dram":
            continue
        if other.alias == queue.name:
            return False
        if not own.keys().isdisjoint(buffer.channel for buffer in other.buffers):
            for channel, theirs in _ranges(other, buffer_bytes(other, netlist, ops)).items():
                if any(a < d and c < b for a, b in own.get(channel, ()) for c, d in theirs):
                    return False
    return True


def _ranges(queue: Queue, size: int) -> dict[int, list[tuple[int, int]]]:
    """Channel -> (first byte, end) of the buffers in it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for buffer in queue.buffers:
        found.setdefault(buffer.channel, []).append((buffer.address, buffer.address + size))
    return found
