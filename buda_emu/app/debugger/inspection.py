"""Answers about the current moment of a session: place, queues, variables, ops, epochs, memory, provenance."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from buda_emu.app.debugger.answer import Answer, answer
from buda_emu.app.debugger.breakpoints import pointers_of
from buda_emu.app.debugger.machine.engine import Engine
from buda_emu.app.debugger.machine.history import Chunk
from buda_emu.app.debugger.machine.steps import Steps
from buda_emu.app.debugger.machine.stop import STORED, Position, Stop
from buda_emu.app.debugger.names import Names, describe_instruction
from buda_emu.app.debugger.session import Session
from buda_emu.app.debugger.tensors import TensorValue, extremes, queue_entry, running_value, summary
from buda_emu.emulator.memory.channel import Ram
from buda_emu.emulator.memory.host import size_text
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.netlist.model import Op, Queue
from buda_emu.netlist.program.settings import instruction_text
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.records import dataclass

MAX_ENTRIES: Final = 2000
"""Versions of entries that one answer traces back: more would make an editor wait for a tree that nobody reads."""
MAX_DEPTH: Final = 40
"""Levels of a tree of provenance that are printed; deeper ones would run off the right side of a terminal."""
_MAX_OPS_SHOWN: Final = 6  # so that their names fit a line


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """One version of an entry of a queue or ram. `op` wrote it, "" means the host; `through` are the ops of its graph
    between the entries that were read and this one, in the order in which they ran; `reads` are indices of versions in
    the same answer."""

    queue: str
    slot: int
    op: str
    position: Position | None  # the input in which it was written; None if the host wrote it or the log was cut
    through: tuple[str, ...]
    reads: tuple[int, ...]
    forgotten: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the version as plain data."""
        written = None
        if self.position is not None:
            written = {"instruction": self.position.instruction, "input": self.position.input + 1}
        return {
            "queue": self.queue,
            "slot": self.slot,
            "op": self.op,
            "written": written,
            "through": list(self.through),
            "reads": list(self.reads),
            "forgotten": self.forgotten,
        }


class _Provenance:
    """Breadth-first search from an entry back to the entries that it was computed from."""

    def __init__(self, engine: Engine, ops: Mapping[str, Op]) -> None:
        self._engine = engine
        self._netlist = engine.netlist
        self._ops = ops
        self._log = engine.log
        self._numbers: dict[tuple[str, int, Position | None], int] = {}
        self.entries: list[EntryVersion] = []
        self._open: list[tuple[int, Chunk, int]] = []

    def trace(self, queue: str, slot: int, before: Position) -> list[EntryVersion]:
        """Return the version of an entry that was current before a position, then all versions that it was computed
        from; at most about MAX_ENTRIES."""
        self._version_index(queue, slot, before)
        while self._open and len(self.entries) < MAX_ENTRIES:
            number, chunk, input_number = self._open.pop(0)
            entry = self.entries[number]
            reads, through = self._find_sources(self._ops[entry.op], chunk, input_number)
            begun = Position(chunk.instruction, chunk.first + input_number)
            if self._adds_up(entry) and entry.queue not in chunk.anew:
                reads.append((entry.queue, entry.slot))
            read_numbers = tuple(self._version_index(name, at, begun) for name, at in dict.fromkeys(reads))
            self.entries[number] = EntryVersion(
                queue=entry.queue,
                slot=entry.slot,
                op=entry.op,
                position=entry.position,
                through=through,
                reads=read_numbers,
            )
        return self.entries

    def _adds_up(self, entry: EntryVersion) -> bool:
        """Return whether the op that wrote a version added to what the ram held before."""
        queue = self._netlist.queues[entry.queue]
        return queue.is_ram and self._ops[entry.op].gradient_op

    def _version_index(self, queue: str, slot: int, before: Position) -> int:
        """Return the index of the entry's version that was current before a position; a new version is appended, and
        queued for the search if an op wrote it."""
        entries = self._engine.sharing(queue, slot)
        writer = self._log.writer(entries, before) if entries else None
        position = None
        op = ""
        if writer is not None:
            chunk, input_number, name, _ = writer
            position = Position(chunk.instruction, chunk.first + input_number)
            op = self._netlist.queues[name].input
        key = queue, slot, position
        if key in self._numbers:
            return self._numbers[key]
        number = self._numbers[key] = len(self.entries)
        self.entries.append(
            EntryVersion(
                queue=queue,
                slot=slot,
                op=op,
                position=position,
                through=(),
                reads=(),
                forgotten=writer is None and bool(entries) and self._log.cut,
            )
        )
        if writer is not None:
            self._open.append((number, writer[0], writer[1]))
        return number

    def _find_sources(self, op: Op, chunk: Chunk, input_number: int) -> tuple[list[tuple[str, int]], tuple[str, ...]]:
        """Return the entries, as (queue, slot), that an op's result was computed from in input `input_number` of a
        chunk, and the ops in between in the order of the epoch, the op itself among them."""
        topo = self._engine.topology(op.graph)
        inside = {op_inside.name for op_inside in topo.ops}
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
                    reads[source, slots[input_number]] = None
                else:  # an entry that the same epoch has pushed: its producer is part of the chain
                    ahead.append(self._netlist.queues[source].input)
        order = {op_inside.name: number for number, op_inside in enumerate(topo.ops)}
        return list(reads), tuple(sorted(seen, key=order.__getitem__))


