"""The tree of a text that is being typed: read in pieces, of which those are kept that did not change.

A text is split where its indentation says that an entry of a block begins: a queue, an op, an instruction. Each piece
is read alone; one that cannot be read is left out, so that everything else of a broken text is known. What a piece
cannot say of itself (block scalars, anchors and aliases, which join pieces) makes the whole text one piece.
"""

import re
from collections.abc import Iterator
from typing import Final

from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import ReadCache
from buda_emu.netlist.yaml_reader import MAX_DEPTH, UnreadableError, read_any, read_tree, split_lines
from buda_emu.support.records import dataclass

JOINED: Final = tuple(  # each begins with few characters, which are found quickly in a long text
    re.compile(form, re.MULTILINE)
    for form in (
        r"[|>][+-]?[0-9]?[+-]?[ ]*(?:#.*)?$", r"[&*!%](?<![^\s\[{,:-].)[A-Za-z0-9_]", r"---(?<=^---)",
        r"\.\.\.(?<=^\.\.\.)", r"\t",
    )
)  # fmt: skip
"""What joins pieces, or may: where one of these is, a text is read as one."""
_HEAD: Final = re.compile(r"([^\s#{}\[\],&*!|>'\"%@`-][^\s#{}\[\],]*?|\$[^\s#]*):[ ]*(?:#.*)?$")
_BLANK: Final = re.compile(r"[ ]*(?:#.*)?$")


class _TooDeepError(Exception):
    """Blocks are nested deeper than in any netlist: the text is not worth reading in pieces."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What could be read of a text. `problem`: why it is not all, None where it is."""

    root: Mapping
    problem: UnreadableError | None


class TreeReader:
    """Reads versions of one text, one after the other. The tree of a version is valid until the next one is read."""

    def __init__(self) -> None:
        self._kept: dict[str, list[_Piece]] = {}
        self.kept = ReadCache()
        """What nodes were read as, which goes with them."""

    def read(self, text: str) -> Tree:
        """The tree of a text; equal to what `read_tree` gives for one that is whole."""
        if any(form.search(text) for form in JOINED):
            return _at_once(text)
        lines = split_lines(text)
        if "\n".join(lines) != text.replace("\r\n", "\n"):
            return _at_once(text)
        reading = _Reading(lines, self._kept)
        try:
            root = reading.block(0, len(lines), 0)
        except _TooDeepError:
            return _at_once(text)
        self._kept = reading.used
        if isinstance(root, Mapping) and not reading.failed:
            return Tree(root, None)
        problem = reading.problem()
        if problem is not None and isinstance(root, Mapping):
            return Tree(root, problem)
        whole = _at_once(text)
        if whole.problem is None:
            return whole
        return Tree(root if isinstance(root, Mapping) else Mapping([], 1, 1, 2), whole.problem)


def _at_once(text: str) -> Tree:
    try:
        return Tree(read_tree(text), None)
    except UnreadableError as error:
        return Tree(Mapping([], 1, 1, 2), error)


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


