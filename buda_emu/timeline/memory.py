"""Byte-addressed memory under a timeline: what tasks read and write of it."""

from collections.abc import Iterable
from typing import NamedTuple

from buda_emu.errors import HostError
from buda_emu.timeline.ranges import Ring, pieces


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


def by_space(accesses: Iterable[Access], tasks: int) -> dict[str, list[Access]]:
    """The accesses of each space. Raises HostError for one that is impossible."""
    found: dict[str, list[Access]] = {}
    for access in accesses:
        if access.size <= 0 or access.address < 0 or not 0 <= access.task < tasks:
            raise HostError(f"access of {access.size} bytes at {access.address} by task {access.task} is not possible")
        found.setdefault(access.space, []).append(access)
    return found
