"""The unit in the last place of a number format: what one step of its encoding is worth (FORMATS 1, 3, 4)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.formats.bits import F32
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, FormatSpec


def ulp(tiles: F32, format_name: str) -> NDArray[np.float64]:
    """Of each element of float32[..., 32, 32] tiles: float64, same shape, always positive.

    Floats: 2^(exponent - fraction bits), at and below the smallest normal that of the smallest normal, above the range
    and for infinities and NaNs that of the largest value. Block formats: the unit of the block's shared exponent, the
    largest one of 16 neighbours in a row. Integers and raw words: 1.
    """
    spec = FORMATS[format_name]
    if spec.kind in ("int", "raw"):
        return np.ones(tiles.shape)
    least, most = _exponents(spec)
    exponent = np.clip(_exponent(tiles), least, most)
    bits = spec.mantissa_bits
    if spec.kind == "block":
        blocks = exponent.reshape(*tiles.shape[:-1], -1, BLOCK_DATUMS)
        exponent = np.broadcast_to(blocks.max(axis=-1, keepdims=True), blocks.shape).reshape(tiles.shape)
        bits -= 1  # the leading one is among them
    return np.ldexp(1.0, exponent - bits)


def _exponent(values: F32) -> NDArray[np.int32]:
    """Floor of log2 of the magnitude; of 0 the least, of infinities and NaNs the most that there is."""
    field = (values.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)
    return field.astype(np.int32) - 127


def _exponents(spec: FormatSpec) -> tuple[int, int]:
    """The exponents of the least and the greatest unit."""
    bias = spec.bias or 0
    width = 4 if bias == 7 else 5 if bias == 15 else 8
    top = (1 << width) - 1 - bias
    if spec.kind == "block":
        return -bias, top
    return 1 - bias, top - (width == 8)  # the widest exponent keeps its top for infinities and NaNs
