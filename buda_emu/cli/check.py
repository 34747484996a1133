"""`buda-emu check`: hold netlists against the rules."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buda_emu.cli.output import say
from buda_emu.spec.archs import ARCHS

if TYPE_CHECKING:
    from buda_emu.netlist.diagnostics import Diagnostic

HELP = "Check netlists against the rules and print every finding with its place."
EXAMPLE = "buda-emu check net.yaml --strict"
SCHEMA_VERSION = 1

FileFindings = tuple[str, "Sequence[Diagnostic]"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="netlists")
    parser.add_argument("--strict", action="store_true", help="rules of the device are errors, not warnings")
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text", help="how findings are printed")
    parser.add_argument(
        "--arch", choices=tuple(ARCHS), metavar="ARCH", help="default: wormhole_b0 where listed, else the first"
    )


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when all are accepted, 2 otherwise."""
    from buda_emu.netlist.load import check

    found: list[FileFindings] = [(name, check(Path(name), arch=args.arch, strict=args.strict)) for name in args.file]
    say(_WRITERS[args.format](found))
    return 2 if any(d.severity == "error" for _, diagnostics in found for d in diagnostics) else 0


def _text(found: Sequence[FileFindings]) -> str:
    from buda_emu.netlist.diagnostics import render

    lines = [render(diagnostic) for _, diagnostics in found for diagnostic in diagnostics]
    return "\n".join([*lines, _closing(found)])


def _closing(found: Sequence[FileFindings]) -> str:
    """`2 errors, 1 warning in 3 files; buda-emu explain V013 says more`, or that all is well."""
    findings = [diagnostic for _, diagnostics in found for diagnostic in diagnostics]
    files = f"{len(found)} file{'s' * (len(found) != 1)}"
    if not findings:
        return f"{files}: no findings"
    errors = sum(d.severity == "error" for d in findings)
    warnings = len(findings) - errors
    counts = ", ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n)
    first = next((d for d in findings if d.severity == "error"), findings[0])
    return f"{counts} in {files}; `buda-emu explain {first.rule}` says more"


def _json(found: Sequence[FileFindings]) -> str:
    files = [
        {
            "path": name,
            "accepted": not any(d.severity == "error" for d in diagnostics),
            "findings": [_record(diagnostic) for diagnostic in diagnostics],
        }
        for name, diagnostics in found
    ]
    return json.dumps({"schema_version": SCHEMA_VERSION, "files": files}, indent=1)


def _record(diagnostic: "Diagnostic") -> dict[str, Any]:
    return {
        "rule": diagnostic.rule,
        "severity": diagnostic.severity,
        "path": diagnostic.path,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "end_column": diagnostic.end_column,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def _github(found: Sequence[FileFindings]) -> str:
    """Workflow commands that put findings beside the lines of a pull request; the last line is for people."""
    lines: list[str] = []
    for _, diagnostics in found:
        for d in diagnostics:
            place = f"file={_property(d.path)},line={d.line},col={d.column},title={d.rule}"
            message = f"{d.message} ({d.hint})" if d.hint else d.message
            lines.append(f"::{d.severity} {place}::{_data(message)}")
    return "\n".join([*lines, _closing(found)])


def _data(text: str) -> str:
    """Escaping of a workflow command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaping of a workflow command's property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_WRITERS = {"text": _text, "json": _json, "github": _github}
