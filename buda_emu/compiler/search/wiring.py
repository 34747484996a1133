"""Places of the ops of an epoch: exchanged and moved so that wires are short and results can go from core to core."""

import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.place.routed import Routing
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.netlist.sourced import evolve
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.moving import MovingPaths, steps_of
from buda_emu.performance.timing.transfers.noc import Link, Path, ends_of, path
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import Device

SINGLE = 4
"""Producers that are tried alone: all together may need more cores than there are."""


@dataclass(frozen=True, slots=True)
class Way:
    """Whose grids are changed first, the producers' or the `readers`'; those of the others where none of these is of
    use. `only` of what one op gives, "" of all."""

    readers: bool = False
    only: str = ""


def ways(found: Placement, names: Container[str]) -> list[Way]:
    """What to try where some of these ops read through DRAM for lack of streams."""
    sources = list(dict.fromkeys(source for _, source in _crowded(found, names)))
    if not sources:
        return []
    alone = [Way(only=source) for source in sources[:SINGLE]] if len(sources) > 1 else []
    return [Way(), Way(readers=True), *alone]


def _crowded(found: Placement, names: Container[str]) -> list[tuple[str, str]]:
    """Reader and source of what goes through DRAM for lack of streams."""
    return [edge for edge, detour in found.detours.items() if edge[0] in names and detour.kind == "streams"]


def connected(
    table: CandidateTable, found: Placement, names: Container[str], way: Way
) -> tuple[CandidateTable, dict[str, str]] | None:
    """The line with only such divisions of some ops as their cores have streams for, and why, for each of these;
    `names` of the ops that are asked about. None where nothing goes through DRAM for lack of streams, or nothing else
    is possible."""
    routing = Routing.of(found)
    tables = list(table.found)
    bests = list(table.best)
    why = dict[str, str]()
    for reader, source in _crowded(found, names):
        if way.only not in ("", source):
            continue
        for name in (reader, source) if way.readers else (source, reader):
            own = [choice for choice in table.found[table.index[name]] if _connects(routing, source, name, choice)]
            if own:
                number = table.index[name]
                tables[number] = own
                bests[number] = [choice for choice in table.best[number] if choice in own] or own
                why[name] = found.detours[reader, source].why
                break
    return (replace(table, found=tables, best=bests), why) if why else None


def _connects(routing: Routing, source: str, name: str, choice: Choice) -> bool:
    """Whether all readers of a source had their pipes, if one op were divided so."""
    placed: Placed = routing.found.ops[name]
    held = placed.held if "table" in placed.op.attrs else choice.held
    return routing.would_connect(source, {name: replace(placed, blocks=choice.blocks, held=held)})


Floats = NDArray[np.float64]
LEAST = 0.5
"""Differences of cycles that do not count: sums of shares."""
SHARE = 1 / 64
"""What a cycle of a transfer counts where the time of the epoch is known."""


