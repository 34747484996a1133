"""One temporal epoch of a netlist, as pipes are made for it: its ops, who reads what, what a prologue keeps in L1."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from buda_emu.netlist.model import Execute, Netlist, Op, Queue
from buda_emu.performance.routing.pipes.library_order import in_table_order
from buda_emu.performance.routing.pipes.links import Links
from buda_emu.performance.routing.pipes.ops.fused_use import FusedUse, fused_use
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import OpInputs
from buda_emu.spec.boards import Cluster

_TRUE: Final = ("true", "1")


@dataclass(frozen=True, slots=True)
class Epoch:
    """`ops` in the order in which they are worked off: graph by graph as they are executed, by name in a graph.

    `readers`: for each queue and op what reads it, an op once for each operand, queues that it feeds among them.
    `prologue`, `epilogue`: queues that are kept in L1 for the epoch; loaded at its start, stored at its end.
    `skipped`: graphs of earlier epochs none of whose graphs programs execute. `unsteady`: graphs that are executed with
    other queues kept than the first time, and such a queue.
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
        """The queue or op of that name; queues come first (NETLIST 1.1). KeyError for neither."""
        return self.netlist.queues.get(name) or self.ops[name]

    def producer(self, queue: Queue) -> Op | None:
        """The op that feeds a queue, of any graph; None for the host."""
        return None if queue.host_fed else self.all_ops.get(queue.input)

    def queues_of(self, op: Op) -> Iterator[Queue]:
        """Queues that an op reads and writes, in this order."""
        for name in op.inputs:
            queue = self.netlist.queues.get(name)
            if queue is not None:
                yield queue
        yield from self.fed.get(op.name, ())

    def fused(self, op: Op) -> FusedUse | None:
        """The definition that a fused op uses."""
        if not op.has("sub-ops"):
            return None
        name = op.attributes.fused_op_id
        if name not in self._fused:
            self._fused[name] = fused_use(self.netlist.fused_ops[name])
        return self._fused[name]

    def inputs(self, op: Op) -> OpInputs:
        """What its operands are made of."""
        found = self._inputs.get(op.name)
        if found is None:
            found = OpInputs(
                op=op,
                sources=tuple(map(self.source, op.inputs)),
                fused=self.fused(op),
                arch=self.netlist.arch,
                kind=kind_of(op),
            )
            self._inputs[op.name] = found
        return found

    def flat_reader(self, queue: str) -> Op | None:
        """The embedding or tilizer that reads a queue as flat rows, if its first reader is one."""
        if queue not in self._flat:
            readers = self.readers.get(queue)
            first = self.ops.get(readers[0]) if readers else None
            flat = first is not None and kind_of(first).is_flat(0) and first.inputs[0] == queue
            self._flat[queue] = first if flat else None
        return self._flat[queue]

    def index_reader(self, queue: str) -> Op | None:
        """The embedding that takes its indices from a queue, if its first reader is one."""
        readers = self.readers.get(queue)
        first = self.ops.get(readers[0]) if readers else None
        found = first is not None and first.has("row-wise index") and first.inputs.index(queue) == 1
        return first if found else None


def epochs(netlist: Netlist, cluster: Cluster | None = None) -> list[Epoch]:
    """The epochs whose graphs programs execute, in order of their numbers; settings are those of a graph's first
    execute. `cluster`: what is known of the links between chips of architectures with Ethernet."""
    links = Links(cluster) if cluster is not None and netlist.arch.eth_cores else None
    first: dict[str, Execute] = {}
    unsteady: dict[str, str] = {}
    for name in netlist.program_order:
        for step in netlist.programs[name].instructions:
            if not isinstance(step, Execute):
                continue
            known = first.setdefault(step.graph, step)
            if known is not step and step.graph not in unsteady and (queue := _kept_otherwise(known, step)):
                unsteady[step.graph] = queue
    numbers = {graph: temporal.id for temporal in netlist.temporal_graphs for graph in temporal.graphs}
    members: dict[int, list[str]] = {}
    for graph in first:
        members.setdefault(numbers[graph], []).append(graph)
    skipped = [
        (temporal.id, graph)
        for temporal in netlist.temporal_graphs
        if temporal.id not in members
        for graph in temporal.graphs
    ]
    found: list[Epoch] = []
    order = tuple(in_table_order(netlist.queues))
    ops = netlist.ops
    for number in sorted(members):
        epoch = epoch_of(netlist, number, members[number], first, order=order, all_ops=ops)
        before = tuple(graph for earlier, graph in skipped if earlier < number)
        known = {graph: unsteady[graph] for graph in members[number] if graph in unsteady}
        found.append(replace(epoch, links=links, skipped=before, unsteady=known))
    return found


def _kept_otherwise(one: Execute, other: Execute) -> str:
    """A queue that one execute of a graph has in its prologue or epilogue, and the other has not; "" for none."""
    if one.queue_settings == other.queue_settings:
        return ""
    kept = [
        {(setting.queue, setting.prologue.lower() in _TRUE, setting.epilogue.lower() in _TRUE) for setting in settings}
        for settings in (one.queue_settings, other.queue_settings)
    ]
    return min((queue for queue, *_ in kept[0] ^ kept[1]), default="")


def epoch_of(
    netlist: Netlist,
    number: int,
    graphs: Sequence[str],
    executes: Mapping[str, Execute],
    *,
    order: tuple[str, ...] | None = None,
    all_ops: Mapping[str, Op] | None = None,
) -> Epoch:
    """The epoch of some graphs. `order`, `all_ops`: those of the netlist, where they are known already."""
    order = tuple(in_table_order(netlist.queues)) if order is None else order
    fed: dict[str, list[Queue]] = {}
    for name in order:
        queue = netlist.queues[name]
        if not queue.host_fed:
            fed.setdefault(queue.input, []).append(queue)
    ops: dict[str, Op] = {}
    readers: dict[str, list[str]] = {}
    for graph in graphs:
        for op in sorted(netlist.graphs[graph].ops, key=lambda op: op.name):
            ops[op.name] = op
            for name in op.inputs:
                readers.setdefault(name, []).append(op.name)
            for queue in fed.get(op.name, ()):
                readers.setdefault(op.name, []).append(queue.name)
    kept: tuple[set[str], set[str]] = (set(), set())
    for graph in graphs:
        for setting in executes[graph].queue_settings:
            for flag, names in zip((setting.prologue, setting.epilogue), kept, strict=True):
                (names.add if flag.lower() in _TRUE else names.discard)(setting.queue)
    return Epoch(
        netlist=netlist,
        number=number,
        graphs=tuple(graphs),
        input_count=netlist.graphs[graphs[0]].input_count,
        ops=ops,
        all_ops=netlist.ops if all_ops is None else all_ops,
        readers={name: tuple(group) for name, group in readers.items()},
        fed={name: tuple(group) for name, group in fed.items() if name in ops},
        prologue=frozenset(kept[0]),
        epilogue=frozenset(kept[1]),
        queue_order=order,
    )
