"""The YAML tree with positions: the content of the text before it is interpreted.

Scalars keep their text; the reader of a field decides whether it is an integer, bool, float or word
(`buda_emu.netlist.yaml_text`), as the reference does. Duplicate keys are kept in order (NETLIST 11.3 C1).
"""

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from buda_emu.support.checker.diagnostic import TextPlace as Mark

NULL_WORDS = frozenset(("", "~", "null", "Null", "NULL"))


# Plain slotted classes, not dataclasses: a large netlist has 70,000 of them and they are built in a loop.
class Scalar:
    """One scalar and its text, which is empty for a missing value. `plain` is False when it is quoted or written as a
    block."""

    __slots__ = ("column", "end_column", "line", "plain", "text")

    def __init__(self, text: str, plain: bool, line: int, column: int, end_column: int) -> None:
        self.text = text
        self.plain = plain
        self.line = line
        self.column = column
        self.end_column = end_column

    @property
    def mark(self) -> Mark:
        """Return the place of the scalar in the text."""
        return Mark(self.line, self.column, self.end_column)

    @property
    def is_null(self) -> bool:
        """Return whether it is empty, `~` or a plain `null`."""
        return self.plain and self.text in NULL_WORDS


class Sequence:
    """A YAML list: its nodes and the place of its first character."""

    __slots__ = ("column", "end_column", "items", "line")

    def __init__(self, items: "list[Node]", line: int, column: int, end_column: int) -> None:
        self.items = items
        self.line = line
        self.column = column
        self.end_column = end_column

    @property
    def mark(self) -> Mark:
        """Return the place of the list in the text."""
        return Mark(self.line, self.column, self.end_column)


class Mapping:
    """A YAML map as its pairs in document order, repeated keys included."""

    __slots__ = ("column", "end_column", "line", "pairs")

    def __init__(self, pairs: "list[tuple[Node, Node]]", line: int, column: int, end_column: int) -> None:
        self.pairs = pairs
        self.line = line
        self.column = column
        self.end_column = end_column

    @property
    def mark(self) -> Mark:
        """Return the place of the map in the text."""
        return Mark(self.line, self.column, self.end_column)

    def items(self) -> "Iterator[tuple[str, Scalar, Node]]":
        """Yield key text, key node and value of every pair whose key is a scalar."""
        for key, value in self.pairs:
            if isinstance(key, Scalar):
                yield key.text, key, value

    def find(self, key: str) -> "Node | None":
        """Return the value of the last pair whose key has this text, or None."""
        last: Node | None = None
        for text, _, value in self.items():
            if text == key:
                last = value
        return last


def words(values: "dict[str, str]") -> Mapping:
    """Return a map node from keys and words that stand in no text; its marks are those of the first line."""
    pairs: list[tuple[Node, Node]] = []
    for key, word in values.items():
        pairs.append(
            (
                Scalar(text=key, plain=True, line=1, column=1, end_column=1),
                Scalar(text=word, plain=True, line=1, column=1, end_column=1),
            )
        )
    return Mapping(pairs, 1, 1, 1)


Node: TypeAlias = Scalar | Sequence | Mapping


def same(left: Node, right: Node) -> bool:
    """Return whether two trees have equal content; marks and quotes do not count."""
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        return left.text == right.text and left.is_null == right.is_null
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        return _all_same(left.items, right.items)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        left_nodes = list(chain.from_iterable(left.pairs))
        right_nodes = list(chain.from_iterable(right.pairs))
        return _all_same(left_nodes, right_nodes)
    return False


def _all_same(left: "list[Node]", right: "list[Node]") -> bool:
    """Return whether two lists of nodes are equally long and pairwise the same."""
    return len(left) == len(right) and all(map(same, left, right))
