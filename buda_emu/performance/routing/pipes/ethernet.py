"""Queues on other chips than their ops, and the relays by which pipes go from chip to chip."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.links import ETHERNET_CORES, Links
from buda_emu.performance.routing.pipes.ops.general import is_ethernet
from buda_emu.performance.routing.pipes.ops.operands import LATENCY_CYCLES
from buda_emu.spec.devices import device

WINDOW_BYTES: Final = 1 << 28  # 256 MiB of addresses
WINDOWS: Final = {True: 0x8C000000, False: 0x4C000000}
"""Where a chip sees DRAM of the one after it in the ring, and of the one before it."""


def over_pcie(netlist: Netlist) -> bool:
    """Return whether the chips of a netlist reach each other over PCIe, rather than Ethernet: those of grayskull."""
    return netlist.arch_name == "grayskull"


def is_remote(queue: Queue, op: Op) -> bool:
    """Return whether a queue lies in DRAM of another chip than an op that reads or writes it; False for one on the
    host."""
    return queue.loc != "host" and queue.target_device != op.target_device


def is_after(netlist: Netlist, chip: int, other_chip: int) -> bool | None:
    """Return whether `other_chip` follows `chip` in the ring of chips; False if it precedes it, None if it is no
    neighbour. Of two chips each follows the other."""
    used = chips(netlist)
    if other_chip == (chip + 1 if chip < used[-1] else used[0]):
        return True
    if other_chip == (chip - 1 if chip > used[0] else used[-1]):
        return False
    return None


def window(epoch: Epoch, queue: Queue) -> int | None:
    """Return the address of the window through which the op that writes or reads a queue of grayskull sees the DRAM of
    the queue's chip; None if that is the op's own chip, for queues on the host, and for other architectures."""
    if queue.loc == "host" or not over_pcie(epoch.netlist):
        return None
    op = _op_at_queue(epoch, queue)
    if op is None or op.target_device == queue.target_device:
        return None
    return WINDOWS[bool(is_after(epoch.netlist, op.target_device, queue.target_device))]


def _op_at_queue(epoch: Epoch, queue: Queue) -> Op | None:
    """Return the op of the epoch that feeds a queue, else the first that reads it; None if no op of the epoch does."""
    if queue.input in epoch.ops and not queue.host_fed:
        return epoch.ops[queue.input]
    readers = epoch.readers.get(queue.name, ())
    if readers:
        return epoch.ops.get(readers[0])
    return None


def chips(netlist: Netlist) -> list[int]:
    """Return the numbers of the chips that run the netlist's graphs or hold its queues, in rising order."""
    with_graphs = {graph.target_device for graph in netlist.graphs.values()}
    return sorted(with_graphs | {queue.target_device for queue in netlist.queues.values() if queue.loc != "host"})


RELAY_OPERAND: Final = 33
"""The first operand id of relays on a core."""
LINK_BYTES: Final = 13
"""Bytes that come over a link in a cycle, as net2pipe sizes relays for them."""
L1_BYTES: Final = 96 << 10
"""What net2pipe gives to relays and to what gathers for them on a core of Ethernet (measured: 98,208 to 98,495)."""
GATHERED_TILES = 4
MOST_GATHERED = 12
"""Tiles that are held of each input of a gather, and inputs that are counted."""
DRAM_READ_BYTES: Final = 64 << 10
"""What is held of a queue that a relay reads in pieces."""


@dataclass(frozen=True, slots=True)
class EthernetCore:
    """The Ethernet core of a channel, with row and column of the NoC."""

    chip: int
    channel: int
    row: int
    column: int

    @property
    def place(self) -> tuple[int, int]:
        """Return row and column of the NoC."""
        return self.row, self.column


def channels_of(epoch: Epoch, op: Op) -> tuple[Sequence[int], Sequence[int]]:
    """Return the Ethernet channels from which a copy is sent and at which it arrives, for each cell of its grid: those
    that it names, else those of links between its chips; empty if none are known."""
    attributes = op.attributes
    cells = op.blocking.cells
    if attributes.ingress_channels or epoch.links is None or op.inputs[0] in epoch.netlist.queues:
        return attributes.ingress_channels, attributes.egress_channels
    sending, arriving = epoch.links.of_copy(epoch.source(op.inputs[0]).target_device, attributes.dest_device, cells)
    return sending, [*attributes.egress_channels, *arriving][:cells]


