"""The report of a program that stopped, as data and as text (docs/run/stopped-programs.md); `ProgramError.stopped`
holds it.

Plain data, so that errors can carry it: `runtime.stop` fills it in.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from buda_emu.support.records import dataclass

_SHOWN_VARIABLES = 12  # so that they fit two lines of a message
_SHOWN_WAITS = 6  # the first explain the deadlock; more would hide them
_LISTS = ("loops", "graphs", "ops", "input", "waiting")
_NAMES = r"\$\w+"


@dataclass(frozen=True, slots=True)
class Round:
    """A loop in progress: the line of its `loop`, the text of its count, and the present round of all rounds."""

    line: int
    count: str
    round: int  # from 1
    rounds: int

    def __str__(self) -> str:
        return f"round {self.round} of {self.rounds} of the loop of line {self.line}"


@dataclass(frozen=True, slots=True)
class Wait:
    """An op that cannot go on, and the condition that it waits for."""

    op: str
    type: str
    graph: str
    waits_for: str

    def __str__(self) -> str:
        return f"{self.op} ({self.type}, graph {self.graph}) waits for {self.waits_for}"


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
        place = f"instruction {self.instruction} of {self.program} (line {self.line})"
        return f"by {self.by}{into} in {', '.join((place, *map(str, self.loops)))}, {self.total} in all"


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
    """The place and cause of a stop. `graphs` is empty outside of an execute; `input` is the number of the epoch's
    input, from 1, and of how many."""

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
        """Return the report as plain data, with lists in place of tuples."""
        plain = asdict(self)
        for name in _LISTS:
            if plain[name] is not None:
                plain[name] = list(plain[name])
        return plain

    def text_lines(self) -> Iterator[str]:
        """Give the lines of the report: the problem, then a line for each part that is not empty."""
        yield self.problem
        yield f"  at:           {self.file}:{self.line}:{self.column}: {self.text}"
        for number, loop in enumerate(self.loops):
            yield f"  {'loops:' if number == 0 else '':13} {loop} (loop: {loop.count})"
        if self.variables:
            yield self._variables_line()
        if self.input is not None:
            yield f"  input:        {self.input[0]} of {self.input[1]} of the epoch"
        if self.ops:
            yield f"  {'ops:' if len(self.ops) > 1 else 'op:':13} {', '.join(map(str, self.ops))}"
        yield from self._waiting_lines()
        if self.queue is not None:
            yield from _queue_lines(self.queue)
        if self.cause:
            yield f"  likely cause: {self.cause}"

    def report(self) -> str:
        """Return the report as text."""
        return "\n".join(self.text_lines())

    def _variables_line(self) -> str:
        """Return a line with the values of the first variables, those that the instruction reads before all others."""
        read_here = set(re.findall(_NAMES, self.text))
        names = sorted(self.variables, key=lambda name: name not in read_here)
        texts = [f"{name} = {self.variables[name]}" for name in names[:_SHOWN_VARIABLES]]
        hidden = len(self.variables) - len(texts)
        suffix = f", and {hidden} more" if hidden else ""
        return f"  variables:    {', '.join(texts)}{suffix}"

    def _waiting_lines(self) -> Iterator[str]:
        """Yield a line for each of the first ops that wait, and one for the number of others."""
        for number, wait in enumerate(self.waiting[:_SHOWN_WAITS]):
            yield f"  {'waiting:' if number == 0 else '':13} {wait}"
        if len(self.waiting) > _SHOWN_WAITS:
            yield f"  {'':13} and {len(self.waiting) - _SHOWN_WAITS} more ops after these"


def _queue_lines(queue: QueueState) -> Iterator[str]:
    """Yield the lines about the queue or ram at fault: its pointers, its last push, and of a queue its last pop."""
    pointers = f"entries {queue.entries}, rd_ptr_global {queue.rd_ptr_global}, wr_ptr_global {queue.wr_ptr_global}"
    if queue.occupancy is not None:
        pointers += f", rd_ptr_local {queue.rd_ptr_local}, occupancy {queue.occupancy}"
    yield f"  {queue.kind + ':':13} {queue.name}: {pointers}, {queue.written} written"
    yield f"  last pushed:  {queue.pushed or 'never'}"
    if queue.kind == "queue":
        yield f"  last popped:  {queue.popped or 'never'}"
