"""The provenance of an entry, back to data from the host: `why QUEUE[slot]`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from buda_emu.debugger.machine.engine import Engine
from buda_emu.debugger.machine.log import Chunk
from buda_emu.debugger.machine.position import Position
from buda_emu.debugger.names import Names
from buda_emu.netlist.model import Op
from buda_emu.records import dataclass

MOST: Final = 2000
"""Entries that one answer goes back over."""
MOST_DEPTH: Final = 40
"""Of what is printed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of an entry. `op`: who wrote it, "" for the host; `through`: the ops of its graph between what was
    read and it, in the order in which they ran; `reads`: numbers of entries among those of the answer."""

    queue: str
    slot: int
    op: str
    position: Position | None  # of the input that wrote it; None: it was there before, or longer ago than is remembered
    through: tuple[str, ...]
    reads: tuple[int, ...]
    forgotten: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        where = (
            None
            if self.position is None
            else {"instruction": self.position.instruction, "input": self.position.input + 1}
        )
        return {
            "queue": self.queue,
            "slot": self.slot,
            "op": self.op,
            "written": where,
            "through": list(self.through),
            "reads": list(self.reads),
            "forgotten": self.forgotten,
        }


class _Why:
    def __init__(self, engine: Engine, ops: Mapping[str, Op]) -> None:
        self._engine = engine
        self._netlist = engine.netlist
        self._ops = ops
        self._log = engine.log
        self._numbers: dict[tuple[str, int, Position | None], int] = {}
        self.entries: list[Entry] = []
        self._open: list[tuple[int, Chunk, int]] = []

    def of(self, queue: str, slot: int, before: Position) -> list[Entry]:
        self._number(queue, slot, before)
        while self._open and len(self.entries) < MOST:
            number, chunk, which = self._open.pop(0)
            entry = self.entries[number]
            reads, through = self._sources(self._ops[entry.op], chunk, which)
            begun = Position(chunk.instruction, chunk.first + which)
            if self._adds_up(entry) and entry.queue not in chunk.anew:
                reads.append((entry.queue, entry.slot))
            found = tuple(self._number(name, at, begun) for name, at in dict.fromkeys(reads))
            self.entries[number] = Entry(entry.queue, entry.slot, entry.op, entry.position, through, found)
        return self.entries

    def _adds_up(self, entry: Entry) -> bool:
        """Does the op add to what the ram held?"""
        queue = self._netlist.queues[entry.queue]
        return queue.is_ram and self._ops[entry.op].gradient_op

    def _number(self, queue: str, slot: int, before: Position) -> int:
        entries = self._engine.sharing(queue, slot)
        found = self._log.writer(entries, before) if entries else None
        position = None if found is None else Position(found[0].instruction, found[0].first + found[1])
        key = queue, slot, position
        if key in self._numbers:
            return self._numbers[key]
        number = self._numbers[key] = len(self.entries)
        if found is None:
            self.entries.append(Entry(queue, slot, "", None, (), (), bool(entries) and self._log.cut))
        else:
            chunk, which, name, _ = found
            self.entries.append(Entry(queue, slot, self._netlist.queues[name].input, position, (), ()))
            self._open.append((number, chunk, which))
        return number

    def _sources(self, op: Op, chunk: Chunk, which: int) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
        """The entries that an op's result was made of in one input, and the ops in between, itself the last."""
        topo = self._engine.topology(op.graph)
        inside = {item.name for item in topo.ops}
        reads: dict[tuple[str, int], None] = {}
        seen: dict[str, None] = {}
        ahead = [op.name]
        while ahead:
            name = ahead.pop()
            if name in seen:
                continue
            seen[name] = None
            for source in self._ops[name].inputs:
                if source in inside:
                    ahead.append(source)
                elif source in chunk.reads:
                    slots = chunk.reads[source]
                    reads[source, slots[which]] = None
                else:  # what the epoch has just pushed to a queue of its own
                    ahead.append(self._netlist.queues[source].input)
        order = {item.name: number for number, item in enumerate(topo.ops)}
        return list(reads), tuple(sorted(seen, key=order.__getitem__))


def why(engine: Engine, names: Names, queue: str, slot: int) -> list[Entry]:
    """The entry as it is now first, then what it was made of, breadth first; an entry is told once."""
    now = engine.stop.position
    return _Why(engine, names.ops).of(queue, slot, now._replace(step=now.step + 1))


def chain_lines(entries: list[Entry], number: int = 0, depth: int = 0, seen: set[int] | None = None) -> Iterator[str]:
    """As an indented tree; what was told above is not told again."""
    told = set[int]() if seen is None else seen
    entry = entries[number]
    if depth > MOST_DEPTH:
        yield f"{'  ' * depth}..."
        return
    again = number in told and bool(entry.reads)
    told.add(number)
    yield f"{'  ' * depth}{entry.queue}[{entry.slot}] {_written(entry)}{' (as above)' if again else ''}"
    if not again:
        for source in entry.reads:
            yield from chain_lines(entries, source, depth + 1, told)


def _written(entry: Entry) -> str:
    if entry.position is None:
        return "was written longer ago than is remembered" if entry.forgotten else "was given by the host"
    others = [name for name in entry.through if name != entry.op]
    shown = f" (through {', '.join(others[:6])}{', ...' if len(others) > 6 else ''})" if others else ""
    where = f"instruction {entry.position.instruction} of the run, input {entry.position.input + 1}"
    return f"was written by op {entry.op}{shown} in {where}"
