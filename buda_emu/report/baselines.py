"""Baselines of findings, verdicts and figures: their file and its schema, and the comparison of a run with them."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from buda_emu.report.machine_readable.schema import versioned_schema
from buda_emu.report.terminal.text import first_lines
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole, write_file
from buda_emu.support.folder_lock import folder_to_ourselves
from buda_emu.support.strict_json import parse

if TYPE_CHECKING:
    from buda_emu.performance.timing.checks import BoundResult
    from buda_emu.performance.timing.result import PerfRun
    from buda_emu.support.checker import Diagnostic
    from buda_emu.testing.verify.result import CaseResult


Section = Literal["check", "test", "perf"]


@dataclass(frozen=True, slots=True)
class Measure:
    """The meaning of the level of a section's items, and by how much it may grow before it counts as worse."""

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
    """A present finding, verdict or figure. `level` is None where there are no degrees. `fails` is true for a fault,
    false for a figure such as cycles."""

    what: str
    level: float | None = None
    fails: bool = True


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """An entry of a baseline. A `level` of None expects the item at any level. `reason` is a user's explanation."""

    what: str
    level: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item of a file, before and now; one of the two is None for an item that is new or gone."""

    file: str
    before: BaselineEntry | None
    now: Item | None

    @property
    def what(self) -> str:
        """The words that identify the item."""
        present = self.now or self.before
        return present.what if present is not None else ""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The items of some files, compared with a baseline and sorted by what became of them."""

    section: Section
    new: tuple[ItemChange, ...] = ()
    worse: tuple[ItemChange, ...] = ()
    better: tuple[ItemChange, ...] = ()  # still there, at a lower level
    mended: tuple[ItemChange, ...] = ()  # gone
    known: tuple[ItemChange, ...] = ()
    unlisted: tuple[ItemChange, ...] = ()  # figures that the baseline does not have

    @property
    def holds(self) -> bool:
        """True if nothing is new or worse."""
        return not self.new and not self.worse

    @property
    def known_files(self) -> frozenset[str]:
        """The files that have faults, none of which is new or worse."""
        bad = {change.file for change in (*self.new, *self.worse)}
        present = (*self.known, *self.better)
        return frozenset(change.file for change in present if change.now and change.now.fails) - bad

    def lines(self, *, updated: bool = False) -> Iterator[str]:
        """Yield lines for the first changes of each kind, then counts, such as `2 mended, 1 new` in the last line.
        `updated` tells whether the baseline holds by now what it did not have."""
        for word, changes in self._changes_by_word():
            texts = [f"{word}: {change.file}: {change.what}{self._levels_text(change)}" for change in changes]
            yield from first_lines(texts, word)
        texts = [
            f"expected: {change.file}: {change.what}: {change.before.reason}"
            for change in self.known
            if change.before is not None and change.before.reason
        ]
        yield from first_lines(texts, "expected")
        if self.known:
            yield f"{len(self.known)} as in the baseline"
        if self.unlisted:
            outcome = "added to the baseline" if updated else "not in the baseline yet"
            yield f"{plural(len(self.unlisted), 'figure')} {outcome}"
        yield self._counts_line()

    def _counts_line(self) -> str:
        """Return the counts of changes as one line."""
        counts = [f"{len(self.mended)} mended", f"{len(self.new)} new"]
        if self.worse:
            counts.append(f"{len(self.worse)} worse")
        if self.better:
            counts.append(f"{len(self.better)} better")
        return ", ".join(counts)

    def _changes_by_word(self) -> tuple[tuple[str, tuple[ItemChange, ...]], ...]:
        """Return the changes of each kind that is printed, under its word."""
        return ("new", self.new), ("worse", self.worse), ("better", self.better), ("mended", self.mended)

    def _levels_text(self, change: ItemChange) -> str:
        """Return the levels of a change, before and now, in parentheses; "" unless both exist."""
        if change.before is None or change.now is None:
            return ""
        before = change.before.level
        current = change.now.level
        if before is None or current is None:
            return ""
        return f" ({MEASURES[self.section].name} {before:.6g}, now {current:.6g})"

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain data, as the verbs print it in JSON."""
        return {
            "new": [_change_json(change) for change in self.new],
            "worse": [_change_json(change) for change in self.worse],
            "better": [_change_json(change) for change in self.better],
            "mended": [_change_json(change) for change in self.mended],
            "known": [_change_json(change) for change in self.known],
            "holds": self.holds,
        }


def _change_json(change: ItemChange) -> dict[str, Any]:
    """Return a change as plain data: file, words, level now and before, and the user's reason."""
    before = change.before or BaselineEntry(change.what)
    present = change.now or Item(change.what)
    return {
        "file": change.file,
        "what": change.what,
        "level": present.level,
        "known_level": before.level,
        "reason": before.reason,
    }


