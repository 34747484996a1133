"""Findings as text, JSON with its schema, annotations and SARIF."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from buda_emu.support.checker.diagnostic import SEVERITIES, Diagnostic, Severity
from buda_emu.support.checker.fix import Fix
from buda_emu.support.checker.rule import Rule
from buda_emu.support.checker.text import one_line, plural
from buda_emu.support.screen import Screen, Style, plain
from buda_emu.support.version import RESULT_VERSION

MAX_SOURCE = 160  # characters of a source line that are shown
_CUT = "..."
_PLAIN = Screen()
_COLOURS: Mapping[Severity, Style] = {"error": "red", "warning": "yellow", "note": "cyan"}
EDIT = ("line", "column", "end_line", "end_column", "text")
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def with_source_lines(diagnostics: Iterable[Diagnostic], lines: Sequence[str]) -> list[Diagnostic]:
    """The findings with the text of their line."""
    return [
        replace(item, source_line=lines[item.line - 1]) if 0 < item.line <= len(lines) else item for item in diagnostics
    ]


def render(diagnostics: Sequence[Diagnostic], screen: Screen = _PLAIN) -> str:
    """Every finding with its source line and a range of carets, and a last line that counts."""
    return "\n".join([*(render_one(item, screen) for item in diagnostics), summary(diagnostics)])


def render_one(item: Diagnostic, screen: Screen = _PLAIN) -> str:
    """One finding: `path:line:col: error[V013]: message (hint)`, the source line, carets under the place.

    A JSON pointer or a byte offset takes the place of line and column.
    """
    place = screen.paint(":".join(filter(None, (item.path, item.where))), "bold")
    severity = screen.paint(item.severity, "bold", _COLOURS[item.severity])
    head = f"{place}: {severity}[{screen.paint(item.rule, 'bold')}]: {one_line(_message_with_hint(item))}"
    line = item.source_line
    return head if not line or line.isspace() else f"{head}\n{_excerpt(item, screen)}"


def _message_with_hint(item: Diagnostic) -> str:
    return f"{item.message} ({item.hint})" if item.hint else item.message


def _excerpt(item: Diagnostic, screen: Screen) -> str:
    line = item.source_line.rstrip()
    gutter = f"{item.line:3} | "
    most = MAX_SOURCE
    if screen.columns is not None:
        line = line.replace("\t", " ")  # nobody knows how wide the terminal draws one
        room = screen.columns - len(gutter)
        most = MAX_SOURCE if len(line) <= room else min(MAX_SOURCE, room - 2 * len(_CUT))
    start = min(item.column - 1, len(line))
    end = max(start + 1, min(item.end_column - 1, len(line)))
    # Of a very long line only the surroundings of the place are shown.
    left = 0 if len(line) <= most else max(0, min(start - most // 3, len(line) - most))
    shown = line[left : left + most]
    prefix = _CUT if left else ""
    suffix = _CUT if left + most < len(line) else ""
    blank = "".join("\t" if character == "\t" else " " for character in line[left:start])
    carets = screen.paint("^" * (min(end, left + most) - start), "bold", _COLOURS[item.severity])
    margin = f"{' ' * (len(gutter) - 2)}| "
    first = screen.paint(gutter, "blue")
    second = screen.paint(margin, "blue")
    return f"{first}{prefix}{shown}{suffix}\n{second}{' ' * len(prefix)}{blank}{carets}"


def counts(diagnostics: Iterable[Diagnostic]) -> dict[str, int]:
    """How many findings there are of each severity."""
    found = dict.fromkeys(SEVERITIES, 0)
    for item in diagnostics:
        found[item.severity] += 1
    return {str(name): count for name, count in found.items()}


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`, and what to do next."""
    both = ", ".join(plural(count, word) for word, count in counts(diagnostics).items() if count)
    return f"{both}; `buda-emu explain {diagnostics[0].rule}` tells more" if both else "no findings"


