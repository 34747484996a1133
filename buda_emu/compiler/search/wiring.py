"""Where the ops of an epoch stand: exchanged and moved until no NoC link carries more than it must.

A transfer takes at least as long as the fullest link on its way (PERF 1.2), and data only goes right and down (NoC 0)
or up and left (NoC 1), so ops that stand side by side in their order share few links. Each step moves an op to free
cores, or exchanges two of equal grids, and stays where the links' loads get better: the sum of their fourth powers,
which the fullest ones govern. Positions are drawn from a generator with a fixed seed.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum

from buda_emu.compiler.place.core_grid import CoreGrid
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.netlist.model import Netlist, Op, Queue, evolve
from buda_emu.spec.devices import Device
from buda_emu.timing.transfers.flows import Flow
from buda_emu.timing.transfers.noc import Link, Path, Way, path
from buda_emu.timing.transfers.rates import Rates, speed

POWER = 4
PATIENCE = 120
"""Moves without a gain after which no more are tried."""
LEAST = 0.5
"""Cycles that are none: sums of shares."""


@dataclass(slots=True)
class Wires:
    """The ops of one epoch, their edges, and the bytes that each link carries for one input."""

    chip: Device
    ops: dict[str, Op]
    queues: Mapping[str, Queue]
    edges: Sequence[Flow]
    near: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    found: list[Path] = field(default_factory=list[Path])
    loads: dict[Link, float] = field(default_factory=dict[Link, float])

    @staticmethod
    def of(netlist: Netlist, edges: Sequence[Flow], paths: Sequence[Path], chip: Device) -> "Wires":
        """Of an epoch that is the whole netlist."""
        kept = [(edge, way) for edge, way in zip(edges, paths, strict=True) if not edge.once]
        wires = Wires(chip, dict(netlist.ops), netlist.queues, [edge for edge, _ in kept], found=[w for _, w in kept])
        for number, edge in enumerate(wires.edges):
            for name in (edge.source, edge.target):
                if name in wires.ops:
                    wires.near.setdefault(name, []).append(number)
            wires._add(wires.found[number], 1)
        return wires

    @property
    def fullest(self) -> float:
        """Bytes over the fullest link."""
        return max(self.loads.values(), default=0.0)

    def _add(self, way: Path, sign: int) -> None:
        for link, size in way.links.items():
            self.loads[link] = self.loads.get(link, 0.0) + sign * size

    def _path(self, number: int) -> Path:
        edge = self.edges[number]
        name, other = (edge.source, edge.target) if edge.operand < 0 else (edge.target, edge.source)
        return path(edge, self.ops[name], self.queues.get(other) or self.ops[other], self.chip)

    def moved(self, places: Mapping[str, tuple[int, int]]) -> bool:
        """Move ops if the links' loads get better by it."""
        numbers = sorted({number for name in places for number in self.near.get(name, ())})
        before = {name: self.ops[name] for name in places}
        self.ops |= {name: evolve(self.ops[name], grid_loc=at) for name, at in places.items()}
        ways = {number: self._path(number) for number in numbers}
        change: dict[Link, float] = {}
        for number in numbers:
            for link, size in self.found[number].links.items():
                change[link] = change.get(link, 0.0) - size
            for link, size in ways[number].links.items():
                change[link] = change.get(link, 0.0) + size
        terms: list[float] = []
        for link, size in change.items():
            have = self.loads.get(link, 0.0)
            terms += (have**POWER, -(max(have + size, 0.0) ** POWER))
        if fsum(terms) <= 0:  # in whatever order links come out of sets
            self.ops |= before
            return False
        for number, way in ways.items():
            self._add(self.found[number], -1)
            self._add(way, 1)
            self.found[number] = way
        return True


def rewired(
    spots: Mapping[str, PlacementDecision],
    wires: Wires,
    grid: tuple[int, int],
    enough: float,
    tries: int,
    patience: int = PATIENCE,
) -> dict[str, PlacementDecision]:
    """The spots of one chip's ops with places that load the links less; ends when the fullest link carries no more than
    `enough` bytes."""
    draw = random.Random(len(spots))
    names = sorted(spots)
    places = {name: spots[name].at for name in names}
    stale = 0
    for _ in range(tries):
        if wires.fullest <= enough or stale > patience:
            break
        stale += 1
        name = draw.choice(names)
        shape = spots[name].size
        same = [other for other in names if other != name and spots[other].size == shape]
        change: dict[str, tuple[int, int]] = {}
        if same and draw.random() < 0.5:
            other = draw.choice(same)
            change = {name: places[other], other: places[name]}
        else:
            taken = ((places[other], spots[other].size) for other in names if other != name)
            at = _free(draw, grid, shape, taken)
            if at is not None and at != places[name]:
                change = {name: at}
        if change and wires.moved(change):
            places |= change
            stale = 0
    return {name: replace(spot, at=places[name]) for name, spot in spots.items()}


