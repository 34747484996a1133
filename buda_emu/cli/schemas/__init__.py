"""What verbs write as JSON, as schemas: from the classes that they write, and the fields that a verb adds."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict

from buda_emu.cli.schemas.darwinn import SCHEMAS as _DARWINN
from buda_emu.cli.schemas.gemini import SCHEMAS as _GEMINI
from buda_emu.cli.schemas.vpux import SCHEMAS as _VPUX


class Edit(TypedDict):
    """A field of an op or queue with its new value."""

    kind: Literal["op", "queue"]
    name: str
    field: str
    value: str


class Change(TypedDict):
    """A proposal of `advise`."""

    move: str
    target: str
    what: str
    host: str
    changes_values: bool
    pcc_lost: float | None
    accuracy_unknown: str
    edits: list[Edit]


class Alone(Change):
    """With what it brings by itself."""

    graphs: list[str]
    cycles_before: float
    cycles_after: float
    slowest_cycles: float
    total_cycles: float


class Together(Change):
    """On top of those before."""

    slowest_cycles: float
    total_cycles: float


class Refused(Change):
    """And why."""

    reason: str


class FrontPoint(TypedDict):
    """Of the Pareto front."""

    what: str
    total_cycles: float
    slowest_cycles: float
    pcc_lost: float


class EpochPace(TypedDict):
    """An epoch."""

    program: str
    graphs: list[str]
    cycles_per_input: float


class NetlistPace(TypedDict):
    """Before."""

    slowest_cycles: float
    total_cycles: float
    epochs: list[EpochPace]


class NewPace(NetlistPace):
    """After."""

    pcc_lost: float


def _numerics() -> Any:
    from buda_emu.report.machine_readable.schema import document
    from buda_emu.verify.op_by_op.numerics_result import Numerics

    return document("Results of buda-emu numerics --json", Numerics)


def _advise() -> Any:
    from buda_emu.report.machine_readable.schema import document

    own = {
        "netlist": str, "arch": str, "epochs_modelled": int, "before": NetlistPace, "after": NewPace,
        "alone": list[Alone], "together": list[Together], "front": list[FrontPoint],
        "nothing_found": str, "refused": list[Refused],
    }  # fmt: skip
    return document("Results of buda-emu advise --json", own)


def _perf_against() -> Any:
    from buda_emu.report.machine_readable.schema import document
    from buda_emu.report.perf_against import Comparison

    return document("Results of buda-emu perf --against --json", {"worst_percent": float}, Comparison)


def _perf_sweep() -> Any:
    from buda_emu.api.sweep import Point
    from buda_emu.report.machine_readable.schema import document

    found = document("Results of buda-emu perf --sweep --json", {"netlist": str, "points": list[Point]})
    row = found["$defs"]["Point"]
    del row["properties"]["settings"]
    row["required"].remove("settings")
    row["additionalProperties"] = {"type": "string"}  # a column for each axis
    return found


def _baseline() -> Any:
    from buda_emu.report.baselines.schema import schema

    return schema()


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "numerics": _numerics, "advise": _advise, "perf --against": _perf_against, "perf --sweep": _perf_sweep,
    "baseline": _baseline, **_GEMINI, **_VPUX, **_DARWINN,
}  # fmt: skip
"""Of what verbs print with --json, by verb, and of baselines."""
