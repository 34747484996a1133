"""The state at the current moment of a session: place, queues, variables, ops, epochs, memory, provenance."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import pointers_of
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import Chunk
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import STORED, Position
from buda_emu.app.debugger.names import Names
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import Found, extremes, held, of_queue, summary
from buda_emu.emulator.memory.channel import Ram
from buda_emu.emulator.memory.host import size_text
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.netlist.model import Execute, Op, Queue
from buda_emu.netlist.program.settings import instruction_text
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass

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
            self.entries[number] = Entry(
                queue=entry.queue, slot=entry.slot, op=entry.op, position=entry.position, through=through, reads=found
            )
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
            self.entries.append(
                Entry(
                    queue=queue,
                    slot=slot,
                    op="",
                    position=None,
                    through=(),
                    reads=(),
                    forgotten=bool(entries) and self._log.cut,
                )
            )
        else:
            chunk, which, name, _ = found
            self.entries.append(
                Entry(
                    queue=queue, slot=slot, op=self._netlist.queues[name].input, position=position, through=(), reads=()
                )
            )
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


def stop_data(run: Session) -> dict[str, Any]:
    """Why and where it stands."""
    stop = run.stop
    position = stop.position
    return {
        "reason": stop.reason,
        "position": str(position),
        "text": stop.text,
        "breakpoints": list(stop.breakpoints),
        "instructions": position.instruction,
        "input": position.input + 1 if position.in_epoch else None,
    }


def where(run: Session) -> Answer:
    """Program, loops, instruction, epoch, input, op and its cores."""
    return run.engine.call(lambda: _where(run))


def _where(run: Session) -> Answer:
    engine = run.engine
    stop = run.stop
    data: dict[str, Any] = {
        "stop": stop_data(run),
        "program": engine.program or None,
        "index": None,
        "line": None,
        "loops": [],
        "graphs": list(engine.graphs),
        "op": None,
        "cores": None,
        "input": None,
        "inputs": None,
    }
    lines: list[str] = []
    instruction = engine.instruction_now
    if instruction is None or not engine.program:
        text = {"start": "before the first program", "end": "all programs have run"}.get(stop.reason, stop.reason)
        return answer("where", [text], **data)
    place = engine.place()
    text = f"execute {instruction.graph}" if isinstance(instruction, Execute) else instruction_text(instruction)
    data |= {"index": engine.index, "line": place.line, "text": instruction_text(instruction)}
    data["loops"] = [{"line": loop.line, "round": loop.round, "rounds": loop.rounds} for loop in place.rounds]
    lines.append(f"{engine.program} instruction {engine.index}, line {place.line}: {text}")
    lines += [f"  {loop}" for loop in reversed(place.rounds)]
    if engine.graphs:
        now = min(stop.position.input, engine.input_count - 1) if stop.position.in_epoch else 0
        data |= {"input": now + 1, "inputs": engine.input_count}
        lines.append(f"  epoch {' + '.join(engine.graphs)}, input {now + 1} of {engine.input_count}{_through(run)}")
    op = engine.op_now
    if op is not None:
        data |= {"op": op.name, "cores": _cores(op), "line": op.at().line}
        after = "after" if stop.position.step % 2 else "before"
        node = run.names.nodes.get(op.name, "")
        made = f", of {node}" if node else ""
        lines.append(f"  {after} op {op.name} ({op.type}, {_on(op)}, line {op.at().line}{made})")
    return answer("where", lines, **data)


def _through(run: Session) -> str:
    return ", its results are stored" if run.stop.position.step == STORED and run.stop.reason != "error" else ""


def _cores(op: Op) -> dict[str, Any]:
    return {"chip": op.target_device, "at": list(op.grid_loc), "size": list(op.cores)}


def _on(op: Op) -> str:
    return f"chip {op.target_device} cores {_place(op)}"


def _place(op: Op) -> str:
    rows, columns = op.cores
    at = ",".join(map(str, op.grid_loc)) or "ethernet"
    return f"{at} {rows}x{columns}"


def _short_cores(run: Session, op: Op) -> str:
    """For tables: the chip only where there are several."""
    chips = {graph.target_device for graph in run.netlist.graphs.values()}
    return f"chip {op.target_device} {_place(op)}" if len(chips) > 1 else _place(op)


# ---------------------------------------------------------------------------------------------------------------- info
def queues(run: Session, pattern: str = "") -> Answer:
    """All queues and rams, or those whose name has `pattern` in it."""
    rows = run.engine.call(lambda: list(_queue_rows(run, pattern)))
    if not rows:
        raise HostError(f"no queue has {pattern!r} in its name")
    headers = ("queue", "kind", "fed by", "entries", "written", "held", "rd", "wr", "local", "format")
    cells = [
        (
            run.names.shown(row["name"]),
            row["kind"],
            row["input"],
            *(
                "-" if row[key] is None else str(row[key])
                for key in ("entries", "written", "held", "rd", "wr", "local")
            ),
            row["format"],
        )
        for row in rows
    ]
    return answer("queues", table(headers, cells, right=(3, 4, 5, 6, 7, 8)), queues=rows)


def _queue_rows(run: Session, pattern: str) -> Iterator[dict[str, Any]]:
    for name, channel in run.engine.channels.items():
        if pattern not in name:
            continue
        queue = run.netlist.queues[name]
        ram = isinstance(channel, Ram)
        pointers = pointers_of(channel)
        yield {
            "name": name,
            "kind": queue.type,
            "input": queue.input,
            "entries": queue.entries,
            "written": channel.view.written,
            "held": None if ram else channel.ring.occupancy,
            "rd": pointers[0],
            "wr": pointers[1],
            "local": None if ram else pointers[2],
            "format": queue.df,
        }


def variables(run: Session) -> Answer:
    """Of the running program."""
    engine = run.engine
    found = engine.call(engine.variables.snapshot) if engine.variables is not None else {}
    lines = [f"{name} = {value}" for name, value in found.items()] or ["no program runs"]
    return answer("vars", lines, variables=found)


def ops(run: Session) -> Answer:
    """Of the running epoch, in their order; else of all graphs."""
    engine = run.engine
    graphs = engine.graphs[:1] or tuple(temporal.graphs[0] for temporal in run.netlist.temporal_graphs)
    rows: list[dict[str, Any]] = []
    for graph in graphs:
        for number, op in enumerate(engine.topology(graph).ops):
            rows.append(
                {
                    "name": op.name,
                    "type": op.type,
                    "graph": op.graph,
                    "inputs": list(op.inputs),
                    "cores": _cores(op),
                    "state": _state(run, number) if engine.graphs else "",
                    "node": run.names.nodes.get(op.name, ""),
                }
            )
    named = any(row["node"] for row in rows)
    headers = ("", "op", "type", "graph", "cores", "reads", *(("node",) if named else ()))
    cells = [
        (
            row["state"],
            row["name"],
            row["type"],
            row["graph"],
            _short_cores(run, run.names.ops[row["name"]]),
            ", ".join(row["inputs"]),
            *((row["node"],) if named else ()),
        )
        for row in rows
    ]
    return answer("ops", table(headers, cells), ops=rows)


def _state(run: Session, number: int) -> str:
    step = run.stop.position.step
    if step == STORED or step > 2 * number:
        return "ran"
    return "next" if step == 2 * number else ""


def epochs(run: Session) -> Answer:
    """Which graphs run together, and how often they did."""
    executed = run.engine.executed
    rows: list[dict[str, Any]] = [
        {
            "graphs": list(temporal.graphs),
            "ops": len(run.engine.topology(temporal.graphs[0]).ops),
            "inputs": run.netlist.graphs[temporal.graphs[0]].input_count,
            "ran": executed.get(temporal.graphs[0], 0),
            "now": temporal.graphs[0] in run.engine.graphs,
        }
        for temporal in run.netlist.temporal_graphs
    ]
    cells = [
        ("->" if row["now"] else "", " + ".join(row["graphs"]), str(row["ops"]), str(row["inputs"]), str(row["ran"]))
        for row in rows
    ]
    return answer("epochs", table(("", "graphs", "ops", "inputs", "ran"), cells, right=(2, 3, 4)), epochs=rows)


def memory(run: Session) -> Answer:
    """Bytes of the machine, and of what going back keeps."""
    engine = run.engine
    use = engine.emulator.memory
    kept = engine.history
    data = {
        "queues": use.queues,
        "widest_cut": use.widest_cut,
        "limit": use.limit,
        "checkpoints": len(kept),
        "checkpoint_bytes": kept.bytes,
        "chunks_remembered": len(engine.log),
    }
    machine = f"queues and rams {size_text(use.queues)}, widest cut {size_text(use.widest_cut)}"
    back = f"{plural(len(kept), 'checkpoint')} with {size_text(kept.bytes)}"
    told = f"the log of writes has {plural(len(engine.log), 'chunk')} of inputs"
    return answer("memory", [f"{machine}, limit {size_text(use.limit)}", f"{back}; {told}"], **data)


def breakpoints(run: Session) -> Answer:
    """All of them."""
    items = list(run.breakpoints.items.values())
    lines = [_breakpoint_line(item.as_json()) for item in items] or ["no breakpoints"]
    return answer("breakpoints", lines, breakpoints=[item.as_json() for item in items])


def _breakpoint_line(item: dict[str, Any]) -> str:
    own = item["condition"] if item["kind"] != "if" else ""
    parts = [
        f"{item['number']}: {item['text']}",
        f"if {own}" if own else "",
        f"tells {item['log']}" if item["log"] else "",
        "temporary" if item["temporary"] else "",
        "" if item["enabled"] else "disabled",
        f"ignored {item['ignore']} more times" if item["ignore"] else "",
        f"hit {item['hits']} times" if item["hits"] else "",
    ]
    return ", ".join(part for part in parts if part)


# ------------------------------------------------------------------------------------------------------- where from
def provenance(run: Session, text: str) -> Answer:
    """Who wrote an entry from what, back to what the host gave."""
    found = run.tensor(text)
    if isinstance(found.of, Op) or found.slot is None:
        raise HostError(f"why tells of entries of queues and rams; {found.of.name} is an op: why QUEUE[slot]")
    queue = found.of.name
    slot = found.slot
    entries = run.engine.call(lambda: why(run.engine, run.names, queue, slot))
    return answer("why", list(chain_lines(entries)), entries=[entry.as_json() for entry in entries])


def why_not(run: Session) -> Answer:
    """Why a stopped program waits, or failed."""
    error = run.stop.error
    if not isinstance(error, ProgramError):
        told = (
            str(error) if error is not None else "the program did not stop with an error: there is nothing to explain"
        )
        return answer("why-not", [told], stopped=None)
    if error.stopped is None:
        return answer("why-not", [str(error)], stopped=None)
    return answer("why-not", list(error.stopped.text_lines()), stopped=error.stopped.as_json())


# ------------------------------------------------------------------------------------------------------------ pictures
def graph(run: Session) -> Answer:
    """The ops of the running epoch, one below the other, and its queues, with what was read and given."""
    engine = run.engine
    topo = _running(run)
    now = _now(run)
    cells: list[tuple[str, ...]] = [
        ("", *_short(now, name), name, "read", "", "") for name in topo.reads if name in run.netlist.queues
    ]
    rows: list[dict[str, Any]] = []
    for number, op in enumerate(topo.ops):
        state = _state(run, number)
        mark = {"ran": "*", "next": ">"}.get(state, "")
        told = _short(now, op.name) if op.name in now else ("", "")
        cells.append((mark, *told, op.name, op.type, _short_cores(run, op), ", ".join(op.inputs)))
        fed = topo.sinks.get(op.name, ())
        cells += [("", *_short(now, name), f"-> {name}", "written", "", "") for name in fed]
        rows.append(
            {
                "op": op.name,
                "state": state,
                "inputs": list(op.inputs),
                "feeds": list(fed),
                "value": _in_a_line(now, op.name) if op.name in now else "",
            }
        )
    queues = {name: _in_a_line(now, name) for name in now if name in run.netlist.queues}
    lines = table(("", "least", "greatest", "op or queue", "type", "cores", "reads"), cells)
    return answer("graph", lines, graphs=list(engine.graphs), ops=rows, queues=queues)


def _short(now: Mapping[str, Found], name: str) -> tuple[str, str]:
    return extremes(now[name], worded=False) if name in now else ("nothing yet", "")


def _running(run: Session) -> Topology:
    if not run.engine.graphs:
        raise HostError("no epoch runs: `epoch` goes to the next one")
    return run.engine.topology(run.engine.graphs[0])


def _now(run: Session) -> dict[str, Found]:
    """Of the running epoch what each op gave and what was read of each queue in this input; of other queues the newest
    entry."""
    topo = _running(run)
    netlist = run.netlist
    fed = (name for names in topo.sinks.values() for name in names)
    items = {name: netlist.queues[name] for name in (*topo.reads, *fed) if name in netlist.queues}
    return run.engine.call(lambda: dict(_each_now(run.engine, [*items.values(), *topo.ops])))


def _each_now(engine: Steps, items: Sequence[Queue | Op]) -> Iterator[tuple[str, Found]]:
    for item in items:
        found = held(engine, item)
        if found is None and isinstance(item, Queue):
            with suppress(HostError):  # it holds nothing yet
                found = of_queue(engine, item, None)
        if found is not None:
            yield item.name, found


def _in_a_line(now: Mapping[str, Found], name: str) -> str:
    slot = now[name].slot
    return f"{'' if slot is None else f'[{slot}]: '}{summary(now[name]).partition('), ')[2]}"


def graph_svg(run: Session) -> str:
    """The running epoch on the core grid with extremes of its tensors, all figures in tooltips; in red the op that is
    about to run, or has just run."""
    from buda_emu.report.pictures.grid_svg import grid_svg

    engine = run.engine
    now = _now(run)
    number = next(item.id for item in run.netlist.temporal_graphs if engine.graphs[0] in item.graphs)
    heat = {engine.op_now.name: 1.0} if engine.op_now is not None else None
    return grid_svg(
        run.netlist,
        epochs=[number],
        notes={name: _in_a_line(now, name) for name in now},
        heat=heat,
        red="the op where the run stands",
        values={name: extremes(found) for name, found in now.items()},
    )


# ------------------------------------------------------------------------------------------------------------- memory
def raw_bytes(run: Session, text: str, offset: int, count: int) -> Answer:
    """Bytes of an entry as they lie in the device's memory, buffer by buffer of the grid."""
    found = run.tensor(text)
    if isinstance(found.of, Op) or found.slot is None:
        raise HostError(f"x shows entries of queues and rams; {found.of.name} is an op")
    queue = found.of
    slot = found.slot
    images = run.engine.call(lambda: run.engine.emulator.memory_image(queue.name, slot))
    lines: list[str] = []
    rows: list[dict[str, Any]] = []
    for buffer, image in zip(queue.buffers, images, strict=False):
        address = buffer.address + run.netlist.arch.alignment + slot * len(image)
        part = image[offset : offset + count].tobytes()
        lines.append(
            f"{queue.name}[{slot}] in {queue.loc} channel {buffer.channel} of chip {queue.target_device}, "
            f"{len(image)} bytes at {address:#x}"
        )
        lines += [
            f"  {address + offset + at:#010x}  {' '.join(f'{byte:02x}' for byte in part[at : at + 16])}"
            for at in range(0, len(part), 16)
        ]
        rows.append(
            {"channel": buffer.channel, "address": address, "bytes": len(image), "offset": offset, "data": part.hex()}
        )
    return answer("bytes", lines, queue=queue.name, slot=slot, buffers=rows)
