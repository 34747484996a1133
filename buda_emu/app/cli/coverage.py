"""`test --coverage`: counts which features of the language the tested netlists exercise."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import complain, say, write_json, write_text
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural

if TYPE_CHECKING:
    from buda_emu.testing.verify.result import CaseResult

_SHOWN = 8  # names of a list that are missing


def add_coverage(parser: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage] - has no other name
    """--coverage and --coverage-min."""
    parser.add_argument(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="count which features of language, rules and machine the netlists exercise, add them to the "
        "file, and write a page of the same name (docs/stress/coverage.md)",
    )
    parser.add_argument(
        "--coverage-min", type=float, metavar="PERCENT", help="with --coverage: exit code 1 if less is exercised"
    )


def settle_coverage(args: argparse.Namespace, results: "Sequence[CaseResult]") -> bool:
    """Counts, prints and writes; whether it is as much as was asked for. Raises HostError for another kind of file."""
    if args.coverage is None:
        return True
    from buda_emu.testing.coverage.report import Coverage, read

    found = read(args.coverage) if args.coverage.exists() else Coverage()
    new = [what for case in results if case.exercised for what in found.count(case.exercised)]
    from buda_emu.report.pages.coverage import coverage_page

    write_json(args.coverage, found.as_json())
    write_text(args.coverage.with_suffix(".html"), coverage_page(found, str(args.coverage)))
    if not args.quiet:
        say()
        rows = [(subject, f"{there} of {all_}", _some(missing)) for subject, there, all_, missing in found.rows()]
        say(table(("exercised", "names", "not exercised"), rows, right=(1,), prose=(2,)))
        say(
            f"\n{args.coverage}: {plural(found.netlists, 'netlist')}, {found.percent:.1f} % of the language, "
            f"{len(new)} new by this run"
        )
    if args.coverage_min is not None and found.percent < args.coverage_min:
        complain(f"buda-emu: coverage {found.percent:.1f} % is below --coverage-min {args.coverage_min:g}")
        return False
    return True


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f", and {more} more" if more > 0 else "")
