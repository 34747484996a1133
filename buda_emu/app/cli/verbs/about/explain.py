"""`buda-emu explain V041`: what a rule of the checker means; `buda-emu explain transpose`: which rules there are."""

import argparse
import re
import textwrap
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import complain, say
from buda_emu.app.documents.kinds import NETLIST, books, rule_kind
from buda_emu.app.documents.kinds import kinds as all_kinds
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.suggest import SYNONYMS, nearest
from buda_emu.support.errors import Exit
from buda_emu.support.screen import current

if TYPE_CHECKING:
    from buda_emu.support.checker import Rule, RuleBook

EXAMPLE = "buda-emu explain V041"
_WIDEST = 100
_ID = re.compile(r"[A-Za-z]?-?\d{1,4}")  # what an id looks like: no word


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = ", ".join(kind.name for kind in all_kinds())
    parser.add_argument(
        "rule",
        nargs="*",
        metavar="RULE",
        help=f"rule ids as printed by check; a kind ({kinds}) for all rules of its documents; or any word, for the "
        "rules that speak of it; none: all rules of netlists",
    )


def main(args: argparse.Namespace) -> int:
    """Print each rule's explanation, all rules of a kind, or those that a word occurs in. Exit code 2 for an id that
    does not exist and a word that no rule has."""
    code = Exit.OK
    for number, text in enumerate(args.rule or [NETLIST.name]):
        kind = next((kind for kind in all_kinds() if kind.name == text), None)
        rule = _find_rule(text) if kind is None else None
        spoken = _find_rules_with(text) if kind is None and rule is None else []
        if kind is None and rule is None and not spoken:
            complain(f"buda-emu explain: no rule {text}{_hint(text)}; `buda-emu explain` lists all")
            code = Exit.REFUSED
            continue
        if number:
            say()
        if spoken:
            say(table(("rule", "says"), ((rule.id, rule.summary) for rule in spoken), prose=(1,), whole=(0,)))
        elif kind is not None:
            _print_rules(kind.rules())
        elif rule is not None:
            _print_rule(rule, rule_kind(rule.id).rules())
    return code


def _find_rule(text: str) -> "Rule | None":
    """The rule of that id, in any case; a bare number is one of the netlists'."""
    kind = rule_kind(text)
    rules = kind.rules().rules
    return rules.get(text) or rules.get(f"{kind.prefix}{text.upper().removeprefix(kind.prefix):0>3}")


def _find_rules_with(word: str) -> "list[Rule]":
    """The rules with this word, or another for the same, in what they say; those with it in their summary first."""
    words = {word.lower(), *SYNONYMS.get(word.lower(), ())}
    if _ID.fullmatch(word):
        return []
    pattern = re.compile("|".join(rf"(?<![a-z0-9]){re.escape(synonym)}" for synonym in sorted(words)), re.IGNORECASE)
    rules = [rule for book in books().values() for rule in book.rules.values()]
    matching = [rule for rule in rules if pattern.search(f"{rule.summary}\n{rule.explanation}\n{rule.fix}")]
    return sorted(matching, key=lambda rule: pattern.search(rule.summary) is None)


def _hint(text: str) -> str:
    near = nearest(text.upper(), [rule for book in books().values() for rule in book.rules])
    return f" (did you mean {near}?)" if near else ""


def _print_rules(book: "RuleBook") -> None:
    rules = book.rules.values()
    if book.stages:
        headers = ("rule", "stage", f"refuses a {book.kind} when")
        rows = [(rule.id, rule.stage, rule.summary) for rule in rules]
    else:
        headers = ("rule", "severity", "says")
        rows = [(rule.id, rule.severity, rule.summary) for rule in rules]
    say(table(headers, rows, prose=(2,), whole=(0, 1)))


def _print_rule(rule: "Rule", book: "RuleBook") -> None:
    say(f"{rule.id}: {rule.summary}")
    if rule.stage in book.stages:
        say(f"  {book.stages[rule.stage]}")
    for paragraph in filter(None, rule.explanation.split("\n\n")):
        say()
        say(_fill_paragraph(paragraph))
    if rule.fix:
        say(_fill_paragraph(f"To do: {rule.fix}."))


def _fill_paragraph(paragraph: str) -> str:
    width = min(current().columns or _WIDEST, _WIDEST)
    return textwrap.fill(" ".join(paragraph.split()), width, initial_indent="  ", subsequent_indent="  ")
