"""The walk: every instruction once, loops again as long as their rounds and the budget last, then what is widened.

A program has no branches and its loops run at least once (NETLIST 3.4), so what the first passage of an instruction
meets is certain. Where a loop's rounds are not known or too many, all that its body changes is unknown after it.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from buda_emu.netlist.flow.channels import Channels
from buda_emu.netlist.flow.epochs import Surroundings
from buda_emu.netlist.flow.variables import (
    IMPOSSIBLE,
    KnownSettings,
    Note,
    Notes,
    Value,
    Variables,
    differ,
    evaluated,
    name_mark,
    operand_mark,
    require_sense,
)
from buda_emu.netlist.model import (
    Allocate,
    Declare,
    EndLoop,
    Execute,
    Instruction,
    Loop,
    Netlist,
    Param,
    Program,
    VarInst,
)
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT
from buda_emu.spec.varinst import is_variable
from buda_emu.support.records import dataclass

DIFFERENT, NO_LOOP, NO_ROUND, NO_END, AGAIN, ENDLESS, KEPT, ALONE = (
    "V275",
    "V273",
    "V274",
    "V276",
    "V285",
    "V284",
    "V290",
    "V126",
)
PASSED_AGAIN = 4_000
WIDENED = 100_000
"""Instructions and queue settings that are passed again in loops, and that are looked at where a loop is widened, in
all programs of a netlist: a check takes no longer than its document is long."""
_MANY = 1 << 62  # rounds; more are not counted


def notes_of(netlist: Netlist) -> Mapping[str, Sequence[Note]]:
    """What the walks of a netlist's programs notice, by program. The netlist is one that loads."""
    around, again, widened = Surroundings(netlist), Budget(PASSED_AGAIN), Budget(WIDENED)
    return {name: _Walk(around, program, again, widened).run() for name, program in netlist.programs.items()}


@dataclass(slots=True)
class Budget:
    """How much may still be done."""

    left: int

    def take(self, count: int) -> bool:
        """Is so much left? If so it is taken."""
        if count > self.left:
            return False
        self.left -= count
        return True


@dataclass(slots=True)
class _RunningLoop:
    source: Loop
    first: int  # index of the first instruction of the body
    left: Value
    every: int  # rounds of its body in all, as far as they and those of the loops around it are known


