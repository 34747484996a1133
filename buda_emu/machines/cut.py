"""Assigns the parts of a netlist (chips, or temporal graphs if there is one chip) to workers."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from buda_emu.netlist.model import Netlist, Op
from buda_emu.records import dataclass

_WITHOUT_SUM: Final = 0.25
"""What a tile of an op without an inner dimension takes, where a product of two tiles takes 1: a measure, no more."""


@dataclass(frozen=True)
class Cut:
    """`owners`: the part of each op. Made by `cut`."""

    netlist: Netlist
    count: int
    owners: Mapping[str, int]

    @cached_property
    def keepers(self) -> Mapping[str, frozenset[int]]:
        """Of each queue and ram the parts that read or write it, or memory that it shares (NETLIST 1.10)."""
        found: dict[object, set[int]] = {}
        for op in self.netlist.ops.values():
            for name in op.inputs:
                if name in self.netlist.queues:
                    found.setdefault(self._memory(name), set()).add(self.owners[op.name])
        for queue in self.netlist.queues.values():
            if queue.input in self.owners:
                found.setdefault(self._memory(queue.name), set()).add(self.owners[queue.input])
        return {name: frozenset(found.get(self._memory(name), ())) for name in self.netlist.queues}

    def _memory(self, name: str) -> object:
        queue = self.netlist.queues[name]
        return (queue.target_device, queue.loc, queue.buffers) if queue.is_ram and queue.buffers else name

    def title(self, part: int) -> str:
        """Its chips and graphs."""
        graphs = [item for item in self.netlist.graphs.values() if any(self.owners[op.name] == part for op in item.ops)]
        chips = sorted({graph.target_device for graph in graphs})
        if len({graph.target_device for graph in self.netlist.graphs.values()}) > 1:
            return f"{'chip' if len(chips) == 1 else 'chips'} {', '.join(map(str, chips))}"
        return f"{'graph' if len(graphs) == 1 else 'graphs'} {', '.join(graph.name for graph in graphs)}"


def cut(netlist: Netlist, most: int) -> Cut:
    """Into at most so many parts of about equal work: neighbours stay together, so that data flow one way."""
    chips = sorted({graph.target_device for graph in netlist.graphs.values()})
    if len(chips) > 1:
        units = [[graph for graph in netlist.graphs.values() if graph.target_device == chip] for chip in chips]
    else:
        units = [[netlist.graphs[name] for name in temporal.graphs] for temporal in netlist.temporal_graphs]
    ops = [[op for graph in unit for op in graph.ops] for unit in units]
    places = shared_out([sum(map(_work, unit)) for unit in ops], most)
    owners = {op.name: place for unit, place in zip(ops, places, strict=True) for op in unit}
    return Cut(netlist, max(places, default=0) + 1, owners)


def shared_out(weights: Sequence[float], most: int) -> list[int]:
    """The part of each unit: runs of neighbours, at most so many, of which the heaviest weighs as little as can be."""
    count = len(weights)
    best: list[list[tuple[float, int]]] = [[(0.0, 0)] + [(float("inf"), 0)] * count]  # [parts][units]: weight, begin
    for _ in range(min(most, count)):
        row = [(float("inf"), 0)] * (count + 1)
        for stop in range(1, count + 1):
            row[stop] = min((max(best[-1][start][0], sum(weights[start:stop])), start) for start in range(stop))
        best.append(row)
    parts = min(range(1, len(best)), key=lambda number: (best[number][count][0], number), default=0)
    found = [0] * count
    stop = count
    for part in range(parts, 0, -1):
        start = best[part][stop][1]
        found[start:stop] = [part - 1] * (stop - start)
        stop = start
    return found


def _work(op: Op) -> float:
    """About what an op takes, in products of two tiles."""
    tiles = op.blocking.t * op.blocking.rows * op.blocking.cols
    inner = op.attributes.m_k * op.attributes.u_kt
    return tiles * (inner if inner > 0 else _WITHOUT_SUM * len(op.inputs))
