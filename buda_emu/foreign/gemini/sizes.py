"""Sizes of feature maps and weights in bytes and bits (facts GEMINI 2.6, 3), and the ring regions of an L2: a tensor
that passes the end of its region continues at its first byte (2.4)."""

from collections.abc import Sequence

from buda_emu.foreign.gemini.boxes import Box
from buda_emu.foreign.gemini.model import Region

CHANNELS = 8  # of a weight are padded to a multiple of so many
EXTRA = 32  # undocumented bytes for each output channel of a weight
UNIT = 64  # bits: align * bitwidth; and bytes: addresses are multiples of it
BITWIDTHS = (8, 16)  # of int8 and of 16-bit numbers (GEMINI 2.6)
KIB = 8 * 1024  # bits


def channel_multiple(bitwidth: int) -> int:
    """Return the number of channels to a multiple of which a feature map is padded."""
    return UNIT // bitwidth


def is_legal_alignment(align: int, bitwidth: int) -> bool:
    """Return whether the bitwidth is 8 or 16, and align times bitwidth is 64 (G030)."""
    return bitwidth in BITWIDTHS and align * bitwidth == UNIT


def round_up(count: int, to: int) -> int:
    """Return the count, rounded up to a multiple of `to`."""
    return -(-count // to) * to


def fmap_bytes(box: Box, bitwidth: int) -> int:
    """Return the bytes of a feature map in L2 or DRAM, with padded channels (dialect A)."""
    n, c, h, w = box.shape
    return n * round_up(c, channel_multiple(bitwidth)) * h * w * bitwidth // 8


def weight_bytes(box: Box) -> int:
    """Return the bytes of a weight with box [0, K, C, R*S] (dialect A)."""
    _, k, c, taps = box.shape
    return k * (round_up(c, CHANNELS) * taps + EXTRA)


def fmap_bits(box: Box) -> int:
    """Return the bits of a feature map without padding, one byte for each element (dialect B)."""
    return 8 * box.volume


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
