"""Byte ranges on memory channels: their owners, and tests for overlaps (NETLIST 3.6, V154)."""

from collections.abc import Sequence

from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """A range of `size` bytes from `start` on one channel of one chip's memory (`space` is "dram" or "host")."""

    device: int
    space: str
    channel: int
    start: int
    size: int

    def overlaps(self, other: "Region") -> bool:
        """Return whether two half-open ranges of the same channel have a byte in common."""
        return (
            (self.device, self.space, self.channel) == (other.device, other.space, other.channel)
            and self.start < other.start + other.size
            and other.start < self.start + self.size
        )


class RegionTable:
    """The regions that are held at this moment, by owner."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, tuple[Region, ...]] = {}

    @property
    def owners(self) -> list[str]:
        """The owners that hold regions now."""
        return list(self._held)

    def holds(self, owner: str) -> bool:
        """Return whether an owner holds regions now."""
        return owner in self._held

    def conflict(self, regions: Sequence[Region]) -> tuple[str, Region, Region] | None:
        """Return (owner, its region, the new one) of the first overlap with a region that is held, None where there is
        none."""
        for owner, held in self._held.items():
            for theirs in held:
                for ours in regions:
                    if ours.overlaps(theirs):
                        return owner, theirs, ours
        return None

    def take(self, owner: str, regions: Sequence[Region]) -> None:
        """Record that an owner holds these regions."""
        self._held[owner] = tuple(regions)

    def release(self, owner: str) -> None:
        """Remove the regions of an owner."""
        del self._held[owner]

    def clear(self) -> None:
        """Remove the regions of all owners."""
        self._held.clear()
