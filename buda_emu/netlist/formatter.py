"""The formatter: text to the same text in one layout, without a change of comments and values."""

import re
from collections.abc import Callable, Iterator
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
    """A comment, a line break, a word (anchor, tag, document marker, directive) or a mark such as `{`; `start` is an
    index into the text."""

    kind: Literal["comment", "break", "word", "mark"]
    text: str
    start: int


def pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """Those of text[start:end], which holds no value."""
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
    """One node. `start` and `end` are indices into the text (an `end` is one past the last character), `column` counts
    from 0. `map` and `list` are written as blocks, a `flow` is a map or list in brackets; `parts` are the nodes in it,
    keys and values in turn for a map (`pairs`). `properties`: anchor and tag of a block, which stand before it.
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
"""Of all nodes without parts, of which a text has very many."""


def read_spans(text: str) -> Span:
    """The root of the only document; a text that `read_tree` accepts. Raises UnreadableError."""
    from yaml import events

    get_event: Callable[[], Any] = parser(text).get_event
    stack: list[Span] = []
    root: Span | None = None
    while True:
        event = get_event()
        if isinstance(event, events.StreamEndEvent):
            break
        if isinstance(event, events.CollectionEndEvent):
            closed = stack.pop()
            if closed.kind == "flow":
                closed.end = event.end_mark.index
            elif closed.parts:
                closed.end = closed.parts[-1].end
            continue
        node = _opened(text, event, events)
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


def _opened(text: str, event: Any, events: Any) -> Span | None:
    """The node that an event begins, if it begins one."""
    start = event.start_mark.index
    if isinstance(event, events.AliasEvent):
        return Span("alias", start, event.end_mark.index, event.start_mark.column)
    if isinstance(event, events.ScalarEvent):
        return Span("scalar", start, _scalar_end(text, event), event.start_mark.column)
    if not isinstance(event, events.CollectionStartEvent):
        return None
    pairs = isinstance(event, events.MappingStartEvent)
    kind: Kind = "flow" if event.flow_style else "map" if pairs else "list"
    node = Span(kind, start, event.end_mark.index, event.start_mark.column)
    node.pairs = pairs
    properties = _PROPERTIES.match(text, start) if event.anchor or event.tag else None
    if properties is not None and kind != "flow":
        node.properties = properties[0].rstrip()
    return node


def _scalar_end(text: str, event: Any) -> int:
    """A block scalar is said to end where the next token starts: its last line counts, and with `+` all after it."""
    start = event.start_mark.index
    end = event.end_mark.index
    if event.style not in ("|", ">"):
        return end
    written = text[start:end]
    header = written.split("\n", 1)[0].split(" #", 1)[0]
    kept = written.rstrip(" \n") if "+" not in header else written.rstrip(" ").removesuffix("\n")
    return start + len(kept)


STEP: Final = 2  # columns for each level
_BREAK: Final = re.compile(r"[ \t]*(?:\r\n|[\r\n])")  # others, such as U+2028, are a part of the value
_LEADING: Final = " \t"
_MOST_OF_KEY: Final = 1000  # YAML allows 1024 characters of a key that stands before its colon
_OPENING = "{["
_CLOSING = "}]"


class Layout:
    """Writes the lines of one text again. `at`: how far the text has been written; `levels`: for each open block, and
    those that were closed since the last entry, the column it had and the column it has now."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[str] = []
        self._at = 0
        self._levels: list[tuple[int, int]] = []

    def write(self, root: Span) -> str:
        """The whole text. Raises UnreadableError for a key that is not a name."""
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
        """`head`: what stands on the line already when the first entry follows there, such as `- `."""
        depth = len(self._levels) + 1
        self._levels.append((node.parts[0].column if node.kind == "map" else node.column, column))
        entries = zip(node.parts[::2], node.parts[1::2], strict=True) if node.kind == "map" else node.parts
        for number, entry in enumerate(entries):
            first = entry if isinstance(entry, Span) else entry[0]
            if number:
                head = ""
                self._advance(first.start, depth)
            elif not head:
                self._advance(first.start, depth)
            start = head or " " * column
            if isinstance(entry, Span):
                self._entry(f"{start}-", entry, column, depth)
            else:
                self._entry(f"{start}{self._key(entry[0])}:", entry[1], column, depth)

    def _entry(self, head: str, value: Span, column: int, depth: int) -> None:
        """A key with its colon or the dash of a list, and what follows it."""
        inside = column + STEP
        del self._levels[depth:]
        noted = self._note_before(value)
        if value.kind in ("map", "list"):
            head = f"{head} {value.properties}" if value.properties else head
            inline = head.endswith("-") and not noted and not value.properties
            if inline:
                self._at = self._first(value)
                self._block(value, inside, f"{head} ")
            else:
                self._append("", head)
                self._at = value.start + len(value.properties) if value.properties else self._at
                self._block(value, inside)
            return
        if noted and value.end > value.start:
            self._append("", head)
            self._levels.append((value.column, inside))
            self._advance(value.start, depth + 1)
            head = " " * inside
            self._append(head, self._value(value, inside))
            return
        written = self._value(value, column)
        self._append(f"{head} " if written else head, written)

    def _first(self, node: Span) -> int:
        """Where the first value of a block starts."""
        while node.kind in ("map", "list"):
            node = node.parts[0]
        return node.start

    def _note_before(self, value: Span) -> bool:
        """Whether a comment stands between a key and its value."""
        start = self._first(value) if value.kind == "map" else value.start
        return any(piece.kind == "comment" for piece in pieces(self._text, self._at, max(start, self._at)))

    def _key(self, key: Span) -> str:
        written = self._text[key.start : key.end]
        if key.kind not in ("scalar", "alias") or "\n" in written or len(written) > _MOST_OF_KEY:
            line = self._text.count("\n", 0, key.start) + 1
            raise UnreadableError("a key needs to be a name on one line", line, key.column + 1)
        self._at = key.end
        return f"{written} " if key.kind == "alias" else written

    # ------------------------------------------------------------------------------------------------------- values
    def _value(self, node: Span, column: int) -> str:
        """A scalar, or what stands in brackets; further lines of it are indented with respect to `column`."""
        self._at = node.end
        if node.kind == "flow":
            return _Brackets(self._text, node, column).written()
        return _scalar(self._text, node, column)

    # ------------------------------------------------------------------------------------------- comments, blank lines
    def _advance(self, to: int, depth: int) -> None:
        """Write the comments and blank lines up to an index. `depth`: the level of what stands there; a comment belongs
        to it, or to a deeper block that has just ended when it stands at least as far in."""
        found: list[tuple[bool, str, int]] = []  # blank line before it, text, level
        breaks = 1 if not self._lines else 0
        for piece in pieces(self._text, self._at, to):
            if piece.kind == "break":
                breaks += 1
            elif piece.kind == "comment" and not breaks:
                self._lines[-1] += f" {piece.text}"
            elif piece.text == "...":  # ends the document; a netlist is one
                breaks -= 1
            elif piece.kind == "comment" or (piece.kind == "word" and piece.text[0] not in "&!"):
                found.append((breaks > 1, piece.text, self._level(piece, depth)))
                breaks = 0
        self._at = to
        blank = breaks > 1
        if depth == 1 and self._lines and to < len(self._text):  # a section is set apart from the one before it
            outer = next((number for number, one in enumerate(found) if one[2] == 0), len(found))
            if outer == len(found):
                blank = True
            elif not blank and not any(one[0] for one in found[outer:]):
                found[outer] = (True, *found[outer][1:])
        for before, text, level in found:
            self._line(" " * self._levels[level][1] + text if self._levels else text, before)
        if blank and self._lines and to < len(self._text):
            self._lines.append("")

    def _level(self, piece: Piece, depth: int) -> int:
        line = self._text.rfind("\n", 0, piece.start) + 1
        for other in OTHER_BREAKS:
            line = max(line, self._text.rfind(other, line, piece.start) + 1)
        column = piece.start - line
        deeper = [level for level in range(depth, len(self._levels)) if self._levels[level][0] <= column]
        return deeper[-1] if deeper else max(depth - 1, 0)

    def _line(self, line: str, blank: bool) -> None:
        if blank and self._lines and self._lines[-1]:
            self._lines.append("")
        self._lines.append(line)

    def _append(self, head: str, written: str) -> None:
        self._lines += f"{head}{written}".split("\n")


