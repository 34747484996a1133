"""Byte-addressed memory under a timeline: accesses, and those that meet in the times of one run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from buda_emu.errors import HostError
from buda_emu.timeline.ranges import ByteSet, Ring, pieces
from buda_emu.timeline.result import Timing

Kind = Literal["race", "unwritten"]


class Access(NamedTuple):
    """Bytes that a task reads or writes while it runs. In a `ring` they may wrap."""

    task: int
    space: str  # an L1, a DRAM channel, ...
    address: int
    size: int
    writes: bool
    ring: Ring | None = None

    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Its ranges (first byte, byte after the last). Raises HostError for what is not in its ring."""
        return pieces(self.address, self.size, self.ring)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that overlap in bytes and in time, one of them a write; or a read of bytes nobody wrote before."""

    kind: Kind
    first: Access | None  # None: nothing was written
    second: Access
    address: int
    size: int


def by_space(accesses: Iterable[Access], tasks: int) -> dict[str, list[Access]]:
    """The accesses of each space. Raises HostError for one that is impossible."""
    found: dict[str, list[Access]] = {}
    for access in accesses:
        if access.size <= 0 or access.address < 0 or not 0 <= access.task < tasks:
            raise HostError(f"access of {access.size} bytes at {access.address} by task {access.task} is not possible")
        found.setdefault(access.space, []).append(access)
    return found


def conflicts(timing: Timing, accesses: Iterable[Access]) -> list[Conflict]:
    """Races and reads before any write in the times of this run, in order of time; `order_conflicts` finds the races
    of every run. Raises HostError for an access that is impossible.

    Two accesses race when their bytes overlap, one of them writes, and the times of their tasks overlap by more than a
    moment: one that starts when the other ends does not race.
    """
    found: list[tuple[int, Conflict]] = []
    for _, own in sorted(by_space(accesses, len(timing.end)).items()):
        found.extend(_of_space(timing, own))
    return [conflict for _, conflict in sorted(found, key=lambda item: item[0])]


def _of_space(timing: Timing, accesses: Sequence[Access]) -> list[tuple[int, Conflict]]:
    """Sweep over time: at each start, look at what is running and at what has been written."""
    moments: list[tuple[int, int, int]] = []  # time, what happens, access
    for number, access in enumerate(accesses):
        begin, finish = int(timing.start[access.task]), int(timing.end[access.task])
        # at one time: what ends, then what takes no time, then what begins
        moments += [(finish, 0, number), (begin, 2, number)] if begin < finish else [(begin, 1, number)]
    running: dict[int, Access] = {}
    written = ByteSet()
    found: list[tuple[int, Conflict]] = []
    for time, kind, number in sorted(moments):
        access = accesses[number]
        if kind == 0:
            running.pop(number, None)
            if access.writes:
                _write(written, access)
            continue
        for other in running.values():
            if (access.writes or other.writes) and access.task != other.task:
                for low, high in _common(other, access):
                    found.append((time, Conflict("race", other, access, low, high - low)))
        if not access.writes:
            gap = next((gap for piece in access.pieces() for gap in written.missing(*piece)), None)
            if gap is not None:
                found.append((time, Conflict("unwritten", None, access, gap[0], gap[1] - gap[0])))
        if kind == 2:
            running[number] = access
        elif access.writes:
            _write(written, access)
    return found


def _write(written: ByteSet, access: Access) -> None:
    for low, high in access.pieces():
        written.add(low, high)


def _common(first: Access, second: Access) -> list[tuple[int, int]]:
    """Ranges that two accesses share."""
    both = ((max(a, c), min(b, d)) for a, b in first.pieces() for c, d in second.pieces())
    return sorted((low, high) for low, high in both if low < high)
