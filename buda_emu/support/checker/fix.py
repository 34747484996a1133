"""Fixes: the hints of findings as edits of the text.

A rule knows what is meant, not where its letters stand: it gives its hint as a `Proposal`, which is the hint's text and
carries a `Change`. The room of the document turns the change into a `Fix` with exact places.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of text: `text` takes the place of the characters from line and column, which count from 1, to
    before `end_column` of `end_line`."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove a finding. `safe`: the document was refused for it, and only one correction can be meant; the
    outcome of any other fix should be looked at. `alternative`: other edits that remove the finding as well; which are
    meant, a check of both texts tells."""

    title: str
    safe: bool
    edits: tuple[Edit, ...]
    alternative: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A correction before its place in the text is determined. `replace`: the word `key` by `text`; `put`: `text` as
    the value of `key`, in the map at the finding's place; `remove`: the entry that contains the finding's place.
    `elsewhere`: line and column of another place where the word could be replaced instead."""

    kind: Literal["replace", "put", "remove"]
    key: str = ""
    text: str = ""
    safe: bool = field(default=True)
    elsewhere: tuple[int, int] | None = None


class Proposal(str):
    """A hint that says exactly what to change. It is a text like any other hint, and pickled as one."""

    __slots__ = ("change",)
    change: Change

    def __new__(cls, hint: str, change: Change) -> "Proposal":
        """Make a hint from its text and the change that it describes."""
        proposal = super().__new__(cls, hint)
        proposal.change = change
        return proposal

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def replacing(
    hint: str, word: str, text: str, *, safe: bool = True, elsewhere: tuple[int, int] | None = None
) -> Proposal:
    """Return a hint to write `text` for `word` at the finding's place. `elsewhere` is line and column of a second place
    where this could be meant instead."""
    return Proposal(hint, Change("replace", word, text, safe=safe, elsewhere=elsewhere))


def putting(hint: str, key: str, text: str, *, safe: bool = True) -> Proposal:
    """Return a hint to write `key: text`, where `key` is absent or has another value."""
    return Proposal(hint, Change("put", key, text, safe))


def removing(hint: str, *, safe: bool = True) -> Proposal:
    """Return a hint to leave out the entry that the finding is about."""
    return Proposal(hint, Change("remove", safe=safe))


def apply_fixes(lines: Iterable[str], fixes: Iterable[Fix]) -> tuple[str, list[Fix]]:
    """Apply fixes to lines, which have their line ends, and return the new text and the fixes that were applied. A fix
    that overlaps or touches an earlier one is left out."""
    lines = list(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = "".join(lines)
    replacements: list[tuple[int, int, str]] = []
    applied_fixes: list[Fix] = []
    for fix in fixes:
        spans = [
            (starts[edit.line - 1] + edit.column - 1, starts[edit.end_line - 1] + edit.end_column - 1, edit.text)
            for edit in fix.edits
        ]
        if any(_meets_any(span, replacements) for span in spans):
            continue
        replacements += spans
        applied_fixes.append(fix)
    for start, end, new in sorted(replacements, reverse=True):
        text = text[:start] + new + text[end:]
    return text, applied_fixes


def _meets_any(span: tuple[int, int, str], others: Iterable[tuple[int, int, str]]) -> bool:
    """Return whether a replaced range overlaps or touches one of the others."""
    return any(span[0] <= end and start <= span[1] for start, end, _ in others)
