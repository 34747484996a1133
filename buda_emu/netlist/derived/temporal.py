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
        one, other = self._devices[source], self._devices[target]
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
