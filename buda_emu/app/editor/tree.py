"""Reader of the tree of a text while it is typed: the text is read in pieces, and unchanged pieces are reused.

A text is split where its indentation shows that an entry of a block begins: a queue, an op, an instruction. Each
piece is read alone; one that cannot be read is left out, so that the others of a broken text are known. Block
scalars, anchors and aliases join pieces: a text with these is read as one piece.
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
"""Patterns of syntax that joins pieces, or may: a text in which one of them matches is read as one piece."""
_HEAD: Final = re.compile(r"([^\s#{}\[\],&*!|>'\"%@`-][^\s#{}\[\],]*?|\$[^\s#]*):[ ]*(?:#.*)?$")
_BLANK: Final = re.compile(r"[ ]*(?:#.*)?$")


class _TooDeepError(Exception):
    """Blocks are nested deeper than in any netlist: the text is not worth reading in pieces."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The part of a text that could be read. `problem` says why it is not the whole text, None if it is."""

    root: Mapping
    problem: UnreadableError | None


class TreeReader:
    """Reader of the versions of one text, one after the other. The tree of a version is valid until the next one is
    read."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[_Piece]] = {}
        self.cache = ReadCache()
        """Objects that were read from the nodes of the pieces."""

    def read(self, text: str) -> Tree:
        """Return the tree of a text, with the pieces that the version before had, too, taken over; equal to the result
        of `read_tree` for a text that can be read as a whole."""
        if any(form.search(text) for form in JOINED):
            return _read_whole_text(text)
        lines = split_lines(text)
        if "\n".join(lines) != text.replace("\r\n", "\n"):
            return _read_whole_text(text)
        reading = _Reading(lines, self._pieces)
        try:
            root = reading.block(0, len(lines), 0)
        except _TooDeepError:
            return _read_whole_text(text)
        self._pieces = reading.used
        if isinstance(root, Mapping) and not reading.failed:
            return Tree(root, None)
        problem = reading.problem()
        if problem is not None and isinstance(root, Mapping):
            return Tree(root, problem)
        tree = _read_whole_text(text)
        if tree.problem is None:
            return tree
        return Tree(root if isinstance(root, Mapping) else Mapping([], 1, 1, 2), tree.problem)


def _read_whole_text(text: str) -> Tree:
    """Parse the whole text at once, without earlier results. A text that is not valid YAML gives an empty map and the
    error."""
    try:
        return Tree(read_tree(text), None)
    except UnreadableError as error:
        return Tree(Mapping([], 1, 1, 2), error)


def _indent(row: str) -> int:
    """Return the number of spaces at the start of the line."""
    return len(row) - len(row.lstrip(" "))


class _Piece:
    """The node that was read from a few lines. `above` is the number of lines above them, by which the lines of its
    nodes count."""

    __slots__ = ("above", "node")

    def __init__(self, node: Node, above: int) -> None:
        self.node = node
        self.above = above

    def move(self, above: int) -> None:
        """Shift the lines of all nodes, so that they are right with `above` lines above the piece; the nodes are
        changed in place."""
        if above != self.above:
            for node in _nodes(self.node):
                node.line += above - self.above
            self.above = above


def _nodes(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes inside it, keys included, in the order of the text."""
    yield node
    if isinstance(node, Mapping):
        for key, value in node.pairs:
            yield from _nodes(key)
            yield from _nodes(value)
    elif isinstance(node, Sequence):
        for entry in node.items:
            yield from _nodes(entry)


