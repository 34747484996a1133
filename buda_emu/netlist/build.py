"""Build a netlist from YAML text: read it, expand it for several chips, derive properties, and check the rules.
`contract` undoes expansion and derivation for the printer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING

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
from buda_emu.netlist.reader import WrittenNetlist, read_document
from buda_emu.netlist.reader.context import ReadCache
from buda_emu.netlist.rules.book import verifying
from buda_emu.netlist.sizes import align_up, entry_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.netlist.variants import template_findings
from buda_emu.netlist.yaml_reader import UnreadableError, read_tree
from buda_emu.spec.archs import ARCHS, Arch
from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.result import Steps, run_steps
from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.netlist import test_config, test_names
else:  # only for netlists with such a section: a check is quick
    test_config = lazy("buda_emu.netlist.test_config")
    test_names = lazy("buda_emu.netlist.test_names")

TileDim = tuple[int, int]
INVALID_TILE: TileDim = (0, 0)  # no tile has these dims
# NETLIST 1.5: a tile's dims after a transpose TM; any other tile becomes invalid.
_TRANSPOSED: Mapping[TileDim, TileDim] = {(32, 32): (32, 32), (16, 32): (32, 16), (32, 16): (16, 32)}
_QUEUE_AUTOINC = {"rd_ptr_autoinc": "1", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "1"}
_RAM_AUTOINC = {"rd_ptr_autoinc": "0", "global_rdptr_autoinc": "0", "global_wrptr_autoinc": "0"}


def derive_graphs(graphs: Mapping[str, Graph], queues: Mapping[str, Queue]) -> dict[str, Graph]:
    """Return the graphs with the derived properties of their ops filled in (NETLIST 1.5), which depend on the tiles
    of their inputs: `queues` are all queues by name.
    """
    return {name: _derive_graph(graph, queues) for name, graph in graphs.items()}


def _derive_graph(graph: Graph, queues: Mapping[str, Queue]) -> Graph:
    """Return a graph whose ops have their derived properties filled in."""
    local = {op.name: op for op in graph.ops}
    return evolve(graph, ops=tuple(_derive_op(op, local, queues) for op in graph.ops))


def _derive_op(op: Op, local: Mapping[str, Op], queues: Mapping[str, Queue]) -> Op:
    """Return the op with its tile dims, vector mode and transpose flag filled in. `local` holds the ops of the same
    graph: a producer in another graph counts as 32x32."""
    tiles: list[TileDim] = []
    transposes = 0
    for index, name in enumerate(op.inputs):
        producer = queues.get(name) or local.get(name)
        if producer is not None:
            tile = producer.blocking.tile_dim
        else:
            tile = FULL_TILE
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
    """Return the region of a tile that an sfpu op covers, "r", "c" or "rc". It follows the tile of input 0 (NETLIST
    1.5, 11.1 A2) and is "rc" for all other op types."""
    declaration = OP_TYPES.get(op_type)
    if declaration is None or not declaration.has("vector unit") or tile == (32, 32):
        return "rc"
    return "c" if tile == (32, 16) else "r"


def derive_queues(queues: Mapping[str, Queue], graphs: Mapping[str, Graph]) -> dict[str, Queue]:
    """Return the queues with their `input_count` filled in (NETLIST 1.3 "Derived per queue"): that of the graph that
    reads the queue, else of the graph that fills it, and -1 where there is neither; 1 for a ram of one entry."""
    reader_counts: dict[str, int] = {}  # the last graph that reads a name wins
    producer_counts: dict[str, int] = {}
    for graph in graphs.values():
        for op in graph.ops:
            producer_counts[op.name] = graph.input_count
            for name in op.inputs:
                reader_counts[name] = graph.input_count
    result: dict[str, Queue] = {}
    for name, queue in queues.items():
        if queue.is_ram and queue.entries == 1:
            count = 1
        elif name in reader_counts:
            count = reader_counts[name]
        elif queue.host_fed:
            count = -1
        else:
            count = producer_counts.get(queue.input, -1)
        result[name] = queue if count == queue.input_count else evolve(queue, input_count=count)
    return result


def derive_programs(programs: Mapping[str, Program], queues: Mapping[str, Queue]) -> dict[str, Program]:
    """Return the programs with the autoincrements that their queue settings leave out."""
    return {
        name: evolve(program, instructions=_derive_instructions(program, queues)) for name, program in programs.items()
    }


def _derive_instructions(program: Program, queues: Mapping[str, Queue]) -> tuple[Instruction, ...]:
    """Return the instructions of a program, with the autoincrements filled in that the executes leave out."""
    instructions: list[Instruction] = []
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            settings = tuple(_fill_autoincrements(setting, queues) for setting in instruction.queue_settings)
            instructions.append(evolve(instruction, queue_settings=settings))
        else:
            instructions.append(instruction)
    return tuple(instructions)


def _fill_autoincrements(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    """Return the settings of a queue with the default (NETLIST 1.5) for each autoincrement that is not written."""
    defaults = _default_autoincrements(setting, queues)
    missing = {name: value for name, value in defaults.items() if not getattr(setting, name)}
    return evolve(setting, **missing) if missing else setting


def omit_defaults(setting: QueueSettings, queues: Mapping[str, Queue]) -> QueueSettings:
    """Return the settings of a queue without the autoincrements that equal the derived defaults."""
    defaults = _default_autoincrements(setting, queues)
    same = {name: "" for name, value in defaults.items() if getattr(setting, name) == value}
    return evolve(setting, **same) if same else setting


def _default_autoincrements(setting: QueueSettings, queues: Mapping[str, Queue]) -> Mapping[str, str]:
    """Return the default autoincrements of the setting's queue or ram; empty if there is no such queue."""
    queue = queues.get(setting.queue)
    if queue is None:
        return {}
    return _RAM_AUTOINC if queue.is_ram else _QUEUE_AUTOINC