def trace_provenance(engine: Engine, names: Names, queue: str, slot: int) -> list[EntryVersion]:
    """Return the current version of the entry, then those that it was computed from, breadth first, each version
    once."""
    position = engine.stop.position
    return _Provenance(engine, names.ops).trace(queue, slot, position._replace(step=position.step + 1))


def chain_lines(
    entries: list[EntryVersion], number: int = 0, depth: int = 0, printed: set[int] | None = None
) -> Iterator[str]:
    """Yield a line on version `number` and, indented below it, lines on the versions that it was computed from, down to
    MAX_DEPTH. What a version in `printed` was computed from is not repeated."""
    if printed is None:
        printed = set()
    entry = entries[number]
    indent = "  " * depth
    if depth > MAX_DEPTH:
        yield f"{indent}..."
        return
    line = f"{indent}{entry.queue}[{entry.slot}] {_writer_text(entry)}"
    if number in printed and entry.reads:
        yield f"{line} (as above)"
        return
    yield line
    printed.add(number)
    for source in entry.reads:
        yield from chain_lines(entries, source, depth + 1, printed)


def _writer_text(entry: EntryVersion) -> str:
    """Return text on who wrote a version of an entry, through which ops, and when."""
    if entry.forgotten:
        return "was written longer ago than is remembered"
    if entry.position is None:
        return "was given by the host"
    others = [name for name in entry.through if name != entry.op]
    if len(others) > _MAX_OPS_SHOWN:
        others[_MAX_OPS_SHOWN:] = ["..."]
    through = f" (through {', '.join(others)})" if others else ""
    place = f"instruction {entry.position.instruction} of the run, input {entry.position.input + 1}"
    return f"was written by op {entry.op}{through} in {place}"


def stop_data(run: Session) -> dict[str, Any]:
    """Return why and where the run stands, as plain data."""
    return STOP.as_json(run.stop)


def _input_number(stop: Stop) -> int | None:
    """Return the number of the input at which the program stands, from 1 on; None outside of an epoch."""
    return stop.position.input + 1 if stop.position.in_epoch else None


STOP: Final = Columns[Stop](
    Column(
        "reason",
        Literal["start", "step", "breakpoint", "interrupted", "end", "error"],
        lambda stop: stop.reason,
    ),
    Column("position", str, lambda stop: str(stop.position)),
    Column("text", str, lambda stop: stop.text),
    Column("breakpoints", list[int], lambda stop: stop.breakpoints),
    Column("instructions", int, lambda stop: stop.position.instruction),
    Column("input", int | None, _input_number),
)
"""Why and where a run stands, in JSON."""


def describe_place(run: Session) -> Answer:
    """Describe the current program, loops, instruction, epoch, input, op and its cores."""
    return run.engine.call(lambda: _describe_place(run))


def _describe_place(run: Session) -> Answer:
    """Describe the current place (`describe_place`). Called on the program's thread by `Engine.call`."""
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
    instruction = engine.instruction_now
    if instruction is None or not engine.program:
        text = {"start": "before the first program", "end": "all programs have run"}.get(stop.reason, stop.reason)
        return answer("where", [text], **data)
    place = engine.place()
    text = describe_instruction(instruction)
    data |= {"index": engine.index, "line": place.line, "text": instruction_text(instruction)}
    data["loops"] = [{"line": loop.line, "round": loop.round, "rounds": loop.rounds} for loop in place.rounds]
    lines = [f"{engine.program} instruction {engine.index}, line {place.line}: {text}"]
    lines += [f"  {loop}" for loop in reversed(place.rounds)]
    if engine.graphs:
        input_number = 1
        if stop.position.in_epoch:
            input_number = min(stop.position.input, engine.input_count - 1) + 1
        data |= {"input": input_number, "inputs": engine.input_count}
        epoch = f"epoch {' + '.join(engine.graphs)}, input {input_number} of {engine.input_count}"
        lines.append(f"  {epoch}{_stored_note(run)}")
    op = engine.op_now
    if op is not None:
        data |= {"op": op.name, "cores": _cores_data(op), "line": op.at().line}
        lines.append(f"  {_op_line(run, op)}")
    return answer("where", lines, **data)