class _Reading:
    """A reader of one version of a text. `earlier` holds the pieces of the version before by their text, `used` those
    of this version. `failed` is true if a part of the text could not be read."""

    def __init__(self, lines: list[str], earlier: dict[str, list[_Piece]]) -> None:
        self._lines = lines
        self._indents = [_indent(line) for line in lines]
        self._earlier = earlier
        self.used: dict[str, list[_Piece]] = {}
        self.failed = False
        self._wrong = -1  # where the first piece begins that cannot be read
        self._depth = 0  # blocks around the one that is being read

    def problem(self) -> UnreadableError | None:
        """Return why the text cannot be read, with a place in the whole text; None if only reading it as a whole can
        tell.

        No bracket is open before the first piece that cannot be read, so the text from there on has the same problem.
        A problem on a line that is indented less is not: there a part of a text ends, and the whole text does not.
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
        """Return the map or list in lines[start:end], whose entries are indented by at least `least` columns; None
        if there are no entries. Raises _TooDeepError."""
        if self._depth > MAX_DEPTH:
            raise _TooDeepError
        self._depth += 1
        try:
            return self._read_block(start, end, least)
        finally:
            self._depth -= 1

    def _read_block(self, start: int, end: int, least: int) -> Mapping | Sequence | None:
        """Read the block map or list in lines `start` to `end` (exclusive) that is indented by `least` spaces or more;
        None if there is no entry. Entries that have not changed since the last reading are reused."""
        starts, indent = self._find_entries(start, end, least)
        if not starts:
            return None
        stops = [*starts[1:], end]
        if self._lines[starts[0]].startswith("-", indent):
            items: list[Node] = []
            for first, stop in zip(starts, stops, strict=True):
                items.extend(self._read_items(first, stop, indent))
            return Sequence(items, starts[0] + 1, indent + 1, indent + 2)
        pairs: list[tuple[Node, Node]] = []
        for first, stop in zip(starts, stops, strict=True):
            pairs.extend(self._read_pairs(first, stop, indent))
        return Mapping(pairs, starts[0] + 1, indent + 1, indent + 2)

    def _find_entries(self, start: int, end: int, least: int) -> tuple[list[int], int]:
        """Return the lines on which the entries of a block begin, and their indentation. Sets `failed` where a line is
        indented less than the block allows."""
        indent = -1
        starts: list[int] = []
        for number in range(start, end):
            line = self._lines[number]
            column = self._indents[number]
            if indent < 0:
                if _BLANK.match(line):
                    continue
                indent = column
                if column < least:
                    self.failed = True
                    return [], 0
            if column == indent and line[column : column + 1] not in ("", "#", "}", "]"):
                starts.append(number)
            elif column < indent and not _BLANK.match(line):
                self.failed = self.failed or line.lstrip()[:1] not in "}]"
        return starts, indent

    def _read_pairs(self, start: int, end: int, indent: int) -> Iterator[tuple[Node, Node]]:
        """Read the entry of a map in these lines, and yield its keys and values, usually one; none if it cannot be
        read, which sets `failed`."""
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
        node = self._read_or_reuse_piece(start, end)
        if isinstance(node, Mapping):
            yield from node.pairs
        elif node is not None:
            self.failed = True

    def _read_items(self, start: int, end: int, indent: int) -> Iterator[Node]:
        """Read the entry of a list in these lines, and yield its items, usually one; none if it cannot be read, which
        sets `failed`."""
        line = self._lines[start]
        inner = indent + 1 + len(line[indent + 1 :]) - len(line[indent + 1 :].lstrip(" "))
        head = None
        if line[indent] == "-" and inner > indent + 1:
            head = _HEAD.match(line, inner)
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
        node = self._read_or_reuse_piece(start, end)
        if isinstance(node, Sequence):
            yield from node.items
        elif node is not None:
            self.failed = True

    def _first_indent(self, start: int, end: int) -> int:
        """Return the indentation of the first of these lines that is not blank. There must be one."""
        first = next(line for line in self._lines[start:end] if not _BLANK.match(line))
        return len(first) - len(first.lstrip(" "))

    def _has_more(self, start: int, end: int) -> bool:
        """Return whether these lines, which follow a key, hold a block: they begin with an item of a list or with a
        key."""
        first = next((line for line in self._lines[start:end] if not _BLANK.match(line)), None)
        return first is not None and (self._is_list(start, end) or bool(_ENTRY.match(first)))

    def _is_list(self, start: int, end: int) -> bool:
        """Return whether the first of the lines that is not blank begins an item of a list."""
        first = next((line for line in self._lines[start:end] if not _BLANK.match(line)), "")
        return first.lstrip(" ").startswith("- ")

    def _read_or_reuse_piece(self, start: int, end: int) -> Node | None:
        """Return the node of these lines: that of the version before, moved, if it had a piece with the same text, else
        read now. None if the text cannot be read, which sets `failed`."""
        while end > start + 1 and _BLANK.match(self._lines[end - 1]):
            end -= 1
        text = "\n".join(self._lines[start:end])
        pieces = self._earlier.get(text)
        if pieces:
            piece = pieces.pop()
            piece.move(start)
        else:
            try:
                node = read_any(text)
            except UnreadableError:
                self.failed = True
                if self._wrong < 0:
                    self._wrong = start
                return None
            piece = _Piece(node, 0)
            piece.move(start)
        self.used.setdefault(text, []).append(piece)
        return piece.node


_ENTRY: Final = re.compile(r" *(?:[^\s#{}\[\],&*!|>'\"%@`-][^#{}\[\],]*|\$[^\s#]*|'[^']*'|\"[^\"]*\"):(?: |$)")
