"""One temporal epoch of a netlist as input of pipes: its ops, their readers, and the queues that a prologue keeps in
L1."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Execute, Netlist, Op, Queue
from buda_emu.performance.routing.pipes.library_order import in_table_order
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import FusedUse, OpInputs, fused_use
from buda_emu.spec.boards import Cluster

_TRUE: Final = ("true", "1")  # what net2pipe takes for true in a queue's settings


@dataclass(frozen=True, slots=True)
class Epoch:
    """A temporal epoch. `ops` stand in the order of net2pipe: graph by graph as they are executed, by name in a graph.

    `readers` has for each queue and op the names of its readers, an op once for each operand, and queues that it feeds.
    `prologue` and `epilogue` are the queues that are kept in L1 for the epoch: loaded at its start, stored at its end.
    `skipped` are graphs of earlier epochs that programs never execute. `unsteady` are graphs that are executed with
    other queues in L1 than the first time, each with such a queue.
    """

    netlist: Netlist
    number: int
    graphs: tuple[str, ...]
    input_count: int
    ops: Mapping[str, Op]
    all_ops: Mapping[str, Op]
    readers: Mapping[str, tuple[str, ...]]
    fed: Mapping[str, tuple[Queue, ...]]
    prologue: frozenset[str]
    epilogue: frozenset[str]
    queue_order: tuple[str, ...]
    """All queues of the netlist, in the order in which net2pipe gives them DRAM ports."""
    links: Links | None = None
    """Between the chips, where a cluster is known."""
    skipped: tuple[str, ...] = ()
    unsteady: Mapping[str, str] = field(default_factory=dict[str, str])
    _fused: dict[str, FusedUse] = field(default_factory=dict[str, FusedUse])
    _inputs: dict[str, OpInputs] = field(default_factory=dict[str, OpInputs])
    _flat: dict[str, Op | None] = field(default_factory=dict[str, Op | None])

    def source(self, name: str) -> Queue | Op:
        """Return the queue or op of that name; a queue if there are both (NETLIST 1.1). Raises KeyError if there is
        neither, or the op is of another epoch."""
        return self.netlist.queues.get(name) or self.ops[name]

    def producer(self, queue: Queue) -> Op | None:
        """Return the op that feeds a queue, of any epoch; None if the host feeds it."""
        if queue.host_fed:
            return None
        return self.all_ops.get(queue.input)

    def queues_of(self, op: Op) -> Iterator[Queue]:
        """Yield the queues that an op reads, once for each operand, then those that it feeds."""
        for name in op.inputs:
            queue = self.netlist.queues.get(name)
            if queue is not None:
                yield queue
        yield from self.fed.get(op.name, ())

    def fused_use_of(self, op: Op) -> FusedUse | None:
        """Return how the definition of a fused op uses its inputs, None for an op that is not fused. Cached."""
        if not op.has("sub-ops"):
            return None
        name = op.attributes.fused_op_id
        if name not in self._fused:
            self._fused[name] = fused_use(self.netlist.fused_ops[name])
        return self._fused[name]

    def inputs(self, op: Op) -> OpInputs:
        """Return the operands of an op with their sources, as its kind of op reads them. Cached. Raises KeyError if a
        source is not in the epoch."""
        inputs = self._inputs.get(op.name)
        if inputs is None:
            inputs = OpInputs(
                op=op,
                sources=tuple(map(self.source, op.inputs)),
                fused=self.fused_use_of(op),
                arch=self.netlist.arch,
                kind=kind_of(op),
            )
            self._inputs[op.name] = inputs
        return inputs

    def flat_reader(self, queue: str) -> Op | None:
        """Return the embedding or tilizer that reads a queue as flat rows, if its first reader is one, else None."""
        if queue not in self._flat:
            readers = self.readers.get(queue)
            if readers:
                first = self.ops.get(readers[0])
            else:
                first = None
            flat = first is not None and kind_of(first).is_flat(0) and first.inputs[0] == queue
            if flat:
                self._flat[queue] = first
            else:
                self._flat[queue] = None
        return self._flat[queue]

    def index_reader(self, queue: str) -> Op | None:
        """Return the embedding that takes its indices from a queue, if its first reader is one, else None."""
        readers = self.readers.get(queue)
        if readers:
            first = self.ops.get(readers[0])
        else:
            first = None
        reads_indices = first is not None and first.has("row-wise index") and first.inputs.index(queue) == 1
        if reads_indices:
            return first
        return None


def epochs(netlist: Netlist, cluster: Cluster | None = None) -> list[Epoch]:
    """Return the epochs of the graphs that programs execute, in order of their numbers; queue settings are those of a
    graph's first execute. `cluster` describes the links between chips; it is ignored on architectures without
    Ethernet."""
    links = None
    if cluster is not None and netlist.arch.eth_cores:
        links = Links(cluster)
    first, unsteady = _first_executes(netlist)
    members: dict[int, list[str]] = {}
    numbers: dict[str, int] = {}
    for temporal in netlist.temporal_graphs:
        numbers |= dict.fromkeys(temporal.graphs, temporal.id)
    for graph in first:
        members.setdefault(numbers[graph], []).append(graph)
    skipped = [(number, graph) for graph, number in numbers.items() if number not in members]
    result: list[Epoch] = []
    order = tuple(in_table_order(netlist.queues))
    ops = netlist.ops
    for number in sorted(members):
        epoch = epoch_of(netlist, number, members[number], first, order=order, all_ops=ops)
        before = tuple(graph for earlier, graph in skipped if earlier < number)
        unsteady_graphs = {graph: unsteady[graph] for graph in members[number] if graph in unsteady}
        result.append(replace(epoch, links=links, skipped=before, unsteady=unsteady_graphs))
    return result


def _first_executes(netlist: Netlist) -> tuple[dict[str, Execute], dict[str, str]]:
    """Return the first execute of each graph, and, for each graph that is executed later with other queues in L1, the
    name of the first queue that differs."""
    first: dict[str, Execute] = {}
    unsteady: dict[str, str] = {}
    for name in netlist.program_order:
        for step in netlist.programs[name].instructions:
            if not isinstance(step, Execute):
                continue
            first_execute = first.setdefault(step.graph, step)
            queue = _differing_queue(first_execute, step)
            if queue:
                unsteady.setdefault(step.graph, queue)
    return first, unsteady


def _differing_queue(first: Execute, second: Execute) -> str:
    """Return the first queue by name that only one of two executes of a graph has in its prologue or epilogue; "" if
    there is none."""
    if first.queue_settings == second.queue_settings:
        return ""
    flags = [
        {(setting.queue, setting.prologue.lower() in _TRUE, setting.epilogue.lower() in _TRUE) for setting in settings}
        for settings in (first.queue_settings, second.queue_settings)
    ]
    return min((queue for queue, *_ in flags[0] ^ flags[1]), default="")


def epoch_of(
    netlist: Netlist,
    number: int,
    graphs: Sequence[str],
    executes: Mapping[str, Execute],
    *,
    order: tuple[str, ...] | None = None,
    all_ops: Mapping[str, Op] | None = None,
) -> Epoch:
    """Return the epoch of some graphs, without links, skipped or unsteady graphs. `executes` has for each graph the
    execute whose queue settings count; `order` (of queues) and `all_ops` save computing them from the netlist again."""
    if order is None:
        order = tuple(in_table_order(netlist.queues))
    if all_ops is None:
        all_ops = netlist.ops
    fed = _fed_queues(netlist.queues, order)
    ops: dict[str, Op] = {}
    for graph in graphs:
        ops |= {op.name: op for op in sorted(netlist.graphs[graph].ops, key=lambda op: op.name)}
    settings = list(chain.from_iterable(executes[graph].queue_settings for graph in graphs))
    return Epoch(
        netlist=netlist,
        number=number,
        graphs=tuple(graphs),
        input_count=netlist.graphs[graphs[0]].input_count,
        ops=ops,
        all_ops=all_ops,
        readers=_readers(ops, fed),
        fed={name: tuple(group) for name, group in fed.items() if name in ops},
        prologue=_flagged_queues((setting.queue, setting.prologue) for setting in settings),
        epilogue=_flagged_queues((setting.queue, setting.epilogue) for setting in settings),
        queue_order=order,
    )


def _fed_queues(queues: Mapping[str, Queue], order: Iterable[str]) -> dict[str, list[Queue]]:
    """Return, by the name of an op, the queues that it feeds, in this order of names; without those that the host
    fills."""
    fed: dict[str, list[Queue]] = {}
    for name in order:
        queue = queues[name]
        if not queue.host_fed:
            fed.setdefault(queue.input, []).append(queue)
    return fed


def _readers(ops: Mapping[str, Op], fed: Mapping[str, Sequence[Queue]]) -> dict[str, tuple[str, ...]]:
    """Return for each op and queue the ops that read it, and for each op also the queues that it feeds."""
    readers: dict[str, list[str]] = {}
    for op in ops.values():
        for name in op.inputs:
            readers.setdefault(name, []).append(op.name)
        for queue in fed.get(op.name, ()):
            readers.setdefault(op.name, []).append(queue.name)
    return {name: tuple(group) for name, group in readers.items()}


def _flagged_queues(flags: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the queues whose flag is true, of pairs (queue, text of the flag); if a queue has several, its last one
    counts."""
    return frozenset(queue for queue, flag in dict(flags).items() if flag.lower() in _TRUE)