@dataclass(slots=True)
class _ChangeLists:
    """Changes in lists by what became of them, while they are collected."""

    new: list[ItemChange] = field(default_factory=list[ItemChange])
    worse: list[ItemChange] = field(default_factory=list[ItemChange])
    better: list[ItemChange] = field(default_factory=list[ItemChange])
    mended: list[ItemChange] = field(default_factory=list[ItemChange])
    known: list[ItemChange] = field(default_factory=list[ItemChange])
    unlisted: list[ItemChange] = field(default_factory=list[ItemChange])


def compare(
    section: Section,
    expected: Mapping[str, Sequence[BaselineEntry]],
    present: Mapping[str, Sequence[Item]],
    measure: Measure | None = None,
) -> BaselineComparison:
    """Compare the present items of each file with those that the baseline expects of it, and sort them by what became
    of them. Files that were not examined (`present` lacks them) do not count. `measure` replaces that of the
    section."""
    result = _ChangeLists()
    for file, items in present.items():
        unmatched = {entry.what: entry for entry in expected.get(file, ())}
        for entry in {entry.what: entry for entry in items}.values():
            change = ItemChange(file, unmatched.pop(entry.what, None), entry)
            _list_for(result, change, measure or MEASURES[section]).append(change)
        result.mended += [ItemChange(file, entry, None) for entry in unmatched.values()]
    return BaselineComparison(
        section=section,
        new=tuple(result.new),
        worse=tuple(result.worse),
        better=tuple(result.better),
        mended=tuple(result.mended),
        known=tuple(result.known),
        unlisted=tuple(result.unlisted),
    )


def _list_for(result: _ChangeLists, change: ItemChange, measure: Measure) -> list[ItemChange]:
    """Return the list of the result to which a change belongs: by whether the baseline has the item, and by whether its
    level moved by more than `measure` allows."""
    before = change.before
    present = change.now
    assert present is not None
    if before is None:
        return result.new if present.fails else result.unlisted
    if before.level is None or present.level is None:
        return result.known
    room = measure.absolute + measure.relative * abs(before.level)
    if present.level > before.level + room:
        return result.worse
    if present.level < before.level - room:
        return result.better
    return result.known


SCHEMA_VERSION: Final = 1  # goes up when an older baseline can no longer be read


@dataclass(slots=True)
class Baseline:
    """One section of a baseline file, for a run with certain settings."""

    path: str
    section: Section
    settings: Mapping[str, Any]  # of this run
    content: dict[str, Any]  # of the whole file
    update: bool = False
    measure: Measure | None = None

    def against(self, present: Mapping[str, Sequence[Item]]) -> BaselineComparison:
        """Compare the present items of each file, by its path, with the baseline."""
        entries = self._matching_entries()
        expected = {name: entries.get(self._name_in_baseline(name), []) for name in present}
        return compare(self.section, expected, present, self.measure)

    def keep(self, present: Mapping[str, Sequence[Item]]) -> None:
        """If the baseline is to be updated, write the present items of each file, by its path, to it; else do nothing.
        Raises OSError, and HostError if the file was damaged meanwhile: callers write first what else they have of a
        long run."""
        if self.update:
            with folder_to_ourselves(Path(self.path).parent):
                self._read_again()
                self._write({self._name_in_baseline(name): items for name, items in present.items()})

    def _read_again(self) -> None:
        """Read the file again, since other runs may have written to it, so that what they wrote is not lost."""
        with suppress(FileNotFoundError):
            self.content = _parse(self.path, read_whole(self.path))

    def _matching_entries(self) -> dict[str, list[BaselineEntry]]:
        """Return the entries of the section by file; none if they were made with other settings."""
        section = self.content.get(self.section)
        if section is None or not _same_settings(section["settings"], self.settings):
            return {}  # figures of other settings do not compare
        return _entries_by_file(section, self.section)

    def _write(self, present: Mapping[str, Sequence[Item]]) -> None:
        """Write the present items to the baseline. Files that were not examined keep their entries as long as they
        exist, and reasons stay."""
        entries = {
            name: items
            for name, items in self._matching_entries().items()
            if name not in present and (Path(self.path).parent / name).exists()
        }
        expected = self._explained_entries()
        for name, items in present.items():
            entries[name] = [_updated_entry(entry, expected.get((name, entry.what))) for entry in items]
        files = {
            name: [self._entry_json(entry) for entry in entries[name]] for name in sorted(entries) if entries[name]
        }
        content = {"schema_version": SCHEMA_VERSION, **self.content}
        content[self.section] = {"settings": dict(self.settings), "files": files}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_file(self.path, lambda stream: stream.write(text.encode("utf-8", "surrogateescape")))

    def _entry_json(self, entry: BaselineEntry) -> dict[str, Any]:
        """Return an entry as the file stores it."""
        content: dict[str, Any] = {"what": entry.what}
        if entry.level is not None:
            content[MEASURES[self.section].name] = float(f"{entry.level:.9g}")
        if entry.reason:
            content["reason"] = entry.reason
        return content

    def _explained_entries(self) -> dict[tuple[str, str], BaselineEntry]:
        """Return the entries for which a user has given a reason, by file and words, even if they were made with other
        settings."""
        section = self.content.get(self.section)
        entries: dict[tuple[str, str], BaselineEntry] = {}
        if section is not None:
            for file, items in _entries_by_file(section, self.section).items():
                entries.update(((file, entry.what), entry) for entry in items if entry.reason)
        return entries

    def _name_in_baseline(self, path: str) -> str:
        """Return a file's name as the baseline has it: relative to the baseline's folder, with slashes."""
        if path == "-":
            return path
        return Path(os.path.relpath(path, Path(self.path).parent)).as_posix()