@dataclass(slots=True)
class _Copies:
    """The copies that expansion made of queues or graphs (NETLIST 1.7). The first copy of an object represents all.

    `written` maps the name of a copy to the name in the file, `devices` a name in the file to the chips of its copies,
    and `first` holds the names of the first copies.
    """

    written: dict[str, str] = field(default_factory=dict[str, str])
    first: set[str] = field(default_factory=set[str])
    devices: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    @staticmethod
    def of(names: Iterable[tuple[str, str]]) -> "_Copies":
        """Collect the copies among pairs of an object's name and its name in the file."""
        copies = _Copies()
        for name, written in names:
            if name == written:
                continue
            if written not in copies.devices:
                copies.first.add(name)
            copies.written[name] = written
            copies.devices[written] = (*copies.devices.get(written, ()), int(name[len(written) + 1 :]))
        return copies

    def names(self, names: Iterable[str]) -> Iterator[str]:
        """Yield these names of queues as the file has them: copies of one queue are named once, where its first copy
        stands."""
        for name in names:
            if name not in self.written:
                yield name
            elif name in self.first:
                yield self.written[name]


def contract(netlist: Netlist) -> WrittenNetlist:
    """Return the netlist as its file states it: without copies for several chips, and without the properties that
    loading derives (NETLIST 1.5, 1.7)."""
    queues = _Copies.of((queue.name, queue.written_name) for queue in netlist.queues.values())
    graphs = _Copies.of((graph.name, _written_name(graph)) for graph in netlist.graphs.values())
    document = WrittenNetlist(netlist.path, netlist.arch_name, netlist.archs)
    document.queue_devices = queues.devices
    document.graph_devices = graphs.devices
    document.queues = _contract_queues(netlist, queues)
    document.graphs = _contract_graphs(netlist, graphs)
    document.fused_ops = dict(netlist.fused_ops)
    document.programs = {
        name: evolve(program, instructions=tuple(_contract_instructions(program, queues, graphs, netlist.queues)))
        for name, program in netlist.programs.items()
    }
    document.program_order = list(netlist.program_order)
    document.sections = dict(netlist.sections)
    return document


