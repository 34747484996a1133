"""Gives operands buffer space: what `fork_join` finds missing, in L1 or in a queue in DRAM, and for a single input all
that is read out of DRAM."""

from dataclasses import replace
from math import prod

from buda_emu.compiler.lower.tiles import Use
from buda_emu.compiler.place.blocks import buffer_bytes, size_of_tile
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.fork_join import Edge, Lack, Pipeline, lacks
from buda_emu.compiler.place.memory import Memory
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.place.queues import fork_queue
from buda_emu.compiler.place.routed import held_bytes
from buda_emu.timing.epoch.parts import parts_of_blocks
from buda_emu.timing.epoch.result import INPUT_BUFFERS

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


def prefetch(found: Placement, epoch: int | None = None) -> None:
    """Room for all of what the ops of an epoch, of all with None, read out of DRAM for a single input, the smallest
    first, as far as L1 goes: it is there when an op begins, and does not come in parts while the op works
    (`input_buf_min_size_tiles`). Where L1 is full, the output buffer has room for this input alone."""
    if not found.waits_for_one:
        return
    for name, placed in found.ops.items():
        if epoch not in (None, placed.epoch) or parts_of_blocks(placed.blocks.t, placed.blocks.mblock) <= INPUT_BUFFERS:
            continue
        made = _with_room(found, placed)
        if made is not placed:
            found.ops[name] = made
            found.tiles.ops[name] = replace(found.tiles.ops[name], uses=made.op.uses)


def _with_room(found: Placement, placed: Placed) -> Placed:
    op, target = placed.op, found.target.of(placed.op.precision)
    tile = size_of_tile(target.activation_df, target.arch.alignment)
    uses = list(op.uses)
    wanted = {
        number: tiles_read(found.tiles, op, placed.blocks, number)
        for number, use in enumerate(uses)
        if use.source not in placed.held and _is_read(found, placed, use.source)
    }
    blocks, held = placed.blocks, held_bytes(found, placed)
    free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    if sum(wanted.values()) * tile > free and blocks.buf_size_mb > 2 * blocks.t:
        blocks = replace(blocks, buf_size_mb=2 * blocks.t)
        free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    for number, tiles in sorted(wanted.items(), key=lambda item: item[::-1]):
        if tiles * tile <= free:
            free -= tiles * tile
            uses[number] = replace(uses[number], buffer=max(uses[number].buffer, tiles))
    return placed if uses == op.uses else replace(placed, op=replace(op, uses=uses), blocks=blocks)


def _is_read(found: Placement, placed: Placed, source: str) -> bool:
    """Whether an operand comes out of DRAM."""
    maker = found.ops.get(source)
    return maker is None or maker.epoch != placed.epoch or (placed.op.name, source) in found.detours
