"""Interpreter of one program: variables, loops, executes (NETLIST 3). A `Machine` runs the graphs that it executes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Netlist,
    Param,
    Program,
    Queue,
    TemporalGraph,
    VarInst,
)
from buda_emu.netlist.program.settings import (
    ALL_SETTINGS,
    Evaluated,
    EvaluatedSettings,
    ExecuteSettings,
    Kind,
    Place,
    Variables,
    by_text,
)
from buda_emu.spec.varinst import OPCODES, is_variable, wrap32
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass
from buda_emu.support.stopped import Round


@dataclass(slots=True)
class StepBudget:
    """The number of instructions and epoch inputs that one run may take, and how many are left."""

    limit: int
    left: int = 0

    def begin_run(self) -> None:
        """Restore the whole budget of steps for a new run."""
        self.left = self.limit

    def require(self, count: int, message: str) -> None:
        """Raise ProgramError if something takes more than the steps that are left. `count` is the least number of
        steps that it takes; `message` names it at the beginning of the error, such as "5 rounds of this loop".
        """
        if count > self.left:
            raise ProgramError(
                f"{message} take at least {count} instructions, {self.left} of {self.limit} are left (step_limit)",
                kind="limit",
            )

    def take(self, count: int = 1) -> None:
        """Count steps that are taken. Raises ProgramError when the run has taken more than its limit."""
        self.left -= count
        if self.left < 0:
            raise ProgramError(
                f"more than {self.limit} instructions and epoch inputs in one run (step_limit)", kind="limit"
            )


class Machine(Protocol):
    """The machine that an interpreter drives: it runs graphs, allocates queues, and moves queues with the variables."""

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """Run a graph with settings evaluated from `variables`."""
        ...

    def follow_variable(self, text: str, variables: Variables) -> None:
        """Move the pointers of queues whose settings name the variable `text`, as a varinst has just written it
        (NETLIST 4.3 propagation)."""
        ...

    def allocate(self, queue: str) -> None:
        """Give a dynamic queue its memory (allocate_queue)."""
        ...

    def deallocate(self, queue: str) -> None:
        """Take the memory of a dynamic queue back (deallocate_queue)."""
        ...


Loops = Sequence[tuple[Loop, int, int]]
"""The loops that are running, outermost first: each with all its rounds and the rounds that are left."""


def _place(program: str, counter: int, instruction: Instruction, loops: Loops, values: Mapping[str, int]) -> Place:
    """Return the place of an instruction in a program: its index `counter`, the round of each loop around it, and
    the variables, whose `values` are by stored name.
    """
    rounds = tuple(Round(loop.at().line, loop.count, rounds - left, rounds) for loop, rounds, left in loops)
    return Place(program=program, index=counter, instruction=instruction, rounds=rounds, variables=by_text(values))


Observer = Callable[[int, Instruction, Variables], None]


@dataclass(slots=True)
class _RunningLoop:
    source: Loop
    first: int  # index of the first instruction of the body
    rounds: int
    left: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of a program: the instruction that is about to run, and the loops around it, outermost first.
    Each loop is a tuple of the instruction, the index of its first instruction, all its rounds and the rounds that
    are left."""

    program: str
    counter: int
    loops: tuple[tuple[Loop, int, int, int], ...]