def sends_from(epoch: Epoch, op: Op, cell: int) -> EthernetCore:
    """Return the Ethernet core of the chip on which a copy begins, for a cell of its grid counted row by row. Raises
    IndexError if the cell has no channel."""
    channel = channels_of(epoch, op)[0][cell]
    return EthernetCore(op.target_device, channel, *ETHERNET_CORES[epoch.netlist.arch_name][channel])


def arrives_at(epoch: Epoch, op: Op, cell: int) -> EthernetCore:
    """Return the Ethernet core of the chip to which a copy goes, for a cell of its grid counted row by row. Raises
    IndexError if the cell has no channel."""
    channel = channels_of(epoch, op)[1][cell]
    return EthernetCore(op.attributes.dest_device, channel, *ETHERNET_CORES[epoch.netlist.arch_name][channel])


def off_links(epoch: Epoch, op: Op) -> str:
    """Return why the channels of a copy between chips are not the two ends of links of the cluster, as a message; "" if
    they are, or without a cluster."""
    links = epoch.links
    if links is None:
        return ""
    channels = channels_of(epoch, op)
    if op.inputs[0] in epoch.netlist.queues and not channels[0]:
        return "it reads a queue, and then does not get channels automatically"
    if any(len(channels_of_chip) != op.blocking.cells for channels_of_chip in channels):
        if op.attributes.ingress_channels:
            return "it names more or fewer channels than its grid has cells, or not as many of both chips"
        source_chip = epoch.source(op.inputs[0]).target_device
        return f"no link leads from chip {source_chip} or from chip {op.attributes.dest_device}"
    for near, far in zip(*channels, strict=False):
        problem = _off_link(links, (op.target_device, near), (op.attributes.dest_device, far))
        if problem:
            return problem
    return ""


def _off_link(links: Links, near: tuple[int, int], far: tuple[int, int]) -> str:
    """Return why two channels, each as (chip, channel), are not the two ends of a link, as a message; "" if they are,
    or if their chips are not neighbours and each channel leads to some other chip."""
    for chip, channel in (near, far):
        if channel not in links.ends.get(chip, {}):
            return f"channel {channel} of chip {chip} leads to no other chip of the cluster"
    if links.between(near[0], far[0]) and not links.connects(near, far):
        ends = f"channels {near[1]} of chip {near[0]} and {far[1]} of chip {far[0]}"
        return f"{ends} are not the ends of a link of the cluster"
    return ""


def chip_of_result(op: Op) -> int:
    """Return the chip on which the result of an op is: for a copy between chips its destination, -1 if it names
    none."""
    if is_ethernet(op):
        return op.attributes.dest_device
    return op.target_device


def missing_channels(epoch: Epoch, op: Op) -> str:
    """Return why no pipes can be made of a copy between chips, as a message; "" if its channels are known, or if
    `off_links` refuses them."""
    sending, arriving = channels_of(epoch, op)
    if len(sending) == len(arriving) == op.blocking.cells or off_links(epoch, op):
        return ""
    return "without ingress_channels and egress_channels a cluster description says where it runs: none is given"


def unsupported_by_ethernet(epoch: Epoch, op: Op) -> str:
    """Return what of a copy between chips Ethernet cores cannot do, as a message; "" if they can do it all."""
    if (*op.blocking.tile_dim, *op.input_tile_dims[0]) != (32,) * 4:
        return "relays have tiles of 32 by 32 only"
    if op.inputs[0] in epoch.prologue:
        return f"a prologue would keep {op.inputs[0]} on an Ethernet core"
    width = device(epoch.netlist.arch_name).grid[1]
    for channel in channels_of(epoch, op)[0] if any(pad.rt or pad.ct for pad in op.input_pad) else ():
        column = ETHERNET_CORES[epoch.netlist.arch_name][channel][1]
        if column >= width:
            message = f"none has column {column}, as channel {channel}"
            return f"padding is kept on a worker core of the same place, and {message}"
    return ""


@dataclass(slots=True)
class Relay:
    """The figures from which the size of a relay follows. `piece` is the tiles that are sent at a time; `gathered` is
    the bytes that its core holds of the gather for it."""

    piece: int
    tile_bytes: int
    epoch_tiles: int
    gathered: int
    tiles: int = 1


