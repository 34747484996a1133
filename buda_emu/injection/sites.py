"""Draws faults: places by the bits that the chip holds there and how long it holds them."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from random import Random

from buda_emu.errors import HostError
from buda_emu.injection.fault import Fault, Kind, Place, bits_of_tile, exponent_bits
from buda_emu.injection.spoil import OTHER_FORMAT
from buda_emu.injection.trace import Node, Trace
from buda_emu.records import dataclass
from buda_emu.runtime.graph.plan import Push, Run
from buda_emu.spec.formats import FORMATS, is_block


@dataclass(slots=True)
class Weighted:
    """Things to draw from, each as often as its weight says."""

    items: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    sums: list[float] = field(default_factory=list[float])

    @staticmethod
    def of(pairs: Sequence[tuple[tuple[int, ...], float]]) -> "Weighted":
        """From things and weights; those without weight are left out."""
        kept = [(item, weight) for item, weight in pairs if weight > 0]
        return Weighted([item for item, _ in kept], list(accumulate(weight for _, weight in kept)))

    @property
    def total(self) -> float:
        """All weights."""
        return self.sums[-1] if self.sums else 0.0

    def draw(self, random: Random) -> tuple[int, ...]:
        """One of them."""
        return self.items[min(bisect_right(self.sums, random.random() * self.total), len(self.items) - 1)]


def seed_of(seed: int, number: int) -> int:
    """The seed of one fault of a campaign: fault N is the same however many are drawn beside it."""
    return seed * 1_000_003 + number


class Sites:
    """Where a recorded run can be hit. `cycles`: by the graphs of an execute its modelled cycles, and those of one
    input: what lies in DRAM is there from the execute that wrote it to the last that reads it, what lies in L1 for one
    input, an operand for as long. Weights are bits times cycles."""

    def __init__(self, trace: Trace, cycles: Mapping[tuple[str, ...], tuple[float, float]], only: str = "") -> None:
        self.trace = trace
        self._only = only
        durations = [cycles.get(graphs, (1.0, 1.0)) for graphs in trace.epochs]
        self._starts = [0.0, *accumulate(whole for whole, _ in durations)]
        self._of_input = [one for _, one in durations]
        nodes = [node for node in trace.nodes if node.df in FORMATS and self._is_asked(node)]
        entries = [node for node in nodes if node.step is None or isinstance(node.step, Push)]
        results = [node for node in nodes if isinstance(node.step, Run)]
        self.places: dict[Place, Weighted] = {
            "dram": Weighted.of([((node.number,), self._bits(node) * self._lifetime(node)) for node in entries]),
            "l1": Weighted.of([((node.number,), self._bits(node) * self._of_input[node.epoch]) for node in results]),
            "operand": Weighted.of(self._edges(nodes)),
        }
        self._entries, self._results = entries, results

    def _is_asked(self, node: Node) -> bool:
        name = node.step.op.name if isinstance(node.step, Run) else node.queue
        return not self._only or name == self._only

    def _edges(self, nodes: list[Node]) -> list[tuple[tuple[int, ...], float]]:
        """(value, reader, operand) of everything that an op unpacks."""
        found: list[tuple[tuple[int, ...], float]] = []
        for node in nodes:
            for reader in node.readers:
                other = self.trace.nodes[reader]
                if isinstance(other.step, Run):
                    bits = self._bits(node) * self._of_input[other.epoch]
                    operands = [number for number, source in enumerate(other.inputs) if source == node.number]
                    found += [((node.number, reader, operand), bits) for operand in operands]
        return found

    def _bits(self, node: Node) -> float:
        return float(node.value.shape[1] * bits_of_tile(node.df))

    def _lifetime(self, node: Node) -> float:
        """Cycles from when it is written (an entry of the host: from the beginning) to when it is last read; what the
        host reads at the end is there until the end."""
        begin = 0.0 if node.step is None else self._starts[node.epoch + 1]
        end = self._starts[-1] if not node.readers else self._starts[node.last_epoch + 1]
        return max(end - begin, self._of_input[node.epoch])

    @property
    def bit_cycles(self) -> float:
        """Bits times cycles of DRAM and L1: what a rate of upsets for a bit and an hour is multiplied by."""
        return self.places["dram"].total + self.places["l1"].total

    # ------------------------------------------------------------------------------------------------------ draws
    def draw(self, number: int, seed: int, kinds: Sequence[Kind], places: Sequence[Place], burst: int) -> Fault:
        """Fault `number` of a campaign: the same for the same arguments. Raises HostError where nothing can be hit."""
        random = Random(seed_of(seed, number))
        kind = kinds[random.randrange(len(kinds))]
        make: Mapping[Kind, Callable[[], Fault | None]] = {
            "flip": lambda: self._flip(number, random, places, burst),
            "stuck": lambda: self._stuck(number, random),
            "core": lambda: self._core(number, random),
            "packet": lambda: self._packet(number, random),
            "entry": lambda: self._entry(number, random),
            "format": lambda: self._format(number, random),
        }
        found = make[kind]()
        if found is None:
            what = f" in {self._only}" if self._only else ""
            raise HostError(
                f"kind {kind}: there is nothing{what} that such a fault can hit in places {', '.join(places)}"
            )
        return found

    def _flip(self, number: int, random: Random, places: Sequence[Place], burst: int) -> Fault | None:
        weights = Weighted.of([((at,), self.places[place].total) for at, place in enumerate(places)])
        if not weights.total:
            return None
        place = places[weights.draw(random)[0]]
        node, *edge = self.places[place].draw(random)
        value = self.trace.nodes[node]
        spec = FORMATS[value.df]
        hit = random.randrange(bits_of_tile(value.df))
        exponent = hit >= 1024 * spec.bits
        width = exponent_bits(value.df) if exponent else spec.bits
        datum, bit = divmod(hit - 1024 * spec.bits if exponent else hit, width)
        return self._fault(
            number, "flip", place, value, nodes=(node,), tile=random.randrange(value.value.shape[1]), datum=datum,
            bits=tuple(range(bit, min(width, bit + burst))), exponent=exponent and is_block(value.df), edge=tuple(edge),
        )  # fmt: skip

    def _packet(self, number: int, random: Random) -> Fault | None:
        if not self.places["operand"].items:
            return None
        node, *edge = self.places["operand"].draw(random)
        value = self.trace.nodes[node]
        tiles = value.value.shape[1]
        how = "twice" if tiles > 1 and random.random() < 0.5 else "lost"
        tile = random.randrange(1 if how == "twice" else 0, tiles)
        return self._fault(number, "packet", "operand", value, nodes=(node,), tile=tile, how=how, edge=tuple(edge))

    def _stuck(self, number: int, random: Random) -> Fault | None:
        found = self._of_core(random)
        if found is None:
            return None
        nodes, core = found
        value = self.trace.nodes[nodes[0]]
        bit = random.randrange(FORMATS[value.df].bits)
        return self._fault(
            number, "stuck", "l1", value, nodes=nodes, core=core, bits=(bit,), how=str(random.randrange(2))
        )

    def _core(self, number: int, random: Random) -> Fault | None:
        found = self._of_core(random)
        if found is None:
            return None
        nodes, core = found
        how = ("zero", "stale", "noise")[random.randrange(3)]
        return self._fault(number, "core", "l1", self.trace.nodes[nodes[0]], nodes=nodes, core=core, how=how)

    def _of_core(self, random: Random) -> tuple[tuple[int, ...], tuple[int, int]] | None:
        """An op from one input on, and one core of it."""
        if not self.places["l1"].items:
            return None
        (first,) = self.places["l1"].draw(random)
        step = self.trace.nodes[first].step
        assert isinstance(step, Run)
        rows, cols = step.op.blocking.grid_size
        nodes = tuple(
            node.number for node in self._results
            if node.number >= first and isinstance(node.step, Run) and node.step.op.name == step.op.name
        )  # fmt: skip
        return nodes, (random.randrange(rows), random.randrange(cols))

    def _entry(self, number: int, random: Random) -> Fault | None:
        pairs = [
            (one, two)
            for one, two in self._neighbours()
            if one.value.shape == two.value.shape and (one.readers or two.readers)
        ]
        if not pairs:
            return None
        one, two = pairs[random.randrange(len(pairs))]
        how = ("twice", "swapped")[random.randrange(2)]
        return self._fault(number, "entry", "dram", two, nodes=(one.number, two.number), how=how)

    def _neighbours(self) -> list[tuple[Node, Node]]:
        """Entries of one queue that follow each other."""
        last: dict[str, Node] = {}
        found: list[tuple[Node, Node]] = []
        for node in self._entries:
            if node.queue in last:
                found.append((last[node.queue], node))
            last[node.queue] = node
        return found

    def _format(self, number: int, random: Random) -> Fault | None:
        queues = sorted({node.queue for node in self._entries if node.df in OTHER_FORMAT})
        if not queues:
            return None
        queue = queues[random.randrange(len(queues))]
        nodes = [node for node in self._entries if node.queue == queue]
        how = f"read as {OTHER_FORMAT[nodes[0].df]}"
        numbers = tuple(node.number for node in nodes)
        return self._fault(number, "format", "dram", nodes[0], nodes=numbers, how=how)

    def _fault(
        self, number: int, kind: Kind, place: Place, value: Node, *, nodes: tuple[int, ...],
        edge: tuple[int, ...] = (), **more: object,
    ) -> Fault:  # fmt: skip
        reader, operand = edge or (None, -1)
        at = self.trace.nodes[reader] if reader is not None else value
        where = at.step.op.name if isinstance(at.step, Run) else at.queue
        op_type = at.step.op.type if isinstance(at.step, Run) else "queue"
        return Fault(
            number, kind, place, where, op_type, value.df, nodes, reader=reader, operand=operand,
            **more,  # type: ignore[arg-type]  # fields of a fault, by name
        )  # fmt: skip