class Interpreter:
    """Interpreter of one program with its variables. Every instruction counts against `steps`.

    With `looks_ahead`, a loop that will take more steps than are left fails when it begins rather than when they run
    out.
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
        """Run the program to its end. Raises ProgramError that names instruction and line; the next run then has the
        parameters of the runs before this one only."""
        earlier = self.variables.begin_run(parameters)
        try:
            self._run_from(0, [])
        except BaseException:
            self.variables.forget_parameters(earlier)
            raise

    def resume(self, standing: Standing) -> None:
        """Run from a position to the end, with the variables as they are. Raises ProgramError as `run` does."""
        self._run_from(standing.counter, [_RunningLoop(*loop) for loop in standing.loops])

    def standing(self, counter: int) -> Standing:
        """Return the position of the program before the instruction of index `counter` runs, with the loops around
        it.
        """
        loops = ((loop.source, loop.first, loop.rounds, loop.left) for loop in self._loops)
        return Standing(self.program.name, counter, tuple(loops))

    def _run_from(self, counter: int, loops: "list[_RunningLoop]") -> None:
        """Run from an instruction to the end, inside these running loops (outermost first). A ProgramError receives
        the place at which it arose, which stays in `failed_at`.
        """
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
        """Return the place of an instruction that is running, with the rounds of its loops and the variables.
        `counter` is its index.
        """
        return self.moment(counter, instruction)()

    def moment(self, counter: int, instruction: Instruction) -> Callable[[], Place]:
        """Return a function that computes `place` as it is now. The place is rarely needed, so only its parts are
        remembered here."""
        loops = [(loop.source, loop.rounds, loop.left) for loop in self._loops]
        return partial(_place, self.program.name, counter, instruction, loops, self.variables.values())

    def _step(self, counter: int, instruction: Instruction, loops: "list[_RunningLoop]") -> int:
        """Run the instruction at index `counter`; return the index of the next. `loops` are those that are running,
        the innermost last.
        """
        match instruction:
            case Execute():
                self._machine.execute(instruction, self.variables)
            case VarInst():
                self._run_varinst(instruction)
            case Loop():
                self._begin_loop(counter, instruction, loops)
            case EndLoop():
                return self._end_round(counter, loops)
            case Declare():
                if instruction.kind == "var":
                    kind = Kind.LOCAL
                else:
                    kind = Kind.STATIC
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

    def _begin_loop(self, counter: int, instruction: Loop, loops: "list[_RunningLoop]") -> None:
        """Begin a loop with all its rounds. Raises ProgramError for less than one round and, where the interpreter
        looks ahead, for more steps than are left.
        """
        rounds = self.variables.value(instruction.count)
        if rounds < 1:
            raise ProgramError(f"loop count {instruction.count} is {rounds}; a loop runs at least once", kind="loop")
        if self._looks_ahead:
            self._steps.require(rounds * self._body_length(counter + 1), f"{rounds} rounds of this loop")
        loops.append(_RunningLoop(instruction, counter + 1, rounds, rounds - 1))

    @staticmethod
    def _end_round(counter: int, loops: "list[_RunningLoop]") -> int:
        """End a round of the innermost loop; return the index of the next instruction. Raises ProgramError outside
        a loop.
        """
        if not loops:
            raise ProgramError("endloop without a loop", kind="loop")
        loop = loops[-1]
        if loop.left:
            loop.left -= 1
            return loop.first
        loops.pop()
        return counter + 1

    def _body_length(self, first: int) -> int:
        """Return the number of instructions of the loop body that begins at index `first`, its endloop included and
        inner loops counted once; 0 without an endloop.
        """
        depth = 1
        instructions = self.program.instructions
        for position in range(first, len(instructions)):
            depth += isinstance(instructions[position], Loop) - isinstance(instructions[position], EndLoop)
            if not depth:
                return position + 1 - first
        return 0  # without an endloop its rounds are never run

    def _run_varinst(self, instruction: VarInst) -> None:
        """Carry out a varinst, and tell the machine that its variable was written. Raises ProgramError for a wrong
        number of operands and for a result that goes to no variable.
        """
        opcode = OPCODES[instruction.opcode]
        if len(instruction.args) != opcode.operands:
            takes = plural(opcode.operands, "operand")
            raise ProgramError(f"{opcode.name} takes {takes}, {len(instruction.args)} given")
        if not is_variable(instruction.out):
            raise ProgramError(f"varinst writes {instruction.out!r}, which is not a $variable")
        if opcode.reads_out:
            current = self.variables.value(instruction.out)
        else:
            current = 0
        args = tuple(self.variables.value(text) for text in instruction.args)
        self.variables.assign(instruction.out, wrap32(opcode.result(current, args)))
        self._machine.follow_variable(instruction.out, self.variables)


class CompleteEpoch(NamedTuple):
    """A temporal graph whose graphs were all executed.

    `executes` holds the execute of each graph, `settings` those of each queue that one of them names, and `last` the
    settings of the last execute.
    """

    temporal: TemporalGraph
    input_count: int
    executes: Mapping[str, Execute]
    settings: Mapping[str, Evaluated]
    last: ExecuteSettings


Pending = tuple[Mapping[int, Mapping[str, Execute]], Mapping[int, Mapping[str, Evaluated]]]
"""Executes and settings, by the id of each temporal graph of which some graphs were executed and others were not."""


class GatheredExecutes:
    """The executes of one run of a program, gathered until a temporal graph is complete."""

    __slots__ = ("_executes", "_netlist", "_prepared", "_settings", "_temporal")

    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._prepared = ALL_SETTINGS.of(netlist)
        self._temporal: dict[str, TemporalGraph] = {}
        for temporal in netlist.temporal_graphs:
            self._temporal |= dict.fromkeys(temporal.graphs, temporal)
        self._executes: dict[int, dict[str, Execute]] = {}  # of each temporal graph, since it ran last
        self._settings: dict[int, dict[str, Evaluated]] = {}

    def begin_run(self) -> None:
        """Drop the executes that an earlier run left pending."""
        self._executes.clear()
        self._settings.clear()

    def state(self) -> "Pending":
        """Return a copy of the pending executes and settings."""
        executes = {number: dict(of) for number, of in self._executes.items()}
        return executes, {number: dict(of) for number, of in self._settings.items()}

    def set_state(self, pending: "Pending") -> None:
        """Replace the pending executes and settings by a result of `state`."""
        executes, settings = pending
        self._executes = {number: dict(of) for number, of in executes.items()}
        self._settings = {number: dict(of) for number, of in settings.items()}

    def add(self, instruction: Execute, variables: Variables) -> CompleteEpoch | None:
        """Add an execute; return the epoch that it completes, or None (NETLIST 4.3 steps 1 to 3b).

        Raises ProgramError for a graph that is not defined or was executed already, for settings that differ from those
        of another graph of the epoch, that cannot be evaluated, or that exclude each other.
        """
        graph = instruction.graph
        temporal = self._temporal.get(graph)
        if temporal is None:
            raise ProgramError(f"execute of graph {graph!r}, which is not defined")
        pending = self._settings.get(temporal.id)
        if pending is None:
            pending = self._settings[temporal.id] = {}
        execute_settings = self._prepared.of(instruction)
        for evaluated in execute_settings.evaluate_all(variables):
            name = evaluated[0].queue
            if name in pending and pending[name][1] != evaluated[1]:
                raise ProgramError(
                    f"execute of {graph}: settings of queue {name} differ from those that another "
                    "graph of the same temporal graph gave",
                    kind="settings",
                    queue=name,
                )
            pending[name] = evaluated
        executes = self._executes.get(temporal.id)
        if executes is None:
            executes = self._executes[temporal.id] = {}
        if graph in executes:
            raise ProgramError(
                f"execute of {graph} twice before the other graphs of its temporal graph "
                f"({', '.join(temporal.graphs)}) were executed",
                kind="settings",
            )
        executes[graph] = instruction
        if len(executes) < len(temporal.graphs):
            return None
        del self._executes[temporal.id], self._settings[temporal.id]
        for name, (_, settings) in pending.items():
            _require_sense(self._netlist.queues[name], settings)
        return CompleteEpoch(
            temporal=temporal,
            input_count=self._netlist.graphs[graph].input_count,
            executes=executes,
            settings=pending,
            last=execute_settings,
        )


def _require_sense(queue: Queue, settings: EvaluatedSettings) -> None:
    """Raise ProgramError for settings that exclude each other (NETLIST 4.3 steps 3a and 3b); the device's loader
    requires the same (4.1)."""
    kind = "ram" if queue.is_ram else "queue"
    if settings.zero and not settings.prologue:
        raise ProgramError(f"zero without prologue on {kind} {queue.name}", kind="settings", queue=queue.name)
    if queue.is_ram and settings.global_wrptr_autoinc and (settings.prologue or settings.epilogue or settings.zero):
        message = f"global_wrptr_autoinc together with prologue, epilogue or zero on ram {queue.name}"
        raise ProgramError(message, kind="settings", queue=queue.name)
