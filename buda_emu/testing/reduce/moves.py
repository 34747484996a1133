"""What may be smaller in a netlist, the largest steps first. A move offers documents that may be invalid: the search
loads each before it is tried.
"""

from collections import abc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, Final

from buda_emu.netlist.build import contract
from buda_emu.netlist.model import (
    Allocate,
    Buffer,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Graph,
    Instruction,
    Loop,
    Netlist,
    Op,
    Pad,
    Param,
    Program,
    Queue,
    QueueSettings,
    VarInst,
)
from buda_emu.netlist.nodes import Mapping as MappingNode
from buda_emu.netlist.nodes import Node
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sizes import align_up, buffer_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass

_FIRST_ADDRESS = 0x10000000  # where netlists whose queues are all in host memory have none in DRAM


def without_ops(netlist: Netlist, gone: Collection[str]) -> Document:
    """The netlist without the ops of these written names, tidied."""
    document = contract(netlist)
    ends = _Ends(netlist, document, frozenset(gone))
    for name, graph in document.graphs.items():
        kept = tuple(ends.kept(op, graph) for op in graph.ops if op.name not in gone)
        document.graphs[name] = evolve(graph, ops=kept)
    document.queues |= ends.made
    document.queue_devices |= ends.devices
    return tidy(document, ends.settings)


@dataclass(slots=True)
class _Ends:
    """The cut ends of a netlist."""

    netlist: Netlist
    document: Document
    gone: frozenset[str]
    made: dict[str, Queue] = field(default_factory=dict[str, Queue])
    devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    settings: dict[str, list[QueueSettings]] = field(default_factory=dict[str, list[QueueSettings]])
    """By graph: what its executes say of the rams that were made for it."""
    ops: dict[str, Op] = field(default_factory=dict[str, Op])
    used: set[str] = field(default_factory=set[str])
    """Ops whose result still goes somewhere: to an op that stays, or to a queue."""
    free: dict[int, int] = field(default_factory=dict[int, int])
    """By DRAM channel: the first byte after all buffers."""

    def __post_init__(self) -> None:
        self.ops |= {op.name: op for graph in self.document.graphs.values() for op in graph.ops}
        self.used |= {name for op in self.ops.values() if op.name not in self.gone for name in op.inputs}
        self.used |= {queue.input for queue in self.document.queues.values()}
        for queue in self.document.queues.values():
            for buffer in queue.buffers if queue.loc == "dram" else ():
                end = buffer.address + buffer_bytes(queue, self.netlist)
                self.free[buffer.channel] = max(self.free.get(buffer.channel, 0), end)
        for name, queue in self.document.queues.items():
            if queue.input in self.gone and name in self.used:  # an op that stays reads it: the host fills it now
                self.made[name] = evolve(queue, input="HOST", input_tms=(), layout="tilized")

    def kept(self, op: Op, graph: Graph) -> Op:
        """The op with operands that exist, and a queue for its result where nothing else takes it."""
        inputs = tuple(self._operand(name, graph) if name in self.gone else name for name in op.inputs)
        if op.name not in self.used:
            op = evolve(op, untilize_output=False)
            self._queue(f"out_{op.name}", op, graph, op.name, "queue")
        return evolve(op, inputs=inputs)

    def _operand(self, name: str, graph: Graph) -> str:
        """The ram that stands for the result of an op that is gone."""
        ram = f"in_{name}"
        if ram not in self.made:
            self._queue(ram, self.ops[name], graph, "HOST", "ram")
            setting = QueueSettings(queue=ram, prologue="true", rd_ptr_global="0", wr_ptr_global="0")
            self.settings.setdefault(graph.name, []).append(setting)
        return ram

    def _queue(self, name: str, op: Op, graph: Graph, source: str, kind: str) -> None:
        """One of the op's shape and format, in DRAM."""
        made = Queue(
            name=name,
            written_name=name,
            input=source,
            type=kind,
            blocking=op.blocking,
            df=op.out_df,
            loc="dram",
            entries=1 if kind == "ram" else max(1, graph.input_count),
            target_device=graph.target_device,
        )
        alignment = self.netlist.arch.alignment
        channel = min(self.free, default=0)
        start = self.free.get(channel, _FIRST_ADDRESS)
        buffers: list[Buffer] = []
        for _ in range(max(1, made.blocking.cells)):
            buffers.append(Buffer(channel, align_up(start, alignment)))
            start = buffers[-1].address + buffer_bytes(made, self.netlist)
        self.free[channel] = start
        self.made[name] = evolve(made, buffers=tuple(buffers))
        if graph.name in self.document.graph_devices:
            self.devices[name] = self.document.graph_devices[graph.name]


