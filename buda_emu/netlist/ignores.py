"""Silence findings by comments in a netlist: `# buda: ignore[V154]` (docs/netlists/ci.md).

A comment at the end of a line covers that line; one alone on its line covers the next line that is no comment; `#
buda: ignore-file[...]` covers the whole document. Rules that refuse a netlist cannot be ignored.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from buda_emu.netlist.rules import RULES
from buda_emu.support.checker import Checker, Diagnostic, Finding, TextPlace
from buda_emu.support.checker.checks import MAX_FINDINGS, TOO_MANY
from buda_emu.support.checker.suggest import near

USELESS = "V210"
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[ \t]*buda: ignore(-file)?\b[ \t]*(?:\[([^\]\n]*)\])?")


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One rule that one comment names. `line` is the line that the comment covers, 0 for the whole document."""

    rule: str
    line: int
    place: TextPlace


def apply_ignores(findings: Sequence[Diagnostic], lines: Sequence[str], path: str) -> list[Diagnostic]:
    """Return the findings that no comment silences, and a finding about each comment that silences nothing. `lines`
    are those of the netlist `path`. Not all rules are checked in a netlist with errors; there, only comments that
    can never be of use are reported.
    """
    comments = list(_comments(lines))
    covered = {(comment.rule, comment.line) for comment in comments}
    remaining = [finding for finding in findings if _refuses(finding.rule) or covered.isdisjoint(_coverage(finding))]
    useful: set[tuple[str, int]] = set()
    for finding in findings:
        useful.update(_coverage(finding))
    complete = not any(_refuses(finding.rule) for finding in findings)
    useless = (
        comment for comment in comments if not _is_ignorable(comment.rule) or (comment.rule, comment.line) not in useful
    )
    return [*remaining, *_useless_comments(useless, complete, path)]


def _useless_comments(comments: Iterable[_Ignore], complete: bool, path: str) -> list[Diagnostic]:
    """Return findings about comments that silence nothing, at most `MAX_FINDINGS` and one that says so. `complete` is
    false if rules were left unchecked, so that a comment may yet be of use."""
    checker = Checker(path)
    for comment in comments:
        message, hint = _useless_message(comment, complete)
        if message and len(checker.diagnostics) == MAX_FINDINGS:
            checker.report(RULES[USELESS], Finding(comment.place, TOO_MANY.format(MAX_FINDINGS)))
            break
        if message:
            checker.report(RULES[USELESS], Finding(comment.place, message, hint))
    return checker.diagnostics


def _coverage(finding: Diagnostic) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return rule and line of the two kinds of comments that silence a finding: on its line, or for the document."""
    return (finding.rule, finding.line), (finding.rule, 0)


def _useless_message(comment: _Ignore, complete: bool) -> tuple[str, str]:
    """Return message and hint about a comment that silences nothing; an empty message if nothing is reported.
    `complete` is false if rules were left unchecked, so that the comment may yet be of use.
    """
    if not comment.rule:
        return "the comment names no rule", "write # buda: ignore[V154]"
    if comment.rule not in RULES:
        return f"the comment ignores {comment.rule!r}, which is not a rule", near(comment.rule, RULES)
    if not _is_ignorable(comment.rule):
        return f"the comment ignores {comment.rule}, which cannot be ignored", "it refuses the netlist: fix it"
    if not complete:
        return "", ""
    if comment.line == 0:
        place = "in the document"
    else:
        place = f"on line {comment.line}"
    return f"the comment ignores {comment.rule}, which is not found {place}", "remove it"


def _refuses(rule: str) -> bool:
    """Return whether findings of a rule are errors even without --strict."""
    return RULES[rule].at() == "error"


def _is_ignorable(rule: str) -> bool:
    """Return whether a comment may name a rule: it exists, never refuses a netlist, and is not the rule about such
    comments.
    """
    return rule in RULES and rule != USELESS and not _refuses(rule)


def _comments(lines: Sequence[str]) -> Iterator[_Ignore]:
    """Yield each rule that a comment `# buda: ignore[...]` names; the rule is "" where the comment names none."""
    following: Sequence[int] = ()
    for number, text in enumerate(lines, 1):
        match = _COMMENT.search(text)
        if match is None:
            continue
        alone = not text[: match.start()].strip()
        if alone and not following:
            following = _following_lines(lines)
        line = number
        if match[1]:
            line = 0
        elif alone:
            line = following[number]
        place = TextPlace(number, match.start() + 1, match.end() + 1)
        for rule in (match[2] or "").split(","):
            yield _Ignore(rule.strip(), line, place)


def _following_lines(lines: Sequence[str]) -> list[int]:
    """Return, for each index, the number of the first line from there on that is neither blank nor a comment.

    The number is one past the last line where there is none.
    """
    numbers = [len(lines) + 1] * (len(lines) + 1)
    for index in range(len(lines) - 1, -1, -1):
        text = lines[index].lstrip()
        numbers[index] = index + 1 if text and not text.startswith("#") else numbers[index + 1]
    return numbers
