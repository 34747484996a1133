"""How counted work becomes cycles: stages that run side by side, the slowest of which governs.

A form is a tree. A `Stage` is a weighted sum of counts; `Serial` parts follow each other; `Overlap` parts run at the
same time, as unpack, math and pack of one core do, so the slowest one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from buda_emu.timing.features import Features
from buda_emu.timing.op_call import OpCall

Weights = Mapping[str, Mapping[str, float]]
"""Cycles for each unit of a count, by stage and count."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Work of one unit. `ideal` counts tile products whose FPU cycles (FPU_CYCLES) are always there."""

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

FPU_CYCLES: Final = {"grayskull": 32, "wormhole": 16, "wormhole_b0": 16, "blackhole": 16}
"""FPU cycles of a tile product and fidelity phase (PERF 1.3; grayskull: as measured, silicon sweeps)."""

_FIXED = Stage("fixed", ("inputs",))

_ELTWISE = Serial(
    (
        _FIXED,
        Overlap(
            (
                Stage("transfer", ("ublocks", "tiles")),
                Stage("math", ("ublocks", "tiles")),
                Stage("store", ("ublocks", "tiles")),
                Stage("stream", ("streamed_tiles",)),
            )
        ),
    )
)

_MATMUL = Serial(
    (
        _FIXED,
        Overlap(
            (
                Serial(
                    (
                        Overlap(
                            (
                                Stage("math", ("ublocks", "steps", "products"), "products"),
                                Stage("unpack", ("ublocks", "steps", "left_tiles", "right_tiles")),
                                Stage("pack", ("ublocks", "tiles")),
                            )
                        ),
                        Overlap(
                            (
                                Stage(
                                    "math_again",
                                    ("ublocks_again", "tiles_again", "steps_again", "products_again"),
                                    "products_again",
                                ),
                                Stage(
                                    "unpack_again",
                                    (
                                        "ublocks_again",
                                        "tiles_again",
                                        "steps_again",
                                        "left_tiles_again",
                                        "right_tiles_again",
                                    ),
                                ),
                                Stage("pack_again", ("ublocks_again", "tiles_again")),
                            )
                        ),
                        Stage("spill", ("ublocks_spilled", "tiles_spilled")),
                    )
                ),
                Stage("read0", ("in0_tiles", "tiles", "in0_ublocks")),
                Stage("read1", ("in1_tiles", "tiles", "in1_ublocks")),
                Stage("read", ("in0_tiles", "in1_tiles")),
            )
        ),
    )
)

_SPARSE_COUNTS = (
    "strip_columns", "strip_rows", "strip_ublocks", "strip_tiles", "nz_ublocks", "nz_columns", "nz_ublock_tiles",
    "nz_tiles", "nz_tile_columns", "nz_products", "ublocks", "tiles",
)  # fmt: skip

_SPARSE = Serial(
    (
        Stage("fixed", ("inputs", "strips")),
        Overlap((Stage("unpack", _SPARSE_COUNTS), Stage("math", _SPARSE_COUNTS, "nz_products"))),
    )
)

_REDUCE_Z = Serial(
    (
        _FIXED,
        Overlap((Stage("move", ("ublocks", "tiles")), Stage("stream", ("tiles",)))),
        Overlap(
            (
                Stage("add", ("ublocks_again", "tiles_again")),
                Stage("reload", ("ublocks_again", "tiles_again")),
                Stage("turn", ("rounds", "round_tiles", "tiles_again")),
            )
        ),
    )
)

_REDUCE = Serial(
    (
        Stage("fixed", ("inputs",)),
        Overlap(
            (
                Stage("math", ("ublocks", "tiles", "partial_results")),
                Stage("pack", ("tiles", "results", "result_ublocks")),
            )
        ),
    )
)

_DEPTHWISE = Serial(
    (
        _FIXED,
        Stage("block", ("ublocks",)),
        Stage("math", ("steps", "products"), "products"),
        Stage("math_again", ("steps_again", "products_again"), "products_again"),
    )
)

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
    """FPU cycles of one tile product."""
    return FPU_CYCLES[call.arch] * call.phases


def evaluate(form: Form, weights: Weights, counts: Features, product_cycles: float) -> float:
    """Cycles of one input. `product_cycles`: FPU cycles of a tile product."""
    if isinstance(form, Stage):
        own = weights[form.name]
        paid = sum(own[name] * counts[name] for name in form.counts)
        return paid + product_cycles * counts[form.ideal] if form.ideal else paid
    parts = [evaluate(part, weights, counts, product_cycles) for part in form.parts]
    return sum(parts) if isinstance(form, Serial) else max(parts)