def gathered_bytes(inputs: int, cores: int, piece: int, tile_bytes: int, *, from_dram: bool) -> int:
    """Return the bytes that a core holds, beside a relay, of the inputs of the pipe that fills it. `cores` is the
    number of cores that the inputs come from; `piece` is the tiles of one input, which count for reads from DRAM
    alone."""
    if from_dram:
        held_bytes = piece * tile_bytes * max(1, DRAM_READ_BYTES // (piece * tile_bytes))
        if held_bytes * 2 > 100 << 10:
            return held_bytes
        return held_bytes * 2
    if inputs == 1 or cores == 1:
        return 0
    return min(inputs, MOST_GATHERED) * GATHERED_TILES * tile_bytes


def arrived_bytes(sizes: Collection[int]) -> int:
    """Return the bytes that net2pipe counts on a core for the copies that arrive there, given the bytes of each
    operand: all operands and the largest result, although operand and result share their bytes."""
    return sum(sizes) + max(sizes, default=0)


def size_relays(relays: Iterable[Relay], other_bytes: int) -> None:
    """Set `tiles` of the relays of one Ethernet core as large as there is room for, as net2pipe does: a single relay at
    once, several in turn, those of large pieces first. `other_bytes` is the bytes of operands and results of copies on
    the core."""
    ordered = sorted(relays, key=lambda relay: relay.tiles / relay.piece)
    free = L1_BYTES - other_bytes - sum(relay.gathered + relay.tiles * relay.tile_bytes for relay in ordered)
    if len(ordered) == 1:
        _enlarge_at_once(ordered[0], free)
    else:
        _enlarge_in_turn(ordered, free)


def _enlarge_at_once(relay: Relay, free: int) -> None:
    """Set `tiles` of a relay to its largest size for which `free` bytes beyond its present ones are enough; without one
    it keeps its size."""
    for size in reversed(_possible_sizes(relay)):
        if size > relay.tiles and (size - relay.tiles) * relay.tile_bytes <= free:
            relay.tiles = size
            return


def _enlarge_in_turn(ordered: Sequence[Relay], free: int) -> None:
    """Set `tiles` of each relay to its next size, round by round, as long as `free` bytes beyond the present sizes are
    enough. A relay that is larger than the smallest next size of the last round waits."""
    sizes = [_possible_sizes(relay) for relay in ordered]
    step = [1] * len(ordered)
    largest = 1
    grown = True
    while grown:
        grown = False
        following = list[int]()
        for number, relay in enumerate(ordered):
            if step[number] >= len(sizes[number]) or relay.tiles > largest:
                continue
            size = sizes[number][step[number]]
            extra_bytes = (size - relay.tiles) * relay.tile_bytes
            if extra_bytes > free or size <= relay.tiles:
                continue
            free = free - extra_bytes
            relay.tiles = size
            grown = True
            step[number] += 1
            if step[number] < len(sizes[number]):
                following.append(sizes[number][step[number]])
        largest = min(following, default=1 << 62)


def _possible_sizes(relay: Relay) -> list[int]:
    """Return the sizes in tiles that a relay can have beyond 1, rising: divisors of a piece, then multiples of a piece
    that divide the tiles which a link transfers in its latency."""
    piece = relay.piece
    sizes = [size for size in range(2, piece + 1) if piece % size == 0]
    limit = min(LATENCY_CYCLES * LINK_BYTES // relay.tile_bytes, relay.epoch_tiles)
    return sizes + [size for size in range(2 * piece, limit + 1, piece) if limit % size == 0]


class Core(NamedTuple):
    """A core: a worker core, with rows and columns counted over worker cores alone and channel -1, or an Ethernet core
    in NoC coordinates, with its channel."""

    chip: int
    row: int
    column: int
    channel: int = -1

    @property
    def place(self) -> tuple[int, int]:
        """Return row and column, of the worker grid or, for an Ethernet core, of the NoC."""
        return self.row, self.column


@dataclass(slots=True)
class Hop:
    """A relay on the way between chips. `piece` is the tiles that are sent at a time; `number` counts the relays of the
    core; `tiles` is its least size; `result` has fields of blocks if it is like an op's buffer."""

    id: int
    chip: int
    piece: int
    epoch_tiles: int
    tile_bytes: int
    core: Core | None = None
    number: int = 0
    tiles: int = 1
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def at(self) -> Core:
        """Return the core of the relay, which must have been chosen."""
        assert self.core is not None
        return self.core
