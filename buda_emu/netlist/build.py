"""Text to netlist and findings: read, expanded for several chips, derived, checked; and contracted again."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from buda_emu.netlist.model import (
    Allocate,
    Buffer,
    Deallocate,
    Execute,
    Graph,
    Instruction,
    Netlist,
    Op,
    Program,
    Queue,
    QueueSettings,
    TemporalGraph,
)
from buda_emu.netlist.nodes import Mapping as MappingNode
from buda_emu.netlist.reader import Document, read_document
from buda_emu.netlist.reader.context import Kept
from buda_emu.netlist.rules.verify import verifying
from buda_emu.netlist.sizes import align_up, entry_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.netlist.variants import template_findings
from buda_emu.netlist.yaml_reader import UnreadableError, read_tree
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.result import Steps, run_steps
from buda_emu.support.records import dataclass

TileDim = tuple[int, int]
INVALID_TILE: TileDim = (0, 0)
# NETLIST 1.5: what a transpose TM makes of a tile; any other tile becomes invalid.
_TRANSPOSED: Mapping[TileDim, TileDim] = {(32, 32): (32, 32), (16, 32): (32, 16), (32, 16): (16, 32)}
_QUEUE_AUTOINC = {"rd_ptr_autoinc": "1", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "1"}
_RAM_AUTOINC = {"rd_ptr_autoinc": "0", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "0"}


def derive_graphs(graphs: Mapping[str, Graph], queues: Mapping[str, Queue]) -> dict[str, Graph]:
    """The graphs with the derived properties of their ops filled in."""
    return {name: _derive_graph(graph, queues) for name, graph in graphs.items()}


def _derive_graph(graph: Graph, queues: Mapping[str, Queue]) -> Graph:
    local = {op.name: op for op in graph.ops}
    return evolve(graph, ops=tuple(_derive_op(op, local, queues) for op in graph.ops))


def _derive_op(op: Op, local: Mapping[str, Op], queues: Mapping[str, Queue]) -> Op:
    """`local` are the ops of the same graph: a producer in another graph counts as 32x32."""
    tiles: list[TileDim] = []
    transposes = 0
    for index, name in enumerate(op.inputs):
        producer = queues.get(name) or local.get(name)
        tile = producer.blocking.tile_dim if producer is not None else FULL_TILE
        tms = op.input_tms[index]
        if tms:
            flips = sum(tm.name == "transpose" for tm in tms)
            transposes += flips
            for _ in range(flips):
                tile = _TRANSPOSED.get(tile, INVALID_TILE)
        tiles.append(tile)
    vector = op.attributes.vector or _default_vector(op.type, tiles[0] if tiles else FULL_TILE)
    return evolve(op, input_tile_dims=tuple(tiles), vector=vector, transpose=transposes % 2 == 1)


def _default_vector(op_type: str, tile: TileDim) -> str:
    """The region that an sfpu op covers: it follows the tile of input 0 (NETLIST 1.5, 11.1 A2); rc for all others."""
    known = OP_TYPES.get(op_type)
    if known is None or not known.has("vector unit") or tile == (32, 32):
        return "rc"
    return "c" if tile == (32, 16) else "r"


def derive_queues(queues: Mapping[str, Queue], graphs: Mapping[str, Graph]) -> dict[str, Queue]:
    """The queues with their input_count (NETLIST 1.3 "Derived per queue")."""
    consumed: dict[str, int] = {}  # the last graph that reads it wins
    produced: dict[str, int] = {}
    for graph in graphs.values():
        for op in graph.ops:
            produced[op.name] = graph.input_count
            for name in op.inputs:
                consumed[name] = graph.input_count
    result: dict[str, Queue] = {}
    for name, queue in queues.items():
        if queue.is_ram and queue.entries == 1:
            count = 1
        elif name in consumed:
            count = consumed[name]
        else:
            count = -1 if queue.host_fed else produced.get(queue.input, -1)
        result[name] = queue if count == queue.input_count else evolve(queue, input_count=count)
    return result


def derive_programs(programs: Mapping[str, Program], queues: Mapping[str, Queue]) -> dict[str, Program]:
    """The programs with the autoincrements that their queue settings do not write."""
    return {
        name: evolve(program, instructions=_derive_instructions(program, queues)) for name, program in programs.items()
    }


def _derive_instructions(program: Program, queues: Mapping[str, Queue]) -> tuple[Instruction, ...]:
    return tuple(
        evolve(instruction, queue_settings=tuple(_settings(setting, queues) for setting in instruction.queue_settings))
        if isinstance(instruction, Execute)
        else instruction
        for instruction in program.instructions
    )


def _settings(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    defaults = _autoincrements(setting, queues)
    missing = {name: value for name, value in defaults.items() if not getattr(setting, name)}
    return evolve(setting, **missing) if missing else setting


def without_derived(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    """The setting without the autoincrements that would be derived anyway."""
    defaults = _autoincrements(setting, queues)
    same = {name: "" for name, value in defaults.items() if getattr(setting, name) == value}
    return evolve(setting, **same) if same else setting


def _autoincrements(setting: QueueSettings, queues: Mapping[str, Queue]) -> Mapping[str, str]:
    """Those of its queue; none where there is no such queue."""
    queue = queues.get(setting.queue)
    return {} if queue is None else _RAM_AUTOINC if queue.is_ram else _QUEUE_AUTOINC


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
    found.queue_devices = queues.devices
    found.graph_devices = graphs.devices
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


MAX_COPIES = 200_000  # the largest cluster in circulation has 33 chips


def expand(document: Document) -> None:
    """Replace what has a list of chips by its copies, in place. Copies share the source of their original.

    Raises UnreadableError when there would be more copies than any machine runs.
    """
    if not document.queue_devices and not document.graph_devices:
        return
    _check_size(document)
    ops = {op.name: op for graph in document.graphs.values() for op in graph.ops}
    arch = ARCHS[document.arch_name]
    queues = document.queues
    instances = {
        name: tuple(f"{name}.{device}" for device in devices) for name, devices in document.queue_devices.items()
    }
    document.queues = {
        copy.name: copy for queue in queues.values() for copy in _queue_copies(queue, document, ops, arch)
    }
    graphs = document.graphs
    document.graphs = {copy.name: copy for graph in graphs.values() for copy in _graph_copies(graph, document)}
    document.programs = {
        name: evolve(program, instructions=_expand_instructions(program, document, instances))
        for name, program in document.programs.items()
    }


def _check_size(document: Document) -> None:
    copies = sum(len(devices) for devices in document.queue_devices.values()) + sum(
        len(devices) * len(document.graphs[name].ops) for name, devices in document.graph_devices.items()
    )
    if copies > MAX_COPIES:
        raise UnreadableError(
            f"the target_device lists ask for {copies:,} copies of queues and ops, {MAX_COPIES:,} at most"
        )


def _queue_copies(queue: Queue, document: Document, ops: Mapping[str, Op], arch: Arch) -> Iterator[Queue]:
    devices = document.queue_devices.get(queue.name)
    if devices is None:
        yield queue
        return
    producer = ops.get(queue.input)
    headers = queue.host_fed or producer is None or not producer.untilize_output
    size = entry_bytes(queue, arch, headers) * queue.entries + arch.alignment
    for device in devices:
        # Host memory is the first chip's: the copies of all others lie one buffer further.
        moved = align_up(size, arch.alignment) if queue.loc == "host" and device != devices[0] else 0
        yield evolve(
            queue,
            name=f"{queue.name}.{device}",
            target_device=devices[0] if queue.loc == "host" else device,
            input=queue.input if queue.host_fed else f"{queue.input}.{device}",
            buffers=tuple(Buffer(buffer.channel, buffer.address + moved) for buffer in queue.buffers),
        )


def _graph_copies(graph: Graph, document: Document) -> Iterator[Graph]:
    devices = document.graph_devices.get(graph.name)
    if devices is None:
        yield graph
        return
    for device in devices:
        name = f"{graph.name}.{device}"
        ops = tuple(
            evolve(
                op,
                name=f"{op.name}.{device}",
                graph=name,
                target_device=device,
                inputs=tuple(f"{source}.{device}" for source in op.inputs),
                forked_dram_inputs=tuple(
                    (f"{queue}.{device}", f"{fork}.{device}") for queue, fork in op.forked_dram_inputs
                ),
            )
            for op in graph.ops
        )
        yield evolve(graph, name=name, target_device=device, ops=ops)


def _expand_instructions(
    program: Program, document: Document, instances: Mapping[str, tuple[str, ...]]
) -> tuple[Instruction, ...]:
    result: list[Instruction] = []
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            result.extend(_executes(instruction, document, instances))
        elif isinstance(instruction, Allocate | Deallocate):
            names = tuple(copy for name in instruction.queues for copy in instances.get(name, (name,)))
            result.append(evolve(instruction, queues=names))
        else:
            result.append(instruction)
    return tuple(result)


def _executes(execute: Execute, document: Document, instances: Mapping[str, tuple[str, ...]]) -> Iterator[Execute]:
    devices = document.graph_devices.get(execute.graph)
    if devices is None:
        # A graph on one chip with queues on several: their settings are given to every copy.
        settings = tuple(
            evolve(setting, queue=copy)
            for setting in execute.queue_settings
            for copy in instances.get(setting.queue, (setting.queue,))
        )
        yield evolve(execute, queue_settings=settings)
        return
    for device in devices:
        settings = tuple(evolve(setting, queue=f"{setting.queue}.{device}") for setting in execute.queue_settings)
        yield evolve(execute, graph=f"{execute.graph}.{device}", queue_settings=settings)


def temporal_graphs(
    graphs: Mapping[str, Graph], programs: Iterable[Program], queues: Mapping[str, Queue], arch_name: str
) -> tuple[TemporalGraph, ...]:
    """The temporal graphs of a netlist, numbered from 0. Conditions on them are rules (NETLIST 11.1 A1, A14)."""
    groups = _Groups(graphs)
    _join_producers(graphs, queues, groups)
    if arch_name != "grayskull":
        _join_back_to_back(programs, groups)
    return groups.result()


class _Groups:
    """Graphs by temporal id. An id that loses all its graphs disappears from the result.

    Ids that became one point to the one that has the graphs; merging costs no more than the smaller set of chips.
    """

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = graphs
        self._first_id: dict[str, int] = {}
        self._moved_to: list[int] = []
        self._devices: list[set[int]] = []

    def start(self, graph: str) -> int:
        """The id of a graph, a new one if it has none."""
        found = self._first_id.get(graph)
        if found is None:
            found = self._first_id[graph] = len(self._moved_to)
            self._moved_to.append(found)
            self._devices.append({self.graphs[graph].target_device})
        return self._where(found)

    def id_of(self, graph: str) -> int | None:
        """The id of a graph; None for one that has none."""
        found = self._first_id.get(graph)
        return None if found is None else self._where(found)

    def move(self, source: int, target: int) -> None:
        """Move all graphs of one id to another."""
        self._moved_to[source] = target
        one = self._devices[source]
        other = self._devices[target]
        small, large = sorted((one, other), key=len)
        large |= small
        self._devices[source], self._devices[target] = set(), large

    def devices(self, number: int) -> set[int]:
        """The chips of an id's graphs."""
        return self._devices[number]

    def result(self) -> tuple[TemporalGraph, ...]:
        """The ids that have graphs, renumbered in order, their graphs in document order."""
        names: dict[int, list[str]] = {}
        for graph in self.graphs:
            names.setdefault(self._where(self._first_id[graph]), []).append(graph)
        return tuple(TemporalGraph(index, tuple(names[number])) for index, number in enumerate(sorted(names)))

    def _where(self, number: int) -> int:
        while self._moved_to[number] != number:
            self._moved_to[number] = number = self._moved_to[self._moved_to[number]]
        return number


