"""Findings as text for people, as JSON and as annotations of a code forge (DESIGN: errors)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from buda_emu.netlist.diagnostics import Diagnostic

SCHEMA_VERSION = 1
MAX_SOURCE = 160  # characters of a source line that are shown


def with_source_lines(diagnostics: Iterable[Diagnostic], lines: Sequence[str]) -> list[Diagnostic]:
    """The findings with the text of their line."""
    return [
        replace(item, source_line=lines[item.line - 1]) if 0 < item.line <= len(lines) else item for item in diagnostics
    ]


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """Every finding with its source line and a range of carets, and a last line that counts."""
    return "\n".join([*(render_one(item) for item in diagnostics), summary(diagnostics)])


def render_one(item: Diagnostic) -> str:
    """One finding: `path:line:col: error[V013]: message (hint)`, the source line, carets under the place."""
    hint = f" ({item.hint})" if item.hint else ""
    head = f"{item.path}:{item.line}:{item.column}: {item.severity}[{item.rule}]: {item.message}{hint}"
    return head if not item.source_line.strip() else f"{head}\n{_excerpt(item)}"


def _excerpt(item: Diagnostic) -> str:
    line = item.source_line.rstrip()
    start = min(item.column - 1, len(line))
    end = max(start + 1, min(item.end_column - 1, len(line)))
    # Of a very long line only the surroundings of the place are shown.
    left = 0 if len(line) <= MAX_SOURCE else max(0, min(start - MAX_SOURCE // 3, len(line) - MAX_SOURCE))
    shown = line[left : left + MAX_SOURCE]
    prefix = "..." if left else ""
    suffix = "..." if left + MAX_SOURCE < len(line) else ""
    gutter = f"{item.line:3} | "
    blank = "".join("\t" if character == "\t" else " " for character in line[left:start])
    carets = "^" * (min(end, left + MAX_SOURCE) - start)
    return f"{gutter}{prefix}{shown}{suffix}\n{' ' * (len(gutter) - 2)}| {' ' * len(prefix)}{blank}{carets}"


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`, and what to do next."""
    errors = sum(item.severity == "error" for item in diagnostics)
    warnings = len(diagnostics) - errors
    both = ((errors, "error"), (warnings, "warning"))
    counts = ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in both if count)
    return f"{counts}; `buda-emu explain {diagnostics[0].rule}` tells more" if counts else "no findings"


def as_json(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The findings as plain data, with a version of the form."""
    return {
        "schema_version": SCHEMA_VERSION,
        "errors": sum(item.severity == "error" for item in diagnostics),
        "warnings": sum(item.severity == "warning" for item in diagnostics),
        "diagnostics": [
            {
                "path": item.path,
                "line": item.line,
                "column": item.column,
                "end_column": item.end_column,
                "rule": item.rule,
                "severity": item.severity,
                "message": item.message,
                "hint": item.hint,
            }
            for item in diagnostics
        ],
    }


def as_github(diagnostics: Sequence[Diagnostic]) -> str:
    """One workflow command for each finding: an annotation at the line in GitHub's views."""
    return "\n".join(
        f"::{item.severity} file={_escape(item.path, True)},line={item.line},col={item.column},"
        f"endColumn={max(item.end_column, item.column)},title={item.rule}::"
        f"{_escape(item.message + (f' ({item.hint})' if item.hint else ''), False)}"
        for item in diagnostics
    )


def _escape(text: str, in_property: bool) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text
