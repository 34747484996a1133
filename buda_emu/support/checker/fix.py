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
    """`text` takes the place of what stands from line and column, which count from 1, to before `end_column` of
    `end_line`."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove a finding. `safe`: the document was refused for it, and there is one thing that was meant; of
    others somebody should look at the result."""

    title: str
    safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """`replace`: the word `key` by `text`; `put`: `text` as the value of `key`, in the map of the finding's place;
    `remove`: the entry that the finding's place is in."""

    kind: Literal["replace", "put", "remove"]
    key: str = ""
    text: str = ""
    safe: bool = field(default=True)


class Proposal(str):
    """A hint that says exactly what to change; it is a text like any other hint, and pickled as one."""

    __slots__ = ("change",)
    change: Change

    def __new__(cls, hint: str, change: Change) -> "Proposal":
        """The hint's text, and what it means."""
        made = super().__new__(cls, hint)
        made.change = change
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def replacing(hint: str, word: str, text: str, *, safe: bool = True) -> Proposal:
    """A hint to write `text` for `word`."""
    return Proposal(hint, Change("replace", word, text, safe))


def putting(hint: str, key: str, text: str, *, safe: bool = True) -> Proposal:
    """A hint to write `key: text`, where nothing or something else stands."""
    return Proposal(hint, Change("put", key, text, safe))


def removing(hint: str, *, safe: bool = True) -> Proposal:
    """A hint to leave out what the finding is about."""
    return Proposal(hint, Change("remove", safe=safe))


def apply_fixes(lines: Iterable[str], fixes: Iterable[Fix]) -> tuple[str, list[Fix]]:
    """The text of these lines, their ends included, after the edits of the fixes, and the fixes that were made: one
    that meets an earlier one is left out."""
    lines = list(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = "".join(lines)
    taken: list[tuple[int, int, str]] = []
    made: list[Fix] = []
    for fix in fixes:
        spans = [
            (starts[edit.line - 1] + edit.column - 1, starts[edit.end_line - 1] + edit.end_column - 1, edit.text)
            for edit in fix.edits
        ]
        if any(start <= other[1] and other[0] <= end for start, end, _ in spans for other in taken):
            continue
        taken += spans
        made.append(fix)
    for start, end, new in sorted(taken, reverse=True):
        text = text[:start] + new + text[end:]
    return text, made
