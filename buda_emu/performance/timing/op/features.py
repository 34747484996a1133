"""Counts of an op that cycles are spent on, and the form in which each kind of op combines them.

All counts are for one input, and none falls when a dimension grows; with weights that are not negative no cost does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.spec.devices import device
from buda_emu.spec.formats import tile_bytes

Features = dict[str, float]

ROUNDS: Final = ("", "_second", "_further")
"""Endings of counts that are told apart by round of the inner dimension: the first round, the second, all further."""

STREAM_BYTES = 65536
"""An output of at least that many bytes flows to DRAM at DRAM's pace, a smaller one leaves in one burst (measured on
nop, in sizes that are powers of two: 34 KiB still do, 65 KiB do not)."""


def features(call: OpCall) -> Features:
    """Return an op's counts for one input (ublocks, tiles, products, ...), by the names that the stages of its form in
    `FORMS` use."""
    counts = {"inputs": 1.0, "ublocks": float(call.ublocks), "tiles": float(call.tiles)}
    if call.tiles * packed_bytes(call.result_df) >= STREAM_BYTES:
        counts["streamed_tiles"] = float(call.tiles)
    else:
        counts["streamed_tiles"] = 0.0
    if call.kind == "matmul_sparse":
        counts |= _count_sparse(call)
    elif call.kind in ("matmul", "depthwise"):
        counts |= _count_product(call)
    elif call.kind == "reduce_z":
        counts |= _count_reduce_z(call)
    elif call.kind in ("reduce_r", "reduce_c"):
        counts |= _count_reduce(call)
    return counts


def packed_bytes(df: str) -> int:
    """Return the bytes of a full tile of format `df` in L1, header included."""
    return tile_bytes(df, 32, 32, 32, True)


def _count_product(call: OpCall) -> Features:
    """Return the counts of a dense matmul or depthwise. The first block of the inner dimension starts from nothing and
    the last one leaves the core, so the first, the second and all further blocks are counted apart: only between two
    further ones is a partial sum both spilled and reloaded."""
    counts: Features = {
        "in0_tiles": call.t * call.mblock_m * call.ublock_rt * call.u_kt * call.m_k,  # operand tiles that arrive in L1
        "in1_tiles": call.t * call.mblock_n * call.ublock_ct * call.u_kt * call.m_k,
        "in0_ublocks": call.t * call.mblock_m * call.m_k,
        "in1_ublocks": call.t * call.mblock_n * call.m_k,
    }
    for suffix, blocks in _split_rounds(call.m_k).items():
        counts |= {
            f"ublocks{suffix}": call.ublocks * blocks,
            f"tiles{suffix}": call.tiles * blocks,
            f"steps{suffix}": call.ublocks * call.u_kt * blocks,  # of the inner dimension, for each ublock
            f"products{suffix}": call.tiles * call.u_kt * blocks,  # tile products
            f"left_tiles{suffix}": call.ublocks * call.u_kt * call.ublock_rt * blocks,  # that unpackers take from L1
            f"right_tiles{suffix}": call.ublocks * call.u_kt * call.ublock_ct * blocks,
        }
    return counts


def _split_rounds(inner: int) -> dict[str, int]:
    """Return how many of `inner` rounds (at least 1) are the first, the second, and further ones, by the ending of
    their counts."""
    return dict(zip(ROUNDS, (1, min(inner - 1, 1), max(inner - 2, 0)), strict=True))


def _count_sparse(call: OpCall) -> Features:
    """Return the counts of a sparse matmul: strips (columns of the inner dimension with at least one tile), their
    ublocks and tiles."""
    m = call.mblock_m
    n = call.mblock_n
    rt = call.ublock_rt
    ct = call.ublock_ct
    strips = call.nz_strips
    ublocks = call.nz_ublocks
    tiles = call.nz_tiles
    return {
        "strips": strips,
        "strip_columns": strips * n,
        "strip_rows": strips * m,
        "strip_ublocks": strips * m * n,  # outputs that a strip passes over, empty or not
        "strip_tiles": strips * m * n * rt * ct,
        "nz_ublocks": ublocks,
        "nz_columns": ublocks * n,
        "nz_ublock_tiles": ublocks * n * rt * ct,
        "nz_tiles": tiles,
        "nz_tile_columns": tiles * n,
        "nz_products": tiles * n * ct,
    }


def _count_reduce_z(call: OpCall) -> Features:
    """Return the counts of a reduce over z: the first tile of each output, the second, and all further ones."""
    counts: Features = {}
    for suffix, rounds in _split_rounds(max(call.z, 1)).items():
        counts |= {
            f"ublocks{suffix}": call.ublocks * rounds,
            f"tiles{suffix}": call.tiles * rounds,
            f"rounds{suffix}": call.t * rounds,
            f"round_tiles{suffix}": call.t * rounds * call.ublock_tiles,
        }
    return counts


def _count_reduce(call: OpCall) -> Features:
    """Return the counts of a reduce over rows or columns. All ublocks that are summed into the same result ublock are
    one line of the input."""
    over_rows = call.kind == "reduce_r"
    lines, width = (call.mblock_n, call.ublock_ct) if over_rows else (call.mblock_m, call.ublock_rt)
    return {
        "results": call.t * lines * width,  # output tiles
        "partial_results": call.ublocks * width,
        "lines": call.t * lines,
        "line_tiles": call.t * lines * call.ublock_tiles,  # of one ublock in each line
    }


Weights = Mapping[str, Mapping[str, float]]
"""Cycles for each unit of a count, by stage and count."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Work of one unit: a weighted sum of counts. `ideal` is a count of tile products whose FPU cycles (`fpu_cycles`)
    are added without a weight."""

    name: str
    counts: tuple[str, ...]
    ideal: str = ""


@dataclass(frozen=True, slots=True)
class Serial:
    """Forms that run one after another: their cycles are added."""

    parts: "tuple[Form, ...]"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Forms that run at the same time: the slowest counts."""

    parts: "tuple[Form, ...]"