def _join_producers(graphs: Mapping[str, Graph], queues: Mapping[str, Queue], groups: _Groups) -> None:
    """An op that reads an op of another chip's graph without a queue between ties the two graphs."""
    owner = {op.name: graph.name for graph in graphs.values() for op in graph.ops}
    for graph in graphs.values():
        number = groups.start(graph.name)
        sources = (name for op in graph.ops for name in op.inputs if name not in queues)
        producers = dict.fromkeys(owner[name] for name in sources if name in owner)
        for producer in producers:
            if graphs[producer].target_device == graph.target_device:
                continue
            other = groups.start(producer)
            if other != number:
                groups.move(other, number)


def _join_back_to_back(programs: Iterable[Program], groups: _Groups) -> None:
    """Consecutive executes on disjoint chips become one temporal graph; the last id carries over to the next program.

    The reference walks the programs in the order of a hash table, which no text fixes; here it is the document's.
    """
    previous: int | None = None
    for program in programs:
        for instruction in program.instructions:
            number = groups.id_of(instruction.graph) if isinstance(instruction, Execute) else None
            if number is None:
                continue
            if previous not in (None, number) and groups.devices(previous).isdisjoint(groups.devices(number)):
                groups.move(number, previous)
                number = previous
            previous = number


def check_text(
    text: str, path: str, arch: str | None, strict: bool, asked: set[str] | None = None
) -> tuple[Netlist | None, MappingNode | None, list[Diagnostic]]:
    """The netlist, None where it could not be made; the tree that it was read from; and what was found, in no order.
    `asked`: gets the rules that are asked of something."""
    try:
        root = read_tree(text)
    except UnreadableError as error:
        return None, None, template_findings(text, path, None) or [error.diagnostic(path)]
    placeholders = template_findings(text, path, root)
    if placeholders:
        return None, root, placeholders
    netlist, findings = run_steps(checking(root, path, arch, strict, asked=asked))
    return netlist, root, findings


