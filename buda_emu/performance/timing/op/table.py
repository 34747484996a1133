"""Calls of the cost model, from the ops of a netlist or from the rows of a table."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
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
    """Return the call that one row of a table describes, a mapping of column names to text. Raises HostError that names
    the column at fault, UnsupportedError for an op that has no cost as a whole."""
    fields: dict[str, object] = {}
    for column in COLUMNS:
        text = (row.get(column) or "").strip()
        if not text:
            if column in REQUIRED:
                raise HostError(f"{column}: empty")
        elif column in COUNTS:
            fields[COUNTS[column]] = _parse_count(column, text)
        elif column in FLAGS:
            fields[FLAGS[column]] = _parse_flag(column, text)
        else:
            if column in LOWER:
                fields[column] = text.lower()
            else:
                fields[column] = text
    try:
        return OpCall(**fields)  # type: ignore[arg-type]  # columns are fields, checked by OpCall
    except UnsupportedError as error:
        raise UnsupportedError(f"op_type: {error}") from error


def _parse_count(column: str, text: str) -> int:
    """Return the integer in a cell of a column; sweeps also write it as a float. Raises HostError for anything else."""
    try:
        value = float(text)  # sweeps write 4 as 4.0
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise HostError(f"{column}: '{text}' is not an integer")
    return int(value)


def _parse_flag(column: str, text: str) -> bool:
    """Return the truth value in a cell of a column. Raises HostError for anything but 0, 1, false and true."""
    words = {"0": False, "1": True, "false": False, "true": True}
    if text.lower() not in words:
        raise HostError(f"{column}: '{text}' is neither 0 nor 1")
    return words[text.lower()]


_OUTSIDE = re.compile(r"input_?([0-9]{1,3})")  # an input of the fused op, not an intermediate
_AS = {"datacopy": "nop"}  # PERF 2: reports call them the same


def calls_of(netlist: Netlist, op: Op) -> tuple[OpCall, ...]:
    """Return the calls that one core of the op computes for one input. A vector op after a product (`sfpu_op`) is a
    call of its own. Raises HostError or UnsupportedError if the op has no cost."""
    if not op.has("sub-ops"):
        call = _make_call(netlist, op, op.type, op.attributes, op.blocking, op.vector, _operand_formats(op))
        sfpu_type = op.attributes.sfpu_op
        if sfpu_type not in SFPU_TYPES:
            return (call,)
        return call, _make_call(netlist, op, sfpu_type, Attributes(), op.blocking, "", [op.intermed_df])
    fused = netlist.fused_ops[op.attributes.fused_op_id]
    return tuple(_sub_op_call(netlist, op, part) for part in chain.from_iterable(fused.schedules))


def operands_of(netlist: Netlist, op: Op) -> tuple[Mapping[int, int], ...]:
    """Return for each call of `calls_of` a mapping from the numbers of its operands to those of the op's operands;
    intermediates of a fused op are left out."""
    if not op.has("sub-ops"):
        operands = {number: number for number in range(len(op.inputs))}
        if op.attributes.sfpu_op in SFPU_TYPES:
            return (operands, {})
        return (operands,)
    fused = netlist.fused_ops[op.attributes.fused_op_id]
    return tuple(_outer_operands(part.inputs) for part in chain.from_iterable(fused.schedules))


@lru_cache(1 << 12)
def _outer_operands(inputs: tuple[str, ...]) -> Mapping[int, int]:
    """Return a mapping from the numbers of a sub-op's operands to the numbers of those that are operands of the whole
    fused op. Cached, since the search for a placement asks for the same ones many times."""
    return {place: int(match[1]) for place, name in enumerate(inputs) if (match := _OUTSIDE.match(name))}


def _sub_op_call(netlist: Netlist, op: Op, part: SubOp) -> OpCall:
    """Return the call of a sub-op (`part`) of a fused op. It works on its own mblock and ublock, by default the op's,
    once for each t of the op."""
    if part.mblock[0] > 0:
        mblock = part.mblock
    else:
        mblock = op.blocking.mblock
    if part.ublock[0] > 0:
        ublock = part.ublock
    else:
        ublock = op.blocking.ublock
    blocking = replace(op.blocking, mblock=mblock, ublock=ublock)
    formats = _operand_formats(op)
    outside = [formats[number] for number in _outer_operands(part.inputs).values() if number < len(formats)]
    return _make_call(
        netlist, op, part.type, part.attributes, blocking, part.attributes.vector, outside or [op.intermed_df]
    )


def _operand_formats(op: Op) -> list[str]:
    """Return the formats of an op's operands; for an op without any, that of its result."""
    return list(op.in_df) or [op.out_df]


