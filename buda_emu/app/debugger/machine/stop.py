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
"""The input of a position at which the epoch has not begun."""
STORED: Final = 1 << 30
"""The step of a position at which the results of the input are in their queues."""


class Position(NamedTuple):
    """A moment of a run; positions are ordered as they are run. `instruction` is how many have begun, in all programs
    together; `input` counts from 0 within the epoch; `step` is twice the number of the op in the order of the epoch,
    plus one when it has run."""

    instruction: int
    input: int = BEFORE
    step: int = 0

    @property
    def in_epoch(self) -> bool:
        """True for a position within an epoch."""
        return self.input != BEFORE

    def __str__(self) -> str:
        if not self.in_epoch:
            return f"{self.instruction}"
        if self.step == STORED:
            step = "stored"
        else:
            step = str(self.step // 2) + "+" * (self.step % 2)
        return f"{self.instruction}.{self.input + 1}.{step}"


START: Final = Position(0)
"""The position before the first program."""


Reason = Literal["start", "step", "breakpoint", "interrupted", "end", "error"]
Event = Literal["instruction", "op", "result", "stored"]
"""The events at which a run can be held: before an instruction, before an op, after an op, and when the results of an
input are in their queues."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of the run. `breakpoints` are the numbers of those that hit; `text` says what happened; `error` ended the
    program."""

    reason: Reason
    position: Position
    text: str = ""
    breakpoints: tuple[int, ...] = ()
    error: BaseException | None = None

    def __repr__(self) -> str:
        hits = ""
        if self.breakpoints:
            hits = f" {', '.join(map(str, self.breakpoints))}"
        place = ""
        if self.text:
            place = f": {self.text.splitlines()[0]}"
        return f"<Stop: {self.reason}{hits} at {self.position}{place}>"


class StoppedShortError(HostError):
    """An interrupt by the user while the machine was on its way to a moment that was to be inspected."""

    def __init__(self) -> None:
        super().__init__("interrupted before it was found")


Kind = Literal["step", "next", "input", "epoch", "finish", "until", "continue", "position"]


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of the run, as goals test it. `loops` is the depth of loops that are being run; `index` is that of the
    instruction in its program."""

    event: Event
    position: Position
    program: str
    index: int
    loops: int


@dataclass(frozen=True, slots=True)
class Goal:
    """The end of a forward move. `start` is the moment at which it was set; `target` is used by kind "position";
    `index` is the instruction that kind "until" has to reach."""

    kind: Kind
    start: Moment
    target: Position | None = None
    index: int | None = None

    def at_ops(self, instruction: int, input: int) -> bool:
        """Return whether the goal may be reached at an op of this input, so that the run has to report ops."""
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
        """Return how many of the inputs after `done` may run together without passing the target; None if there is no
        limit."""
        target = self.target
        if target is None or target.instruction != instruction or not target.in_epoch:
            return None
        return max(1, target.input - done)

    def stops_at(self, moment: Moment) -> bool:
        """Return whether the goal is reached at a moment."""
        if self.kind == "continue":
            return False
        if self.kind == "position":
            return self.target is not None and moment.position >= self.target
        if self.kind == "next":
            return moment.event in ("instruction", "op")
        if self.kind in ("input", "epoch"):
            return moment.event == "op" and self.at_ops(moment.position.instruction, moment.position.input)
        return moment.event == "instruction" and self._is_awaited_instruction(moment)

    def _is_awaited_instruction(self, moment: Moment) -> bool:
        """Return whether an instruction is where a goal of kind "step", "finish" or "until" stops."""
        if self.kind == "finish":
            return self._is_finish(moment)
        if self.kind == "until":
            return self._is_beyond(moment)
        return True

    def _is_finish(self, moment: Moment) -> bool:
        """Return whether a goal of kind "finish" is reached at an instruction: the epoch in which it was set is over,
        or outside of one the innermost loop or the program."""
        if self.start.position.in_epoch:
            return True
        return moment.program != self.start.program or moment.loops < self.start.loops

    def _is_beyond(self, moment: Moment) -> bool:
        """Return whether a goal of kind "until" is reached at an instruction: it comes later in the program than the
        one where the goal was set, so that a loop runs to its end; with an index, whether it is that instruction."""
        if self.index is not None:
            return moment.index == self.index
        return moment.program != self.start.program or moment.index > self.start.index


# What `signal.signal` and `signal.getsignal` call. They look up an enum for every handler, and catch the ValueError of
# those that are functions: three calls for each move of a debugger are 5 % of a run of a millisecond.
_SIGNAL: Final[Any] = import_module("_signal")


class Interrupt:
    """A request to stop, shared by the machines of a session. `wanted` stops what runs at its next step, or else what
    runs next."""

    wanted = False


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Generator[None]:
    """Call `stop` on Ctrl-C within this context, in place of a KeyboardInterrupt wherever this thread happens to be.
    Nothing changes on other threads, or where Ctrl-C has another handler or is ignored."""
    before = _SIGNAL.getsignal(SIGINT)
    if current_thread() is not main_thread() or before not in (default_int_handler, interrupt):
        yield
        return

    def handle(_number: int, _frame: object) -> None:
        """Ask for a stop when SIGINT arrives."""
        stop()

    _SIGNAL.signal(SIGINT, handle)
    try:
        yield
    finally:
        _SIGNAL.signal(SIGINT, before)
