"""Differences between two texts as changes of whole lines. The time grows with the number of lines, whatever repeats:
a part of the texts that would take longer is compared coarsely."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

_STEPS: Final = 1_000_000  # of difflib, a tenth of a second
_STEPS_PER_LINE: Final = 100  # so that longer texts get time in proportion; more find smaller changes later
_WINDOWS: Final = (1, 8)
"""Numbers of successive lines that mark a place, if they stand only once in each text."""


class LineChange(NamedTuple):
    """Lines `old_start` to `old_end` of the old text, which lines `new_start` to `new_end` of the new text replace.
    Lines count from 0, and the ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[str], new: Sequence[str], *, steps: int | None = None) -> list[LineChange]:
    """Return the changes that make the new lines of the old ones, in order, with equal lines between them.

    `steps` bounds the work of difflib, which takes up to the cube of the lines that repeat; by default the bound grows
    with the number of lines. Beyond it, lines that stand only once in each text are matched first, then groups of them;
    what lies between is compared line by line if it has as many lines in both texts, else replaced as a whole.
    """
    if steps is None:
        steps = _STEPS + _STEPS_PER_LINE * (len(old) + len(new))
    comparison = _Comparison(old, new, steps)
    comparison.compare(LineChange(old_start=0, old_end=len(old), new_start=0, new_end=len(new)), _WINDOWS)
    return comparison.changes


def hunk_lines(old: Sequence[str], new: Sequence[str], context: int = 3) -> Iterator[str]:
    """Yield the difference between two texts in the form of `diff -u`, without the two lines that name the files."""
    hunk: list[LineChange] = []
    for change in line_changes(old, new):
        if hunk and change.old_start - hunk[-1].old_end > 2 * context:
            yield from _format_hunk(old, new, hunk, context)
            hunk = []
        hunk.append(change)
    if hunk:
        yield from _format_hunk(old, new, hunk, context)


class _Comparison:
    """The changes between two texts that were found so far, and the steps that exact comparisons may still take."""

    def __init__(self, old: Sequence[str], new: Sequence[str], steps: int) -> None:
        self._old = old
        self._new = new
        self._steps = steps
        self.changes: list[LineChange] = []

    def compare(self, part: LineChange, windows: Sequence[int]) -> None:
        """Append the changes of a part of both texts: exactly while steps are left, else between the lines that groups
        of so many lines (`windows`, tried one after the other) identify in both."""
        part = self._without_equal_ends(part)
        if part.old_start == part.old_end or part.new_start == part.new_end:
            if part.old_end - part.old_start != part.new_end - part.new_start:
                self.changes.append(part)
        elif self._spend(part):
            self._compare_exactly(part)
        elif windows:
            for gap in self._gaps(part, windows[0]):
                self.compare(gap, windows[1:])
        elif part.old_end - part.old_start == part.new_end - part.new_start:
            self._compare_in_place(part)
        else:
            self.changes.append(part)

    def _without_equal_ends(self, part: LineChange) -> LineChange:
        """Return a part without the lines at its start and end that are equal in both texts."""
        old_start, old_end, new_start, new_end = part
        while old_start < old_end and new_start < new_end and self._old[old_start] == self._new[new_start]:
            old_start += 1
            new_start += 1
        while old_start < old_end and new_start < new_end and self._old[old_end - 1] == self._new[new_end - 1]:
            old_end -= 1
            new_end -= 1
        return LineChange(old_start=old_start, old_end=old_end, new_start=new_start, new_end=new_end)

    def _spend(self, part: LineChange) -> bool:
        """Return whether the steps that are left suffice to compare a part exactly, and take them if they do."""
        counts = Counter(self._old[part.old_start : part.old_end])
        equal_pairs = sum(counts[line] for line in self._new[part.new_start : part.new_end])
        # difflib looks at these pairs, and at all lines of the new text, once for each match that it finds.
        matches = min(part.old_end - part.old_start, part.new_end - part.new_start)
        steps = matches * (equal_pairs + part.new_end - part.new_start)
        if steps > self._steps:
            return False
        self._steps -= steps
        return True

    def _compare_exactly(self, part: LineChange) -> None:
        """Append the changes of a part as difflib finds them, without its heuristic for lines that repeat."""
        old = self._old[part.old_start : part.old_end]
        new = self._new[part.new_start : part.new_end]
        match = SequenceMatcher(None, old, new, autojunk=False)
        for kind, old_start, old_end, new_start, new_end in match.get_opcodes():
            if kind != "equal":
                self._append(
                    part.old_start + old_start,
                    part.old_start + old_end,
                    part.new_start + new_start,
                    part.new_start + new_end,
                )

    def _compare_in_place(self, part: LineChange) -> None:
        """Append the changes of a part with as many lines in both texts, comparing each with the one in its place."""
        shift = part.new_start - part.old_start
        start = part.old_start
        for index in range(part.old_start, part.old_end):
            if self._old[index] == self._new[index + shift]:
                if start < index:
                    self._append(start, index, start + shift, index + shift)
                start = index + 1
        if start < part.old_end:
            self._append(start, part.old_end, start + shift, part.new_end)

    def _append(self, old_start: int, old_end: int, new_start: int, new_end: int) -> None:
        """Append the change of these lines, whose ends are exclusive, as it is."""
        self.changes.append(LineChange(old_start=old_start, old_end=old_end, new_start=new_start, new_end=new_end))

    def _gaps(self, part: LineChange, window: int) -> Iterator[LineChange]:
        """Yield what lies in a part before, between and after its anchors (`_anchors`), where texts may differ."""
        before = (part.old_start - 1, part.new_start - 1)
        after = (part.old_end, part.new_end)
        for (old_last, new_last), (old_next, new_next) in pairwise([before, *self._anchors(part, window), after]):
            yield LineChange(old_start=old_last + 1, old_end=old_next, new_start=new_last + 1, new_end=new_next)

    def _anchors(self, part: LineChange, window: int) -> list[tuple[int, int]]:
        """Return pairs of equal lines (old index, new index), in order in both texts. Each pair begins a group of
        `window` equal lines that stands only once in either text."""
        old_places = _single_places(self._old, range(part.old_start, part.old_end), window)
        new_places = _single_places(self._new, range(part.new_start, part.new_end), window)
        pairs = [
            (place, new_places[key])
            for key, place in old_places.items()
            if key in new_places and self._old[place] == self._new[new_places[key]]  # hashes can be equal by chance
        ]
        return _longest_in_order(sorted(pairs))


