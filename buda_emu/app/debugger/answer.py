"""The answer of a debugger command: lines for people, and the same facts as plain data for programs."""

from dataclasses import field
from typing import Any

from buda_emu.support.records import dataclass
from buda_emu.support.screen import lines_of


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one command. `kind` names the command's form of answer and thereby the keys of `data`; `lines` are
    printed."""

    kind: str
    lines: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict[str, Any])


def answer(kind: str, lines: "list[str] | tuple[str, ...] | str", **data: Any) -> Answer:
    """Build an `Answer` from a text, which is split into lines, or from lines, with `data` as its plain data."""
    if isinstance(lines, str):
        lines = lines_of(lines)
    return Answer(kind, tuple(lines), data)
