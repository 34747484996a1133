"""Edits in the text of a netlist: only the values change, comments and layout stay.

Places come from the tree of the loaded document. The new text is read again and must give the edited netlist. A value
that several objects share (an alias, a graph that stands for several chips) cannot be edited for one of them.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from buda_emu.netlist import nodes
from buda_emu.netlist.load import NetlistResult, check_bytes
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.yaml_reader import decode
from buda_emu.performance.advice.edits import Edit, apply_edits

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM: Final = b"\xef\xbb\xbf"


class UnwritableError(Exception):
    """An edit that cannot be written into the text. The message says why."""


def patch_text(data: bytes, netlist: Netlist, edits: Iterable[Edit]) -> bytes:
    """Return `data`, the text from which `netlist` was read, with the new values in place. Raises UnwritableError for
    an edit that has no place of its own in the text. The result is not read again: see `check_patch`."""
    text = decode(data)
    starts = [0, *(line_break.end() for line_break in _BREAK.finditer(text))]
    changes = [_text_change(_Text(text, starts), netlist, edit) for edit in edits]
    changes.sort(key=lambda change: (change[0], change[1]))
    parts: list[str] = []
    at = 0
    for start, end, new in changes:
        if start < at:
            raise UnwritableError("two edits meet in one place of the text")
        parts += [text[at:start], new]
        at = end
    result = ("".join(parts) + text[at:]).encode("utf-8")
    if data.startswith(_BOM):
        return _BOM + result
    return result


def check_patch(data: bytes, netlist: Netlist, edits: Sequence[Edit]) -> tuple[bytes, NetlistResult]:
    """Return the text with the edits written into it, and the result of checking it, which may have errors. Raises
    UnwritableError for an edit that has no place in the text, and if the new text does not read as the edited
    netlist."""
    new = patch_text(data, netlist, edits)
    result = check_bytes(new, netlist.path, netlist.arch_name)
    if result.netlist is not None:
        meant = apply_edits(netlist, edits)
        if result.netlist.ops != meant.ops or dict(result.netlist.queues) != dict(meant.queues):
            raise UnwritableError("other objects share the text that would have to change")
    return new, result


class _Text:
    def __init__(self, text: str, starts: Sequence[int]) -> None:
        self.text = text
        self._starts = starts

    def start(self, node: nodes.Node) -> int:
        """Return the position of a node's first character."""
        return self._starts[node.line - 1] + node.column - 1

    def end(self, node: nodes.Node) -> int:
        """Return the position after a node's last character. Raises UnwritableError for a value of several lines."""
        start = self.start(node)
        if isinstance(node, nodes.Scalar):
            if node.end_column <= node.column + 1 and len(node.text) > 1:
                raise UnwritableError(f"a value of several lines in line {node.line}")
            return self._starts[node.line - 1] + node.end_column - 1
        if self.text[start] in "[{":
            return self._closing_bracket(start)
        if isinstance(node, nodes.Sequence):
            children = node.items
        else:
            children = list(chain.from_iterable(node.pairs))
        return max((self.end(child) for child in children), default=start)

    def _closing_bracket(self, start: int) -> int:
        """Return the position after the bracket that closes the one at `start`. Brackets in quotes and comments do not
        count. Raises UnwritableError if it is not closed."""
        depth = 0
        at = start
        for match in _FLOW.finditer(self.text, start):
            word = match[0]
            at = match.end()
            depth += word in "[{"
            depth -= word in "]}"
            if depth == 0:
                return at
        raise UnwritableError("a list that is not closed")


_COMMENT: Final = re.compile(r"(?<=\s)#")
_FLOW: Final = re.compile(r"""[\[\]{}]|"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|(?<!\S)\#[^\n]*""", re.DOTALL)


def _text_change(text: _Text, netlist: Netlist, edit: Edit) -> tuple[int, int, str]:
    """Return (start, end, new text) for the part of the text that an edit replaces. Raises UnwritableError if the text
    has no such key and no map to write it into, if a value has several lines, or if a comment is inside of it."""
    if edit.kind == "op":
        entity = netlist.ops[edit.name]
    else:
        entity = netlist.queues[edit.name]
    node = entity.source
    for depth, key in enumerate(edit.path):
        below = _child_node(node, key)
        if below is None:
            return _insert_key(text, node, edit.path[depth:], edit.text)
        node = below
    assert node is not None
    start = text.start(node)
    end = text.end(node)
    if _COMMENT.search(text.text, start, end):
        raise UnwritableError(f"a comment is inside of {'.'.join(map(str, edit.path))} of {edit.name}")
    return start, end, edit.text


def _child_node(node: nodes.Node | None, key: str | int) -> nodes.Node | None:
    """Return the node at a string key of a map, None if the map lacks it, or at a number of a list. Raises
    UnwritableError if the node is no such map or list."""
    if isinstance(node, nodes.Mapping) and isinstance(key, str):
        return node.find(key)
    if isinstance(node, nodes.Sequence) and isinstance(key, int):
        return node.items[key]
    raise UnwritableError(f"there is no {key} in the text")


def _insert_key(text: _Text, node: nodes.Node | None, path: Sequence[str | int], value: str) -> tuple[int, int, str]:
    """Return the change of text (start, end, new text) that inserts a key with a value after the last one of its map
    `node`; further keys of `path` become maps in it. Raises UnwritableError if there is no such map, or it is empty."""
    if not isinstance(node, nodes.Mapping) or not node.pairs:
        raise UnwritableError(f"there is no map to write {path[0]} into")
    for key in reversed(path[1:]):
        value = f"{{{key}: {value}}}"
    first = node.pairs[0][0]
    (_, last) = node.pairs[-1]
    end = text.end(last)
    if text.text[text.start(node)] == "{":
        return end, end, f", {path[0]}: {value}"
    line_break = _BREAK.search(text.text, end)  # a comment stays after the value it follows
    if line_break is not None:
        line_end = line_break.start()
    else:
        line_end = len(text.text)
    return line_end, line_end, f"\n{' ' * (first.column - 1)}{path[0]}: {value}"
