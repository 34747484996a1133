"""Runs one program: variables, loops, executes (NETLIST 3). What an execute does is the machine's business."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from buda_emu.checker.text import plural
from buda_emu.errors import ProgramError
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Param,
    Program,
    VarInst,
)
from buda_emu.program.place import Place
from buda_emu.program.steps import StepBudget
from buda_emu.program.values import Kind, Variables, by_text
from buda_emu.records import dataclass
from buda_emu.spec.operands import is_variable, wrap32
from buda_emu.spec.varinst import OPCODES
from buda_emu.stopped import Round


class Machine(Protocol):
    """What the interpreter drives."""

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """Run a graph with settings evaluated from `variables`."""
        ...

    def variable_written(self, text: str, variables: Variables) -> None:
        """A varinst wrote the variable of this text: queues bound to it follow (NETLIST 4.3 propagation)."""
        ...

    def allocate(self, queue: str) -> None:
        """allocate_queue of one queue."""
        ...

    def deallocate(self, queue: str) -> None:
        """deallocate_queue of one queue."""
        ...


Loops = Sequence[tuple[Loop, int, int]]
"""Loops that are being run, outermost first: each with its rounds and those that are left."""


def _place(program: str, counter: int, instruction: Instruction, loops: Loops, values: Mapping[str, int]) -> Place:
    rounds = tuple(Round(loop.at().line, loop.count, rounds - left, rounds) for loop, rounds, left in loops)
    return Place(program, counter, instruction, rounds, by_text(values))


Observer = Callable[[int, Instruction, Variables], None]


@dataclass(slots=True)
class _RunningLoop:
    source: Loop
    first: int  # index of the first instruction of the body
    rounds: int
    left: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a program is: the instruction that is about to run, and for each loop around it, outermost first, the loop,
    its first instruction, its rounds and those that are left."""

    program: str
    counter: int
    loops: tuple[tuple[Loop, int, int, int], ...]


class Interpreter:
    """One program with its variables. Every instruction counts against `steps`.

    `looks_ahead`: a loop that is going to take more than is left of them fails when it begins, not when they are over.
    """

    __slots__ = ("_looks_ahead", "_loops", "_machine", "_observer", "_steps", "failed_at", "program", "variables")

    def __init__(
        self,
        program: Program,
        machine: Machine,
        steps: StepBudget,
        observer: Observer | None = None,
        *,
        looks_ahead: bool = False,
    ) -> None:
        self.program = program
        self.variables = Variables()
        self.failed_at: Place | None = None  # of the last run, which stopped there
        self._machine = machine
        self._observer = observer
        self._looks_ahead = looks_ahead
        self._steps = steps
        self._loops: list[_RunningLoop] = []

    def run(self, parameters: Mapping[str, str]) -> None:
        """Run to the end. Raises ProgramError that names instruction and line."""
        self.variables.begin_run(parameters)
        self._run_from(0, [])

    def resume(self, standing: Standing) -> None:
        """Run from there to the end, with the variables as they are. Raises as `run`."""
        self._run_from(standing.counter, [_RunningLoop(*loop) for loop in standing.loops])

    def standing(self, counter: int) -> Standing:
        """Where it is, at an instruction that is about to run."""
        loops = ((loop.source, loop.first, loop.rounds, loop.left) for loop in self._loops)
        return Standing(self.program.name, counter, tuple(loops))

    def _run_from(self, counter: int, loops: "list[_RunningLoop]") -> None:
        self.failed_at = None
        self._loops = loops
        instructions = self.program.instructions
        while counter < len(instructions):
            instruction = instructions[counter]
            try:
                self._steps.take()
                if self._observer is not None:
                    self._observer(counter, instruction, self.variables)
                counter = self._step(counter, instruction, loops)
            except ProgramError as error:
                self.failed_at = self.place(counter, instruction)
                error.within(str(self.failed_at))
                raise
        # a missing endloop is not detected by the reference either (NETLIST 3.4)

    def place(self, counter: int, instruction: Instruction) -> Place:
        """Of an instruction that is being run."""
        return self.moment(counter, instruction)()

    def moment(self, counter: int, instruction: Instruction) -> Callable[[], Place]:
        """What says later where it was: `place` as it is now. Nearly nobody asks, so it does no more than remember."""
        loops = [(loop.source, loop.rounds, loop.left) for loop in self._loops]
        return partial(_place, self.program.name, counter, instruction, loops, self.variables.values())

    def _step(self, counter: int, instruction: Instruction, loops: "list[_RunningLoop]") -> int:
        """Do one instruction; returns the index of the next."""
        match instruction:
            case Execute():
                self._machine.execute(instruction, self.variables)
            case VarInst():
                self._varinst(instruction)
            case Loop():
                rounds = self.variables.value(instruction.count)
                if rounds < 1:
                    raise ProgramError(
                        f"loop count {instruction.count} is {rounds}; a loop runs at least once", kind="loop"
                    )
                if self._looks_ahead:
                    self._steps.require(rounds * self._body_length(counter + 1), f"{rounds} rounds of this loop")
                loops.append(_RunningLoop(instruction, counter + 1, rounds, rounds - 1))
            case EndLoop():
                if not loops:
                    raise ProgramError("endloop without a loop", kind="loop")
                loop = loops[-1]
                if loop.left:
                    loop.left -= 1
                    return loop.first
                loops.pop()
            case Declare():
                kind = Kind.LOCAL if instruction.kind == "var" else Kind.STATIC
                for name, text in instruction.variables:
                    self.variables.declare(name, kind, self.variables.value(text))
            case Param():
                for name in instruction.names:
                    self.variables.bind_param(name)
            case Allocate():
                for queue in instruction.queues:
                    self._machine.allocate(queue)
            case Deallocate():
                for queue in instruction.queues:
                    self._machine.deallocate(queue)
        return counter + 1

    def _body_length(self, first: int) -> int:
        """Instructions of a loop's body and its endloop, inner loops counted once."""
        depth, instructions = 1, self.program.instructions
        for position in range(first, len(instructions)):
            depth += isinstance(instructions[position], Loop) - isinstance(instructions[position], EndLoop)
            if not depth:
                return position + 1 - first
        return 0  # without an endloop its rounds are never run

    def _varinst(self, instruction: VarInst) -> None:
        opcode = OPCODES[instruction.opcode]
        if len(instruction.args) != opcode.operands:
            takes = plural(opcode.operands, "operand")
            raise ProgramError(f"{opcode.name} takes {takes}, {len(instruction.args)} given")
        if not is_variable(instruction.out):
            raise ProgramError(f"varinst writes {instruction.out!r}, which is not a $variable")
        current = self.variables.value(instruction.out) if opcode.reads_out else 0
        args = tuple(self.variables.value(text) for text in instruction.args)
        self.variables.assign(instruction.out, wrap32(opcode.result(current, args)))
        self._machine.variable_written(instruction.out, self.variables)
