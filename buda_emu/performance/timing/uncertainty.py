"""How far modelled cycles may be from silicon: 90 % intervals, from errors on rows that no fit has seen.

Figures that share an error form a family: ops of a chip and kind with the same basis, transfers of a sort, the loading
of epochs. `python -m benchmarks.scorecard intervals` computes the families' errors and writes them to
`data/intervals.json`. A sum is as uncertain as its families: within one, errors are taken to be the same, so they add
up; different families err independently, so their squares add up (docs/timing/scorecard.md#how-often-intervals-hold).
"""

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import hypot
from typing import Any, Final

from buda_emu.support.errors import InternalError

SHARE: Final = 0.9
"""The share of silicon figures that intervals are to contain."""
DATA: Final = "intervals.json"
ANY_CHIP: Final = "any chip"
IN_GRAPHS: Final = f"{ANY_CHIP} ops together in a graph"
"""What figures of whole graphs err by beside their ops and transfers. A part of this family stands for cycles that
other parts have, too: it adds its error to a sum, but no cycles."""
LOADING_UNIT: Final = "loading"
"""The unit of the part of an epoch that is its loading."""
LISTED_LINKS: Final = 16
"""How many of the busiest links and ports a modelled epoch lists; those of other links are at most as busy."""
_SCHEMA: Final = 1  # of the file of data that comes with the package


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval in which a figure lies on silicon with a probability of 90 %."""

    low: float
    high: float

    def __str__(self) -> str:
        """Return the interval as reports write it: `90 %: 1,190,000 to 1,300,000`."""
        return f"{100 * SHARE:.0f} %: {self.low:,.0f} to {self.high:,.0f}"

    def times(self, factor: float) -> "Interval":
        """Return the interval of a figure that is `factor` times this one."""
        return Interval(self.low * factor, self.high * factor)

    def plus(self, certain: float) -> "Interval":
        """Return the interval of this figure and a certain one together."""
        return Interval(self.low + certain, self.high + certain)


@dataclass(frozen=True, slots=True)
class ErrorFamily:
    """Figures that share an error. Silicon takes `low` to `high` times the modelled cycles.

    `pair` is the same for two figures of the family beside each other, such as two blockings of one op: by how much, as
    a share, their errors differ. `rows` were compared with silicon; 0 stands for a stated error. `coverage` is the
    share of rows that an interval from other rows contained.
    """

    name: str
    low: float
    high: float
    pair: float
    rows: int
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """The share that one unit has in a sum of cycles, and the family whose error it has."""

    unit: str
    family: str
    cycles: float


@cache
def error_families() -> Mapping[str, ErrorFamily]:
    """Return the error families of the data file by name. A name is a chip, or `any chip`, and a topic. Cached. Raises
    InternalError for a file of another schema version."""
    text = (files("buda_emu.performance.timing") / "data" / DATA).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    if content["schema_version"] != _SCHEMA:
        raise InternalError(f"{DATA} has schema version {content['schema_version']}, not {_SCHEMA}")
    return {entry["name"]: ErrorFamily(**entry) for entry in content["families"]}


def error_family(name: str) -> ErrorFamily:
    """Return the errors of the family `name`. A chip without enough rows takes those of all chips, and a kind of op
    without enough of them those of all ops with the same basis. Raises KeyError for a name that no op of this version
    has, as a result of another version may."""
    families = error_families()
    chip = next((chip for chip in _CHIPS if name.startswith(f"{chip} ")), ANY_CHIP)
    topic = name.removeprefix(f"{chip} ")
    basis = topic.rpartition(", ")[2]
    for candidate in (name, f"{ANY_CHIP} {topic}", f"{ANY_CHIP} ops, {basis}"):
        if candidate in families:
            return families[candidate]
    raise KeyError(f"{DATA} has no errors for {name}")


_CHIPS: Final = ("grayskull", "wormhole_b0", "wormhole", "blackhole")


def interval_of(parts: Iterable[Part]) -> Interval:
    """Return the interval of the sum of parts on silicon. Raises KeyError for a part of an unknown family."""
    by_family = _sum_by_family(parts)
    total = sum(cycles for name, cycles in by_family.items() if name != IN_GRAPHS)
    below = 0.0
    above = 0.0
    for name, cycles in by_family.items():
        errors = error_family(name)
        below = hypot(below, cycles * (1 - errors.low))
        above = hypot(above, cycles * (errors.high - 1))
    return Interval(total - below, total + above)


def interval_of_difference(before: Iterable[Part], after: Iterable[Part], same: Set[str]) -> Interval:
    """Return the interval of what two sums on one chip differ by (after less before).

    `same` has the units whose own work is the same in both. What these and what all others of a family differ by in
    sum errs as the family does; equal cycles cancel. In addition, what both sums have of other units errs by as much as
    pairs of the family differ.
    """
    old = list(before)
    new = list(after)
    old_sums = _sum_by_family(old)
    new_sums = _sum_by_family(new)
    old_others = _sum_by_family(part for part in old if part.unit not in same)
    new_others = _sum_by_family(part for part in new if part.unit not in same)
    below = 0.0
    above = 0.0
    for name in {**old_sums, **new_sums}:
        errors = error_family(name)
        change = new_sums.get(name, 0.0) - old_sums.get(name, 0.0)
        ends = sorted((change * errors.low, change * errors.high))
        common = errors.pair * min(old_others.get(name, 0.0), new_others.get(name, 0.0))
        below = hypot(below, change - ends[0], common)
        above = hypot(above, ends[1] - change, common)
    difference = total_cycles(new) - total_cycles(old)
    return Interval(difference - below, difference + above)


def total_cycles(parts: Iterable[Part]) -> float:
    """Return the sum of the parts' cycles, without the parts that only add an error."""
    return sum(part.cycles for part in parts if part.family != IN_GRAPHS)


def _sum_by_family(parts: Iterable[Part]) -> dict[str, float]:
    """Return the cycles of each family."""
    by_family: dict[str, float] = {}
    for part in parts:
        by_family[part.family] = by_family.get(part.family, 0.0) + part.cycles
    return by_family
