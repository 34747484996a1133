"""`test --coverage`: what the netlists that were tested exercise of the language."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from buda_emu.checker.text import plural
from buda_emu.cli.output import complain, say, write_json
from buda_emu.report.terminal.text import table

_SHOWN = 8  # names of a list that are missing


def add_coverage(parser: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage] - has no other name
    """--coverage and --coverage-min."""
    parser.add_argument(
        "--coverage", type=Path, metavar="FILE",
        help="count what the netlists exercise of the language, and add it to what the file has (docs/coverage.md)",
    )  # fmt: skip
    parser.add_argument(
        "--coverage-min", type=float, metavar="PERCENT", help="with --coverage: exit code 1 if less is exercised"
    )


def settle_coverage(args: argparse.Namespace, paths: Sequence[str]) -> bool:
    """Counts, prints and writes; whether it is as much as was asked for. Raises HostError for another kind of file."""
    if args.coverage is None:
        return True
    from buda_emu.coverage.report import Coverage, read
    from buda_emu.image.opened import netlist_of

    found = read(args.coverage) if args.coverage.exists() else Coverage()
    new = [what for path in paths for what in found.add(netlist_of(path, args.arch))]
    write_json(args.coverage, found.as_json())
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
