"""Baselines: findings, verdicts and figures that are known already, their file and its schema, and what is new or
worse.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from buda_emu.report.machine_readable.schema import versioned
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole, write_file
from buda_emu.support.strict_json import parse

if TYPE_CHECKING:
    from buda_emu.performance.timing.checks import BoundResult
    from buda_emu.performance.timing.result import PerfRun
    from buda_emu.support.checker import Diagnostic
    from buda_emu.testing.verify.result import CaseResult


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
        section=section,
        new=tuple(result.new),
        worse=tuple(result.worse),
        mended=tuple(result.mended),
        known=tuple(result.known),
        unlisted=tuple(result.unlisted),
    )


def _place(result: _Sorted, change: Change, measure: Measure) -> list[Change]:
    before = change.before
    now = change.now
    assert now is not None
    if before is None:
        return result.new if now.fails else result.unlisted
    if before.level is None or now.level is None:
        return result.known
    room = measure.absolute + measure.relative * abs(before.level)
    if now.level > before.level + room:
        return result.worse
    return result.mended if now.level < before.level - room else result.known


SCHEMA_VERSION: Final = 1


@dataclass(slots=True)
class Baseline:
    """One section of a baseline file."""

    path: str
    section: Section
    settings: Mapping[str, Any]  # of this run
    content: dict[str, Any]  # of the whole file
    update: bool = False
    measure: Measure | None = None

    def against(self, found: Mapping[str, Sequence[Item]]) -> Comparison:
        """Compare; with `update` write what was found, too. Raises OSError."""
        here = {name: self._name(name) for name in found}
        known = {name: self._known().get(own, []) for name, own in here.items()}
        result = compare(self.section, known, found, self.measure)
        if self.update:
            self._write({here[name]: items for name, items in found.items()})
        return result

    def _known(self) -> dict[str, list[Known]]:
        section = self.content.get(self.section)
        if section is None or not _same_settings(section["settings"], self.settings):
            return {}  # of other settings nothing is known
        return _items(section, self.section)

    def _write(self, found: Mapping[str, Sequence[Item]]) -> None:
        kept = {
            name: items
            for name, items in self._known().items()
            if name not in found and (Path(self.path).parent / name).exists()
        }
        before = self.content.get(self.section)
        of_before = _items(before, self.section) if before is not None else {}  # of other settings, too
        expected = {(name, item.what): item for name, items in of_before.items() for item in items if item.reason}
        for name, items in found.items():
            kept[name] = [_anew(item, expected.get((name, item.what))) for item in items]
        files = {name: [self._plain(item) for item in kept[name]] for name in sorted(kept) if kept[name]}
        content = {"schema_version": SCHEMA_VERSION, **self.content}
        content[self.section] = {"settings": dict(self.settings), "files": files}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_file(self.path, lambda stream: stream.write(text.encode("utf-8", "surrogateescape")))

    def _plain(self, item: Known) -> dict[str, Any]:
        level = {} if item.level is None else {MEASURES[self.section].name: float(f"{item.level:.9g}")}
        return {"what": item.what, **level, **({"reason": item.reason} if item.reason else {})}

    def _name(self, path: str) -> str:
        """As the file has it: relative to its folder, with slashes."""
        if path == "-":
            return path
        return Path(os.path.relpath(path, Path(self.path).parent)).as_posix()


def read_baseline(
    path: str, section: Section, settings: Mapping[str, Any], *, update: bool = False, measure: Measure | None = None
) -> Baseline:
    """A section of a baseline file, which need not be there yet when it is to be updated.

    Raises HostError for a file that is not a baseline, of another schema version, or made with other settings.
    """
    settings = json.loads(json.dumps(settings))  # as it is read back
    try:
        data = read_whole(path)
    except FileNotFoundError:
        if not update:
            raise HostError(f"{path}: there is no such baseline; --update-baseline makes it") from None
        return Baseline(path=path, section=section, settings=settings, content={}, update=update, measure=measure)
    content = _checked(path, data)
    own = content.get(section)
    if own is not None and not update and not _same_settings(own["settings"], settings):
        other = ", ".join(
            f"{key} {_word(own['settings'].get(key))}, now {_word(settings.get(key))}"
            for key in sorted({*own["settings"], *settings})
            if own["settings"].get(key) != settings.get(key)
        )
        raise HostError(f"{path}: made with other settings ({other}); --update-baseline makes it again")
    if own is None and not update:
        raise HostError(f"{path}: it has nothing of `{section}` yet; --update-baseline adds it")
    return Baseline(path=path, section=section, settings=settings, content=content, update=update, measure=measure)


def _anew(item: Item, expected: Known | None) -> Known:
    """An item as it is now. A reason stays, and so does that it is expected at any level."""
    if expected is None:
        return Known(item.what, item.level)
    return Known(item.what, item.level if expected.level is not None else None, expected.reason)


def _same_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return all(before.get(key) == now.get(key) for key in {*before, *now})


def _word(value: object) -> str:
    return "not given" if value is None or value == [] or value == {} else json.dumps(value)


def _items(section: Mapping[str, Any], name: Section) -> dict[str, list[Known]]:
    level = MEASURES[name].name
    return {
        file: [Known(item["what"], item.get(level), item.get("reason", "")) for item in items]
        for file, items in section["files"].items()
    }


# ---------------------------------------------------------------------------------------------------------- validation
def _checked(path: str, data: bytes) -> dict[str, Any]:
    """The content of a file that is a baseline. Raises HostError with the place of what is wrong."""
    try:
        content = parse(data)
    except ValueError as error:
        fix = "take an older copy of it, or remove it and make it again with --update-baseline"
        raise HostError(f"{path}: not a baseline: {error}: {fix}") from None
    root = _object(path, content, ("schema_version", *MEASURES), needed=("schema_version",))
    if root["schema_version"] != SCHEMA_VERSION:
        raise HostError(f"{path}: schema version {root['schema_version']!r}, this version reads {SCHEMA_VERSION}")
    for name, measure in MEASURES.items():
        if name not in root:
            continue
        section = _object(f"{path}: {name}", root[name], ("settings", "files"), needed=("settings", "files"))
        _object(f"{path}: {name}: settings", section["settings"])
        for file, items in _object(f"{path}: {name}: files", section["files"]).items():
            if not isinstance(items, list):
                raise HostError(f"{path}: {name}: files: {file}: not a list")
            for number, item in enumerate(cast(list[Any], items), 1):
                _check_item(f"{path}: {name}: files: {file}: item {number}", item, measure.name)
    return root


def _check_item(place: str, item: Any, level: str) -> None:
    found = _object(place, item, ("what", level, "reason"), needed=("what",))
    for key in ("what", "reason"):
        if key in found and (not isinstance(found[key], str) or not found[key].strip()):
            raise HostError(f"{place}: {key}: must be words")
    value = found.get(level, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise HostError(f"{place}: {level}: must be a number")


def _object(place: str, value: Any, keys: Sequence[str] = (), needed: Sequence[str] = ()) -> dict[str, Any]:
    """A JSON object that has these keys and no others. Raises HostError."""
    if not isinstance(value, dict):
        raise HostError(f"{place}: not a JSON object")
    found = cast(dict[str, Any], value)
    for key in found:
        if keys and key not in keys:
            hint = near(key, keys)
            raise HostError(f"{place}: unknown key {key!r}{f' ({hint})' if hint else ''}; keys: {', '.join(keys)}")
    for key in needed:
        if key not in found:
            raise HostError(f"{place}: the key {key!r} is missing")
    return found


def finding(diagnostic: "Diagnostic") -> str:
    """How a finding is known: rule and words, not its line, which moves."""
    return f"{diagnostic.severity} {diagnostic.rule}: {diagnostic.message}"


def check_items(diagnostics: "Sequence[Diagnostic]") -> list[Item]:
    """Errors and warnings, equal ones counted."""
    counts = Counter(finding(item) for item in diagnostics if item.severity != "note")
    return [Item(what, float(count)) for what, count in counts.items()]


def test_items(case: "CaseResult") -> list[Item]:
    """Outputs and figures that do not hold; of a netlist that gave none, what became of it."""
    if case.status in ("passed", "skipped"):
        return []
    found = [
        Item(f"output {item.queue}", 1 - (item.pcc if item.pcc is not None else item.match))
        for item in case.failed_outputs
    ]
    for item in case.performance:
        if not item.passed:
            found.append(Item(_check_name(item.config, item.graph, item.target, item.metric)))
    return found or [Item(case.status)]


def perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> list[Item]:
    """Cycles for an input of every epoch, and figures of performance-check that are missed."""
    return list(_perf_items(run, checks))


def _perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> Iterator[Item]:
    for epoch in run.epochs:
        yield Item(f"{epoch.program}: {' + '.join(epoch.graphs)}", epoch.pace, fails=False)
    for item in checks:
        if not item.passed:
            yield Item(_check_name(item.config, item.graph, item.target, item.bound.metric))


def _check_name(config: str, graph: str, target: str, metric: str) -> str:
    return "performance-check " + " ".join(filter(None, (config, graph, target, metric)))


def schema() -> dict[str, Any]:
    """Of a file with sections `check`, `test` and `perf`, none of which must be there."""
    sections = {name: _section(measure.name) for name, measure in MEASURES.items()}
    found = versioned("A baseline of buda-emu check, test and perf", sections, {}, SCHEMA_VERSION)
    return {**found, "required": ["schema_version"], "additionalProperties": False}


def _section(level: str) -> dict[str, Any]:
    words = {"type": "string", "pattern": r"\S"}
    item = {
        "type": "object",
        "properties": {"what": words, level: {"type": "number"}, "reason": words},
        "required": ["what"],
        "additionalProperties": False,
    }
    files = {"type": "object", "additionalProperties": {"type": "array", "items": item}}
    return {
        "type": "object",
        "properties": {"settings": {"type": "object"}, "files": files},
        "required": ["settings", "files"],
        "additionalProperties": False,
    }