def tidy(document: Document, settings: Mapping[str, list[QueueSettings]] | None = None) -> Document:
    """The document without what nothing uses any more: graphs without ops, executes of graphs that are gone, queues
    that nothing fills or reads, fused ops, loops around nothing, programs that execute nothing. `settings` are added
    to the executes of the graphs that they name."""
    graphs = document.graphs = {name: graph for name, graph in document.graphs.items() if graph.ops}
    ops = [op for graph in graphs.values() for op in graph.ops]
    queues = document.queues = _used_queues(document.queues, ops)
    fused = {str(op.attributes.fused_op_id) for op in ops if op.has("sub-ops")}
    document.fused_ops = {name: item for name, item in document.fused_ops.items() if name in fused}
    document.queue_devices = {name: chips for name, chips in document.queue_devices.items() if name in queues}
    document.graph_devices = {name: chips for name, chips in document.graph_devices.items() if name in graphs}
    of_graph = {name: _queues_of(graph, queues) for name, graph in graphs.items()}

    def own(execute: Execute) -> Execute:
        kept = [setting for setting in execute.queue_settings if setting.queue in of_graph[execute.graph]]
        known = {setting.queue for setting in kept}
        made = (settings or {}).get(execute.graph, ())
        kept += [setting for setting in made if setting.queue in queues and setting.queue not in known]
        return evolve(execute, queue_settings=tuple(kept))

    for name, program in list(document.programs.items()):
        steps = list(_steps(program, graphs, queues, own))
        document.programs[name] = evolve(program, instructions=tuple(_without_empty_loops(steps)))
    if any(map(executes, document.programs.values())):
        document.programs = {name: program for name, program in document.programs.items() if executes(program)}
        document.program_order = [name for name in document.program_order if name in document.programs]
    return document


def executes(program: Program) -> bool:
    """Whether a program runs any graph."""
    return any(isinstance(instruction, Execute) for instruction in program.instructions)


def _used_queues(queues: Mapping[str, Queue], ops: Collection[Op]) -> dict[str, Queue]:
    """Those that an op fills or reads, and rams of which one that is read is another view."""
    names = {op.name for op in ops}
    read = {name for op in ops for name in op.inputs}
    read |= {name for op in ops for pair in op.forked_dram_inputs for name in pair}
    read |= {queue.alias for name, queue in queues.items() if name in read or queue.input in names}
    return {name: queue for name, queue in queues.items() if queue.input in names or (queue.host_fed and name in read)}


def _queues_of(graph: Graph, queues: Mapping[str, Queue]) -> set[str]:
    """Those that a graph's executes may set."""
    ops = {op.name for op in graph.ops}
    found = {name for op in graph.ops for name in op.inputs if name in queues}
    return found | {name for name, queue in queues.items() if queue.input in ops}


def _steps(
    program: Program, graphs: Collection[str], queues: Collection[str], own: Callable[[Execute], Execute]
) -> Iterator[Instruction]:
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            if instruction.graph in graphs:
                yield own(instruction)
        elif isinstance(instruction, Allocate | Deallocate):
            kept = tuple(name for name in instruction.queues if name in queues)
            if kept:
                yield evolve(instruction, queues=kept)
        else:
            yield instruction


