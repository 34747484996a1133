"""A YAML text as a tree of spans: indices into the text, so that every part can be written again unchanged.

`yaml_reader` makes the tree of values, which has lines and columns of what a finding speaks of; this one has the end of
every node, how it is written, and the properties (anchor, tag) before it.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from buda_emu.netlist.yaml_reader import UnreadableError, parser

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
    start, end = event.start_mark.index, event.end_mark.index
    if event.style not in ("|", ">"):
        return end
    written = text[start:end]
    header = written.split("\n", 1)[0].split(" #", 1)[0]
    kept = written.rstrip(" \n") if "+" not in header else written.rstrip(" ").removesuffix("\n")
    return start + len(kept)
