"""Temporal graphs: which graphs run as one, on different chips (NETLIST 1.8)."""

from collections.abc import Iterable, Mapping

from buda_emu.netlist.model import Execute, Graph, Program, Queue, TemporalGraph


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
    """Graphs by temporal id. An id that loses all its graphs disappears from the result."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = graphs
        self.id_of: dict[str, int] = {}
        self.members: list[set[str]] = []

    def start(self, graph: str) -> int:
        """The id of a graph, a new one if it has none."""
        if graph not in self.id_of:
            self.id_of[graph] = len(self.members)
            self.members.append({graph})
        return self.id_of[graph]

    def move(self, source: int, target: int) -> None:
        """Move all graphs of one id to another."""
        for graph in self.members[source]:
            self.id_of[graph] = target
        self.members[target] |= self.members[source]
        self.members[source] = set()

    def devices(self, number: int) -> set[int]:
        """The chips of an id's graphs."""
        return {self.graphs[graph].target_device for graph in self.members[number]}

    def result(self) -> tuple[TemporalGraph, ...]:
        """The ids that have graphs, renumbered in order, their graphs in document order."""
        kept = [number for number, members in enumerate(self.members) if members]
        names: dict[int, list[str]] = {number: [] for number in kept}
        for graph in self.graphs:
            names[self.id_of[graph]].append(graph)
        return tuple(TemporalGraph(index, tuple(names[number])) for index, number in enumerate(kept))


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
            number = groups.id_of.get(instruction.graph) if isinstance(instruction, Execute) else None
            if number is None:
                continue
            if previous not in (None, number) and groups.devices(previous).isdisjoint(groups.devices(number)):
                groups.move(number, previous)
                number = previous
            previous = number
