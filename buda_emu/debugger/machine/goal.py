"""Where a run is to stop, in addition to its breakpoints."""

from typing import Literal

from buda_emu.debugger.machine.position import STORED, Position
from buda_emu.debugger.machine.stop import Event
from buda_emu.records import dataclass

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
