"""The reason for which a run stopped."""

from typing import Literal

from buda_emu.debugger.machine.position import Position
from buda_emu.errors import HostError
from buda_emu.records import dataclass

Reason = Literal["start", "step", "breakpoint", "interrupted", "end", "error"]
Event = Literal["instruction", "op", "result", "stored"]
"""Between which steps a run can be held: before an instruction, before an op, after it, and when an input's results are
in their queues."""


@dataclass(frozen=True, slots=True)
class Stop:
    """`breakpoints`: numbers of those that hit; `text`: in words; `error`: what ended the program."""

    reason: Reason
    position: Position
    text: str = ""
    breakpoints: tuple[int, ...] = ()
    error: BaseException | None = None


class StoppedShortError(HostError):
    """Somebody interrupted the run on its way to a moment that was to be looked at."""

    def __init__(self) -> None:
        super().__init__("interrupted before it was found")
