"""What faults did, one by one and counted, with how sure the counts are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from math import sqrt
from typing import Any, Final, Literal, get_args

from buda_emu.injection.fault import Fault
from buda_emu.records import dataclass

Outcome = Literal["masked", "tolerable", "corrupt", "not finite", "stopped"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
OUTCOME_TEXTS: Final = {
    "masked": "all outputs have the bits of the clean run",
    "tolerable": "outputs differ, and each entry still has the PCC that was asked for",
    "corrupt": "outputs differ by more, and nothing says so: silent data corruption",
    "not finite": "an output has infinities or NaN that the clean run has not",
    "stopped": "an op refused its operands, and the run ended",
}
FAILURES: Final[frozenset[Outcome]] = frozenset(("corrupt", "not finite", "stopped"))
_Z: Final = 1.959964  # two-sided 95 %


@dataclass(frozen=True, slots=True)
class Effect:
    """What one fault did. `pcc`: the least of the output entries that differ; `max_error`: relative to the root mean
    square of the entry; `tiles`: output tiles that differ; `computed`: values that were computed again; `error`: what
    stopped the run."""

    fault: Fault
    outcome: Outcome
    pcc: float | None = None
    max_error: float | None = None
    tiles: int = 0
    output: str = ""
    computed: int = 0
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.fault.as_json(), "outcome": self.outcome, "pcc": self.pcc, "max_error": self.max_error,
            "tiles": self.tiles, "output": self.output, "computed": self.computed, "error": self.error,
        }  # fmt: skip

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Effect":
        """What `as_json` wrote; nodes, which a replay finds again, are left out."""
        given: dict[str, Any] = {**content, "nodes": (), "bits": tuple(content["bits"])}
        given["core"] = None if content["core"] is None else tuple(content["core"])
        own = {item.name for item in fields(Fault)}
        other = {item.name for item in fields(Effect)} - {"fault"}
        fault = Fault(**{name: value for name, value in given.items() if name in own})
        return Effect(fault, **{name: value for name, value in given.items() if name in other})


@dataclass(frozen=True, slots=True)
class Share:
    """How many of so many faults failed, and between which shares the true one lies with 95 % (Wilson's interval)."""

    name: str
    faults: int
    failures: int
    counts: Mapping[str, int]

    @property
    def share(self) -> float:
        """Failures of faults."""
        return self.failures / self.faults if self.faults else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval, which holds for few faults, too, and for shares near 0 and 1."""
        return wilson(self.failures, self.faults)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        low, high = self.interval
        return {
            "name": self.name, "faults": self.faults, "failures": self.failures, "share": self.share, "low": low,
            "high": high, **self.counts,
        }  # fmt: skip


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Wilson's score interval of a share, 95 %."""
    if not count:
        return 0.0, 1.0
    share, square = successes / count, _Z * _Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def shares(effects: Iterable[Effect], name: Callable[[Fault], str]) -> list[Share]:
    """Counts by a property of faults, the worst first; faults that have none of it are left out."""
    groups: dict[str, list[Effect]] = {}
    for effect in effects:
        if found := name(effect.fault):
            groups.setdefault(found, []).append(effect)
    made = [_share(key, group) for key, group in groups.items()]
    return sorted(made, key=lambda item: (-item.share, item.name))


def _share(name: str, effects: Sequence[Effect]) -> Share:
    counts = {outcome.replace(" ", "_"): sum(item.outcome == outcome for item in effects) for outcome in OUTCOMES}
    return Share(name, len(effects), sum(item.outcome in FAILURES for item in effects), counts)


TABLES: Final[Mapping[str, Callable[[Fault], str]]] = {
    "kind": lambda fault: fault.kind,
    "place": lambda fault: fault.place,
    "op or queue": lambda fault: fault.where,
    "op type": lambda fault: fault.op_type,
    "format": lambda fault: fault.df if fault.kind == "flip" else "",
    "field": lambda fault: f"{fault.df} {fault.bit_name}" if fault.kind == "flip" else "",
    "bit": lambda fault: (
        f"{fault.df} {'exponent ' if fault.exponent else ''}{fault.bits[0]}" if fault.kind == "flip" else ""
    ),
}
"""By what faults are counted; by formats and bits only flips are."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Effects of all faults of a campaign, in the order of their numbers. `bit_hours`: bits of DRAM and L1 times the
    hours that one run holds them by the timing model."""

    netlist: str
    arch: str
    precision: str
    seed: int
    settings: Mapping[str, Any]
    effects: tuple[Effect, ...]
    bit_hours: float
    finished: bool

    def total(self) -> Share:
        """All faults together."""
        return _share("all", self.effects)

    def table(self, name: str) -> list[Share]:
        """Counts by one of `TABLES`."""
        return shares(self.effects, TABLES[name])

    def as_json(self) -> dict[str, Any]:
        """Everything, with `schema_version`."""
        from buda_emu.version import RESULT_VERSION

        return {
            "schema_version": RESULT_VERSION, "netlist": self.netlist, "arch": self.arch,
            "precision": self.precision, "seed": self.seed, "settings": dict(self.settings),
            "bit_hours": self.bit_hours, "finished": self.finished, "total": self.total().as_json(),
            "tables": {name: [share.as_json() for share in self.table(name)] for name in TABLES},
            "faults": [effect.as_json() for effect in self.effects],
        }  # fmt: skip
