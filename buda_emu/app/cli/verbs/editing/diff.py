"""`buda-emu diff`: the differences of two netlists or device images."""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from buda_emu.app.api.diff import CycleChange, Difference, FieldChange, diff, structure_of
from buda_emu.app.cli.output import complain, say, write_json, write_text
from buda_emu.emulator.image.opened import is_image, netlist_of
from buda_emu.report.perf_against import NO_COMPARISON, against
from buda_emu.report.terminal.text import relative, table, whole
from buda_emu.support.errors import Exit
from buda_emu.support.lazy import lazy
from buda_emu.support.output_places import make_folder
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.app.api import perf as timing
    from buda_emu.report.pages import comparison as pages
else:  # only a report needs them
    timing = lazy("buda_emu.app.api.perf")
    pages = lazy("buda_emu.report.pages.comparison")

_ABOUT: Final = {"placement": "placement", "formats": "formats", "values": "everything else"}


def main(args: argparse.Namespace) -> int:
    """Compare two documents. Exit code 0 if they say the same, 1 if they differ; failures are raised."""
    difference = diff(args.before, args.after, arch=args.arch, cycles=not args.no_cycles)
    if args.report is not None:
        _write_report(args, difference)
    if args.json:
        say(json.dumps({"schema_version": RESULT_VERSION, **asdict(difference)}, indent=1))
    else:
        say("\n\n".join(_paragraphs(difference)))
    return Exit.OK if difference.same else Exit.DIFFERS


def _write_report(args: argparse.Namespace, difference: Difference) -> None:
    """Write the page with both core grids and, if both can be modelled, their cycles, and the differences as JSON, into
    the folder of --report."""
    old_side, new_side = (pages.Side(name, netlist_of(name, args.arch)) for name in (args.before, args.after))
    comparison = NO_COMPARISON
    if difference.cycles and not any(change.reason for change in difference.cycles):
        old_run, new_run = (timing.perf(name, arch=args.arch).to_json() for name in (args.before, args.after))
        comparison = against(old_run, new_run)
    page = pages.comparison_page(
        old_side,
        new_side,
        comparison,
        title=f"buda-emu diff: {PurePath(args.before).name} and {PurePath(args.after).name}",
        command=shlex.join(["buda-emu", *sys.argv[1:]]),
        structure=structure_of(difference),
    )
    make_folder(args.report)
    write_text(args.report / "diff.html", page)
    write_json(args.report / "diff.json", {"schema_version": RESULT_VERSION, **asdict(difference)})
    announce = complain if args.json else say  # standard output is the JSON's alone
    announce(f"report: {args.report / 'diff.html'}")


def _paragraphs(difference: Difference) -> list[str]:
    """Return the paragraphs of a comparison: objects that only one document has, changed fields by subject, programs,
    cycles."""
    if difference.same:
        text = f"{difference.before} and {difference.after} say the same"
        if is_image(difference.before) and is_image(difference.after):
            text += "; what their tensors hold was not compared"
        return [text]
    parts = [
        *_name_paragraph(f"only in {difference.before}", difference.gone),
        *_name_paragraph(f"only in {difference.after}", difference.new),
    ]
    for about, title in _ABOUT.items():
        rows = [change for change in difference.changes if change.about == about]
        if rows:
            parts.append(f"{title}:\n{_changes_table(rows)}")
    for name, lines in difference.programs.items():
        parts.append("\n".join([f"program {name}:", *(f"  {line}" for line in lines)]))
    if difference.cycles:
        parts.append(_cycles_paragraph(difference.cycles))
    return parts


def _name_paragraph(title: str, names: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a paragraph with the kinds and names that only one of the documents has; nothing if there are none."""
    lines = [f"  {kind} {name}" for kind, name in names]
    if lines:
        yield "\n".join([f"{title}:", *lines])


def _changes_table(rows: list[FieldChange]) -> str:
    """Return a table of changed fields."""
    headers = ("what", "name", "field", "before", "after")
    cells = ((row.kind, row.name, row.field, row.before, row.after) for row in rows)
    return table(headers, cells, prose=(3, 4))


def _cycles_paragraph(rows: tuple[CycleChange, ...]) -> str:
    """Return a table of the cycles of each program before and after, or a sentence on why they cannot be modelled."""
    if rows[0].reason:
        return f"cycles cannot be modelled: {rows[0].reason}"
    headers = ("program", "cycles before", "after", "%")
    cells: list[tuple[str, ...]] = []
    for row in rows:
        change = "-"
        if row.before is not None and row.after is not None:
            change = relative(row.before, row.after)
        cells.append((row.name, whole(row.before), whole(row.after), change))
    return table(headers, cells, (1, 2, 3))
