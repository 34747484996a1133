"""How counted work becomes cycles: stages that run side by side, the slowest of which governs.

A form is a tree. A `Stage` is a weighted sum of counts; `Serial` parts follow each other; `Overlap` parts run at the
same time, as unpack, math and pack of one core do, so the slowest one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from buda_emu.spec.devices import device
from buda_emu.timing.op.call import OpCall
from buda_emu.timing.op.features import ROUNDS, Features

Weights = Mapping[str, Mapping[str, float]]
"""Cycles for each unit of a count, by stage and count."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Work of one unit. `ideal` counts tile products whose FPU cycles (`fpu_cycles`) are always there."""

    name: str
    counts: tuple[str, ...]
    ideal: str = ""


@dataclass(frozen=True, slots=True)
class Serial:
    """Parts one after another."""

    parts: "tuple[Form, ...]"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Parts at the same time: the slowest governs."""

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


def _named(counts: tuple[str, ...], suffix: str) -> tuple[str, ...]:
    return tuple(count + suffix for count in counts)


def _product_round(suffix: str) -> Form:
    """One kind of round of the inner dimension: unpack, math and pack side by side."""
    return Overlap(
        (
            Stage(f"math{suffix}", _named(("ublocks", "tiles", "steps", "products"), suffix), f"products{suffix}"),
            Stage(f"unpack{suffix}", _named(("ublocks", "tiles", "steps", "left_tiles", "right_tiles"), suffix)),
            Stage(f"pack{suffix}", _named(("ublocks", "tiles"), suffix)),
        )
    )


def _reduce_round(suffix: str) -> Form:
    """One kind of round over z; `turn` is what a round waits for where there is little else to do."""
    return Overlap(
        (
            Stage(f"math{suffix}", _named(("ublocks", "tiles"), suffix)),
            Stage(f"move{suffix}", _named(("ublocks", "tiles"), suffix)),
            Stage(f"turn{suffix}", _named(("rounds", "round_tiles", "tiles"), suffix)),
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
        *(Stage(f"math{suffix}", _named(("products",), suffix), f"products{suffix}") for suffix in ROUNDS),
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
    """The form that ops of a kind have."""
    return FORMS.get(kind, _ELTWISE)


def stages(form: Form) -> tuple[Stage, ...]:
    """All stages of a form, in the order they are written."""
    return (form,) if isinstance(form, Stage) else tuple(stage for part in form.parts for stage in stages(part))


def fpu_cycles(call: OpCall) -> int:
    """FPU cycles of one tile product, all fidelity phases."""
    return device(call.arch).product_cycles * call.phases


def evaluate(form: Form, weights: Weights, counts: Features, product_cycles: float) -> float:
    """Cycles of one input. `product_cycles`: FPU cycles of a tile product."""
    if isinstance(form, Stage):
        own = weights[form.name]
        paid = sum(own[name] * counts[name] for name in form.counts)
        return paid + product_cycles * counts[form.ideal] if form.ideal else paid
    parts = [evaluate(part, weights, counts, product_cycles) for part in form.parts]
    return sum(parts) if isinstance(form, Serial) else max(parts)
