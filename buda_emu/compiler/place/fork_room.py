"""Gives operands the room that `fork_join` finds lacking: in L1, else by way of a queue in DRAM."""

from dataclasses import replace
from math import prod

from buda_emu.compiler.lower.tiles import Use
from buda_emu.compiler.place.blocks import buffer_bytes, l1_bytes
from buda_emu.compiler.place.fork_join import Edge, Lack, Pipeline, lacks
from buda_emu.compiler.place.placer import Placement, Queue
from buda_emu.compiler.target import Target
from buda_emu.errors import UnsupportedError
from buda_emu.spec.formats import tile_bytes
from buda_emu.spec.ops import OP_TYPES

_ROUNDS = 4
"""Room that one join is given may be what another one lacks: looked at again so often."""
_ENTRIES = 2
"""Twice the inputs of a round (FRONTEND 5)."""
_STREAMED = ("unary", "binary", "sfpu", "fused")


def give_room(placement: Placement) -> None:
    """For every epoch: operand buffers as large as short branches need. What would only wait, not hang, has none where
    L1 is full."""
    for epoch in range(placement.epochs):
        placed = {name: item for name, item in placement.ops.items() if item.epoch == epoch}
        pipeline = Pipeline(
            {name: item.op for name, item in placed.items()}, {name: item.blocks for name, item in placed.items()}
        )
        refused: set[Edge] = set()
        for _ in range(_ROUNDS):
            found = [lack for lack in lacks(pipeline) if lack.edge not in refused]
            for lack in found:
                if not _in_l1(placement, pipeline, lack):
                    refused.add(lack.edge)
                    if lack.hangs:
                        _by_queue(placement, lack.edge)
            if not found:
                break


def _in_l1(placement: Placement, pipeline: Pipeline, lack: Lack) -> bool:
    """A larger operand buffer of the reader, if its cores have the bytes."""
    edge = lack.edge
    op, blocks = pipeline.ops[edge.reader], pipeline.blocks[edge.reader]
    target, use = placement.target.of(op.precision), op.uses[edge.operand]
    if OP_TYPES[op.type].family in _STREAMED and not use.tms:
        slice_tiles = prod(blocks.mblock) * prod(blocks.ublock)
    else:  # how operands of products and what TMs rearrange are cut over cores: at most all of it in each
        slice_tiles = prod(pipeline.ops[edge.source].shape[1:])
    slices = pipeline.extra.get(edge, 0) + lack.slices
    tile = _tile_size(target, target.activation_df)
    others = sum(item.buffer for number, item in enumerate(op.uses) if number != edge.operand)
    if buffer_bytes(target, op, blocks) + (others + slices * slice_tiles) * tile > l1_bytes(target):
        return False
    pipeline.extra[edge] = slices
    op.uses[edge.operand] = replace(use, buffer=slices * slice_tiles)
    return True


def _by_queue(placement: Placement, edge: Edge) -> None:
    """The reader takes the operand from DRAM: all of an input has room there."""
    producer, reader = placement.ops[edge.source], placement.ops[edge.reader].op
    name = f"fork_{edge.source}_{edge.operand}_{edge.reader}"
    df = placement.target.of(producer.op.precision).activation_df
    queue = Queue(name, edge.source, "fork", producer.blocks, df, "queue", _ENTRIES, "dram", ())
    placement.queues[name] = replace(queue, addresses=_addresses(placement, queue))
    reader.uses[edge.operand] = Use(name, reader.uses[edge.operand].tms)


def _addresses(placement: Placement, queue: Queue) -> tuple[tuple[int, int], ...]:
    """Behind everything, in the channels with the fewest bytes."""
    target = placement.target
    ends: dict[int, int] = {}
    for item in placement.queues.values():
        for channel, address in item.addresses if item.loc == "dram" else ():
            ends[channel] = max(ends.get(channel, 0), address + _buffer_size(target, item))
    start, size = min(ends.values()), _buffer_size(target, queue)
    places: list[tuple[int, int]] = []
    for _ in range(prod(queue.blocks.grid)):
        channel = min(range(target.arch.dram_channels), key=lambda number: (ends.get(number, start), number))
        address = ends.get(channel, start)
        if address + size > target.arch.dram_channel_bytes:
            raise UnsupportedError(f"compile: {queue.name}: the DRAM of one {target.arch.name} is full")
        places.append((channel, address))
        ends[channel] = address + size
    return tuple(places)


def _buffer_size(target: Target, queue: Queue) -> int:
    """Bytes of one buffer of a queue in DRAM, header included."""
    align, blocks = target.arch.alignment, queue.blocks
    tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
    size = tiles * _tile_size(target, queue.df) * queue.entries + align
    return -(-size // align) * align


def _tile_size(target: Target, df: str) -> int:
    return tile_bytes(df, 32, 32, target.arch.alignment, header=True)
