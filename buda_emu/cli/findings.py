"""Prints the checker's findings about a netlist that is good enough to be used, for the verbs that use it."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buda_emu.checker.choice import Choice
from buda_emu.checker.text import plural
from buda_emu.cli.config import RULES, refuses, rules_of
from buda_emu.cli.output import complain

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic

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
    return replace(chosen(), **given).applied(found, refuses)


def tell_findings(diagnostics: "Sequence[Diagnostic]", file: str) -> None:
    """A line on standard error for each finding; for more than three their number and how to see them."""
    found = chosen().applied(diagnostics, refuses)
    for item in found[: _MOST if len(found) <= _MOST else 0]:
        complain(f"{item.path}:{item.where}: {item.severity}[{item.rule}]: {item.message}")
    if len(found) > _MOST:
        complain(f"buda-emu: {plural(len(found), 'warning')} about {file}: `buda-emu check {file}` shows them")
