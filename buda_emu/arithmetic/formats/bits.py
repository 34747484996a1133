"""Floats seen as their 32-bit patterns and back, without any conversion touching the payload."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, FormatSpec
from buda_emu.spec.single import INFINITY, MAGNITUDE

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Codes = NDArray[np.unsignedinteger[Any]]
"""Stored datums of a format: uint8, uint16 or uint32."""


def to_bits(values: F32) -> U32:
    """Return the bit patterns of float32 values; same shape, no copy where the memory allows it. Raises TypeError for
    another type."""
    if values.dtype != np.float32:
        raise TypeError(f"expected float32 values, got {values.dtype}")
    return np.ascontiguousarray(values).reshape(values.shape).view(np.uint32)


def single(value: float) -> int:
    """Return the bit pattern of a number as a float32, to which it is rounded (nearest, ties to even)."""
    return int(to_bits(np.array([value], dtype=np.float32))[0])


def bit_length(value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of bits of each value, of at least 0, without leading zeros: 0 for 0; exact below 2^53."""
    return np.frexp(value.astype(np.float64))[1].astype(np.int64)


def from_bits(bits: Codes) -> F32:
    """Return the float32 values that have these bit patterns; same shape. Patterns of 8 or 16 bits get zeros above
    them."""
    return np.ascontiguousarray(bits, dtype=np.uint32).reshape(bits.shape).view(np.float32)


def nan_as_zero(values: F32) -> F32:
    """Return the values with +0 in place of every NaN. NaNs are recognised by their bits, so signalling ones raise no
    flag."""
    is_nan = (to_bits(values) & np.uint32(MAGNITUDE)) > np.uint32(INFINITY)
    return np.where(is_nan, np.float32(0), values)


def round_half_away(values: F32) -> F32:
    """Return finite values rounded to the nearest integer, ties away from zero, without an intermediate rounding
    (FORMATS 3.7)."""
    truncated = np.trunc(values)
    away = np.abs(values - truncated) >= np.float32(0.5)
    return np.where(away, truncated + np.copysign(np.float32(1), values), truncated)


def ulp(tiles: F32, format_name: str) -> NDArray[np.float64]:
    """Return the unit in the last place that each element of float32[..., 32, 32] tiles has in a format: float64, same
    shape, always positive.

    Floats: 2^(exponent - fraction bits), at and below the smallest normal that of the smallest normal, above the range
    and for infinities and NaNs that of the largest value. Block formats: the unit of the block's shared exponent, the
    largest one of 16 neighbours in a row. Integers and raw words: 1. Raises KeyError for an unknown format.
    """
    spec = FORMATS[format_name]
    if spec.kind in ("int", "raw"):
        return np.ones(tiles.shape)
    least, greatest = _exponent_limits(spec)
    exponent = np.clip(_unbiased_exponent(tiles), least, greatest)
    bits = spec.mantissa_bits
    if spec.kind == "block":
        blocks = exponent.reshape(*tiles.shape[:-1], -1, BLOCK_DATUMS)
        exponent = np.broadcast_to(blocks.max(axis=-1, keepdims=True), blocks.shape).reshape(tiles.shape)
        bits -= 1  # the leading one is among them
    return np.ldexp(1.0, exponent - bits)


def _unbiased_exponent(values: F32) -> NDArray[np.int32]:
    """Return floor(log2) of the magnitude of each value; -127 for 0 and subnormals, 128 for infinities and NaNs."""
    field = (values.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)
    return field.astype(np.int32) - 127


def _exponent_limits(spec: FormatSpec) -> tuple[int, int]:
    """Return the least and the greatest exponent, without bias, by which values of a float or block format have a unit
    in the last place (`ulp`): that of the smallest normal and that of the largest value."""
    bias = spec.bias or 0
    width = {7: 4, 15: 5}.get(bias, 8)
    top = (1 << width) - 1 - bias
    if spec.kind == "block":
        return -bias, top
    return 1 - bias, top - (width == 8)  # the widest exponent keeps its top for infinities and NaNs