def _op_line(run: Session, op: Op) -> str:
    """Return the line that says where the run stands relative to an op: before or after it."""
    side = "after" if run.stop.position.step % 2 else "before"
    facts = f"{op.type}, {_chip_and_cores(op)}, line {op.at().line}"
    node = run.names.nodes.get(op.name, "")
    if node:
        facts += f", of {node}"
    return f"{side} op {op.name} ({facts})"


def _stored_note(run: Session) -> str:
    """Return a remark if the run stands where the results of the input have been stored, else ""."""
    if run.stop.position.step == STORED and run.stop.reason != "error":
        return ", its results are stored"
    return ""


def _cores_data(op: Op) -> dict[str, Any]:
    """Return chip, upper left core and size in cores of an op, as plain data."""
    return {"chip": op.target_device, "at": list(op.grid_loc), "size": list(op.cores)}


def _chip_and_cores(op: Op) -> str:
    """Return chip and cores of an op as text."""
    return f"chip {op.target_device} cores {_grid_text(op)}"


def _grid_text(op: Op) -> str:
    """Return the upper left core and the size in cores of an op as text."""
    rows, columns = op.cores
    at = ",".join(map(str, op.grid_loc)) or "ethernet"
    return f"{at} {rows}x{columns}"


def _brief_cores(run: Session, op: Op) -> str:
    """Return the cores of an op for a table; the chip is named only where graphs run on several."""
    chips = {graph.target_device for graph in run.netlist.graphs.values()}
    if len(chips) > 1:
        return f"chip {op.target_device} {_grid_text(op)}"
    return _grid_text(op)


# ---------------------------------------------------------------------------------------------------------------- info
def queues(run: Session, pattern: str = "") -> Answer:
    """Describe all queues and rams, or those whose name contains `pattern`. Raises HostError where there is none."""
    rows = run.engine.call(lambda: list(_queue_rows(run, pattern)))
    if not rows:
        raise HostError(f"no queue has {pattern!r} in its name")
    headers = ("queue", "kind", "fed by", "entries", "written", "held", "rd", "wr", "local", "format")
    cells: list[tuple[str, ...]] = []
    for row in rows:
        numbers = (row[key] for key in ("entries", "written", "held", "rd", "wr", "local"))
        figures = ("-" if number is None else str(number) for number in numbers)
        cells.append((run.names.display_name(row["name"]), row["kind"], row["input"], *figures, row["format"]))
    return answer("queues", table(headers, cells, right=(3, 4, 5, 6, 7, 8)), queues=rows)


def _queue_rows(run: Session, pattern: str) -> Iterator[dict[str, Any]]:
    """Yield the pointers and sizes of each queue and ram whose name contains `pattern`."""
    for name, channel in run.engine.channels.items():
        if pattern not in name:
            continue
        queue = run.netlist.queues[name]
        pointers = pointers_of(channel)
        row: dict[str, Any] = {
            "name": name,
            "kind": queue.type,
            "input": queue.input,
            "entries": queue.entries,
            "written": channel.view.written,
            "held": None,
            "rd": pointers[0],
            "wr": pointers[1],
            "local": None,
            "format": queue.df,
        }
        if not isinstance(channel, Ram):
            row["held"] = channel.ring.occupancy
            row["local"] = pointers[2]
        yield row


def variables(run: Session) -> Answer:
    """List the variables of the running program."""
    engine = run.engine
    if engine.variables is None:
        return answer("vars", ["no program runs"], variables={})
    values = engine.call(engine.variables.snapshot)
    lines = [f"{name} = {value}" for name, value in values.items()] or ["no program runs"]
    return answer("vars", lines, variables=values)


