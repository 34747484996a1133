"""What is known already of some files, and what is new or worse: the baselines of `check`, `test` and `perf`.

A file has *items*: findings, outputs that do not hold, cycles of an epoch. An item is known by its words; its level
says how bad it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from buda_emu.checker.text import plural

Section = Literal["check", "test", "perf"]


@dataclass(frozen=True, slots=True)
class Measure:
    """What the level of a section's items is, and by how much it may grow before that is worse."""

    name: str
    absolute: float = 0.0
    relative: float = 0.0


MEASURES: Final[Mapping[Section, Measure]] = {
    "check": Measure("count"),  # of equal findings in the file
    "test": Measure("error", absolute=1e-3),  # 1 - PCC of an output
    "perf": Measure("cycles", relative=1e-8),  # for each input
}


@dataclass(frozen=True, slots=True)
class Item:
    """Something that is so now. `level` None: it is so or not. `fails`: it is a fault, else a figure such as cycles."""

    what: str
    level: float | None = None
    fails: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """An item of the baseline. `level` None: at any level. `reason`: why it is expected, in somebody's words."""

    what: str
    level: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """An item of a file, before and now; one of them is None where it was not, or is no more."""

    file: str
    before: Known | None
    now: Item | None

    @property
    def what(self) -> str:
        """Its words."""
        found = self.now or self.before
        return found.what if found is not None else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Files compared with a baseline."""

    section: Section
    new: tuple[Change, ...] = ()
    worse: tuple[Change, ...] = ()
    mended: tuple[Change, ...] = ()  # gone, or better
    known: tuple[Change, ...] = ()
    unlisted: tuple[Change, ...] = ()  # figures that the baseline does not have

    @property
    def holds(self) -> bool:
        """Whether nothing is new or worse."""
        return not self.new and not self.worse

    @property
    def known_files(self) -> frozenset[str]:
        """Files with faults, none of them new or worse."""
        bad = {change.file for change in (*self.new, *self.worse)}
        return frozenset(change.file for change in self.known if change.now and change.now.fails) - bad

    def lines(self) -> Iterator[str]:
        """What is told of it; the last line is its sum, such as `2 mended, 1 new`."""
        for word, changes in (("new", self.new), ("worse", self.worse), ("mended", self.mended)):
            for change in changes:
                yield f"{word}: {change.file}: {change.what}{self._levels(change)}"
        for change in self.known:
            if change.before is not None and change.before.reason:
                yield f"expected: {change.file}: {change.what}: {change.before.reason}"
        if self.known:
            yield f"{len(self.known)} as in the baseline"
        if self.unlisted:
            yield f"{plural(len(self.unlisted), 'figure')} not in the baseline yet"
        worse = f", {len(self.worse)} worse" if self.worse else ""
        yield f"{len(self.mended)} mended, {len(self.new)} new{worse}"

    def _levels(self, change: Change) -> str:
        before = change.before.level if change.before is not None else None
        now = change.now.level if change.now is not None else None
        if before is None or now is None:
            return ""
        return f" ({MEASURES[self.section].name} {before:.6g}, now {now:.6g})"

    def as_json(self) -> dict[str, Any]:
        """For the JSON of the verbs."""

        def plain(changes: Sequence[Change]) -> list[dict[str, Any]]:
            return [
                {
                    "file": item.file,
                    "what": item.what,
                    "level": item.now.level if item.now else None,
                    "known_level": item.before.level if item.before else None,
                    "reason": item.before.reason if item.before else "",
                }
                for item in changes
            ]

        return {
            "new": plain(self.new),
            "worse": plain(self.worse),
            "mended": plain(self.mended),
            "known": plain(self.known),
            "holds": self.holds,
        }


@dataclass(slots=True)
class _Sorted:
    new: list[Change] = field(default_factory=list[Change])
    worse: list[Change] = field(default_factory=list[Change])
    mended: list[Change] = field(default_factory=list[Change])
    known: list[Change] = field(default_factory=list[Change])
    unlisted: list[Change] = field(default_factory=list[Change])


def compare(
    section: Section,
    known: Mapping[str, Sequence[Known]],
    found: Mapping[str, Sequence[Item]],
    measure: Measure | None = None,
) -> Comparison:
    """Hold what was found in each file against what is known of it. Files that were not looked at say nothing.

    `measure`: instead of the section's own.
    """
    result = _Sorted()
    for file, items in found.items():
        left = {item.what: item for item in known.get(file, ())}
        for item in {item.what: item for item in items}.values():
            change = Change(file, left.pop(item.what, None), item)
            _place(result, change, measure or MEASURES[section]).append(change)
        result.mended += [Change(file, item, None) for item in left.values()]
    return Comparison(
        section,
        tuple(result.new),
        tuple(result.worse),
        tuple(result.mended),
        tuple(result.known),
        tuple(result.unlisted),
    )


def _place(result: _Sorted, change: Change, measure: Measure) -> list[Change]:
    before, now = change.before, change.now
    assert now is not None
    if before is None:
        return result.new if now.fails else result.unlisted
    if before.level is None or now.level is None:
        return result.known
    room = measure.absolute + measure.relative * abs(before.level)
    if now.level > before.level + room:
        return result.worse
    return result.mended if now.level < before.level - room else result.known
