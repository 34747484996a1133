"""Modelled epochs as a picture of lanes, for a trace.

Three groups of lanes for each epoch. Cores: the unpack, math and pack thread of each op, whose cores all work alike,
and counters of what waits in front of it. Transfers: a lane for each pair of ops or op and queue, and counters of what
the busiest NoC links carry. Memory: a lane for each stream of a channel. Times are cycles.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from buda_emu.timeline import Schedule, Timing
from buda_emu.timeline.picture import Counter, Lane, Slice, TimelinePicture
from buda_emu.timing.epoch import EpochTiming, OpTiming
from buda_emu.timing.result import EpochReport, PerfRun

THREADS: Final = ("unpack", "math", "pack")
_CORES, _TRANSFERS, _MEMORY = range(3)
_ROOMS: Final = ("cores", "transfers", "memory")


def run_picture(run: PerfRun) -> TimelinePicture:
    """The whole run: epochs one after the other, each once, as many inputs as were modelled."""
    lanes: list[Lane] = []
    slices: list[Slice] = []
    counters: list[Counter] = []
    begin = 0
    for epoch in run.epochs:
        drawn = _Epoch(epoch, begin, len(lanes))
        lanes += drawn.lanes
        slices += drawn.tasks()
        counters += drawn.counters()
        begin += epoch.timing.timing.makespan
    about = {"netlist": run.netlist, "arch": run.arch, "clock_mhz": run.clock, "buda_emu": run.version}
    return TimelinePicture(
        f"{run.netlist} on {run.arch}", lanes, slices, counters=counters, per_microsecond=run.clock, about=about
    )


class _Epoch:
    def __init__(self, report: EpochReport, begin: int, first_lane: int) -> None:
        self._report = report
        self._model: EpochTiming = report.timing
        self._timing: Timing = report.timing.timing
        self._schedule: Schedule = report.timing.schedule
        self._begin = begin
        self._ops: Mapping[str, OpTiming] = {op.op: op for op in report.timing.ops}
        chips = ", ".join(f"chip {chip}" for chip in report.chips)
        title = f"{report.program}: {' + '.join(report.graphs)} ({chips})"
        self._groups = tuple(f"{title}, {name}" for name in _ROOMS)
        self.lanes: list[Lane] = []
        self._lane: list[int] = []  # the first of each unit
        for name in self._timing.units:
            own = [f"{name}: {kind}" for kind in THREADS] if name in self._ops else [name]
            self.lanes += [Lane(text, self._groups[self._room(name)]) for text in own]
            self._lane.append(first_lane + len(self.lanes) - len(own))

    def _room(self, unit: str) -> int:
        if unit in self._ops:
            return _CORES
        return _MEMORY if unit.startswith(("DRAM channel", "host link")) else _TRANSFERS

    def tasks(self) -> Iterator[Slice]:
        """Of an op as its threads work on it."""
        timing = self._timing
        units: list[int] = timing.unit.tolist()
        tasks, seen = [0] * len(timing.units), [0] * len(timing.units)
        for unit in units:
            tasks[unit] += 1
        for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
            each = max(tasks[unit] // self._model.modelled, 1)
            entry, part = divmod(seen[unit], each)
            seen[unit] += 1
            name = timing.units[unit]
            pieces: Sequence[tuple[float, float]] = ((start, end),)
            if name in self._ops:
                pieces = _threads(self._ops[name], start, end)
            for number, (from_, to) in enumerate(pieces):
                at = self._begin + from_, self._begin + to
                yield Slice(self._lane[unit] + number, *at, f"input {entry}", "model", {"input": entry, "part": part})

    def counters(self) -> Iterator[Counter]:
        """What waits in front of ops, and what links carry."""
        yield from self._waiting()
        yield from self._links()

    def _waiting(self) -> Iterator[Counter]:
        """Parts that have arrived at an op and were not consumed yet."""
        consumed = {
            name.removesuffix(": parts consumed"): index
            for index, name in enumerate(self._timing.objects) if name.endswith(": parts consumed")
        }  # fmt: skip
        for index, name in enumerate(self._timing.objects):
            source, _, op = name.rpartition(" in ")
            if not source or op not in consumed:
                continue
            up, arrived = self._schedule.changes_of(index, self._timing)
            down, used = self._schedule.changes_of(consumed[op], self._timing)
            rises = dict(zip(up.tolist(), arrived.tolist(), strict=True))
            drops = dict(zip(down.tolist(), used.tolist(), strict=True))
            have = taken = 0
            values: dict[int, int] = {}
            for time in sorted({*rises, *drops}):
                have, taken = rises.get(time, have), drops.get(time, taken)
                values[time] = max(have - taken, 0)
            yield self._counter(_CORES, f"{source} in front of {op}", "parts", values)

    def _links(self) -> Iterator[Counter]:
        """Bytes in a cycle over the busiest links, from the transfers whose way they are on."""
        timing = self._timing
        tasks: dict[str, list[tuple[int, int]]] = {}
        units: list[int] = timing.unit.tolist()
        for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
            name = timing.units[unit]
            if self._room(name) == _TRANSFERS:
                tasks.setdefault(name, []).append((start, end))
        shown = {item.name for item in self._model.links}
        changes: dict[str, dict[int, float]] = {}
        for edge, path in zip(self._report.edges, self._report.paths, strict=True):
            own = tasks.get(f"{edge.source} > {edge.target}", ())
            for link, size in path.links.items():
                if str(link) not in shown:
                    continue
                moments = changes.setdefault(str(link), {})
                each = size * self._model.modelled / max(len(own), 1)
                for start, end in own:
                    rate = each / max(end - start, 1)
                    moments[start] = moments.get(start, 0.0) + rate
                    moments[end] = moments.get(end, 0.0) - rate
        for link, moments in changes.items():
            rate = 0.0
            values: dict[int, float] = {}
            for time in sorted(moments):
                rate += moments[time]
                values[time] = round(max(rate, 0.0), 3)
            yield self._counter(_TRANSFERS, link, "bytes a cycle", values)

    def _counter(self, room: int, name: str, unit: str, values: Mapping[int, float]) -> Counter:
        times = [self._begin + time for time in values]
        return Counter(name, unit, times, list(values.values()), self._groups[room])


def _threads(op: OpTiming, start: int, end: int) -> Sequence[tuple[float, float]]:
    """When the threads of a core work on a part: unpack from its start, pack to its end, math between them."""
    length = end - start
    unpack, math, pack = (min(cycles / op.parts, length) for cycles in op.cost.threads)
    lead = (length - math) / 2
    return (start, start + unpack), (start + lead, start + lead + math), (end - pack, end)
