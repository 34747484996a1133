"""Copies from chip to chip (`ethernet_datacopy`): a relay on the core of a channel of the one chip, operand and result,
which are the same bytes, on that of the channel of the other."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.routing.ethernet_cores import ETHERNET_CORES
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.ops.general import is_ethernet
from buda_emu.routing.pipes.ops.operands import LATENCY_CYCLES
from buda_emu.spec.devices import device

RELAY_OPERAND: Final = 33
"""The first operand id of relays on a core."""
LINK_BYTES: Final = 13
"""Bytes that come over a link in a cycle, as net2pipe sizes relays for them."""
L1_BYTES: Final = 96 << 10
"""What net2pipe gives to relays and to what gathers for them on a core of Ethernet (measured: 98,208 to 98,495)."""
GATHERED_TILES, MOST_GATHERED = 4, 12
"""Tiles that are held of each input of a gather, and inputs that are counted."""
DRAM_READ_BYTES: Final = 64 << 10
"""What is held of a queue that a relay reads in pieces."""


@dataclass(frozen=True, slots=True)
class EthernetCore:
    """The core of a channel: row and column of the NoC."""

    chip: int
    channel: int
    row: int
    column: int

    @property
    def place(self) -> tuple[int, int]:
        """Row and column."""
        return self.row, self.column


def channels_of(epoch: Epoch, op: Op) -> tuple[Sequence[int], Sequence[int]]:
    """The channels from which a copy is sent and at which it arrives, for each cell of its grid: those that it names,
    else those of links between its chips; empty where none are known."""
    own, cells = op.attributes, op.blocking.cells
    if own.ingress_channels or epoch.links is None or op.inputs[0] in epoch.netlist.queues:
        return own.ingress_channels, own.egress_channels
    here, there = epoch.links.of_copy(epoch.source(op.inputs[0]).target_device, own.dest_device, cells)
    return here, [*own.egress_channels, *there][:cells]


def sends_from(epoch: Epoch, op: Op, cell: int) -> EthernetCore:
    """The core of the chip on which a copy begins, for a cell of its grid counted row by row."""
    channel = channels_of(epoch, op)[0][cell]
    return EthernetCore(op.target_device, channel, *ETHERNET_CORES[epoch.netlist.arch_name][channel])


def arrives_at(epoch: Epoch, op: Op, cell: int) -> EthernetCore:
    """The core of the chip that a copy goes to."""
    channel = channels_of(epoch, op)[1][cell]
    return EthernetCore(op.attributes.dest_device, channel, *ETHERNET_CORES[epoch.netlist.arch_name][channel])


def off_links(epoch: Epoch, op: Op) -> str:
    """Which channels of a copy are not the two ends of a link of the cluster; "" where all are."""
    links, here, there = epoch.links, op.target_device, op.attributes.dest_device
    if links is None:
        return ""
    channels, direct = channels_of(epoch, op), bool(links.between(here, there))
    if op.inputs[0] in epoch.netlist.queues and not channels[0]:
        return "it reads a queue, and then does not get channels automatically"
    if any(len(each) != op.blocking.cells for each in channels):
        if op.attributes.ingress_channels:
            return "it names more or fewer channels than its grid has cells, or not as many of both chips"
        return f"no link leads from chip {epoch.source(op.inputs[0]).target_device} or from chip {there}"
    for near, far in zip(*channels, strict=False):
        for chip, channel in ((here, near), (there, far)):
            if channel not in links.ends.get(chip, {}):
                return f"channel {channel} of chip {chip} leads to no other chip of the cluster"
        if direct and not links.connects((here, near), (there, far)):
            return f"channels {near} of chip {here} and {far} of chip {there} are not the ends of a link of the cluster"
    return ""


def chip_of_result(op: Op) -> int:
    """The chip on which the result of an op is."""
    return op.attributes.dest_device if is_ethernet(op) else op.target_device


def not_made(epoch: Epoch, op: Op) -> str:
    """Why no pipes are made of a copy between chips, "" where they are."""
    here, there = channels_of(epoch, op)
    if len(here) == len(there) == op.blocking.cells or off_links(epoch, op):
        return ""
    return "without ingress_channels and egress_channels a cluster description says where it runs: none is given"


def not_carried(epoch: Epoch, op: Op) -> str:
    """What Ethernet cores cannot do for a copy between chips; "" where there is nothing."""
    if (*op.blocking.tile_dim, *op.input_tile_dims[0]) != (32,) * 4:
        return "relays have tiles of 32 by 32 only"
    if op.inputs[0] in epoch.prologue:
        return f"a prologue would keep {op.inputs[0]} on an Ethernet core"
    width = device(epoch.netlist.arch_name).grid[1]
    for channel in channels_of(epoch, op)[0] if any(pad.rt or pad.ct for pad in op.input_pad) else ():
        column = ETHERNET_CORES[epoch.netlist.arch_name][channel][1]
        if column >= width:
            what = f"none has column {column}, as channel {channel}"
            return f"padding is kept on a worker core of the same place, and {what}"
    return ""


@dataclass(slots=True)
class Relay:
    """What the size of a relay follows from. `piece`: tiles that are sent at a time; `gathered`: bytes that its core
    holds of what is gathered for it."""

    piece: int
    tile_bytes: int
    epoch_tiles: int
    gathered: int
    tiles: int = 1


def gathered_bytes(inputs: int, cores: int, piece: int, tile_bytes: int, *, from_dram: bool) -> int:
    """Bytes beside a relay that are held of the inputs of its pipe; `cores`: how many they come from."""
    if from_dram:
        held = piece * tile_bytes * max(1, DRAM_READ_BYTES // (piece * tile_bytes))
        return held if held * 2 > 100 << 10 else held * 2
    return 0 if inputs == 1 or cores == 1 else min(inputs, MOST_GATHERED) * GATHERED_TILES * tile_bytes


def arrived_bytes(sizes: Collection[int]) -> int:
    """What net2pipe counts on a core for the copies that arrive there: each operand, and the largest result, although
    operand and result are the same bytes."""
    return sum(sizes) + max(sizes, default=0)


def size_relays(relays: Iterable[Relay], other_bytes: int) -> None:
    """Make the relays of a core as large as there is room for, as net2pipe does: one alone at once, several in turn,
    those of large pieces first. `other_bytes`: of operands and results that copies have on the core."""
    own = sorted(relays, key=lambda relay: relay.tiles / relay.piece)
    free = L1_BYTES - other_bytes - sum(relay.gathered + relay.tiles * relay.tile_bytes for relay in own)
    if len(own) == 1:
        (relay,) = own
        for size in reversed(_sizes(relay)):
            if size > relay.tiles and (size - relay.tiles) * relay.tile_bytes <= free:
                relay.tiles = size
                return
        return
    sizes = [_sizes(relay) for relay in own]
    step, largest = [1] * len(own), 1
    grown = True
    while grown:
        grown, following = False, list[int]()
        for number, relay in enumerate(own):
            if step[number] >= len(sizes[number]) or relay.tiles > largest:
                continue
            size = sizes[number][step[number]]
            more = (size - relay.tiles) * relay.tile_bytes
            if more > free or size <= relay.tiles:
                continue
            free, relay.tiles, grown = free - more, size, True
            step[number] += 1
            if step[number] < len(sizes[number]):
                following.append(sizes[number][step[number]])
        largest = min(following, default=1 << 62)


def _sizes(relay: Relay) -> list[int]:
    """Divisors of a piece beyond 1; then whole pieces that divide what a link brings in its latency."""
    piece = relay.piece
    found = [size for size in range(2, piece + 1) if piece % size == 0]
    most = min(LATENCY_CYCLES * LINK_BYTES // relay.tile_bytes, relay.epoch_tiles)
    return found + [size for size in range(2 * piece, most + 1, piece) if most % size == 0]
