"""Why a program stopped: everything around a ProgramError, as data and as text (docs/stopped-programs.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from buda_emu.device.channel import Fifo, Ram
from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Execute, Netlist, Op
from buda_emu.program.place import Place, instruction_text
from buda_emu.runtime.causes import Scene, likely_cause
from buda_emu.runtime.journal import Journal

_SHOWN_VARIABLES = 12


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue or ram when the program stopped. `pushed` and `popped` say who did it last, "" for nobody."""

    name: str
    kind: str  # "queue" or "ram"
    entries: int
    rd_ptr_global: int
    wr_ptr_global: int
    rd_ptr_local: int | None  # None: a ram has none
    occupancy: int | None
    written: int  # entries that hold data
    pushed: str
    popped: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where and why. `graphs` is empty outside of an execute; `input` is (which, of how many) of the epoch."""

    kind: str  # a key of STOP_KINDS
    problem: str
    file: str
    program: str
    instruction: int
    line: int
    column: int
    text: str  # the instruction as it stands in a netlist
    loops: tuple[str, ...]  # outermost first
    variables: Mapping[str, int]
    graphs: tuple[str, ...]
    ops: tuple[str, ...]
    input: tuple[int, int] | None
    queue: QueueState | None
    cause: str  # "" where nothing can be said

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name != "queue"}
        queue = self.queue
        plain["queue"] = {name: getattr(queue, name) for name in queue.__slots__} if queue is not None else None
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}  # type: ignore[misc]

    def text_lines(self) -> Iterator[str]:
        """The problem, then a line for each thing that is known."""
        yield self.problem
        yield f"  at:           {self.file}:{self.line}:{self.column}: {self.text}"
        for number, loop in enumerate(self.loops):
            yield f"  {'loops:' if number == 0 else '':13} {loop}"
        if self.variables:
            shown = [f"{name} = {value}" for name, value in list(self.variables.items())[:_SHOWN_VARIABLES]]
            more = f", and {len(self.variables) - len(shown)} more" if len(self.variables) > len(shown) else ""
            yield f"  variables:    {', '.join(shown)}{more}"
        if self.input is not None:
            yield f"  input:        {self.input[0]} of {self.input[1]} of the epoch"
        if self.ops:
            yield f"  {'ops:' if len(self.ops) > 1 else 'op:':13} {', '.join(self.ops)}"
        if self.queue is not None:
            yield from _queue_lines(self.queue)
        if self.cause:
            yield f"  likely cause: {self.cause}"

    def report(self) -> str:
        """All lines."""
        return "\n".join(self.text_lines())


def _queue_lines(queue: QueueState) -> Iterator[str]:
    pointers = f"entries {queue.entries}, rd_ptr_global {queue.rd_ptr_global}, wr_ptr_global {queue.wr_ptr_global}"
    if queue.occupancy is not None:
        pointers += f", rd_ptr_local {queue.rd_ptr_local}, occupancy {queue.occupancy}"
    yield f"  {queue.kind + ':':13} {queue.name}: {pointers}, {queue.written} written"
    yield f"  last pushed:  {queue.pushed or 'never'}"
    if queue.kind == "queue":
        yield f"  last popped:  {queue.popped or 'never'}"


def stopped(
    error: ProgramError, place: Place, netlist: Netlist, channels: Mapping[str, Fifo | Ram], journal: Journal
) -> Stopped:
    """Everything around an error that ended a program at `place`."""
    graphs = _graphs(netlist, place)
    channel = channels.get(error.queue)
    ops = _ops(error, netlist, graphs)
    mark = place.instruction.at()
    return Stopped(
        kind=error.kind, problem=error.problem, file=netlist.path, program=place.program, instruction=place.index,
        line=mark.line, column=mark.column, text=instruction_text(place.instruction, error.queue),
        loops=tuple(f"{item} (loop: {item.count})" for item in place.rounds), variables=place.variables,
        graphs=graphs, ops=tuple(f"{op.name} ({op.type}, graph {op.graph})" for op in ops), input=error.input,
        queue=_state(channel, journal) if channel is not None else None,
        cause=likely_cause(error, Scene(netlist, place, graphs, channel, journal)),
    )  # fmt: skip


def _graphs(netlist: Netlist, place: Place) -> tuple[str, ...]:
    instruction = place.instruction
    if not isinstance(instruction, Execute):
        return ()
    found = (item.graphs for item in netlist.temporal_graphs if instruction.graph in item.graphs)
    return next(found, (instruction.graph,))


def _ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> list[Op]:
    """The op at fault, else those of the running graphs that read or write the queue at fault."""
    ops = netlist.ops
    if error.op in ops:
        return [ops[error.op]]
    queue = netlist.queues.get(error.queue)
    if queue is None or error.kind not in ("full", "empty", "unwritten"):
        return []
    if error.kind == "full":
        return [ops[queue.input]] if queue.input in ops else []
    return [op for name in graphs for op in netlist.graphs[name].ops if queue.name in op.inputs]


def _state(channel: Fifo | Ram, journal: Journal) -> QueueState:
    entry = journal.of(channel.name)
    pushed = str(entry.pushed) if entry.pushed is not None else ""
    popped = str(entry.popped) if entry.popped is not None else ""
    entries = channel.view.entries
    written = sum(bool(channel.view.label(slot)) for slot in range(entries))
    if isinstance(channel, Ram):
        return QueueState(channel.name, "ram", entries, channel.rd, channel.wr, None, None, written, pushed, popped)
    ring = channel.ring
    return QueueState(
        channel.name, "queue", entries, ring.rd, ring.wr, ring.local, ring.occupancy, written, pushed, popped
    )
