"""Gives operands the buffer space that `fork_join` finds missing: in L1, otherwise in a queue in DRAM."""

from dataclasses import replace
from math import prod

from buda_emu.compiler.lower.tiles import Use
from buda_emu.compiler.place.blocks import buffer_bytes, size_of_tile
from buda_emu.compiler.place.fork_join import Edge, Lack, Pipeline, lacks
from buda_emu.compiler.place.memory import Memory
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.place.queues import fork_queue
from buda_emu.compiler.place.routed import held_bytes

_ROUNDS = 4
"""Room that one join is given may be what another one lacks: looked at again so often."""


def give_room(placement: Placement) -> None:
    """For every graph: operand buffers as large as short branches need. What would only wait, not hang, has none where
    L1 is full."""
    memory = Memory.of(placement)
    for graph in placement.graphs():
        placed = {name: item for name, item in placement.ops.items() if item.graph == graph}
        pipeline = Pipeline(
            {name: item.op for name, item in placed.items()},
            {name: item.blocks for name, item in placed.items()},
            frozenset(placement.detours),
        )
        refused: set[Edge] = set()
        for _ in range(_ROUNDS):
            found = [lack for lack in lacks(pipeline) if lack.edge not in refused]
            for lack in found:
                if not _in_l1(placement, pipeline, lack):
                    refused.add(lack.edge)
                    if lack.hangs:
                        _by_queue(placement, memory, pipeline, lack.edge)
            if not found:
                break


def _in_l1(placement: Placement, pipeline: Pipeline, lack: Lack) -> bool:
    """A larger operand buffer of the reader, if its cores have the bytes."""
    edge = lack.edge
    op, blocks = pipeline.ops[edge.reader], pipeline.blocks[edge.reader]
    target, use = placement.target.of(op.precision), op.uses[edge.operand]
    if op.is_tile_by_tile and not use.tms:
        slice_tiles = prod(blocks.mblock) * prod(blocks.ublock)
    else:  # how operands of products and what TMs rearrange are cut over cores: at most all of it in each
        slice_tiles = prod(pipeline.ops[edge.source].shape[1:])
    slices = pipeline.extra.get(edge, 0) + lack.slices
    tile = size_of_tile(target.activation_df, target.arch.alignment)
    others = sum(item.buffer for number, item in enumerate(op.uses) if number != edge.operand)
    held = held_bytes(placement, placement.ops[edge.reader])
    if buffer_bytes(target, op, blocks, held=held) + (others + slices * slice_tiles) * tile > target.buffer_room:
        return False
    pipeline.extra[edge] = slices
    _use(placement, pipeline, edge, replace(use, buffer=slices * slice_tiles))
    return True


def _use(placement: Placement, pipeline: Pipeline, edge: Edge, use: Use) -> None:
    """Another operand for the reader, whose op may be shared with other placements."""
    for ops in (placement.tiles.ops, pipeline.ops):
        uses = list(ops[edge.reader].uses)
        uses[edge.operand] = use
        ops[edge.reader] = replace(ops[edge.reader], uses=uses)
    placement.ops[edge.reader] = replace(placement.ops[edge.reader], op=pipeline.ops[edge.reader])


def _by_queue(placement: Placement, memory: Memory, pipeline: Pipeline, edge: Edge) -> None:
    """The reader takes the operand from DRAM: all of an input has room there."""
    reader = pipeline.ops[edge.reader]
    name = f"fork_{edge.source}_{edge.operand}_{edge.reader}"
    placement.queues[name] = fork_queue(placement, name, edge.source, placement.ops[edge.source].chip)
    memory.add(placement, {name: {}})
    _use(placement, pipeline, edge, Use(name, reader.uses[edge.operand].tms))