def ops(run: Session) -> Answer:
    """List the ops of the running epoch in the order in which they run, or those of all epochs where none runs."""
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
                    "cores": _cores_data(op),
                    "state": _op_state(run, number) if engine.graphs else "",
                    "node": run.names.nodes.get(op.name, ""),
                }
            )
    headers = ["", "op", "type", "graph", "cores", "reads"]
    cells: list[list[str]] = []
    for row in rows:
        cores = _brief_cores(run, run.names.ops[row["name"]])
        cells.append([row["state"], row["name"], row["type"], row["graph"], cores, ", ".join(row["inputs"])])
    if any(row["node"] for row in rows):
        headers.append("node")
        for line, row in zip(cells, rows, strict=True):
            line.append(row["node"])
    return answer("ops", table(headers, cells), ops=rows)


def _op_state(run: Session, number: int) -> str:
    """Return the state of op number `number` of the running epoch: "ran" if it ran in this input, "next", or "" before
    that."""
    step = run.stop.position.step
    if step == STORED or step > 2 * number:
        return "ran"
    if step == 2 * number:
        return "next"
    return ""


def epochs(run: Session) -> Answer:
    """List the epochs: the graphs that run together, and how often they have run."""
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
    """Report the memory of the emulated machine, and of the checkpoints and the log that going back needs."""
    engine = run.engine
    use = engine.emulator.memory
    history = engine.history
    data = {
        "queues": use.queues,
        "widest_cut": use.widest_cut,
        "limit": use.limit,
        "checkpoints": len(history),
        "checkpoint_bytes": history.bytes,
        "chunks_remembered": len(engine.log),
    }
    machine = f"queues and rams {size_text(use.queues)}, widest cut {size_text(use.widest_cut)}"
    back = f"{plural(len(history), 'checkpoint')} with {size_text(history.bytes)}"
    log = f"the log of writes has {plural(len(engine.log), 'chunk')} of inputs"
    return answer("memory", [f"{machine}, limit {size_text(use.limit)}", f"{back}; {log}"], **data)


def list_breakpoints(run: Session) -> Answer:
    """Return an answer that lists all breakpoints of the session."""
    items = list(run.breakpoints.items.values())
    lines = [_breakpoint_line(point.as_json()) for point in items] or ["no breakpoints"]
    return answer("breakpoints", lines, breakpoints=[point.as_json() for point in items])


def _breakpoint_line(point: dict[str, Any]) -> str:
    """Return the line that describes a breakpoint."""
    parts = [f"{point['number']}: {point['text']}"]
    if point["condition"] and point["kind"] != "if":
        parts.append(f"if {point['condition']}")
    if point["log"]:
        parts.append(f"tells {point['log']}")
    if point["temporary"]:
        parts.append("temporary")
    if not point["enabled"]:
        parts.append("disabled")
    if point["ignore"]:
        parts.append(f"ignored {point['ignore']} more times")
    if point["hits"]:
        parts.append(f"hit {point['hits']} times")
    return ", ".join(parts)


# ------------------------------------------------------------------------------------------------------- where from
def provenance(run: Session, text: str) -> Answer:
    """Return an answer with which op wrote an entry from which entries, back to those of the host. Raises HostError for
    an op."""
    tensor = run.tensor(text)
    if isinstance(tensor.of, Op) or tensor.slot is None:
        raise HostError(f"why tells of entries of queues and rams; {tensor.of.name} is an op: why QUEUE[slot]")
    queue = tensor.of.name
    slot = tensor.slot
    entries = run.engine.call(lambda: trace_provenance(run.engine, run.names, queue, slot))
    return answer("why", list(chain_lines(entries)), entries=[entry.as_json() for entry in entries])


def explain_stop(run: Session) -> Answer:
    """Explain why a stopped program waits, or how it failed."""
    error = run.stop.error
    if error is None:
        text = "the program did not stop with an error: there is nothing to explain"
        return answer("why-not", [text], stopped=None)
    if not isinstance(error, ProgramError) or error.stopped is None:
        return answer("why-not", [str(error)], stopped=None)
    return answer("why-not", list(error.stopped.text_lines()), stopped=error.stopped.as_json())