def as_json(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The findings as plain data, with a version of the form. Of a place only what is known: a finding below a JSON
    pointer has `pointer` and line 0, one at a byte `offset` and `element`."""
    number = counts(diagnostics)
    return {
        "schema_version": RESULT_VERSION,
        **{f"{name}s": number[name] for name in SEVERITIES},
        "diagnostics": [_plain(item) for item in diagnostics],
    }


def _plain(item: Diagnostic) -> dict[str, Any]:
    content: dict[str, Any] = {
        "path": item.path,
        "line": item.line,
        "column": item.column,
        "end_column": item.end_column,
        "rule": item.rule,
        "severity": item.severity,
        "message": item.message,
        "hint": item.hint,
    }
    if item.pointer:
        content["pointer"] = item.pointer
    if item.offset is not None:
        content["offset"] = item.offset
    if item.element:
        content["element"] = item.element
    if item.fix is not None:
        edits = [{name: getattr(edit, name) for name in EDIT} for edit in item.fix.edits]
        content["fix"] = {"title": item.fix.title, "safe": item.fix.safe, "edits": edits}
    return content


def as_github(diagnostics: Sequence[Diagnostic]) -> str:
    """One workflow command for each finding: an annotation at the line in GitHub's views."""
    return "\n".join(map(_annotation, diagnostics))


def _annotation(item: Diagnostic) -> str:
    place = ""
    said = _message_with_hint(item)
    if item.line:
        place = f"line={item.line},col={item.column},endColumn={max(item.end_column, item.column)},"
    elif item.where:
        said = f"{item.where}: {said}"
    head = f"::{_GITHUB[item.severity]} file={_escape(item.path, True)},{place}title={item.rule}"
    return f"{head}::{_escape(said, False)}"


def _escape(text: str, in_property: bool) -> str:
    text = plain(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def as_sarif(diagnostics: Sequence[Diagnostic], rules: Mapping[str, Rule], version: str) -> dict[str, Any]:
    """The findings as a SARIF 2.1.0 log, which forges and editors read; `rules`: those that were broken, by id."""
    used = sorted({item.rule for item in diagnostics})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "buda-emu",
                        "semanticVersion": version,
                        "rules": [_sarif_rule(rules[name]) for name in used if name in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(item) for item in diagnostics],
            }
        ],
    }


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    content = {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "defaultConfiguration": {"level": rule.severity},
    }
    text = "\n\n".join(filter(None, (rule.explanation, rule.fix)))
    return {**content, "help": {"text": text}} if text else content


def _sarif_result(item: Diagnostic) -> dict[str, Any]:
    from urllib.parse import quote

    # By its bytes: a name that is no UTF-8 has an address, too.
    where: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(item.path))}}
    if item.line:
        region: dict[str, Any] = {"startLine": item.line, "startColumn": max(item.column, 1)}
        if item.end_column > item.column:
            region["endColumn"] = item.end_column
        if item.source_line:
            region["snippet"] = {"text": item.source_line}
        where["region"] = region
    elif item.offset is not None and item.offset >= 0:
        where["region"] = {"byteOffset": item.offset}
    location: dict[str, Any] = {"physicalLocation": where}
    named = item.pointer or item.element
    if named:
        location["logicalLocations"] = [{"fullyQualifiedName": named}]
    result = {
        "ruleId": item.rule,
        "level": item.severity,
        "message": {"text": _message_with_hint(item)},
        "locations": [location],
    }
    return result | ({"fixes": [_sarif_fix(item.fix, where["artifactLocation"])]} if item.fix is not None else {})


def _sarif_fix(fix: Fix, file: Mapping[str, Any]) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": edit.line,
                "startColumn": edit.column,
                "endLine": edit.end_line,
                "endColumn": edit.end_column,
            },
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    return {
        "description": {"text": fix.title},
        "artifactChanges": [{"artifactLocation": file, "replacements": replacements}],
    }


_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_NEEDED = {
    "path": _TEXT, "line": _COUNT, "column": _COUNT, "end_column": _COUNT, "rule": _TEXT,
    "severity": {"enum": list(SEVERITIES)}, "message": _TEXT, "hint": _TEXT,
}  # fmt: skip
_EDIT = {**dict.fromkeys(("line", "column", "end_line", "end_column"), _COUNT), "text": _TEXT}
_FIX = {"title": _TEXT, "safe": {"type": "boolean"}, "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}}}
_OPTIONAL = {"pointer": _TEXT, "offset": {"type": "integer"}, "element": _TEXT, "fix": {"$ref": "#/$defs/fix"}}


def findings_schema(verb: str = "check", **asked: Any) -> dict[str, Any]:
    """Of one object for all documents that a verb checked; `files` is of the command, as is what it was `asked`."""
    counts = {f"{name}s": _COUNT for name in SEVERITIES}
    file = {"path": _TEXT, "kind": _TEXT, "accepted": {"type": "boolean"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Findings of buda-emu {verb}",
        "type": "object",
        "properties": {
            "schema_version": {"const": RESULT_VERSION},
            **counts,
            "diagnostics": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
            **asked,
            "files": {
                "type": "array",
                "items": {"type": "object", "properties": {**file, "verdict": _TEXT}, "required": list(file)},
            },
        },
        "required": ["schema_version", *counts, "diagnostics", *asked],
        "$defs": {
            "finding": {"type": "object", "properties": {**_NEEDED, **_OPTIONAL}, "required": list(_NEEDED)},
            "fix": {"type": "object", "properties": _FIX, "required": list(_FIX)},
            "edit": {"type": "object", "properties": _EDIT, "required": list(_EDIT)},
        },
    }
