"""The ops of one temporal graph in an order in which they can run, and the queues around them (NETLIST 4.2)."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from buda_emu.errors import InternalError
from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.records import dataclass


@dataclass(frozen=True, slots=True)
class Topology:
    """What runs for every input.

    `reads`: queues and rams read before any op; `local`: type queues that an op of these graphs feeds and another
    reads; `sinks`: queues that each op feeds, in document order.
    """

    graphs: tuple[str, ...]
    input_count: int
    ops: tuple[Op, ...]
    reads: tuple[str, ...]
    local: frozenset[str]
    sinks: Mapping[str, tuple[str, ...]]
    writes: tuple[str, ...]  # all sinks, in the order of the ops


def topology(netlist: Netlist, temporal: TemporalGraph) -> Topology:
    """Order the ops of a temporal graph: producers before consumers, document order where free."""
    graphs = [netlist.graphs[name] for name in temporal.graphs]
    ops = {op.name: op for graph in graphs for op in graph.ops}
    sinks: dict[str, tuple[str, ...]] = {}
    local: set[str] = set()
    readers: dict[str, None] = {}
    for op in ops.values():
        for name in op.inputs:
            if name not in ops:
                readers[name] = None
    for queue in netlist.queues.values():
        if not queue.host_fed and queue.input in ops:
            sinks[queue.input] = (*sinks.get(queue.input, ()), queue.name)
            if not queue.is_ram and queue.name in readers:
                local.add(queue.name)
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for op in ops.values():
        before = [
            netlist.queues[name].input if name in local else name for name in op.inputs if name in ops or name in local
        ]
        sorter.add(op.name, *before)
    try:
        order = tuple(ops[name] for name in sorter.static_order())
    except CycleError as error:
        raise InternalError(f"cycle in a checked netlist: {error.args[1]}") from None
    return Topology(
        graphs=temporal.graphs,
        input_count=graphs[0].input_count,
        ops=order,
        reads=tuple(name for name in readers if name not in local),
        local=frozenset(local),
        sinks=sinks,
        writes=tuple(name for op in order for name in sinks.get(op.name, ())),
    )
