"""Findings of the checker as verbs report them, and the option `--baseline` of the verbs that have it."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buda_emu.app.cli.config import RULE_OPTIONS, refuses, rule_list_type
from buda_emu.app.cli.output import complain, require_writable, say
from buda_emu.support.checker.result import Choice
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError

if TYPE_CHECKING:
    from buda_emu.report.baselines import Baseline, BaselineComparison, Measure, Section
    from buda_emu.support.checker import Diagnostic


_MOST_LINES = 3  # findings that are said one by one
_choice = [Choice()]


def set_choice(choice: Choice) -> None:
    """Set which findings are reported, as the project's settings state."""
    _choice[0] = choice


def current_choice() -> Choice:
    """Return which findings are reported, as the project's settings state."""
    return _choice[0]


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """Add --select, --ignore and --error, which verbs that check documents take."""
    for name, meaning in RULE_OPTIONS.items():
        rule_list = rule_list_type(to_ignore=name == "ignore")
        parser.add_argument(f"--{name}", type=rule_list, metavar="RULE,...", help=meaning)


def select_findings(findings: "Iterable[Diagnostic]", args: argparse.Namespace) -> "list[Diagnostic]":
    """Return the findings to report, with the severities that --error gives them: the project's settings choose, unless
    options of the command line override these."""
    overrides = {name: rules for name in RULE_OPTIONS if (rules := getattr(args, name)) is not None}
    return replace(current_choice(), **overrides).filter_findings(findings, refuses)


def print_findings(diagnostics: "Sequence[Diagnostic]", file: str) -> None:
    """Print a line to standard error for each finding about `file` that the settings choose; for more than three only
    their number, and how to see them."""
    findings = current_choice().filter_findings(diagnostics, refuses)
    if len(findings) > _MOST_LINES:
        complain(f"buda-emu: {plural(len(findings), 'warning')} about {file}: `buda-emu check {file}` shows them")
        return
    for finding in findings:
        complain(f"{finding.path}:{finding.where}: {finding.severity}[{finding.rule}]: {finding.message}")


def complain_of_left_out(path: str) -> None:
    """Print to standard error that a file of a folder is left out although it may be what is left of a netlist, so that
    a truncated file does not pass unseen."""
    complain(f"buda-emu: {path} is left out: it is empty, or has a single section of a netlist")


def open_baseline(
    args: argparse.Namespace, section: "Section", settings: Mapping[str, Any], measure: "Measure | None" = None
) -> "Baseline | None":
    """Read the baseline that --baseline names, before the work begins; None without one. Raises HostError, and OSError
    for one that is to be updated and cannot be."""
    if args.baseline is None:
        if args.update_baseline:
            raise HostError("--update-baseline: which one? --baseline FILE names it")
        return None
    from buda_emu.report.baselines import read_baseline

    if args.update_baseline:
        require_writable("--baseline", args.baseline)
    return read_baseline(args.baseline, section, settings, update=args.update_baseline, measure=measure)


def report_comparison(
    comparison: "BaselineComparison", *, updated: bool, print_line: Callable[[str], None] = say
) -> int:
    """Print what is new, worse and mended against a baseline, with `updated` in the words for one that was just
    written, and return the exit code."""
    for line in comparison.lines(updated=updated):
        print_line(line)
    return Exit.OK if updated or comparison.holds else Exit.DIFFERS