def _scalar(text: str, node: Span, column: int) -> str:
    """A scalar as it is spelt; further lines are indented one level."""
    written = text[node.start : node.end]
    first, *others = _BREAK.split(written)
    if not others:
        return written
    pad = " " * (column + STEP)
    if not re.match(r"(?:[&!]\S*[ \t]+)*[|>]", first):  # YAML folds lines and drops what they begin with
        return "\n".join([first, *(f"{pad}{line.lstrip(_LEADING)}" if line.strip() else "" for line in others)])
    indents = [len(line) - len(line.lstrip(" ")) for line in others if line.strip()]
    given = re.search(r"[|>][+-]?([1-9])", first)
    least = min(indents, default=0) if given is None else _block_indent(text, node) + int(given[1])
    pad = " " * (column + (STEP if given is None else int(given[1])))
    return "\n".join([first, *(f"{pad}{line[least:]}" if line.strip() else "" for line in others)])


def _block_indent(text: str, node: Span) -> int:
    """How far the line that a block scalar starts on is indented, dashes of lists included."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    return len(line) - len(line.lstrip(" -"))


class _Brackets:
    """What stands in brackets: line breaks stay where they are, a line is indented by the brackets that are open at its
    beginning and that a line ended with, at least one level as long as a bracket is open."""

    def __init__(self, text: str, node: Span, column: int) -> None:
        self._text = text
        self._node = node
        self._column = column
        self._lines: list[str] = []
        self._line = ""
        self._noted = False  # the line ends with a comment
        self._colon = False  # and with the colon after a key
        self._hanging: list[bool] = []  # for each open bracket whether its line ended with it

    def written(self) -> str:
        """The text, without indentation of its first line."""
        at = self._node.start
        for leaf in _leaves(self._node):
            self._punctuation(at, leaf.start)
            if leaf.end > leaf.start:
                value = _scalar(self._text, leaf, self._column)
                value = f"{value} " if leaf.kind == "alias" and self._is_key(leaf) else value
                self._word(value)
            at = leaf.end
        self._punctuation(at, self._node.end)
        return "\n".join([*self._lines, self._line])

    def _is_key(self, leaf: Span) -> bool:
        return self._text[leaf.end : leaf.end + 80].lstrip(_LEADING).startswith(":")

    def _punctuation(self, start: int, end: int) -> None:
        breaks = 0
        found = [*pieces(self._text, start, end)]
        for number, piece in enumerate(found):
            if piece.kind == "break":
                breaks += 1
                continue
            if breaks and piece.text == "," and not self._noted:
                self._line += ","  # commas end lines, they do not begin them
                continue
            if breaks:
                self._break(piece.kind == "mark" and piece.text in _CLOSING, breaks > 1)
                breaks = 0
            self._piece(piece, found[number + 1 :])
        if breaks:
            self._break(False, breaks > 1)

    def _piece(self, piece: Piece, after: list[Piece]) -> None:
        if piece.kind == "comment":
            self._noted = True
            self._line += f"{'' if self._fresh else ' '}{piece.text}"
        elif piece.kind == "word" or piece.text == "?":
            self._word(piece.text)
        elif piece.text in _OPENING:
            self._word(piece.text)
            self._hanging.append(bool(after) and after[0].kind in ("break", "comment"))
        elif piece.text in _CLOSING:
            self._hanging.pop()
            if not self._fresh and self._line.endswith(","):
                self._line = self._line[:-1]
            elif self._colon:
                self._line += " "
            self._line += piece.text
        else:
            self._line += f" {piece.text}" if self._colon else piece.text  # `a: ,`: nothing is a value
        self._colon = piece.text == ":"

    @property
    def _fresh(self) -> bool:
        """Whether nothing stands on this line yet."""
        return not self._line.strip() and bool(self._lines)

    def _word(self, word: str) -> None:
        tight = not self._line or self._fresh or self._line[-1] in _OPENING
        self._line += word if tight else f" {word}"
        self._colon = False

    def _break(self, closes: bool, blank: bool) -> None:
        self._lines.append(self._line.rstrip())
        self._noted = self._colon = False
        if blank and not closes:
            self._lines.append("")
        hanging = self._hanging[:-1] if closes else self._hanging
        depth = sum(hanging)
        if not closes or hanging:
            depth = max(depth, 1)
        self._line = " " * (self._column + STEP * depth)


def _leaves(node: Span) -> list[Span]:
    if node.kind != "flow":
        return [node]
    return [leaf for part in node.parts for leaf in _leaves(part)]


_CRLF: Final = "\r\n"


def formatted(text: str) -> str:
    """A netlist's text in the layout of docs/netlists/fmt.md. Comments, values and their spelling, and the order of
    everything stay; done twice it changes nothing more. What the rules say of the netlist does not matter, only that it
    is YAML.

    Raises UnreadableError for what is not a YAML document that could be a netlist, InternalError should the result not
    hold the very values of the text.
    """
    with no_collections():
        read_tree(text)
        written = Layout(text).write(read_spans(text))
        if not _same(text, written):
            raise InternalError("fmt would change a value: nothing was written")
    return written.replace("\n", _CRLF) if _CRLF in text else written


def _same(before: str, after: str) -> bool:
    return all(one == other for one, other in zip(_values(before), _values(after), strict=False))


def _values(text: str) -> Iterator[Any]:
    """What the parser says of a text, its places left out; None at the end."""
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