class WiresOfOne:
    """The ops of an epoch of a single input, as `wiring.Wires` has those of others.

    `fullest`: the cycles of all transfers together, each by itself or as the fullest of its `paths` has it: there is no
    limit below which they are short enough.
    """

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Of an epoch that is the whole netlist."""
        self.edges = edges
        self.rates = speed(chip, {}).rates()
        self.paths = MovingPaths(ops=netlist.ops, queues=netlist.queues, edges=edges, chip=chip, rates=self.rates)
        self.paths.with_least(self._alone())
        self.fullest = fsum(self.paths.takes.tolist())

    def _alone(self) -> Floats:
        """Cycles of each edge by itself: into a core, and out of the fullest of its channels of DRAM."""
        moved: dict[tuple[int, bool], list[float]] = {}
        for edge in self.edges:
            for channel, size in edge.memory_bytes.items() if edge.memory == "dram" else ():
                moved.setdefault((channel, edge.once), []).append(size)
        total = {channel: fsum(sizes) / self.rates.dram for channel, sizes in moved.items()}
        found = np.zeros(len(self.edges))
        for number, (edge, gathers) in enumerate(zip(self.edges, self.paths.gathers, strict=True)):
            own = [total[channel, edge.once] for channel in edge.memory_bytes] if edge.memory == "dram" else []
            found[number] = max(edge.core_bytes / (self.rates.gather if gathers else self.rates.stream), 0.0, *own)
        return found

    def _gains(self, change: float) -> bool:
        """Whether to keep a move after which all transfers take `change` cycles more."""
        return change < -LEAST

    def moved(self, places: Mapping[str, tuple[int, int]]) -> bool:
        """Move ops if all transfers together take less time by it."""
        move = self.paths.weigh(places, LEAST)
        if move is None:
            return False
        other = move.takes != move.took
        if not self._gains(fsum([*move.takes[other].tolist(), *(-move.took[other]).tolist()])):
            self.paths.take_back(move)
            return False
        self.paths.keep(move)
        self.fullest = fsum(self.paths.takes.tolist())
        return True


class TimedWires(WiresOfOne):
    """The same, where what counts is when the epoch is done: it is timed again for each move, but for what channels of
    DRAM have to do. What all transfers take together counts a little, so that moves which gain nothing yet lead
    somewhere. `now`: the cycles of both; a move is kept that costs less than `slack` cycles."""

    def __init__(self, netlist: Netlist, report: EpochReport, chip: Device) -> None:
        """Of an epoch that is the whole netlist, as it is timed."""
        super().__init__(netlist, report.edges, chip)
        schedule = report.timing.run.schedule
        rates = self.rates
        slowest = [rates.gather if gathers else rates.stream for gathers in self.paths.gathers]
        alone = [
            edge.core_bytes / min(rate, rates.of_packets(edge.packet))
            for edge, rate in zip(self.edges, slowest, strict=True)
        ]
        self._steps = steps_of(self.edges, report.timing.run.ways, alone, rates)
        self.makespan = schedule.makespans()
        self.durations = schedule.durations
        self.now = self._done(self.fullest)
        self.slack = 0.0

    def _done(self, transfers: float) -> float:
        return self.makespan(self.durations) + SHARE * transfers

    def _gains(self, change: float) -> bool:
        before = self.durations
        self.durations = self.durations.copy()
        self.paths.time(self._steps, self.durations)
        done = self._done(self.fullest + change)
        if done >= self.now + self.slack:
            self.durations = before
            return False
        self.now = done
        return True


Ints = NDArray[np.int64]
PATIENCE = 120
"""Moves without a gain after which no more are tried."""
HEAT = 0.01
"""The share of an epoch's cycles that a move may cost at first, on the average, where such moves are kept."""


@dataclass(slots=True)
class Wires:
    """The ops of one epoch, their edges, and the bytes that each link carries for one input, by the link's number.

    A path is known as numbers of its links, with the bytes over each: `known`, by the identity of the path, which is
    kept beside them.
    """

    chip: Device
    ops: dict[str, Op]
    queues: Mapping[str, Queue]
    edges: Sequence[Flow]
    near: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    found: list[Path] = field(default_factory=list[Path])
    loads: Floats = field(default_factory=lambda: np.zeros(0))
    numbers: dict[Link, int] = field(default_factory=dict[Link, int])
    known: dict[int, tuple[Path, Ints, Floats]] = field(default_factory=dict[int, tuple[Path, Ints, Floats]])

    @staticmethod
    def of(netlist: Netlist, edges: Sequence[Flow], paths: Sequence[Path], chip: Device) -> "Wires":
        """Of an epoch that is the whole netlist."""
        kept = [(edge, way) for edge, way in zip(edges, paths, strict=True) if not edge.once]
        wires = Wires(chip, dict(netlist.ops), netlist.queues, [edge for edge, _ in kept], found=[w for _, w in kept])
        for number, edge in enumerate(wires.edges):
            for name in (edge.source, edge.target):
                if name in wires.ops:
                    wires.near.setdefault(name, []).append(number)
            at, size = wires._over(wires.found[number])
            np.add.at(wires.loads, at, size)
        return wires

    @property
    def fullest(self) -> float:
        """Bytes over the fullest link."""
        return float(self.loads.max(initial=0.0))

    def _over(self, way: Path) -> tuple[Ints, Floats]:
        """The links of a path and the bytes over them; all have a load from now on."""
        if id(way) not in self.known:
            at = [self.numbers.setdefault(link, len(self.numbers)) for link in way.links]
            self.known[id(way)] = way, np.array(at, np.int64), np.array(list(way.links.values()), np.float64)
            self.loads = np.concatenate([self.loads, np.zeros(len(self.numbers) - len(self.loads))])
        _, links, sizes = self.known[id(way)]
        return links, sizes

    def _path(self, number: int) -> Path:
        edge = self.edges[number]
        return path(edge, *ends_of(edge, self.ops, self.queues), self.chip)

    def moved(self, places: Mapping[str, tuple[int, int]], transposed: Container[str] = ()) -> bool:
        """Move ops, and turn some by a quarter, if the links' loads get better by it."""
        numbers = sorted({number for name in places for number in self.near.get(name, ())})
        if not numbers:
            return False
        before = {name: self.ops[name] for name in places}
        self.ops |= {
            name: evolve(op, grid_loc=places[name], grid_transpose=op.grid_transpose != (name in transposed))
            for name, op in before.items()
        }
        ways = {number: self._path(number) for number in numbers}
        links: list[Ints] = []
        sizes: list[Floats] = []
        for number, way in ways.items():
            (old, less) = self._over(self.found[number])
            (new, more) = self._over(way)
            links += (old, new)
            sizes += (-less, more)
        at = np.concatenate(links)
        size = np.concatenate(sizes)
        change = np.bincount(at, size, len(self.loads))
        changed = np.flatnonzero(change)
        have = self.loads[changed]
        will = np.maximum(have + change[changed], 0.0)
        if fsum([*_weight(have).tolist(), *(-_weight(will)).tolist()]) <= 0:  # in whatever order links come out of sets
            self.ops |= before
            return False
        np.add.at(self.loads, at, size)
        for number, way in ways.items():
            self.found[number] = way
        return True


