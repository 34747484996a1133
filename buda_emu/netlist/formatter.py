"""The formatter: writes a netlist's text again in one layout, without a change of comments and values."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal

from buda_emu.netlist.yaml_reader import OTHER_BREAKS, UnreadableError, parser, read_tree
from buda_emu.support.errors import InternalError
from buda_emu.support.garbage import no_collections
from buda_emu.support.records import dataclass

_PIECE: Final = re.compile(
    r"(?P<blank>[ \t\ufeff]+)|(?P<comment>#[^\r\n\x85\u2028\u2029]*)|(?P<break>\r\n|[\r\n\x85\u2028\u2029])"
    r"|(?P<word>[&!][^\s,\[\]{}]*|---|\.\.\.|%[^\r\n]*)|(?P<mark>.)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A comment, a line break, a word (anchor, tag, document marker, directive) or a mark such as `{`. `start` is an
    index into the text."""

    kind: Literal["comment", "break", "word", "mark"]
    text: str
    start: int


def pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """Yield the comments, line breaks, words and marks of `text[start:end]`, a range that holds no value. Blanks are
    left out."""
    for match in _PIECE.finditer(text, start, end):
        match match.lastgroup:
            case "blank":
                continue
            case "break":
                yield Piece("break", "\n", match.start())
            case "comment":
                yield Piece("comment", match[0].rstrip(), match.start())
            case "word":
                yield Piece("word", match[0], match.start())
            case _:
                yield Piece("mark", match[0], match.start())


_PROPERTIES: Final = re.compile(r"(?:[&!][^\s]*[ \t]*)+")

Kind = Literal["scalar", "alias", "flow", "map", "list"]


