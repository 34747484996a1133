"""Parse YAML text into a tree of `nodes` with positions, in one pass over the parser's events.

The tree is built from libyaml's events rather than composed by PyYAML: one parse serves data and positions,
duplicate keys stay, and an alias is the same node object as its anchor (NETLIST 11.3 C1, C12). Tags are ignored,
`<<` is a key like any other.
"""

import os
import re
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.files import is_model, looks_like_archive

if TYPE_CHECKING:
    from yaml.error import Mark as YamlMark

OTHER_BREAKS = "\r\x85\u2028\u2029"
LINE_BREAK = f"\r\n|[\n{OTHER_BREAKS}]"
_OTHER_BREAK = re.compile(f"[{OTHER_BREAKS}]")
StrPath: TypeAlias = str | PathLike[str]
UNREADABLE = "V000"
NO_FILE = "there is no such file"
NOT_READ = "the file cannot be read"
MAX_BYTES = 16 << 20  # the largest netlist in circulation has 3.2 MB
MAX_DEPTH = 100  # a netlist needs 9 levels
MAX_NODES = 2_000_000  # aliases counted as often as they are used; the largest known netlist has 160,000
FREE_NODES = 100_000  # of any text: so that a short one is not refused for its density
LEAST_TEXT = 5  # characters for each node beyond those; the densest known netlist has 5.5


_TAB = "invalid YAML: a tab where only spaces are allowed"
_TOO_DEEP = f"this is not a netlist: nested deeper than {MAX_DEPTH} levels"