def _contract_queues(netlist: Netlist, copies: _Copies) -> dict[str, Queue]:
    """Return the queues under their names in the file, one for all its copies; the input of a copy loses its chip's
    suffix.
    """
    queues: dict[str, Queue] = {}
    for name, queue in netlist.queues.items():
        if name not in copies.written:
            queues[name] = queue
        elif name in copies.first:
            written = copies.written[name]
            if queue.host_fed:
                source = queue.input
            else:
                source = queue.input[: len(written) - len(name)]
            queues[written] = evolve(queue, name=written, input=source)
    return queues


def _contract_graphs(netlist: Netlist, copies: _Copies) -> dict[str, Graph]:
    """Return the graphs under their names in the file, one for all its copies."""
    graphs: dict[str, Graph] = {}
    for name, graph in netlist.graphs.items():
        if name not in copies.written:
            graphs[name] = graph
        elif name in copies.first:
            graphs[copies.written[name]] = _contract_graph(graph, copies.written[name])
    return graphs


def _written_name(graph: Graph) -> str:
    """Return the graph's name in the file. Its ops know theirs, and copies of graph and ops share a suffix."""
    op = next(iter(graph.ops), None)
    if op is None or op.name == op.written_name:
        return graph.name
    return graph.name.removesuffix(op.name[len(op.written_name) :])


def _contract_graph(graph: Graph, written: str) -> Graph:
    """Return the graph that was expanded into this copy: names of graph, ops and inputs lose the chip's suffix.
    `written` is the graph's name in the file.
    """
    cut = len(written) - len(graph.name)

    def contract_op(op: Op) -> Op:
        """Return the op as the file has it, without the chip's suffix at its names."""
        return evolve(
            op,
            name=op.written_name,
            graph=written,
            inputs=tuple(name[:cut] for name in op.inputs),
            forked_dram_inputs=tuple((queue[:cut], fork[:cut]) for queue, fork in op.forked_dram_inputs),
        )

    return evolve(graph, name=written, ops=tuple(map(contract_op, graph.ops)))


def _contract_instructions(
    program: Program, queues: _Copies, graphs: _Copies, netlist_queues: Mapping[str, Queue]
) -> Iterator[Instruction]:
    """Yield the instructions of a program as the file has them, an execute of a graph with copies once. `queues`
    and `graphs` are the copies that expansion made, `netlist_queues` all queues of the netlist.
    """
    for instruction in program.instructions:
        if isinstance(instruction, Allocate | Deallocate):
            yield evolve(instruction, queues=tuple(queues.names(instruction.queues)))
        elif not isinstance(instruction, Execute):
            yield instruction
        elif instruction.graph not in graphs.written or instruction.graph in graphs.first:
            yield _contract_execute(instruction, queues, graphs, netlist_queues)


def _contract_execute(
    execute: Execute, queues: _Copies, graphs: _Copies, netlist_queues: Mapping[str, Queue]
) -> Execute:
    """Return an execute with the names of the file, and without autoincrements that are the defaults. `queues` and
    `graphs` are the copies that expansion made.
    """
    settings = tuple(omit_defaults(setting, netlist_queues) for setting in execute.queue_settings)
    if execute.graph in graphs.first:
        written = graphs.written[execute.graph]
        cut = len(written) - len(execute.graph)
        written_settings = tuple(evolve(setting, queue=setting.queue[:cut]) for setting in settings)
        return evolve(execute, graph=written, queue_settings=written_settings)
    written_settings = tuple(
        evolve(setting, queue=queues.written.get(setting.queue, setting.queue))
        for setting in settings
        if setting.queue not in queues.written or setting.queue in queues.first
    )
    return evolve(execute, queue_settings=written_settings)


MAX_COPIES = 200_000  # the largest cluster in circulation has 33 chips


