"""Block formats Bfp8, Bfp4, Bfp2 and their _b siblings: 16 datums share one exponent (FORMATS 4)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.formats.bits import F32, from_bits, to_bits
from buda_emu.records import dataclass

Rounding = Literal["nearest", "truncate"]

_HIDDEN = np.int32(0x800000)
_FAMILY_SHIFT = 127 - 15
"""How much larger the exponent of a single is than that of the 5-bit family."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """One block format: `magnitude_bits` (7, 3, 1) with explicit leading one; `narrow` = 5-bit exponents (family A)."""

    magnitude_bits: int
    narrow: bool

    def encode(self, groups: F32, rounding: Rounding) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """float32[..., 16] to (shared exponents uint8[...], datums uint8[..., 16]), the five steps of FORMATS 4.

        "nearest" rounds magnitudes half up; an overflow of the rounding saturates, it never moves the shared
        exponent.
        """
        bits = to_bits(groups)
        field = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
        fraction = (bits & np.uint32(0x7FFFFF)).astype(np.int32)
        exponent = field
        if self.narrow:
            own = field - _FAMILY_SHIFT
            exponent = np.clip(own, 0, 31)
            # Underflow is not flushed: the hidden one below makes it exactly 2^-15.
            fraction = np.where(own > 31, np.int32(0x7FFFFF), np.where(own < 0, np.int32(0), fraction))
        shared = exponent.max(axis=-1)
        distance = np.minimum(shared[..., np.newaxis] - exponent, 31)  # all bits are gone from 24 on
        aligned = (_HIDDEN | fraction) >> distance
        drop = 24 - self.magnitude_bits
        if rounding == "nearest":
            aligned = aligned + (1 << (drop - 1))
        magnitude = np.minimum(aligned >> drop, (1 << self.magnitude_bits) - 1)
        magnitude = np.where(bits & np.uint32(0x7FFFFFFF) == 0, 0, magnitude)
        sign = (bits >> np.uint32(31)).astype(np.int32) << self.magnitude_bits
        datums = np.where(magnitude == 0, 0, sign | magnitude)
        return shared.astype(np.uint8), datums.astype(np.uint8)

    def decode(self, exponents: NDArray[np.uint8], datums: NDArray[np.uint8]) -> F32:
        """(shared exponents uint8[...], datums uint8[..., 16]) to float32[..., 16]; magnitude 0 is a signed zero."""
        wide = datums.astype(np.uint32)
        magnitude = wide & np.uint32((1 << self.magnitude_bits) - 1)
        sign = wide >> np.uint32(self.magnitude_bits)
        leading_zeros = _leading_zeros(self.magnitude_bits)[magnitude]
        base = exponents.astype(np.uint32)[..., np.newaxis] + np.uint32(_FAMILY_SHIFT if self.narrow else 0)
        field = (base - leading_zeros) & np.uint32(0xFF)
        # The leading one goes out at the top of the 24 bits, what follows it is the fraction.
        fraction = (magnitude << (np.uint32(24 - self.magnitude_bits) + leading_zeros)) & np.uint32(0x7FFFFF)
        positive = np.where(magnitude == 0, np.uint32(0), field << np.uint32(23) | fraction)
        return from_bits(sign << np.uint32(31) | positive)


def _leading_zeros(magnitude_bits: int) -> NDArray[np.uint32]:
    """Leading zeros of every magnitude of that many bits."""
    return np.array([magnitude_bits - value.bit_length() for value in range(1 << magnitude_bits)], dtype=np.uint32)
