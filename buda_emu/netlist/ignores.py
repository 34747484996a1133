"""Comments in a netlist that silence findings: `# buda: ignore[V154]` (docs/ci.md).

Behind something a comment speaks of its line, alone on a line of the next one that is no comment, and as
`# buda: ignore-file[...]` of the whole document. What refuses a netlist cannot be ignored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buda_emu.checker import Diagnostic, Finding, Judge, TextPlace
from buda_emu.checker.suggest import near
from buda_emu.netlist.rules.registry import RULES

USELESS = "V210"
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[ \t]*buda: ignore(-file)?\b[ \t]*(?:\[([^\]\n]*)\])?")


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One rule of one comment. `line`: that it speaks of, 0 for all."""

    rule: str
    line: int
    place: TextPlace

    def covers(self, item: Diagnostic) -> bool:
        return item.rule == self.rule and self.line in (0, item.line)


def without_ignored(found: Sequence[Diagnostic], lines: Sequence[str], path: str) -> list[Diagnostic]:
    """The findings that no comment silences, and one for each comment that silences nothing.

    Of a netlist with errors not all rules were looked at: there only comments that never can be of use are told.
    """
    comments = list(_comments(lines))
    left = [item for item in found if _refuses(item.rule) or not any(each.covers(item) for each in comments)]
    complete = not any(_refuses(item.rule) for item in found)
    judge = Judge(path)
    for each in comments:
        if not (_can_be_ignored(each.rule) and any(each.covers(item) for item in found)):
            message, hint = _useless(each, complete)
            if message:
                judge.report(RULES[USELESS], Finding(each.place, message, hint))
    return [*left, *judge.found]


def _useless(each: _Ignore, complete: bool) -> tuple[str, str]:
    if not each.rule:
        return "the comment names no rule", "write # buda: ignore[V154]"
    if each.rule not in RULES:
        return f"the comment ignores {each.rule!r}, which is no rule", near(each.rule, RULES)
    if not _can_be_ignored(each.rule):
        return f"the comment ignores {each.rule}, which cannot be ignored", "it refuses the netlist: mend it"
    where = "in the document" if each.line == 0 else f"on line {each.line}"
    return (f"the comment ignores {each.rule}, which is not found {where}" if complete else ""), "remove it"


def _refuses(rule: str) -> bool:
    """Whether a finding is an error even where nobody is strict."""
    return RULES[rule].at() == "error"


def _can_be_ignored(rule: str) -> bool:
    return rule in RULES and rule != USELESS and not _refuses(rule)


def _comments(lines: Sequence[str]) -> Iterator[_Ignore]:
    for number, text in enumerate(lines, 1):
        found = _COMMENT.search(text)
        if found is None:
            continue
        line = 0 if found[1] else number if text[: found.start()].strip() else _next_line(lines, number)
        place = TextPlace(number, found.start() + 1, found.end() + 1)
        for rule in (found[2] or "").split(","):
            yield _Ignore(rule.strip(), line, place)


def _next_line(lines: Sequence[str], number: int) -> int:
    """The first line behind this one that holds something, or the one behind the last."""
    for index in range(number, len(lines)):
        if lines[index].strip() and not lines[index].lstrip().startswith("#"):
            return index + 1
    return len(lines) + 1
