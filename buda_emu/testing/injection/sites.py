"""Sites of a recorded run that can be hit, weighted by the bits that the chip holds there and for how long."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, chain
from random import Random
from typing import Final, Literal, get_args

from buda_emu.emulator.runtime.graph.steps import Push, Run
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import INSIDE, PLACES, Place, bits_of_tile, exponent_bits
from buda_emu.testing.injection.trace import Node, Trace
from buda_emu.testing.injection.values import OnDevice

Strata = Literal["", "kind", "place", "op", "tensor", "bit"]
STRATA: Final[tuple[Strata, ...]] = get_args(Strata)
_LANES: Final = 32  # elements that a pass of the vector unit computes


@dataclass(frozen=True, slots=True)
class Site:
    """Tiles in one place in which a bit may flip. `node` is the value, or that of the op whose unit they go through;
    `reader` and `operand` name the only op that sees the fault, None and -1 where all do; `first` is the first of the
    tiles; `df` their format; `steps` counts instructions of the vector unit; `weight` is bits times cycles."""

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
    """Sites to draw from, each with a probability in proportion to its weight; `sums` are the weights added up."""

    items: list[Site] = field(default_factory=list[Site])
    sums: list[float] = field(default_factory=list[float])

    @staticmethod
    def of(sites: Sequence[Site]) -> "Weighted":
        """Make a `Weighted` from sites; those of weight 0, which can't be drawn, are left out."""
        weighted = [site for site in sites if site.weight > 0]
        return Weighted(weighted, list(accumulate(site.weight for site in weighted)))

    @property
    def total(self) -> float:
        """The sum of the weights of all sites; 0 without sites."""
        if self.sums:
            return self.sums[-1]
        return 0.0

    def draw(self, random: Random) -> Site:
        """Draw one site with a probability in proportion to its weight. There must be at least one."""
        return self.items[min(bisect_right(self.sums, random.random() * self.total), len(self.items) - 1)]


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the sites; each stratum gets equally many faults. `share` is its part of all bits times cycles, by
    which results are weighted again; `bit` is (number, whether of a shared exponent) of the only bit that flips, None
    for any."""

    name: str
    share: float
    sites: Weighted
    bit: tuple[int, bool] | None = None


class Sites:
    """The sites of a run that can be hit.

    `cycles` are the modelled cycles of an execute, and of one input, by the execute's graphs. A value in DRAM can be
    hit from the execute that wrote it to the last that reads it, a value or an operand in L1 during one input; Dst
    holds a ublock on each core, the packer a tile, the vector unit one register. `only` is an op or a queue, "" for
    all; `places` are those where bits flip.
    """

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
        self._starts = [0.0, *accumulate(of_execute for of_execute, _ in durations)]
        self._of_input = [of_input for _, of_input in durations]
        self.numbers = number_values(trace)
        self.ordinals: dict[int, int] = {}
        """The position of a value among those of its op or queue, by the value's number."""
        for numbers in self.numbers.values():
            self.ordinals |= {number: place for place, number in enumerate(numbers)}
        nodes = [node for node in trace.nodes if self._can_be_hit(node)]
        self.entries = [node for node in nodes if node.step is None or isinstance(node.step, Push)]
        self.results = [node for node in nodes if isinstance(node.step, Run)]
        dram = [self._site_of_value("dram", node, self._lifetime(node)) for node in self.entries]
        l1 = [self._site_of_value("l1", node, self._of_input[node.epoch]) for node in self.results]
        self.bit_cycles = sum(site.weight for site in (*dram, *l1))
        """Bits times cycles of DRAM and L1, which a rate of upsets for a bit and an hour is multiplied by."""
        self.places: dict[Place, Weighted] = {
            "dram": Weighted.of(dram),
            "l1": Weighted.of(l1),
            "operand": Weighted.of(list(self._operand_sites(nodes))),
            **self._places_inside(places),
        }
        self.all = Weighted.of(list(chain.from_iterable(self.places[place].items for place in places)))

    def _can_be_hit(self, node: Node) -> bool:
        """Return whether faults may hit a value: it has a format of tiles, and its op or queue is `only`, if that is
        given."""
        return node.df in FORMATS and (not self.only or name_of(node) == self.only)

    def _places_inside(self, places: Sequence[Place]) -> dict[Place, Weighted]:
        """Return the sites in Dst, packer and vector unit, by place. All are empty unless `places` has one of these,
        since listing them takes long."""
        sites: list[Site] = []
        if not INSIDE.isdisjoint(places):
            sites = list(self._unit_sites())
        return {
            place: Weighted.of([site for site in sites if site.place == place]) for place in PLACES if place in INSIDE
        }

    def _site_of_value(self, place: Place, node: Node, cycles: float) -> Site:
        """Return the site of all tiles of a value that stays in `place` for `cycles`."""
        tiles = node.value.shape[1]
        return Site(
            place=place, node=node.number, df=node.df, tiles=tiles, weight=tiles * bits_of_tile(node.df) * cycles
        )

    def _operand_sites(self, nodes: Sequence[Node]) -> Iterator[Site]:
        """Yield a site for each operand of an op that is one of `nodes`, since each is unpacked by itself."""
        for node in nodes:
            for reader in node.readers:
                reading_node = self.trace.nodes[reader]
                if isinstance(reading_node.step, Run):
                    yield from self._sites_of_operand(reading_node, node)

    def _sites_of_operand(self, reader: Node, node: Node) -> Iterator[Site]:
        """Yield a site for each operand of the op `reader` that is the value `node`; several if it reads it twice. The
        sum that a gradient op adds to is not unpacked, so it has none."""
        tiles = node.value.shape[1]
        weight = tiles * bits_of_tile(node.df) * self._of_input[reader.epoch]
        for operand, source in enumerate(reader.inputs[: len(reader.inputs) - reader.sums]):
            if source == node.number:
                yield Site(
                    place="operand",
                    node=source,
                    df=node.df,
                    tiles=tiles,
                    weight=weight,
                    reader=reader.number,
                    operand=operand,
                )

    def _unit_sites(self) -> Iterator[Site]:
        """Yield sites in Dst, packer and vector unit for each op's results. Each op runs once more to count the tiles
        there. Raises HostError unless the precision is "device"."""
        from buda_emu.testing.injection.inside_op import Visit, WatchedUnits

        arithmetic = self.trace.arithmetic
        if not isinstance(arithmetic, OnDevice):
            raise HostError("places dst, sfpu and packer are those of precision device (--precision device)")
        visits_by_op: dict[tuple[str, int], list[Visit]] = {}
        for node in self.results:
            assert isinstance(node.step, Run)
            key = (node.step.op.name, len(node.inputs))
            if key not in visits_by_op:
                units = WatchedUnits(arithmetic.core)
                self.trace.recompute(node.number, units)
                visits_by_op[key] = units.visits
            visits = visits_by_op[key]
            blocking = node.step.op.blocking
            cycles = blocking.cells * self._of_input[node.epoch]
            for visit in visits:
                width = FORMATS[visit.df].bits
                bits = {
                    "dst": blocking.ublock[0] * blocking.ublock[1] * TILE_ELEMENTS * width,
                    "sfpu": _LANES * width,
                    "packer": bits_of_tile(visit.df),
                }[visit.place]
                share = visit.tiles / sum(other.tiles for other in visits if other.place == visit.place)
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
        """Return for how many cycles a queue's or ram's entry can be hit: from its write (by the host: from the
        beginning) to its last read, at least one input. An entry that no op reads stays until the end, where the host
        reads it."""
        if node.step is None:
            begin = 0.0
        else:
            begin = self._starts[node.epoch + 1]
        if not node.readers:
            end = self._starts[-1]
        else:
            end = self._starts[node.last_epoch + 1]
        return max(end - begin, self._of_input[node.epoch])

    # ----------------------------------------------------------------------------------------------------- strata
    def strata(self, by: Strata) -> list[Stratum]:
        """Divide the sites by a property and return the parts by name; for "" and "kind" one part that has all."""
        if by in ("", "kind"):
            return [Stratum("", 1.0, self.all)]
        if by == "bit":
            return sorted(self._strata_by_bit(), key=lambda part: part.name)
        names: Mapping[str, Callable[[Site], str]] = {
            "place": lambda site: site.place,
            "tensor": lambda site: name_of(self.trace.nodes[site.node]),
            "op": lambda site: name_of(self.trace.nodes[site.node if site.reader is None else site.reader]),
        }
        parts: dict[str, list[Site]] = {}
        for site in self.all.items:
            parts.setdefault(names[by](site), []).append(site)
        weighted_parts = [(name, Weighted.of(sites)) for name, sites in sorted(parts.items())]
        return [Stratum(name, sites.total / self.all.total, sites) for name, sites in weighted_parts]

    def _strata_by_bit(self) -> Iterator[Stratum]:
        """Yield a stratum for each bit of a datum of each format, and for each bit of its shared exponents."""
        parts: dict[str, list[Site]] = {}
        for site in self.all.items:
            parts.setdefault(site.df, []).append(site)
        for df, sites in parts.items():
            weighted = Weighted.of(sites)
            share_of_bit = weighted.total / self.all.total / bits_of_tile(df)
            for bit in range(FORMATS[df].bits):
                yield Stratum(f"{df} {bit:02}", TILE_ELEMENTS * share_of_bit, weighted, (bit, False))
            if is_block(df):
                for bit in range(exponent_bits(df)):
                    yield Stratum(f"{df} exponent {bit}", 64 * share_of_bit, weighted, (bit, True))


def name_of(node: Node) -> str:
    """Return the name that a value counts under: the op that computed it, else the queue it is in, "" if it is in
    none."""
    if isinstance(node.step, Run):
        return node.step.op.name
    return node.queue


def number_values(trace: Trace) -> dict[str, list[int]]:
    """Return, by op or queue, the node numbers of its values in the order in which the run made them. Values under no
    name are left out."""
    numbers: dict[str, list[int]] = {}
    for node in trace.nodes:
        name = name_of(node)
        if name:
            numbers.setdefault(name, []).append(node.number)
    return numbers
