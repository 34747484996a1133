"""A machine whose programs run one after the other, are held between any two steps, and brought back to any moment.

Everything is a function of the inputs, the changes that a user made, and a position: bits do not depend on how many
inputs run together, so a moment is reached again by running from a checkpoint before it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from buda_emu.debugger.goal import Goal, Moment
from buda_emu.debugger.history import DEFAULT_LIMIT, History
from buda_emu.debugger.log import Chunk, Log
from buda_emu.debugger.position import START, STORED, Position
from buda_emu.debugger.stop import Event, Stop
from buda_emu.debugger.worker import Worker
from buda_emu.errors import BudaError, HostError
from buda_emu.netlist.model import Instruction, Netlist, Op
from buda_emu.program.interpreter import Standing
from buda_emu.program.place import Place
from buda_emu.program.values import Variables
from buda_emu.records import dataclass
from buda_emu.runtime.emulator import Emulator
from buda_emu.runtime.graph.topology import Topology, topology
from buda_emu.runtime.machine.memory import Channel
from buda_emu.runtime.machine.stepper import Stepper, Tiles

T = TypeVar("T")
Hit = tuple[Position, tuple[int, ...], str]
"""Where breakpoints stop, which, and what happened."""
MOST_HELD: Final = 64 << 20
"""Bytes of op results of the running input that are held; others are computed again when they are asked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a user changed. `make` does it, on the machine of any precision; it is given what replaces the
    result of the op that has just run."""

    position: Position
    text: str
    make: "Callable[[Engine], None]"


class Breaks(Protocol):
    """Breakpoints, as the engine asks them."""

    def forget(self) -> None:
        """The run is at another moment: what was seen last is not to be compared with."""
        ...

    def stops_at_ops(self, graphs: Sequence[str]) -> bool:
        """Might one stop at an op of these graphs?"""
        ...

    def stops_at_inputs(self, topo: Topology) -> bool:
        """Or between two inputs?"""
        ...

    def hits(self, engine: "Engine", now: Moment) -> tuple[tuple[int, ...], str]:
        """Which of them stop here, and what happened, in words."""
        ...


class Engine(Stepper):
    """One machine. Methods of the first part are for the thread that gives commands, those of the second run on the
    program's. `fill` pushes the inputs; `programs`: names with their parameters, in order."""

    def __init__(
        self,
        emulator: Emulator,
        programs: Sequence[tuple[str, Mapping[str, str]]],
        fill: Callable[[Emulator], object],
        changes: list[Change],
        *,
        history_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.emulator = emulator
        self.netlist: Netlist = emulator.netlist
        self.programs = tuple(programs)
        self.changes = changes
        self.breaks: Breaks | None = None
        self.log = Log()
        self._topologies = {
            graph: topology(self.netlist, temporal)
            for temporal in self.netlist.temporal_graphs
            for graph in temporal.graphs
        }
        self._orders: dict[str, dict[str, int]] = {}
        self._running = 0  # number of the program
        self._begin_at: int = 0  # the first program of the next run; the machine may stand within it
        self._resume = False
        self._goal: Goal | None = None
        self._breaking = False
        self._last_hit: Hit | None = None
        self._seeking = False
        self._interrupted = False
        self.pending: Callable[[], bool] = lambda: False  # does somebody wait for the program to be held?
        self._starts: dict[int, int] = {}  # the first instruction of each program
        self._skips = False
        self._machine = emulator.machine
        self._reset(START)
        self.stop = Stop("start", START)
        self._worker = Worker(self._run_programs)
        try:
            self._worker.call(lambda: fill(emulator))
            self.history = History(emulator.checkpoints(), history_limit)
            self._worker.call(lambda: self.history.take(START, 0, running=False))
        except BaseException:
            self._worker.close()
            raise
        self._state = self.history.before(START)
        emulator.stepper = self

    def close(self) -> None:
        """End the program and the machine."""
        self._worker.close()
        self.emulator.close()

    # ============================================================================== for who gives commands
    @property
    def ended(self) -> bool:
        """Have all programs run, or has one failed?"""
        return self.stop.reason in ("end", "error")

    def call(self, work: Callable[[], T]) -> T:
        """Look at the machine, or change it, while nothing runs."""
        return self._worker.call(work)

    def go(self, goal: Goal, *, breaking: bool = True) -> Stop:
        """Run on until the goal, a breakpoint where `breaking`, or the end. Raises what ends a program and is no
        ProgramError."""
        if self.ended:
            raise HostError("all programs have run: `back` goes back, `run` begins anew")
        self._goal, self._breaking = goal, breaking
        self._interrupted = False
        if breaking and not self._seeking and self.pending():  # somebody wanted in before
            self._interrupted = True
        return self._went(self._worker.go(self._interrupt))

    def _went(self, stop: Stop) -> Stop:
        self.stop = stop
        return stop

    def seek(self, target: Position) -> Stop:
        """Stand at a position, wherever that is."""
        here = self.stop
        if target == here.position:
            return here
        if target < here.position or self.ended:
            self._back_to(target)
        if target <= self.stop.position:
            return self.stop
        stop = self.go(Goal("position", self.moment("instruction"), target), breaking=False)
        while stop.reason == "interrupted":  # a moment is reached, or nobody knows where it is
            stop = self.go(Goal("position", self.moment("instruction"), target), breaking=False)
        return self._went(Stop("step", stop.position) if stop.reason == "step" else stop)

    def last_hit(self, before: Position) -> Hit | None:
        """The last position before one at which a breakpoint stops."""
        end = before
        while True:
            kept = self.history.before(Position(max(0, end.instruction - (not end.in_epoch))))
            self._back_to(kept.position)
            self._last_hit, self._seeking = None, True
            try:
                self.go(Goal("position", self.moment("instruction"), end))
            finally:
                self._seeking = False
            hit = self._last_hit
            if self.stop.reason == "interrupted" or kept.position == START or (hit and hit[0] > kept.position):
                return hit
            # At the checkpoint itself, what changed since the event before it is seen by who comes from there.
            end = kept.position._replace(step=1)

    def moment(self, event: Event) -> Moment:
        """As it stands, for goals."""
        return Moment(event, self.stop.position, self.program, self.index, self.loops)

    def change(self, change: Change) -> None:
        """Make a change here; what was kept of a later moment is of another run."""
        self._worker.call(lambda: change.make(self))
        self.changes.append(change)
        self.history.forget_after(change.position)

    def changed(self, position: Position) -> None:
        """Another machine of the same run was changed there: this one, which has its list of changes, goes back."""
        self.history.forget_after(position)
        if self.stop.position >= position:
            self._back_to(position)

    def forget_changes_after(self, position: Position) -> list[Change]:
        """Take back what was changed later: it was a run that is no more."""
        dropped = [change for change in self.changes if change.position > position]
        if dropped:
            self.changes[:] = [change for change in self.changes if change.position <= position]
            self.history.forget_after(position)
        return dropped

    def _interrupt(self) -> None:
        self._interrupted = True
        self.ops = True

    @property
    def program_start(self) -> Position:
        """Before the first instruction of the program that runs, or ran last."""
        return Position(self._starts.get(self._running, 0))

    def set_variable(self, name: str, value: int) -> None:
        """Of the running program; on its thread."""
        self._machine.programs.set_variable(name, value)

    def restore_stop(self, stop: Stop) -> None:
        """It stands again where it stood, after a look elsewhere: for the same reason."""
        self.stop = stop

    def interrupt(self) -> None:
        """From any thread: hold the program at its next step."""
        self._interrupt()

    def _back_to(self, target: Position) -> None:
        """To the last checkpoint at or before a position."""
        self._worker.abandon()
        kept = self.history.before(target)
        self._worker.call(lambda: self.history.restore(kept))
        self.log.back_to(kept.position)
        at = kept.position.instruction
        self._reset(Position(max(0, at - 1)))
        self._begin_at, self._resume = kept.program, kept.state.standing is not None
        self._state = kept
        self.stop = Stop("start" if at == 0 else "step", START if at == 0 else Position(at - 1, STORED, STORED))
        if at == 0:
            self._worker.call(lambda: self._make_changes(START))
        if self.breaks is not None:
            self.breaks.forget()

    def _reset(self, position: Position) -> None:
        self.count = position.instruction  # instructions begun
        self.program, self.index = "", -1
        self.instruction_now: Instruction | None = None
        self.variables: Variables | None = None
        self._leave_epoch()
        self.ops, self.most_inputs = False, None

    def _leave_epoch(self) -> None:
        self.graphs: tuple[str, ...] = ()
        self.input_count = 0
        self.done = 0  # inputs of the epoch
        self.op_now: Op | None = None
        self.put: Callable[[Tiles], None] | None = None
        self.values: dict[str, Tiles] = {}  # of the running input: what it read and what ops gave
        self._held_bytes = 0

    # ============================================================================== on the program's thread
    def _run_programs(self) -> Stop:
        first, resume, self._resume = self._begin_at, self._resume, False
        try:
            for number, (name, parameters) in enumerate(self.programs):
                if number < first:
                    continue
                self._running = number
                standing = self._state.state.standing
                if resume and number == first and standing is not None:
                    self.emulator.resume(standing)
                else:
                    self._starts[number] = self.count + 1
                    self.emulator.run(name, parameters)
        except BudaError as error:
            return Stop("error", self._error_position(), str(error), error=error)
        self._leave_epoch()
        self.program, self.index, self.instruction_now, self.variables = "", -1, None, None
        self.count += 1
        position = Position(self.count)
        self._make_changes(position)
        return Stop("end", position)

    def _error_position(self) -> Position:
        """After everything that was run; the input that failed counts as begun."""
        return Position(self.count, self.done, STORED) if self.graphs else Position(self.count, 0, 0)

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """See `Stepper`."""
        if self.graphs:
            self._leave_epoch()
        self.count += 1
        self.program, self.index, self.instruction_now, self.variables = program, index, instruction, variables
        if self.history.due():
            self.history.take(Position(self.count), self._running, running=True)
        if not self._passes():
            self._event("instruction", Position(self.count))

    def _passes(self) -> bool:
        """Is there nothing to be done before an instruction? That has to be quick."""
        goal = self._goal
        if self._interrupted or self.changes or goal is None or (self._breaking and self.breaks is not None):
            return False
        if goal.kind == "position":
            return goal.target is not None and self.count < goal.target.instruction
        return goal.kind == "continue"

    @property
    def standing(self) -> Standing:
        """Where the program is; only while one runs."""
        return self._machine.programs.standing

    @property
    def loops(self) -> int:
        """How many loops are being run."""
        return len(self.standing.loops) if self.program else 0

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        """See `Stepper`."""
        self.graphs, self.input_count, self.done = graphs, inputs, 0
        self._choose()

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        """See `Stepper`."""
        anew = tuple(name for name in writes if self.channels[name].zero)
        self.log.add(Chunk(self.count, self.done, inputs, self.graphs, reads, writes, anew))
        self.op_now, self.put = None, None
        self.values, self._held_bytes = {}, 0

    def inputs_done(self, inputs: int) -> None:
        """See `Stepper`."""
        self.log.stored()
        self.done += inputs
        self.op_now, self.put = None, None
        self._event("stored", Position(self.count, self.done - 1, STORED))
        self._choose()

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - one, or the first of them
        """See `Stepper`."""
        self._hold_value(queue, tiles)

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        """See `Stepper`."""
        self.op_now, self.put = op, None
        self._skips = False
        self._event("op", self._op_position(op, 0))
        return not self._skips

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:  # noqa: ARG002
        """See `Stepper`."""
        self._hold_value(op.name, tiles)
        self.put = partial(self._replace, op.name, put) if put is not None else None
        self._event("result", self._op_position(op, 1))
        self.put = None

    def skip(self) -> None:
        """The op that is about to run is not run."""
        self._skips = True

    def _replace(self, op: str, put: Callable[[Tiles], None], tiles: Tiles) -> None:
        put(tiles)
        if op in self.values:
            self.values[op][...] = tiles

    def _hold_value(self, name: str, tiles: Tiles) -> None:
        kept = tiles[:1].copy()
        self.values[name] = kept
        self._held_bytes += kept.nbytes
        while self._held_bytes > MOST_HELD and len(self.values) > 1:
            oldest = next(iter(self.values))
            self._held_bytes -= self.values.pop(oldest).nbytes

    def topology(self, graph: str) -> Topology:
        """Of the epoch that a graph belongs to."""
        return self._topologies[graph]

    def order(self, graph: str) -> Mapping[str, int]:
        """The number of each op in the order of the graph's epoch."""
        topo = self._topologies[graph]
        first = topo.graphs[0]
        if first not in self._orders:
            self._orders[first] = {op.name: number for number, op in enumerate(topo.ops)}
        return self._orders[first]

    def _op_position(self, op: Op, after: int) -> Position:
        return Position(self.count, self.done, 2 * self.order(op.graph)[op.name] + after)

    def _choose(self) -> None:
        """How closely the next inputs of the epoch are watched."""
        graph = self.graphs[0]
        topo = self._topologies[graph]
        goal, breaks = self._goal, self.breaks if self._breaking else None
        ops = self._interrupted or (goal is not None and goal.at_ops(self.count, self.done))
        most = goal.most_inputs(self.count, self.done) if goal is not None else None
        changed = any(change.position.instruction == self.count for change in self.changes)
        if breaks is not None and breaks.stops_at_ops(topo.graphs):
            ops, most = True, 1
        elif breaks is not None and breaks.stops_at_inputs(topo):
            most = 1
        if changed:
            ops, most = True, 1
        self.ops, self.most_inputs = ops, 1 if ops else most

    def _event(self, event: Event, position: Position) -> None:
        self._make_changes(position)
        now = Moment(event, position, self.program, self.index, self.loops)
        numbers, text = (), ""
        if self._breaking and self.breaks is not None:
            numbers, text = self.breaks.hits(self, now)
        if self._seeking:
            target = self._goal.target if self._goal is not None else None
            if numbers and (target is None or position < target):
                self._last_hit = position, numbers, text
            numbers = ()
        if numbers:
            self._hold(Stop("breakpoint", position, text, numbers))
        elif self._goal is not None and self._goal.reached(now):
            self._hold(Stop("step", position))
        elif self._interrupted:
            self._hold(Stop("interrupted", position))

    def _hold(self, stop: Stop) -> None:
        self._worker.hold(stop)
        if self.graphs and stop.position.in_epoch:
            self._choose()

    def _make_changes(self, position: Position) -> None:
        for change in self.changes:
            if change.position == position:
                change.make(self)

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Queues and rams of the machine."""
        return self._machine.memory.channels

    def place(self) -> Place:
        """Where the program is: instruction, loops, variables. Only while one runs."""
        return self._machine.programs.place

    @property
    def executed(self) -> Mapping[str, int]:
        """How often each graph has run to its end."""
        return self._machine.journal.executed

    def sharing(self, queue: str, slot: int) -> list[tuple[str, int]]:
        """The entry, and those of other rams that lie on the same memory (NETLIST 1.10), of queues that an op fills."""
        view = self.channels[queue].view
        first, last = slot * view.t, (slot + 1) * view.t
        found: list[tuple[str, int]] = []
        for name, channel in self.channels.items():
            other = channel.view
            if other.store is view.store and not self.netlist.queues[name].host_fed:
                found += [(name, at) for at in range(first // other.t, -(-last // other.t))]
        return found
