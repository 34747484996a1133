"""The answer of a command: lines for people, and the same as plain data for programs."""

from dataclasses import field
from typing import Any

from buda_emu.support.records import dataclass
from buda_emu.support.screen import lines_of


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind` says what `data` has."""

    kind: str
    lines: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict[str, Any])


def answer(kind: str, lines: "list[str] | tuple[str, ...] | str", **data: Any) -> Answer:
    """Of a text or lines."""
    found = tuple(lines_of(lines)) if isinstance(lines, str) else tuple(lines)
    return Answer(kind, found, data)
