"""The estimated cost of a division of an op in isolation: cycles of one core, cycles of its transfers, and bytes that
DRAM moves.

The search is bounded by these figures; its results are judged by the whole timing model (`search/evaluate.py`)."""

from dataclasses import dataclass
from functools import cache
from math import gcd, prod
from typing import Any

from buda_emu.compiler.lower.tiles import Shape, TileAttributes, TileGraph, TileOp, Use, after, divisors
from buda_emu.compiler.place.blocks import Blocks, size_of_tile, step_blocks
from buda_emu.compiler.target import Target
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import OpCost, in_graph, op_cost
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.archs import DRAM_RESERVED
from buda_emu.spec.devices import Device

LONGEST_INNER_BLOCK = 16
"""Most tiles of the inner dimension in one block of a product whose division is not known yet (`product_cycles`). No
measurement chose the figure."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """Bytes in a cycle: `dram` of all DRAM channels together, `host` of the host link."""

    dram: float
    host: float


@cache
def speeds(chip: Device) -> Speeds:
    """Return the bytes that the DRAM and the host link of a chip move in a cycle."""
    rates = speed(chip, {}).rates()
    return Speeds(rates.dram * chip.dram_channels, rates.host)


@cache
def _cached_op_cost(call: OpCall) -> OpCost:
    """Return the cost of a call of the op cost model, computed once for equal calls."""
    return op_cost(call)


def op_call(target: Target, op: TileOp, blocks: Blocks, type: str, attrs: TileAttributes) -> OpCall:
    """Return the call of the op cost model for one op, or for one step of a fused op with the step's type, blocks and
    attributes. The formats are those of the target."""
    df = target.activation_df
    m, n = blocks.mblock
    r, c = blocks.ublock
    kind = "nop" if type == "datacopy" else type
    m_k = u_kt = 0
    if kind in ("matmul", "depthwise"):
        m_k = max(blocks.m_k, 1)
        u_kt = max(blocks.u_kt, 1)
    call: dict[str, Any] = {
        "op_type": kind,
        "arch": target.arch.name,
        "t": blocks.t,
        "mblock_m": m,
        "mblock_n": n,
        "ublock_rt": r,
        "ublock_ct": c,
        "in0_df": df,
        "in1_df": df if len(op.uses) > 1 else "",
        "out_df": df,
        "fidelity": target.fidelity,
        "vector_mode": attrs.get("vector") or "rc",
        "untilize": bool(attrs.get("untilize")),
        "m_k": m_k,
        "u_kt": u_kt,
    }
    if attrs.get("untilize"):
        call["out_df"] = target.output_df
    if kind == "reduce":
        call |= _reduce_fields(blocks, attrs)
    if attrs.get("identity"):
        strips = max(attrs["strips"])
        tiles = attrs["indices_len"]
        call |= {
            "sparse": True,
            "in0_df": target.picker_df if op.attrs["table"].plain else target.activation_df,
            "fidelity": _picker_fidelity(target),
            "nz_strips": strips,
            "nz_ublocks": max(attrs.get("ublocks", tiles), strips),
            "nz_tiles": max(tiles, strips),
        }
    return OpCall(**call)


def _reduce_fields(blocks: Blocks, attrs: TileAttributes) -> dict[str, Any]:
    """Return the fields of a reduction's call that differ from those of other ops. The cost model takes the blocks of
    the operand, so the reduced dimension counts with all its tiles, and a reduction over t has their number in `z`."""
    m, n = blocks.mblock
    r, c = blocks.ublock
    deep = max(blocks.m_k, 1)
    inner = max(blocks.u_kt, 1)
    fields: dict[str, Any] = {"reduce_dim": attrs["dim"]}
    if attrs["dim"] == "z":
        return fields | {"z": max(int(attrs.get("z", 1)), 1)}
    if attrs["dim"] == "r":
        return fields | {"mblock_m": m * deep, "ublock_rt": r * inner}
    return fields | {"mblock_n": n * deep, "ublock_ct": c * inner}


def _picker_fidelity(target: Target) -> str:
    """Return the fidelity of an identity matmul: LoFi where the target has it, else HiFi2, which is enough to move
    numbers unchanged."""
    if target.fidelity == "LoFi":
        return "LoFi"
    return "HiFi2"


def product_cycles(target: Target, rows: int, inner: int, columns: int) -> float:
    """Return the cycles of one core for the product of a matrix of `rows` x `inner` tiles by a constant of `inner` x
    `columns` tiles, before the product is an op with a division of its own."""
    wide = max(size for size in divisors(columns) if size <= target.dest_tiles)
    high = max(size for size in divisors(rows) if size * wide <= target.dest_tiles)
    deep = max(size for size in divisors(inner) if size <= LONGEST_INNER_BLOCK)
    return _cached_op_cost(
        OpCall(
            op_type="matmul",
            arch=target.arch.name,
            t=1,
            mblock_m=rows // high,
            mblock_n=columns // wide,
            ublock_rt=high,
            ublock_ct=wide,
            m_k=inner // deep,
            u_kt=deep,
            in0_df=target.activation_df,
            in1_df=target.activation_df,
            out_df=target.activation_df,
            fidelity=target.fidelity,
        )
    ).core_cycles


def picker_cycles(target: Target, rows: int, columns: int) -> float:
    """Return the cycles of one core for an identity matmul of `rows` x `columns` tiles as it is lowered, before the
    search divides it. For each tile that it makes it reads two, since a tap may begin anywhere in a tile."""
    wide = max(size for size in divisors(columns) if size <= target.dest_tiles)
    return _cached_op_cost(
        OpCall(
            op_type="matmul",
            arch=target.arch.name,
            t=1,
            mblock_m=rows,
            mblock_n=columns // wide,
            ublock_rt=1,
            ublock_ct=wide,
            m_k=rows,
            u_kt=1,
            in0_df=target.picker_df,
            in1_df=target.activation_df,
            out_df=target.activation_df,
            fidelity=_picker_fidelity(target),
            sparse=True,
            nz_strips=rows,
            nz_ublocks=2 * rows,
            nz_tiles=2 * rows,
        )
    ).core_cycles


def op_cycles(target: Target, op: TileOp, blocks: Blocks) -> float:
    """Return the cycles of one core for one input, if operands never keep it waiting: those of all steps of a fused op,
    and of an activation that is part of the op (`sfpu_op`)."""
    calls = [op_call(target, op, step_blocks(op, blocks, step), step.type, step.attrs) for step in op.steps]
    calls = calls or [op_call(target, op, blocks, op.type, op.attrs)]
    if "sfpu_op" in op.attrs:
        calls.append(op_call(target, op, blocks, op.attrs["sfpu_op"], {}))
    return sum(_cached_op_cost(call).core_cycles * in_graph(call) for call in calls)


def shape_after_tms(tiles: TileGraph, use: Use) -> Shape:
    """Return the shape of an operand as its reader sees it, after its TMs, in tiles as (t, rows, columns)."""
    shape = tiles.shape_of(use.source)
    for tm in use.tms:
        shape = after(tm, shape)
    return shape


def tiles_read(tiles: TileGraph, op: TileOp, blocks: Blocks, number: int) -> int:
    """Return the tiles of operand `number` that one core reads for one input, at least 1: cores of one row read the
    same rows of a product's first operand, cores of one column the same columns of its second, and all other operands
    are cut over all cores (OPS 6.1). Of an embedding's table only the picked rows count."""
    shape = shape_after_tms(tiles, op.uses[number])
    if op.has("row-wise index") and number == 0:
        shape = op.shape  # of the table the rows that are picked
    rows, columns = blocks.grid
    if op.is_factor(number):
        return max(1, prod(shape) // columns)
    if op.is_left_factor(number):
        return max(1, prod(shape) // rows)
    return max(1, prod(shape) // (rows * columns))


def constant_grid(op: TileOp, number: int, shape: Shape, grid: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of buffers into which the queue of a constant is cut so that it suits its reader,
    which takes it as operand `number`: the second operand of a product is cut by the reader's columns of cores, the
    first by its rows, any other by both (OPS 6.1). `shape`: the constant's shape in tiles; `grid`: the reader's rows
    and columns of cores."""
    if op.is_factor(number):
        height = 1
    else:
        height = gcd(grid[0], shape[1])
    if op.is_left_factor(number):
        width = 1
    else:
        width = gcd(grid[1], shape[2])
    return height, width


def fits_channels(target: Target, tiles: TileGraph, op: TileOp, grid: tuple[int, int]) -> bool:
    """Return whether every constant of kind "value" that the op reads, cut for this grid of cores, has buffers that are
    no larger than a DRAM channel."""
    size = size_of_tile(target.activation_df, target.arch.alignment)
    room = target.arch.dram_channel_bytes - DRAM_RESERVED
    held = [
        (number, tiles.constants[use.source].shape)
        for number, use in enumerate(op.uses)
        if use.source in tiles.constants and tiles.constants[use.source].kind == "value"
    ]
    return all(prod(shape) * size // prod(constant_grid(op, number, shape, grid)) <= room for number, shape in held)


def transfer_cycles(target: Target, tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> float:
    """Return the cycles of the slowest transfer of an op for one input and core: of an operand into the core, or of the
    result out of it. Operands whose source is in `held` stay in L1 and are not moved."""
    size = size_of_tile(target.activation_df, target.arch.alignment)
    chip = target.chip
    slowest = prod(op.shape) // prod(blocks.grid) * size / chip.stream_rate
    for number, use in enumerate(op.uses):
        if use.source not in held:
            if use.source in tiles.ops:
                rate = chip.gather_rate
            else:
                rate = chip.stream_rate
            slowest = max(slowest, tiles_read(tiles, op, blocks, number) * size / rate)
    return slowest


def streamed_bytes(target: Target, tiles: TileGraph, op: TileOp, held: frozenset[str]) -> float:
    """Return the bytes that DRAM moves for an op with each input: the model's inputs and the constants that it reads,
    except those `held` in L1, and an untilized result. What other ops make does not count, as it may stay on the
    chip."""
    size = size_of_tile(target.activation_df, target.arch.alignment)
    read = [use.source for use in op.uses if use.source not in tiles.ops and use.source not in held]
    if op.has("row-wise index"):  # of the table the rows that are picked
        read[0] = op.name
    total = sum(prod(tiles.shape_of(name)) for name in read)
    if op.attrs.get("untilize"):
        total += prod(op.shape)
    return float(size * total)
