"""Ops as calls of the cost model: those of a netlist, and the rows of a table."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from buda_emu.netlist.model import Netlist, Op, SubOp
from buda_emu.performance.timing.op.call import OpCall, ReduceDim, VectorMode
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.formats import is_raw
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.errors import HostError, UnsupportedError

WORDS: Final = {"arch": "arch", "op_type": "op_type", "fidelity": "fidelity", "in0_df": "in0_df", "in1_df": "in1_df",
                "out_df": "out_df"}  # fmt: skip
LOWER: Final = {"vector_mode": "vector_mode", "reduce_dim": "reduce_dim"}
COUNTS: Final = {name: name for name in (
    "t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct", "m_k", "u_kt", "z", "nz_strips", "nz_ublocks", "nz_tiles",
)}  # fmt: skip
FLAGS: Final = {"approx": "approximate", "l1_acc": "l1_acc", "sparse": "sparse"}

COLUMNS: Final = (*WORDS, *LOWER, *COUNTS, *FLAGS)
"""The columns that describe an op. An empty cell or an absent column takes the default of `OpCall`."""
REQUIRED: Final = ("op_type", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct")


def read_row(row: Mapping[str, str | None]) -> OpCall:
    """One row, column name to text, as an op. Raises HostError that names the column."""
    given: dict[str, object] = {}
    for column in COLUMNS:
        text = (row.get(column) or "").strip()
        if not text:
            if column in REQUIRED:
                raise HostError(f"{column}: empty")
        elif column in COUNTS:
            given[COUNTS[column]] = _count(column, text)
        elif column in FLAGS:
            given[FLAGS[column]] = _flag(column, text)
        else:
            given[column] = text.lower() if column in LOWER else text
    try:
        return OpCall(**given)  # type: ignore[arg-type]  # columns are fields, checked by OpCall
    except UnsupportedError as error:
        raise UnsupportedError(f"op_type: {error}") from error


def _count(column: str, text: str) -> int:
    try:
        value = float(text)  # sweeps write 4 as 4.0
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise HostError(f"{column}: '{text}' is not an integer")
    return int(value)


def _flag(column: str, text: str) -> bool:
    words = {"0": False, "1": True, "false": False, "true": True}
    if text.lower() not in words:
        raise HostError(f"{column}: '{text}' is neither 0 nor 1")
    return words[text.lower()]


_OUTSIDE = re.compile(r"input_?([0-9]{1,3})")  # an input of the fused op, not an intermediate
_AS = {"datacopy": "nop"}  # PERF 2: reports call them the same


def calls_of(netlist: Netlist, op: Op) -> tuple[OpCall, ...]:
    """What one core of the op computes for one input; a vector op after a product (`sfpu_op`) as if it stood alone.
    Raises HostError, UnsupportedError for what has no cost."""
    if not op.has("sub-ops"):
        own = _call(netlist, op, op.type, op.attributes, op.blocking, op.vector, _sources(op))
        behind = op.attributes.sfpu_op
        if behind not in SFPU_TYPES:
            return (own,)
        return own, _call(netlist, op, behind, Attributes(), op.blocking, "", [op.intermed_df])
    fused = netlist.fused_ops[op.attributes.fused_op_id]
    return tuple(_part(netlist, op, part) for schedule in fused.schedules for part in schedule)


def operands_of(netlist: Netlist, op: Op) -> tuple[Mapping[int, int], ...]:
    """Of each of `calls_of`, which operand of the op each of its own operands is, where it is one."""
    if not op.has("sub-ops"):
        own = {number: number for number in range(len(op.inputs))}
        return (own, {}) if op.attributes.sfpu_op in SFPU_TYPES else (own,)
    fused = netlist.fused_ops[op.attributes.fused_op_id]
    return tuple(_outside(part.inputs) for schedule in fused.schedules for part in schedule)


@lru_cache(1 << 12)
def _outside(inputs: tuple[str, ...]) -> Mapping[int, int]:
    """By the place of an operand of a sub-op the number of the fused op's operand that it is; the search asks for the
    same ones again and again."""
    return {place: int(match[1]) for place, name in enumerate(inputs) if (match := _OUTSIDE.match(name))}


def _part(netlist: Netlist, op: Op, part: SubOp) -> OpCall:
    """A sub-op works on its own mblock and ublock, once for each t of the op."""
    mblock = part.mblock if part.mblock[0] > 0 else op.blocking.mblock
    ublock = part.ublock if part.ublock[0] > 0 else op.blocking.ublock
    blocking = replace(op.blocking, mblock=mblock, ublock=ublock)
    formats = _sources(op)
    outside = [formats[number] for number in _outside(part.inputs).values() if number < len(formats)]
    return _call(netlist, op, part.type, part.attributes, blocking, part.attributes.vector, outside or [op.intermed_df])


def _sources(op: Op) -> list[str]:
    return list(op.in_df) or [op.out_df]


def _call(
    netlist: Netlist, op: Op, kind: str, attributes: Attributes, blocking: Blocking, vector: str, formats: list[str]
) -> OpCall:
    declared = OP_TYPES[kind]
    plain = [df for df in formats if not is_raw(df)] or formats
    call = OpCall(
        op_type=_AS.get(kind, kind),
        arch=_arch(netlist),
        t=blocking.t,
        mblock_m=blocking.mblock[0],
        mblock_n=blocking.mblock[1],
        ublock_rt=blocking.ublock[0],
        ublock_ct=blocking.ublock[1],
        in0_df=plain[0],
        in1_df=plain[1] if len(plain) > 1 else "",
        out_df=op.out_df,
        fidelity=op.math_fidelity or "HiFi4",
        approximate=attributes.approximate_mode,
        vector_mode=_vector(vector),
        l1_acc=attributes.l1_acc,
        tile_rows=blocking.tile_dim[0],
        tile_cols=blocking.tile_dim[1],
        untilize=op.untilize_output,
        m_k=max(attributes.m_k, 1) if declared.has("inner dimension") else 0,
        u_kt=max(attributes.u_kt, 1) if declared.has("inner dimension") else 0,
        reduce_dim=_dim(attributes) if declared.has("reduces") else "",
    )
    if declared.has("reduces"):
        return _reduced(call, attributes)
    if kind == "matmul" and attributes.identity:
        return _sparse(call, attributes)
    return call


def _arch(netlist: Netlist) -> str:
    return netlist.arch_name if netlist.arch.documented else "wormhole_b0"


def _vector(text: str) -> VectorMode:
    return "r" if text == "r" else "c" if text == "c" else "rc"


def _reduced(call: OpCall, attributes: Attributes) -> OpCall:
    """Over rows or columns the cost counts the tiles of the input: m_k blocks of u_kt tiles along the dimension."""
    if call.reduce_dim == "z":
        return replace(call, z=max(attributes.z, 1))
    blocks = max(attributes.m_k, 1)
    tiles = max(attributes.u_kt, 1)
    if call.reduce_dim == "r":
        return replace(call, mblock_m=call.mblock_m * blocks, ublock_rt=call.ublock_rt * tiles)
    return replace(call, mblock_n=call.mblock_n * blocks, ublock_ct=call.ublock_ct * tiles)


def _dim(attributes: Attributes) -> ReduceDim:
    return "r" if attributes.dim == "r" else "z" if attributes.dim == "z" else "c"


def _sparse(call: OpCall, attributes: Attributes) -> OpCall:
    """Counts of an encoding are in the data, but for the strips of each core and the tiles of the fullest
    (`indices_len`), where the netlist says them; no ublock is without a tile. Else of one strip for each t and inner
    block, one tile in each ublock (a quarter of the ublocks)."""
    strips = max(attributes.num_nz_strips, default=0) or call.t * max(attributes.m_k, 1)
    tiles = max(attributes.indices_len, strips)
    ublocks = tiles
    if not attributes.indices_len or call.ublock_rt * call.u_kt > 1:
        ublocks = max(strips, strips * call.mblock_m // 4)
        ublocks = min(ublocks, tiles) if attributes.indices_len else ublocks
        tiles = max(tiles, ublocks)
    return replace(call, sparse=True, nz_strips=strips, nz_ublocks=ublocks, nz_tiles=tiles)
