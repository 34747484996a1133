"""Why a program stopped: everything around a ProgramError, as data and as text (docs/stopped-programs.md)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from buda_emu.device.channel import Fifo, Ram
from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Execute, Netlist, Op
from buda_emu.program.place import Place, Round, instruction_text
from buda_emu.runtime.machine.journal import HOST, SETTINGS, Journal, Traffic
from buda_emu.runtime.stop.causes import Scene, likely_cause
from buda_emu.runtime.stop.waiting import Wait, waiting

_SHOWN_VARIABLES = 12
_SHOWN_WAITS = 6
_LISTS = ("loops", "graphs", "ops", "input", "waiting")
_NAMES = re.compile(r"\$\w+")


@dataclass(frozen=True, slots=True)
class Transfer:
    """The last push or pop of a queue. Without a program it was done between programs, by the host."""

    by: str  # "op x of graph g", "the host" or "the program's pointer settings"
    slot: int | None  # None: a pop
    total: int  # entries pushed, or freed, since the machine was made
    program: str
    instruction: int | None
    line: int | None
    loops: tuple[Round, ...]  # outermost first

    def __str__(self) -> str:
        into = f" into slot {self.slot}" if self.slot is not None else ""
        if self.instruction is None:
            return f"by {self.by}{into}, {self.total} in all"
        where = f"instruction {self.instruction} of {self.program} (line {self.line})"
        return f"by {self.by}{into} in {', '.join((where, *map(str, self.loops)))}, {self.total} in all"


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue or ram when the program stopped."""

    name: str
    kind: str  # "queue" or "ram"
    entries: int
    rd_ptr_global: int
    wr_ptr_global: int
    rd_ptr_local: int | None  # None: a ram has none
    occupancy: int | None
    written: int  # entries that hold data
    pushed: Transfer | None  # the last; None: never
    popped: Transfer | None


@dataclass(frozen=True, slots=True)
class OpAtFault:
    """An op that failed, or that reads or writes the queue at fault. `line` is the one that defines it."""

    name: str
    type: str
    graph: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} ({self.type}, graph {self.graph})"


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
    loops: tuple[Round, ...]  # outermost first
    variables: Mapping[str, int]
    graphs: tuple[str, ...]
    ops: tuple[OpAtFault, ...]
    input: tuple[int, int] | None
    waiting: tuple[Wait, ...]  # of a full or empty queue: who cannot go on, and why
    queue: QueueState | None
    cause: str  # "" where nothing can be said

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)
        return {name: list(value) if name in _LISTS and value is not None else value for name, value in plain.items()}

    def text_lines(self) -> Iterator[str]:
        """The problem, then a line for each thing that is known."""
        yield self.problem
        yield f"  at:           {self.file}:{self.line}:{self.column}: {self.text}"
        for number, loop in enumerate(self.loops):
            yield f"  {'loops:' if number == 0 else '':13} {loop} (loop: {loop.count})"
        if self.variables:
            named = set(_NAMES.findall(self.text))  # those of the instruction first
            ordered = sorted(self.variables.items(), key=lambda item: item[0] not in named)
            shown = [f"{name} = {value}" for name, value in ordered[:_SHOWN_VARIABLES]]
            more = f", and {len(self.variables) - len(shown)} more" if len(self.variables) > len(shown) else ""
            yield f"  variables:    {', '.join(shown)}{more}"
        if self.input is not None:
            yield f"  input:        {self.input[0]} of {self.input[1]} of the epoch"
        if self.ops:
            yield f"  {'ops:' if len(self.ops) > 1 else 'op:':13} {', '.join(map(str, self.ops))}"
        for number, wait in enumerate(self.waiting[:_SHOWN_WAITS]):
            yield f"  {'waiting:' if number == 0 else '':13} {wait}"
        if len(self.waiting) > _SHOWN_WAITS:
            yield f"  {'':13} and {len(self.waiting) - _SHOWN_WAITS} more ops behind these"
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
    mark = place.instruction.at()
    return Stopped(
        kind=error.kind, problem=error.problem, file=netlist.path, program=place.program, instruction=place.index,
        line=mark.line, column=mark.column, text=instruction_text(place.instruction, error.queue),
        loops=place.rounds, variables=place.variables, graphs=graphs, ops=_ops(error, netlist, graphs),
        input=error.input, waiting=waiting(error, netlist, graphs),
        queue=_state(channel, netlist, journal) if channel is not None else None,
        cause=likely_cause(error, Scene(netlist, place, graphs, channel, journal)),
    )  # fmt: skip


def _graphs(netlist: Netlist, place: Place) -> tuple[str, ...]:
    instruction = place.instruction
    if not isinstance(instruction, Execute):
        return ()
    found = (item.graphs for item in netlist.temporal_graphs if instruction.graph in item.graphs)
    return next(found, (instruction.graph,))


def _ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> tuple[OpAtFault, ...]:
    """The op at fault, else those of the running graphs that read or write the queue at fault."""
    return tuple(OpAtFault(op.name, op.type, op.graph, op.at().line) for op in _found_ops(error, netlist, graphs))


def _found_ops(error: ProgramError, netlist: Netlist, graphs: tuple[str, ...]) -> list[Op]:
    ops = netlist.ops
    if error.op in ops:
        return [ops[error.op]]
    queue = netlist.queues.get(error.queue)
    if queue is None or error.kind not in ("full", "empty", "unwritten"):
        return []
    if error.kind == "full":
        return [ops[queue.input]] if queue.input in ops else []
    return [op for name in graphs for op in netlist.graphs[name].ops if queue.name in op.inputs]


def _state(channel: Fifo | Ram, netlist: Netlist, journal: Journal) -> QueueState:
    entry = journal.of(channel.name)
    pushed, popped = _transfer(entry.pushed, netlist), _transfer(entry.popped, netlist)
    entries = channel.view.entries
    written = channel.view.written
    if isinstance(channel, Ram):
        return QueueState(channel.name, "ram", entries, channel.rd, channel.wr, None, None, written, pushed, popped)
    ring = channel.ring
    return QueueState(
        channel.name, "queue", entries, ring.rd, ring.wr, ring.local, ring.occupancy, written, pushed, popped
    )


def _transfer(traffic: Traffic | None, netlist: Netlist) -> Transfer | None:
    if traffic is None:
        return None
    by, place = traffic.by, traffic.place
    if by not in (HOST, SETTINGS):
        by = f"op {by} of graph {netlist.ops[by].graph}"
    slot = traffic.slot if traffic.slot >= 0 else None
    if place is None:
        return Transfer(by, slot, traffic.total, "", None, None, ())
    return Transfer(by, slot, traffic.total, place.program, place.index, place.line, place.rounds)
