"""The matrix unit on 8-bit integers, which accumulate in a Dst of 32 bits (DEVICE_NUMERICS 5).

Every phase multiplies parts of the magnitudes; all four together give the exact product. Sums are exact, and saturate
at plus and minus 2^31 - 1 when they enter Dst.
"""

from typing import Final

import numpy as np

from buda_emu.formats.bits import U32
from buda_emu.tensix.words import I64, SIGN, exponent_of, sign_of

LIMIT: Final = (1 << 31) - 1
_SRCA_MASKS: Final = (0xE0, 0x1F)
_SRCB_MASKS: Final = (0x3F0, 0x00F)


def int_mvmul(dst: U32, srcb: U32, srca: U32, phase: int) -> U32:
    """The Dst image [..., rows, cols] after srcb [..., rows, 16] x srca [..., 16, cols] of one phase is added."""
    a, b = _values(srca, _SRCA_MASKS[phase & 1]), _values(srcb, _SRCB_MASKS[phase >> 1])
    return encode(decode(dst) + b @ a)


def int_elwmul(dst: U32, srca: U32, srcb: U32, phase: int) -> U32:
    """The Dst image after the products of one phase are added; all shapes are the same."""
    a, b = _values(srca, _SRCA_MASKS[phase & 1]), _values(srcb, _SRCB_MASKS[phase >> 1])
    return encode(decode(dst) + a * b)


def int_elwadd(dst: U32 | None, srca: U32, srcb: U32) -> U32:
    """The Dst image of srca + srcb, added to `dst` where one is given; all shapes are the same."""
    total = _values(srca, 0x3FF) + _values(srcb, 0x3FF)
    return encode(total if dst is None else decode(dst) + total)


def int_elwsub(dst: U32 | None, srca: U32, srcb: U32) -> U32:
    """The Dst image of srca - srcb, added to `dst` where one is given; all shapes are the same."""
    return int_elwadd(dst, srca, srcb ^ SIGN)


def int_copy(srca: U32) -> U32:
    """The Dst image of an 8-bit operand that an op copies: zero is added to it (2.7)."""
    return int_elwadd(None, srca, np.zeros_like(srca))


def decode(dst: U32) -> I64:
    """The values of sign and magnitude; -0 is 0."""
    magnitude = (dst & ~SIGN).astype(np.int64)
    return np.where(dst & SIGN != 0, -magnitude, magnitude)


def encode(values: I64) -> U32:
    """Sign and magnitude of values, saturated; zero is +0."""
    magnitude = np.minimum(np.abs(values), LIMIT).astype(np.uint32)
    return np.where(values < 0, SIGN | magnitude, magnitude)


def _values(words: U32, mask: int) -> I64:
    """The values of Src words, of whose magnitude `mask` is taken."""
    magnitude = (words >> np.uint32(13) & np.uint32(mask)).astype(np.int64)
    signed = np.where(sign_of(words) == 1, -magnitude, magnitude)
    return np.where(exponent_of(words) == 0, 0, signed)
