"""Room for all of what an op of a single input reads out of DRAM: it is there when the op begins, and does not come in
parts while the op works (`input_buf_min_size_tiles`). Where L1 is full, the output buffer has room for this input
alone."""

from dataclasses import replace

from buda_emu.compiler.place.blocks import buffer_bytes, size_of_tile
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.place.routed import held_bytes
from buda_emu.timing.epoch.parts import parts_of_blocks
from buda_emu.timing.epoch.result import INPUT_BUFFERS


def prefetch(found: Placement, epoch: int | None = None) -> None:
    """Operands of the ops of an epoch, of all with None, get this room, the smallest first, as far as L1 goes."""
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
