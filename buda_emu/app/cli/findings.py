"""What verbs report of the checker's findings, and the option `--baseline` of the verbs that have it."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buda_emu.app.cli.config import RULES, refuses, rules_of
from buda_emu.app.cli.output import complain, say
from buda_emu.support.checker.result import Choice
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError

if TYPE_CHECKING:
    from buda_emu.report.baselines import Baseline, BaselineComparison, Measure, Section
    from buda_emu.support.checker import Diagnostic


_MOST = 3  # findings that are said one by one
_chosen = [Choice()]


def choose(choice: Choice) -> None:
    """Which findings the project's settings want to be told."""
    _chosen[0] = choice


def chosen() -> Choice:
    """The same."""
    return _chosen[0]


def add_choice(parser: argparse.ArgumentParser) -> None:
    """--select, --ignore and --error, of verbs that check."""
    for name, meaning in RULES.items():
        of_rules = rules_of(to_ignore=name == "ignore")
        parser.add_argument(f"--{name}", type=of_rules, metavar="RULE,...", help=meaning)


def told(found: "Iterable[Diagnostic]", args: argparse.Namespace) -> "list[Diagnostic]":
    """The findings that are told: as the settings say, where these options do not say otherwise."""
    given = {name: rules for name in RULES if (rules := getattr(args, name)) is not None}
    return replace(chosen(), **given).filter_findings(found, refuses)


def tell_findings(diagnostics: "Sequence[Diagnostic]", file: str) -> None:
    """A line on standard error for each finding; for more than three their number and how to see them."""
    found = chosen().filter_findings(diagnostics, refuses)
    for item in found[: _MOST if len(found) <= _MOST else 0]:
        complain(f"{item.path}:{item.where}: {item.severity}[{item.rule}]: {item.message}")
    if len(found) > _MOST:
        complain(f"buda-emu: {plural(len(found), 'warning')} about {file}: `buda-emu check {file}` shows them")


def open_baseline(
    args: argparse.Namespace, section: "Section", settings: Mapping[str, Any], measure: "Measure | None" = None
) -> "Baseline | None":
    """The baseline that was asked for, None without; read before the work. Raises HostError."""
    if args.baseline is None:
        if args.update_baseline:
            raise HostError("--update-baseline: which one? --baseline FILE names it")
        return None
    from buda_emu.report.baselines import read_baseline

    return read_baseline(args.baseline, section, settings, update=args.update_baseline, measure=measure)


def settle(held: "BaselineComparison", *, updated: bool, tell: Callable[[str], None] = say) -> int:
    """Tell what is new, worse and mended; the exit code."""
    for line in held.lines():
        tell(line)
    return Exit.OK if updated or held.holds else Exit.DIFFERS
