"""Positions in a run, the goals at which it is to stop, the reasons for which it stopped, and requests to stop."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from signal import SIGINT, default_int_handler
from threading import current_thread, main_thread
from typing import Any, Final, Literal, NamedTuple

from buda_emu.support.errors import HostError
from buda_emu.support.interrupt import interrupt
from buda_emu.support.records import dataclass

BEFORE: Final = -1
"""As an input: the epoch has not begun."""
STORED: Final = 1 << 30
"""As a step: the input is through, and its results are in their queues."""


class Position(NamedTuple):
    """`instruction`: how many have begun, in all programs together; `input`: of the epoch, from 0; `step`: twice the
    number of the op in the order of the epoch, plus one when it has run. Positions are ordered as they are run."""

    instruction: int
    input: int = BEFORE
    step: int = 0

    @property
    def in_epoch(self) -> bool:
        """Is it within an epoch?"""
        return self.input != BEFORE

    def __str__(self) -> str:
        if not self.in_epoch:
            return f"{self.instruction}"
        step = "stored" if self.step == STORED else f"{self.step // 2}{'+' if self.step % 2 else ''}"
        return f"{self.instruction}.{self.input + 1}.{step}"


START: Final = Position(0)
"""Before the first program."""


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


Kind = Literal["step", "next", "input", "epoch", "finish", "until", "continue", "position"]


@dataclass(frozen=True, slots=True)
class Moment:
    """What goals look at, at an event. `loops`: how many are being run; `index`: of the instruction in its program."""

    event: Event
    position: Position
    program: str
    index: int
    loops: int


@dataclass(frozen=True, slots=True)
class Goal:
    """`start`: the moment that it was set at; `target`: of kind "position"; `index`: of "until", an instruction of the
    program that it has to reach."""

    kind: Kind
    start: Moment
    target: Position | None = None
    index: int | None = None

    def at_ops(self, instruction: int, input: int) -> bool:
        """Might it stop at an op of this input?"""
        if self.kind == "next":
            return True
        if self.kind == "input":
            return (instruction, input) > self.start.position[:2]
        if self.kind == "epoch":
            return instruction > self.start.position.instruction and input == 0
        target = self.target
        if target is None or target.instruction != instruction or target.input != input:
            return False
        return target.step != STORED

    def most_inputs(self, instruction: int, done: int) -> int | None:
        """How many inputs may run together, where no op stops it, up to the target; None: as many as can."""
        target = self.target
        if target is None or target.instruction != instruction or not target.in_epoch:
            return None
        return max(1, target.input - done) if done != target.input else 1

    def reached(self, now: Moment) -> bool:
        """Is it here?"""
        match self.kind:
            case "continue":
                return False
            case "position":
                return self.target is not None and now.position >= self.target
            case "step":
                return now.event == "instruction"
            case "next":
                return now.event in ("instruction", "op")
            case "input" | "epoch":
                return now.event == "op" and self.at_ops(now.position.instruction, now.position.input)
            case "finish":
                return now.event == "instruction" and self._finished(now)
            case "until":
                return now.event == "instruction" and self._beyond(now)

    def _finished(self, now: Moment) -> bool:
        """The epoch is over; outside of one the innermost loop is, or else the program."""
        if self.start.position.in_epoch:
            return True
        return now.program != self.start.program or now.loops < self.start.loops

    def _beyond(self, now: Moment) -> bool:
        """A later instruction than that of the start, as gdb's until: a loop is run to its end."""
        if self.index is not None:
            return now.index == self.index
        return now.program != self.start.program or now.index > self.start.index


# What `signal.signal` and `signal.getsignal` call. They look up an enum for every handler, and catch the ValueError of
# those that are functions: three calls for each move of a debugger are 5 % of a run of a millisecond.
_SIGNAL: Final[Any] = import_module("_signal")


class Interrupt:
    """`wanted`: what runs is to stop at its next step, whichever machine of a session that is; else what runs next."""

    wanted = False


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Generator[None]:
    """Meanwhile Ctrl-C calls `stop`, in place of a KeyboardInterrupt wherever this thread happens to be. Nothing
    changes on other threads, and where somebody else handles it, or nobody wants it."""
    before = _SIGNAL.getsignal(SIGINT)
    if current_thread() is not main_thread() or before not in (default_int_handler, interrupt):
        yield
        return

    def handle(_number: int, _frame: object) -> None:
        stop()

    _SIGNAL.signal(SIGINT, handle)
    try:
        yield
    finally:
        _SIGNAL.signal(SIGINT, before)
