"""The relays of copies between chips, which are sized when it is known what is gathered for them."""

from collections.abc import Iterator, Mapping
from typing import Any

from buda_emu.routing.pipes.between_chips.ethernet import (
    RELAY_OPERAND,
    EthernetCore,
    Relay,
    arrived_bytes,
    arrives_at,
    gathered_bytes,
    sends_from,
    size_relays,
)
from buda_emu.routing.pipes.between_chips.hop import Hop
from buda_emu.routing.pipes.buffers.make_buffers import Buffers
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.making.make_pipes import Draft, PipeMaker
from buda_emu.routing.pipes.model import Buffer


def relays(epoch: Epoch, buffers: Buffers, pipes: PipeMaker, hops: Mapping[int, Hop]) -> Iterator[Buffer]:
    """The relays of all copies between chips, and those by which other pipes go over links."""
    own = buffers.ops
    if not own.relays and not hops:
        return
    filled = {outputs[0]: draft for draft in pipes.made for outputs in draft.outputs}
    count = epoch.input_count
    sized: dict[EthernetCore, list[tuple[int, Mapping[str, Any], Relay]]] = {}
    others: dict[EthernetCore, list[int]] = {}
    for name, ids in own.relays.items():
        op, operand = epoch.ops[name], own.operands[name][0]
        for cell, id in enumerate(ids):
            tile, piece = operand.tile_size, operand.gathered
            gathered = _gathered(epoch, buffers, filled[id], piece, tile)
            relay = Relay(piece, tile, operand.per_input * count, gathered)
            sized.setdefault(sends_from(epoch, op, cell), []).append((id, {"op": name}, relay))
            there = arrives_at(epoch, op, cell)
            others.setdefault(there, []).append(own.made[own.arrivals[name][cell]].size_tiles * tile)
    for id, hop in hops.items():
        chip, row, column, channel = hop.at
        relay = Relay(hop.piece, hop.tile_bytes, hop.epoch_tiles, 0, hop.tiles)
        if channel < 0:
            yield _buffer(EthernetCore(chip, -1, row, column), hop.number, id, {}, relay, count)
        else:
            sized.setdefault(EthernetCore(chip, channel, row, column), []).append((id, hop.result, relay))
    for core, group in sized.items():
        size_relays([relay for _, _, relay in group], arrived_bytes(others.get(core, ())))
        for number, (id, result, relay) in enumerate(group):
            yield _buffer(core, number, id, result, relay, count)


def _gathered(epoch: Epoch, buffers: Buffers, draft: Draft, piece: int, tile: int) -> int:
    if draft.channel < 0 or draft.scattered:  # on a worker core, or for several in turn, which net2pipe does not count
        return 0
    from_dram = draft.source in epoch.netlist.queues
    cores = sum(id not in buffers.padding.made for id in draft.bases)
    return gathered_bytes(len(draft.inputs), cores, piece, tile, from_dram=from_dram)


def _buffer(core: EthernetCore, number: int, id: int, result: Mapping[str, Any], relay: Relay, count: int) -> Buffer:
    alone = {"op": "", "ublock_rt": 1, "ublock_ct": 1, "mblock_m": 1, "mblock_n": 1}
    said: dict[str, Any] = {**alone, **result, "chip": core.chip}
    return Buffer(
        id=id,
        operand=RELAY_OPERAND + number,
        buffer_type="ethernet_relay" if core.channel >= 0 else "relay",
        row=core.row,
        column=core.column,
        ethernet_chan=core.channel,
        epoch_tiles=relay.epoch_tiles,
        tiles_per_input=relay.epoch_tiles // count,
        size_tiles=relay.tiles,
        tile_size=relay.tile_bytes,
        scatter_gather_num_tiles=relay.piece,
        **said,
    )