class Span:
    """One node of the YAML text. `start` and `end` are indices into the text (`end` is one past the last character);
    `column` counts from 0.

    `map` and `list` are written as blocks, a `flow` is a map or list in brackets. `parts` are the nodes in it, keys
    and values in turn for a map (`pairs`). `properties` holds anchor and tag of a block, which stand before it.
    """

    __slots__ = ("column", "end", "kind", "pairs", "parts", "properties", "start")

    def __init__(self, kind: Kind, start: int, end: int, column: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.column = column
        self.parts = _NONE
        self.pairs = False
        self.properties = ""


_NONE: Final[list[Span]] = []
"""The parts of all nodes without parts, shared because a text has very many of them."""


def read_spans(text: str) -> Span:
    """Return the root span of the only document of a text that `read_tree` accepts. Raises UnreadableError."""
    from yaml import events

    get_event: Callable[[], Any] = parser(text).get_event
    stack: list[Span] = []
    root: Span | None = None
    while True:
        event = get_event()
        if isinstance(event, events.StreamEndEvent):
            break
        if isinstance(event, events.CollectionEndEvent):
            _close(stack.pop(), event)
            continue
        node = _open(text, event, events)
        if node is None:
            continue
        if stack:
            above = stack[-1]
            above.parts = above.parts or []
            above.parts.append(node)
        elif root is None:
            root = node
        if isinstance(event, events.CollectionStartEvent):
            stack.append(node)
    if root is None:
        raise UnreadableError("the document is empty")
    return root


def _close(span: Span, event: Any) -> None:
    """Set the end of a map or list from the event of the parser that ends it. A block ends with its last part."""
    if span.kind == "flow":
        span.end = event.end_mark.index
    elif span.parts:
        span.end = span.parts[-1].end


def _open(text: str, event: Any, events: Any) -> Span | None:
    """Return the node that an event of the parser begins, or None if it begins none. `events` is the module of the
    event classes, which is imported late.
    """
    start = event.start_mark.index
    if isinstance(event, events.AliasEvent):
        return Span("alias", start, event.end_mark.index, event.start_mark.column)
    if isinstance(event, events.ScalarEvent):
        return Span("scalar", start, _scalar_end(text, event), event.start_mark.column)
    if not isinstance(event, events.CollectionStartEvent):
        return None
    pairs = isinstance(event, events.MappingStartEvent)
    kind: Kind = "map" if pairs else "list"
    if event.flow_style:
        kind = "flow"
    node = Span(kind, start, event.end_mark.index, event.start_mark.column)
    node.pairs = pairs
    if event.anchor or event.tag:
        properties = _PROPERTIES.match(text, start)
    else:
        properties = None
    if properties is not None and kind != "flow":
        node.properties = properties[0].rstrip()
    return node


def _scalar_end(text: str, event: Any) -> int:
    """Return the end of a scalar from its event. The parser ends a block scalar where the next token starts; here
    it ends with its last line that is not blank, and with the indicator `+` after its last line break.
    """
    start = event.start_mark.index
    end = event.end_mark.index
    if event.style not in ("|", ">"):
        return end
    written = text[start:end]
    header = written.split("\n", 1)[0].split(" #", 1)[0]
    if "+" in header:
        content = written.rstrip(" ").removesuffix("\n")
    else:
        content = written.rstrip(" \n")
    return start + len(content)


STEP: Final = 2  # columns for each level
_BREAK: Final = re.compile(r"[ \t]*(?:\r\n|[\r\n])")  # others, such as U+2028, are a part of the value
_LEADING: Final = " \t"
_MOST_OF_KEY: Final = 1000  # YAML allows 1024 characters of a key that stands before its colon
_OPENING = "{["
_CLOSING = "}]"


@dataclass(frozen=True, slots=True)
class _Note:
    """A comment, directive or document marker on a line of its own, and the level of the block that it belongs to."""

    blank_before: bool
    text: str
    level: int


class Layout:
    """Writer of one text in the formatter's layout."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[str] = []
        self._at = 0  # index up to which the text has been written
        # Old and new column of each open block, and of those that were closed since the last entry.
        self._levels: list[tuple[int, int]] = []

    def write(self, root: Span) -> str:
        """Return the whole text in the new layout. Raises UnreadableError for a key that is not a name."""
        if root.kind in ("map", "list"):
            self._block(root, 0)
        else:
            self._advance(root.start, 0)
            self._append("", self._value(root, 0))
        if not self._levels:
            self._levels.append((0, 0))
        self._advance(len(self._text), 1)
        return "\n".join(self._lines) + "\n"

    # ------------------------------------------------------------------------------------------------------- blocks
    def _block(self, node: Span, column: int, head: str = "") -> None:
        """Write a map or list from the column `column` on. `head` is the text, such as `- `, after which the first
        entry follows on the line.
        """
        depth = len(self._levels) + 1
        if node.kind == "map":
            self._levels.append((node.parts[0].column, column))
            entries = list(zip(node.parts[::2], node.parts[1::2], strict=True))
        else:
            self._levels.append((node.column, column))
            entries = node.parts
        for number, entry in enumerate(entries):
            first = entry if isinstance(entry, Span) else entry[0]
            if number:
                head = ""
            if not head:
                self._advance(first.start, depth)
            start = head or " " * column
            if isinstance(entry, Span):
                self._entry(f"{start}-", entry, column, depth)
            else:
                self._entry(f"{start}{self._key(entry[0])}:", entry[1], column, depth)

    def _entry(self, head: str, value: Span, column: int, depth: int) -> None:
        """Write `head`, a key with its colon or the dash of a list, and the value after it. `column` is that of the
        entry's block in the new layout, `depth` the number of blocks open there.
        """
        inside = column + STEP
        del self._levels[depth:]
        has_comment = self._has_comment_before(value)
        if value.kind in ("map", "list"):
            self._entry_of_block(head, value, inside, has_comment)
        elif has_comment and value.end > value.start:
            self._append("", head)
            self._levels.append((value.column, inside))
            self._advance(value.start, depth + 1)
            self._append(" " * inside, self._value(value, inside))
        else:
            written = self._value(value, column)
            self._append(f"{head} " if written else head, written)

    def _entry_of_block(self, head: str, value: Span, column: int, has_comment: bool) -> None:
        """Write `head` and a map or list, whose block begins at `column`. It starts on the same line after the dash
        of a list, if no comment stands between them (`has_comment`).
        """
        if value.properties:
            self._append("", f"{head} {value.properties}")
            self._at = value.start + len(value.properties)
            self._block(value, column)
        elif head.endswith("-") and not has_comment:
            self._at = self._first_start(value)
            self._block(value, column, f"{head} ")
        else:
            self._append("", head)
            self._block(value, column)

    def _first_start(self, node: Span) -> int:
        """Return the start of the first key or value in a block."""
        while node.kind in ("map", "list"):
            node = node.parts[0]
        return node.start

    def _has_comment_before(self, value: Span) -> bool:
        """Return whether a comment stands between a key and its value."""
        if value.kind == "map":
            start = self._first_start(value)
        else:
            start = value.start
        return any(piece.kind == "comment" for piece in pieces(self._text, self._at, max(start, self._at)))

    def _key(self, key: Span) -> str:
        """Return the text of a key, and go past it; an alias is followed by a space. Raises UnreadableError for a
        key that is not a name on one line.
        """
        written = self._text[key.start : key.end]
        if key.kind not in ("scalar", "alias") or "\n" in written or len(written) > _MOST_OF_KEY:
            line = self._text.count("\n", 0, key.start) + 1
            raise UnreadableError("a key needs to be a name on one line", line, key.column + 1)
        self._at = key.end
        return f"{written} " if key.kind == "alias" else written

    # ------------------------------------------------------------------------------------------------------- values
    def _value(self, node: Span, column: int) -> str:
        """Return the text of a scalar or a flow collection, and go past it; its further lines are indented relative to
        `column`."""
        self._at = node.end
        if node.kind == "flow":
            return _Brackets(self._text, node, column).write()
        return _scalar(self._text, node, column)

    # ------------------------------------------------------------------------------------------- comments, blank lines
    def _advance(self, to: int, depth: int) -> None:
        """Write the comments and blank lines up to the index `to`.

        `depth` is the level of the entry that follows. A comment belongs to that level, or to a deeper block that has
        just ended if it is indented at least as far as that block.
        """
        notes, breaks = self._read_notes(to, depth)
        self._at = to
        is_followed = bool(self._lines) and to < len(self._text)
        blank = breaks > 1
        if depth == 1 and is_followed:
            blank = _separate_section(notes, blank)
        for note in notes:
            indent = self._levels[note.level][1] if self._levels else 0
            self._line(" " * indent + note.text, note.blank_before)
        if blank and self._lines and to < len(self._text):
            self._lines.append("")

    def _read_notes(self, to: int, depth: int) -> tuple[list[_Note], int]:
        """Return the notes up to the index `to` and the number of line breaks after the last one.

        A comment at the end of a written line is appended to that line.
        """
        notes: list[_Note] = []
        breaks = 1 if not self._lines else 0
        for piece in pieces(self._text, self._at, to):
            if piece.kind == "break":
                breaks += 1
            elif piece.kind == "comment" and not breaks:
                self._lines[-1] += f" {piece.text}"
            elif piece.text == "...":  # ends the document; a netlist is one
                breaks -= 1
            elif piece.kind == "comment" or (piece.kind == "word" and piece.text[0] not in "&!"):
                notes.append(_Note(breaks > 1, piece.text, self._level(piece, depth)))
                breaks = 0
        return notes, breaks

    def _level(self, piece: Piece, depth: int) -> int:
        """Return the index in `_levels` of the block to which a comment, directive or marker belongs: the deepest
        one from `depth` on that is indented no further, else the block above the entry that follows.
        """
        line = self._text.rfind("\n", 0, piece.start) + 1
        for other in OTHER_BREAKS:
            line = max(line, self._text.rfind(other, line, piece.start) + 1)
        column = piece.start - line
        deeper = [level for level in range(depth, len(self._levels)) if self._levels[level][0] <= column]
        return deeper[-1] if deeper else max(depth - 1, 0)

    def _line(self, line: str, blank: bool) -> None:
        """Add a line to the text, after a blank line if `blank` is set and none stands there yet."""
        if blank and self._lines and self._lines[-1]:
            self._lines.append("")
        self._lines.append(line)

    def _append(self, head: str, written: str) -> None:
        """Add the line `head` with `written` right after it to the text; each line break in `written` begins a further
        line."""
        self._lines += f"{head}{written}".split("\n")


def _separate_section(notes: list[_Note], blank: bool) -> bool:
    """Put a blank line between a section and the one before it: before the first note of the outermost level.

    Returns whether a blank line stands after the notes. `blank` says whether the text has one there.
    """
    outer = next((number for number, note in enumerate(notes) if note.level == 0), len(notes))
    if outer == len(notes):
        return True
    if not blank and not any(note.blank_before for note in notes[outer:]):
        notes[outer] = replace(notes[outer], blank_before=True)
    return blank


def _scalar(text: str, node: Span, column: int) -> str:
    """Return a scalar as it is spelt, its further lines indented one level from `column`."""
    written = text[node.start : node.end]
    first, *others = _BREAK.split(written)
    if not others:
        return written
    pad = " " * (column + STEP)
    if not re.match(r"(?:[&!]\S*[ \t]+)*[|>]", first):  # YAML folds lines and drops the blanks that begin them
        return "\n".join([first, *(f"{pad}{line.lstrip(_LEADING)}" if line.strip() else "" for line in others)])
    indicator = re.search(r"[|>][+-]?([1-9])", first)
    if indicator is None:
        indents = [len(line) - len(line.lstrip(" ")) for line in others if line.strip()]
        old_indent = min(indents, default=0)
    else:
        old_indent = _block_indent(text, node) + int(indicator[1])
        pad = " " * (column + int(indicator[1]))
    return "\n".join([first, *(f"{pad}{line[old_indent:]}" if line.strip() else "" for line in others)])


def _block_indent(text: str, node: Span) -> int:
    """Return the indentation of the line on which a block scalar starts in the text, dashes of lists included."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    return len(line) - len(line.lstrip(" -"))


class _Brackets:
    """Writer of a flow collection. Line breaks stay where they are.

    A line is indented one level for each bracket that is open at its beginning and that ended a line, and at least one
    level while a bracket is open.
    """

    def __init__(self, text: str, node: Span, column: int) -> None:
        self._text = text
        self._node = node
        self._column = column
        self._lines: list[str] = []
        self._line = ""
        self._has_comment = False  # the line ends with a comment
        self._colon = False  # the line ends with the colon after a key
        self._hanging: list[bool] = []  # for each open bracket: does it end its line?

    def write(self) -> str:
        """Return the text of the collection, without indentation of its first line."""
        end = self._node.start
        for leaf in _leaves(self._node):
            self._punctuation(end, leaf.start)
            if leaf.end > leaf.start:
                value = _scalar(self._text, leaf, self._column)
                if leaf.kind == "alias" and self._is_key(leaf):
                    value += " "  # a colon right after an alias would be part of its name
                self._word(value)
            end = leaf.end
        self._punctuation(end, self._node.end)
        return "\n".join([*self._lines, self._line])

    def _is_key(self, leaf: Span) -> bool:
        """Return whether a colon follows a node after at most some blanks."""
        return self._text[leaf.end : leaf.end + 80].lstrip(_LEADING).startswith(":")

    def _punctuation(self, start: int, end: int) -> None:
        """Write the brackets, commas, colons, comments and line breaks between two values."""
        breaks = 0
        gap = [*pieces(self._text, start, end)]
        for number, piece in enumerate(gap):
            if piece.kind == "break":
                breaks += 1
                continue
            if breaks and piece.text == "," and not self._has_comment:
                self._line += ","  # commas end lines, they do not begin them
                continue
            if breaks:
                closes = piece.kind == "mark" and piece.text in _CLOSING
                self._break_line(before_closing=closes, blank_line=breaks > 1)
                breaks = 0
            self._piece(piece, gap[number + 1 :])
        if breaks:
            self._break_line(before_closing=False, blank_line=breaks > 1)

    def _piece(self, piece: Piece, after: list[Piece]) -> None:
        """Write one piece between two values; `after` are the pieces that follow it there."""
        if piece.kind == "comment":
            self._has_comment = True
            self._line += piece.text if self._fresh else f" {piece.text}"
        elif piece.kind == "word" or piece.text == "?":
            self._word(piece.text)
        elif piece.text in _OPENING:
            self._word(piece.text)
            self._hanging.append(bool(after) and after[0].kind in ("break", "comment"))
        elif piece.text in _CLOSING:
            self._close_bracket(piece.text)
        else:
            self._line += f" {piece.text}" if self._colon else piece.text  # `a: ,`: nothing is a value
        self._colon = piece.text == ":"

    def _close_bracket(self, bracket: str) -> None:
        """Write a closing bracket in place of a comma before it; after a colon without a value, with a space."""
        self._hanging.pop()
        if not self._fresh and self._line.endswith(","):
            self._line = self._line[:-1]
        elif self._colon:
            self._line += " "
        self._line += bracket

    @property
    def _fresh(self) -> bool:
        """Return whether the current line, unless it is the first, is still blank."""
        return not self._line.strip() and bool(self._lines)

    def _word(self, word: str) -> None:
        """Write a word, with a space before it unless it begins a line or follows an opening bracket."""
        tight = not self._line or self._fresh or self._line[-1] in _OPENING
        self._line += word if tight else f" {word}"
        self._colon = False

    def _break_line(self, *, before_closing: bool, blank_line: bool) -> None:
        """End the current line and indent the next one, which begins with a closing bracket if `before_closing`. Keep a
        blank line between them if the text has one (`blank_line`), except before a closing bracket."""
        self._lines.append(self._line.rstrip())
        self._has_comment = False
        self._colon = False
        if blank_line and not before_closing:
            self._lines.append("")
        hanging = self._hanging[:-1] if before_closing else self._hanging
        depth = sum(hanging)
        if not before_closing or hanging:
            depth = max(depth, 1)
        self._line = " " * (self._column + STEP * depth)


def _leaves(node: Span) -> list[Span]:
    """Return the nodes without parts at and below a node, in the order of the text. Only flow collections have
    parts here.
    """
    if node.kind != "flow":
        return [node]
    leaves: list[Span] = []
    for part in node.parts:
        leaves += _leaves(part)
    return leaves


_CRLF: Final = "\r\n"


def format_text(text: str) -> str:
    """Return a netlist's text in the layout of docs/netlists/fmt.md.

    Comments, values and their spelling, and the order of everything stay. Formatting the result again changes nothing.
    The text must be YAML, but the netlist need not satisfy the rules.

    Raises UnreadableError for a text that is not a YAML document that could be a netlist, and InternalError should the
    result not have exactly the values of the text.
    """
    with no_collections():
        read_tree(text)
        written = Layout(text).write(read_spans(text))
        if not _has_same_values(text, written):
            raise InternalError("fmt would change a value: nothing was written")
    if _CRLF in text:
        return written.replace("\n", _CRLF)
    return written


def _has_same_values(before: str, after: str) -> bool:
    """Return whether two texts yield the same events of the parser, positions aside."""
    return all(old == new for old, new in zip(_values(before), _values(after), strict=False))


def _values(text: str) -> Iterator[Any]:
    """Yield the parser's events for a text as tuples without positions, and None at the end."""
    from yaml import events

    get_event = parser(text).get_event
    while True:
        event = get_event()
        yield (
            event.__class__,
            *(getattr(event, name, None) for name in ("anchor", "tag", "value", "style", "flow_style")),
        )
        if isinstance(event, events.StreamEndEvent):
            yield None
            return
