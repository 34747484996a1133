"""The relays of copies between chips, which are sized when it is known what is gathered for them."""

from collections.abc import Iterator

from buda_emu.routing.pipes.between_chips.ethernet import (
    RELAY_OPERAND,
    EthernetCore,
    Relay,
    arrives_at,
    gathered_bytes,
    sends_from,
    size_relays,
)
from buda_emu.routing.pipes.buffers.make_buffers import Buffers
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.making.make_pipes import Draft, PipeMaker
from buda_emu.routing.pipes.model import Buffer


def relays(epoch: Epoch, buffers: Buffers, pipes: PipeMaker) -> Iterator[Buffer]:
    """The relays of all copies between chips."""
    own = buffers.ops
    if not own.relays:
        return
    filled = {outputs[0]: draft for draft in pipes.made for outputs in draft.outputs}
    arch, count = epoch.netlist.arch_name, epoch.input_count
    sized: dict[EthernetCore, list[tuple[int, str, Relay]]] = {}
    others: dict[EthernetCore, int] = {}
    for name, ids in own.relays.items():
        op, operand = epoch.ops[name], own.operands[name][0]
        for cell, id in enumerate(ids):
            tile, piece = operand.tile_size, operand.gathered
            gathered = _gathered(epoch, filled[id], piece, tile)
            relay = Relay(piece, tile, operand.per_input * count, gathered)
            sized.setdefault(sends_from(op, cell, arch), []).append((id, name, relay))
            there = arrives_at(op, cell, arch)
            others[there] = others.get(there, 0) + own.made[own.arrivals[name][cell]].size_tiles * tile
    for core, group in sized.items():
        size_relays([relay for _, _, relay in group], others.get(core, 0))
        for number, (id, name, relay) in enumerate(group):
            yield _buffer(core, number, id, name, relay, count)


def _gathered(epoch: Epoch, draft: Draft, piece: int, tile: int) -> int:
    if draft.channel < 0:  # it is gathered on a worker core
        return 0
    from_dram = draft.source in epoch.netlist.queues
    return gathered_bytes(len(draft.inputs), len(draft.bases), piece, tile, from_dram=from_dram)


def _buffer(core: EthernetCore, number: int, id: int, op: str, relay: Relay, count: int) -> Buffer:
    return Buffer(
        id=id,
        operand=RELAY_OPERAND + number,
        op=op,
        buffer_type="ethernet_relay",
        chip=core.chip,
        row=core.row,
        column=core.column,
        ethernet_chan=core.channel,
        epoch_tiles=relay.epoch_tiles,
        tiles_per_input=relay.epoch_tiles // count,
        size_tiles=relay.tiles,
        tile_size=relay.tile_bytes,
        scatter_gather_num_tiles=relay.piece,
        ublock_rt=1,
        ublock_ct=1,
        mblock_m=1,
        mblock_n=1,
    )
