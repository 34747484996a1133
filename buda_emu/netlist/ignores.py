"""Comments in a netlist that silence findings: `# buda: ignore[V154]` (docs/netlists/ci.md).

A comment after something speaks of its line, alone on a line of the next one that is not a comment, and as
`# buda: ignore-file[...]` of the whole document. What refuses a netlist cannot be ignored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buda_emu.netlist.rules import RULES
from buda_emu.support.checker import Checker, Diagnostic, Finding, TextPlace
from buda_emu.support.checker.checks import MAX_FINDINGS, TOO_MANY
from buda_emu.support.checker.suggest import near

USELESS = "V210"
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[ \t]*buda: ignore(-file)?\b[ \t]*(?:\[([^\]\n]*)\])?")


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One rule of one comment. `line`: that it speaks of, 0 for all."""

    rule: str
    line: int
    place: TextPlace


def without_ignored(found: Sequence[Diagnostic], lines: Sequence[str], path: str) -> list[Diagnostic]:
    """The findings that no comment silences, and one for each comment that silences nothing.

    Of a netlist with errors not all rules were looked at: there only comments that never can be of use are told.
    """
    comments = list(_comments(lines))
    covered = {(each.rule, each.line) for each in comments}
    left = [item for item in found if _refuses(item.rule) or covered.isdisjoint(_reached(item))]
    of_use = {place for item in found for place in _reached(item)}
    complete = not any(_refuses(item.rule) for item in found)
    checker = Checker(path)
    for each in comments:
        if not (_can_be_ignored(each.rule) and (each.rule, each.line) in of_use):
            message, hint = _useless(each, complete)
            if message and len(checker.diagnostics) == MAX_FINDINGS:
                checker.report(RULES[USELESS], Finding(each.place, TOO_MANY.format(MAX_FINDINGS)))
                break
            if message:
                checker.report(RULES[USELESS], Finding(each.place, message, hint))
    return [*left, *checker.diagnostics]


def _reached(item: Diagnostic) -> tuple[tuple[str, int], tuple[str, int]]:
    """Rule and line of the comments that silence a finding."""
    return (item.rule, item.line), (item.rule, 0)


def _useless(each: _Ignore, complete: bool) -> tuple[str, str]:
    if not each.rule:
        return "the comment names no rule", "write # buda: ignore[V154]"
    if each.rule not in RULES:
        return f"the comment ignores {each.rule!r}, which is not a rule", near(each.rule, RULES)
    if not _can_be_ignored(each.rule):
        return f"the comment ignores {each.rule}, which cannot be ignored", "it refuses the netlist: fix it"
    where = "in the document" if each.line == 0 else f"on line {each.line}"
    return (f"the comment ignores {each.rule}, which is not found {where}" if complete else ""), "remove it"


def _refuses(rule: str) -> bool:
    """Whether a finding is an error even where nobody is strict."""
    return RULES[rule].at() == "error"


def _can_be_ignored(rule: str) -> bool:
    return rule in RULES and rule != USELESS and not _refuses(rule)


def _comments(lines: Sequence[str]) -> Iterator[_Ignore]:
    following: Sequence[int] = ()
    for number, text in enumerate(lines, 1):
        found = _COMMENT.search(text)
        if found is None:
            continue
        alone = not text[: found.start()].strip()
        if alone and not following:
            following = _following(lines)
        line = 0 if found[1] else following[number] if alone else number
        place = TextPlace(number, found.start() + 1, found.end() + 1)
        for rule in (found[2] or "").split(","):
            yield _Ignore(rule.strip(), line, place)


def _following(lines: Sequence[str]) -> list[int]:
    """For each line the number of the first one after it that holds something, or of the one after the last."""
    found = [len(lines) + 1] * (len(lines) + 1)
    for index in range(len(lines) - 1, -1, -1):
        text = lines[index].lstrip()
        found[index] = index + 1 if text and not text.startswith("#") else found[index + 1]
    return found