class _Piece:
    """The node of a few lines, and the number of the line before them."""

    __slots__ = ("above", "node")

    def __init__(self, node: Node, above: int) -> None:
        self.node = node
        self.above = above

    def move(self, above: int) -> None:
        if above != self.above:
            for node in _nodes(self.node):
                node.line += above - self.above
            self.above = above


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Mapping):
        for key, value in node.pairs:
            yield from _nodes(key)
            yield from _nodes(value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _nodes(item)


class _Reading:
    """One reading. `kept`: pieces of the last one by their text; `used`: of this one."""

    def __init__(self, lines: list[str], kept: dict[str, list[_Piece]]) -> None:
        self._lines = lines
        self._indents = [_indent(line) for line in lines]
        self._kept = kept
        self.used: dict[str, list[_Piece]] = {}
        self.failed = False
        self._wrong = -1  # where the first piece begins that cannot be read
        self._depth = 0  # blocks around the one that is being read

    def problem(self) -> UnreadableError | None:
        """Why the text cannot be read, said as of the whole; None where only the whole text can tell.

        No bracket is open before the first piece that cannot be read, so what follows it says why; unless it goes on
        until a line that stands further out, with which a part of a text ends and a whole one does not.
        """
        if self._wrong < 0:
            return None
        try:
            read_any("\n" * self._wrong + "\n".join(self._lines[self._wrong :]))
        except UnreadableError as error:
            row = self._lines[error.line - 1]
            first = self._lines[self._wrong]
            further_out = row.strip() and _indent(row) < _indent(first)
            return None if further_out else error
        return None

    def block(self, start: int, end: int, least: int) -> Mapping | Sequence | None:
        """The map or list that lines[start:end] are, whose entries stand at least `least` columns in. Raises
        _TooDeepError."""
        if self._depth > MAX_DEPTH:
            raise _TooDeepError
        self._depth += 1
        try:
            return self._block(start, end, least)
        finally:
            self._depth -= 1

    def _block(self, start: int, end: int, least: int) -> Mapping | Sequence | None:
        starts, indent = self._entries(start, end, least)
        if not starts:
            return None
        stops = [*starts[1:], end]
        if self._lines[starts[0]].startswith("-", indent):
            items = [item for one, stop in zip(starts, stops, strict=True) for item in self._items(one, stop, indent)]
            return Sequence(items, starts[0] + 1, indent + 1, indent + 2)
        pairs = [pair for one, stop in zip(starts, stops, strict=True) for pair in self._pairs(one, stop, indent)]
        return Mapping(pairs, starts[0] + 1, indent + 1, indent + 2)

    def _entries(self, start: int, end: int, least: int) -> tuple[list[int], int]:
        """Lines on which an entry begins, and how far they are indented."""
        indent = -1
        found: list[int] = []
        for number in range(start, end):
            line = self._lines[number]
            own = self._indents[number]
            if indent < 0:
                if _BLANK.match(line):
                    continue
                indent = own
                if own < least:
                    self.failed = True
                    return [], 0
            if own == indent and line[own : own + 1] not in ("", "#", "}", "]"):
                found.append(number)
            elif own < indent and not _BLANK.match(line):
                self.failed = self.failed or line.lstrip()[:1] not in "}]"
        return found, indent

    def _pairs(self, start: int, end: int, indent: int) -> Iterator[tuple[Node, Node]]:
        line = self._lines[start]
        head = _HEAD.match(line, indent)
        if head is not None and self._has_more(start + 1, end):
            inside = self.block(start + 1, end, indent + 1 if not self._is_list(start + 1, end) else indent)
            if inside is not None:
                key = Scalar(
                    text=head[1], plain=True, line=start + 1, column=indent + 1, end_column=indent + 1 + len(head[1])
                )
                yield key, inside
            return
        node = self._piece(start, end)
        if isinstance(node, Mapping):
            yield from node.pairs
        elif node is not None:
            self.failed = True

    def _items(self, start: int, end: int, indent: int) -> Iterator[Node]:
        line = self._lines[start]
        inner = indent + 1 + len(line[indent + 1 :]) - len(line[indent + 1 :].lstrip(" "))
        head = _HEAD.match(line, inner) if line[indent] == "-" and inner > indent + 1 else None
        if head is not None and self._has_more(start + 1, end):
            depth = self._first_indent(start + 1, end)
            if depth > inner or (depth >= inner and self._is_list(start + 1, end)):
                inside = self.block(start + 1, end, inner)
                if inside is not None:
                    key = Scalar(
                        text=head[1], plain=True, line=start + 1, column=inner + 1, end_column=inner + 1 + len(head[1])
                    )
                    yield Mapping([(key, inside)], start + 1, inner + 1, inner + 2)
                return
        node = self._piece(start, end)
        if isinstance(node, Sequence):
            yield from node.items
        elif node is not None:
            self.failed = True

    def _first_indent(self, start: int, end: int) -> int:
        first = next(line for line in self._lines[start:end] if not _BLANK.match(line))
        return len(first) - len(first.lstrip(" "))

    def _has_more(self, start: int, end: int) -> bool:
        """Whether a block follows below a key: anything further in, or a list at the same column."""
        first = next((line for line in self._lines[start:end] if not _BLANK.match(line)), None)
        return first is not None and (self._is_list(start, end) or bool(_ENTRY.match(first)))

    def _is_list(self, start: int, end: int) -> bool:
        first = next((line for line in self._lines[start:end] if not _BLANK.match(line)), "")
        return first.lstrip(" ").startswith("- ")

    def _piece(self, start: int, end: int) -> Node | None:
        while end > start + 1 and _BLANK.match(self._lines[end - 1]):
            end -= 1
        text = "\n".join(self._lines[start:end])
        kept = self._kept.get(text)
        if kept:
            piece = kept.pop()
            piece.move(start)
        else:
            try:
                node = read_any(text)
            except UnreadableError:
                self.failed = True
                self._wrong = start if self._wrong < 0 else self._wrong
                return None
            piece = _Piece(node, 0)
            piece.move(start)
        self.used.setdefault(text, []).append(piece)
        return piece.node


_ENTRY: Final = re.compile(r" *(?:[^\s#{}\[\],&*!|>'\"%@`-][^#{}\[\],]*|\$[^\s#]*|'[^']*'|\"[^\"]*\"):(?: |$)")