def read_baseline(
    path: str, section: Section, settings: Mapping[str, Any], *, update: bool = False, measure: Measure | None = None
) -> Baseline:
    """Read a section of a baseline file, which need not exist yet if it is to be updated.

    Raises HostError for a file that is no baseline, too large or of another schema version; unless `update`, also for
    one that is missing, lacks the section or was made with other settings. Raises OSError for a file that cannot be
    read."""
    settings = json.loads(json.dumps(settings))  # as it is read back
    try:
        data = read_whole(path)
    except FileNotFoundError:
        if not update:
            raise HostError(f"{path}: there is no such baseline; --update-baseline makes it") from None
        return Baseline(path=path, section=section, settings=settings, content={}, update=update, measure=measure)
    content = _parse(path, data)
    stored = content.get(section)
    if stored is not None and not update and not _same_settings(stored["settings"], settings):
        other = ", ".join(
            f"{key} {_setting_text(stored['settings'].get(key))}, now {_setting_text(settings.get(key))}"
            for key in sorted({*stored["settings"], *settings})
            if stored["settings"].get(key) != settings.get(key)
        )
        raise HostError(f"{path}: made with other settings ({other}); --update-baseline makes it again")
    if stored is None and not update:
        raise HostError(f"{path}: it has nothing of `{section}` yet; --update-baseline adds it")
    return Baseline(path=path, section=section, settings=settings, content=content, update=update, measure=measure)


def _updated_entry(present: Item, expected: BaselineEntry | None) -> BaselineEntry:
    """Return the new baseline entry for a present item. If the baseline had it (`expected`), it keeps its reason, and
    has no level if it had none."""
    if expected is None:
        return BaselineEntry(present.what, present.level)
    level = present.level
    if expected.level is None:
        level = None
    return BaselineEntry(present.what, level, expected.reason)


def _same_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two runs had the same settings; a missing setting equals null."""
    return all(before.get(key) == after.get(key) for key in {*before, *after})


def _setting_text(value: object) -> str:
    """Return a setting's value as JSON for a message, "not given" for an empty one."""
    if value is None or value == [] or value == {}:
        return "not given"
    return json.dumps(value)


def _entries_by_file(section: Mapping[str, Any], name: Section) -> dict[str, list[BaselineEntry]]:
    """Return the entries of a section by file."""
    level = MEASURES[name].name
    return {
        file: [BaselineEntry(entry["what"], entry.get(level), entry.get("reason", "")) for entry in items]
        for file, items in section["files"].items()
    }


# ---------------------------------------------------------------------------------------------------------- validation
def _parse(path: str, data: bytes) -> dict[str, Any]:
    """Return the content of a baseline file. Raises HostError that names the place of an error."""
    try:
        content = parse(data)
    except ValueError as error:
        fix = "take an older copy of it, or remove it and make it again with --update-baseline"
        raise HostError(f"{path}: not a baseline: {error}: {fix}") from None
    root = _require_object(path, content, ("schema_version", *MEASURES), needed=("schema_version",))
    if root["schema_version"] != SCHEMA_VERSION:
        raise HostError(f"{path}: schema version {root['schema_version']!r}, this version reads {SCHEMA_VERSION}")
    for name, measure in MEASURES.items():
        if name not in root:
            continue
        section = _require_object(f"{path}: {name}", root[name], ("settings", "files"), needed=("settings", "files"))
        _require_object(f"{path}: {name}: settings", section["settings"])
        for file, items in _require_object(f"{path}: {name}: files", section["files"]).items():
            if not isinstance(items, list):
                raise HostError(f"{path}: {name}: files: {file}: not a list")
            earlier: set[str] = set()
            for number, entry in enumerate(cast(list[Any], items), 1):
                place = f"{path}: {name}: files: {file}: item {number}"
                _require_item(place, entry, measure.name)
                if entry["what"] in earlier:  # of two levels, the higher one would hide what is worse
                    raise HostError(f"{place}: {entry['what']} is there already: remove one, as after a merge")
                earlier.add(entry["what"])
    return root


