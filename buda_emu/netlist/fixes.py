"""Hints of findings as edits of the netlist's text, and the netlist with these edits made."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from buda_emu.netlist.formatter import Span, read_spans
from buda_emu.netlist.yaml_reader import LINE_BREAK, UnreadableError
from buda_emu.netlist.yaml_text import word
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import Change, Edit, Fix, Proposal, apply_fixes
from buda_emu.support.records import dataclass

_QUOTES: Final = ("'", '"')
_DASH: Final = re.compile(r" *- *\Z")
_BREAK: Final = re.compile(LINE_BREAK)


def with_fixes(found: Iterable[Diagnostic], text: str) -> list[Diagnostic]:
    """The findings; those whose hint says exactly what to change carry it as edits of the text."""
    found = list(found)
    if not any(isinstance(item.hint, Proposal) for item in found):
        return found
    try:
        places = _Places(text, found)
    except UnreadableError:
        return found
    return [
        replace(item, hint=str(item.hint), fix=places.fix(item, item.hint.change))
        if isinstance(item.hint, Proposal)
        else item
        for item in found
    ]


# ----------------------------------------------------------------------------------------------------- hint -> edits
@dataclass(frozen=True, slots=True)
class _Node:
    """A span in its place: `index` among the parts of `above`."""

    span: Span
    above: "_Node | None"
    index: int

    @property
    def is_key(self) -> bool:
        return self.above is not None and self.above.span.pairs and self.index % 2 == 0

    def beside(self, step: int) -> "_Node":
        assert self.above is not None
        return _Node(self.above.span.parts[self.index + step], self.above, self.index + step)


class _Places:
    """Where in one text stands what findings are about."""

    def __init__(self, text: str, found: Iterable[Diagnostic]) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]
        self._by_start: dict[int, list[_Node]] = {start: [] for item in found if (start := self._start(item)) >= 0}
        for node in _walk(_Node(read_spans(text), None, 0)):
            if node.span.start in self._by_start:
                self._by_start[node.span.start].append(node)

    def _start(self, item: Diagnostic) -> int:
        """Of the place of a finding; -1 where it has none."""
        return self._starts[item.line - 1] + item.column - 1 if 0 < item.line <= len(self._starts) else -1

    def fix(self, item: Diagnostic, change: Change) -> Fix | None:
        """What to do about a finding; None where the text gives no exact place for it."""
        nodes = self._by_start.get(self._start(item), [])
        make = {"replace": self._replaced, "put": self._put, "remove": self._removed}[change.kind]
        spans = make(nodes, change) if nodes else None
        if spans is None:
            return None
        start, end, new = spans
        safe = change.safe and item.severity == "error"
        return Fix(str(item.hint), safe, (Edit(*self._place(start), *self._place(end), new),))

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def _value(self, span: Span) -> str:
        written = self._text[span.start : span.end]
        return written[1:-1] if written[:1] in _QUOTES and written[-1:] == written[:1] else written

    def _replaced(self, nodes: list[_Node], change: Change) -> tuple[int, int, str] | None:
        """The word at the place, else the only one like it in what stands there."""
        last = nodes[-1]
        around = last.beside(1) if last.is_key and self._value(last.span) != change.key else last
        found = [
            node.span
            for node in _walk(around)
            if node.span.kind == "scalar" and self._value(node.span) == change.key and node.span.end > node.span.start
        ]
        return (found[0].start, found[0].end, word(change.text)) if len(found) == 1 else None

    def _put(self, nodes: list[_Node], change: Change) -> tuple[int, int, str] | None:
        """As the value of a key in the map that is meant: the one at the place, or of the name there, or around it."""
        node = nodes[-1] if nodes[-1].is_key else nodes[0]
        if node.is_key:
            node = node.beside(1) if node.beside(1).span.pairs or node.above is None else node.above
        elif not node.span.pairs and node.above is not None and node.above.span.pairs:
            node = node.above
        target = node.span
        if not target.pairs:
            return None
        for key, value in zip(target.parts[::2], target.parts[1::2], strict=True):
            if self._value(key) == change.key:
                return (value.start, value.end, change.text) if value.kind in ("scalar", "flow") else None
        entry = f"{change.key}: {change.text}"
        if not target.parts:
            return target.end - 1, target.end - 1, entry
        first = target.parts[0]
        end = max(part.end for part in target.parts[-2:])
        if target.kind == "flow":
            return end, end, f", {entry}"
        return first.start, first.start, f"{entry}\n{' ' * first.column}"

    def _removed(self, nodes: list[_Node], _: Change) -> tuple[int, int, str] | None:
        """The entry of a map or list. The instruction of a program is the only entry of a map in a list: it goes with
        that."""
        node = nodes[-1]
        while node.above is not None and len(node.above.span.parts) == (2 if node.above.span.pairs else 1):
            if node.above.above is None or node.above.above.span.kind != "list":
                break
            node = node.above
        if node.above is None:
            return None
        above = node.above.span
        number = node.index // 2 if above.pairs else node.index
        start, end = _entry(above, number)
        if above.kind != "flow":
            return self._removed_lines(above, number)
        if number:
            start = _entry(above, number - 1)[1]
        elif _entries(above) > 1:
            end = _entry(above, 1)[0]
        return None if "#" in self._text[start:end] else (start, end, "")

    def _removed_lines(self, above: Span, number: int) -> tuple[int, int, str] | None:
        start, end = _entry(above, number)
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end) - 1
        before = self._text[self._starts[first] : start]
        alone = _DASH.match(before) if above.kind == "list" else not before.strip()
        if _entries(above) == 1 or not alone or last + 1 >= len(self._starts):
            return None
        return self._starts[first], self._starts[last + 1], ""


def _walk(node: _Node) -> Iterator[_Node]:
    yield node
    for index, part in enumerate(node.span.parts):
        yield from _walk(_Node(part, node, index))


def _entries(span: Span) -> int:
    """How many entries a list or map has."""
    return len(span.parts) // 2 if span.pairs else len(span.parts)


def _entry(span: Span, number: int) -> tuple[int, int]:
    """Start and end of one of them."""
    if not span.pairs:
        return span.parts[number].start, span.parts[number].end
    key, value = span.parts[2 * number : 2 * number + 2]
    return key.start, max(key.end, value.end)


# ---------------------------------------------------------------------------------------------------- edits -> text
Check = Callable[[str], Sequence[Diagnostic]]
_READ: Final = 20_000_000  # characters that are checked, a few seconds of work


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text after its fixes, the findings that they removed, and those that are left."""

    text: str
    removed: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]


