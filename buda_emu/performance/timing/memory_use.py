"""Memory in L1 and DRAM that a netlist takes (LAYOUT 6, PERF 1.1, NETLIST 1.9, 2.2)."""

from dataclasses import dataclass

from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.rules.queues.memory import l1_bytes
from buda_emu.netlist.sizes import buffer_bytes
from buda_emu.performance.timeline.tasks import union_length
from buda_emu.spec.devices import Device


@dataclass(frozen=True, slots=True)
class ChannelUse:
    """Memory of the queues in one DRAM channel of one chip, in bytes. Memory that several rams share counts once."""

    chip: int
    channel: int
    used: int
    capacity: int

    @property
    def share(self) -> float:
        """Return the used part of the capacity."""
        return self.used / self.capacity


def l1_use(op: Op, netlist: Netlist, chip: Device) -> tuple[int, int]:
    """Return the bytes that the buffers of one core of an op take at least, and the bytes of L1 that a core has for
    them (rule V164)."""
    return l1_bytes(op, netlist.arch.alignment), chip.l1_data_bytes


def dram_use(netlist: Netlist, chip: Device) -> tuple[ChannelUse, ...]:
    """Return the use of every DRAM channel that holds queues, by chip and channel. Overlapping buffers count once."""
    ops = netlist.ops
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for queue in netlist.queues.values():
        if queue.loc.lower() != "dram":
            continue
        size = buffer_bytes(queue, netlist, ops)
        for buffer in queue.buffers:
            place = queue.target_device, buffer.channel
            ranges.setdefault(place, []).append((buffer.address, buffer.address + size))
    return tuple(
        ChannelUse(device, channel, union_length(ranges[device, channel]), chip.dram_channel_bytes)
        for device, channel in sorted(ranges)
    )
