"""The estimated cost of a division of an op in isolation: cycles of one core, and of the transfer of its operands.

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

DEEPEST = 16
"""Tiles of the inner dimension in a block of a product, where only an estimate is needed."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """Bytes in a cycle: of all DRAM channels together, and of the host link."""

    dram: float
    host: float


@cache
def speeds(chip: Device) -> Speeds:
    """Return the bytes that the DRAM and the host link of a chip move in a cycle."""
    rates = speed(chip, {}).rates()
    return Speeds(rates.dram * chip.dram_channels, rates.host)


@cache
def _cost(call: OpCall) -> OpCost:
    """Return the cost of a call of the cost model, computed once for equal calls."""
    return op_cost(call)


def op_call(target: Target, op: TileOp, blocks: Blocks, type: str, attrs: TileAttributes) -> OpCall:
    """Return the call of the cost model for an op, or for a step of it that has this type, these blocks and these
    attributes."""
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
    """Return the fields of a reduction's call; its blocks are those of its operand."""
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
    """Return the fidelity of an identity matmul, which needs no more than HiFi2 to move numbers."""
    if target.fidelity == "LoFi":
        return "LoFi"
    return "HiFi2"


def product_cycles(target: Target, rows: int, inner: int, columns: int) -> float:
    """Return the cycles of one core for the product of a matrix of `rows` x `inner` tiles by a constant of `inner` x
    `columns` tiles."""
    wide = max(size for size in divisors(columns) if size <= target.dest_tiles)
    high = max(size for size in divisors(rows) if size * wide <= target.dest_tiles)
    deep = max(size for size in divisors(inner) if size <= DEEPEST)
    return _cost(
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
    """Return the cycles of one core for an identity matmul as it is lowered, before the search divides it. For each
    tile that it makes it reads two, since a tap may begin anywhere in a tile."""
    wide = max(size for size in divisors(columns) if size <= target.dest_tiles)
    return _cost(
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
    """Return the cycles of one core for one input, when other ops feed it."""
    calls = [op_call(target, op, step_blocks(op, blocks, step), step.type, step.attrs) for step in op.steps]
    calls = calls or [op_call(target, op, blocks, op.type, op.attrs)]
    if "sfpu_op" in op.attrs:
        calls.append(op_call(target, op, blocks, op.attrs["sfpu_op"], {}))
    return sum(_cost(call).core_cycles * in_graph(call) for call in calls)


def shape_behind(tiles: TileGraph, use: Use) -> Shape:
    """Return the tiles of an operand after its TMs as (t, rows, columns)."""
    shape = tiles.shape_of(use.source)
    for tm in use.tms:
        shape = after(tm, shape)
    return shape


def tiles_read(tiles: TileGraph, op: TileOp, blocks: Blocks, number: int) -> int:
    """Return the tiles of operand `number` that one core reads for one input: a row of cores shares rows, a column of
    cores shares columns (OPS 6.1)."""
    shape = shape_behind(tiles, op.uses[number])
    if op.has("row-wise index") and number == 0:
        shape = op.shape  # of the table the rows that are picked
    rows, columns = blocks.grid
    if op.is_factor(number):
        return max(1, prod(shape) // columns)
    if op.is_left_factor(number):
        return max(1, prod(shape) // rows)
    return max(1, prod(shape) // (rows * columns))


def divided_like(op: TileOp, number: int, shape: Shape, grid: tuple[int, int]) -> tuple[int, int]:
    """Return the rows and columns of buffers of a constant as its reader needs it, as operand `number`: the second
    operand of a product is divided by columns of cores, the first by rows, others by both (OPS 6.1). `shape`: the
    constant's tiles; `grid`: the reader's."""
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
    """Return whether no buffer of a constant is larger than a DRAM channel."""
    size = size_of_tile(target.activation_df, target.arch.alignment)
    room = target.arch.dram_channel_bytes - DRAM_RESERVED
    held = [
        (number, tiles.constants[use.source].shape)
        for number, use in enumerate(op.uses)
        if use.source in tiles.constants and tiles.constants[use.source].kind == "value"
    ]
    return all(prod(shape) * size // prod(divided_like(op, number, shape, grid)) <= room for number, shape in held)


def transfer_cycles(target: Target, tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> float:
    """Return the cycles of the slowest transfer of an op for one input: of an operand into a core, or of the result out
    of it. Sources in `held` stay in L1 and are not moved."""
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
    """Return the bytes that an op moves in DRAM for each input: the inputs and constants that it reads there, except
    those `held` in L1, and the output that it writes."""
    size = size_of_tile(target.activation_df, target.arch.alignment)
    read = [use.source for use in op.uses if use.source not in tiles.ops and use.source not in held]
    if op.has("row-wise index"):  # of the table the rows that are picked
        read[0] = op.name
    total = sum(prod(tiles.shape_of(name)) for name in read)
    if op.attrs.get("untilize"):
        total += prod(op.shape)
    return float(size * total)
