"""A finding about a document: what rule, where, why, and the likely fix (DESIGN: errors)."""

from typing import Literal

from buda_emu.checker.fix import Fix
from buda_emu.checker.place import ByteOffset, Place
from buda_emu.records import dataclass

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

    @classmethod
    def at(cls, place: Place, path: str, rule: str, severity: Severity, message: str, hint: str = "") -> "Diagnostic":
        """A finding at a place of any kind."""
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
        """What findings of one document are sorted by: their place, then the rule. Numbers in pointers are numbers."""
        steps = [(not step.isdecimal(), int(step) if step.isdecimal() else 0, step) for step in self.pointer.split("/")]
        return self.line, self.column, -1 if self.offset is None else self.offset, steps, self.rule