def expand(document: WrittenNetlist) -> None:
    """Replace queues and graphs that have a list of chips by one copy for each chip, in place (NETLIST 1.7).

    A copy shares the source of its original. Raises UnreadableError for more than `MAX_COPIES` copies.
    """
    if not document.queue_devices and not document.graph_devices:
        return
    _check_size(document)
    ops = {op.name: op for op in chain.from_iterable(graph.ops for graph in document.graphs.values())}
    arch = ARCHS[document.arch_name]
    queue_copies = chain.from_iterable(_queue_copies(queue, document, ops, arch) for queue in document.queues.values())
    document.queues = {copy.name: copy for copy in queue_copies}
    graph_copies = chain.from_iterable(_graph_copies(graph, document) for graph in document.graphs.values())
    document.graphs = {copy.name: copy for copy in graph_copies}
    names_of_copies = _names_of_copies(document)
    document.programs = {
        name: evolve(program, instructions=_expand_instructions(program, document, names_of_copies))
        for name, program in document.programs.items()
    }


def _names_of_copies(document: WrittenNetlist) -> dict[str, tuple[str, ...]]:
    """Return the names of the copies of each queue that has a list of chips."""
    return {name: tuple(f"{name}.{device}" for device in devices) for name, devices in document.queue_devices.items()}


def _check_size(document: WrittenNetlist) -> None:
    """Raise UnreadableError if expansion would make more than `MAX_COPIES` copies of queues and ops."""
    copies = sum(len(devices) for devices in document.queue_devices.values())
    for name, devices in document.graph_devices.items():
        copies += len(devices) * len(document.graphs[name].ops)
    if copies > MAX_COPIES:
        raise UnreadableError(
            f"the target_device lists ask for {copies:,} copies of queues and ops, {MAX_COPIES:,} at most"
        )


def _queue_copies(queue: Queue, document: WrittenNetlist, ops: Mapping[str, Op], arch: Arch) -> Iterator[Queue]:
    """Yield a copy of the queue for each chip of its `target_device` list, or the queue itself if it has no list.
    `ops` are all ops by name: the queue's size, by which copies in host memory lie apart, depends on the op that
    fills it.
    """
    devices = document.queue_devices.get(queue.name)
    if devices is None:
        yield queue
        return
    producer = ops.get(queue.input)
    headers = queue.host_fed or producer is None or not producer.untilize_output
    size = entry_bytes(queue, arch, headers) * queue.entries + arch.alignment
    for device in devices:
        # Host memory is the first chip's: the copies of all others lie one buffer further.
        on_host = queue.loc == "host"
        if on_host and device != devices[0]:
            offset = align_up(size, arch.alignment)
        else:
            offset = 0
        yield evolve(
            queue,
            name=f"{queue.name}.{device}",
            target_device=devices[0] if on_host else device,
            input=queue.input if queue.host_fed else f"{queue.input}.{device}",
            buffers=tuple(Buffer(buffer.channel, buffer.address + offset) for buffer in queue.buffers),
        )


def _graph_copies(graph: Graph, document: WrittenNetlist) -> Iterator[Graph]:
    """Yield a copy of the graph for each chip of its `target_device` list, or the graph itself if it has no list."""
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
    program: Program, document: WrittenNetlist, instances: Mapping[str, tuple[str, ...]]
) -> tuple[Instruction, ...]:
    """Return the instructions with queues and graphs replaced by their copies. `instances` maps the name of each
    queue with a list of chips to the names of its copies.
    """
    instructions: list[Instruction] = []
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            instructions.extend(_expand_execute(instruction, document, instances))
        elif isinstance(instruction, Allocate | Deallocate):
            names: list[str] = []
            for name in instruction.queues:
                names.extend(instances.get(name, (name,)))
            instructions.append(evolve(instruction, queues=tuple(names)))
        else:
            instructions.append(instruction)
    return tuple(instructions)


