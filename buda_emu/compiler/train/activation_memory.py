"""Stored activations of a training: which of them are computed again so that the rest fits the chip."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from math import prod
from typing import Any, Final

from buda_emu.compiler.compilation import Compilation
from buda_emu.compiler.graph.graph import FORWARD, SOURCES, Graph, Node
from buda_emu.compiler.lower.layout import tiles_along
from buda_emu.compiler.place.memory import MemoryFullError, buffer_bytes
from buda_emu.compiler.place.placement import Placement
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError

AGAIN: Final = ".again"
"""After the name of a value that the backward pass computes itself."""
UNIT: Final = 1000
"""Of work and prices in a cut: they have to be integers there."""
DEAREST: Final = 1e9
"""Price of a stored tile at which all that can be is computed again."""
CLOSE: Final = 1.1
"""Two prices that are taken for equal."""
_VIEWS: Final = frozenset({"reshape", "transpose", "expand", "identity"})
"""Ops that mostly say how a value is read."""


Values = tuple[str, ...]


class Crossing:
    """What lies between the passes of a graph of core ops.

    A value that the backward pass needs is stored, which takes the tiles that it fills, or computed again from other
    values that it then needs, which takes the work of its op. Inputs, constants and parameters are there anyway. With a
    price for a stored tile the cheapest choice is a minimum cut: each value is two nodes, what it is `made` from and
    where it is `had`; edges from made to had are cut where it is stored, from the source to made where it is computed
    again. The dearer a tile, the fewer are stored.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._of = graph.programs()
        overwritten = {item.state for item in graph.outputs if item.program == FORWARD and not item.accumulate}
        self._free = {
            node.name
            for node in graph
            if node.op in ("input", "constant") or (node.op == "state" and node.attrs["label"] not in overwritten)
        }
        forward = [node for node in graph if self._of.get(node.name) == FORWARD]
        read = {name for node in graph if self._of.get(node.name, FORWARD) != FORWARD for name in node.inputs}
        read |= {output.value for output in graph.outputs if output.program != FORWARD}
        self._wanted = [node.name for node in forward if node.name in read and node.name not in self._free]
        self._above = self._ancestors(forward)

    def _ancestors(self, forward: Sequence[Node]) -> list[Node]:
        """What wanted values are made of, in order."""
        needed = set(self._wanted)
        for node in reversed(forward):
            if node.name in needed:
                needed.update(node.inputs)
        return [node for node in forward if node.name in needed]

    def most(self) -> int:
        """Tiles where nothing is computed again."""
        return self._filled(self._wanted)

    def within(self, tiles: int) -> Values:
        """What is computed again with the least work, if no more than so many tiles of a microbatch are stored; where
        even that is too much, all that can be."""
        if self.most() <= tiles:
            return ()
        low = 0.0
        high = DEAREST
        best, _ = self._cut(high)
        while low == 0 or high / low > CLOSE:
            price = (low * high) ** 0.5 if low else high / 1000
            again, stored = self._cut(price)
            if stored <= tiles:
                high = price
                best = again
            else:
                low = price
        return best

    def _cut(self, price: float) -> tuple[Values, int]:
        """What is computed again, and the tiles that are stored, where each of them costs so much."""
        nx: Any = import_module("networkx")  # it has no types
        edges = nx.DiGraph()
        for node in self._above:
            made = ("made", node.name)
            had = ("had", node.name)
            free = node.name in self._free
            edges.add_edge(made, had, capacity=0 if free else round(price * UNIT * _tiles(node)))
            if node.op in SOURCES:
                edges.add_edge("source", made)  # nobody can make it again
            else:
                edges.add_edge("source", made, capacity=round(UNIT * _work(self._graph, node)))
            for name in node.inputs:
                edges.add_edge(("had", name), made)
        for name in self._wanted:
            edges.add_edge(("had", name), "sink")
        kept: set[Any] = nx.minimum_cut(edges, "source", "sink")[1][0]
        again = {node.name for node in self._above if ("made", node.name) not in kept}
        needed = {*self._wanted, *(name for item in again for name in self._graph[item].inputs)} - again - self._free
        return tuple(node.name for node in self._above if node.name in again), self._filled(needed)

    def _filled(self, names: Iterable[str]) -> int:
        """Tiles of values."""
        return sum(_tiles(self._graph[name]) for name in names)

    def applied(self, values: Values) -> Graph:
        """The graph in which the backward pass computes values itself, each where it is first read."""
        graph = self._graph
        again = set(values)
        made = Graph(graph.name, inputs=list(graph.inputs), origin=graph.origin)
        for node in graph:
            if self._of.get(node.name, FORWARD) == FORWARD:
                made.nodes[node.name] = node
                continue
            for name in node.inputs:
                _add_again(graph, made, name, again)
            made.nodes[node.name] = _reading(node, again)
        for output in graph.outputs:
            if output.program == FORWARD or output.value not in again:
                made.outputs.append(output)
                continue
            _add_again(graph, made, output.value, again)
            made.outputs.append(replace(output, value=output.value + AGAIN))
        return made


