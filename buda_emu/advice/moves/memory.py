"""Where DRAM has room."""

from buda_emu.advice.evaluate import Variant
from buda_emu.netlist.model import Buffer, Queue
from buda_emu.netlist.sizes import align_up, buffer_bytes

_ALIGNMENT = 64
_FIRST = 0x10000000  # of a channel that no queue lies in: above what the backend keeps for itself


class Channels:
    """The DRAM of one chip, as a netlist's queues lie in it; addresses are given out behind the last of each."""

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
    """Whether a queue can lie elsewhere: it is in DRAM, nobody else names its memory, and no program gives it out."""
    aliased = queue.alias or any(other.alias == queue.name for other in variant.netlist.queues.values())
    return queue.loc.lower() == "dram" and not aliased and bool(queue.buffers)
