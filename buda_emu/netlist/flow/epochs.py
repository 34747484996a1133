"""Queues that each epoch reads and writes (NETLIST 4.2, 4.3), and the programs that fill them."""

from collections.abc import Container, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from buda_emu.netlist.model import (
    Allocate,
    Execute,
    Instruction,
    Netlist,
    Program,
    Queue,
    QueueSettings,
    TemporalGraph,
    VarInst,
)
from buda_emu.spec.varinst import is_variable, stored_name


class EpochQueues(NamedTuple):
    """Names of queues and rams that a temporal graph reads and writes. `local` holds the queues, not rams, among
    both."""

    temporal: TemporalGraph
    input_count: int
    reads: frozenset[str]
    writes: frozenset[str]
    local: frozenset[str]


class Surroundings:
    """The queues of a netlist and their use by all its programs, computed once for the walks of the programs."""

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.epoch_of: dict[str, EpochQueues] = {}
        for epoch in _queues_of_epochs(netlist):
            self.epoch_of.update(dict.fromkeys(epoch.temporal.graphs, epoch))
        self.read_by_ops = frozenset(chain.from_iterable(op.inputs for op in netlist.ops.values()))
        gradients = {op.name for op in netlist.ops.values() if op.gradient_op}
        self.accumulators = frozenset(queue.name for queue in netlist.queues.values() if queue.input in gradients)
        self.never_popped = self._queues_without_pops()
        self._writers: dict[str, set[str]] = {}
        for program in netlist.programs.values():
            for epoch in self.epochs_in(program.instructions):
                for name in epoch.writes:
                    self._writers.setdefault(name, set()).add(program.name)

    def _queues_without_pops(self) -> frozenset[str]:
        """Return the queues that ops read and of which no program pops an entry: no varinst moves rd_ptr_global, no
        caller sets it, it has no autoincrement, and no allocation resets it (NETLIST 3.6). Of those that the host
        fills, only the ones that programs read on from entry to entry: tests read others where they are, once."""
        uses = [_pointer_use(program) for program in self.netlist.programs.values()]
        named = set(chain.from_iterable(use.named for use in uses))
        popped = set(chain.from_iterable(use.popped for use in uses))
        streamed = set(chain.from_iterable(use.streamed for use in uses))
        queues = self.netlist.queues
        unpopped = (name for name in (named - popped) & self.read_by_ops if not queues[name].is_ram)
        return frozenset(name for name in unpopped if name in streamed or not queues[name].host_fed)

    def epochs_in(self, instructions: Iterable[Instruction]) -> Iterable["EpochQueues"]:
        """Return the epochs of which these instructions execute a graph, each once."""
        steps = (step for step in instructions if isinstance(step, Execute))
        epochs = (self.epoch_of[step.graph] for step in steps if step.graph in self.epoch_of)
        return {epoch.temporal.id: epoch for epoch in epochs}.values()

    def begins_empty(self, queue: Queue, program: str) -> bool:
        """Return whether a queue is empty when the program with this name begins its first run: neither the host
        nor another program fills it. False for a ram.
        """
        return not queue.host_fed and not queue.is_ram and self._writers.get(queue.name, set()) <= {program}


class _PointerUse(NamedTuple):
    """Names of the queues that the settings of a program's executes name, of those whose entries it pops, and of those
    that it reads on from entry to entry."""

    named: set[str]
    popped: set[str]
    streamed: set[str]


def _pointer_use(program: Program) -> _PointerUse:
    """Return how a program uses the pointers of queues."""
    written = {stored_name(step.out) for step in program.instructions if isinstance(step, VarInst)}
    changed = written.union(map(stored_name, program.parameters))
    use = _PointerUse(set(), set(), set())
    for step in program.instructions:
        if isinstance(step, Allocate):
            use.popped.update(step.queues)
        elif isinstance(step, Execute):
            use.named.update(settings.queue for settings in step.queue_settings)
            use.popped.update(settings.queue for settings in step.queue_settings if _pops(settings, changed))
            use.streamed.update(settings.queue for settings in step.queue_settings if _streams(settings, written))
    return use


def _streams(settings: QueueSettings, written: Container[str]) -> bool:
    """Return whether a queue is read on from entry to entry: without prologue and epilogue, at one of the variables
    `written`."""
    text = settings.rd_ptr_local
    still = not (_is_false(settings.prologue) and _is_false(settings.epilogue))
    return not still and is_variable(text) and stored_name(text) in written


def _is_false(text: str) -> bool:
    """Return whether the text of a flag of settings is certain to mean false."""
    return text.lower() in ("false", "0")


def _pops(settings: QueueSettings, changed: Container[str]) -> bool:
    """Return whether rd_ptr_global of a queue moves: by its autoincrement, or with one of the variables `changed`."""
    text = settings.rd_ptr_global
    return settings.global_rdptr_autoinc != "0" or (is_variable(text) and stored_name(text) in changed)


def _queues_of_epochs(netlist: Netlist) -> list[EpochQueues]:
    """Return the queues of each temporal graph, in the order of the temporal graphs."""
    fed: dict[str, list[Queue]] = {}
    for queue in netlist.queues.values():
        if not queue.host_fed:
            fed.setdefault(queue.input, []).append(queue)
    return [_epoch_queues(netlist, temporal, fed) for temporal in netlist.temporal_graphs]


def _epoch_queues(netlist: Netlist, temporal: TemporalGraph, fed: Mapping[str, list[Queue]]) -> EpochQueues:
    """Return the queues that a temporal graph reads and writes. `fed` maps the name of an op to the queues that it
    fills; the least input count of its graphs is that of the epoch.
    """
    graphs = [netlist.graphs[name] for name in temporal.graphs if name in netlist.graphs]
    inputs: set[str] = set()
    written: list[Queue] = []
    for graph in graphs:
        for op in graph.ops:
            inputs.update(op.inputs)
            written.extend(fed.get(op.name, ()))
    reads = frozenset(inputs & netlist.queues.keys())
    local = frozenset(queue.name for queue in written if not queue.is_ram) & reads
    count = min((graph.input_count for graph in graphs), default=1)
    return EpochQueues(
        temporal=temporal,
        input_count=count,
        reads=reads,
        writes=frozenset(queue.name for queue in written),
        local=local,
    )
