"""Moves that make a netlist smaller, the largest steps first. A move offers documents that may be invalid: the search
loads each before it is tried."""

from collections import abc
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

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
from buda_emu.netlist.reader import WrittenNetlist
from buda_emu.netlist.sizes import align_up, buffer_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.archs import DRAM_RESERVED
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import FULL_TILE, Blocking
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.records import dataclass

T = TypeVar("T")


def without_ops(netlist: Netlist, gone: Collection[str]) -> WrittenNetlist:
    """Return a document without the ops whose written names are in `gone`. Operands that are missing then are read from
    new rams, results that nothing takes go to new queues; what nothing uses any more is removed (`tidy`)."""
    document = contract(netlist)
    ends = _CutEnds(netlist, document, frozenset(gone))
    for name, graph in document.graphs.items():
        ops = tuple(ends.connect(op, graph) for op in graph.ops if op.name not in gone)
        document.graphs[name] = evolve(graph, ops=ops)
    document.queues |= ends.queues
    document.queue_devices |= ends.devices
    return tidy(document, ends.settings)


@dataclass(slots=True)
class _CutEnds:
    """The parts that replace removed ops: new queues for operands and results, their devices, and their settings in
    executes. Filled by `connect`."""

    netlist: Netlist
    document: WrittenNetlist
    gone: frozenset[str]
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    settings: dict[str, list[QueueSettings]] = field(default_factory=dict[str, list[QueueSettings]])
    """Settings of new rams for the executes of each graph."""
    ops: dict[str, Op] = field(default_factory=dict[str, Op])
    used: set[str] = field(default_factory=set[str])
    """Names that something still uses: ops and queues that a remaining op reads, and ops that a queue takes."""
    free: dict[int, int] = field(default_factory=dict[int, int])
    """The first byte after all buffers of each DRAM channel."""

    def __post_init__(self) -> None:
        self.ops |= {op.name: op for op in _ops_of(self.document)}
        for op in self.ops.values():
            if op.name not in self.gone:
                self.used.update(op.inputs)
        self.used |= {queue.input for queue in self.document.queues.values()}
        self._find_free_addresses()
        for name, queue in self.document.queues.items():
            if queue.input in self.gone and name in self.used:  # an op that stays reads it: the host fills it instead
                self.queues[name] = evolve(queue, input="HOST", input_tms=(), layout="tilized")

    def _find_free_addresses(self) -> None:
        """Set `free` from the buffers of all queues in DRAM."""
        for queue in self.document.queues.values():
            if queue.loc != "dram":
                continue
            for buffer in queue.buffers:
                end = buffer.address + buffer_bytes(queue, self.netlist)
                self.free[buffer.channel] = max(self.free.get(buffer.channel, 0), end)

    def connect(self, op: Op, graph: Graph) -> Op:
        """Return an op that stays with rams in place of operands that are gone. If nothing takes its result, a queue
        for that is added."""
        inputs = tuple(self._ram_in_place_of(name, graph) if name in self.gone else name for name in op.inputs)
        if op.name not in self.used:
            op = evolve(op, untilize_output=False)
            self._add_queue(f"out_{op.name}", op, graph, op.name, "queue")
        return evolve(op, inputs=inputs)

    def _ram_in_place_of(self, name: str, graph: Graph) -> str:
        """Return the name of the ram that replaces the result of the removed op `name`; it is added on the first
        call."""
        ram = f"in_{name}"
        if ram not in self.queues:
            self._add_queue(ram, self.ops[name], graph, "HOST", "ram")
            setting = QueueSettings(queue=ram, prologue="true", rd_ptr_global="0", wr_ptr_global="0")
            self.settings.setdefault(graph.name, []).append(setting)
        return ram

    def _add_queue(self, name: str, op: Op, graph: Graph, source: str, kind: str) -> None:
        """Add a queue, or a ram (`kind`), with the shape and format of an op's result, in DRAM, which `source`
        fills."""
        queue = Queue(
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
        start = self.free.get(channel, DRAM_RESERVED)
        buffers: list[Buffer] = []
        for _ in range(max(1, queue.blocking.cells)):
            buffers.append(Buffer(channel, align_up(start, alignment)))
            start = buffers[-1].address + buffer_bytes(queue, self.netlist)
        self.free[channel] = start
        self.queues[name] = evolve(queue, buffers=tuple(buffers))
        if graph.name in self.document.graph_devices:
            self.devices[name] = self.document.graph_devices[graph.name]


def tidy(document: WrittenNetlist, settings: Mapping[str, list[QueueSettings]] | None = None) -> WrittenNetlist:
    """Remove from the document, in place, everything that nothing uses any more, and return it: graphs without ops,
    executes of graphs that are gone, unused queues and fused ops, loops around nothing, programs that execute nothing.
    `settings` are added to the executes of the graphs that they name."""
    document.graphs = {name: graph for name, graph in document.graphs.items() if graph.ops}
    ops = _ops_of(document)
    document.queues = _used_queues(document.queues, ops)
    fused = {str(op.attributes.fused_op_id) for op in ops if op.has("sub-ops")}
    document.fused_ops = _only_named(document.fused_ops, fused)
    document.queue_devices = _only_named(document.queue_devices, document.queues)
    document.graph_devices = _only_named(document.graph_devices, document.graphs)
    _tidy_programs(document, settings or {})
    return document


def _only_named(entries: Mapping[str, T], names: Container[str]) -> dict[str, T]:
    """Return those entries whose names are in `names`, in their order."""
    return {name: entry for name, entry in entries.items() if name in names}


def _tidy_programs(document: WrittenNetlist, settings: Mapping[str, list[QueueSettings]]) -> None:
    """Remove from the document, in place, instructions without effect and then, if any program executes something,
    those that execute nothing."""
    graphs = document.graphs
    queues = document.queues
    of_graph = {name: _settable_queues(graph, queues) for name, graph in graphs.items()}

    def set_queues(execute: Execute) -> Execute:
        """Return an execute with the settings of queues that its graph still uses, and the added ones."""
        old = [setting for setting in execute.queue_settings if setting.queue in of_graph[execute.graph]]
        names = {setting.queue for setting in old}
        added = settings.get(execute.graph, ())
        new = [setting for setting in added if setting.queue in queues and setting.queue not in names]
        return evolve(execute, queue_settings=(*old, *new))

    for name, program in list(document.programs.items()):
        steps = list(_remaining_steps(program, graphs, queues, set_queues))
        document.programs[name] = evolve(program, instructions=tuple(_without_empty_loops(steps)))
    if any(map(executes, document.programs.values())):
        document.programs = {name: program for name, program in document.programs.items() if executes(program)}
        document.program_order = [name for name in document.program_order if name in document.programs]


def executes(program: Program) -> bool:
    """Return whether a program has an instruction that executes a graph."""
    return any(isinstance(instruction, Execute) for instruction in program.instructions)


def _used_queues(queues: Mapping[str, Queue], ops: Collection[Op]) -> dict[str, Queue]:
    """Return the queues that an op fills, and those fed by the host that an op reads or that a used ram is a view
    of."""
    names = {op.name for op in ops}
    read = set(chain.from_iterable(op.inputs for op in ops))
    for op in ops:
        read.update(chain.from_iterable(op.forked_dram_inputs))
    read |= {queue.alias for name, queue in queues.items() if name in read or queue.input in names}
    return {name: queue for name, queue in queues.items() if queue.input in names or (queue.host_fed and name in read)}


def _settable_queues(graph: Graph, queues: Mapping[str, Queue]) -> set[str]:
    """Return the names of the queues that settings of this graph's executes can be about: its ops read or fill them."""
    ops = {op.name for op in graph.ops}
    read = set(chain.from_iterable(op.inputs for op in graph.ops))
    return {name for name, queue in queues.items() if name in read or queue.input in ops}


def _remaining_steps(
    program: Program, graphs: Collection[str], queues: Collection[str], set_queues: Callable[[Execute], Execute]
) -> Iterator[Instruction]:
    """Yield a program's instructions without graphs and queues that no longer exist; executes are passed through
    `set_queues`."""
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            if instruction.graph in graphs:
                yield set_queues(instruction)
        elif isinstance(instruction, Allocate | Deallocate):
            names = tuple(name for name in instruction.queues if name in queues)
            if names:
                yield evolve(instruction, queues=names)
        else:
            yield instruction


def _without_empty_loops(steps: list[Instruction]) -> list[Instruction]:
    """Return the instructions without loops that execute nothing: such loops change no tensor."""
    starts: list[int] = []
    instructions: list[Instruction] = []
    for step in steps:
        instructions.append(step)
        if isinstance(step, Loop):
            starts.append(len(instructions) - 1)
        elif isinstance(step, EndLoop) and starts:
            start = starts.pop()
            if not any(isinstance(instruction, Execute) for instruction in instructions[start:]):
                del instructions[start:]
    return instructions


Move = Callable[[Netlist], Iterator[WrittenNetlist]]
_PLAIN_FORMAT = "Float16_b"
_ALL = "all"


def fewer_ops(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents without some ops in a row, and with only these: half of the ops, quarters, and so on to single
    ones."""
    names = [op.name for op in _ops_of(contract(netlist))]
    size = len(names) - 1
    while size:
        for start in range(0, len(names), size):
            gone = names[start : start + size]
            if len(gone) < len(names):
                yield without_ops(netlist, gone)
                yield without_ops(netlist, [name for name in names if name not in gone])
        size //= 2


def fewer_programs(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with one program of those that execute something, and with all but one. Graphs that none executes
    go."""
    written = contract(netlist)
    names = [name for name, program in written.programs.items() if executes(program)]
    selections = [[name] for name in names]
    for gone in names:
        selections.append([name for name in names if name != gone])
    for selection in selections:
        if 0 < len(selection) < len(written.programs):
            yield _with_programs(netlist, written, selection)


def _with_programs(netlist: Netlist, written: WrittenNetlist, selection: Sequence[str]) -> WrittenNetlist:
    """Return a document with only the programs of `selection`, and without graphs that none of them executes."""
    steps = chain.from_iterable(written.programs[name].instructions for name in selection)
    run = {step.graph for step in steps if isinstance(step, Execute)}
    gone_graphs = (graph for name, graph in written.graphs.items() if name not in run)
    document = without_ops(netlist, [op.name for op in chain.from_iterable(graph.ops for graph in gone_graphs)])
    document.programs = _only_named(document.programs, selection)
    document.program_order = [name for name in document.program_order if name in selection]
    return document


def fewer_instructions(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with loops that run once or not at all, without single instructions, and with literals in place
    of parameters and variables; one program at a time."""
    for name, program in contract(netlist).programs.items():
        steps = program.instructions
        without_loops = [step for step in steps if not isinstance(step, Loop | EndLoop)]
        yield _with_instructions(netlist, name, without_loops)
        yield _with_instructions(netlist, name, [step for step in steps if not isinstance(step, VarInst)])
        for number, step in enumerate(steps):
            if isinstance(step, Loop) and step.count != "1":
                once = evolve(step, count="1")
                yield _with_instructions(netlist, name, [*steps[:number], once, *steps[number + 1 :]])
            if not isinstance(step, Loop | EndLoop):
                yield _with_instructions(netlist, name, [*steps[:number], *steps[number + 1 :]])
        yield _with_instructions(netlist, name, map(_with_literals, steps))


def _with_instructions(netlist: Netlist, program: str, steps: Iterable[Instruction | None]) -> WrittenNetlist:
    """Return a document in which a program has other instructions; None among them means no instruction."""
    document = contract(netlist)
    instructions = tuple(step for step in steps if step is not None)
    document.programs[program] = evolve(document.programs[program], instructions=instructions)
    return tidy(document)


def _with_literals(step: Instruction) -> Instruction | None:
    """Return an execute with literals in place of variables, None for an instruction that declares or changes
    variables, any other instruction as it is."""
    if isinstance(step, Declare | Param | VarInst):
        return None
    if not isinstance(step, Execute):
        return step
    fields = ("rd_ptr_local", "rd_ptr_global", "wr_ptr_global", "zero", "prologue", "epilogue")

    def plain(setting: QueueSettings) -> QueueSettings:
        """Return queue settings with 0 or false in place of variables."""
        return evolve(
            setting,
            **{name: "0" for name in fields[:3] if getattr(setting, name).startswith("$")},
            **{name: "false" for name in fields[3:] if getattr(setting, name).startswith("$")},
        )

    return evolve(step, queue_settings=tuple(map(plain, step.queue_settings)))


def fewer_queues(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents without a queue whose op's result something else takes, too, and with one host-fed queue in place
    of another like it."""
    document = contract(netlist)
    fed: dict[str, list[str]] = {}
    for name, queue in document.queues.items():
        fed.setdefault(queue.input, []).append(name)
    read = set(chain.from_iterable(op.inputs for op in netlist.ops.values()))
    for name, queue in document.queues.items():
        if not queue.host_fed and name not in read and (queue.input in read or len(fed[queue.input]) > 1):
            smaller_document = contract(netlist)
            del smaller_document.queues[name]
            yield tidy(smaller_document)
    for name, source in _interchangeable_queues(document):
        yield _change_ops(netlist, lambda op, old=name, new=source: _replace_input(op, old, new))


def _replace_input(op: Op, old: str, new: str) -> Op:
    """Return the op with operand `new` wherever it reads `old`; the op itself if it does not."""
    if old not in op.inputs:
        return op
    return evolve(op, inputs=tuple(new if name == old else name for name in op.inputs))


def _interchangeable_queues(document: WrittenNetlist) -> Iterator[tuple[str, str]]:
    """Yield pairs of host-fed queues that agree in type, shape, format, entries and chip: the second can replace the
    first."""
    first: dict[tuple[Any, ...], str] = {}
    for name, queue in document.queues.items():
        if queue.host_fed:
            key = (queue.type, queue.blocking.shape, queue.df, queue.entries, queue.target_device)
            if key in first:
                yield name, first[key]
            first.setdefault(key, name)


def fewer_inputs(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with one input for each graph, then half of them; entries of queues are reduced with them or
    alone."""
    for of_graphs, of_queues in ((1, 1), (None, 1), (2, 2), (None, 2)):
        document = contract(netlist)
        for name, graph in document.graphs.items():
            document.graphs[name] = evolve(graph, input_count=_part_of_count(graph.input_count, of_graphs))
        for name, queue in document.queues.items():
            document.queues[name] = evolve(queue, entries=_part_of_count(queue.entries, of_queues))
        yield document


def _part_of_count(count: int, part: int | None) -> int:
    """Return 1 for part 1, a half (at least 1) for part 2, `count` itself for None."""
    if part is None:
        return count
    if part == 1:
        return 1
    return max(1, count // part)


def fewer_cores(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer a document with all ops and queues on one core and in one buffer, then with each of them alone so."""

    def merge(blocking: Blocking) -> Blocking:
        """Return the blocking of the same tensor on one core."""
        rows, cols = blocking.grid_size
        m, n = blocking.mblock
        return replace(blocking, grid_size=(1, 1), mblock=(m * rows, n * cols))

    yield _change_all_blockings(netlist, merge)
    yield from _change_each_blocking(netlist, merge)


def smaller(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with smaller tensors: each size of t, rows or columns that occurs becomes 1 or half wherever it
    occurs; rows and columns also together."""
    shapes = [record.blocking.shape for record in (*netlist.queues.values(), *netlist.ops.values())]
    for axis in range(3):
        for size in sorted({shape[axis] for shape in shapes if shape[axis] > 1}, reverse=True):
            for new in dict.fromkeys((1, size // 2)):
                for axes in ((axis,), (1, 2)):
                    yield _change_all_blockings(netlist, partial(_resize, axes=axes, size=size, new=new))


def _resize(blocking: Blocking, axes: tuple[int, ...], size: int, new: int) -> Blocking:
    """Return a blocking with `new` tiles along those of `axes` (t, rows, columns: 0 to 2) that have `size`, there on
    one core. A ublock stays where it divides the new size, else it becomes one tile."""
    for axis in axes:
        if blocking.shape[axis] != size:
            continue
        if axis == 0:
            blocking = replace(blocking, t=new)
            continue
        at = axis - 1
        parts = {name: list(getattr(blocking, name)) for name in ("grid_size", "mblock", "ublock")}
        ublock = 1
        if size % new == 0 and blocking.ublock[at] <= new and new % blocking.ublock[at] == 0:
            ublock = blocking.ublock[at]
        parts["grid_size"][at] = 1
        parts["mblock"][at] = new // ublock
        parts["ublock"][at] = ublock
        blocking = replace(blocking, **{name: tuple(values) for name, values in parts.items()})
    return blocking


def simpler_ops(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with default fields for all ops, then with one simplification of one op at a time."""
    yield _change_ops(netlist, _plain_op)
    for op in _ops_of(contract(netlist)):
        for new in _simpler_variants(op):
            yield _change_ops(netlist, lambda old, new=new: new if old.name == new.name else old)


def _ops_of(document: WrittenNetlist) -> list[Op]:
    """Return the ops of all graphs."""
    return list(chain.from_iterable(graph.ops for graph in document.graphs.values()))


def _plain_op(op: Op) -> Op:
    """Return the op with defaults for the fields that change neither its shape nor its operands."""
    return evolve(
        op,
        untilize_output=False,
        gradient_op=False,
        grid_transpose=False,
        overlay_size=-1,
        input_buf_min_size_tiles=(),
        input_dram_io_buf_size_tiles=(),
    )


def _simpler_variants(op: Op) -> Iterator[Op]:
    """Yield variants of an op, each with one simplification: default fields, fewer TMs, no padding, an attribute less,
    or without its last optional operand."""
    plain = _plain_op(op)
    if plain != op:
        yield plain
    yield from _with_fewer_tms(op)
    if any(pad != Pad() for pad in (*op.input_pad, *op.input_unpad)):
        none = (Pad(),) * len(op.inputs)
        yield evolve(op, input_pad=none, input_unpad=none)
    yield from _with_fewer_attributes(op)
    if len(op.inputs) > 1 and OP_TYPES[op.type].inputs[0] < len(op.inputs):
        yield evolve(
            op,
            inputs=op.inputs[:-1],
            in_df=op.in_df[:-1],
            input_tms=op.input_tms[:-1],
            input_pad=op.input_pad[:-1],
            input_unpad=op.input_unpad[:-1],
            attributes=replace(op.attributes, given=op.attributes.given - {"bias"}, bias=False),
        )


def _with_fewer_tms(op: Op) -> Iterator[Op]:
    """Yield the op without any TMs, then without each single one; nothing if it has none."""
    if not any(op.input_tms):
        return
    yield evolve(op, input_tms=((),) * len(op.inputs))
    for number, tms in enumerate(op.input_tms):
        for at in range(len(tms)):
            new = (*tms[:at], *tms[at + 1 :])
            yield evolve(op, input_tms=(*op.input_tms[:number], new, *op.input_tms[number + 1 :]))


def _with_fewer_attributes(op: Op) -> Iterator[Op]:
    """Yield the op without each of its written attributes, then, for a product, with an inner dimension of one tile,
    and with its inner dimension in one step."""
    written = op.attributes.given
    for name in sorted(written, key=list(ATTRIBUTES).index):
        yield evolve(op, attributes=replace(op.attributes, given=written - {name}, **{name: ATTRIBUTES[name].default}))
    inner = op.attributes.inner_tiles
    if {"m_k", "u_kt"} <= written and inner > 1:
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=1))
        yield evolve(op, attributes=replace(op.attributes, m_k=1, u_kt=inner))


def plainer_formats(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with one plain format for everything, then in place of each other format, then with one
    fidelity."""
    formats = {queue.df for queue in netlist.queues.values()}
    for op in netlist.ops.values():
        formats.update((*op.in_df, op.out_df, op.intermed_df, op.acc_df))
    for old in (_ALL, *sorted(formats - {_PLAIN_FORMAT, ""})):
        yield _replace_format(netlist, old)
    yield _change_ops(netlist, lambda op: evolve(op, math_fidelity="HiFi3"))


def _replace_format(netlist: Netlist, old: str) -> WrittenNetlist:
    """Return a document with the plain format in place of `old`, or of every format if that is `_ALL`."""

    def new(name: str) -> str:
        """Return the format that stands for a format."""
        if name and old in (_ALL, name):
            return _PLAIN_FORMAT
        return name

    document = _change_ops(
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


def simpler_queues(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents with plain queues, with full tiles, for one chip, and for one architecture."""

    def plain(queue: Queue) -> Queue:
        """Return the queue without TMs, ports and alias, tilized."""
        return evolve(queue, input_tms=(), layout="tilized", read_ports=(), write_ports=(), alias="")

    document = contract(netlist)
    document.queues = {name: plain(queue) for name, queue in document.queues.items()}
    yield document
    yield _change_all_blockings(netlist, lambda blocking: replace(blocking, tile_dim=FULL_TILE))
    document = contract(netlist)
    document.queue_devices = {}
    document.graph_devices = {}
    document.queues = {name: evolve(queue, target_device=0) for name, queue in document.queues.items()}
    document.graphs = {name: evolve(graph, target_device=0) for name, graph in document.graphs.items()}
    yield document
    document = contract(netlist)
    document.archs = (netlist.arch_name,)
    yield document


def fewer_sections(netlist: Netlist) -> Iterator[WrittenNetlist]:
    """Offer documents without the sections about tests and others: without all, without each, then without entries of
    each."""
    for gone in (list(netlist.sections), *([name] for name in netlist.sections)):
        document = contract(netlist)
        document.sections = {name: node for name, node in document.sections.items() if name not in gone}
        yield document
    for name, node in netlist.sections.items():
        for smaller_node in _with_fewer_entries(node):
            document = contract(netlist)
            document.sections[name] = smaller_node
            yield document


def _with_fewer_entries(node: Node) -> Iterator[Node]:
    """Yield copies of a map, each without one pair, of its own or of maps in it; nothing for other nodes."""
    if not isinstance(node, MappingNode):
        return
    for at, (key, value) in enumerate(node.pairs):
        before = node.pairs[:at]
        after = node.pairs[at + 1 :]
        yield MappingNode([*before, *after], node.line, node.column, node.end_column)
        for other in _with_fewer_entries(value):
            yield MappingNode([*before, (key, other), *after], node.line, node.column, node.end_column)


def _change_ops(netlist: Netlist, change: Callable[[Op], Op]) -> WrittenNetlist:
    """Return a tidied document in which each op is what `change` makes of it."""
    document = contract(netlist)
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(map(change, graph.ops)))
    return tidy(document)


def _change_all_blockings(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> WrittenNetlist:
    """Return a document in which each blocking is what `change` makes of it; buffers and inner dimensions of products
    follow."""
    document = contract(netlist)
    document.queues = {name: _with_blocking(queue, change(queue.blocking)) for name, queue in document.queues.items()}
    for name, graph in document.graphs.items():
        ops = tuple(evolve(op, blocking=change(op.blocking)) for op in graph.ops)
        document.graphs[name] = evolve(graph, ops=ops)
    shapes = {record.name: record.blocking for record in (*document.queues.values(), *_ops_of(document))}
    for name, graph in document.graphs.items():
        document.graphs[name] = evolve(graph, ops=tuple(_fit_inner_dimension(op, shapes) for op in graph.ops))
    return document


def _change_each_blocking(netlist: Netlist, change: Callable[[Blocking], Blocking]) -> Iterator[WrittenNetlist]:
    """Yield, for each queue and op whose blocking `change` alters, a document with this alone."""
    for name in contract(netlist).queues:
        document = contract(netlist)
        queue = document.queues[name]
        if change(queue.blocking) != queue.blocking:
            document.queues[name] = _with_blocking(queue, change(queue.blocking))
            yield document
    for op in _ops_of(contract(netlist)):
        new = evolve(op, blocking=change(op.blocking))
        if new != op:
            yield _change_ops(netlist, lambda old, new=new: new if old.name == new.name else old)


def _with_blocking(queue: Queue, blocking: Blocking) -> Queue:
    """Return the queue with another blocking, and only as many of its buffers as that has."""
    return evolve(queue, blocking=blocking, buffers=queue.buffers[: blocking.cells])


def _fit_inner_dimension(op: Op, shapes: abc.Mapping[str, Blocking]) -> Op:
    """Return the op with inner dimension m_k, u_kt as long as its first operand in `shapes`. An op without one, a
    sparse matmul, and one whose first operand has TMs or is not in `shapes` is returned as it is."""
    inner = {"m_k", "u_kt"} <= op.attributes.given
    source = None
    if op.inputs:
        source = shapes.get(op.inputs[0])
    if not inner or source is None or op.input_tms[0] or op.attributes.identity:
        return op
    along = source.cols
    if op.attributes.dim == "r":
        along = source.rows
    elif op.attributes.dim == "z":
        along = source.t
    if op.attributes.inner_tiles == along:
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
"""All moves in the order in which they are tried: each makes the next ones cheaper."""