class UnreadableError(Exception):
    """The text is not a YAML document that could be a netlist. It is caught inside this package and reported as a
    finding."""

    def __init__(self, message: str, line: int = 1, column: int = 1, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint

    def diagnostic(self, path: str) -> Diagnostic:
        """Return the finding that reports this error for the file `path`."""
        return Diagnostic(
            path=path,
            rule=UNREADABLE,
            severity="error",
            message=self.message,
            line=self.line,
            column=self.column,
            end_column=self.column + 1,
            hint=self.hint,
        )


def read_bytes(path: StrPath) -> bytes:
    """Return the bytes of a netlist file. Raises UnreadableError if it cannot be read, is a model or an archive, or is
    too large."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than reading a netlist
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UnreadableError("this is a directory, not a netlist file") from None
    except FileNotFoundError:
        raise UnreadableError(NO_FILE) from None
    except OSError as error:
        raise UnreadableError(f"{NOT_READ}: {error.strerror or error}") from None
    except ValueError:  # a NUL character in the path
        raise UnreadableError("this is not the name of a file") from None
    if is_model(os.fspath(path)):
        raise UnreadableError(
            "this is a model, not a netlist: `buda-emu compile` makes a netlist of it, in Python buda_emu.compile"
        )
    if looks_like_archive(data):
        raise UnreadableError(
            "this is an archive, not a netlist; device images (*.tti) go to run, check, test, perf, numerics, advise, "
            "diff, route and graph, in Python to buda_emu.load_model (to call the model) and buda_emu.load_image"
        )
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"the file is larger than {MAX_BYTES >> 20} MiB")
    return data


def decode(data: bytes) -> str:
    """Return the text of a netlist file: UTF-8, without a byte order mark. Raises UnreadableError where it is not
    UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError("the file is not UTF-8 (it starts with a UTF-16 byte order mark)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise UnreadableError(f"the file is not UTF-8 text (byte 0x{data[error.start]:02x})", line, column) from None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as YAML counts them."""
    if _OTHER_BREAK.search(text):
        return re.split(LINE_BREAK, text)
    return text.split("\n")  # the usual case, and much faster


def read_tree(text: str) -> Mapping:
    """Parse the only document of a YAML text, which is a map. Raises UnreadableError for a text that is too large, no
    YAML, empty, or another kind of document."""
    if len(text) > MAX_BYTES:
        raise UnreadableError(f"the text is larger than {MAX_BYTES >> 20} MiB")
    root = read_any(text)
    if isinstance(root, Scalar) and root.is_null:
        raise UnreadableError("the document is empty")
    if not isinstance(root, Mapping):
        raise UnreadableError("a netlist is a map of sections", root.line, root.column)
    return root


def read_any(text: str) -> Node:
    """Parse the only document of a YAML text, of any kind, such as a part of a netlist. Raises UnreadableError."""
    from yaml.error import MarkedYAMLError, YAMLError
    from yaml.reader import ReaderError

    try:
        return _build(text)
    except MarkedYAMLError as error:
        line, column = _place(error.problem_mark or error.context_mark)
        lines = split_lines(text)
        if line > len(lines):  # the end of the text counts as a line of its own
            line = len(lines)
            column = len(lines[-1]) + 1
        # The parser has a limit of its own, far beyond ours, and looks ahead: it may come first.
        if "nesting depth" in (error.problem or ""):
            message = _TOO_DEEP
        elif lines[line - 1][column - 1 : column] == "\t":
            message = _TAB
        else:
            message = _error_message(error)
        raise UnreadableError(message, line, column) from None
    except ReaderError as error:
        before = text.encode()[: error.position].decode("utf-8", "replace")
        line_start = max(before.rfind("\n"), before.rfind("\r")) + 1
        line = before.count("\n") + before.count("\r") - before.count("\r\n") + 1
        raise UnreadableError(
            f"invalid YAML: {error.reason} (U+{_code_point(error.character):04X})", line, len(before) - line_start + 1
        ) from None
    except YAMLError as error:
        raise UnreadableError(f"invalid YAML: {error}") from None
    except UnicodeEncodeError as error:  # lone surrogates in a text given by the caller
        raise UnreadableError(f"the text is not Unicode: {error.reason}") from None


def _code_point(character: "str | bytes | int") -> int:
    """Return the code point of the character that the YAML reader refuses, which it gives in several types."""
    if isinstance(character, int):
        return character
    return ord(character[:1])


def _error_message(error: "object") -> str:
    """Return the message of a parser's error, with its context and the line where that begins."""
    problem = getattr(error, "problem", None) or "syntax error"
    context = getattr(error, "context", None)
    mark = getattr(error, "context_mark", None)
    if not context:
        return f"invalid YAML: {problem}"
    if mark is not None:
        context = f"{context} that starts in line {mark.line + 1}"
    return f"invalid YAML: {problem} ({context})"


def _place(mark: "YamlMark | None") -> tuple[int, int]:
    """Return line and column, counted from 1, of a parser's mark; the beginning of the text for None."""
    if mark is not None:
        return (mark.line + 1, mark.column + 1)
    return (1, 1)


def _build(text: str) -> Node:
    """Build the node tree from the parser's events. Raises UnreadableError for more nodes than a netlist has, and
    yaml.YAMLError. This is one tight loop because it takes most of the time in which a netlist is read."""
    from yaml import events

    get_event: Callable[[], Any] = parser(text).get_event
    scalar_event = events.ScalarEvent
    mapping_start = events.MappingStartEvent
    sequence_start = events.SequenceStartEvent
    mapping_end = events.MappingEndEvent
    sequence_end = events.SequenceEndEvent
    # Open collections: children so far, anchor, line and column, count of nodes before it.
    stack: list[tuple[list[Node], str | None, int, int, int]] = []
    children: list[Node] = []  # of the innermost open collection; keys and values alternate in a map
    anchors: dict[str, tuple[Node | None, int]] = {}  # node (None while it is open) and its size in nodes
    last_line = 0
    number = 1  # the line counted from 1: one int object for all nodes of a line
    count = 0
    limit = min(MAX_NODES, FREE_NODES + len(text) // LEAST_TEXT)
    while True:
        event = get_event()
        kind: Any = event.__class__
        if kind is scalar_event:
            start = event.start_mark
            end = event.end_mark
            line = start.line
            column = start.column
            if line != last_line:
                last_line = line
                number = line + 1
            node = Scalar(
                text=event.value,
                plain=not event.style,
                line=number,
                column=column + 1,
                end_column=(end.column if end.line == line else column + 1) + 1,
            )
            count += 1
            children.append(node)
            if event.anchor is not None:
                anchors[event.anchor] = (node, 1)
            if count > limit:
                raise _too_many_nodes_error(limit, start)
        elif kind is mapping_start or kind is sequence_start:
            start = event.start_mark
            anchor = event.anchor
            if anchor is not None:
                anchors[anchor] = (None, 0)
            if start.line != last_line:
                last_line = start.line
                number = start.line + 1
            stack.append((children, anchor, number, start.column + 1, count))
            count += 1
            children = []
            if len(stack) > MAX_DEPTH:
                raise UnreadableError(_TOO_DEEP, *_place(start))
            if count > limit:
                raise _too_many_nodes_error(limit, start)
        elif kind is mapping_end or kind is sequence_end:
            end = event.end_mark
            inner = children
            children, anchor, line, column, before = stack.pop()
            # A flow collection on one line is underlined whole, any other one at its first character.
            if end.line + 1 == line and end.column > column:
                stop = end.column + 1
            else:
                stop = column + 1
            collection: Sequence | Mapping
            if kind is sequence_end:
                collection = Sequence(inner, line, column, stop)
            else:
                collection = Mapping(list(zip(inner[::2], inner[1::2], strict=True)), line, column, stop)
            children.append(collection)
            if anchor is not None:
                anchors[anchor] = (collection, count - before)
        elif kind is events.AliasEvent:
            target, size = anchors.get(event.anchor, (None, -1))
            if target is None:
                if size < 0:
                    problem = "is not defined before its use"
                else:
                    problem = "contains itself"
                raise UnreadableError(f"alias *{event.anchor} {problem}", *_place(event.start_mark))
            count += size
            if count > limit:
                raise _too_many_nodes_error(limit, event.start_mark)
            children.append(target)
        elif kind is events.DocumentEndEvent and len(children) > 1:
            extra = children.pop()
            if not (isinstance(extra, Scalar) and extra.is_null):
                raise UnreadableError("a second YAML document starts here; a netlist is one", extra.line, extra.column)
        elif kind is events.StreamEndEvent:
            if children:
                return children[0]
            return Scalar(text="", plain=True, line=1, column=1, end_column=2)


def _too_many_nodes_error(limit: int, mark: "YamlMark") -> UnreadableError:
    """Return the error about a text with more than `limit` nodes; `mark` is the place of the first beyond it."""
    return UnreadableError(
        f"this is not a netlist: more than {limit:,} nodes once aliases are followed, which is more than its "
        "size allows",
        *_place(mark),
    )


def parser(text: str) -> Any:
    """Return PyYAML's parser for a text, libyaml's if it is installed; callers use its `get_event`."""
    try:
        from yaml import CSafeLoader as Loader
    except ImportError:  # PyYAML without libyaml: the same events, slower
        from yaml import SafeLoader as Loader
    return Loader(text)
