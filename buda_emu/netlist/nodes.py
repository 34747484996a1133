"""The YAML tree with positions: the content of the text before it is interpreted.

Scalars keep their text; what a text means (integer, bool, float, word) is decided by the reader of a field
(`buda_emu.netlist.yaml_text`), as the reference does. Duplicate keys are kept in order (NETLIST 11.3 C1).
"""

from collections.abc import Iterator
from typing import TypeAlias

from buda_emu.support.checker.diagnostic import TextPlace as Mark

NULL_WORDS = frozenset(("", "~", "null", "Null", "NULL"))


# Plain slotted classes, not dataclasses: a large netlist has 70,000 of them and they are built in a loop.
class Scalar:
    """One scalar. `plain` is False when it was quoted or written as a block; `None` text does not exist: null is ""."""

    __slots__ = ("column", "end_column", "line", "plain", "text")

    def __init__(self, text: str, plain: bool, line: int, column: int, end_column: int) -> None:
        self.text = text
        self.plain = plain
        self.line = line
        self.column = column
        self.end_column = end_column

    @property
    def mark(self) -> Mark:
        """Where it stands."""
        return Mark(self.line, self.column, self.end_column)

    @property
    def is_null(self) -> bool:
        """Nothing, `~` or a plain `null`."""
        return self.plain and self.text in NULL_WORDS


class Sequence:
    """A YAML list."""

    __slots__ = ("column", "end_column", "items", "line")

    def __init__(self, items: "list[Node]", line: int, column: int, end_column: int) -> None:
        self.items = items
        self.line = line
        self.column = column
        self.end_column = end_column

    @property
    def mark(self) -> Mark:
        """Where it starts."""
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
        """Where it starts."""
        return Mark(self.line, self.column, self.end_column)

    def items(self) -> "Iterator[tuple[str, Scalar, Node]]":
        """(key text, key node, value) of every pair whose key is a scalar."""
        for key, value in self.pairs:
            if isinstance(key, Scalar):
                yield key.text, key, value

    def find(self, key: str) -> "Node | None":
        """The value of the last pair with that key."""
        found: Node | None = None
        for text, _, value in self.items():
            if text == key:
                found = value
        return found


def words(values: "dict[str, str]") -> Mapping:
    """A map of words that stands in no text."""
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


def same(one: Node, other: Node) -> bool:
    """Do they say the same, wherever they stand?"""
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return one.text == other.text and one.is_null == other.is_null
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one.items) == len(other.items) and all(map(same, one.items, other.items))
    if isinstance(one, Mapping) and isinstance(other, Mapping) and len(one.pairs) == len(other.pairs):
        return all(same(a, b) and same(c, d) for (a, c), (b, d) in zip(one.pairs, other.pairs, strict=True))
    return False
