"""The inverse of `expand`: copies for several chips become what was written, with a list of chips (NETLIST 1.7)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from buda_emu.netlist.derived.fields import without_derived
from buda_emu.netlist.model import Allocate, Deallocate, Execute, Graph, Instruction, Netlist, Op, Program, Queue
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sourced import evolve
from buda_emu.records import dataclass


@dataclass(slots=True)
class _Copies:
    """What each name of an expanded netlist was called, and the first copies, which stand for all."""

    written: dict[str, str] = field(default_factory=dict[str, str])
    first: set[str] = field(default_factory=set[str])
    devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    @staticmethod
    def of(named: Iterable[tuple[str, str]]) -> "_Copies":
        """From pairs of names: that of a copy, and the one that was written."""
        found = _Copies()
        for name, written in named:
            if name == written:
                continue
            if written not in found.devices:
                found.first.add(name)
            found.written[name] = written
            found.devices[written] = (*found.devices.get(written, ()), int(name[len(written) + 1 :]))
        return found

    def names(self, names: Iterable[str]) -> Iterator[str]:
        """Each as it was written, once for all its copies."""
        for name in names:
            if name not in self.written:
                yield name
            elif name in self.first:
                yield self.written[name]


def contracted(netlist: Netlist) -> Document:
    """What was written, as the reader has it: without copies, and without what is derived (NETLIST 1.5)."""
    queues = _Copies.of((queue.name, queue.written_name) for queue in netlist.queues.values())
    graphs = _Copies.of((graph.name, _written_name(graph)) for graph in netlist.graphs.values())
    found = Document(netlist.path, netlist.arch_name, netlist.archs)
    found.queue_devices, found.graph_devices = queues.devices, graphs.devices
    for name, queue in netlist.queues.items():
        if name not in queues.written:
            found.queues[name] = queue
        elif name in queues.first:
            written = queues.written[name]
            source = queue.input if queue.host_fed else queue.input[: len(written) - len(name)]
            found.queues[written] = evolve(queue, name=written, input=source)
    for name, graph in netlist.graphs.items():
        if name not in graphs.written:
            found.graphs[name] = graph
        elif name in graphs.first:
            found.graphs[graphs.written[name]] = _graph(graph, graphs.written[name])
    found.fused_ops = dict(netlist.fused_ops)
    found.programs = {
        name: evolve(program, instructions=tuple(_instructions(program, queues, graphs, netlist.queues)))
        for name, program in netlist.programs.items()
    }
    found.program_order = list(netlist.program_order)
    found.sections = dict(netlist.sections)
    return found


def _written_name(graph: Graph) -> str:
    """The name in the file: copies of its ops have the same ending."""
    op = next(iter(graph.ops), None)
    ending = op.name[len(op.written_name) :] if op is not None and op.name != op.written_name else ""
    return graph.name.removesuffix(ending)


def _graph(graph: Graph, written: str) -> Graph:
    cut = len(written) - len(graph.name)

    def own(op: Op) -> Op:
        return evolve(
            op,
            name=op.written_name,
            graph=written,
            inputs=tuple(name[:cut] for name in op.inputs),
            forked_dram_inputs=tuple((queue[:cut], fork[:cut]) for queue, fork in op.forked_dram_inputs),
        )

    return evolve(graph, name=written, ops=tuple(map(own, graph.ops)))


def _instructions(program: Program, queues: _Copies, graphs: _Copies, of: Mapping[str, Queue]) -> Iterator[Instruction]:
    for instruction in program.instructions:
        if isinstance(instruction, Allocate | Deallocate):
            yield evolve(instruction, queues=tuple(queues.names(instruction.queues)))
        elif not isinstance(instruction, Execute):
            yield instruction
        elif instruction.graph not in graphs.written or instruction.graph in graphs.first:
            yield _execute(instruction, queues, graphs, of)


def _execute(execute: Execute, queues: _Copies, graphs: _Copies, of: Mapping[str, Queue]) -> Execute:
    settings = tuple(without_derived(setting, of) for setting in execute.queue_settings)
    if execute.graph in graphs.first:
        written = graphs.written[execute.graph]
        cut = len(written) - len(execute.graph)
        own = tuple(evolve(setting, queue=setting.queue[:cut]) for setting in settings)
        return evolve(execute, graph=written, queue_settings=own)
    own = tuple(
        evolve(setting, queue=queues.written.get(setting.queue, setting.queue))
        for setting in settings
        if setting.queue not in queues.written or setting.queue in queues.first
    )
    return evolve(execute, queue_settings=own)