Form = Stage | Serial | Overlap

_FIXED = Stage("fixed", ("inputs",))
_WRITE = Stage("write", ("streamed_tiles",))  # to DRAM

_ELTWISE = Serial(
    (
        _FIXED,
        Overlap(
            (
                Stage("transfer", ("ublocks", "tiles")),
                Stage("math", ("ublocks", "tiles")),
                Stage("store", ("ublocks", "tiles")),
                _WRITE,
            )
        ),
    )
)


def _with_suffix(counts: tuple[str, ...], suffix: str) -> tuple[str, ...]:
    """Return the names of counts with the ending of a round."""
    return tuple(count + suffix for count in counts)


def _product_round(suffix: str) -> Form:
    """Return the form of the first, second or further rounds of the inner dimension, chosen by the ending of their
    counts: unpack, math and pack side by side."""
    return Overlap(
        (
            Stage(
                f"math{suffix}", _with_suffix(("ublocks", "tiles", "steps", "products"), suffix), f"products{suffix}"
            ),
            Stage(f"unpack{suffix}", _with_suffix(("ublocks", "tiles", "steps", "left_tiles", "right_tiles"), suffix)),
            Stage(f"pack{suffix}", _with_suffix(("ublocks", "tiles"), suffix)),
        )
    )


def _reduce_round(suffix: str) -> Form:
    """Return the form of the first, second or further rounds over z, chosen by the ending of their counts; its stage
    `turn` is the latency of a round with little other work."""
    return Overlap(
        (
            Stage(f"math{suffix}", _with_suffix(("ublocks", "tiles"), suffix)),
            Stage(f"move{suffix}", _with_suffix(("ublocks", "tiles"), suffix)),
            Stage(f"turn{suffix}", _with_suffix(("rounds", "round_tiles", "tiles"), suffix)),
        )
    )