def _require_item(place: str, entry: Any, level: str) -> None:
    """Raise HostError unless an entry of a baseline file is well formed: words, and a number as its level under the key
    `level`. `place` names the entry in the error."""
    fields = _require_object(place, entry, ("what", level, "reason"), needed=("what",))
    for key in ("what", "reason"):
        if key in fields and (not isinstance(fields[key], str) or not fields[key].strip()):
            raise HostError(f"{place}: {key}: must be words")
    value = fields.get(level, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise HostError(f"{place}: {level}: must be a number")


def _require_object(place: str, value: Any, keys: Sequence[str] = (), needed: Sequence[str] = ()) -> dict[str, Any]:
    """Return `value`, which must be a JSON object with the `needed` keys and no others than `keys` (none: any). Raises
    HostError, which names `place`, for anything else."""
    if not isinstance(value, dict):
        raise HostError(f"{place}: not a JSON object")
    content = cast(dict[str, Any], value)
    for key in content:
        if keys and key not in keys:
            hint = near(key, keys)
            if hint:
                hint = f" ({hint})"
            raise HostError(f"{place}: unknown key {key!r}{hint}; keys: {', '.join(keys)}")
    for key in needed:
        if key not in content:
            raise HostError(f"{place}: the key {key!r} is missing")
    return content


def finding_key(diagnostic: "Diagnostic") -> str:
    """Return the words that identify a finding: severity, rule and message, without the line, which moves."""
    return f"{diagnostic.severity} {diagnostic.rule}: {diagnostic.message}"


def check_items(diagnostics: "Sequence[Diagnostic]") -> list[Item]:
    """Return the errors and warnings of a file as items of the section `check`, equal ones counted."""
    counts = Counter(finding_key(diagnostic) for diagnostic in diagnostics if diagnostic.severity != "note")
    return [Item(words, float(count)) for words, count in counts.items()]


def test_items(case: "CaseResult") -> list[Item]:
    """Return the items of section `test` of a netlist: its outputs and performance figures that failed, or its status
    if it failed without any; none if it passed or was skipped."""
    if case.status in ("passed", "skipped"):
        return []
    items: list[Item] = []
    for failure in case.failed_outputs:
        agreement = failure.figures.pcc
        if agreement is None:
            agreement = failure.figures.match
        items.append(Item(f"output {failure.queue}", 1 - agreement))
    for failure in case.performance:
        if not failure.passed:
            items.append(Item(_check_name(failure.config, failure.graph, failure.target, failure.metric)))
    return items or [Item(case.status)]


def perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> list[Item]:
    """Return the items of the section `perf`: the cycles per input of every epoch, as figures, and the missed figures
    of performance-check, as faults."""
    return list(_perf_items(run, checks))


def _perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> Iterator[Item]:
    """Yield the pace of every epoch as a figure, and each missed figure of performance-check as a fault."""
    for epoch in run.epochs:
        yield Item(f"{epoch.program}: {' + '.join(epoch.graphs)}", epoch.pace, fails=False)
    for check in checks:
        if not check.passed:
            yield Item(_check_name(check.config, check.graph, check.target, check.bound.metric))


def _check_name(config: str, graph: str, target: str, metric: str) -> str:
    """Return the words that name an entry of performance-check: its configuration, graph, target and metric."""
    return "performance-check " + " ".join(filter(None, (config, graph, target, metric)))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a baseline file with optional sections `check`, `test` and `perf`."""
    sections = {name: _section_schema(measure.name) for name, measure in MEASURES.items()}
    form = versioned_schema("A baseline of buda-emu check, test and perf", sections, {}, SCHEMA_VERSION)
    return {**form, "required": ["schema_version"], "additionalProperties": False}


def _section_schema(level: str) -> dict[str, Any]:
    """Return the schema of a section, whose items have a level of this name."""
    words = {"type": "string", "pattern": r"\S"}
    entry = {
        "type": "object",
        "properties": {"what": words, level: {"type": "number"}, "reason": words},
        "required": ["what"],
        "additionalProperties": False,
    }
    files = {"type": "object", "additionalProperties": {"type": "array", "items": entry}}
    return {
        "type": "object",
        "properties": {"settings": {"type": "object"}, "files": files},
        "required": ["settings", "files"],
        "additionalProperties": False,
    }
