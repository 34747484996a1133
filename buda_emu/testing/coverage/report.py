"""Coverage of several netlists: counted, written, read again and merged."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from os import PathLike
from typing import Any, Final, cast

from buda_emu.netlist.model import Netlist
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole
from buda_emu.support.records import dataclass
from buda_emu.support.strict_json import read_object
from buda_emu.support.version import RESULT_VERSION
from buda_emu.testing.coverage.features import features, lists


@cache
def every_list() -> Mapping[str, tuple[str, ...]]:
    """Those of the language, and those of what the checker asks and what a run does."""
    from buda_emu.testing.coverage.features import asked_of_objects, found_by_check
    from buda_emu.testing.coverage.run_features import EVENTS, device_steps

    return {
        **lists(),
        "rules passed": asked_of_objects(),
        "rules broken": found_by_check(),
        "queues and rams": EVENTS,
        "device steps": device_steps(),
    }


@dataclass(slots=True)
class Coverage:
    """How many netlists exercise each name of each list."""

    netlists: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in every_list()})

    def add(self, netlist: Netlist) -> list[str]:
        """Counts what one netlist more has of the language; what none before it had, as `list: name`."""
        return self.count(features(netlist))

    def count(self, found: Mapping[str, Iterable[str]]) -> list[str]:
        """Counts what one netlist more was found to exercise; what none before it had, as `list: name`."""
        new: list[str] = []
        self.netlists += 1
        for subject, names in found.items():
            counts = self.counts[subject]
            for name in sorted(names):
                if name not in counts:
                    new.append(f"{subject}: {name}")
                counts[name] = counts.get(name, 0) + 1
        return new

    def merge(self, other: "Coverage") -> None:
        """Adds the counts of netlists that were tested elsewhere."""
        self.netlists += other.netlists
        for subject, counts in other.counts.items():
            mine = self.counts[subject]
            for name, count in counts.items():
                mine[name] = mine.get(name, 0) + count

    def missing(self, subject: str) -> list[str]:
        """What no netlist exercises, in the order of the list."""
        return [name for name in every_list()[subject] if name not in self.counts[subject]]

    @property
    def percent(self) -> float:
        """Of all names of the lists of the language."""
        there = sum(len(self.counts[subject]) for subject in lists())
        return 100 * there / sum(map(len, lists().values()))

    def rows(self) -> Iterator[tuple[str, int, int, list[str]]]:
        """Of each list: its subject, names that are exercised, names in all, those that are not."""
        for subject, names in every_list().items():
            missing = self.missing(subject)
            yield subject, len(names) - len(missing), len(names), missing

    def as_json(self) -> dict[str, Any]:
        """Plain data, with `schema_version`."""
        return {
            "schema_version": RESULT_VERSION,
            "netlists": self.netlists,
            "percent": self.percent,
            "counts": {subject: dict(sorted(counts.items())) for subject, counts in self.counts.items()},
            "missing": {subject: self.missing(subject) for subject in every_list()},
        }


def of_netlists(netlists: Iterable[Netlist]) -> Coverage:
    """What they exercise together."""
    found = Coverage()
    for netlist in netlists:
        found.add(netlist)
    return found


def read(path: "str | PathLike[str]") -> Coverage:
    """What `as_json` was written to. Raises HostError for another file, and one of another version."""
    content = read_object(read_whole(path, 16), os.fspath(path), _WHAT, _FIX)
    version = content.get("schema_version")
    if "counts" in content and version != RESULT_VERSION:
        raise HostError(f"{path}: schema version {version}, this version reads {RESULT_VERSION}")
    try:
        netlists = _natural(content.get("netlists"), "netlists", 1 << 53)
        found = Coverage(netlists)
        for subject, names in _object(content.get("counts"), "counts").items():
            if subject not in found.counts:
                raise ValueError(f"this version has no list {subject!r}")
            found.counts[subject] = _counts(names, subject, netlists)
    except ValueError as error:
        raise HostError(f"{path}: not {_WHAT}: {error}: {_FIX}") from None
    return found


_WHAT: Final = "a coverage that this version's `test --coverage` wrote"
_FIX: Final = "write it again"


def _counts(names: Any, subject: str, netlists: int) -> dict[str, int]:
    """How many of so many netlists exercise each name of a list. Raises ValueError for what is none of it: counted
    elsewhere means counted by the same lists."""
    known = every_list()[subject]
    found: dict[str, int] = {}
    for name, count in _object(names, f"counts of {subject}").items():
        if name not in known:
            raise ValueError(f"this version has no {name!r} in the list {subject!r}")
        found[name] = _natural(count, f"the count of {subject}: {name}", netlists)
        if not found[name]:
            raise ValueError(f"the count of {subject}: {name} is 0")
    return found


def _natural(value: Any, name: str, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name}: not a number from 0 to {most}")
    return value


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name}: not an object")
    return cast("dict[str, Any]", value)
