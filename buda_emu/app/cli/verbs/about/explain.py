"""`buda-emu explain V041` explains a rule of the checker; `buda-emu explain transpose` finds rules by a word."""

import argparse
import re
import textwrap
from itertools import chain
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
_WIDEST = 100  # characters: longer lines of prose are hard to read
_ID = re.compile(r"[A-Za-z]?-?\d{1,4}")  # an id, or a mistyped one, as opposed to a word to look for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the argument of `explain`: rules, a kind of documents, or a word to search for."""
    kinds = ", ".join(kind.name for kind in all_kinds())
    parser.add_argument(
        "rule",
        nargs="*",
        metavar="RULE",
        help=f"rule ids as printed by check; a kind ({kinds}) for all rules of its documents; or any word, for the "
        "rules that speak of it; none: all rules of netlists",
    )


def main(args: argparse.Namespace) -> int:
    """Print the explanation of each rule, the rules of a kind, or those in which a word occurs. Exit code 2 for an id
    that does not exist and for a word that no rule has."""
    code = Exit.OK
    for number, text in enumerate(args.rule or [NETLIST.name]):
        if not _explain(text, "\n" if number else ""):
            complain(f"buda-emu explain: no rule {text}{_hint(text)}; `buda-emu explain` lists all")
            code = Exit.REFUSED
    return code


def _explain(text: str, separator: str) -> bool:
    """Print the rules that a kind, an id or a word stands for, after the text `separator`. Return whether there are
    any; if not, print nothing."""
    kind = next((kind for kind in all_kinds() if kind.name == text), None)
    if kind is not None:
        say(separator, end="")
        _print_rules(kind.rules())
        return True
    rule = _find_rule(text)
    if rule is not None:
        say(separator, end="")
        _print_rule(rule, rule_kind(rule.id).rules())
        return True
    matching = _find_rules_with(text)
    if matching:
        say(separator, end="")
        rows = ((rule.id, rule.summary) for rule in matching)
        say(table(("rule", "says"), rows, prose=(1,), whole=(0,)))
    return bool(matching)


def _find_rule(text: str) -> "Rule | None":
    """Return the rule with this id in any case; a bare number is the id of a netlist rule. None if there is none."""
    kind = rule_kind(text)
    rules = kind.rules().rules
    return rules.get(text) or rules.get(f"{kind.prefix}{text.upper().removeprefix(kind.prefix):0>3}")


def _find_rules_with(word: str) -> "list[Rule]":
    """Return the rules of all kinds in whose text a word or a synonym of it occurs; those with it in the summary come
    first. None for a word that looks like an id."""
    words = {word.lower(), *SYNONYMS.get(word.lower(), ())}
    if _ID.fullmatch(word):
        return []
    pattern = re.compile("|".join(rf"(?<![a-z0-9]){re.escape(synonym)}" for synonym in sorted(words)), re.IGNORECASE)
    rules = list(chain.from_iterable(book.rules.values() for book in books().values()))
    matching = [rule for rule in rules if pattern.search(f"{rule.summary}\n{rule.explanation}\n{rule.fix}")]
    return sorted(matching, key=lambda rule: pattern.search(rule.summary) is None)


def _hint(text: str) -> str:
    """Return, in parentheses, the rule id that was probably meant; "" if none is similar."""
    near = nearest(text.upper(), list(chain.from_iterable(book.rules for book in books().values())))
    return f" (did you mean {near}?)" if near else ""


def _print_rules(book: "RuleBook") -> None:
    """Print a table of the rules of one kind of document."""
    rules = book.rules.values()
    if book.stages:
        headers = ("rule", "stage", f"refuses a {book.kind} when")
        rows = [(rule.id, rule.stage, rule.summary) for rule in rules]
    else:
        headers = ("rule", "severity", "says")
        rows = [(rule.id, rule.severity, rule.summary) for rule in rules]
    say(table(headers, rows, prose=(2,), whole=(0, 1)))


def _print_rule(rule: "Rule", book: "RuleBook") -> None:
    """Print the summary, stage, explanation and fix of a rule."""
    say(f"{rule.id}: {rule.summary}")
    stage = book.explain_stage(rule)
    if stage:
        say(f"  {stage}")
    for paragraph in filter(None, rule.explanation.split("\n\n")):
        say()
        say(_fill_paragraph(paragraph))
    if rule.fix:
        say(_fill_paragraph(f"To do: {rule.fix}."))


def _fill_paragraph(paragraph: str) -> str:
    """Wrap a paragraph to the terminal, at most 100 columns wide."""
    width = min(current().columns or _WIDEST, _WIDEST)
    return textwrap.fill(" ".join(paragraph.split()), width, initial_indent="  ", subsequent_indent="  ")