def fixed(text: str, check: Check, *, unsafe: bool = False) -> Fixed:
    """Make the fixes of all findings that `check` tells of a text, the unsafe ones only if asked to.

    A fix is kept when its finding is gone afterwards, and when a text without errors still has none. They are made all
    at once; where that is not kept, one by one, as many as are tried in the time of `_READ` characters.
    """
    found = tuple(check(text))
    left = max(20, _READ // max(len(text), 1))
    removed: list[Diagnostic] = []
    tried: set[tuple[str, str]] = set()
    while True:
        chosen = [item for item in found if item.fix and (item.fix.safe or unsafe) and _name(item) not in tried]
        if not chosen:
            return Fixed(text, tuple(removed), found)
        for some in (chosen, *([item] for item in chosen[: 1 if len(chosen) == 1 else None])):
            if not left:
                return Fixed(text, tuple(removed), found)
            left -= 1
            new, made = _made(text, some)
            after = tuple(check(new))
            if made and _better(found, after, made):
                text = new
                found = after
                removed += made
                break
            tried |= {_name(item) for item in some} if len(some) == 1 else set()


def _made(text: str, found: Sequence[Diagnostic]) -> tuple[str, list[Diagnostic]]:
    ends = [match.end() for match in _BREAK.finditer(text)]
    lines = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    by_fix = {id(item.fix): item for item in found}
    new, made = apply_fixes(lines, [item.fix for item in found if item.fix is not None])
    return new, [by_fix[id(fix)] for fix in made]


def _name(item: Diagnostic) -> tuple[str, str]:
    """A finding, wherever it stands."""
    return item.rule, re.sub(r"line \d+", "line", item.message)


def _better(before: Sequence[Diagnostic], after: Sequence[Diagnostic], made: Sequence[Diagnostic]) -> bool:
    was = Counter(map(_name, before))
    now = Counter(map(_name, after))
    gone = Counter(map(_name, made))
    sound = not any(item.severity == "error" for item in before)
    return all(now[name] <= was[name] - count for name, count in gone.items()) and not (
        sound and any(item.severity == "error" for item in after)
    )