def _without_empty_loops(steps: list[Instruction]) -> list[Instruction]:
    """Loops whose body executes nothing change no tensor; what they count goes with them."""
    starts: list[int] = []
    found: list[Instruction] = []
    for step in steps:
        found.append(step)
        if isinstance(step, Loop):
            starts.append(len(found) - 1)
        elif isinstance(step, EndLoop) and starts:
            start = starts.pop()
            if not any(isinstance(item, Execute) for item in found[start:]):
                del found[start:]
    return found


Move = Callable[[Netlist], Iterator[Document]]
_PLAIN_FORMAT = "Float16_b"
_ALL = "all"


def fewer_ops(netlist: Netlist) -> Iterator[Document]:
    """Without runs of ops: halves, quarters, and so on to single ones."""
    names = [op.name for op in _ops_of(contract(netlist))]
    size = len(names) - 1
    while size:
        for start in range(0, len(names), size):
            gone = names[start : start + size]
            if len(gone) < len(names):
                yield without_ops(netlist, gone)
                yield without_ops(netlist, [name for name in names if name not in gone])
        size //= 2


def fewer_programs(netlist: Netlist) -> Iterator[Document]:
    """One program of those that execute something; without each of them. Graphs that none executes go."""
    written = contract(netlist)
    names = [name for name, program in written.programs.items() if executes(program)]
    for kept in [[name] for name in names] + [[name for name in names if name != gone] for gone in names]:
        if not 0 < len(kept) < len(written.programs):
            continue
        steps = [step for name in kept for step in written.programs[name].instructions]
        run = {step.graph for step in steps if isinstance(step, Execute)}
        gone = [op.name for name, graph in written.graphs.items() if name not in run for op in graph.ops]
        document = without_ops(netlist, gone)
        document.programs = {name: program for name, program in document.programs.items() if name in kept}
        document.program_order = [name for name in document.program_order if name in kept]
        yield document


def fewer_instructions(netlist: Netlist) -> Iterator[Document]:
    """Loops that run once or not at all, single instructions left out, parameters and variables by their values."""
    for name, program in contract(netlist).programs.items():
        steps = program.instructions

        def changed(new: Iterable[Instruction | None], name: str = name) -> Document:
            document = contract(netlist)
            kept = tuple(step for step in new if step is not None)
            document.programs[name] = evolve(document.programs[name], instructions=kept)
            return tidy(document)

        yield changed(None if isinstance(step, Loop | EndLoop) else step for step in steps)
        yield changed(None if isinstance(step, VarInst) else step for step in steps)
        for number, step in enumerate(steps):
            if isinstance(step, Loop) and step.count != "1":
                yield changed(evolve(step, count="1") if at == number else other for at, other in enumerate(steps))
            if not isinstance(step, Loop | EndLoop):
                yield changed(None if at == number else other for at, other in enumerate(steps))
        yield changed(map(_with_literals, steps))


