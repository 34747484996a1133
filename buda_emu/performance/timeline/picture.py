"""The data of a picture of a run: lanes with slices, arrows, counters and memories; for traces and for the page
(`report`).

`picture` makes it from a schedule; callers add names, details and memories. Nothing here knows the meaning of the
units.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from buda_emu.performance.timeline.occupancy import Live, Occupancy, occupancy
from buda_emu.performance.timeline.schedule import Schedule, Timing

Detail = str | int | float
_NOTHING: Mapping[str, Detail] = {}


class Lane(NamedTuple):
    """A row of slices that do not overlap.

    Lanes of one `group` stand together under its name. Several groups may belong to one `section`, with whose name,
    followed by a comma, their names begin.
    """

    name: str
    group: str = ""
    section: str = ""


class Slice(NamedTuple):
    """A span of time in a lane, which is given by its index. `category` selects the colour, `details` are shown in the
    tooltip."""

    lane: int
    start: float
    end: float
    name: str
    category: str = ""
    details: Mapping[str, Detail] = _NOTHING


class Flow(NamedTuple):
    """An arrow from the end of slice `source` to the start of slice `target`, by their indices: the target waited for
    the source."""

    source: int
    target: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Counter:
    """A value over time: `values[i]` from `times[i]` on. `unit` is its unit, such as "bytes a cycle"."""

    name: str
    unit: str
    times: Sequence[float]
    values: Sequence[float]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of `size` bytes from address 0 on (0: up to the last byte used), and the tensors that live in it."""

    name: str
    lives: Sequence[Live]
    size: int = 0

    @classmethod
    def of(cls, occupancy: Occupancy, size: int = 0) -> "Memory":
        """Return the memory with the tensors of one space's occupancy; `size` is its bytes, 0 if not known."""
        return cls(occupancy.space, occupancy.lives, size)

    @property
    def span(self) -> int:
        """Return the number of bytes from address 0 that a drawing has to show, at least 1."""
        lasts = (live.ring.high if live.ring else live.address + live.size for live in self.lives)
        return max(self.size, max(lasts, default=0), 1)

    @property
    def peak(self) -> int:
        """Return the greatest number of bytes that its tensors take at any time."""
        held = occupancy(live._replace(space=self.name) for live in self.lives)
        if held:
            return held[self.name].peak
        return 0


class Stretch(NamedTuple):
    """A stretch of time that has a name, such as a steady state."""

    start: float
    end: float
    name: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class TimelinePicture:
    """A run as data for drawing.

    Times are in `time_unit`, of which `per_microsecond` make a microsecond. `notes` are sentences that must stand
    beside every picture (which part is a model, what is left out); `about` has facts of a few words each. `chain` has
    the slices of the critical path, which are drawn as such.
    """

    title: str
    lanes: Sequence[Lane]
    slices: Sequence[Slice]
    flows: Sequence[Flow] = ()
    counters: Sequence[Counter] = ()
    memories: Sequence[Memory] = ()
    time_unit: str = "cycles"
    per_microsecond: float = 1.0
    notes: Sequence[str] = ()
    about: Mapping[str, Detail] = field(default_factory=dict[str, Detail])
    chain: Sequence[int] = ()
    stretches: Sequence[Stretch] = ()


def picture(
    schedule: Schedule,
    timing: Timing,
    title: str,
    *,
    category: Callable[[int], str] = lambda _: "",
    details: Callable[[int], Mapping[str, Detail]] = lambda _: _NOTHING,
    group: Callable[[int], str] = lambda _: "",
    memories: Sequence[Memory] = (),
    counters: Sequence[Counter] = (),
    time_unit: str = "cycles",
    per_microsecond: float = 1.0,
    notes: Sequence[str] = (),
    about: Mapping[str, Detail] = _NOTHING,
) -> TimelinePicture:
    """Return the picture of a run: a lane for each unit, a slice for each task (slice i is task i), and an arrow for
    each task that waited for the end of another, named by the object it waited for. `category` and `details` are called
    with numbers of tasks, `group` with those of units."""
    unit: list[int] = timing.unit.tolist()
    start: list[int] = timing.start.tolist()
    end: list[int] = timing.end.tolist()
    slices = [
        Slice(
            lane=unit[task],
            start=start[task],
            end=end[task],
            name=schedule.label(task),
            category=category(task),
            details=details(task),
        )
        for task in range(len(schedule))
    ]
    held: list[int] = timing.held_by.tolist()
    cause: list[int] = timing.cause.tolist()
    waits = (task for task in range(len(schedule)) if held[task] >= 0 and cause[task] >= 0)
    return TimelinePicture(
        title=title,
        lanes=tuple(Lane(name, group(number)) for number, name in enumerate(timing.units)),
        slices=tuple(slices),
        flows=tuple(Flow(cause[task], task, timing.objects[held[task]]) for task in waits),
        counters=tuple(counters),
        memories=tuple(memories),
        time_unit=time_unit,
        per_microsecond=per_microsecond,
        notes=tuple(notes),
        about=dict(about),
    )
