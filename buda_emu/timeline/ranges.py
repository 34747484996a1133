"""Ranges of bytes: rings that wrap, and sets of bytes."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from buda_emu.errors import HostError


class Ring(NamedTuple):
    """Bytes `low` to `high` - 1 of a space, used as a ring: what would pass the last byte goes on at the first."""

    low: int
    high: int


def pieces(address: int, size: int, ring: Ring | None = None) -> tuple[tuple[int, int], ...]:
    """The ranges (first byte, byte after the last) of so many bytes from an address, in their order: one, or two where
    they wrap in a ring. Raises HostError for what does not lie in the ring."""
    if ring is None:
        return ((address, address + size),)
    if not (ring.low <= address < ring.high and 0 <= size <= ring.high - ring.low):
        raise HostError(f"{size} bytes at {address} do not lie in the ring from {ring.low} to {ring.high}")
    end = address + size
    if end <= ring.high:
        return ((address, end),)
    return (address, ring.high), (ring.low, ring.low + end - ring.high)


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """How many numbers lie in at least one of the ranges (first, one after the last)."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


class ByteSet:
    """A set of byte addresses, as ranges that do not touch; adding and asking take about log n steps."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def add(self, low: int, high: int) -> None:
        """Every byte from low to high - 1."""
        if low >= high:
            return
        first, last = bisect_left(self._highs, low), bisect_right(self._lows, high)  # what touches it
        if first < last:
            low, high = min(low, self._lows[first]), max(high, self._highs[last - 1])
        self._lows[first:last] = [low]
        self._highs[first:last] = [high]

    def missing(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The stretches from low to high - 1 that are not in the set, in order."""
        at = bisect_right(self._highs, low)
        while low < high:
            first = self._lows[at] if at < len(self._lows) else high
            if low < first:
                yield low, min(first, high)
            low = self._highs[at] if at < len(self._highs) else high
            at += 1

    def __len__(self) -> int:
        """Bytes."""
        return sum(self._highs) - sum(self._lows)