def _weight(loads: Floats) -> Floats:
    """Fourth powers, by products: they are the same on every machine."""
    square = loads * loads
    return square * square


def rewired(
    decisions: Mapping[str, PlacementDecision],
    wires: Wires | WiresOfOne,
    grid: tuple[int, int],
    enough: float,
    tries: int,
    patience: int = PATIENCE,
    *,
    regions: bool = False,
) -> dict[str, PlacementDecision]:
    """The decisions of one chip's ops with places that load the links less; ends when the fullest link carries no more
    than `enough` bytes. `regions`: all that stands in two of them may be exchanged, too."""
    positions = _Positions(decisions, grid)

    def tried(_number: int, draw: random.Random) -> bool:
        change = positions.drawn(draw, regions=regions)
        if not change or not wires.moved(change):
            return False
        positions.take(change)
        return True

    _tried_moves(tried, wires, random.Random(len(decisions)), enough, tries, patience)
    return {name: replace(decision, at=positions.places[name]) for name, decision in decisions.items()}


def rewired_turning(
    decisions: Mapping[str, PlacementDecision], wires: Wires, grid: tuple[int, int], enough: float, tries: int
) -> dict[str, PlacementDecision]:
    """As `rewired`, where grids may be transposed, too: all that a column of cores takes in comes down one link,
    what a row takes in comes down one for each core."""
    positions = _Positions(decisions, grid)

    def tried(number: int, draw: random.Random) -> bool:
        name = positions.drawn_to_transpose(draw) if number % 2 else ""
        change = positions.transposed(draw, name) if name else positions.drawn(draw)
        if not change or not wires.moved(change, {name}):
            return False
        positions.take(change, name)
        return True

    _tried_moves(tried, wires, random.Random(len(decisions)), enough, tries, PATIENCE)
    return {
        name: replace(
            decision,
            at=positions.places[name],
            grid_transpose=decision.grid_transpose != (positions.size(name) != decision.size),
        )
        for name, decision in decisions.items()
    }


def _tried_moves(
    tried: Callable[[int, random.Random], bool],
    wires: Wires | WiresOfOne,
    draw: random.Random,
    enough: float,
    tries: int,
    patience: int,
) -> None:
    """Draw moves by number until the fullest link carries no more than `enough` bytes, or `patience` of them in a row
    have gained nothing. `tried`: whether one was made."""
    stale = 0
    for number in range(tries):
        if wires.fullest <= enough or stale > patience:
            return
        stale = 0 if tried(number, draw) else stale + 1