def checking(
    root: MappingNode,
    path: str,
    arch: str | None,
    strict: bool,
    kept: Kept | None = None,
    asked: set[str] | None = None,
) -> Steps[tuple[Netlist | None, list[Diagnostic]]]:
    """The same of a tree that was read, in steps: the netlist, None where it could not be made, and what was found.
    `kept`: from an earlier version whose nodes are those of this one where nothing changed."""
    document = read_document(root, path, arch, kept)
    findings = document.diagnostics
    if not document.readable or not document.arch_name:
        return None, findings
    try:
        netlist = build(document)
    except UnreadableError as error:
        return None, [*findings, error.diagnostic(path)]
    read = {item.rule for item in findings}
    yield
    more = yield from verifying(netlist, strict=strict, skip=broken_names(netlist), read=read, asked=asked)
    findings = [*findings, *more]
    if "test-config" in netlist.sections:
        from buda_emu.netlist import test_config as harness_config  # only where it is needed: check is quick

        findings += harness_config.findings(path, netlist.sections, strict=strict)
    if "performance-check" in netlist.sections:
        from buda_emu.netlist import test_config as performance_check

        findings += performance_check.performance_findings(path, netlist.sections, strict=strict)
    return netlist, findings


def build(document: Document) -> Netlist:
    """Expand and derive, in place: nothing is held twice (docs/netlists/check.md, bounds). Raises UnreadableError when
    the expansion is larger than any machine."""
    expand(document)
    document.queues = queues = derive_queues(document.queues, document.graphs)
    document.graphs = derive_graphs(document.graphs, queues)
    return Netlist(
        path=document.path,
        arch_name=document.arch_name,
        archs=document.archs,
        queues=queues,
        graphs=document.graphs,
        fused_ops=document.fused_ops,
        programs=derive_programs(document.programs, queues),
        program_order=tuple(document.program_order),
        temporal_graphs=temporal_graphs(document.graphs, document.programs.values(), queues, document.arch_name),
        sections=document.sections,
    )


def broken_names(netlist: Netlist) -> frozenset[str]:
    """Names of the objects in which reading found an error: nothing more is said about them."""
    graphs = netlist.graphs.values()
    objects = (
        *netlist.queues.items(),
        *netlist.graphs.items(),
        *netlist.fused_ops.items(),
        *netlist.programs.items(),
        *((op.name, op) for graph in graphs for op in graph.ops),
    )
    return frozenset(name for name, item in objects if item.broken)
