"""Bytes of feature maps and weights (facts GEMINI 2.6, 3)."""

from buda_emu.foreign.gemini.boxes import Box

CHANNELS = 8  # of a weight are padded to a multiple of so many
EXTRA = 32  # undocumented bytes for each output channel of a weight
UNIT = 64  # bits: align * bitwidth; and bytes: addresses are multiples of it
BITWIDTHS = (8, 16)
KIB = 8 * 1024  # bits


def aligned(bitwidth: int) -> int:
    """Channels that a feature map is padded to."""
    return UNIT // bitwidth


def legal(align: int, bitwidth: int) -> bool:
    """They are those of int8 or of 16 bits (G030)."""
    return bitwidth in BITWIDTHS and align * bitwidth == UNIT


def padded(count: int, to: int) -> int:
    """Rounded up to a multiple."""
    return -(-count // to) * to


def fmap_bytes(box: Box, bitwidth: int) -> int:
    """Of a feature map in L2 or DRAM (A)."""
    n, c, h, w = box.shape
    return n * padded(c, aligned(bitwidth)) * h * w * bitwidth // 8


def weight_bytes(box: Box) -> int:
    """Of a weight, box [0, K, C, R*S] (A)."""
    _, k, c, taps = box.shape
    return k * (padded(c, CHANNELS) * taps + EXTRA)


def fmap_bits(box: Box) -> int:
    """Of a feature map (B): no padding, one byte an element."""
    return 8 * box.volume
