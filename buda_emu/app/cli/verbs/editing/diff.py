"""`buda-emu diff`: what differs between two netlists or device images."""

import argparse
import json
from dataclasses import asdict
from typing import Final

from buda_emu.app.api.diff import CycleChange, Difference, FieldChange, diff
from buda_emu.app.cli.output import say
from buda_emu.emulator.image.opened import is_image
from buda_emu.report.terminal.text import relative, table, whole
from buda_emu.support.errors import Exit
from buda_emu.support.version import RESULT_VERSION

_ABOUT: Final = {"placement": "placement", "formats": "formats", "values": "everything else"}


def main(args: argparse.Namespace) -> int:
    """Compare. Exit code 0 where both say the same, 1 where they differ; failures are raised."""
    difference = diff(args.before, args.after, arch=args.arch, cycles=not args.no_cycles)
    if args.json:
        say(json.dumps({"schema_version": RESULT_VERSION, **asdict(difference)}, indent=1))
    else:
        say("\n\n".join(_text(difference)))
    return Exit.OK if difference.same else Exit.DIFFERS


def _text(difference: Difference) -> list[str]:
    if difference.same:
        images = is_image(difference.before) and is_image(difference.after)
        note = "; what their tensors hold was not compared" if images else ""
        return [f"{difference.before} and {difference.after} say the same{note}"]
    parts: list[str] = []
    for title, names in (
        (f"only in {difference.before}", difference.gone),
        (f"only in {difference.after}", difference.new),
    ):
        if names:
            parts.append("\n".join([f"{title}:", *(f"  {kind} {name}" for kind, name in names)]))
    for about, title in _ABOUT.items():
        rows = [change for change in difference.changes if change.about == about]
        if rows:
            parts.append(f"{title}:\n{_changes(rows)}")
    for name, lines in difference.programs.items():
        parts.append("\n".join([f"program {name}:", *(f"  {line}" for line in lines)]))
    if difference.cycles:
        parts.append(_cycles(difference.cycles))
    return parts


def _changes(rows: list[FieldChange]) -> str:
    headers = ("what", "name", "field", "before", "after")
    cells = ((row.kind, row.name, row.field, row.before, row.after) for row in rows)
    return table(headers, cells, prose=(3, 4))


def _cycles(rows: tuple[CycleChange, ...]) -> str:
    if rows[0].reason:
        return f"cycles cannot be modelled: {rows[0].reason}"
    headers = ("program", "cycles before", "after", "%")
    pairs = [(row.before, row.after) for row in rows]
    changes = [relative(before, after) if before and after is not None else "-" for before, after in pairs]
    cells = [(row.name, whole(row.before), whole(row.after), change) for row, change in zip(rows, changes, strict=True)]
    return table(headers, cells, (1, 2, 3))
