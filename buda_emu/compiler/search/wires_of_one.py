"""Where the ops of an epoch of a single input stand: it waits for each transfer in turn, so what counts is how long all
of them take together, each at its own rate or that of the fullest link or port on its way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Netlist, Op, Queue, evolve
from buda_emu.spec.devices import Device
from buda_emu.timeline import Timing
from buda_emu.timing.epoch.tasks import step_cycles
from buda_emu.timing.result import EpochReport
from buda_emu.timing.transfers.flows import Flow
from buda_emu.timing.transfers.noc import Path, Way, path
from buda_emu.timing.transfers.rates import Rates, speed

LEAST = 0.5
"""Cycles that are none: sums of shares."""
SHARE = 1 / 64
"""What a cycle of a transfer counts where the time of the epoch is known."""
Ints = NDArray[np.int64]


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

    def _gains(self, now: Mapping[int, float], _ways: Mapping[int, Path]) -> bool:
        """Whether to keep a move after which these edges take so long, those near it on other ways."""
        return fsum([*now.values(), *(-self.takes[n] for n in now)]) < -LEAST

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
        if not self._gains(now, ways):
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


@dataclass(slots=True)
class TimedWires(WiresOfOne):
    """The same, where what counts is when the epoch is done: it is timed anew for each move. What all transfers take
    together counts a little, so that moves which gain nothing yet lead somewhere."""

    timed: Callable[[Ints], Timing] | None = None
    tasks: Sequence[range] = ()
    durations: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    best: float = inf

    @staticmethod
    def of_epoch(report: EpochReport, wires: WiresOfOne) -> "TimedWires":
        """Of wires as they are made for an epoch."""
        own = {item.name: getattr(wires, item.name) for item in fields(WiresOfOne)}
        schedule = report.timing.schedule
        made = TimedWires(**own, timed=schedule.runs(), tasks=report.timing.ways, durations=schedule.durations)
        made.best = made._done(made.durations, fsum(made.takes))
        return made

    def _done(self, durations: Ints, transfers: float) -> float:
        assert self.timed is not None
        return self.timed(durations).makespan + SHARE * transfers

    def _gains(self, now: Mapping[int, float], _ways: Mapping[int, Path]) -> bool:
        durations = self.durations.copy()
        for number in now:
            edge, way = self.edges[number], _ways.get(number, self.found[number])
            if edge.operand >= 0 and edge.memory == "none":
                a, b = self.ops[edge.source].grid_loc, self.ops[edge.target].grid_loc
                edge = replace(edge, hops=abs(a[0] - b[0]) + abs(a[1] - b[1]))
            tasks = self.tasks[number]
            first, each = step_cycles(edge, way, self._travel(number, way), len(tasks), self.rates)
            durations[tasks.start : tasks.stop] = each
            durations[tasks.start] = first
        done = self._done(durations, fsum(self.takes) + fsum([*now.values(), *(-self.takes[n] for n in now)]))
        if done >= self.best:
            return False
        self.best, self.durations = done, durations
        return True

    def _travel(self, number: int, way: Path) -> float:
        """Cycles of one edge over links and ports."""
        edge, rates = self.edges[number], self.rates
        rate = min(rates.gather if way.gathers else rates.stream, rates.of_packets(edge.packet))
        return max(edge.core_bytes / rate, max((self.busy[item] for item, _ in self._cycles(number, way)), default=0.0))
