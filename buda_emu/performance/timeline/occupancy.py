"""The contents of a memory space over time: live ranges of tensors, and their bytes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.performance.timeline.schedule import Timing
from buda_emu.performance.timeline.tasks import Access, Ring, by_space

Ints = NDArray[np.int64]


class Live(NamedTuple):
    """A tensor in memory from time `start` up to, but not including, `end`."""

    space: str
    address: int
    size: int
    start: int
    end: int
    name: str = ""
    ring: Ring | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """The contents of one space over time. From `times[i]` on it holds `bytes[i]`: the sum over its tensors, so bytes
    that two tensors share count twice. `lives` are sorted by start, then address."""

    space: str
    lives: tuple[Live, ...]
    times: Ints
    bytes: Ints

    @property
    def peak(self) -> int:
        """Return the greatest number of bytes at any time."""
        return int(self.bytes.max(initial=0))

    def at(self, time: int) -> list[Live]:
        """Return the tensors that live at a time, by address."""
        return sorted((live for live in self.lives if live.start <= time < live.end), key=lambda live: live.address)


def occupancy(lives: Iterable[Live]) -> dict[str, Occupancy]:
    """Return, by name of the space, the contents over time of every space in which tensors live."""
    spaces: dict[str, list[Live]] = {}
    for live in lives:
        spaces.setdefault(live.space, []).append(live)
    return {space: _space_occupancy(space, spaces[space]) for space in sorted(spaces)}


def _space_occupancy(space: str, lives: list[Live]) -> Occupancy:
    """Return the contents of one space over time; tensors that live for no time are left out."""
    sorted_lives = tuple(
        sorted((live for live in lives if live.start < live.end), key=lambda live: (live.start, live.address))
    )
    moments = list(chain.from_iterable((live.start, live.end) for live in sorted_lives))
    changes = list(chain.from_iterable((live.size, -live.size) for live in sorted_lives))
    times, place = np.unique(np.array(moments, np.int64), return_inverse=True)
    held = np.zeros(len(times), np.int64)
    np.add.at(held, place, np.array(changes, np.int64))
    return Occupancy(space, sorted_lives, times, np.cumsum(held))


def live_ranges(
    timing: Timing, accesses: Iterable[Access], name: Callable[[Access], str] = lambda access: f"{access.address:#x}"
) -> list[Live]:
    """Derive live ranges from the accesses of tasks.

    A tensor is a stretch of bytes that is always accessed as a whole; it lives from the start of its write to the end
    of the last access before the next write that follows a read. A tensor that is read before it is written lives from
    time 0. `name` is called with the first access of each life.
    """
    lives: list[Live] = []
    for space, space_accesses in sorted(by_space(accesses, len(timing.end)).items()):
        stretches: dict[tuple[int, int, Ring | None], list[Access]] = {}
        for access in space_accesses:
            stretches.setdefault((access.address, access.size, access.ring), []).append(access)
        for (address, size, ring), uses in stretches.items():
            for first, start, end in _lives(timing, uses):
                lives.append(
                    Live(space=space, address=address, size=size, start=start, end=end, name=name(first), ring=ring)
                )
    return sorted(lives, key=lambda live: (live.space, live.start, live.address))


def _lives(timing: Timing, uses: list[Access]) -> list[tuple[Access, int, int]]:
    """Return (first access, start, end) of each life of one stretch of bytes."""
    lives: list[tuple[Access, int, int]] = []
    was_read = False
    for use in sorted(uses, key=lambda use: (int(timing.start[use.task]), use.writes)):
        begin = int(timing.start[use.task])
        finish = int(timing.end[use.task])
        if not lives or (use.writes and was_read):
            lives.append((use, begin if use.writes else 0, finish))
            was_read = False
        else:
            first, start, end = lives[-1]
            lives[-1] = (first, start, max(end, finish))
        was_read = was_read or not use.writes
    return lives
