"""ACC: how sums enter Dst, aligned, added, rounded to what Dst holds (DEVICE_NUMERICS 2.3).

There is no NaN, and exponent 255 (31 in an fp16 Dst) is an ordinary one on input; only what overflows gets the pattern
of saturation. What underflows is +0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from buda_emu.formats.bits import U32, bit_length
from buda_emu.spec.formats import Family
from buda_emu.tensix.lanes import DstMode
from buda_emu.tensix.words import I64, Core, exponent_of, require_pairing, sign_of, to_image, to_word

_DROP: Final[Mapping[DstMode, int]] = MappingProxyType({"fp32": 0, "bf16": 16, "fp16": 13})
"""Bits of a fraction of 23 that Dst does not hold."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A term of ACC: sign 0 or 1, exponent X, and magnitude in units of 2^-23 of 2^X."""

    sign: I64
    exponent: I64
    magnitude: I64


def accumulate(dst: U32, sums: Sequence[Sum], family: Family, mode: DstMode, core: Core) -> U32:
    """The Dst image after one or two sums are added to it at once; all shapes are the same."""
    require_pairing(family, mode)
    old = to_word(dst, mode)
    old_exponent = exponent_of(old)
    old_magnitude = np.where(old_exponent == 0, 0, (old & np.uint32(0x7FFFFF)).astype(np.int64) | 1 << 23)
    # 1. The common exponent.
    common = np.maximum.reduce([old_exponent, *(s.exponent for s in sums)])
    # 2. Align: sums round ties towards +inf, Dst away from zero.
    terms = [(s.sign, _aligned(s.magnitude, common - s.exponent, s.sign)) for s in sums]
    old_magnitude = _aligned(old_magnitude, common - old_exponent, 0)
    # 3. A 16-bit Dst adds without the 13 low bits.
    if mode != "fp32":
        terms = [(sign, (n + 4096 - sign) & ~0x1FFF) for sign, n in terms]
        old_magnitude = (old_magnitude + 4096) & ~0x1FFF
    # 4. The exact sum.
    total = np.where(sign_of(old) == 1, -old_magnitude, old_magnitude)
    for sign, n in terms:
        total = total + np.where(sign == 1, -n, n)
    sign = (total < 0).astype(np.int64)
    magnitude = np.abs(total)
    # 5. Normalise to a leading one at bit 23.
    shift = 24 - bit_length(magnitude)
    if core != "blackhole":
        shift = np.where((sign == 1) & (magnitude == 1), -4, shift)  # an error of the chip
    exponent = common - shift
    # 6. Round, ties away from zero, to the bits that Dst holds.
    drop = _DROP[mode]
    magnitude = _rounded(magnitude, shift - drop) << drop
    exponent = exponent + (magnitude == 1 << 24)
    # 7. The ends of the range.
    too_large, saturated = (32, 31 << 23 | 0x3FF << 13) if mode == "fp16" else (255, 255 << 23)
    word = np.where(exponent >= too_large, saturated, exponent << 23 | magnitude & 0x7FFFFF)
    gone = (common <= 0) | (total == 0) | (exponent <= 0)
    return to_image(np.where(gone, 0, sign << 31 | word).astype(np.uint32), mode)


def _aligned(magnitude: I64, distance: I64, sign: I64 | int) -> I64:
    """Shifted right and rounded; a negative one half down in magnitude where its sign is given."""
    right = np.clip(distance, 1, 31)
    shifted = (magnitude + (1 << (right - 1)) - sign) >> right
    return np.where(distance <= 0, magnitude, np.where(distance < 31, shifted, 0))


def _rounded(magnitude: I64, shift: I64) -> I64:
    """Shifted left, or right with rounding to nearest, ties away from zero."""
    right = np.clip(-shift, 1, 40)
    return np.where(shift < 0, (magnitude + (1 << (right - 1))) >> right, magnitude << np.clip(shift, 0, 31))