def _add_again(graph: Graph, made: Graph, name: str, again: set[str]) -> None:
    """A value that is computed again, after all that it is made of."""
    waiting = [name]
    while waiting:
        now = waiting[-1]
        if now not in again or now + AGAIN in made.nodes:
            waiting.pop()
            continue
        missing = [item for item in graph[now].inputs if item in again and item + AGAIN not in made.nodes]
        if missing:
            waiting += missing
            continue
        made.nodes[now + AGAIN] = replace(_reading(graph[now], again), name=now + AGAIN)
        waiting.pop()


def _reading(node: Node, again: set[str]) -> Node:
    """The node with what is computed again among its operands."""
    return replace(node, inputs=tuple(name + AGAIN if name in again else name for name in node.inputs))


def _tiles(node: Node) -> int:
    """That a value fills."""
    *front, rows, columns = (1, 1, *node.shape)
    return prod(front) * tiles_along(rows) * tiles_along(columns)


def _work(graph: Graph, node: Node) -> float:
    """In tiles that go through the math unit."""
    if node.op in _VIEWS:
        return 0.01 * _tiles(node)
    inner = 1
    if node.op == "matmul":
        inner = tiles_along(graph[node.inputs[0]].shape[-1])
    elif node.op == "linear":
        inner = tiles_along(node.attrs["matrix"].shape[1])
    return float(_tiles(node) * inner)


MIB = 1 << 20
LEAST = 1 / 64
"""Share of what is stored at most; below, all that can be is computed again."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in DRAM between forward and backward pass: `bytes` of all microbatches in these `queues`; `again`:
    values of the forward pass that the backward pass computes itself."""

    bytes: int
    queues: tuple[str, ...]
    again: tuple[str, ...]

    def __str__(self) -> str:
        """A line, and one of what is computed again."""
        text = f"stored for the backward pass: {self.bytes / MIB:.2f} MiB in {plural(len(self.queues), 'queue')}"
        return f"{text}\ncomputed again: {', '.join(self.again) or 'nothing'}"


def fitted(
    compilation: Compilation, graph: Graph, entries: int, mib: float | None
) -> tuple[tuple[Graph, Placement, str], Stored]:
    """A placed training that computes as little again as memory allows: what is stored is measured in the queues of the
    placement, and less is stored until it fits. `mib` of DRAM may be taken, None: what the chip has. Raises
    UnsupportedError, HostError where it cannot."""
    if mib is not None and mib < 0:
        raise HostError(f"compile: activations_mib={mib}")
    graph = compilation.prepared(graph)
    crossing = Crossing(graph)
    share, done = float(mib != 0), ("",)  # where nothing may be stored, all is computed again that can be
    while True:
        again = crossing.within(int(crossing.most() * share))
        last = share == 0
        share = share / 2 if share > LEAST else 0.0
        if again == done and not last:
            continue
        done = again
        made = crossing.applied(again)
        for effort in dict.fromkeys(("low", compilation.objective.effort)):  # what does not fit is not searched
            try:
                found = replace(compilation, objective=replace(compilation.objective, effort=effort)).lowered(
                    made, entries=entries
                )
            except MemoryFullError:
                if last:
                    raise
                break
            queues = between_programs(found[1])
            size = sum(queues.values())
            if mib is not None and size > mib * MIB:
                if last:
                    raise HostError(f"compile: activations_mib={mib}: at least {size / MIB:.2f} MiB have to be stored")
                break
            if effort == compilation.objective.effort:
                return found, Stored(size, tuple(queues), again)


def between_programs(found: Placement) -> dict[str, int]:
    """Bytes of each queue that one program writes and another reads."""
    readers: dict[str, set[str]] = {}
    for placed in found.ops.values():
        for use in placed.op.uses:
            readers.setdefault(use.source, set()).add(placed.op.program)
    queues: dict[str, int] = {}
    for tensor, name in found.between.items():
        if readers.get(tensor, set()) - {found.ops[tensor].op.program}:
            queue = found.queues[name]
            queues[name] = buffer_bytes(found.target, queue) * prod(queue.blocks.grid)
    return queues
