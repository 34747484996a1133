"""`test --coverage`: counts which features of the language the tested netlists exercise."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import complain, say, write_json, write_text
from buda_emu.app.cli.shared_arguments import percentage
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.folder_lock import folder_to_ourselves

if TYPE_CHECKING:
    from buda_emu.testing.coverage.report import Coverage
    from buda_emu.testing.verify.result import CaseResult

_MOST_NAMES = 8  # names of a list that are missing


def add_coverage(parser: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage] - has no other name
    """Add the options --coverage and --coverage-min to a group of a parser."""
    parser.add_argument(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="count which features of language, rules and machine the netlists exercise, add them to the "
        "file, and write a page of the same name (docs/stress/coverage.md)",
    )
    parser.add_argument(
        "--coverage-min", type=percentage, metavar="PERCENT", help="with --coverage: exit code 1 if less is exercised"
    )


def refuse_other_coverage(args: argparse.Namespace) -> None:
    """Check the coverage options before any work. Raises HostError for a --coverage-min on the command line without
    --coverage, and for a --coverage file that exists and is no coverage file."""
    if args.coverage is None and args.coverage_min != args.default_of("coverage_min"):
        raise HostError("--coverage-min has no effect without --coverage FILE")
    if args.coverage is not None:
        _coverage_before(args.coverage)


def _coverage_before(path: Path) -> "Coverage":
    """Read the coverage that a file holds before this run; one of no netlists if there is no such file. Raises
    HostError for a file that is no coverage file."""
    from buda_emu.testing.coverage.report import Coverage, read

    return read(path) if path.exists() else Coverage()


def record_coverage(args: argparse.Namespace, results: "Sequence[CaseResult]") -> bool:
    """Add the features that the results exercise to the --coverage file, write its page and print a table. Return
    whether the coverage reaches --coverage-min; True, without any effect, if --coverage is not given. Raises HostError
    for a file that is not a coverage file."""
    if args.coverage is None:
        return True
    with folder_to_ourselves(args.coverage.parent):  # what another run adds at the same time stays
        coverage, new_features = _add_to_file(args.coverage, results)
    if not args.quiet:
        say()
        rows = [
            (subject, f"{exercised} of {total}", _list_names(missing))
            for subject, exercised, total, missing in coverage.rows()
        ]
        say(table(("exercised", "names", "not exercised"), rows, right=(1,), prose=(2,)))
        say(
            f"\n{args.coverage}: {plural(coverage.netlists, 'netlist')}, {coverage.percent:.1f} % of the language, "
            f"{new_features} new by this run"
        )
    if args.coverage_min is not None and coverage.percent < args.coverage_min:
        complain(f"buda-emu: coverage {coverage.percent:.1f} % is below --coverage-min {args.coverage_min:g}")
        return False
    return True


def _add_to_file(path: Path, results: "Sequence[CaseResult]") -> "tuple[Coverage, int]":
    """Count what the results exercise in a coverage file, and write it and its page. Return the coverage, and how many
    features are new in it."""
    from buda_emu.report.pages.coverage import coverage_page

    coverage = _coverage_before(path)
    new_features = 0
    for case in results:
        if case.exercised:
            new_features += len(coverage.count(case.exercised, _relative_path(case.netlist, path)))
    write_json(path, coverage.as_json())
    write_text(path.with_suffix(".html"), coverage_page(coverage, str(path)))
    return coverage, new_features


def _relative_path(netlist: str, coverage: Path) -> str:
    """Return the path of a netlist from the folder of a coverage file, which the links of its page lead along; "" where
    there is none, as from one drive of Windows to another."""
    try:
        return Path(os.path.relpath(netlist, coverage.parent)).as_posix()
    except ValueError:
        return ""


def _list_names(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    text = ", ".join(names[:_MOST_NAMES])
    hidden = len(names) - _MOST_NAMES
    if hidden > 0:
        return f"{text}, and {hidden} more"
    return text
