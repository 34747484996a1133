"""Integer formats and raw words: Int8, UInt8, UInt16, Int32, RawUInt* (FORMATS 3.7 to 3.9, OPS 4.3, 4.4)."""

import numpy as np

from buda_emu.formats.bits import F32, Codes, from_bits, nan_as_zero, round_half_away, to_bits
from buda_emu.records import dataclass

_TWO_31 = np.float32(2147483648.0)
_SIGN_32 = np.uint32(0x80000000)
_DTYPES: dict[int, type[np.unsignedinteger]] = {8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True, slots=True)
class SignMagnitude8:
    """Int8: rounded half away from zero, clamped to -127..127, sign and magnitude; NaN is 0 (FORMATS 3.7, OPS 4.3)."""

    def encode(self, values: F32) -> Codes:
        """float32 to uint8 codes, same shape; a zero never carries a sign."""
        rounded = _clamped(values, -127, 127)
        sign = np.where(rounded < 0, np.uint8(0x80), np.uint8(0))
        return sign | np.abs(rounded).astype(np.uint8)

    def decode(self, codes: Codes) -> F32:
        """Codes to float32, same shape; 0x80 is +0."""
        magnitude = (codes & 0x7F).astype(np.float32)
        return np.where((codes >> 7 != 0) & (magnitude != 0), -magnitude, magnitude)


@dataclass(frozen=True, slots=True)
class Unsigned:
    """UInt8, UInt16: rounded half away from zero, clamped to the range; NaN is 0 (FORMATS 3.7)."""

    width: int

    def encode(self, values: F32) -> Codes:
        """float32 to codes, same shape."""
        return _clamped(values, 0, (1 << self.width) - 1).astype(_DTYPES[self.width])

    def decode(self, codes: Codes) -> F32:
        """Codes to float32, same shape."""
        return codes.astype(np.float32)


@dataclass(frozen=True, slots=True)
class SignMagnitude32:
    """Int32: negative values rounded half away, others truncated; sign and magnitude (FORMATS 3.8, OPS 4.4).

    From 2^31 up, and for NaN, the reference's language leaves the result open. Here it is what an x86-64 machine
    gives: the low 32 bits of the 64-bit integer, 0 from 2^63 up and for NaN; -2^31 and below become 0.
    """

    def encode(self, values: F32) -> Codes:
        """float32 to uint32 codes, same shape."""
        numbers = nan_as_zero(values)
        negative = numbers < 0
        magnitude = np.where(negative, round_half_away(np.minimum(np.abs(numbers), _TWO_31)), np.trunc(numbers))
        convertible = magnitude < np.float32(2.0**63)
        low_bits = np.where(convertible, magnitude, np.float32(0)).astype(np.int64).astype(np.uint32)
        return np.where(negative, low_bits | _SIGN_32, low_bits)

    def decode(self, codes: Codes) -> F32:
        """Codes to the nearest float32, same shape; minus zero is +0."""
        magnitude = (codes & np.uint32(0x7FFFFFFF)).astype(np.float32)
        return np.where((codes & _SIGN_32 != 0) & (magnitude != 0), -magnitude, magnitude)


@dataclass(frozen=True, slots=True)
class RawWord:
    """RawUInt*: the low `width` bits of the float's bit pattern, nothing converted (FORMATS 3.9)."""

    width: int

    def encode(self, values: F32) -> Codes:
        """Words viewed as float32 to codes, same shape."""
        return to_bits(values).astype(_DTYPES[self.width])

    def decode(self, codes: Codes) -> F32:
        """Codes to words viewed as float32, same shape."""
        return from_bits(codes)


def _clamped(values: F32, low: int, high: int) -> F32:
    """Rounded half away from zero and clamped; NaN becomes 0."""
    return round_half_away(np.clip(nan_as_zero(values), np.float32(low), np.float32(high)))


INT8 = SignMagnitude8()
INT32 = SignMagnitude32()
UINT8 = Unsigned(8)
UINT16 = Unsigned(16)
RAW_UINT8 = RawWord(8)
RAW_UINT16 = RawWord(16)
RAW_UINT32 = RawWord(32)