def annealed(
    decisions: Mapping[str, PlacementDecision], wires: TimedWires, grid: tuple[int, int], tries: int
) -> dict[str, PlacementDecision]:
    """The decisions of an epoch of a single input with the best places that were come by: at first a move is kept that
    takes a little longer, too, and less and less so, so that the ops find a way out of places that no one move makes
    better."""
    draw = random.Random(len(decisions))
    positions = _Positions(decisions, grid)
    best = wires.now
    found = dict(positions.places)
    heat = HEAT * best
    for number in range(tries):
        wires.slack = heat * (1 - number / tries) ** 2 * 2 * draw.random()
        change = positions.drawn(draw, regions=True)
        if change and wires.moved(change):
            positions.take(change)
            if wires.now < best:
                best = wires.now
                found = dict(positions.places)
    return {name: replace(decision, at=found[name]) for name, decision in decisions.items()}


class _Positions:
    """Where the ops of one chip stand while they are moved."""

    def __init__(self, decisions: Mapping[str, PlacementDecision], grid: tuple[int, int]) -> None:
        self._names = sorted(decisions)
        self._grid = grid
        self._cores = CoreGrid(*grid)
        self.places = {name: decisions[name].at for name in self._names}
        self._sizes = {name: decisions[name].size for name in self._names}
        self._alike: dict[tuple[int, int], list[str]] = {}
        for name in self._names:
            self._alike.setdefault(self._sizes[name], []).append(name)
            self._cores.block(self.places[name], self._sizes[name])

    def drawn(self, draw: random.Random, *, regions: bool = False) -> dict[str, tuple[int, int]]:
        """Ops with other places: one on free cores, two of equal grids exchanged, or all of two `regions`; none where
        what was drawn is not a move."""
        name = draw.choice(self._names)
        grid = self._grid
        shape = self._sizes[name]
        same = [other for other in self._alike[shape] if other != name]
        if regions and draw.random() < 0.5:
            at = draw.randrange(grid[0] - shape[0] + 1), draw.randrange(grid[1] - shape[1] + 1)
            return exchanged(name, at, self.places, self._sizes)
        if same and draw.random() < 0.5:
            other = draw.choice(same)
            return {name: self.places[other], other: self.places[name]}
        self._cores.release(self.places[name], shape)
        free = self._cores.places(shape)
        self._cores.block(self.places[name], shape)
        at = draw.choice(free)  # its own place is one of them
        return {name: at} if at != self.places[name] else {}

    def size(self, name: str) -> tuple[int, int]:
        """Rows and columns of the chip that an op takes."""
        return self._sizes[name]

    def drawn_to_transpose(self, draw: random.Random) -> str:
        """An op, "" where it takes as many rows as columns."""
        name = draw.choice(self._names)
        rows, columns = self._sizes[name]
        return name if rows != columns else ""

    def transposed(self, draw: random.Random, name: str) -> dict[str, tuple[int, int]]:
        """A place with room for an op with a transposed grid; none if there is none."""
        rows, columns = shape = self._sizes[name]
        self._cores.release(self.places[name], shape)
        free = self._cores.places((columns, rows))
        self._cores.block(self.places[name], shape)
        return {name: draw.choice(free)} if free else {}

    def take(self, change: Mapping[str, tuple[int, int]], transposed: str = "") -> None:
        """Put ops where they were moved."""
        for name in change:
            self._cores.release(self.places[name], self._sizes[name])
        if transposed:
            rows, columns = self._sizes[transposed]
            self._alike[rows, columns].remove(transposed)
            self._sizes[transposed] = columns, rows
            self._alike.setdefault((columns, rows), []).append(transposed)
        for name, at in change.items():
            self._cores.block(at, self._sizes[name])
        self.places |= change


def exchanged(
    name: str, at: tuple[int, int], places: Mapping[str, tuple[int, int]], sizes: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Where ops stand when one of them changes places with all that stands in another rectangle of its size; nothing
    where that overlaps its own or cuts through an op."""
    (row, column) = places[name]
    (height, width) = sizes[name]
    down = at[0] - row
    right = at[1] - column
    if abs(down) < height and abs(right) < width:
        return {}
    change = {name: at}
    for other, (top, left) in places.items():
        high, wide = sizes[other]
        inside = at[0] <= top <= at[0] + height - high and at[1] <= left <= at[1] + width - wide
        if inside:
            change[other] = top - down, left - right
        elif at[0] < top + high and top < at[0] + height and at[1] < left + wide and left < at[1] + width:
            return {}
    return change
