"""The effects of faults, one by one and counted, with confidence intervals."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import isfinite, sqrt
from typing import Any, Final, Literal, cast, get_args

from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import FAULT, TEXT, Fault, Field, number_from, words_of
from buda_emu.testing.injection.fault import FIELDS as FAULT_FIELDS

Outcome = Literal["masked", "tolerable", "corrupt", "not finite", "deadlock", "stopped", "late"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
After = Literal["masked", "tolerable", "corrupt", "not finite", "deadlock", "stopped", "late", "corrected", "detected"]
"""The effect that remains of a fault under a protection."""
OUTCOME_TEXTS: Final = {
    "masked": "all outputs have the bits of the clean run",
    "tolerable": "outputs differ, but each entry still has the required PCC; or the run takes longer, within the bound",
    "corrupt": "outputs differ by more, and nothing says so: silent data corruption",
    "not finite": "an output has infinities or NaN that the clean run has not",
    "deadlock": "a program waits for ever, for an entry or for room in a queue",
    "stopped": "an op refused its operands, or a queue its request, and the run ended",
    "late": "the values are right, and the run misses its bound of time",
    "corrected": "the protection put it right",
    "detected": "the protection noticed it, and says so: the run can be repeated",
}
FAILURES: Final[frozenset[str]] = frozenset(("corrupt", "not finite", "deadlock", "stopped", "late"))
_ALWAYS: Final = 4  # first outcomes of `OUTCOMES`, which are shown even if none occurred
_Z: Final = 1.959964  # two-sided 95 %


def column(outcome: str) -> str:
    """Return the key of JSON for an outcome: its name with _ for spaces."""
    return outcome.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one fault on the run, in comparison with the clean run. `pcc`: the lowest PCC of the output entries
    that differ, None if none does; `max_error`: relative to the root mean square of the entry; `tiles`: output tiles
    that differ; `output`: the one with it; `computed`: values that were computed again; `error`: the reason why the run
    stopped, or a fault beside values; `top1`: the least share of an output entry's rows whose largest element is in its
    place; `maps`: for each output the tiles that differ in any entry, as a hexadecimal number whose lowest bit is tile
    0; `ratio`: the time divided by that of the clean run; `after`: the effect that remains under each protection."""

    fault: Fault
    outcome: Outcome
    pcc: float | None = None
    max_error: float | None = None
    tiles: int = 0
    output: str = ""
    computed: int = 0
    error: str = ""
    top1: float = 1.0
    maps: Mapping[str, str] = field(default_factory=dict[str, str])
    ratio: float = 1.0
    after: Mapping[str, After] = field(default_factory=dict[str, "After"])

    @property
    def failed(self) -> bool:
        """True if the run failed where nothing protects it: the outcome is one of `FAILURES`."""
        return self.outcome in FAILURES

    def as_json(self) -> dict[str, Any]:
        """Return plain data with the keys of the fault and of the effect."""
        return EFFECT.as_json(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Effect":
        """Read an effect from the content that `as_json` wrote; `nodes` and `reader` of its fault are not in it, a
        replay finds them again. Raises ValueError that names a key that is missing or has an impossible value."""
        missing = next((name for name in (*FAULT_FIELDS, *FIELDS) if name not in content), None)
        if missing is not None:
            raise ValueError(f"the key {missing!r} is missing")
        for name, allowed in FIELDS.items():
            allowed.require(name, content[name])
        return Effect(Fault.from_json(content), **{name: content[name] for name in FIELDS})


def _is_number(value: Any) -> bool:
    """Return whether a value of JSON is an integer or a finite float; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_object_of_texts(value: Any, holds: Callable[[str], bool]) -> bool:
    """Return whether a value of JSON is an object all of whose values are texts that `holds` accepts; {} is."""
    if isinstance(value, Mapping):
        texts = cast("Mapping[Any, Any]", value).values()
    else:
        texts = (None,)
    return all(isinstance(text, str) and holds(text) for text in texts)


def _lies_between(value: Any, least: float, greatest: float) -> bool:
    """Return whether a value of JSON is a number from `least` to `greatest`."""
    return _is_number(value) and least <= value <= greatest


_NUMBER: Final = Field(_is_number, "a number")
_NUMBER_OR_NONE: Final = Field(lambda value: value is None or _is_number(value), "a number, or null")
_HEXADECIMAL: Final = re.compile("[0-9a-f]+")
FIELDS: Final[Mapping[str, Field]] = {
    "outcome": words_of(OUTCOMES),
    "pcc": Field(lambda value: value is None or _lies_between(value, -1, 1), "a number from -1 to 1, or null"),
    "max_error": _NUMBER_OR_NONE,
    "tiles": number_from(0),
    "output": TEXT,
    "computed": number_from(0),
    "error": TEXT,
    "top1": Field(lambda value: _lies_between(value, 0, 1), "a number from 0 to 1"),
    "maps": Field(
        lambda value: _is_object_of_texts(value, lambda text: _HEXADECIMAL.fullmatch(text) is not None),
        "an object of hexadecimal numbers",
    ),
    "ratio": _NUMBER,
    "after": Field(
        lambda value: _is_object_of_texts(value, lambda text: text in get_args(After)),
        "an object of protections, each with what is left by it",
    ),
}
"""The keys that an effect in JSON has beside those of its fault."""


@dataclass(frozen=True, slots=True)
class Share:
    """The number of some faults that fail, the share of failures, and its interval of 95 %. `counts` is by `column` of
    the outcome. If the faults were drawn by strata, `weights` has (weight, faults, failures) of each stratum."""

    name: str
    faults: int
    failures: int
    counts: Mapping[str, int]
    weights: tuple[tuple[float, int, int], ...] = ()

    @property
    def share(self) -> float:
        """Failures divided by faults, or the mean of the strata's shares by weight; 0 without faults."""
        if self.weights:
            total = sum(weight for weight, _, _ in self.weights)
            return sum(weight * failures / faults for weight, faults, failures in self.weights) / total
        if self.faults:
            return self.failures / self.faults
        return 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 % around `share` (lowest, highest), by Wilson, so it holds for few faults and for shares
        near 0 and 1. With strata, it is that of as many faults drawn without strata as would give the same variance."""
        if not self.weights:
            return wilson(self.failures, self.faults)
        share = self.share
        total = sum(weight for weight, _, _ in self.weights)
        variance = 0.0
        for weight, faults, failures in self.weights:
            part = (failures + 1) / (faults + 2)  # Laplace's estimate: a stratum without failures is not certain
            variance += (weight / total) ** 2 * part * (1 - part) / faults
        middle = min(max(share, 1 / (self.faults + 2)), 1 - 1 / (self.faults + 2))
        count = middle * (1 - middle) / variance
        return wilson(share * count, count)


def wilson(successes: float, count: float) -> tuple[float, float]:
    """Return Wilson's score interval of 95 % for the true share, where `successes` of `count` were seen; (0, 1) for
    count 0."""
    if not count:
        return 0.0, 1.0
    share = successes / count
    square = _Z * _Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * sqrt(share * (1 - share) / count + square / (4 * count * count))
    if successes == 0:
        low = 0.0
    else:
        low = max(0.0, middle - half)
    if successes == count:
        high = 1.0
    else:
        high = min(1.0, middle + half)
    return low, high


def shares(effects: Iterable[Effect], name: Callable[[Fault], str]) -> list[Share]:
    """Group effects by the text that `name` returns for their faults, and count each group; the largest share of
    failures comes first. Faults for which the text is "" are left out."""
    groups: dict[str, list[Effect]] = {}
    for effect in effects:
        key = name(effect.fault)
        if key:
            groups.setdefault(key, []).append(effect)
    counted = [share_of(key, group) for key, group in groups.items()]
    return sorted(counted, key=lambda share: (-share.share, share.name))


def share_of(name: str, effects: Sequence[Effect], strata: Mapping[str, float] | None = None) -> Share:
    """Count effects by outcome, as one row called `name`. `strata` are the weights of the strata that faults were drawn
    from, None where there are none; strata without an effect are left out."""
    counts = {column(outcome): sum(effect.outcome == outcome for effect in effects) for outcome in OUTCOMES}
    weights: list[tuple[float, int, int]] = []
    for stratum, weight in (strata or {}).items():
        of_stratum = [effect for effect in effects if effect.fault.stratum == stratum]
        if of_stratum:
            weights.append((weight, len(of_stratum), sum(effect.failed for effect in of_stratum)))
    return Share(
        name=name,
        faults=len(effects),
        failures=sum(effect.failed for effect in effects),
        counts=counts,
        weights=tuple(weights),
    )


def _is_bit_flip(fault: Fault) -> bool:
    """Return whether a fault is of kind "flip", and so belongs in the tables of formats, fields and bits."""
    return fault.kind == "flip"


TABLES: Final[Mapping[str, Callable[[Fault], str]]] = {
    "kind": lambda fault: fault.kind,
    "place": lambda fault: fault.place,
    "op or queue": lambda fault: fault.where,
    "tensor": lambda fault: fault.tensor,
    "op type": lambda fault: fault.op_type,
    "format": lambda fault: fault.df if _is_bit_flip(fault) else "",
    "field": lambda fault: f"{fault.df} {fault.bit_name}" if _is_bit_flip(fault) else "",
    "bit": lambda fault: _format_and_bit(fault) if _is_bit_flip(fault) else "",
}
"""Properties by which faults are counted. Only flips are counted by format, field and bit."""


def _format_and_bit(fault: Fault) -> str:
    """Return a row's name for a flip's first bit: format and number, with "exponent" between them for a shared
    exponent."""
    exponent = ""
    if fault.exponent:
        exponent = "exponent "
    return f"{fault.df} {exponent}{fault.bits[0]}"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a protection. `bits`: the bits that it adds; `share`: these divided by the bits that a run holds;
    `time`: the ratio of the run's time by the timing model, None where time is not modelled."""

    bits: int
    share: float
    time: float | None


@dataclass(frozen=True, slots=True)
class Guarded:
    """A row of the table of protections: `counts` are faults by the effect that remains, `failures` those that still
    fail, `before` those that failed without the protection."""

    name: str
    counts: Mapping[str, int]
    failures: int
    before: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Campaign:
    """Effects of all faults of a campaign, in the order of their numbers.

    `bit_hours`: bits of DRAM and L1 times the hours that one run holds them by the timing model; `strata`: the weights
    of the strata that faults were drawn from; `costs`: by protection; `left_out`: kinds that were asked for, and that
    have nothing to hit here.
    """

    netlist: str
    arch: str
    precision: str
    seed: int
    settings: Mapping[str, Any]
    effects: tuple[Effect, ...]
    bit_hours: float
    finished: bool
    strata: Mapping[str, float] = field(default_factory=dict[str, float])
    costs: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = Counter(effect.outcome for effect in self.effects)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        return f"<Campaign on {self.netlist}: {plural(len(self.effects), 'fault')}: {outcomes or 'none'}>"

    def total(self) -> Share:
        """Return one row that counts the effects of all faults, under the name "all"."""
        return share_of("all", self.effects, self.strata)

    def table(self, name: str) -> list[Share]:
        """Return a row for each value of a property in `TABLES`, with the effects of its faults; the worst is first."""
        return shares(self.effects, TABLES[name])

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes that a table has columns for: the first `_ALWAYS` of `OUTCOMES`, which concern values,
        and those others that occur."""
        occurring = {effect.outcome for effect in self.effects}
        return tuple(name for place, name in enumerate(OUTCOMES) if place < _ALWAYS or name in occurring)

    def protection(self) -> list[Guarded]:
        """Return a row for each protection that was tried, with the faults counted by the effect that remains; empty if
        none was."""
        before = sum(effect.failed for effect in self.effects)
        rows: list[Guarded] = []
        for name, cost in self.costs.items():
            counts: dict[str, int] = {}
            for effect in self.effects:
                remaining = effect.after.get(name, effect.outcome)
                counts[column(remaining)] = counts.get(column(remaining), 0) + 1
            failures = sum(effect.after.get(name, effect.outcome) in FAILURES for effect in self.effects)
            rows.append(Guarded(name=name, counts=counts, failures=failures, before=before, cost=cost))
        return rows

    def as_json(self) -> dict[str, Any]:
        """Return all effects and tables as plain data, with `schema_version`."""
        return CAMPAIGN.document(self)


def _count_of(name: str, share: Share) -> int:
    """Return the number of faults of a row whose outcome has the `column` `name`; used for the columns of JSON."""
    return share.counts[name]


EFFECT: Final = Columns[Effect](
    *FAULT.within(Effect, lambda effect: effect.fault),
    Column("outcome", str, lambda effect: effect.outcome),
    Column("pcc", float | None, lambda effect: effect.pcc),
    Column("max_error", float | None, lambda effect: effect.max_error),
    Column("top1", float, lambda effect: effect.top1),
    Column("tiles", int, lambda effect: effect.tiles),
    Column("output", str, lambda effect: effect.output),
    Column("computed", int, lambda effect: effect.computed),
    Column("error", str, lambda effect: effect.error),
    Column("ratio", float, lambda effect: effect.ratio),
    Column("maps", dict[str, str], lambda effect: effect.maps),
    Column("after", dict[str, str], lambda effect: effect.after),
)
_COUNTS: Final = [Column[Share](column(name), int, partial(_count_of, column(name))) for name in OUTCOMES]
SHARE: Final = Columns[Share](
    *_COUNTS,
    Column("name", str, lambda share: share.name),
    Column("faults", int, lambda share: share.faults),
    Column("failures", int, lambda share: share.failures),
    Column("share", float, lambda share: share.share),
    Column("low", float, lambda share: share.interval[0]),
    Column("high", float, lambda share: share.interval[1]),
)
GUARDED: Final = Columns[Guarded](
    Column("name", str, lambda guarded: guarded.name),
    Column("failures_before", int, lambda guarded: guarded.before),
    Column("failures", int, lambda guarded: guarded.failures),
    Column("after", dict[str, int], lambda guarded: guarded.counts),
    Column("cost", Columns[Cost](Cost), lambda guarded: guarded.cost),
)
SETTINGS: Final = {
    "seed": int,
    "kinds": list[str],
    "places": list[str],
    "burst": int,
    "scatter": bool,
    "least_pcc": float,
    "only": str,
    "top1": bool,
    "late": float,
    "strata": str,
    "protect": list[str],
    "given": [FAULT],
}
"""The settings of a campaign, with their types."""
CAMPAIGN: Final = Columns[Campaign](
    Column("netlist", str, lambda campaign: campaign.netlist),
    Column("arch", str, lambda campaign: campaign.arch),
    Column("precision", str, lambda campaign: campaign.precision),
    Column("seed", int, lambda campaign: campaign.seed),
    Column("settings", SETTINGS, lambda campaign: campaign.settings),
    Column("bit_hours", float, lambda campaign: campaign.bit_hours),
    Column("finished", bool, lambda campaign: campaign.finished),
    Column("left_out", list[str], lambda campaign: campaign.left_out),
    Column("total", SHARE, Campaign.total),
    Column("strata", dict[str, float], lambda campaign: campaign.strata),
    Column("protection", [GUARDED], Campaign.protection),
    Column(
        "tables", {name: [SHARE] for name in TABLES}, lambda campaign: {name: campaign.table(name) for name in TABLES}
    ),
    Column("faults", [EFFECT], lambda campaign: campaign.effects),
)
"""The effects and tables of `faults --json`."""