def _expand_execute(
    execute: Execute, document: WrittenNetlist, instances: Mapping[str, tuple[str, ...]]
) -> Iterator[Execute]:
    """Yield an execute for each copy of its graph, with the settings of the queues' copies on the same chip. A
    graph without copies is executed once, with the settings of all copies of its queues.
    """
    devices = document.graph_devices.get(execute.graph)
    if devices is None:
        # A graph on one chip may use queues that have copies on several: the settings hold for every copy.
        copies: list[QueueSettings] = []
        for setting in execute.queue_settings:
            queues = instances.get(setting.queue, (setting.queue,))
            copies.extend(evolve(setting, queue=queue) for queue in queues)
        yield evolve(execute, queue_settings=tuple(copies))
        return
    for device in devices:
        settings = tuple(evolve(setting, queue=f"{setting.queue}.{device}") for setting in execute.queue_settings)
        yield evolve(execute, graph=f"{execute.graph}.{device}", queue_settings=settings)


def temporal_graphs(
    graphs: Mapping[str, Graph], programs: Iterable[Program], queues: Mapping[str, Queue], arch_name: str
) -> tuple[TemporalGraph, ...]:
    """Return the temporal graphs of a netlist, numbered from 0 (NETLIST 1.8): graphs on different chips that feed
    each other without a queue and, except on grayskull, those that a program executes one after the other.
    Conditions on them are rules (NETLIST 11.1 A1, A14).
    """
    groups = _Groups(graphs)
    _join_producers(graphs, queues, groups)
    if arch_name != "grayskull":
        _join_back_to_back(programs, groups)
    return groups.result()


class _Groups:
    """Graphs grouped by temporal id, as a union-find forest: a merged id points to the id that took its graphs over.

    An id that loses all its graphs is not in the result. Merging two ids costs no more than the smaller set of chips.
    """

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = graphs
        self._first_id: dict[str, int] = {}
        self._moved_to: list[int] = []
        self._devices: list[set[int]] = []

    def start(self, graph: str) -> int:
        """Return the temporal id of a graph, and assign a new one if it has none."""
        first_id = self._first_id.get(graph)
        if first_id is None:
            first_id = self._first_id[graph] = len(self._moved_to)
            self._moved_to.append(first_id)
            self._devices.append({self.graphs[graph].target_device})
        return self._root(first_id)

    def id_of(self, graph: str) -> int | None:
        """Return the temporal id of a graph, or None if it has none yet."""
        first_id = self._first_id.get(graph)
        return None if first_id is None else self._root(first_id)

    def move(self, source: int, target: int) -> None:
        """Move all graphs of the temporal id `source` to the id `target`."""
        self._moved_to[source] = target
        small, large = sorted((self._devices[source], self._devices[target]), key=len)
        large |= small
        self._devices[source] = set()
        self._devices[target] = large

    def devices(self, number: int) -> set[int]:
        """Return the chips on which the graphs of the temporal id `number` run."""
        return self._devices[number]

    def result(self) -> tuple[TemporalGraph, ...]:
        """Return the ids that have graphs, renumbered from 0 in order, with their graphs in document order."""
        names: dict[int, list[str]] = {}
        for graph in self.graphs:
            names.setdefault(self._root(self._first_id[graph]), []).append(graph)
        return tuple(TemporalGraph(index, tuple(names[number])) for index, number in enumerate(sorted(names)))

    def _root(self, number: int) -> int:
        """Follow merged ids to the id that holds their graphs now, and shorten the path on the way."""
        while self._moved_to[number] != number:
            self._moved_to[number] = number = self._moved_to[self._moved_to[number]]
        return number


def _join_producers(graphs: Mapping[str, Graph], queues: Mapping[str, Queue], groups: _Groups) -> None:
    """Give each graph a temporal id, and merge the ids of two graphs on different chips when an op of one reads an op
    of the other without a queue between them."""
    owner: dict[str, str] = {}
    for graph in graphs.values():
        owner |= {op.name: graph.name for op in graph.ops}
    for graph in graphs.values():
        number = groups.start(graph.name)
        sources = (name for name in chain.from_iterable(op.inputs for op in graph.ops) if name not in queues)
        producers = dict.fromkeys(owner[name] for name in sources if name in owner)
        for producer in producers:
            if graphs[producer].target_device == graph.target_device:
                continue
            other = groups.start(producer)
            if other != number:
                groups.move(other, number)


