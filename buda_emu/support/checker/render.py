"""The output formats of findings: text, JSON with its schema, GitHub annotations and SARIF."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from buda_emu.support.checker.checks import Rule
from buda_emu.support.checker.diagnostic import SEVERITIES, Diagnostic, Severity
from buda_emu.support.checker.fix import Fix
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
    """Return the findings with the text of their line in `source_line`, where the line exists."""
    complete: list[Diagnostic] = []
    for diagnostic in diagnostics:
        if 0 < diagnostic.line <= len(lines):
            complete.append(replace(diagnostic, source_line=lines[diagnostic.line - 1]))
        else:
            complete.append(diagnostic)
    return complete


def render(diagnostics: Sequence[Diagnostic], screen: Screen = _PLAIN) -> str:
    """Return every finding with its source line and a range of carets, and a last line with counts."""
    return "\n".join([*(render_one(diagnostic, screen) for diagnostic in diagnostics), summary(diagnostics)])


def concise(diagnostic: Diagnostic) -> str:
    """Return a finding as one line, for other programs and long lists: `path:line:col: error[V013] message (hint)`."""
    place = ":".join(filter(None, (diagnostic.path, diagnostic.where)))
    return f"{place}: {diagnostic.severity}[{diagnostic.rule}] {one_line(_message_with_hint(diagnostic))}"


def render_one(diagnostic: Diagnostic, screen: Screen = _PLAIN) -> str:
    """Return a finding as text: `path:line:col: error[V013]: message (hint)`, the source line, carets under the place.

    A JSON pointer or a byte offset takes the place of line and column.
    """
    place = screen.paint(":".join(filter(None, (diagnostic.path, diagnostic.where))), "bold")
    severity = screen.paint(diagnostic.severity, "bold", _COLOURS[diagnostic.severity])
    head = f"{place}: {severity}[{screen.paint(diagnostic.rule, 'bold')}]: {one_line(_message_with_hint(diagnostic))}"
    line = diagnostic.source_line
    if not line or line.isspace():
        return head
    return f"{head}\n{_excerpt(diagnostic, screen)}"


def _message_with_hint(diagnostic: Diagnostic) -> str:
    """Return the message of a finding with its hint in parentheses, if it has one."""
    if not diagnostic.hint:
        return diagnostic.message
    return f"{diagnostic.message} ({diagnostic.hint})"


def _excerpt(diagnostic: Diagnostic, screen: Screen) -> str:
    """Return the source line of a finding, cut to the width of the screen, and a line with carets under its place."""
    line = diagnostic.source_line.rstrip()
    gutter = f"{diagnostic.line:3} | "
    width = MAX_SOURCE
    if screen.columns is not None:
        line = line.replace("\t", " ")  # nobody knows how wide the terminal draws one
        room = screen.columns - len(gutter)
        if len(line) > room:
            width = min(MAX_SOURCE, room - 2 * len(_CUT))
    start = min(diagnostic.column - 1, len(line))
    end = max(start + 1, min(diagnostic.end_column - 1, len(line)))
    # Of a very long line only the surroundings of the place are shown.
    left = 0
    if len(line) > width:
        left = max(0, min(start - width // 3, len(line) - width))
    excerpt = line[left : left + width]
    prefix = _CUT if left else ""
    suffix = _CUT if left + width < len(line) else ""
    blank = re.sub(r"[^\t]", " ", line[left:start])
    carets = screen.paint("^" * (min(end, left + width) - start), "bold", _COLOURS[diagnostic.severity])
    margin = f"{' ' * (len(gutter) - 2)}| "
    first = screen.paint(gutter, "blue")
    second = screen.paint(margin, "blue")
    return f"{first}{prefix}{excerpt}{suffix}\n{second}{' ' * len(prefix)}{blank}{carets}"


def counts(diagnostics: Iterable[Diagnostic]) -> dict[str, int]:
    """Count the findings of each severity."""
    totals = dict.fromkeys(SEVERITIES, 0)
    for diagnostic in diagnostics:
        totals[diagnostic.severity] += 1
    return {str(name): count for name, count in totals.items()}


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Return a line such as `2 errors, 1 warning`, with the command that explains the first rule, that of
    an error before those of warnings."""
    totals = ", ".join(plural(count, word) for word, count in counts(diagnostics).items() if count)
    if not totals:
        return "no findings"
    first = min(diagnostics, key=lambda diagnostic: SEVERITIES.index(diagnostic.severity))
    return f"{totals}; `buda-emu explain {first.rule}` tells more"


