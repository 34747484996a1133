"""The buffers of an op's result in one core: output buffer and intermediates."""

from dataclasses import dataclass

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.buffers.granularity import Cut
from buda_emu.routing.pipes.maps.source_map import divides
from buda_emu.routing.pipes.ops.fused_use import FusedUse
from buda_emu.routing.pipes.ops.general import buffered_mblocks, mblock_tiles, shares_output
from buda_emu.routing.pipes.ops.kinds import kind_of
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.archs import Arch
from buda_emu.spec.formats import tile_bytes


@dataclass(frozen=True, slots=True)
class Output:
    """The output buffer of one core, as `pipegen.yaml` has it. `epoch_tiles` and `size_tiles` are of one piece."""

    tile_size: int
    epoch_tiles: int
    size_tiles: int
    replicate: int
    per_input: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class Intermediate:
    """One intermediate buffer."""

    tile_size: int
    epoch_tiles: int
    size_tiles: int
    gathered: int


def differs_by_core(op: Op) -> bool:
    """Whether the cores of an op have different output buffers."""
    return kind_of(op).keeps_strips


def output(op: Op, core: int, cut: Cut, input_count: int, arch: Arch) -> Output:
    """Of the `core`th core of an op, counted row by row. RefusedError for a buffer that pipes cannot read."""
    if op.acc_df == "Float32" and arch.name == "grayskull":
        raise RefusedError("V333", "acc_df is Float32, the accumulators of grayskull have 16 bits")
    own, block, single = op.blocking, mblock_tiles(op), buffered_mblocks(op)
    strips = differs_by_core(op)
    if not strips and not divides(single, own.t):
        raise RefusedError("V080", f"buf_size_mb {op.buf_size_mb} buffers {single} mblocks at a time, t is {own.t}")
    size = tile_bytes(op.out_df, *own.tile_dim, arch.alignment, not op.untilize_output)
    per_input = own.t * block
    if not cut.scattered:
        runs = _strips(op, core) if strips else own.t
        row = own.block_cols * own.ublock[0] if op.untilize_output else block
        return Output(size, input_count * runs * block, op.buf_size_mb * row, 0, per_input, cut)
    total = input_count * own.t
    held = min(single, total)
    replicate = held * block // cut.tiles
    full = held if total <= single else op.buf_size_mb
    return Output(size, total * block // replicate, full * block // replicate, replicate, per_input, cut)


def _strips(op: Op, core: int) -> int:
    counts = op.attributes.num_nz_strips
    if core >= len(counts):
        raise RefusedError("V334", f"num_nz_strips has {len(counts)} entries, core {core} has none")
    return counts[core]


def intermediate_buffers(
    op: Op, out: Output, fused: FusedUse | None, count: int, input_count: int, arch: Arch
) -> list[Intermediate]:
    """All of one core, that of the highest operand id first."""
    number = kind_of(op).intermediates(op, count)
    found: list[Intermediate] = []
    block, own = mblock_tiles(op), op.attributes
    for index in reversed(range(number)):
        df, tiles = op.intermed_df, block
        if op.has("result indices"):
            df, tiles = op.in_df[index], op.blocking.mblock[0] * own.m_k * op.blocking.ublock[0] * own.u_kt
        size = tile_bytes(df, *op.blocking.tile_dim, arch.alignment, True)
        epoch_tiles = tiles if op.gradient_op else input_count * tiles
        found.append(Intermediate(size, epoch_tiles, _size(op, out, fused, index, tiles), tiles))
    return found


def _size(op: Op, out: Output, fused: FusedUse | None, index: int, tiles: int) -> int:
    if shares_output(op):
        return out.size_tiles * (out.replicate or 1)
    if op.has("sub-ops"):
        return fused.intermediate_tiles[index] if fused is not None else 1
    return op.blocking.t * tiles if op.gradient_op else tiles


def mblock_k(op: Op) -> int:
    """How often a block passes the intermediate buffer for one result, a gradient's own sum not counted."""
    own, passes = op.attributes, kind_of(op).passes(op)
    if own.bias:
        passes += (op.acc_df != "Int32") + (own.requant or own.dequant)
    return passes
