"""The debugger's part on the program's thread: a program reports between two of its steps, and may be stopped there."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from buda_emu.app.debugger.machine.history import Chunk, History, Log
from buda_emu.app.debugger.machine.stop import (
    START,
    STORED,
    Event,
    Goal,
    Interrupt,
    Moment,
    Position,
    Stop,
    StoppedShortError,
)
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.graph.steps import Topology, topology
from buda_emu.emulator.runtime.machine.gate import Stepper, Tiles
from buda_emu.emulator.runtime.machine.memory import Channel
from buda_emu.netlist.model import Instruction, Netlist, Op
from buda_emu.netlist.program.interpreter import Standing
from buda_emu.netlist.program.settings import Place, Variables
from buda_emu.support.records import dataclass

Hit = tuple[Position, tuple[int, ...], str]
"""Where breakpoints stop, which, and what happened."""
MOST_HELD: Final = 64 << 20
"""Bytes of op results of the running input that are held; others are computed again when they are asked for."""
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class UserChange:
    """Something that a user changed. `make` does it, on the machine of any precision; it is given what replaces the
    result of the op that has just run."""

    position: Position
    text: str
    make: "Callable[[Steps], None]"


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

    def hits(self, engine: "Steps", now: Moment) -> tuple[tuple[int, ...], str]:
        """Which of them stop here, and what happened, in words."""
        ...


class Steps(Stepper):
    """Of one machine: where it is, and what the running input read and gave. A subclass says how the program is
    held."""

    history: History

    def __init__(self, emulator: Emulator, changes: "list[UserChange]", interrupted: Interrupt) -> None:
        self.emulator = emulator
        self.interrupted = interrupted
        self.netlist: Netlist = emulator.netlist
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
        self._goal: Goal | None = None
        self._breaking = False
        self._watched_from = 0
        self._last_hit: Hit | None = None
        self._seeking = False
        self._skips = False
        self._machine = emulator.machine
        self._channels = self._machine.memory.channels
        self._reset(START)

    def _hold(self, stop: Stop) -> None:
        """Does not return until the program may go on."""
        raise NotImplementedError

    def _reset(self, position: Position) -> None:
        self.count: int = position.instruction  # instructions begun
        self.program = ""
        self.index = -1
        self.instruction_now: Instruction | None = None
        self.variables: Variables | None = None
        self._leave_epoch()
        self.ops = False
        self.most_inputs = None

    def _leave_epoch(self) -> None:
        self.graphs: tuple[str, ...] = ()
        self.input_count = 0
        self.done = 0  # inputs of the epoch
        self.op_now: Op | None = None
        self.put: Callable[[Tiles], None] | None = None
        self.values: dict[str, Tiles] = {}  # of the running input: what it read and what ops gave
        self._held_bytes = 0

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        if self.graphs:
            self._leave_epoch()
        self.count += 1
        self.program = program
        self.index = index
        self.instruction_now = instruction
        self.variables = variables
        if self.history.due():
            self.history.take(Position(self.count), self._running, running=True)
        if self.count >= self._watched_from or self.interrupted.wanted:
            self._event("instruction", Position(self.count))

    def _set_goal(self, goal: Goal, breaking: bool) -> None:
        """Where the run is to stop from now on: asked at steps of no instruction before `_watched_from`."""
        self._goal = goal
        self._breaking = breaking
        free = not self.changes and not (breaking and self.breaks is not None)
        if free and goal.kind == "continue":
            self._watched_from = _NEVER
        else:
            self._watched_from = goal.target.instruction if free and goal.target is not None else 0

    @property
    def standing(self) -> Standing:
        """Where the program is; only while one runs."""
        return self._machine.programs.standing

    @property
    def loops(self) -> int:
        """How many loops are being run."""
        return len(self.standing.loops) if self.program else 0

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        self.graphs = graphs
        self.input_count = inputs
        self.done = 0
        self._choose()

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        channels = self._channels
        anew = tuple([name for name in writes if channels[name].zero])
        self.log.add(
            Chunk(
                instruction=self.count,
                first=self.done,
                count=inputs,
                graphs=self.graphs,
                reads=reads,
                writes=writes,
                anew=anew,
            )
        )
        self.op_now = None
        self.put = None
        if self.values:
            self.values = {}
            self._held_bytes = 0

    def inputs_done(self, inputs: int) -> None:
        self.log.stored()
        self.done += inputs
        self.op_now = None
        self.put = None
        if self.count >= self._watched_from or self.interrupted.wanted:
            self._event("stored", Position(self.count, self.done - 1, STORED))
            self._choose()

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - one, or the first of them
        self._hold_value(queue, tiles)

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        self.op_now = op
        self.put = None
        self._skips = False
        self._event("op", self._op_position(op, 0))
        return not self._skips

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:  # noqa: ARG002
        self._hold_value(op.name, tiles)
        self.put = partial(self._replace, op.name, put) if put is not None else None
        self._event("result", self._op_position(op, 1))
        self.put = None

    def skip(self) -> None:
        """The op that is about to run is not run."""
        self._skips = True

    def set_variable(self, name: str, value: int) -> None:
        """Of the running program."""
        self._machine.programs.set_variable(name, value)

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
        if self.count < self._watched_from and not self.interrupted.wanted:
            self.ops = False
            self.most_inputs = None
            return
        graph = self.graphs[0]
        topo = self._topologies[graph]
        goal = self._goal
        breaks = self.breaks if self._breaking else None
        ops = self.interrupted.wanted or (goal is not None and goal.at_ops(self.count, self.done))
        most = goal.most_inputs(self.count, self.done) if goal is not None else None
        changed = any(change.position.instruction == self.count for change in self.changes)
        if breaks is not None and breaks.stops_at_ops(topo.graphs):
            ops = True
            most = 1
        elif breaks is not None and breaks.stops_at_inputs(topo):
            most = 1
        if changed:
            ops = True
            most = 1
        self.ops = ops
        self.most_inputs = 1 if ops else most

    def _event(self, event: Event, position: Position) -> None:
        self._make_changes(position)
        now = Moment(event=event, position=position, program=self.program, index=self.index, loops=self.loops)
        numbers, text = self._hits(now)
        if self._seeking:
            target = self._goal.target if self._goal is not None else None
            if numbers and (target is None or position < target):
                self._last_hit = position, numbers, text
            numbers = ()
        if numbers:
            self._held(Stop("breakpoint", position, text, numbers))
        elif self._goal is not None and self._goal.reached(now):
            self._held(Stop("step", position))
        elif self.interrupted.wanted:
            self._held(Stop("interrupted", position))

    def _hits(self, now: Moment) -> tuple[tuple[int, ...], str]:
        """Breakpoints that stop here; whoever interrupts their conditions comes to them again by going on."""
        while self._breaking and self.breaks is not None:
            try:
                return self.breaks.hits(self, now)
            except StoppedShortError:
                self._held(Stop("interrupted", now.position))
        return (), ""

    def _held(self, stop: Stop) -> None:
        self._hold(stop)
        if self.graphs and stop.position.in_epoch:
            self._choose()

    def _make_changes(self, position: Position) -> None:
        for change in self.changes:
            if change.position == position:
                change.make(self)

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Queues and rams of the machine."""
        return self._channels

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
        first = slot * view.t
        last = (slot + 1) * view.t
        found: list[tuple[str, int]] = []
        for name, channel in self.channels.items():
            other = channel.view
            if other.store is view.store and not self.netlist.queues[name].host_fed:
                found += [(name, at) for at in range(first // other.t, -(-last // other.t))]
        return found
