"""Where the ops of an epoch of a single input stand: it waits for each transfer in turn, so what counts is how long all
of them take together, each at its own rate or that of the fullest link or port on its way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from buda_emu.netlist.model import Netlist, Op, Queue, evolve
from buda_emu.spec.devices import Device
from buda_emu.timing.transfers.flows import Flow
from buda_emu.timing.transfers.noc import Path, Way, path
from buda_emu.timing.transfers.rates import Rates, speed

LEAST = 0.5
"""Cycles that are none: sums of shares."""


@dataclass(slots=True)
class WiresOfOne:
    """The ops of an epoch of a single input, as `wiring.Wires` has those of others; `found` is the path of each edge,
    `near` the edges of each op.

    Links and ports are numbered, apart for what is loaded once: `busy` are the cycles of each, `users` the edges over
    it; `least` and `takes` are the cycles of each edge by itself, and as it is.
    """

    chip: Device
    ops: dict[str, Op]
    queues: Mapping[str, Queue]
    edges: Sequence[Flow]
    rates: Rates
    near: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    found: list[Path] = field(default_factory=list[Path])
    numbers: dict[tuple[Way, bool], int] = field(default_factory=dict[tuple[Way, bool], int])
    known: dict[tuple[int, bool], tuple[Path, list[tuple[int, float]]]] = field(
        default_factory=dict[tuple[int, bool], tuple[Path, list[tuple[int, float]]]]
    )
    busy: list[float] = field(default_factory=list[float])
    users: list[set[int]] = field(default_factory=list[set[int]])
    least: list[float] = field(default_factory=list[float])
    takes: list[float] = field(default_factory=list[float])

    @staticmethod
    def of(netlist: Netlist, edges: Sequence[Flow], paths: Sequence[Path], chip: Device) -> "WiresOfOne":
        """Of an epoch that is the whole netlist."""
        rates = speed(chip, {}).rates()
        found = WiresOfOne(chip, dict(netlist.ops), netlist.queues, edges, rates, found=list(paths))
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

    def _path(self, number: int) -> Path:
        edge = self.edges[number]
        name, other = (edge.source, edge.target) if edge.operand < 0 else (edge.target, edge.source)
        return path(edge, self.ops[name], self.queues.get(other) or self.ops[other], self.chip)

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
