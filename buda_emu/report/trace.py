"""A modelled epoch as a trace for Perfetto and chrome://tracing (the Trace Event Format).

Complete events ("X") with times in microseconds: a process for each epoch, a track for each op, transfer and memory
channel's stream; counters ("C") for the tiles that wait in front of each op.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from buda_emu.timeline import Schedule, Timing
from buda_emu.timing.result import EpochReport, PerfRun


def trace(run: PerfRun) -> dict[str, Any]:
    """The whole run: epochs one after the other, each once, as many inputs as were modelled."""
    events: list[dict[str, Any]] = []
    begin = 0.0
    for number, epoch in enumerate(run.epochs):
        events += _epoch(number, epoch, begin, run.clock)
        begin += epoch.timing.timing.makespan / run.clock
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"netlist": run.netlist, "arch": run.arch, "clock_mhz": run.clock, "buda_emu": run.version},
    }


def _epoch(number: int, epoch: EpochReport, begin: float, clock: float) -> Iterator[dict[str, Any]]:
    timing, schedule = epoch.timing.timing, epoch.timing.schedule
    chips = ", ".join(f"chip {chip}" for chip in epoch.chips)
    yield _named("process_name", number, 0, f"{epoch.program}: {' + '.join(epoch.graphs)} ({chips})")
    for unit, name in enumerate(timing.units):
        yield _named("thread_name", number, unit + 1, name)
    inputs = epoch.timing.modelled
    seen = [0] * len(timing.units)
    tasks: list[int] = [0] * len(timing.units)
    units: list[int] = timing.unit.tolist()
    for unit in units:
        tasks[unit] += 1
    for start, end, unit in zip(timing.start.tolist(), timing.end.tolist(), units, strict=True):
        each = max(tasks[unit] // inputs, 1)
        entry, part = divmod(seen[unit], each)
        seen[unit] += 1
        yield {
            "name": f"input {entry}", "cat": "model", "ph": "X", "pid": number, "tid": unit + 1,
            "ts": begin + start / clock, "dur": (end - start) / clock, "args": {"input": entry, "part": part},
        }  # fmt: skip
    yield from _counters(number, schedule, timing, begin, clock)


def _counters(
    number: int, schedule: Schedule, timing: Timing, begin: float, clock: float
) -> Iterator[dict[str, Any]]:
    """Parts that have arrived at an op and were not consumed yet."""
    consumed = {
        name.removesuffix(": parts consumed"): index
        for index, name in enumerate(timing.objects) if name.endswith(": parts consumed")
    }  # fmt: skip
    for index, name in enumerate(timing.objects):
        source, _, op = name.rpartition(" in ")
        if not source or op not in consumed:
            continue
        yield from _levels(number, f"{source} in front of {op}", schedule, timing, (index, consumed[op]), begin, clock)


def _levels(
    number: int, name: str, schedule: Schedule, timing: Timing, objects: Sequence[int], begin: float, clock: float
) -> Iterator[dict[str, Any]]:
    (up, arrived), (down, used) = (schedule.changes_of(index, timing) for index in objects)
    rises = dict(zip(up.tolist(), arrived.tolist(), strict=True))
    drops = dict(zip(down.tolist(), used.tolist(), strict=True))
    times = sorted({*rises, *drops})
    have = taken = 0
    for time in times:
        have, taken = rises.get(time, have), drops.get(time, taken)
        yield {
            "name": name, "ph": "C", "pid": number, "ts": begin + time / clock, "args": {"parts": max(have - taken, 0)},
        }  # fmt: skip


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
