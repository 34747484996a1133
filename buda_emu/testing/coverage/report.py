"""Coverage of several netlists: counted, written, read again and merged."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    """Return the names of all lists by subject: those of the language, of the checker's rules, and of the steps of a
    run."""
    from buda_emu.testing.coverage.features import asked_of_objects, found_by_check
    from buda_emu.testing.coverage.run_features import EVENTS, device_steps

    return {
        **lists(),
        "rules passed": asked_of_objects(),
        "rules broken": found_by_check(),
        "queues and rams": EVENTS,
        "device steps": device_steps(),
    }


@dataclass(frozen=True, slots=True)
class Example:
    """A netlist that exercises a name: its path from the folder of the coverage file, and how many names it exercises
    in all."""

    netlist: str
    names: int


@dataclass(slots=True)
class Coverage:
    """Counts of the netlists that exercise each name of each list. `examples` has one of these netlists for each name,
    as far as their paths are known: the one that exercises the fewest names, where the name is easiest to find."""

    netlists: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in every_list()})
    examples: dict[str, dict[str, Example]] = field(default_factory=lambda: {name: {} for name in every_list()})

    def add(self, netlist: Netlist) -> list[str]:
        """Count the features of one more netlist; return the names that no netlist before had, as `list: name`."""
        return self.count(features(netlist))

    def count(self, exercised: Mapping[str, Collection[str]], netlist: str = "") -> list[str]:
        """Count what one more netlist exercises, given as names by list; return the names that no netlist before had,
        as `list: name`. `netlist` is its path from the folder of the coverage file, "" if it is to be no example."""
        new: list[str] = []
        self.netlists += 1
        example = Example(netlist, sum(map(len, exercised.values())))
        for subject, names in exercised.items():
            counts = self.counts[subject]
            if netlist:
                self._keep_simplest(subject, dict.fromkeys(names, example))
            for name in sorted(names):
                if name not in counts:
                    new.append(f"{subject}: {name}")
                counts[name] = counts.get(name, 0) + 1
        return new

    def _keep_simplest(self, subject: str, examples: Mapping[str, Example]) -> None:
        """Take over those examples of names of a list that exercise fewer names than the present example."""
        simplest = self.examples[subject]
        for name, example in examples.items():
            if name not in simplest or example.names < simplest[name].names:
                simplest[name] = example

    def merge(self, other: "Coverage") -> None:
        """Add the counts and examples of another coverage, of netlists that were tested elsewhere."""
        self.netlists += other.netlists
        for subject, other_counts in other.counts.items():
            counts = self.counts[subject]
            for name, count in other_counts.items():
                counts[name] = counts.get(name, 0) + count
            self._keep_simplest(subject, other.examples[subject])

    def missing(self, subject: str) -> list[str]:
        """Return the names of the list `subject` that no netlist exercises, in the order of the list."""
        return [name for name in every_list()[subject] if name not in self.counts[subject]]

    @property
    def percent(self) -> float:
        """The percentage of all names of the lists of the language that are exercised."""
        exercised = sum(len(self.counts[subject]) for subject in lists())
        return 100 * exercised / sum(map(len, lists().values()))

    def rows(self) -> Iterator[tuple[str, int, int, list[str]]]:
        """Yield, for each list, its subject, the number of exercised names, the number of names, and the missing
        names."""
        for subject, names in every_list().items():
            missing = self.missing(subject)
            yield subject, len(names) - len(missing), len(names), missing

    def as_json(self) -> dict[str, Any]:
        """Return the counts and missing names as plain data, with `schema_version`."""
        return {
            "schema_version": RESULT_VERSION,
            "netlists": self.netlists,
            "percent": self.percent,
            "counts": {subject: dict(sorted(counts.items())) for subject, counts in self.counts.items()},
            "missing": {subject: self.missing(subject) for subject in every_list()},
            "examples": {
                subject: {
                    name: {"netlist": example.netlist, "names": example.names}
                    for name, example in sorted(examples.items())
                }
                for subject, examples in self.examples.items()
            },
        }


def coverage_of(netlists: Iterable[Netlist]) -> Coverage:
    """Return the coverage of several netlists together."""
    coverage = Coverage()
    for netlist in netlists:
        coverage.add(netlist)
    return coverage


def read(path: "str | PathLike[str]") -> Coverage:
    """Read the file of a coverage. Raises HostError for a file with other content, or of another version."""
    content = read_object(read_whole(path, 16), os.fspath(path), _CONTENT, _FIX)
    version = content.get("schema_version")
    if "counts" in content and version != RESULT_VERSION:
        raise HostError(f"{path}: schema version {version}, this version reads {RESULT_VERSION}")
    try:
        netlists = _require_natural(content.get("netlists"), "netlists", 1 << 53)
        coverage = Coverage(netlists)
        for subject, names in _require_object(content.get("counts"), "counts").items():
            if subject not in coverage.counts:
                raise ValueError(f"this version has no list {subject!r}")
            coverage.counts[subject] = _read_counts(names, subject, netlists)
        for subject, names in _require_object(content.get("examples", {}), "examples").items():  # added later
            if subject not in coverage.counts:
                raise ValueError(f"this version has no list {subject!r}")
            coverage.examples[subject] = _read_examples(names, subject, coverage.counts[subject])
    except ValueError as error:
        raise HostError(f"{path}: not {_CONTENT}: {error}: {_FIX}") from None
    return coverage


_CONTENT: Final = "a coverage that this version's `test --coverage` wrote"
_FIX: Final = "write it again"


def _read_counts(names: Any, subject: str, netlists: int) -> dict[str, int]:
    """Read the counts of one list, each from 1 to the number of netlists. Raises ValueError for other content: counts
    made with other lists cannot be merged."""
    legal_names = every_list()[subject]
    counts: dict[str, int] = {}
    for name, count in _require_object(names, f"counts of {subject}").items():
        if name not in legal_names:
            raise ValueError(f"this version has no {name!r} in the list {subject!r}")
        counts[name] = _require_natural(count, f"the count of {subject}: {name}", netlists)
        if not counts[name]:
            raise ValueError(f"the count of {subject}: {name} is 0")
    return counts


def _read_examples(names: Any, subject: str, counts: Mapping[str, int]) -> dict[str, Example]:
    """Read the examples of one list, which are netlists of names that are counted. Raises ValueError for other
    content."""
    examples: dict[str, Example] = {}
    for name, entry in _require_object(names, f"examples of {subject}").items():
        place = f"the example of {subject}: {name}"
        netlist = _require_object(entry, place).get("netlist")
        if name not in counts or not isinstance(netlist, str):
            raise ValueError(f"{place}: no netlist of a name that is counted")
        examples[name] = Example(netlist, _require_natural(_require_object(entry, place).get("names"), place, 1 << 53))
    return examples


def _require_natural(value: Any, name: str, maximum: int) -> int:
    """Return a value that must be an integer from 0 to `maximum`. Raises ValueError, with `name`, for any other
    value."""
    if type(value) is not int or not 0 <= value <= maximum:
        raise ValueError(f"{name}: not a number from 0 to {maximum}")
    return value


def _require_object(value: Any, name: str) -> dict[str, Any]:
    """Return a value that must be a JSON object. Raises ValueError, with `name`, for any other value."""
    if not isinstance(value, dict):
        raise ValueError(f"{name}: not an object")
    return cast("dict[str, Any]", value)
