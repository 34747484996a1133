"""A modelled epoch as a trace for Perfetto and chrome://tracing (the Trace Event Format).

Three processes for each epoch. Cores: the unpack, math and pack thread of each op, whose cores all work alike, and
counters of what waits in front of it. Transfers: a track for each pair of ops or op and queue, and counters of what the
busiest NoC links carry. Memory: a track for each stream of a channel. Times are microseconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from buda_emu.timeline import Schedule, Timing
from buda_emu.timing.epoch import EpochTiming, OpTiming
from buda_emu.timing.result import EpochReport, PerfRun

THREADS: Final = ("unpack", "math", "pack")
_CORES, _TRANSFERS, _MEMORY = range(3)
_ROOMS: Final = ("cores", "transfers", "memory")

Event = dict[str, Any]


def trace(run: PerfRun) -> dict[str, Any]:
    """The whole run: epochs one after the other, each once, as many inputs as were modelled."""
    events: list[Event] = []
    begin = 0.0
    for number, epoch in enumerate(run.epochs):
        events += _Epoch(number, epoch, begin, run.clock).events()
        begin += epoch.timing.timing.makespan / run.clock
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"netlist": run.netlist, "arch": run.arch, "clock_mhz": run.clock, "buda_emu": run.version},
    }


class _Epoch:
    def __init__(self, number: int, report: EpochReport, begin: float, clock: float) -> None:
        self._report = report
        self._model: EpochTiming = report.timing
        self._timing: Timing = report.timing.timing
        self._schedule: Schedule = report.timing.schedule
        self._first = 3 * number
        self._begin = begin
        self._clock = clock
        self._ops: Mapping[str, OpTiming] = {op.op: op for op in report.timing.ops}

    def events(self) -> Iterator[Event]:
        """Names, tasks and counters."""
        chips = ", ".join(f"chip {chip}" for chip in self._report.chips)
        title = f"{self._report.program}: {' + '.join(self._report.graphs)} ({chips})"
        for room, name in enumerate(_ROOMS):
            yield _named("process_name", self._first + room, 0, f"{title}, {name}")
        for unit, name in enumerate(self._timing.units):
            if name in self._ops:
                for thread, kind in enumerate(THREADS):
                    yield _named("thread_name", self._first, 3 * unit + thread + 1, f"{name}: {kind}")
            else:
                yield _named("thread_name", self._first + self._room(name), 3 * unit + 1, name)
        yield from self._tasks()
        yield from self._waiting()
        yield from self._links()

    def _room(self, unit: str) -> int:
        if unit in self._ops:
            return _CORES
        return _MEMORY if unit.startswith(("DRAM channel", "host link")) else _TRANSFERS

    def _tasks(self) -> Iterator[Event]:
        timing = self._timing
        units: list[int] = timing.unit.tolist()
        tasks, seen = [0] * len(timing.units), [0] * len(timing.units)
        for unit in units:
            tasks[unit] += 1
        for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
            each = max(tasks[unit] // self._model.modelled, 1)
            entry, part = divmod(seen[unit], each)
            seen[unit] += 1
            name, thread = timing.units[unit], 3 * unit + 1
            pieces = [(self._room(name), thread, start, end)]
            if name in self._ops:
                pieces = [(_CORES, thread + n, *piece) for n, piece in enumerate(_threads(self._ops[name], start, end))]
            for room, track, from_, to in pieces:
                yield {
                    "name": f"input {entry}", "cat": "model", "ph": "X", "pid": self._first + room, "tid": track,
                    "ts": self._at(from_), "dur": (to - from_) / self._clock, "args": {"input": entry, "part": part},
                }  # fmt: skip

    def _waiting(self) -> Iterator[Event]:
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
            for time in sorted({*rises, *drops}):
                have, taken = rises.get(time, have), drops.get(time, taken)
                yield self._counter(_CORES, f"{source} in front of {op}", time, "parts", max(have - taken, 0))

    def _links(self) -> Iterator[Event]:
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
            for time in sorted(moments):
                rate += moments[time]
                yield self._counter(_TRANSFERS, link, time, "bytes a cycle", round(max(rate, 0.0), 3))

    def _counter(self, room: int, name: str, time: int, unit: str, value: float) -> Event:
        return {"name": name, "ph": "C", "pid": self._first + room, "ts": self._at(time), "args": {unit: value}}

    def _at(self, time: float) -> float:
        return self._begin + time / self._clock


def _threads(op: OpTiming, start: int, end: int) -> Sequence[tuple[float, float]]:
    """When the threads of a core work on a part: unpack from its start, pack to its end, math between them."""
    length = end - start
    unpack, math, pack = (min(cycles / op.parts, length) for cycles in op.cost.threads)
    lead = (length - math) / 2
    return (start, start + unpack), (start + lead, start + lead + math), (end - pack, end)


def _named(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
