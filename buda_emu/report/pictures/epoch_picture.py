"""Modelled epochs as a picture of lanes, for a trace.

There are three groups of lanes for each epoch. Cores: a slice in which each chip loads the epoch; then the unpack, math
and pack thread of each op, whose cores all work alike, and counters of parts that wait in front of ops on the critical
path. Transfers: a lane for each pair of ops or op and queue, and counters of the load of the busiest NoC links and
ports. Memory: a lane for each stream of a channel. Slices have the names of their units; arrows lead along the critical
path, and to each input of an op from the task that it waited for longest. The steady state is a stretch. Times are
cycles.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from buda_emu.performance.timeline import Schedule, Timing
from buda_emu.performance.timeline.picture import Counter, Flow, Lane, Slice, Stretch, TimelinePicture
from buda_emu.performance.timing.epoch.pipeline import describe_fill, extend_until_full, steady
from buda_emu.performance.timing.epoch.result import EpochTiming, OpTiming
from buda_emu.performance.timing.result import EpochReport, PerfRun, hypothetical
from buda_emu.performance.timing.transfers.loading import ChipLoad

THREADS: Final = ("unpack", "math", "pack")
LINKS: Final = 4  # and ports, whose load is counted, the busiest
_MOST_TASKS: Final = 50_000  # of an epoch, that more inputs may bring: a viewer has to hold them all
_CORES, _TRANSFERS, _MEMORY = range(3)
_ROOMS: Final = ("cores", "transfers", "memory")


def run_picture(run: PerfRun) -> TimelinePicture:
    """Return the picture of a run: epochs one after the other, each once, with as many inputs as fill its pipeline
    unless they are too many to draw. Its stretch says how far the pipeline is filled."""
    lanes: list[Lane] = []
    slices: list[Slice] = []
    counters: list[Counter] = []
    flows: list[Flow] = []
    chain: list[int] = []
    stretches: list[Stretch] = []
    begin = 0
    for epoch in run.epochs:
        drawn = _Epoch(epoch, begin, len(lanes), len(slices))
        lanes += drawn.lanes
        slices += drawn.slices
        flows += drawn.flows()
        chain += drawn.chain()
        stretches += drawn.stretches()
        counters += drawn.counters()
        begin += drawn.cycles
    about = {"netlist": run.netlist, "arch": run.arch, "clock_mhz": run.clock, "buda_emu": run.version}
    return TimelinePicture(
        f"{run.netlist} on {run.arch}",
        lanes,
        slices,
        flows,
        counters=counters,
        per_microsecond=run.clock,
        about=about,
        notes=list(_notes(run, begin)),
        chain=chain,
        stretches=stretches,
    )


def _notes(run: PerfRun, drawn: float) -> Iterator[str]:
    """Yield the sentences above a picture of `drawn` cycles: what is hypothetical, and which part of all runs it
    shows."""
    if run.assumed:
        yield f"{hypothetical(run.assumed).capitalize()}."
    total = sum(run.programs().values())
    if drawn < 0.999 * total:
        yield (
            f"Drawn are {drawn:,.0f} cycles: each epoch once, with as many inputs as fill its pipeline. "
            f"All runs of the programs take {total:,.0f} cycles."
        )


def loading_name(load: ChipLoad) -> str:
    """Return the name of the lane in which a chip loads an epoch."""
    return f"load, chip {load.chip}"


def loading_slices(loads: Sequence[ChipLoad], begin: int, first_lane: int) -> Iterator[Slice]:
    """Yield the slice in which each chip loads its epoch from cycle `begin` on, each in a lane of its own from
    `first_lane` on.
    """
    for lane, load in enumerate(loads, first_lane):
        details = {"bytes": load.bytes, "cores": load.cores, "kernels": load.kernels}
        yield Slice(
            lane=lane,
            start=begin,
            end=begin + round(load.total),
            name=loading_name(load),
            category="load",
            details=details,
        )


class _Epoch:
    """The lanes, slices, arrows and counters of one epoch in the picture of a run."""

    def __init__(self, report: EpochReport, begin: int, first_lane: int, first_slice: int) -> None:
        self._report = report
        self._model: EpochTiming = extend_until_full(report.timing, report.bottleneck.name, _MOST_TASKS)
        self._timing: Timing = self._model.run.timing
        self._schedule: Schedule = self._model.run.schedule
        loading = round(report.load.cycles)
        self._begin = begin + loading
        self.cycles = loading + self._timing.makespan
        self._ops: Mapping[str, OpTiming] = {op.op: op for op in report.timing.ops}
        chips = ", ".join(f"chip {chip}" for chip in report.chips)
        title = f"{report.program}: {' + '.join(report.graphs)} ({chips})"
        self._groups = tuple(f"{title}, {name}" for name in _ROOMS)
        self.lanes = [Lane(loading_name(load), self._groups[_CORES], title) for load in report.load.chips]
        self._lane: list[int] = []  # the first of each unit
        for name in self._timing.units:
            if name in self._ops:
                unit_lanes = [f"{name}: {kind}" for kind in THREADS]
            else:
                unit_lanes = [name]
            self.lanes += [Lane(text, self._groups[self._group_of(name)], title) for text in unit_lanes]
            self._lane.append(first_lane + len(self.lanes) - len(unit_lanes))
        if self._model.run.last_task >= 0:
            self._path = self._timing.critical_path(self._model.run.last_task)
        else:
            self._path = []
        self._of_task: list[tuple[int, int]] = []  # first and last slice of each task
        self._inputs: list[int] = []  # the input that each task is of
        self.slices = list(loading_slices(report.load.chips, begin, first_lane))
        self._add_slices(first_slice)

    def _group_of(self, unit: str) -> int:
        """Return the group of lanes to which a unit belongs: an index of `_ROOMS`."""
        if unit in self._ops:
            return _CORES
        if unit.startswith(("DRAM channel", "host link")):
            return _MEMORY
        return _TRANSFERS

    def _add_slices(self, first: int) -> None:
        """Add the slices of all tasks to `slices`; a task of an op has one for each thread. `first` is the number of
        the epoch's first slice in the whole picture."""
        timing = self._timing
        units: list[int] = timing.unit.tolist()
        tasks = [0] * len(timing.units)
        seen = [0] * len(timing.units)
        for unit in units:
            tasks[unit] += 1
        for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
            tasks_per_input = max(tasks[unit] // self._model.run.inputs, 1)
            entry, part = divmod(seen[unit], tasks_per_input)
            seen[unit] += 1
            name = timing.units[unit]
            pieces: Sequence[tuple[float, float]] = ((start, end),)
            if name in self._ops:
                pieces = _thread_spans(self._ops[name], start, end)
            kinds: Sequence[str] = THREADS if name in self._ops else (_ROOMS[self._group_of(name)],)
            details = {"input": entry, "part": part}
            self._of_task.append((first + len(self.slices), first + len(self.slices) + len(pieces) - 1))
            self._inputs.append(entry)
            for number, (from_, to) in enumerate(pieces):
                self.slices.append(
                    Slice(
                        lane=self._lane[unit] + number,
                        start=self._begin + from_,
                        end=self._begin + to,
                        name=name,
                        category=kinds[number],
                        details=details,
                    )
                )

    def flows(self) -> Iterator[Flow]:
        """Yield arrows along the critical path, and to each input of an op from the task that it waited for longest."""
        cause: list[int] = self._timing.cause.tolist()
        shown = {task: f"critical path, {self._wait_reason(task)}" for task in self._path if cause[task] >= 0}
        waited: list[int] = self._timing.waiting_times().tolist()
        longest: dict[tuple[int, int], int] = {}
        for task, unit in enumerate(self._timing.unit.tolist()):
            if waited[task] and cause[task] >= 0 and self._timing.units[unit] in self._ops:
                key = unit, self._inputs[task]
                longest[key] = max(longest.get(key, task), task, key=lambda candidate: waited[candidate])
        for task in longest.values():
            shown.setdefault(task, self._wait_reason(task))
        for task in sorted(shown):
            yield Flow(self._of_task[cause[task]][1], self._of_task[task][0], shown[task])

    def _wait_reason(self, task: int) -> str:
        """Return the name of the object of the model, such as a buffer, that a task waited for last; "the part before"
        if it waited for none."""
        number = int(self._timing.held_by[task])
        if number < 0:
            return "the part before"
        return self._timing.objects[number]

    def chain(self) -> list[int]:
        """Return the numbers of the slices of the critical path."""
        numbers: list[int] = []
        for task in self._path:
            first, last = self._of_task[task]
            numbers += range(first, last + 1)
        return numbers

    def stretches(self) -> Iterator[Stretch]:
        """Yield the stretch of the steady state, unless that is the whole run or there is none."""
        stretch = steady(self._model, self._report.bottleneck.name)
        if stretch is not None and stretch.last - stretch.first + 1 < self._model.run.inputs:
            name = f"steady state, {describe_fill(self._model, stretch)}"
            yield Stretch(self._begin + stretch.start, self._begin + stretch.end, name, self._groups[_CORES])

    def counters(self) -> Iterator[Counter]:
        """Yield the counters of parts that wait in front of ops, and those of the load of links."""
        yield from self._waiting_part_counters()
        yield from self._link_counters()

    def _waiting_part_counters(self) -> Iterator[Counter]:
        """Yield a counter for each input of an op on the critical path: how many parts have arrived and are not
        consumed yet."""
        on_path = {self._timing.units[int(self._timing.unit[task])] for task in self._path}
        consumed = {
            name.removesuffix(": parts consumed"): index
            for index, name in enumerate(self._timing.objects)
            if name.endswith(": parts consumed")
        }
        for index, name in enumerate(self._timing.objects):
            source, _, op = name.rpartition(" in ")
            if not source or op not in consumed or op not in on_path:
                continue
            up, arrived = self._schedule.changes_of(index, self._timing)
            down, used = self._schedule.changes_of(consumed[op], self._timing)
            rises = dict(zip(up.tolist(), arrived.tolist(), strict=True))
            drops = dict(zip(down.tolist(), used.tolist(), strict=True))
            arrived_parts = consumed_parts = 0
            values: dict[int, int] = {}
            for time in sorted({*rises, *drops}):
                arrived_parts = rises.get(time, arrived_parts)
                consumed_parts = drops.get(time, consumed_parts)
                values[time] = max(arrived_parts - consumed_parts, 0)
            yield self._make_counter(_CORES, f"{source} in front of {op}", "parts", values)

    def _link_counters(self) -> Iterator[Counter]:
        """Yield a counter for each of the busiest links: its bytes per cycle, summed over the transfers on it."""
        changes = self._rate_changes({link.name for link in self._model.shared.links[:LINKS]})
        for name in (link.name for link in self._model.shared.links if link.name in changes):
            moments = changes[name]
            rate = 0.0
            values: dict[int, float] = {}
            for time in sorted(moments):
                rate += moments[time]
                values[time] = round(max(rate, 0.0), 3)
            yield self._make_counter(_TRANSFERS, name, "bytes a cycle", values)

    def _rate_changes(self, names: set[str]) -> dict[str, dict[int, float]]:
        """Return for each of the links `names` the moments at which its rate changes, and by how many bytes per
        cycle.
        """
        timing = self._timing
        tasks: dict[str, list[tuple[int, int]]] = {}
        units: list[int] = timing.unit.tolist()
        for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
            name = timing.units[unit]
            if self._group_of(name) == _TRANSFERS:
                tasks.setdefault(name, []).append((start, end))
        changes: dict[str, dict[int, float]] = {}
        for edge, path in zip(self._report.edges, self._report.paths, strict=True):
            spans = tasks.get(edge.name, ()) if not edge.once else ()
            for link, size in path.loads():
                if str(link) not in names:
                    continue
                moments = changes.setdefault(str(link), {})
                bytes_per_task = size * self._model.run.inputs / max(len(spans), 1)
                for start, end in spans:
                    rate = bytes_per_task / max(end - start, 1)
                    moments[start] = moments.get(start, 0.0) + rate
                    moments[end] = moments.get(end, 0.0) - rate
        return changes

    def _make_counter(self, room: int, name: str, unit: str, values: Mapping[int, float]) -> Counter:
        """Return a counter in the group of lanes `room`, an index of `_ROOMS`; `values` maps cycles of the epoch to
        values in `unit`."""
        times = [self._begin + time for time in values]
        return Counter(name=name, unit=unit, times=times, values=list(values.values()), group=self._groups[room])


def _thread_spans(op: OpTiming, start: int, end: int) -> Sequence[tuple[float, float]]:
    """Return begin and end of the threads unpack, math and pack of a core, which works on a part from `start` to `end`:
    unpack begins at `start`, pack ends at `end`, math lies in the middle."""
    length = end - start
    unpack, math, pack = (min(cycles / op.parts, length) for cycles in op.cost.threads)
    lead = (length - math) / 2
    return (start, start + unpack), (start + lead, start + lead + math), (end - pack, end)


def steady_picture(epoch: EpochReport, timing: EpochTiming) -> TimelinePicture:
    """Return the picture of an epoch's steady state: first the unit that limits the epoch, then the units of the
    critical path, longest first, then the ops in document order. `timing` is that of the epoch with as many inputs as
    fill its pipeline."""
    result = timing.run.timing
    stretch = steady(timing, epoch.bottleneck.name)
    begin = 0
    end = result.makespan
    if stretch is not None and stretch.last - stretch.first + 1 < timing.run.inputs:
        begin = stretch.start
        end = stretch.end
    chain = _path_between(timing, begin, end)
    limit = _limiting_units(epoch, result)
    if not limit and stretch is not None:
        limit = [stretch.op]  # the busiest op
    names = list(dict.fromkeys([*limit, *_units_by_work(result, chain), *(op.op for op in timing.ops)]))
    slices = dict(_cut_slices(timing, names, begin, end))
    number = {task: place for place, task in enumerate(slices)}
    lanes = [Lane(name) for name in names]
    drawn = list(slices.values())
    stretches = [Stretch(begin, end, "steady state")]
    if begin == 0 and end == result.makespan:  # the whole run, which loading belongs to
        stretches = []
        lanes, drawn = _shift_after_loading(epoch, lanes, drawn, len(limit))
    return TimelinePicture(
        "",
        lanes,
        drawn,
        chain=[number[task] for task in chain],
        stretches=stretches,
    )


def _limiting_units(epoch: EpochReport, timing: Timing) -> list[str]:
    """Return the units that are the bottleneck of an epoch; none if that is a NoC link or there is none."""
    return [name for name in timing.units if name.partition(": ")[0] == epoch.bottleneck.name]


def _path_between(timing: EpochTiming, begin: int, end: int) -> list[int]:
    """Return the tasks of the critical path that run between the cycles `begin` and `end`."""
    if timing.run.last_task < 0:
        return []
    result = timing.run.timing
    path = result.critical_path(timing.run.last_task)
    return [task for task in path if result.end[task] > begin and result.start[task] < end]


def _shift_after_loading(
    epoch: EpochReport, lanes: list[Lane], drawn: list[Slice], above: int
) -> tuple[list[Lane], list[Slice]]:
    """Return lanes and slices shifted to begin when the epoch is loaded, with lanes and slices for the loading inserted
    after the first `above` lanes."""
    loads = epoch.load.chips
    after = round(epoch.load.cycles)
    moved = [
        drawn_slice._replace(
            lane=drawn_slice.lane + len(loads) * (drawn_slice.lane >= above),
            start=drawn_slice.start + after,
            end=drawn_slice.end + after,
        )
        for drawn_slice in drawn
    ]
    loading_lanes = [Lane(loading_name(load)) for load in loads]
    return [*lanes[:above], *loading_lanes, *lanes[above:]], [*moved, *loading_slices(loads, 0, above)]


def _units_by_work(result: Timing, tasks: list[int]) -> list[str]:
    """Return the units of these tasks, the one that works longest in them first."""
    time_by_unit: dict[str, int] = {}
    for task in tasks:
        unit = result.units[int(result.unit[task])]
        time_by_unit[unit] = time_by_unit.get(unit, 0) + int(result.end[task]) - int(result.start[task])
    return sorted(time_by_unit, key=lambda unit: -time_by_unit[unit])


def _cut_slices(timing: EpochTiming, names: list[str], begin: int, end: int) -> Iterator[tuple[int, Slice]]:
    """Yield the tasks of the units `names` that run between two moments, with their slices, cut off at these moments. A
    unit's lane is its place in `names`."""
    result = timing.run.timing
    ops = {op.op for op in timing.ops}
    for lane, unit in enumerate(names):
        tasks: list[int] = np.flatnonzero(result.unit == result.units.index(unit)).tolist()
        tasks_per_input = max(len(tasks) // timing.run.inputs, 1)
        if ": " in unit:
            other = "memory"
        else:
            other = "transfers"
        for place, task in enumerate(tasks):
            start = int(result.start[task])
            stop = int(result.end[task])
            if stop <= begin or start >= end:
                continue
            entry, part = divmod(place, tasks_per_input)
            if unit in ops:
                kind = ("even inputs", "odd inputs")[entry % 2]
            else:
                kind = other
            yield (
                task,
                Slice(
                    lane=lane,
                    start=max(start, begin),
                    end=min(stop, end),
                    name=f"input {entry}",
                    category=kind,
                    details={"part": part},
                ),
            )
