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
"""The position at which breakpoints stop, their numbers, and what happened."""
MAX_HELD_BYTES: Final = 64 << 20
"""Bytes of tensors of the running input that are held; others are computed again on demand."""
_NEVER: Final = 1 << 62  # later than any step


@dataclass(frozen=True, slots=True)
class UserChange:
    """A change that a user made at a position. `make` applies it to the machine of any precision."""

    position: Position
    text: str
    make: "Callable[[Steps], None]"


class BreakpointTests(Protocol):
    """The interface by which the engine asks where breakpoints may stop, and which of them do."""

    def forget(self) -> None:
        """Clear what was seen at the previous event, because the run stands at another moment."""
        ...

    def stops_at_ops(self, graphs: Sequence[str]) -> bool:
        """Return whether a breakpoint may stop at an op of these graphs."""
        ...

    def stops_at_inputs(self, topo: Topology) -> bool:
        """Return whether a breakpoint may stop between two inputs of this epoch."""
        ...

    def hits(self, engine: "Steps", moment: Moment) -> tuple[tuple[int, ...], str]:
        """Test the breakpoints at this moment and count their hits. Return the numbers of those that stop the run, and
        text on what happened; () and "" if none does."""
        ...


class Steps(Stepper):
    """Position of one machine, and the tensors of the running input, as the program reports them. A subclass implements
    how the program is held."""

    history: History

    def __init__(self, emulator: Emulator, changes: "list[UserChange]", interrupted: Interrupt) -> None:
        self.emulator = emulator
        self.interrupted = interrupted
        self.netlist: Netlist = emulator.netlist
        self.changes = changes
        self.breaks: BreakpointTests | None = None
        self.log = Log()
        self._topologies: dict[str, Topology] = {}
        for temporal in self.netlist.temporal_graphs:
            self._topologies |= {graph: topology(self.netlist, temporal) for graph in temporal.graphs}
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
        """Stop the program at its present step until the debugger lets it go on, and then return."""
        raise NotImplementedError

    def _reset(self, position: Position) -> None:
        """Clear all that belongs to a running program, and count instructions on from those begun at `position`."""
        self.count: int = position.instruction  # instructions begun
        self.program = ""
        self.index = -1
        self.instruction_now: Instruction | None = None
        self.variables: Variables | None = None
        self._leave_epoch()
        self.ops = False
        self.most_inputs = None

    def _leave_epoch(self) -> None:
        """Clear all that belongs to the epoch: its graphs, counts of inputs, the current op and the tensors of the
        running input."""
        self.graphs: tuple[str, ...] = ()
        self.input_count = 0
        self.done = 0  # inputs of the epoch
        self.op_now: Op | None = None
        self.put: Callable[[Tiles], None] | None = None
        self.values: dict[str, Tiles] = {}  # of the running input: what it read and what ops gave
        self._held_bytes = 0

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """Note the instruction that is about to run, take a checkpoint if one is due, and stop where goal or
        breakpoints say so."""
        if self.graphs:
            self._leave_epoch()
        self.count += 1
        self.program = program
        self.index = index
        self.instruction_now = instruction
        self.variables = variables
        if self.history.is_due():
            self.history.take(Position(self.count), self._running, running=True)
        if self.count >= self._watched_from or self.interrupted.wanted:
            self._event("instruction", Position(self.count))

    def _set_goal(self, goal: Goal, breaking: bool) -> None:
        """Set where the run is to stop. Goals and breakpoints are not tested at instructions before `_watched_from`."""
        self._goal = goal
        self._breaking = breaking
        self._watched_from = 0
        if self.changes or (breaking and self.breaks is not None):
            return
        if goal.kind == "continue":
            self._watched_from = _NEVER
        elif goal.target is not None:
            self._watched_from = goal.target.instruction

    @property
    def standing(self) -> Standing:
        """The interpreter's state of the program; only while one runs."""
        return self._machine.programs.standing

    @property
    def loops(self) -> int:
        """The depth of loops that are being run."""
        return len(self.standing.loops) if self.program else 0

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        """Record the epoch that begins, and choose whether its first inputs are stopped at ops."""
        self.graphs = graphs
        self.input_count = inputs
        self.done = 0
        self._choose()

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        """Log the inputs that are about to run together, with the slots that they read and write."""
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
        """Note that the results of the inputs are in their queues, and stop where goal or breakpoints say so."""
        self.log.mark_stored()
        self.done += inputs
        self.op_now = None
        self.put = None
        if self.count >= self._watched_from or self.interrupted.wanted:
            self._event("stored", Position(self.count, self.done - 1, STORED))
            self._choose()

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - one, or the first of them
        """Remember the tensor that the epoch has read from a queue, for inspection."""
        self._hold_value(queue, tiles)

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        """Stop before an op where goal or breakpoints say so; return False if the user skips the op."""
        self.op_now = op
        self.put = None
        self._skips = False
        self._event("op", self._op_position(op, 0))
        return not self._skips

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:  # noqa: ARG002
        """Remember the result of an op and stop after it where goal or breakpoints say so; meanwhile the user can
        replace the result by `put`."""
        self._hold_value(op.name, tiles)
        self.put = None
        if put is not None:
            self.put = partial(self._replace, op.name, put)
        self._event("result", self._op_position(op, 1))
        self.put = None

    def skip(self) -> None:
        """Do not run the op that is about to run."""
        self._skips = True

    def set_variable(self, name: str, value: int) -> None:
        """Set a variable of the running program."""
        self._machine.programs.set_variable(name, value)

    def _replace(self, op: str, put: Callable[[Tiles], None], tiles: Tiles) -> None:
        """Replace the result of an op in the run by `put`, and in `values`."""
        put(tiles)
        if op in self.values:
            self.values[op][...] = tiles

    def _hold_value(self, name: str, tiles: Tiles) -> None:
        """Remember a copy of the tiles of the first of the inputs under a name; the oldest tensors are dropped beyond
        MAX_HELD_BYTES."""
        first_input = tiles[:1].copy()
        self.values[name] = first_input
        self._held_bytes += first_input.nbytes
        while self._held_bytes > MAX_HELD_BYTES and len(self.values) > 1:
            oldest = next(iter(self.values))
            self._held_bytes -= self.values.pop(oldest).nbytes

    def topology(self, graph: str) -> Topology:
        """Return the topology of the epoch that a graph belongs to."""
        return self._topologies[graph]

    def order(self, graph: str) -> Mapping[str, int]:
        """Return the number of each op in the order in which the graph's epoch runs them."""
        topo = self._topologies[graph]
        first = topo.graphs[0]
        if first not in self._orders:
            self._orders[first] = {op.name: number for number, op in enumerate(topo.ops)}
        return self._orders[first]

    def _op_position(self, op: Op, after: int) -> Position:
        """Return the position before an op, or with `after` = 1 the one after it."""
        return Position(self.count, self.done, 2 * self.order(op.graph)[op.name] + after)

    def _choose(self) -> None:
        """Choose for the next inputs of the epoch whether the run reports each op (`ops`), and how many inputs may run
        together (`most_inputs`): fewer reports run faster."""
        self.ops = False
        self.most_inputs = None
        if self.count < self._watched_from and not self.interrupted.wanted:
            return
        if self._must_watch_ops():
            self.ops = True
            self.most_inputs = 1
        elif self._breaking and self.breaks is not None and self.breaks.stops_at_inputs(self._running_topology()):
            self.most_inputs = 1
        elif self._goal is not None:
            self.most_inputs = self._goal.most_inputs(self.count, self.done)

    def _must_watch_ops(self) -> bool:
        """Return whether the next input may have to be held at an op: for an interrupt, the goal, a change or a
        breakpoint."""
        if self.interrupted.wanted or (self._goal is not None and self._goal.at_ops(self.count, self.done)):
            return True
        if any(change.position.instruction == self.count for change in self.changes):
            return True
        if not self._breaking or self.breaks is None:
            return False
        return self.breaks.stops_at_ops(self._running_topology().graphs)

    def _running_topology(self) -> Topology:
        """Return the topology of the running epoch."""
        return self._topologies[self.graphs[0]]

    def _event(self, event: Event, position: Position) -> None:
        """Handle an event: apply the user's changes at this position, test breakpoints and the goal, and hold the
        program if one of them, or an interrupt, stops it."""
        self._make_changes(position)
        moment = Moment(event=event, position=position, program=self.program, index=self.index, loops=self.loops)
        numbers, text = self._hits(moment)
        if numbers and self._seeking:  # a search for the last hit: none of them stops the run
            if self._goal is None or self._goal.target is None or position < self._goal.target:
                self._last_hit = position, numbers, text
            numbers = ()
        if numbers:
            self._hold_at(Stop("breakpoint", position, text, numbers))
        elif self._goal is not None and self._goal.stops_at(moment):
            self._hold_at(Stop("step", position))
        elif self.interrupted.wanted:
            self._hold_at(Stop("interrupted", position))

    def _hits(self, moment: Moment) -> tuple[tuple[int, ...], str]:
        """Test the breakpoints and return the numbers and the text of those that stop here. If an interrupt ends the
        evaluation of a condition, hold the program, and test them again when it continues."""
        while self._breaking and self.breaks is not None:
            try:
                return self.breaks.hits(self, moment)
            except StoppedShortError:
                self._hold_at(Stop("interrupted", moment.position))
        return (), ""

    def _hold_at(self, stop: Stop) -> None:
        """Hold the program at a stop; when it goes on, choose again how closely to watch, because goal and breakpoints
        may be others."""
        self._hold(stop)
        if self.graphs and stop.position.in_epoch:
            self._choose()

    def _make_changes(self, position: Position) -> None:
        """Apply the changes that were made at this position."""
        for change in self.changes:
            if change.position == position:
                change.make(self)

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The queues and rams of the machine by name."""
        return self._channels

    def place(self) -> Place:
        """Return where the program is: instruction, loops, variables. Only while one runs."""
        return self._machine.programs.place

    @property
    def executed(self) -> Mapping[str, int]:
        """The number of times that each graph has run to its end."""
        return self._machine.journal.executed

    def sharing(self, queue: str, slot: int) -> list[tuple[str, int]]:
        """Return the entries, (queue, slot), of this and other rams that lie on the same memory (NETLIST 1.10), as far
        as an op fills their queues; [] for an entry that only the host writes."""
        view = self.channels[queue].view
        first = slot * view.t
        last = (slot + 1) * view.t
        entries: list[tuple[str, int]] = []
        for name, channel in self.channels.items():
            other = channel.view
            if other.store is view.store and not self.netlist.queues[name].host_fed:
                entries += [(name, at) for at in range(first // other.t, -(-last // other.t))]
        return entries
