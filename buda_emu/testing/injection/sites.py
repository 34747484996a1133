"""Where a recorded run can be hit: places by the bits that the chip holds there and how long it holds them."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from random import Random
from typing import Final, Literal, get_args

from buda_emu.emulator.runtime.graph.steps import Push, Run
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import Place, bits_of_tile, exponent_bits
from buda_emu.testing.injection.trace import Node, Trace
from buda_emu.testing.injection.values import OnDevice

Strata = Literal["", "kind", "place", "op", "tensor", "bit"]
STRATA: Final[tuple[Strata, ...]] = get_args(Strata)
_LANES: Final = 32


@dataclass(frozen=True, slots=True)
class Site:
    """Some tiles that bits may flip in. `node`: the value, or that of the op whose unit they go through; `reader` and
    `operand`: who alone sees it; `first`: the first of the tiles; `df`: their format; `steps`: instructions of the
    vector unit; `weight`: bits times cycles."""

    place: Place
    node: int
    df: str
    tiles: int
    weight: float
    reader: int | None = None
    operand: int = -1
    first: int = 0
    steps: int = 1


@dataclass(slots=True)
class Weighted:
    """Sites to draw from, each as often as its weight says."""

    items: list[Site] = field(default_factory=list[Site])
    sums: list[float] = field(default_factory=list[float])

    @staticmethod
    def of(sites: Sequence[Site]) -> "Weighted":
        """Those without weight are left out."""
        kept = [site for site in sites if site.weight > 0]
        return Weighted(kept, list(accumulate(site.weight for site in kept)))

    @property
    def total(self) -> float:
        """All weights."""
        return self.sums[-1] if self.sums else 0.0

    def draw(self, random: Random) -> Site:
        """One of them."""
        return self.items[min(bisect_right(self.sums, random.random() * self.total), len(self.items) - 1)]


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the sites from which equally many faults are drawn as from each other part. `share`: of all bits times
    cycles; `bit`: that flips, of a datum or a shared exponent; None: any."""

    name: str
    share: float
    sites: Weighted
    bit: tuple[int, bool] | None = None