def _join_back_to_back(programs: Iterable[Program], groups: _Groups) -> None:
    """Merge consecutive executes on disjoint chips into one temporal graph; the last id carries over to the next
    program. The reference walks the programs in the order of a hash table, which no text fixes; here it is the
    document's order.
    """
    previous: int | None = None
    for program in programs:
        for instruction in program.instructions:
            if not isinstance(instruction, Execute):
                continue
            number = groups.id_of(instruction.graph)
            if number is None:
                continue
            if previous not in (None, number) and groups.devices(previous).isdisjoint(groups.devices(number)):
                groups.move(number, previous)
                number = previous
            previous = number


def check_text(
    text: str, path: str, arch: str | None, strict: bool, asked: set[str] | None = None
) -> tuple[Netlist | None, MappingNode | None, list[Diagnostic]]:
    """Read and check a netlist's text. Returns the netlist, or None if it could not be built; the YAML tree, or
    None if the text is no YAML map; and the findings, unsorted. `arch` and `strict` are as in `load.check`; `asked`
    receives the ids of the rules that looked at an object at least once.
    """
    try:
        root = read_tree(text)
    except UnreadableError as error:
        return None, None, template_findings(text, path, None) or [error.diagnostic(path)]
    placeholders = template_findings(text, path, root)
    if placeholders:
        return None, root, placeholders
    netlist, findings = run_steps(check_in_steps(root, path, arch, strict, asked=asked))
    return netlist, root, findings


def check_in_steps(
    root: MappingNode,
    path: str,
    arch: str | None,
    strict: bool,
    cache: ReadCache | None = None,
    asked: set[str] | None = None,
) -> Steps[tuple[Netlist | None, list[Diagnostic]]]:
    """Build and check the netlist of a YAML tree, in steps between which an editor can stop.

    Returns the netlist, or None if it could not be built, and the findings, unsorted. `cache` holds the objects of an
    earlier version of the text; the two trees share the nodes of unchanged parts. `asked` is as in `check_text`.
    """
    document = read_document(root, path, arch, cache)
    findings = document.diagnostics
    if not document.readable or not document.arch_name:
        return None, findings
    try:
        netlist = build(document)
    except UnreadableError as error:
        return None, [*findings, error.diagnostic(path)]
    read = {finding.rule for finding in findings}
    yield
    verdicts = yield from verifying(netlist, strict=strict, skip=broken_names(netlist), read=read, asked=asked)
    findings = [*findings, *verdicts, *test_names.key_findings(document.path, root, strict=strict)]
    if "test-config" in netlist.sections:
        findings += test_config.findings(path, netlist.sections, strict=strict)
    if "performance-check" in netlist.sections:
        findings += test_config.performance_findings(path, netlist.sections, strict=strict)
    if "test-config" in netlist.sections or "performance-check" in netlist.sections:
        findings += test_names.name_findings(netlist, strict=strict)
    return netlist, findings


def build(document: WrittenNetlist) -> Netlist:
    """Expand a document and derive its properties, in place so that nothing is held in memory twice
    (docs/netlists/check.md, bounds). Raises UnreadableError when the expansion has more than `MAX_COPIES` copies."""
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
    """Return the names of the objects in which reading found an error. The rules say nothing more about these."""
    graphs = netlist.graphs.values()
    objects = (
        *netlist.queues.items(),
        *netlist.graphs.items(),
        *netlist.fused_ops.items(),
        *netlist.programs.items(),
        *((op.name, op) for op in chain.from_iterable(graph.ops for graph in graphs)),
    )
    return frozenset(name for name, parsed in objects if parsed.broken)