def as_json(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the findings as plain data with a schema version. A place has the fields that apply: a finding at a JSON
    pointer has `pointer` and line 0, one in a binary file has `offset` and `element`."""
    number = counts(diagnostics)
    return {
        "schema_version": RESULT_VERSION,
        **{f"{name}s": number[name] for name in SEVERITIES},
        "diagnostics": [_plain_finding(diagnostic) for diagnostic in diagnostics],
    }


def _plain_finding(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a finding as a dict for JSON, without the fields that only findings in other kinds of files have (pointer,
    offset, element)."""
    content: dict[str, Any] = {
        "path": diagnostic.path,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_column": diagnostic.end_column,
        "rule": diagnostic.rule,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }
    if diagnostic.pointer:
        content["pointer"] = diagnostic.pointer
    if diagnostic.offset is not None:
        content["offset"] = diagnostic.offset
    if diagnostic.element:
        content["element"] = diagnostic.element
    if diagnostic.fix is not None:
        edits = [{name: getattr(edit, name) for name in EDIT} for edit in diagnostic.fix.edits]
        content["fix"] = {"title": diagnostic.fix.title, "safe": diagnostic.fix.safe, "edits": edits}
    return content


def as_github(diagnostics: Sequence[Diagnostic]) -> str:
    """Return one workflow command for each finding, which GitHub shows as an annotation at the line."""
    return "\n".join(map(_annotation, diagnostics))


def _annotation(diagnostic: Diagnostic) -> str:
    """Return the workflow command of one finding."""
    place = ""
    message = _message_with_hint(diagnostic)
    if diagnostic.line:
        place = (
            f"line={diagnostic.line},col={diagnostic.column},endColumn={max(diagnostic.end_column, diagnostic.column)},"
        )
    elif diagnostic.where:
        message = f"{diagnostic.where}: {message}"
    head = f"::{_GITHUB[diagnostic.severity]} file={_escape(diagnostic.path, True)},{place}title={diagnostic.rule}"
    return f"{head}::{_escape(message, False)}"


def _escape(text: str, in_property: bool) -> str:
    """Escape what ends a message of a workflow command, or `in_property` a property of it, and control characters."""
    text = plain(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    if in_property:
        return text.replace(":", "%3A").replace(",", "%2C")
    return text


def as_sarif(diagnostics: Sequence[Diagnostic], rules: Mapping[str, Rule], version: str) -> dict[str, Any]:
    """Return the findings as a SARIF 2.1.0 log, which forges and editors read. `rules` holds the broken rules by id."""
    used = sorted({diagnostic.rule for diagnostic in diagnostics})
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
                "results": [_sarif_result(diagnostic) for diagnostic in diagnostics],
            }
        ],
    }


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    """Return the SARIF object of a rule, with its explanation as help."""
    content = {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "defaultConfiguration": {"level": rule.severity},
    }
    text = "\n\n".join(filter(None, (rule.explanation, rule.fix)))
    if not text:
        return content
    return {**content, "help": {"text": text}}


def _sarif_result(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the SARIF object of a finding: its rule, message and place, and its fix if it has one."""
    from urllib.parse import quote

    # By its bytes: a name that is no UTF-8 has an address, too.
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(diagnostic.path))}}
    if diagnostic.line:
        region: dict[str, Any] = {"startLine": diagnostic.line, "startColumn": max(diagnostic.column, 1)}
        if diagnostic.end_column > diagnostic.column:
            region["endColumn"] = diagnostic.end_column
        if diagnostic.source_line:
            region["snippet"] = {"text": diagnostic.source_line}
        physical["region"] = region
    elif diagnostic.offset is not None and diagnostic.offset >= 0:
        physical["region"] = {"byteOffset": diagnostic.offset}
    location: dict[str, Any] = {"physicalLocation": physical}
    name = diagnostic.pointer or diagnostic.element
    if name:
        location["logicalLocations"] = [{"fullyQualifiedName": name}]
    result: dict[str, Any] = {
        "ruleId": diagnostic.rule,
        "level": diagnostic.severity,
        "message": {"text": _message_with_hint(diagnostic)},
        "locations": [location],
    }
    if diagnostic.fix is not None:
        result["fixes"] = [_sarif_fix(diagnostic.fix, physical["artifactLocation"])]
    return result


def _sarif_fix(fix: Fix, file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SARIF object of a fix; `file` is the object that names the file."""
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


def findings_schema(verb: str = "check", **fields: Any) -> dict[str, Any]:
    """Return the JSON schema of the findings of all documents that a verb of the command checked. `fields`: schemas of
    further fields that the command adds, such as its arguments."""
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
            **fields,
            "files": {
                "type": "array",
                "items": {"type": "object", "properties": {**file, "verdict": _TEXT}, "required": list(file)},
            },
        },
        "required": ["schema_version", *counts, "diagnostics", *fields],
        "$defs": {
            "finding": {"type": "object", "properties": {**_NEEDED, **_OPTIONAL}, "required": list(_NEEDED)},
            "fix": {"type": "object", "properties": _FIX, "required": list(_FIX)},
            "edit": {"type": "object", "properties": _EDIT, "required": list(_EDIT)},
        },
    }
