"""`buda-emu info`: what any file is."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from buda_emu.app.cli.config import refuses
from buda_emu.app.cli.findings import chosen
from buda_emu.app.cli.output import say, say_json, say_lines, write_picture
from buda_emu.app.documents.kinds import NETLIST, files_below, kind_by_name, kind_of
from buda_emu.netlist.load import holds_sections
from buda_emu.support.checker.diagnostic import SEVERITIES
from buda_emu.support.checker.render import counts
from buda_emu.support.checker.result import Options
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import DocumentError, Exit, HostError


def main(args: argparse.Namespace) -> int:
    """Say it. Exit code 0 when every file is accepted by the rules of its kind, 2 otherwise."""
    names = files_below(args.file)
    if args.timeline is not None and len(names) != 1:
        raise HostError(f"--timeline is of one document, not of {plural(len(names), 'document')}")
    files = [_about(name) for name in names]
    if args.json:
        say_json({"files": files})
    for number, file in enumerate(() if args.json else files):
        if number:
            say()
        say_lines(_lines(file))
    if args.timeline is not None:
        write_picture(args.timeline, kind_of(names[0]).load(names[0]).timeline())
    return Exit.OK if all(file["accepted"] for file in files) else Exit.REFUSED


def _about(name: str) -> dict[str, Any]:
    """Kind and verdict of a file, how many findings of each severity there are, and figures, none where it is refused
    as a whole."""
    kind = kind_of(name)
    result = kind.check(name, Options())
    found = chosen().filter_findings(result.diagnostics, refuses)
    summary: Mapping[str, int | str] = {}
    with suppress(DocumentError):
        summary = kind.load(name).summary()
    numbers = {f"{severity}s": count for severity, count in counts(found).items()}
    accepted = numbers["errors"] == 0
    return {"path": name, "kind": kind.name, "accepted": accepted, **numbers, "summary": dict(summary)}


def _lines(file: dict[str, Any]) -> Iterator[str]:
    kind = kind_by_name(file["kind"])
    found = [plural(file[f"{word}s"], word) for word in SEVERITIES if file[f"{word}s"]]
    verdict = "accepted" if file["accepted"] else "refused"
    hint = f"; `buda-emu check {file['path']}` shows them" if found else ""
    unknown = kind is NETLIST and not file["accepted"] and not holds_sections(file["path"])
    words = f"of no kind that is known here; read as a {kind.words}" if unknown else kind.words
    yield f"{file['path']}: {words}, {', '.join([verdict, *found])}{hint}"
    width = max(map(len, file["summary"]), default=0)
    for name, value in file["summary"].items():
        yield f"  {name:{width}}  {f'{value:,}' if isinstance(value, int) else short_line(value)}".rstrip()
