"""Places in a document: a line, a JSON pointer, or a byte offset."""

from typing import Protocol, TypeAlias

from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class TextPlace:
    """In a text: line and column count from 1, `end_column` is one past the last character on the line."""

    line: int
    column: int = 1
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class ByteOffset:
    """In a binary file: bytes from its beginning, and what stands there (`DmaHint.size_in_bytes`)."""

    offset: int
    element: str = ""


class Marked(Protocol):
    """Anything that knows its line and columns, such as a node of a tree that was read."""

    @property
    def line(self) -> int: ...  # noqa: D102
    @property
    def column(self) -> int: ...  # noqa: D102
    @property
    def end_column(self) -> int: ...  # noqa: D102


Place: TypeAlias = "str | ByteOffset | Marked"
"""A text is a JSON pointer (`0/3/buffer/1/address`); "" is the document as a whole."""