def _free(
    draw: random.Random, grid: tuple[int, int], shape: tuple[int, int],
    taken: Iterable[tuple[tuple[int, int], tuple[int, int]]],
) -> tuple[int, int] | None:  # fmt: skip
    """One of the places where a rectangle fits."""
    room = CoreGrid(*grid)
    for at, size in taken:
        room.block(at, size)
    found = room.places(shape)
    return draw.choice(found) if found else None


@dataclass(slots=True)
class WiresOfOne(Wires):
    """The same where an epoch takes a single input, which waits for each transfer in turn: what counts is how long all
    of them take together, each at its own rate or that of the fullest link or port on its way.

    Links and ports are numbered, apart for what is loaded once: `busy` are the cycles of each, `users` the edges over
    it; `least` and `takes` are the cycles of each edge by itself, and as it is.
    """

    rates: Rates | None = None
    numbers: dict[tuple[Way, bool], int] = field(default_factory=dict[tuple[Way, bool], int])
    known: dict[tuple[int, bool], tuple[Path, list[tuple[int, float]]]] = field(
        default_factory=dict[tuple[int, bool], tuple[Path, list[tuple[int, float]]]]
    )
    busy: list[float] = field(default_factory=list[float])
    users: list[set[int]] = field(default_factory=list[set[int]])
    least: list[float] = field(default_factory=list[float])
    takes: list[float] = field(default_factory=list[float])

    @staticmethod
    def of_one(netlist: Netlist, edges: Sequence[Flow], paths: Sequence[Path], chip: Device) -> "WiresOfOne":
        """Of an epoch that is the whole netlist."""
        rates = speed(chip, {}).rates()
        found = WiresOfOne(chip, dict(netlist.ops), netlist.queues, edges, found=list(paths), rates=rates)
        for number, way in enumerate(found.found):
            for name in (edges[number].source, edges[number].target):
                if name in found.ops:
                    found.near.setdefault(name, []).append(number)
            for item, cycles in found._cycles(number, way):
                found.busy[item] += cycles
                found.users[item].add(number)
        found.least = [found._least(number, way) for number, way in enumerate(found.found)]
        found.takes = [found._takes(number, way) for number, way in enumerate(found.found)]
        return found

    @property
    def fullest(self) -> float:
        """Cycles of all transfers together: there is no limit below which they are short enough."""
        return fsum(self.takes)

    def _least(self, number: int, way: Path) -> float:
        """Cycles of one edge by itself: into a core, and out of the fullest of its channels of DRAM."""
        edge, rates = self.edges[number], self.rates
        assert rates is not None, "wires of one are made by of_one"
        moved = [0.0]
        for channel in edge.memory_bytes if edge.memory == "dram" else ():
            others = (other for other in self.edges if other.memory == "dram" and other.once == edge.once)
            moved.append(fsum(other.memory_bytes.get(channel, 0.0) for other in others) / rates.dram)
        return max(edge.core_bytes / (rates.gather if way.gathers else rates.stream), *moved)

    def _cycles(self, number: int, way: Path) -> list[tuple[int, float]]:
        """Links and ports of an edge on a way, and the cycles that each carries for it."""
        once = self.edges[number].once
        known = self.known.get((id(way), once))
        if known is None:
            assert self.rates is not None, "wires of one are made by of_one"
            made: list[tuple[int, float]] = []
            for item, size in way.loads():
                place = self.numbers.setdefault((item, once), len(self.busy))
                if place == len(self.busy):
                    self.busy.append(0.0)
                    self.users.append(set())
                made.append((place, size / self.rates.over(item)))
            known = self.known[id(way), once] = way, made
        return known[1]

    def _takes(self, number: int, way: Path) -> float:
        """Cycles of one edge on a way."""
        busy = self.busy
        return max(self.least[number], max((busy[item] for item, _ in self._cycles(number, way)), default=0.0))

    def moved(self, places: Mapping[str, tuple[int, int]]) -> bool:
        """Move ops if all transfers together take less time by it."""
        numbers = sorted({number for name in places for number in self.near.get(name, ())})
        before = {name: self.ops[name] for name in places}
        self.ops |= {name: evolve(self.ops[name], grid_loc=at) for name, at in places.items()}
        ways = {number: self._path(number) for number in numbers}
        change: dict[int, float] = {}
        for number in numbers:
            for sign, way in ((-1.0, self.found[number]), (1.0, ways[number])):
                for item, cycles in self._cycles(number, way):
                    change[item] = change.get(item, 0.0) + sign * cycles
        touched, old = set(numbers), dict[int, float]()
        for item, cycles in change.items():
            if abs(cycles) > LEAST:
                old[item] = self.busy[item]
                self.busy[item] += cycles
                touched |= self.users[item]
        now = {n: self._takes(n, ways.get(n, self.found[n])) for n in sorted(touched)}
        if fsum([*now.values(), *(-self.takes[n] for n in now)]) >= -LEAST:
            self.ops |= before
            for item, cycles in old.items():
                self.busy[item] = cycles
            return False
        for number, way in ways.items():
            for item, _ in self._cycles(number, self.found[number]):
                self.users[item].discard(number)
            for item, _ in self._cycles(number, way):
                self.users[item].add(number)
            self.found[number] = way
        for number, cycles in now.items():
            self.takes[number] = cycles
        return True