def _make_call(
    netlist: Netlist, op: Op, kind: str, attributes: Attributes, blocking: Blocking, vector: str, formats: list[str]
) -> OpCall:
    """Return the call of an op, or of a part of it that works with another type, attributes or blocking. `formats` has
    the formats of its operands; raw ones count only if there are no others."""
    declared = OP_TYPES[kind]
    plain = [df for df in formats if not is_raw(df)] or formats
    m_k = 0
    u_kt = 0
    if declared.has("inner dimension"):
        m_k = max(attributes.m_k, 1)
        u_kt = max(attributes.u_kt, 1)
    call = OpCall(
        op_type=_AS.get(kind, kind),
        arch=_cost_arch(netlist),
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
        vector_mode=_vector_mode(vector),
        l1_acc=attributes.l1_acc,
        tile_rows=blocking.tile_dim[0],
        tile_cols=blocking.tile_dim[1],
        untilize=op.untilize_output,
        m_k=m_k,
        u_kt=u_kt,
        reduce_dim=_reduce_dim(attributes) if declared.has("reduces") else "",
    )
    if declared.has("reduces"):
        return _with_input_block(call, attributes)
    if kind == "matmul" and attributes.identity:
        return _with_encoding(call, attributes)
    return call


def _cost_arch(netlist: Netlist) -> str:
    """Return the architecture whose costs apply: the netlist's, or wormhole_b0 if the netlist's is not documented."""
    if netlist.arch.documented:
        return netlist.arch_name
    return "wormhole_b0"


def _vector_mode(text: str) -> VectorMode:
    """Return the vector mode of a netlist's word: "rc" for any word but "r" and "c"."""
    if text == "r":
        return "r"
    if text == "c":
        return "c"
    return "rc"


def _with_input_block(call: OpCall, attributes: Attributes) -> OpCall:
    """Return the call of a reduce with z, or, over rows or columns, with the block of its input: m_k blocks of u_kt
    tiles along the dimension that is reduced."""
    if call.reduce_dim == "z":
        return replace(call, z=max(attributes.z, 1))
    blocks = max(attributes.m_k, 1)
    tiles = max(attributes.u_kt, 1)
    if call.reduce_dim == "r":
        return replace(call, mblock_m=call.mblock_m * blocks, ublock_rt=call.ublock_rt * tiles)
    return replace(call, mblock_n=call.mblock_n * blocks, ublock_ct=call.ublock_ct * tiles)


def _reduce_dim(attributes: Attributes) -> ReduceDim:
    """Return the dimension of a reduce, "c" for any word that is not "r" or "z"."""
    if attributes.dim == "r":
        return "r"
    if attributes.dim == "z":
        return "z"
    return "c"


def _with_encoding(call: OpCall, attributes: Attributes) -> OpCall:
    """Return the call of a sparse matmul with the counts of its encoding.

    The counts are in the data, except for the strips of each core and the tiles of the fullest core (`indices_len`),
    which the netlist may state. Every ublock counted has a tile. If nothing is stated, the model assumes one strip for
    each t and inner block, with tiles in a quarter of its ublocks.
    """
    strips = max(attributes.num_nz_strips, default=0) or call.t * max(attributes.m_k, 1)
    tiles = max(attributes.indices_len, strips)
    ublocks = tiles
    if not attributes.indices_len or call.ublock_rt * call.u_kt > 1:
        ublocks = max(strips, strips * call.mblock_m // 4)
        if attributes.indices_len:
            ublocks = min(ublocks, tiles)
        tiles = max(tiles, ublocks)
    return replace(call, sparse=True, nz_strips=strips, nz_ublocks=ublocks, nz_tiles=tiles)