def _with_literals(step: Instruction) -> Instruction | None:
    """An execute whose pointers are literals; no variables any more."""
    if isinstance(step, Declare | Param | VarInst):
        return None
    if not isinstance(step, Execute):
        return step
    fields = ("rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "zero", "prologue", "epilogue")

    def plain(setting: QueueSettings) -> QueueSettings:
        return evolve(
            setting,
            **{name: "0" for name in fields[:3] if getattr(setting, name).startswith("$")},
            **{name: "false" for name in fields[3:] if getattr(setting, name).startswith("$")},
        )

    return evolve(step, queue_settings=tuple(map(plain, step.queue_settings)))


def fewer_queues(netlist: Netlist) -> Iterator[Document]:
    """Without queues of results that something else takes, too; without each operand that an op need not have."""
    document = contract(netlist)
    fed: dict[str, list[str]] = {}
    for name, queue in document.queues.items():
        fed.setdefault(queue.input, []).append(name)
    read = {name for op in netlist.ops.values() for name in op.inputs}
    for name, queue in document.queues.items():
        if not queue.host_fed and name not in read and (queue.input in read or len(fed[queue.input]) > 1):
            made = contract(netlist)
            del made.queues[name]
            yield tidy(made)
    for name, source in _same_operands(document):
        yield _ops(netlist, lambda op, old=name, new=source: _reading(op, old, new))


def _reading(op: Op, old: str, new: str) -> Op:
    return evolve(op, inputs=tuple(new if name == old else name for name in op.inputs)) if old in op.inputs else op


def _same_operands(document: Document) -> Iterator[tuple[str, str]]:
    """Pairs of host-fed queues of one shape, of which the first could be the second."""
    first: dict[tuple[Any, ...], str] = {}
    for name, queue in document.queues.items():
        if queue.host_fed:
            key = (queue.type, queue.blocking.shape, queue.df, queue.entries, queue.target_device)
            if key in first:
                yield name, first[key]
            first.setdefault(key, name)


def fewer_inputs(netlist: Netlist) -> Iterator[Document]:
    """One input of each epoch, then half of them; queues of as many entries."""
    for of_graphs, of_queues in ((1, 1), (None, 1), (2, 2), (None, 2)):
        document = contract(netlist)
        for name, graph in document.graphs.items():
            document.graphs[name] = evolve(graph, input_count=_fewer(graph.input_count, of_graphs))
        for name, queue in document.queues.items():
            document.queues[name] = evolve(queue, entries=_fewer(queue.entries, of_queues))
        yield document


def _fewer(count: int, part: int | None) -> int:
    """1, or half of a count; None: as many."""
    return count if part is None else 1 if part == 1 else max(1, count // part)


def fewer_cores(netlist: Netlist) -> Iterator[Document]:
    """Every op and queue on one core and in one buffer; then each by itself."""

    def whole(blocking: Blocking) -> Blocking:
        (rows, cols) = blocking.grid_size
        (m, n) = blocking.mblock
        return replace(blocking, grid_size=(1, 1), mblock=(m * rows, n * cols))

    yield _all(netlist, whole)
    yield from _each(netlist, whole)


def smaller(netlist: Netlist) -> Iterator[Document]:
    """t, rows and columns: each size that occurs becomes one, or half, wherever it occurs."""
    shapes = [item.blocking.shape for item in (*netlist.queues.values(), *netlist.ops.values())]
    for axis in range(3):
        for size in sorted({shape[axis] for shape in shapes if shape[axis] > 1}, reverse=True):
            for new in dict.fromkeys((1, size // 2)):
                for axes in ((axis,), (1, 2)):
                    yield _all(netlist, partial(_resized, axes=axes, size=size, new=new))


def _resized(blocking: Blocking, axes: tuple[int, ...], size: int, new: int) -> Blocking:
    """A blocking whose axes of `size` (t, rows, columns: 0 to 2) have `new` tiles, in one ublock of one core."""
    for axis in axes:
        if blocking.shape[axis] != size:
            continue
        if axis == 0:
            blocking = replace(blocking, t=new)
            continue
        at = axis - 1
        parts = {name: list(getattr(blocking, name)) for name in ("grid_size", "mblock", "ublock")}
        parts["grid_size"][at], parts["mblock"][at], parts["ublock"][at] = 1, new, 1
        if size % (parts["ublock"][at] * new) == 0 and blocking.ublock[at] <= new and new % blocking.ublock[at] == 0:
            parts["mblock"][at], parts["ublock"][at] = new // blocking.ublock[at], blocking.ublock[at]
        blocking = replace(blocking, **{name: tuple(values) for name, values in parts.items()})
    return blocking


def simpler_ops(netlist: Netlist) -> Iterator[Document]:
    """Attributes, TMs and fields of ops as they are where nobody writes them: everywhere, then one op at a time."""
    yield _ops(netlist, _plain_op)
    for op in _ops_of(contract(netlist)):
        for new in _simpler(op):
            yield _ops(netlist, lambda item, new=new: new if item.name == new.name else item)


def _ops_of(document: Document) -> list[Op]:
    return [op for graph in document.graphs.values() for op in graph.ops]


def _plain_op(op: Op) -> Op:
    """Without what changes no shape."""
    return evolve(
        op,
        untilize_output=False,
        gradient_op=False,
        grid_transpose=False,
        overlay_size=-1,
        input_buf_min_size_tiles=(),
        input_dram_io_buf_size_tiles=(),
    )


def _simpler(op: Op) -> Iterator[Op]:
    plain = _plain_op(op)
    if plain != op:
        yield plain
    if any(op.input_tms):
        yield evolve(op, input_tms=((),) * len(op.inputs))
        for number, tms in enumerate(op.input_tms):
            for at in range(len(tms)):
                new = (*tms[:at], *tms[at + 1 :])
                yield evolve(op, input_tms=(*op.input_tms[:number], new, *op.input_tms[number + 1 :]))
    if any(pad != Pad() for pad in (*op.input_pad, *op.input_unpad)):
        none = (Pad(),) * len(op.inputs)
        yield evolve(op, input_pad=none, input_unpad=none)
    given = op.attributes.given
    for name in sorted(given, key=list(ATTRIBUTES).index):
        without = replace(op.attributes, given=given - {name}, **{name: ATTRIBUTES[name].default})
        yield evolve(op, attributes=without)
    if {"m_k", "u_kt"} <= given and op.attributes.m_k * op.attributes.u_kt > 1:
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=1))
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=op.attributes.m_k * op.attributes.u_kt))
    if len(op.inputs) > 1 and OP_TYPES[op.type].inputs[0] < len(op.inputs):
        yield evolve(
            op,
            inputs=op.inputs[:-1],
            in_df=op.in_df[:-1],
            input_tms=op.input_tms[:-1],
            input_pad=op.input_pad[:-1],
            input_unpad=op.input_unpad[:-1],
            attributes=replace(op.attributes, given=given - {"bias"}, bias=False),
        )


