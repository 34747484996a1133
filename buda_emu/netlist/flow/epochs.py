"""What one epoch reads and writes (NETLIST 4.2, 4.3): the queues around a temporal graph, and who else fills them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from buda_emu.netlist.model import Execute, Instruction, Netlist, Queue, TemporalGraph


class EpochQueues(NamedTuple):
    """Names of queues and rams that a temporal graph reads and writes. `local`: of type queue, both."""

    temporal: TemporalGraph
    input_count: int
    reads: frozenset[str]
    writes: frozenset[str]
    local: frozenset[str]


class Surroundings:
    """Of all programs of a netlist: worked out once."""

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.epoch_of = {graph: found for found in _epochs(netlist) for graph in found.temporal.graphs}
        self.read_by_ops = frozenset(name for op in netlist.ops.values() for name in op.inputs)
        gradients = {op.name for op in netlist.ops.values() if op.gradient_op}
        self.accumulators = frozenset(queue.name for queue in netlist.queues.values() if queue.input in gradients)
        self._writers: dict[str, set[str]] = {}
        for program in netlist.programs.values():
            for epoch in self.executed(program.instructions):
                for name in epoch.writes:
                    self._writers.setdefault(name, set()).add(program.name)

    def executed(self, instructions: Iterable[Instruction]) -> Iterable["EpochQueues"]:
        """The epochs of which these instructions execute a graph, each once."""
        steps = (step for step in instructions if isinstance(step, Execute))
        epochs = (self.epoch_of[step.graph] for step in steps if step.graph in self.epoch_of)
        return {epoch.temporal.id: epoch for epoch in epochs}.values()

    def begins_empty(self, queue: Queue, program: str) -> bool:
        """Nothing but this program fills the queue: it is empty when the program begins its first run."""
        return not queue.host_fed and not queue.is_ram and self._writers.get(queue.name, set()) <= {program}


def _epochs(netlist: Netlist) -> list[EpochQueues]:
    fed: dict[str, list[Queue]] = {}
    for queue in netlist.queues.values():
        if not queue.host_fed:
            fed.setdefault(queue.input, []).append(queue)
    return [_epoch(netlist, temporal, fed) for temporal in netlist.temporal_graphs]


def _epoch(netlist: Netlist, temporal: TemporalGraph, fed: Mapping[str, list[Queue]]) -> EpochQueues:
    graphs = [netlist.graphs[name] for name in temporal.graphs if name in netlist.graphs]
    ops = [op for graph in graphs for op in graph.ops]
    reads = frozenset(name for op in ops for name in op.inputs if name in netlist.queues)
    written = [queue for op in ops for queue in fed.get(op.name, ())]
    local = frozenset(queue.name for queue in written if not queue.is_ram) & reads
    count = min((graph.input_count for graph in graphs), default=1)
    return EpochQueues(temporal, count, reads, frozenset(queue.name for queue in written), local)
