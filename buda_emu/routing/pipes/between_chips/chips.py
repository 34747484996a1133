"""What lies on another chip than its op: over PCIe on grayskull, whose chips form a ring in order of their numbers;
over Ethernet on wormhole_b0, from DRAM alone."""

from typing import Final

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.routing.pipes.epoch import Epoch

WINDOW_BYTES: Final = 1 << 28
WINDOWS: Final = {True: 0x8C000000, False: 0x4C000000}
"""Where a chip sees DRAM of the one after it in the ring, and of the one before it."""


def over_pcie(netlist: Netlist) -> bool:
    """Whether chips reach each other over PCIe."""
    return netlist.arch_name == "grayskull"


def is_remote(queue: Queue, op: Op) -> bool:
    """Whether a queue in DRAM lies on another chip than an op that reads or writes it."""
    return queue.loc != "host" and queue.target_device != op.target_device


def is_after(netlist: Netlist, here: int, there: int) -> bool | None:
    """Whether a chip comes after another in the ring; False: before it, None: neither."""
    used = chips(netlist)
    if there == (here + 1 if here < used[-1] else used[0]):
        return True
    return False if there == (here - 1 if here > used[0] else used[-1]) else None


def window(epoch: Epoch, queue: Queue) -> int | None:
    """Where the op that writes or reads a queue sees its chip's DRAM, of grayskull; None on its own chip."""
    if queue.loc == "host" or not over_pcie(epoch.netlist):
        return None
    op = _user(epoch, queue)
    if op is None or op.target_device == queue.target_device:
        return None
    return WINDOWS[bool(is_after(epoch.netlist, op.target_device, queue.target_device))]


def _user(epoch: Epoch, queue: Queue) -> Op | None:
    if queue.input in epoch.ops and not queue.host_fed:
        return epoch.ops[queue.input]
    readers = epoch.readers.get(queue.name, ())
    return epoch.ops.get(readers[0]) if readers else None


def chips(netlist: Netlist) -> list[int]:
    """The chips that run its graphs and hold its queues, in order."""
    with_graphs = {graph.target_device for graph in netlist.graphs.values()}
    return sorted(with_graphs | {queue.target_device for queue in netlist.queues.values() if queue.loc != "host"})
