"""The file of a baseline: JSON with a section for each of `check`, `test` and `perf` (docs/netlists/baselines.md).

```json
{"schema_version": 1,
 "test": {"settings": {"precision": "device"},
          "files": {"nets/softmax.yaml": [{"what": "output out", "error": 0.03, "reason": "Bfp2_b on purpose"}]}}}
```

Names of files are relative to the folder of the baseline.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.files import read_whole, write_file
from buda_emu.report.baselines.verdict import MEASURES, Comparison, Item, Known, Measure, Section, compare
from buda_emu.strict_json import parse

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
        return Baseline(path, section, settings, {}, update, measure)
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
    return Baseline(path, section, settings, content, update, measure)


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