def plainer_formats(netlist: Netlist) -> Iterator[Document]:
    """Everything in one format and fidelity; then each format that occurs."""
    formats = {queue.df for queue in netlist.queues.values()}
    formats |= {name for op in netlist.ops.values() for name in (*op.in_df, op.out_df, op.intermed_df, op.acc_df)}
    for old in (_ALL, *sorted(formats - {_PLAIN_FORMAT, ""})):
        yield _in_formats(netlist, old)
    yield _ops(netlist, lambda op: evolve(op, math_fidelity="HiFi3"))


def _in_formats(netlist: Netlist, old: str) -> Document:
    def new(name: str) -> str:
        return _PLAIN_FORMAT if name and old in (_ALL, name) else name

    document = _ops(
        netlist,
        lambda op: evolve(
            op,
            in_df=tuple(map(new, op.in_df)),
            out_df=new(op.out_df),
            intermed_df=new(op.intermed_df),
            acc_df=new(op.acc_df),
        ),
    )
    document.queues = {name: evolve(queue, df=new(queue.df)) for name, queue in document.queues.items()}
    return document


def simpler_queues(netlist: Netlist) -> Iterator[Document]:
    """Queues of full tiles, tilized, without TMs; a netlist for one chip and one architecture."""

    def plain(queue: Queue) -> Queue:
        return evolve(queue, input_tms=(), layout="tilized", read_ports=(), write_ports=(), alias="")

    document = contract(netlist)
    document.queues = {name: plain(queue) for name, queue in document.queues.items()}
    yield document
    yield _all(netlist, lambda blocking: replace(blocking, tile_dim=FULL_TILE))
    document = contract(netlist)
    document.queue_devices = {}
    document.graph_devices = {}
    document.queues = {name: evolve(queue, target_device=0) for name, queue in document.queues.items()}
    document.graphs = {name: evolve(graph, target_device=0) for name, graph in document.graphs.items()}
    yield document
    document = contract(netlist)
    document.archs = (netlist.arch_name,)
    yield document


