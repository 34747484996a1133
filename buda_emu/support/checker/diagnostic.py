"""A finding about a document: its rule, its place (a line, a JSON pointer, or a byte offset), its reason and its likely
fix."""

from typing import Literal, Protocol, TypeAlias

from buda_emu.support.checker.fix import Fix
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place in a text. Line and column count from 1; `end_column` is one past the last character on the line."""

    line: int
    column: int = 1
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class ByteOffset:
    """A place in a binary file: bytes from its beginning, and the element there (`DmaHint.size_in_bytes`)."""

    offset: int
    element: str = ""


class Marked(Protocol):
    """An object that has a line and columns, such as a node of a parsed tree."""

    @property
    def line(self) -> int: ...  # noqa: D102
    @property
    def column(self) -> int: ...  # noqa: D102
    @property
    def end_column(self) -> int: ...  # noqa: D102


Place: TypeAlias = "str | ByteOffset | Marked"
"""A text is a JSON pointer (`0/3/buffer/1/address`); "" is the document as a whole."""


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding; `hint` is a suggestion such as "did you mean 'queue'?".

    Its place is a line and column, which count from 1; or a JSON pointer; or a byte `offset` and the `element` that
    stands there, such as `DmaHint.size_in_bytes`. A line of 0, an empty pointer and no offset: the document as a whole.
    `fix`: the hint as edits of the text, where it says exactly what to change.
    """

    path: str
    rule: str
    severity: Severity
    message: str
    line: int = 0
    column: int = 0
    end_column: int = 0
    source_line: str = ""
    hint: str = ""
    pointer: str = ""
    offset: int | None = None
    element: str = ""
    fix: Fix | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.where}: {self.severity}[{self.rule}]: {self.message}"

    @classmethod
    def at(cls, place: Place, path: str, rule: str, severity: Severity, message: str, hint: str = "") -> "Diagnostic":
        """Return a diagnostic at a place of any kind."""
        if isinstance(place, str):
            return cls(path, rule, severity, message, hint=hint, pointer=place)
        if isinstance(place, ByteOffset):
            return cls(path, rule, severity, message, hint=hint, offset=place.offset, element=place.element)
        return cls(path, rule, severity, message, place.line, place.column, place.end_column, "", hint)

    @property
    def where(self) -> str:
        """The place as messages give it: `5:27`, `0/3/buffer/1/address`, `0x1f40 DmaHint.size_in_bytes`, or ""."""
        if self.pointer:
            return self.pointer
        if self.offset is not None:
            return f"{self.offset:#x} {self.element}".rstrip()
        return f"{self.line}:{self.column}" if self.line else self.element

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key of the findings of one document: their place, then the rule. Numbers in pointers sort as
        numbers."""
        offset = -1 if self.offset is None else self.offset
        return self.line, self.column, offset, [_step_order(step) for step in self.pointer.split("/")], self.rule


def _step_order(step: str) -> tuple[bool, int, str]:
    """Return the sort key of one step of a JSON pointer: numbers by value, before all names."""
    if step.isdecimal():
        return False, int(step), step
    return True, 0, step