class Sites:
    """Where values of a run can be hit. `cycles`: by the graphs of an execute its modelled cycles, and those of one
    input: what lies in DRAM is there from the execute that wrote it to the last that reads it, what lies in L1 for one
    input, an operand for as long; of Dst a ublock on each core, of the packer a tile, of the vector unit one register.
    `only`: an op or a queue, "" for all; `places`: where bits flip."""

    def __init__(
        self,
        trace: Trace,
        cycles: Mapping[tuple[str, ...], tuple[float, float]],
        only: str = "",
        places: Sequence[Place] = ("dram", "l1", "operand"),
    ) -> None:
        self.trace = trace
        self.only = only
        durations = [cycles.get(graphs, (1.0, 1.0)) for graphs in trace.epochs]
        self._starts = [0.0, *accumulate(whole for whole, _ in durations)]
        self._of_input = [one for _, one in durations]
        self.numbers = numbered(trace)
        self.ordinals = {number: place for numbers in self.numbers.values() for place, number in enumerate(numbers)}
        """By number of a value, the how manieth of its op or queue it is."""
        nodes = [node for node in trace.nodes if node.df in FORMATS and (not self.only or name_of(node) == self.only)]
        self.entries = [node for node in nodes if node.step is None or isinstance(node.step, Push)]
        self.results = [node for node in nodes if isinstance(node.step, Run)]
        held = {
            "dram": [self._site("dram", node, self._lifetime(node)) for node in self.entries],
            "l1": [self._site("l1", node, self._of_input[node.epoch]) for node in self.results],
        }
        self.bit_cycles = sum(site.weight for sites in held.values() for site in sites)
        """Bits times cycles of DRAM and L1: what a rate of upsets for a bit and an hour is multiplied by."""
        inside = list(self._inside()) if not {"dst", "sfpu", "packer"}.isdisjoint(places) else []
        self.places: dict[Place, Weighted] = {
            "dram": Weighted.of(held["dram"]),
            "l1": Weighted.of(held["l1"]),
            "operand": Weighted.of(list(self._operands(nodes))),
            **{
                place: Weighted.of([site for site in inside if site.place == place])
                for place in ("dst", "sfpu", "packer")
            },
        }
        self.all = Weighted.of([site for place in places for site in self.places[place].items])

    def _site(self, place: Place, node: Node, cycles: float) -> Site:
        tiles = node.value.shape[1]
        return Site(
            place=place, node=node.number, df=node.df, tiles=tiles, weight=tiles * bits_of_tile(node.df) * cycles
        )

    def _operands(self, nodes: Sequence[Node]) -> Iterator[Site]:
        """Everything that an op unpacks."""
        for node in nodes:
            for reader in node.readers:
                other = self.trace.nodes[reader]
                if isinstance(other.step, Run):
                    tiles = node.value.shape[1]
                    weight = tiles * bits_of_tile(node.df) * self._of_input[other.epoch]
                    for operand, source in enumerate(other.inputs[: len(other.inputs) - other.sums]):
                        if source == node.number:
                            yield Site(
                                place="operand",
                                node=source,
                                df=node.df,
                                tiles=tiles,
                                weight=weight,
                                reader=reader,
                                operand=operand,
                            )

    def _inside(self) -> Iterator[Site]:
        """Dst, packer and vector unit, which the ops of precision "device" have; each op runs once to count tiles."""
        from buda_emu.testing.injection.inside_op import Visit, WatchedUnits

        arithmetic = self.trace.arithmetic
        if not isinstance(arithmetic, OnDevice):
            raise HostError("places dst, sfpu and packer are those of precision device (--precision device)")
        known: dict[tuple[str, int], list[Visit]] = {}
        for node in self.results:
            assert isinstance(node.step, Run)
            key = node.step.op.name, len(node.inputs)
            if key not in known:
                units = WatchedUnits(arithmetic.core)
                self.trace.remade(node.number, units)
                known[key] = units.visits
            blocking = node.step.op.blocking
            cycles = blocking.cells * self._of_input[node.epoch]
            for visit in known[key]:
                width = FORMATS[visit.df].bits
                bits = {
                    "dst": blocking.ublock[0] * blocking.ublock[1] * 1024 * width,
                    "sfpu": _LANES * width,
                    "packer": bits_of_tile(visit.df),
                }[visit.place]
                share = visit.tiles / sum(other.tiles for other in known[key] if other.place == visit.place)
                yield Site(
                    place=visit.place,
                    node=node.number,
                    df=visit.df,
                    tiles=visit.tiles,
                    weight=bits * share * cycles,
                    first=visit.first,
                    steps=visit.steps,
                )

    def _lifetime(self, node: Node) -> float:
        """Cycles from when it is written (an entry of the host: from the beginning) to when it is last read; what the
        host reads at the end is there until the end."""
        begin = 0.0 if node.step is None else self._starts[node.epoch + 1]
        end = self._starts[-1] if not node.readers else self._starts[node.last_epoch + 1]
        return max(end - begin, self._of_input[node.epoch])

    # ----------------------------------------------------------------------------------------------------- strata
    def strata(self, by: Strata) -> list[Stratum]:
        """The sites in parts, in the order of their names; all together where nothing is asked."""
        if by in ("", "kind"):
            return [Stratum("", 1.0, self.all)]
        if by == "bit":
            return sorted(self._by_bit(), key=lambda part: part.name)
        names: Mapping[str, Callable[[Site], str]] = {
            "place": lambda site: site.place,
            "tensor": lambda site: name_of(self.trace.nodes[site.node]),
            "op": lambda site: name_of(self.trace.nodes[site.node if site.reader is None else site.reader]),
        }
        parts: dict[str, list[Site]] = {}
        for site in self.all.items:
            parts.setdefault(names[by](site), []).append(site)
        made = [(name, Weighted.of(sites)) for name, sites in sorted(parts.items())]
        return [Stratum(name, sites.total / self.all.total, sites) for name, sites in made]

    def _by_bit(self) -> Iterator[Stratum]:
        parts: dict[str, list[Site]] = {}
        for site in self.all.items:
            parts.setdefault(site.df, []).append(site)
        for df, sites in parts.items():
            weighted = Weighted.of(sites)
            whole = weighted.total / self.all.total / bits_of_tile(df)
            for bit in range(FORMATS[df].bits):
                yield Stratum(f"{df} {bit:02}", 1024 * whole, weighted, (bit, False))
            for bit in range(exponent_bits(df) if is_block(df) else 0):
                yield Stratum(f"{df} exponent {bit}", 64 * whole, weighted, (bit, True))


def name_of(node: Node) -> str:
    """Of the op that made it, else of the queue that it lies in."""
    return node.step.op.name if isinstance(node.step, Run) else node.queue


def numbered(trace: Trace) -> dict[str, list[int]]:
    """By op and by queue the numbers of their values, in the order in which the run made them."""
    found: dict[str, list[int]] = {}
    for node in trace.nodes:
        if name := name_of(node):
            found.setdefault(name, []).append(node.number)
    return found
