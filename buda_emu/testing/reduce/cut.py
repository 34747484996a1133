"""A netlist without some of its ops: rams that the host fills stand for what those gave, and queues to the host take
what only they read."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field

from buda_emu.netlist.contract import contracted
from buda_emu.netlist.model import (
    Allocate,
    Buffer,
    Deallocate,
    EndLoop,
    Execute,
    Graph,
    Instruction,
    Loop,
    Netlist,
    Op,
    Program,
    Queue,
    QueueSettings,
)
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sizes import align_up, buffer_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.records import dataclass

_FIRST_ADDRESS = 0x10000000  # where netlists whose queues are all in host memory have none in DRAM


def without_ops(netlist: Netlist, gone: Collection[str]) -> Document:
    """The netlist without the ops of these written names, tidied."""
    document = contracted(netlist)
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
