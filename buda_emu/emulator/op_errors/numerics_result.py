"""The result of `buda-emu numerics`: the errors of each op, its main cause of error, and a change that would repair
it."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from buda_emu.support.version import RESULT_VERSION

Cause = Literal["inputs", "fidelity", "dest", "spills", "sfpu", "vector", "packing"]
CAUSES: Final[tuple[Cause, ...]] = ("inputs", "fidelity", "dest", "spills", "sfpu", "vector", "packing")
WORTH_REPAIRING: Final = 2.5e-3
"""The relative error from which on a repair is searched for: more than rounding or truncating once to 16 bits costs."""


@dataclass(frozen=True, slots=True)
class OpError:
    """The error of the elements that are finite in both precisions. Two numbers that stand for the same
    infinity count as that infinity.

    `rms`: relative to the rms of the ideal values; None where those are all zero. `not_finite`: how many elements are
    finite in one precision only, or in none and differ. `spread`: the rms distance of the ideal values from their mean,
    relative like `rms`; a PCC depends only on these distances, not on the mean."""

    rms: float | None
    pcc: float | None
    max_error: float
    not_finite: int = 0
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class NewValue:
    """A field of an op, its present value, and another value for it."""

    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair of an op: one change, the cheapest of those about as good as the best, or several changes of which none
    helps alone. `error` is the relative rms after the repair."""

    changes: tuple[NewValue, ...]
    error: float


@dataclass(frozen=True, slots=True)
class OpNumerics:
    """The errors of one op. `total` is that of the whole run, with the errors that its operands brought along;
    `operands` is the largest error of an operand. `local` is the error of the op by itself on ideal operands rounded to
    their formats. `without`: the relative rms that is left when one cause is switched off, None where it cannot be
    switched off. `cause`: the cause that matters most, or, if none matters by itself, the fewest that matter together,
    joined by "+"; "" where there is none. `beyond` is the number of ideal values above `largest`, the largest value of
    the output's format."""

    index: int
    name: str
    type: str
    graph: str
    in_df: tuple[str, ...]
    out_df: str
    total: OpError
    local: OpError | None = None
    without: dict[Cause, float | None] = field(default_factory=dict[Cause, float | None])
    cause: Cause | str = ""
    repair: Repair | None = None
    note: str = ""
    operands: float | None = None
    largest: float | None = None
    beyond: int = 0

    def __repr__(self) -> str:
        text = f"<OpNumerics {self.name} ({self.type}): error alone {own_error(self):.1e}"
        if self.cause:
            text += f", cause {self.cause}"
        if self.repair is not None:
            changes = ", ".join(f"{change.field} {change.before} -> {change.after}" for change in self.repair.changes)
            text += f", repair {changes}"
        return text + ">"


def own_error(op: OpNumerics) -> float:
    """Return the relative rms error of the op by itself on ideal operands; 0 where it is not known."""
    if op.local is not None:
        return op.local.rms or 0.0
    return 0.0


_INHERENT: Final[dict[str, str]] = {
    "sfpu": "the vector unit's approximation of its function",
    "vector": "the vector mode, which leaves the operand in the rest of a tile",
}
"""Descriptions of the causes that no field of a netlist can remove."""


def inherent_cause(op: OpNumerics) -> str:
    """Return a description of the cause of an op's own error where no field of a netlist could remove it, else "". Such
    an error is worth repairing, but comes from the vector unit, and no change that was tried halves it."""
    if op.repair is not None or own_error(op) < WORTH_REPAIRING:
        return ""
    return _INHERENT.get(op.cause, "")


@dataclass(frozen=True, slots=True)
class Numerics:
    """The errors of all ops that ran, in the order of their first run."""

    netlist: str
    arch: str
    programs: tuple[str, ...]
    parameters: dict[str, str]
    seed: int
    ops: tuple[OpNumerics, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        return {"schema_version": RESULT_VERSION, **asdict(self)}
