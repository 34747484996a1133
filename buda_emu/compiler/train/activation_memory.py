"""Stored activations of a training: which of them are recomputed so that the rest fits the chip."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, Final

from buda_emu.compiler.compilation import Compilation
from buda_emu.compiler.graph.graph import FORWARD, SOURCES, Graph, Node, import_networkx
from buda_emu.compiler.lower.layout import tiles_along
from buda_emu.compiler.place.memory import MemoryFullError, buffer_bytes
from buda_emu.compiler.place.placement import Placement
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError

AGAIN: Final = ".again"
"""Suffix of the name of a value that the backward pass recomputes."""
UNIT: Final = 1000
"""Scale of work and prices in a cut, whose capacities are integers."""
DEAREST: Final = 1e9
"""Price of a stored tile at which everything that can be recomputed is."""
CLOSE: Final = 1.1
"""Ratio of two prices that are taken for equal."""
_VIEWS: Final = frozenset({"reshape", "transpose", "expand", "identity"})
"""Ops that mostly say how a value is read."""


Values = tuple[str, ...]


def _free_values(graph: Graph) -> set[str]:
    """Return the values that take no memory of activations: inputs, constants, and states that the forward program does
    not overwrite."""
    overwritten = {output.state for output in graph.outputs if output.program == FORWARD and not output.accumulate}
    return {
        node.name
        for node in graph
        if node.op in ("input", "constant") or (node.op == "state" and node.attrs["label"] not in overwritten)
    }


class Crossing:
    """The values that cross from the forward to the backward pass in a graph of core ops.

    A value that the backward pass needs is either stored, which takes the tiles that it fills, or recomputed from other
    values that are then needed, which takes the work of its op. Inputs, constants and parameters are available without
    cost. Given a price for a stored tile, the cheapest choice is a minimum cut: each value is two nodes, `made` for its
    computation and `had` for its presence. The edge from made to had is cut if the value is stored, the edge from the
    source to made if it is recomputed. The higher the price, the fewer tiles are stored.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._of = graph.programs()
        self._free = _free_values(graph)
        forward = [node for node in graph if self._of.get(node.name) == FORWARD]
        read = set(chain.from_iterable(node.inputs for node in graph if self._of.get(node.name, FORWARD) != FORWARD))
        read |= {output.value for output in graph.outputs if output.program != FORWARD}
        self._wanted = [node.name for node in forward if node.name in read and node.name not in self._free]
        self._above = self._ancestors(forward)

    def _ancestors(self, forward: Sequence[Node]) -> list[Node]:
        """Return the forward nodes that the needed values depend on, in order."""
        needed = set(self._wanted)
        for node in reversed(forward):
            if node.name in needed:
                needed.update(node.inputs)
        return [node for node in forward if node.name in needed]

    def most(self) -> int:
        """Return the number of stored tiles if nothing is recomputed."""
        return self._count_tiles(self._wanted)

    def within(self, tiles: int) -> Values:
        """Return the values to recompute so that at most `tiles` tiles of a microbatch are stored, with nearly the
        least work: prices of a stored tile are tried until two are CLOSE. Where no choice stores so few, return the
        choice that stores fewest."""
        if self.most() <= tiles:
            return ()
        low = 0.0
        high = DEAREST
        best, _ = self._find_cheapest(high)
        while low == 0 or high / low > CLOSE:
            if low:
                price = (low * high) ** 0.5
            else:
                price = high / 1000
            again, stored = self._find_cheapest(price)
            if stored <= tiles:
                high = price
                best = again
            else:
                low = price
        return best

    def _find_cheapest(self, price: float) -> tuple[Values, int]:
        """Return the values to recompute and the number of stored tiles of the choice with the smallest sum of the work
        of recomputing and `price` for each stored tile. Raises HostError if networkx is not installed."""
        nx = import_networkx()
        edges = nx.DiGraph()
        for node in self._above:
            computation = ("made", node.name)
            presence = ("had", node.name)
            free = node.name in self._free
            edges.add_edge(computation, presence, capacity=0 if free else round(price * UNIT * _tiles_of_value(node)))
            if node.op in SOURCES:
                edges.add_edge("source", computation)  # nobody can make it again
            else:
                edges.add_edge("source", computation, capacity=round(UNIT * _estimate_work(self._graph, node)))
            for name in node.inputs:
                edges.add_edge(("had", name), computation)
        for name in self._wanted:
            edges.add_edge(("had", name), "sink")
        source_side: set[Any] = nx.minimum_cut(edges, "source", "sink")[1][0]
        again = {node.name for node in self._above if ("made", node.name) not in source_side}
        needed = (
            {*self._wanted, *chain.from_iterable(self._graph[value].inputs for value in again)} - again - self._free
        )
        return tuple(node.name for node in self._above if node.name in again), self._count_tiles(needed)

    def _count_tiles(self, names: Iterable[str]) -> int:
        """Return the number of tiles that the values fill."""
        return sum(_tiles_of_value(self._graph[name]) for name in names)

    def apply(self, values: Values) -> Graph:
        """Return the graph whose backward pass recomputes the values, each where it is first read."""
        graph = self._graph
        again = set(values)
        graph_again = Graph(graph.name, inputs=list(graph.inputs), origin=graph.origin)
        for node in graph:
            if self._of.get(node.name, FORWARD) == FORWARD:
                graph_again.nodes[node.name] = node
                continue
            for name in node.inputs:
                _add_again(graph, graph_again, name, again)
            graph_again.nodes[node.name] = _read_again(node, again)
        for output in graph.outputs:
            if output.program == FORWARD or output.value not in again:
                graph_again.outputs.append(output)
                continue
            _add_again(graph, graph_again, output.value, again)
            graph_again.outputs.append(replace(output, value=output.value + AGAIN))
        return graph_again


