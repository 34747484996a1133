"""Byte-addressed memory under a timeline: what is live when, and accesses that meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from buda_emu.errors import HostError
from buda_emu.timeline.result import Timing

Kind = Literal["race", "unwritten"]


class Access(NamedTuple):
    """Bytes that a task reads or writes while it runs."""

    task: int
    space: str  # an L1, a DRAM channel, ...
    address: int
    size: int
    writes: bool


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that overlap in bytes and in time, one of them a write; or a read of bytes nobody wrote before."""

    kind: Kind
    first: Access | None  # None: nothing was written
    second: Access
    address: int
    size: int


def conflicts(timing: Timing, accesses: Iterable[Access]) -> list[Conflict]:
    """Races and reads before any write, in order of time. Raises HostError for an access that is impossible.

    Two accesses race when their bytes overlap, one of them writes, and the times of their tasks overlap by more than a
    moment: one that starts when the other ends does not race.
    """
    by_space: dict[str, list[Access]] = {}
    for access in accesses:
        if access.size <= 0 or access.address < 0 or not 0 <= access.task < len(timing.end):
            raise HostError(f"access of {access.size} bytes at {access.address} by task {access.task} is not possible")
        by_space.setdefault(access.space, []).append(access)
    found: list[tuple[int, Conflict]] = []
    for space in sorted(by_space):
        found.extend(_of_space(timing, by_space[space]))
    return [conflict for _, conflict in sorted(found, key=lambda item: item[0])]


def _of_space(timing: Timing, accesses: Sequence[Access]) -> list[tuple[int, Conflict]]:
    """Sweep over time: at each start, look at what is running and at what has been written."""
    moments: list[tuple[int, int, int]] = []  # time, what happens, access
    for number, access in enumerate(accesses):
        begin, finish = int(timing.start[access.task]), int(timing.end[access.task])
        # at one time: what ends, then what takes no time, then what begins
        moments += [(finish, 0, number), (begin, 2, number)] if begin < finish else [(begin, 1, number)]
    running: dict[int, Access] = {}
    written = _Bytes()
    found: list[tuple[int, Conflict]] = []
    for time, kind, number in sorted(moments):
        access = accesses[number]
        if kind == 0:
            running.pop(number, None)
            if access.writes:
                written.add(access.address, access.address + access.size)
            continue
        for other in running.values():
            low = max(access.address, other.address)
            high = min(access.address + access.size, other.address + other.size)
            if low < high and (access.writes or other.writes) and access.task != other.task:
                found.append((time, Conflict("race", other, access, low, high - low)))
        if not access.writes:
            gap = written.gap(access.address, access.address + access.size)
            if gap is not None:
                found.append((time, Conflict("unwritten", None, access, gap[0], gap[1] - gap[0])))
        if kind == 2:
            running[number] = access
        elif access.writes:
            written.add(access.address, access.address + access.size)
    return found


class _Bytes:
    """A set of byte ranges, merged."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, low: int, high: int) -> None:
        """Every byte from low to high - 1."""
        apart = [item for item in self._ranges if item[1] < low or item[0] > high]
        merged = [item for item in self._ranges if not (item[1] < low or item[0] > high)]
        for item in merged:
            low, high = min(low, item[0]), max(high, item[1])
        self._ranges = sorted([*apart, (low, high)])

    def gap(self, low: int, high: int) -> tuple[int, int] | None:
        """The first stretch from low to high that is not in the set."""
        for first, last in self._ranges:
            if last <= low or first >= high:
                continue
            if first > low:
                return low, first
            low = max(low, last)
            if low >= high:
                return None
        return (low, high) if low < high else None