_MATMUL = Serial(
    (
        _FIXED,
        Overlap(
            (
                Serial(tuple(map(_product_round, ROUNDS))),
                Stage("read0", ("in0_tiles", "tiles", "in0_ublocks")),
                Stage("read1", ("in1_tiles", "tiles", "in1_ublocks")),
                Stage("read", ("in0_tiles", "in1_tiles")),
                _WRITE,
            )
        ),
    )
)

_REDUCE_Z = Serial((_FIXED, Overlap((Serial(tuple(map(_reduce_round, ROUNDS))), _WRITE))))

_SPARSE_COUNTS = (
    "strip_columns", "strip_rows", "strip_ublocks", "strip_tiles", "nz_ublocks", "nz_columns", "nz_ublock_tiles",
    "nz_tiles", "nz_tile_columns", "nz_products", "ublocks", "tiles",
)  # fmt: skip

_SPARSE = Serial(
    (
        Stage("fixed", ("inputs", "strips")),
        Overlap(
            (
                Stage("unpack", _SPARSE_COUNTS),
                Stage("pack", _SPARSE_COUNTS),
                Stage("math", ("strip_ublocks", "nz_columns", "nz_tile_columns", "nz_products"), "nz_products"),
            )
        ),
    )
)

_REDUCE = Serial(
    (_FIXED, Overlap((Stage("math", ("tiles", "partial_results")), Stage("turn", ("lines", "line_tiles", "results")))))
)

_DEPTHWISE = Serial(
    (
        _FIXED,
        Stage("block", ("ublocks",)),
        *(Stage(f"math{suffix}", _with_suffix(("products",), suffix), f"products{suffix}") for suffix in ROUNDS),
    )
)

DRAM_STAGES: Final[Mapping[str, Mapping[str, int]]] = {
    "read0": {"in0_tiles": 0, "tiles": 0, "in0_ublocks": 0},
    "read1": {"in1_tiles": 1, "tiles": 1, "in1_ublocks": 1},
    "read": {"in0_tiles": 0, "in1_tiles": 1},
    "write": {},
}
"""Stages of the flow between DRAM and L1, not of the core, and which operand comes from DRAM where a count is paid."""

FORMS: Final[Mapping[str, Form]] = {
    "matmul": _MATMUL,
    "matmul_sparse": _SPARSE,
    "reduce_z": _REDUCE_Z,
    "reduce_r": _REDUCE,
    "reduce_c": _REDUCE,
    "depthwise": _DEPTHWISE,
}
"""The form of each kind of op; every other kind is element-wise."""


def form_of(kind: str) -> Form:
    """Return the form of a kind of op: which of its stages run one after another and which at the same time; the
    element-wise form for a kind without its own."""
    return FORMS.get(kind, _ELTWISE)


def stages(form: Form) -> tuple[Stage, ...]:
    """Return all stages of a form, in the order they are written."""
    if isinstance(form, Stage):
        return (form,)
    return tuple(chain.from_iterable(map(stages, form.parts)))


def fpu_cycles(call: OpCall) -> int:
    """Return the FPU cycles of one tile product, all fidelity phases included."""
    return device(call.arch).product_cycles * call.phases


def evaluate(form: Form, weights: Weights, counts: Features, product_cycles: float) -> float:
    """Return the cycles of one input by a form. `weights` and `counts` must have what its stages name; `product_cycles`
    are the FPU cycles of a tile product."""
    if isinstance(form, Stage):
        stage_weights = weights[form.name]
        cycles = sum(stage_weights[name] * counts[name] for name in form.counts)
        if form.ideal:
            return cycles + product_cycles * counts[form.ideal]
        return cycles
    parts = [evaluate(part, weights, counts, product_cycles) for part in form.parts]
    if isinstance(form, Serial):
        return sum(parts)
    return max(parts)
