"""What one epoch reads and writes (NETLIST 4.2, 4.3): the queues around a temporal graph, and who else fills them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from buda_emu.netlist.model import Allocate, Execute, Instruction, Netlist, Queue, QueueSettings, TemporalGraph, VarInst
from buda_emu.spec.varinst import is_variable, stored_name


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
        self.kept = self._kept()
        self._writers: dict[str, set[str]] = {}
        for program in netlist.programs.values():
            for epoch in self.executed(program.instructions):
                for name in epoch.writes:
                    self._writers.setdefault(name, set()).add(program.name)

    def _kept(self) -> frozenset[str]:
        """Queues from op to op of which no program pops an entry: rd_ptr_global never moves, nor does it by itself, nor
        does an allocation begin again (NETLIST 3.6)."""
        named: set[str] = set()
        popped: set[str] = set()
        for program in self.netlist.programs.values():
            moved = {stored_name(step.out) for step in program.instructions if isinstance(step, VarInst)}
            for settings in (one for step in program.instructions for one in _settings(step)):
                text = settings.rd_ptr_global
                moves = settings.global_rdptr_autoinc != "0" or (is_variable(text) and stored_name(text) in moved)
                (popped if moves else named).add(settings.queue)
            for step in program.instructions:
                popped.update(step.queues if isinstance(step, Allocate) else ())
        queues = (self.netlist.queues[name] for name in named - popped)
        return frozenset(
            queue.name for queue in queues if not queue.is_ram and not queue.host_fed and queue.name in self.read_by_ops
        )

    def executed(self, instructions: Iterable[Instruction]) -> Iterable["EpochQueues"]:
        """The epochs of which these instructions execute a graph, each once."""
        steps = (step for step in instructions if isinstance(step, Execute))
        epochs = (self.epoch_of[step.graph] for step in steps if step.graph in self.epoch_of)
        return {epoch.temporal.id: epoch for epoch in epochs}.values()

    def begins_empty(self, queue: Queue, program: str) -> bool:
        """Nothing but this program fills the queue: it is empty when the program begins its first run."""
        return not queue.host_fed and not queue.is_ram and self._writers.get(queue.name, set()) <= {program}


def _settings(step: Instruction) -> Iterable[QueueSettings]:
    return step.queue_settings if isinstance(step, Execute) else ()


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
    return EpochQueues(
        temporal=temporal,
        input_count=count,
        reads=reads,
        writes=frozenset(queue.name for queue in written),
        local=local,
    )