class _Walk:
    """Of one program, in its first run."""

    def __init__(self, around: Surroundings, program: Program, again: Budget, widened: Budget) -> None:
        self._around = around
        self._queues = around.netlist.queues
        self._instructions = program.instructions
        self._again = again
        self._widened = widened
        self._notes = Notes()
        self._variables = Variables(program, self._notes)
        self._channels = Channels(around, program.name, self._notes)
        self._loops: list[_RunningLoop] = []
        self._executed: dict[int, dict[str, Execute]] = {}  # by graph, those of each temporal graph, since it ran last
        self._pending: dict[int, dict[str, KnownSettings]] = {}
        self._kept: set[str] = set()  # of which it was told
        self._ends = _ends(program.instructions)
        self._costs = [0, *accumulate(map(_cost, program.instructions))]  # of all instructions before each

    def run(self) -> Sequence[Note]:
        """Walk to the end."""
        counter = 0
        while counter < len(self._instructions):
            counter = self._step(counter, self._instructions[counter])
        for loop in self._loops:
            self._notes.add(NO_END, loop.source.at(), "a loop without an endloop: its body is run once")
        return self._notes.all()

    def _step(self, counter: int, step: Instruction) -> int:
        """One instruction; the index of the next."""
        match step:
            case Execute():
                self._execute(step)
            case VarInst():
                self._channels.follow(step, self._variables.calculate(step), self._operands(step))
            case Loop():
                self._loop(counter, step)
            case EndLoop():
                return self._endloop(counter, step)
            case Declare():
                for name, text in step.variables:
                    place = name_mark(step, name)
                    self._variables.declare(name, step.kind, self._variables.value(text, place), place)
            case Param():
                for name in step.names:
                    self._variables.declare(name, "param", None, name_mark(step, name))
            case Allocate():
                for name in step.queues:
                    self._channels.reset(name)
            case _:
                pass  # deallocate_queue leaves pointers and data
        return counter + 1

    def _operands(self, step: VarInst) -> tuple[Value, Value]:
        """By how much inc and incwrap move a variable, and where incwrap wraps it."""
        values: list[Value] = [None, None]
        if step.opcode in ("inc", "incwrap"):
            for index, text in enumerate(step.args[:2]):
                values[index] = self._variables.value(text, operand_mark(step, index + 2))
        return values[0], values[1]

    def _execute(self, step: Execute) -> None:
        """NETLIST 4.3."""
        epoch = self._around.epoch_of.get(step.graph)
        if epoch is None:
            self._notes.add(IMPOSSIBLE, step.at("graph_name"), f"executes graph '{step.graph}', which does not exist")
            return
        number = epoch.temporal.id
        pending = self._pending.setdefault(number, {})
        for source in step.queue_settings:
            queue = self._queues[source.queue]
            settings = evaluated(source, queue, self._variables, self._notes)
            if queue.name in self._around.kept and queue.name not in self._kept:
                self._kept.add(queue.name)
                what = f"no entry of {queue.name} is ever popped: it fills up"
                self._notes.add(KEPT, source.at("rd_ptr_global"), what)
            known = pending.get(source.queue)
            if known is not None and differ(known, settings):
                what = f"settings of {source.queue} differ from those of another graph that runs at the same time"
                self._notes.add(DIFFERENT, source.at(), what, "write the same in both")
            pending[source.queue] = settings
        executed = self._executed.setdefault(number, {})
        if executed.get(step.graph) is step:  # what occurs twice V126 sees without a walk
            others = ", ".join(name for name in epoch.temporal.graphs if name not in executed)
            what = f"executes {step.graph} again in a loop, before {others}, which run at the same time"
            self._notes.add(ALONE, step.at("graph_name"), what)
        executed[step.graph] = step
        if len(executed) < len(epoch.temporal.graphs):
            return
        executed.clear()
        del self._pending[number]
        for name, settings in pending.items():
            require_sense(settings, self._queues[name], self._notes, sums=name in self._around.accumulators)
            self._channels.place(settings)
        self._channels.run(epoch, step, frozenset(pending))
        self._channels.end(frozenset(source.queue for source in step.queue_settings))

    def _loop(self, counter: int, step: Loop) -> None:
        place = step.source.mark if step.source is not None else step.at()
        rounds = self._variables.value(step.count, place)
        if rounds is not None and rounds < 1:
            self._notes.add(NO_ROUND, place, f"loop count {_shown(step.count, rounds)}; a loop runs at least once")
            rounds = 1
        # The rounds that a variable gives may change from round to round of the loops around.
        around = self._loops[-1].every if self._loops and not is_variable(step.count) else 1
        every = min(around * (rounds or 1), _MANY)
        self._loops.append(_RunningLoop(step, counter + 1, None if rounds is None else rounds - 1, every))
        end = self._ends.get(counter)
        least = every * (end - counter) if end is not None else 0  # inner loops count once
        if least > DEFAULT_STEP_LIMIT:
            what = f"takes {least:,} instructions at least, a run is given {DEFAULT_STEP_LIMIT:,}"
            self._notes.add(ENDLESS, place, what, "count less, or give --step-limit")

    def _endloop(self, counter: int, step: EndLoop) -> int:
        if not self._loops:
            self._notes.add(NO_LOOP, step.at(), "endloop without a loop")
            return counter + 1
        loop = self._loops[-1]
        if loop.left == 0:
            self._loops.pop()
            return counter + 1
        cost = 1 + self._costs[counter] - self._costs[loop.first]
        if loop.left is not None and self._again.take(cost):
            loop.left -= 1
            return loop.first
        self._loops.pop()
        if self._widened.take(cost + self._channels.count):
            self._widen(self._instructions[loop.first : counter])
        else:  # loops in loops in loops: from here on nothing is known
            self._variables.forget_all()
            self._channels.forget_all()
        return counter + 1

    def _widen(self, body: Sequence[Instruction]) -> None:
        """A loop runs on, nobody knows how often: what it changes is unknown."""
        texts: set[str] = set()
        queues = {name for epoch in self._around.executed(body) for name in (*epoch.reads, *epoch.writes)}
        for step in body:
            match step:
                case VarInst():
                    texts.add(step.out)
                case Declare(kind="var"):
                    what = "is declared inside a loop: a second round fails"
                    for name, _ in step.variables:
                        self._notes.add(
                            AGAIN, name_mark(step, name), f"{name} {what}", "declare it before the loop", name
                        )
                case Allocate():
                    queues.update(step.queues)
                case Execute():
                    queues.update(source.queue for source in step.queue_settings)
                case _:
                    pass
        self._variables.forget(frozenset(texts))
        self._channels.forget(frozenset(queues) | self._channels.bound_to(frozenset(texts)))


def _ends(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of the endloop of each loop."""
    found: dict[int, int] = {}
    open_loops: list[int] = []
    for index, step in enumerate(instructions):
        if isinstance(step, Loop):
            open_loops.append(index)
        elif isinstance(step, EndLoop) and open_loops:
            found[open_loops.pop()] = index
    return found


def _cost(step: Instruction) -> int:
    return 1 + len(step.queue_settings) if isinstance(step, Execute) else 1


def _shown(text: str, value: int) -> str:
    return f"{text} is {value}" if is_variable(text) else f"is {value}"