def _add_again(graph: Graph, graph_again: Graph, name: str, again: set[str]) -> None:
    """Add to `graph_again` the nodes that recompute the value `name`, those of its operands first, before a node of the
    backward pass that reads it; do nothing for a value that is stored (not in `again`) or has been added."""
    waiting = [name]
    while waiting:
        current = waiting[-1]
        if current not in again or current + AGAIN in graph_again.nodes:
            waiting.pop()
            continue
        missing = [
            operand
            for operand in graph[current].inputs
            if operand in again and operand + AGAIN not in graph_again.nodes
        ]
        if missing:
            waiting += missing
            continue
        graph_again.nodes[current + AGAIN] = replace(_read_again(graph[current], again), name=current + AGAIN)
        waiting.pop()


def _read_again(node: Node, again: set[str]) -> Node:
    """Return the node with recomputed values in place of the stored ones among its operands; `again`: the values that
    are recomputed."""
    return replace(node, inputs=tuple(name + AGAIN if name in again else name for name in node.inputs))


def _tiles_of_value(node: Node) -> int:
    """Return the number of tiles that a value fills."""
    shape = (1, 1, *node.shape)
    return prod(shape[:-2]) * tiles_along(shape[-2]) * tiles_along(shape[-1])


def _estimate_work(graph: Graph, node: Node) -> float:
    """Estimate the work of an op, in tiles that go through the math unit."""
    if node.op in _VIEWS:
        return 0.01 * _tiles_of_value(node)
    inner = 1
    if node.op == "matmul":
        inner = tiles_along(graph[node.inputs[0]].shape[-1])
    elif node.op == "linear":
        inner = tiles_along(node.attrs["matrix"].shape[1])
    return float(_tiles_of_value(node) * inner)


MIB = 1 << 20  # bytes
LEAST = 1 / 64
"""Smallest share of the full storage that is tried before everything that can be recomputed is."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The data in DRAM between forward and backward pass: `bytes` of all microbatches in `queues`; `again`: values of
    the forward pass that the backward pass recomputes."""

    bytes: int
    queues: tuple[str, ...]
    again: tuple[str, ...]

    def __str__(self) -> str:
        """Return a line about the storage and a line about recomputed values."""
        text = f"stored for the backward pass: {self.bytes / MIB:.2f} MiB in {plural(len(self.queues), 'queue')}"
        return f"{text}\ncomputed again: {', '.join(self.again) or 'nothing'}"


def fit_activations(
    compilation: Compilation, graph: Graph, entries: int, mib: float | None
) -> tuple[tuple[Graph, Placement, str], Stored]:
    """Place a training that recomputes as little as memory allows. The stored bytes are measured in the queues of the
    placement, and less is stored until they fit. `mib`: MiB of DRAM that they may take, None: what the chip has. Raises
    UnsupportedError, HostError if even the least does not fit."""
    if mib is not None and mib < 0:
        raise HostError(f"compile: activations_mib={mib}")
    graph = compilation.prepare(graph)
    crossing = Crossing(graph)
    tried: tuple[str, ...] = ("",)  # no set of names that is tried first
    share = float(mib != 0)  # where nothing may be stored, all is computed again that can be
    while True:
        again = crossing.within(int(crossing.most() * share))
        last = share == 0
        share = share / 2 if share > LEAST else 0.0
        if again == tried and not last:
            continue
        tried = again
        graph_again = crossing.apply(again)
        for effort in dict.fromkeys(("low", compilation.objective.effort)):  # what does not fit is not searched
            try:
                placement = replace(
                    compilation, objective=replace(compilation.objective, effort=effort)
                ).place_core_graph(graph_again, entries=entries)
            except MemoryFullError:
                if last:
                    raise
                break
            queues = between_programs(placement[1])
            size = sum(queues.values())
            if mib is not None and size > mib * MIB:
                if last:
                    raise HostError(f"compile: activations_mib={mib}: at least {size / MIB:.2f} MiB have to be stored")
                break
            if effort == compilation.objective.effort:
                return placement, Stored(size, tuple(queues), again)


def between_programs(placement: Placement) -> dict[str, int]:
    """Return the bytes of each queue that one program writes and another reads."""
    readers: dict[str, set[str]] = {}
    for placed in placement.ops.values():
        for use in placed.op.uses:
            readers.setdefault(use.source, set()).add(placed.op.program)
    queues: dict[str, int] = {}
    for tensor, name in placement.between.items():
        if readers.get(tensor, set()) - {placement.ops[tensor].op.program}:
            queue = placement.queues[name]
            queues[name] = buffer_bytes(placement.target, queue) * prod(queue.blocks.grid)
    return queues
