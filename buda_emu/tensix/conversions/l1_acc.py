"""Accumulation in L1: the packer adds what it writes to what lies there (DEVICE_NUMERICS 4.6)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import U32, Codes
from buda_emu.tensix.lanes import FAMILY_SHIFT

_F64 = NDArray[np.float64]


def accumulate(out_df: str, old: Codes, new: Codes) -> Codes:
    """Old and packed new datums of Float32, Float16_b or Float16 to their sum, same type and shape."""
    adders = {"Float32": _add_fp32, "Float16_b": _add_bf16, "Float16": _add_fp16}
    if out_df not in adders:
        raise UnsupportedError(f"accumulation in L1 as {out_df}: Float32, Float16_b and Float16 are known")
    return adders[out_df](old.astype(np.uint32), new.astype(np.uint32)).astype(old.dtype)


def _add_fp32(old: U32, new: U32) -> U32:
    """IEEE addition without denormals; there is one NaN."""
    with np.errstate(all="ignore"):
        total = (_flushed(old).view(np.float32) + _flushed(new).view(np.float32)).view(np.uint32)
    is_nan = total & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000)
    return np.where(is_nan, np.uint32(0x7FC00000), _flushed(total))


def _add_bf16(old: U32, new: U32) -> U32:
    """In double precision, rounded once to bf16; only opposite infinities make a NaN."""
    old_value, new_value = _bf16_value(old), _bf16_value(new)
    # A NaN in L1 counts as the largest double, one from the packer as the ordinary number it would be.
    largest = np.copysign(np.finfo(np.float64).max, _signs(old))
    old_value = np.where(old & np.uint32(0x7FFF) > 0x7F80, largest, old_value)
    with np.errstate(all="ignore"):
        total = old_value + new_value
    is_nan = np.isnan(total)
    bits = np.where(is_nan, 0.0, total).view(np.int64)
    exponent = (bits >> 52 & 0x7FF) - 1023 + 127
    sign = (bits >> 63 & 1) << 15
    fraction = bits & ((1 << 52) - 1)
    kept, rest, half = fraction >> 45, fraction & ((1 << 45) - 1), 1 << 44
    up = (rest > half) | ((rest == half) & (kept & 1 != 0))
    code = (exponent << 7 | kept) + up
    code = np.where(exponent <= 0, 0, np.where(exponent >= 255, 0x7F80, code))
    return np.where(is_nan, 0x7FC0, sign | code).astype(np.uint32)


def _add_fp16(old: U32, new: U32) -> U32:
    """In single precision, where exponent 31 is an ordinary one."""
    total = (_fp16_value(old) + _fp16_value(new)).view(np.uint32)
    sign = total >> np.uint32(16) & np.uint32(0x8000)
    exponent = (total >> np.uint32(23) & np.uint32(255)).astype(np.int32) - FAMILY_SHIFT
    fraction = (total & np.uint32(0x7FFFFF)).astype(np.int32)
    kept, rest, half = fraction >> 13, fraction & 0x1FFF, 0x1000
    up = (rest > half) | ((rest == half) & (kept & 1 != 0))
    code = np.minimum((exponent << 10 | kept) + up, 0x7FFF)
    code = np.where(exponent == 0, 0, np.where(exponent < 0, 0x7FFF, code)).astype(np.uint32)
    cancelled = np.where(old >> np.uint32(10) & np.uint32(31) >= 30, np.uint32(0x7FFF), np.uint32(0))
    return sign | np.where(total & np.uint32(0x7FFFFFFF) == 0, cancelled, code)


def _flushed(word: U32) -> U32:
    """Denormals to signed zeros."""
    return np.where(word & np.uint32(0x7F800000) == 0, word & np.uint32(0x80000000), word)


def _signs(code: U32) -> _F64:
    return np.where(code & np.uint32(0x8000) != 0, -1.0, 1.0)


def _bf16_value(code: U32) -> _F64:
    """Infinities are such; any other exponent is an ordinary one, 0 a signed zero."""
    exponent = (code >> np.uint32(7) & np.uint32(255)).astype(np.int32)
    fraction = (code & np.uint32(0x7F)).astype(np.float64)
    magnitude = np.where(exponent == 0, 0.0, np.ldexp(1 + fraction / 128, exponent - 127))
    return _signs(code) * np.where(code & np.uint32(0x7FFF) == 0x7F80, np.inf, magnitude)


def _fp16_value(code: U32) -> NDArray[np.float32]:
    """Exact in single precision; exponent 0 is a signed zero."""
    exponent = code >> np.uint32(10) & np.uint32(31)
    wide = (exponent + np.uint32(FAMILY_SHIFT)) << np.uint32(23) | (code & np.uint32(0x3FF)) << np.uint32(13)
    return ((code & np.uint32(0x8000)) << np.uint32(16) | np.where(exponent == 0, np.uint32(0), wide)).view(np.float32)