def fewer_sections(netlist: Netlist) -> Iterator[Document]:
    """Without test-config, performance-check and sections of other programs: all, each, then the entries of each."""
    for gone in (list(netlist.sections), *([name] for name in netlist.sections)):
        document = contract(netlist)
        document.sections = {name: node for name, node in document.sections.items() if name not in gone}
        yield document
    for name, node in netlist.sections.items():
        for smaller_node in _without_entries(node):
            document = contract(netlist)
            document.sections[name] = smaller_node
            yield document


def _without_entries(node: Node) -> Iterator[Node]:
    """A map without each of its pairs, then the same in the maps that it holds."""
    if not isinstance(node, MappingNode):
        return
    for at, (key, value) in enumerate(node.pairs):
        before = node.pairs[:at]
        after = node.pairs[at + 1 :]
        yield MappingNode([*before, *after], node.line, node.column, node.end_column)
        for other in _without_entries(value):
            yield MappingNode([*before, (key, other), *after], node.line, node.column, node.end_column)


def _ops(netlist: Netlist, change: Callable[[Op], Op]) -> Document:
    document = contract(netlist)
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(map(change, graph.ops)))
    return tidy(document)


def _all(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> Document:
    """Every blocking changed; buffers and inner dimensions follow."""
    document = contract(netlist)
    document.queues = {name: _with(queue, change(queue.blocking)) for name, queue in document.queues.items()}
    for name, graph in document.graphs.items():
        ops = tuple(evolve(op, blocking=change(op.blocking)) for op in graph.ops)
        document.graphs[name] = evolve(graph, ops=ops)
    shapes = {item.name: item.blocking for item in (*document.queues.values(), *_ops_of(document))}
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(_with_inner(op, shapes) for op in graph.ops))
    return document


def _each(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> Iterator[Document]:
    for name in contract(netlist).queues:
        document = contract(netlist)
        queue = document.queues[name]
        if change(queue.blocking) != queue.blocking:
            document.queues[name] = _with(queue, change(queue.blocking))
            yield document
    for op in _ops_of(contract(netlist)):
        new = evolve(op, blocking=change(op.blocking))
        if new != op:
            yield _ops(netlist, lambda item, new=new: new if item.name == new.name else item)


def _with(queue: Queue, blocking: Blocking) -> Queue:
    return evolve(queue, blocking=blocking, buffers=queue.buffers[: blocking.cells])


def _with_inner(op: Op, shapes: abc.Mapping[str, Blocking]) -> Op:
    """The op with an inner dimension that is the first operand's columns, where it has one and no TMs change it."""
    inner = {"m_k", "u_kt"} <= op.attributes.given
    source = shapes.get(op.inputs[0]) if op.inputs else None
    if not inner or source is None or op.input_tms[0] or op.attributes.identity:
        return op
    along = source.rows if op.attributes.dim == "r" else source.t if op.attributes.dim == "z" else source.cols
    if op.attributes.m_k * op.attributes.u_kt == along:
        return op
    return evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=along))


MOVES: Final[tuple[tuple[str, Move], ...]] = (
    ("sections", fewer_sections),
    ("programs", fewer_programs),
    ("ops", fewer_ops),
    ("inputs", fewer_inputs),
    ("instructions", fewer_instructions),
    ("queues", fewer_queues),
    ("cores", fewer_cores),
    ("sizes", smaller),
    ("op fields", simpler_ops),
    ("formats", plainer_formats),
    ("queue fields", simpler_queues),
)
"""In the order in which they are tried: each makes the next ones cheaper."""