# ------------------------------------------------------------------------------------------------------------ pictures
def graph(run: Session) -> Answer:
    """Draw the running epoch as a table: queues that were read, ops in their order and queues that they feed, with the
    extremes of their tensors in this input."""
    engine = run.engine
    topo = _running_topology(run)
    tensors = _current_tensors(run)
    cells: list[tuple[str, ...]] = []
    for name in topo.reads:
        if name in run.netlist.queues:
            cells.append(("", *_brief_extremes(tensors, name), name, "read", "", ""))
    rows: list[dict[str, Any]] = []
    for number, op in enumerate(topo.ops):
        state = _op_state(run, number)
        mark = {"ran": "*", "next": ">"}.get(state, "")
        figures = ("", "")
        value = ""
        if op.name in tensors:
            figures = _brief_extremes(tensors, op.name)
            value = _figures_text(tensors, op.name)
        cells.append((mark, *figures, op.name, op.type, _brief_cores(run, op), ", ".join(op.inputs)))
        fed = topo.sinks.get(op.name, ())
        cells += [("", *_brief_extremes(tensors, name), f"-> {name}", "written", "", "") for name in fed]
        rows.append({"op": op.name, "state": state, "inputs": list(op.inputs), "feeds": list(fed), "value": value})
    queues = {name: _figures_text(tensors, name) for name in tensors if name in run.netlist.queues}
    lines = table(("", "least", "greatest", "op or queue", "type", "cores", "reads"), cells)
    return answer("graph", lines, graphs=list(engine.graphs), ops=rows, queues=queues)


def _brief_extremes(tensors: Mapping[str, TensorValue], name: str) -> tuple[str, str]:
    """Return the two cells, least and greatest element, of an op or queue in the debugger's picture of the running
    epoch; "nothing yet" and "" for one without a tensor in this input."""
    if name not in tensors:
        return "nothing yet", ""
    return extremes(tensors[name], worded=False)


def _running_topology(run: Session) -> Topology:
    """Return the topology of the running epoch. Raises HostError where none runs."""
    if not run.engine.graphs:
        raise HostError("no epoch runs: `epoch` goes to the next one")
    return run.engine.topology(run.engine.graphs[0])


def _current_tensors(run: Session) -> dict[str, TensorValue]:
    """Return by name the results that ops of the running epoch have in this input, and for each of its queues the entry
    that it read or, if none was read, its newest. Raises HostError where no epoch runs."""
    topo = _running_topology(run)
    queues = run.netlist.queues
    names = [*topo.reads]
    for sinks in topo.sinks.values():
        names += sinks
    sources = {name: queues[name] for name in names if name in queues}
    return run.engine.call(lambda: dict(_find_tensors(run.engine, [*sources.values(), *topo.ops])))


def _find_tensors(engine: Steps, items: Sequence[Queue | Op]) -> Iterator[tuple[str, TensorValue]]:
    """Yield the name and tensor of each queue and op that has one at this moment."""
    for source in items:
        tensor = running_value(engine, source)
        if tensor is None and isinstance(source, Queue):
            with suppress(HostError):  # the queue holds nothing yet
                tensor = queue_entry(engine, source, None)
        if tensor is not None:
            yield source.name, tensor


def _figures_text(tensors: Mapping[str, TensorValue], name: str) -> str:
    """Return slot and figures of a tensor in one line, without its format and size."""
    slot = tensors[name].slot
    prefix = "" if slot is None else f"[{slot}]: "
    return prefix + summary(tensors[name]).partition("), ")[2]


def graph_svg(run: Session) -> str:
    """Return an SVG picture of the running epoch on the core grid with the extremes of its tensors, and all figures in
    tooltips. The op that is about to run, or has just run, is red."""
    from buda_emu.report.pictures.grid_svg import HeatScale, grid_svg

    engine = run.engine
    tensors = _current_tensors(run)
    number = next(temporal.id for temporal in run.netlist.temporal_graphs if engine.graphs[0] in temporal.graphs)
    heat = None
    if engine.op_now is not None:
        heat = {engine.op_now.name: 1.0}
    return grid_svg(
        run.netlist,
        epochs=[number],
        notes={name: _figures_text(tensors, name) for name in tensors},
        heat=heat,
        scale=HeatScale("the op where the run stands", "", ""),
        values={name: extremes(tensor) for name, tensor in tensors.items()},
    )


# ------------------------------------------------------------------------------------------------------------- memory
def raw_bytes(run: Session, text: str, offset: int, count: int) -> Answer:
    """Describe `count` bytes from `offset` of an entry as they lie in the device's memory, for each buffer of the
    queue's grid. Raises HostError for an op."""
    tensor = run.tensor(text)
    if isinstance(tensor.of, Op) or tensor.slot is None:
        raise HostError(f"x shows entries of queues and rams; {tensor.of.name} is an op")
    queue = tensor.of
    slot = tensor.slot
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
