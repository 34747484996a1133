"""Ring regions of an L2: a tensor that passes the end of its region continues at its first byte (facts GEMINI 2.4)."""

from collections.abc import Sequence

from buda_emu.foreign.gemini.model import Region


def region_of(regions: Sequence[Region], address: int) -> Region | None:
    """Return the ring region that holds an address, None if none does."""
    return next(((low, high) for low, high in regions if low <= address < high), None)


def pieces(region: Region, address: int, size: int) -> list[Region]:
    """Return the byte ranges of a tensor in its region, in order: one range, or two where it wraps."""
    low, high = region
    end = address + size
    if end <= high:
        return [(address, end)]
    return [(address, high), (low, low + end - high)]
