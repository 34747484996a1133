"""A run as a trace for Perfetto and chrome://tracing (the Trace Event Format).

Each group of lanes is a process and each lane a thread of it; arrows are flows; a stretch is a slice on a thread of its
own above the lanes of its group; a memory is a process of its own, with a counter of its bytes and a track for each
tensor in it. Times are microseconds, to a tenth of a nanosecond.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from buda_emu.performance.timeline.occupancy import occupancy
from buda_emu.performance.timeline.picture import Memory, TimelinePicture

Event = dict[str, Any]
_DIGITS: Final = 4  # of microseconds: a tenth of a nanosecond, less than a cycle


def trace(picture: TimelinePicture) -> dict[str, Any]:
    """Return a picture of a run as one object of the Trace Event Format, for ui.perfetto.dev."""
    about: dict[str, Any] = dict(picture.about)
    if picture.notes:
        about["notes"] = list(picture.notes)
    return {"traceEvents": list(_Writer(picture).events()), "displayTimeUnit": "ns", "otherData": about}


class _Writer:
    """A writer of the events of a picture, which numbers the processes and threads that stand for its groups and
    lanes."""

    def __init__(self, picture: TimelinePicture) -> None:
        self._picture = picture
        groups = dict.fromkeys(
            chain((lane.group for lane in picture.lanes), (counter.group for counter in picture.counters))
        )
        self._process = {group: number for number, group in enumerate(groups)}
        threads = dict.fromkeys(groups, 0)
        self._place: list[tuple[int, int]] = []  # of each lane: process and thread
        for lane in picture.lanes:
            threads[lane.group] += 1
            self._place.append((self._process[lane.group], threads[lane.group]))

    def events(self) -> Iterator[Event]:
        """Yield the events of names, slices, arrows, counters and memories."""
        for group, process in self._process.items():
            yield from _process_events(process, group or self._picture.title)
        for lane, (process, thread) in zip(self._picture.lanes, self._place, strict=True):
            yield _metadata_event("thread_name", process, thread, lane.name)
            yield {**_metadata_event("thread_sort_index", process, thread, ""), "args": {"sort_index": thread}}
        yield from self._stretch_events()
        yield from self._slice_events()
        yield from self._flow_events()
        for counter in self._picture.counters:
            for time, value in zip(counter.times, counter.values, strict=True):
                yield self._counter_event(self._process[counter.group], counter.name, time, counter.unit, value)
        for number, memory in enumerate(self._picture.memories):
            yield from self._memory_events(len(self._process) + number, memory)

    def _slice_events(self) -> Iterator[Event]:
        """Yield an event with begin and length for each slice of the picture."""
        for part in self._picture.slices:
            process, thread = self._place[part.lane]
            yield {
                "name": part.name,
                "cat": part.category or "task",
                "ph": "X",
                "pid": process,
                "tid": thread,
                "ts": self._microseconds(part.start),
                "dur": self._duration(part.start, part.end),
                "args": dict(part.details),
            }

    def _stretch_events(self) -> Iterator[Event]:
        """Yield the slices of stretches, on thread 0 of their groups."""
        for group in dict.fromkeys(stretch.group for stretch in self._picture.stretches):
            process = self._process.setdefault(group, len(self._process))
            yield _metadata_event("thread_name", process, 0, "stretches")
            yield {**_metadata_event("thread_sort_index", process, 0, ""), "args": {"sort_index": 0}}
        for stretch in self._picture.stretches:
            yield {
                "name": stretch.name,
                "cat": "stretch",
                "ph": "X",
                "pid": self._process[stretch.group],
                "tid": 0,
                "ts": self._microseconds(stretch.start),
                "dur": self._duration(stretch.start, stretch.end),
            }

    def _flow_events(self) -> Iterator[Event]:
        """Yield both ends of each arrow. Each end names the time at which its slice begins: viewers draw from the end
        of the source slice to the beginning of the target."""
        for number, flow in enumerate(self._picture.flows):
            for kind, index in (("s", flow.source), ("f", flow.target)):
                part = self._picture.slices[index]
                process, thread = self._place[part.lane]
                yield {
                    "name": flow.name or "wait",
                    "cat": "wait",
                    "ph": kind,
                    "id": number,
                    "pid": process,
                    "tid": thread,
                    "ts": self._microseconds(part.start),
                    **({"bp": "e"} if kind == "f" else {}),
                }

    def _memory_events(self, process: int, memory: Memory) -> Iterator[Event]:
        """Yield the events of a memory: a counter of its bytes, and begin and end of each tensor in it."""
        yield from _process_events(process, memory.name)
        for use in occupancy(live._replace(space=memory.name) for live in memory.lives).values():
            for time, size in zip(use.times.tolist(), use.bytes.tolist(), strict=True):
                yield self._counter_event(process, f"{memory.name} bytes", time, "bytes", size)
            for number, live in enumerate(use.lives):
                common = {"name": live.name, "cat": "tensor", "id": f"{process}.{number}", "pid": process, "tid": 0}
                allocation = {"address": live.address, "bytes": live.size}
                yield {**common, "ph": "b", "ts": self._microseconds(live.start), "args": allocation}
                yield {**common, "ph": "e", "ts": self._microseconds(live.end)}

    def _counter_event(self, process: int, name: str, time: float, unit: str, value: float) -> Event:
        """Return an event with the value of a counter from a moment on."""
        return {"name": name, "ph": "C", "pid": process, "ts": self._microseconds(time), "args": {unit: value}}

    def _microseconds(self, time: float) -> float:
        """Return a time of the picture in microseconds."""
        return round(time / self._picture.per_microsecond, _DIGITS)

    def _duration(self, start: float, end: float) -> float:
        """Return the length of a slice as the difference of its rounded ends, so that slices that touch do not
        overlap."""
        return round(self._microseconds(end) - self._microseconds(start), _DIGITS)


def _process_events(process: int, name: str) -> Iterator[Event]:
    """Yield the events that give a process, by which a group of lanes is shown, its name and its position."""
    yield _metadata_event("process_name", process, 0, name)
    yield {**_metadata_event("process_sort_index", process, 0, ""), "args": {"sort_index": process}}


def _metadata_event(kind: str, process: int, thread: int, name: str) -> Event:
    """Return an event that names a process or thread, or gives its position; `kind` is the name of the event in the
    Trace Event Format.
    """
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