def _single_places(lines: Sequence[str], places: range, window: int) -> dict[int, int]:
    """Return, by their hash, the places at which `window` lines begin that begin nowhere else among these places."""
    by_hash: dict[int, int] = {}
    repeated: set[int] = set()
    for place in places[: len(places) - window + 1]:
        key = hash(tuple(lines[place : place + window]))
        if key in by_hash:
            repeated.add(key)
        by_hash[key] = place
    return {key: place for key, place in by_hash.items() if key not in repeated}


def _longest_in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return as many of the pairs as possible whose second numbers rise; the pairs are sorted by their first ones."""
    ends: list[int] = []  # the lowest second number with which a sequence of each length ends
    at_end: list[int] = []  # the pair that has it
    previous: list[int] = []  # of each pair the one before it in the longest sequence that it ends, or -1
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        previous.append(at_end[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        at_end[length : length + 1] = [index]
    longest: list[tuple[int, int]] = []
    index = at_end[-1] if at_end else -1
    while index >= 0:
        longest.append(pairs[index])
        index = previous[index]
    return longest[::-1]


def _format_hunk(old: Sequence[str], new: Sequence[str], hunk: Sequence[LineChange], context: int) -> Iterator[str]:
    """Yield the lines of one hunk: its changes with up to `context` equal lines around them."""
    lead = min(context, hunk[0].old_start)
    trail = min(context, len(old) - hunk[-1].old_end)
    start = hunk[0].old_start - lead
    end = hunk[-1].old_end + trail
    old_range = _range_text(start, end)
    new_range = _range_text(hunk[0].new_start - lead, hunk[-1].new_end + trail)
    yield f"@@ -{old_range} +{new_range} @@"
    for change in hunk:
        yield from (f" {line}" for line in old[start : change.old_start])
        yield from (f"-{line}" for line in old[change.old_start : change.old_end])
        yield from (f"+{line}" for line in new[change.new_start : change.new_end])
        start = change.old_end
    yield from (f" {line}" for line in old[start:end])


def _range_text(start: int, end: int) -> str:
    """Return a range of lines as `diff -u` writes it: first line, from 1, and number of lines, which is left out if it
    is 1. Of no lines, the line before them."""
    if end - start == 1:
        return f"{start + 1}"
    if start == end:
        return f"{start},0"
    return f"{start + 1},{end - start}"
