"""Where the ops of an epoch of a single input stand: it waits for each transfer in turn, so what counts is how long all
of them take together, each at its own rate or that of the fullest link or port on its way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import fsum, inf
from typing import TypeVar

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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_Item = TypeVar("_Item", bound=np.generic)
LEAST = 0.5
"""Cycles that are none: sums of shares."""
SHARE = 1 / 64
"""What a cycle of a transfer counts where the time of the epoch is known."""


@dataclass(slots=True)
class WiresOfOne:
    """The ops of an epoch of a single input, as `wiring.Wires` has those of others; `near` are the edges of each op.

    Links and ports are numbered from 1, apart for what is loaded once: `busy` are the cycles of each. Paths are
    numbered, too, by their identity (`known`), and kept in `paths`: `links` [path, place] are what each goes over, 0
    where there are no more, `cycles` what each of these carries for it. `ways` is the path of each edge; `users`
    [link, edge] says which edges go over a link. `least` and `takes` are the cycles of each edge by itself, and as it
    is; `fullest` those of all transfers together: there is no limit below which they are short enough.
    """

    chip: Device
    ops: dict[str, Op]
    queues: Mapping[str, Queue]
    edges: Sequence[Flow]
    rates: Rates
    near: dict[str, list[int]]
    ways: Ints
    users: NDArray[np.bool_]
    numbers: dict[tuple[Way, bool], int] = field(default_factory=dict[tuple[Way, bool], int])
    known: dict[tuple[int, bool], int] = field(default_factory=dict[tuple[int, bool], int])
    paths: list[Path] = field(default_factory=list[Path])
    links: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    cycles: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    busy: Floats = field(default_factory=lambda: np.zeros(1))
    least: Floats = field(default_factory=lambda: np.zeros(0))
    takes: Floats = field(default_factory=lambda: np.zeros(0))
    fullest: float = 0.0

    @staticmethod
    def of(netlist: Netlist, edges: Sequence[Flow], paths: Sequence[Path], chip: Device) -> "WiresOfOne":
        """Of an epoch that is the whole netlist."""
        ops, count = dict(netlist.ops), len(edges)
        near: dict[str, list[int]] = {}
        for number, edge in enumerate(edges):
            for name in (edge.source, edge.target):
                if name in ops:
                    near.setdefault(name, []).append(number)
        nowhere, nobody = np.zeros(count, np.int64), np.zeros((1, count), np.bool_)
        found = WiresOfOne(chip, ops, netlist.queues, edges, speed(chip, {}).rates(), near, nowhere, nobody)
        for number, way in enumerate(paths):
            found.ways[number] = found._number(way, once=edges[number].once)
        for number, way in enumerate(found.ways.tolist()):
            np.add.at(found.busy, found.links[way], found.cycles[way])
            found.users[found.links[way], number] = True
        found.least = found._alone(paths)
        found.takes = found._takes(np.arange(count))
        found.fullest = fsum(found.takes.tolist())
        return found

    def _alone(self, paths: Sequence[Path]) -> Floats:
        """Cycles of each edge by itself: into a core, and out of the fullest of its channels of DRAM."""
        moved: dict[tuple[int, bool], list[float]] = {}
        for edge in self.edges:
            for channel, size in edge.memory_bytes.items() if edge.memory == "dram" else ():
                moved.setdefault((channel, edge.once), []).append(size)
        total = {channel: fsum(sizes) / self.rates.dram for channel, sizes in moved.items()}
        found = np.zeros(len(self.edges))
        for number, (edge, way) in enumerate(zip(self.edges, paths, strict=True)):
            own = [total[channel, edge.once] for channel in edge.memory_bytes] if edge.memory == "dram" else []
            found[number] = max(edge.core_bytes / (self.rates.gather if way.gathers else self.rates.stream), 0.0, *own)
        return found

    def _number(self, way: Path, *, once: bool) -> int:
        """The number of a path; from now on it and all that it goes over have one."""
        known = self.known.get((id(way), once))
        if known is not None:
            return known
        number, loads = len(self.paths), list(way.loads())
        self.known[id(way), once] = number
        self.paths.append(way)
        self.links = _grown(self.links, (number + 1, len(loads)))
        self.cycles = _grown(self.cycles, (number + 1, len(loads)))
        for place, (item, size) in enumerate(loads):
            self.links[number, place] = self.numbers.setdefault((item, once), len(self.numbers) + 1)
            self.cycles[number, place] = size / self.rates.over(item)
        self.busy = _grown(self.busy, (len(self.numbers) + 1,))
        self.users = _grown(self.users, (len(self.numbers) + 1, len(self.edges)))
        return number

    def _takes(self, edges: Ints) -> Floats:
        """Cycles of edges, each on its way."""
        busy = self.busy[self.links[self.ways[edges]]]
        return np.maximum(self.least[edges], busy.max(1, initial=0.0))

    def _path(self, number: int) -> Path:
        edge = self.edges[number]
        name, other = (edge.source, edge.target) if edge.operand < 0 else (edge.target, edge.source)
        return path(edge, self.ops[name], self.queues.get(other) or self.ops[other], self.chip)

    def _gains(self, edges: Ints, change: float) -> bool:  # noqa: ARG002
        """Whether to keep a move after which these edges take another time, and all transfers `change` more."""
        return change < -LEAST

    def moved(self, places: Mapping[str, tuple[int, int]]) -> bool:
        """Move ops if all transfers together take less time by it."""
        numbers = sorted({number for name in places for number in self.near.get(name, ())})
        if not numbers:
            return False
        before = {name: self.ops[name] for name in places}
        self.ops |= {name: evolve(self.ops[name], grid_loc=at) for name, at in places.items()}
        new = [self._number(self._path(number), once=self.edges[number].once) for number in numbers]
        old = self.ways[numbers]
        links, cycles = self.links[[*old, *new]], self.cycles[[*old, *new]]
        cycles[: len(old)] *= -1
        change = np.bincount(links.ravel(), cycles.ravel(), len(self.busy))
        changed = np.flatnonzero(np.abs(change) > LEAST)
        touched = np.bitwise_or.reduce(self.users[changed], 0)
        touched[numbers] = True
        edges, held = np.flatnonzero(touched), self.busy[changed]
        self.busy[changed] += change[changed]
        self.ways[numbers] = new
        now, then = self._takes(edges), self.takes[edges]
        other = now != then
        if not self._gains(edges, fsum([*now[other].tolist(), *(-then[other]).tolist()])):
            self.ops |= before
            self.busy[changed] = held
            self.ways[numbers] = old
            return False
        for number, less, more in zip(numbers, links[: len(old)], links[len(old) :], strict=True):
            self.users[less, number] = False
            self.users[more, number] = True
        self.takes[edges] = now
        self.fullest = fsum(self.takes.tolist())
        return True


def _grown(table: NDArray[_Item], shape: tuple[int, ...]) -> NDArray[_Item]:
    """With room for such a shape: the table itself, or a larger one whose new places are 0."""
    if all(have >= want for have, want in zip(table.shape, shape, strict=True)):
        return table
    more = tuple(have if have >= want else max(want, 2 * have) for have, want in zip(table.shape, shape, strict=True))
    found = np.zeros(more, table.dtype)
    found[tuple(slice(0, have) for have in table.shape)] = table
    return found


@dataclass(slots=True)
class TimedWires(WiresOfOne):
    """The same, where what counts is when the epoch is done: it is timed anew for each move, but for what channels of
    DRAM have to do. What all transfers take together counts a little, so that moves which gain nothing yet lead
    somewhere."""

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
        made.best = made._done(made.durations, made.fullest)
        return made

    def _done(self, durations: Ints, transfers: float) -> float:
        assert self.timed is not None
        return self.timed(durations).makespan + SHARE * transfers

    def _gains(self, edges: Ints, change: float) -> bool:
        durations = self.durations.copy()
        for number in map(int, edges):
            edge, tasks = self.edges[number], self.tasks[number]
            if edge.operand >= 0 and edge.memory == "none":
                a, b = self.ops[edge.source].grid_loc, self.ops[edge.target].grid_loc
                edge = replace(edge, hops=abs(a[0] - b[0]) + abs(a[1] - b[1]))
            travel, way = self._travel(number)
            first, each = step_cycles(edge, way, travel, len(tasks), self.rates)
            durations[tasks.start : tasks.stop] = each
            durations[tasks.start] = first
        done = self._done(durations, self.fullest + change)
        if done >= self.best:
            return False
        self.best, self.durations = done, durations
        return True

    def _travel(self, number: int) -> tuple[float, Path]:
        """Cycles of one edge over links and ports, and its way."""
        edge, rates, at = self.edges[number], self.rates, int(self.ways[number])
        way = self.paths[at]
        rate = min(rates.gather if way.gathers else rates.stream, rates.of_packets(edge.packet))
        return max(edge.core_bytes / rate, float(self.busy[self.links[at]].max(initial=0.0))), way
