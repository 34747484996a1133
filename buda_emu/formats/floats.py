"""Scalar float formats: Float32, Tf32, Float16_b, Float16, Lf8, Fp8_e4m3 (FORMATS 3.1 to 3.6)."""

import numpy as np

from buda_emu.formats.bits import F32, Codes, from_bits, to_bits
from buda_emu.records import dataclass

_SINGLE_BIAS = 127
_SINGLE_FRACTION = 23


@dataclass(frozen=True, slots=True)
class UpperBits:
    """A single of which only the upper `kept` bits are stored: truncation toward zero (FORMATS 3.1, 3.2, 3.3).

    Float32 keeps 32, Float16_b 16. Tf32 keeps 19, but in a 32-bit datum whose low bits are zero. Infinities,
    denormals and -0 stay; a NaN whose payload is in the dropped bits alone becomes an infinity.
    """

    kept: int
    width: int

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """Type of one stored code."""
        return np.uint16 if self.width == 16 else np.uint32

    def encode(self, values: F32) -> Codes:
        """float32 to codes of `width` bits, same shape."""
        upper = to_bits(values) >> np.uint32(32 - self.kept) << np.uint32(self.width - self.kept)
        return upper.astype(self.dtype)

    def decode(self, codes: Codes) -> F32:
        """Codes to float32, same shape."""
        return from_bits(codes.astype(np.uint32) << np.uint32(32 - self.width))


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A float with a narrow exponent and without infinities, NaNs and denormals (FORMATS 3.4, 3.5, 3.6).

    Encoding truncates the fraction, turns what is below the smallest normal into a signed zero, and everything
    above the largest value (infinities and NaNs too) into the code of all ones. The top exponent is an ordinary
    one.
    """

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        """Exponent bias: 15 for 5 bits, 7 for 4."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """Type of one stored code."""
        return np.uint16 if self.exponent_bits + self.fraction_bits > 7 else np.uint8

    def encode(self, values: F32) -> Codes:
        """float32 to codes, same shape."""
        bits = to_bits(values)
        magnitude_bits = self.exponent_bits + self.fraction_bits
        magnitude = bits & np.uint32(0x7FFFFFFF)
        smallest = np.uint32((_SINGLE_BIAS - self.bias + 1) << _SINGLE_FRACTION)
        beyond = np.uint32((_SINGLE_BIAS - self.bias + (1 << self.exponent_bits)) << _SINGLE_FRACTION)
        # Inside of the range the code is the upper part of the single with its exponent moved to the smaller bias.
        kept = np.clip(magnitude, smallest, beyond - np.uint32(1)) >> np.uint32(_SINGLE_FRACTION - self.fraction_bits)
        code = kept - np.uint32((_SINGLE_BIAS - self.bias) << self.fraction_bits)
        code[magnitude < smallest] = 0
        code |= bits >> np.uint32(31) << np.uint32(magnitude_bits)
        return code.astype(self.dtype)

    def decode(self, codes: Codes) -> F32:
        """Codes to float32, same shape. Exponent 0 becomes exponent 0 of the single with the fraction bits copied."""
        wide = codes.astype(np.uint32)
        exponent = (wide >> np.uint32(self.fraction_bits)) & np.uint32((1 << self.exponent_bits) - 1)
        fraction = wide & np.uint32((1 << self.fraction_bits) - 1)
        sign = wide >> np.uint32(self.exponent_bits + self.fraction_bits)
        single_exponent = np.where(exponent == 0, np.uint32(0), exponent + np.uint32(_SINGLE_BIAS - self.bias))
        single_fraction = fraction << np.uint32(_SINGLE_FRACTION - self.fraction_bits)
        return from_bits(sign << np.uint32(31) | single_exponent << np.uint32(_SINGLE_FRACTION) | single_fraction)


FLOAT32 = UpperBits(kept=32, width=32)
TF32 = UpperBits(kept=19, width=32)
FLOAT16_B = UpperBits(kept=16, width=16)
FLOAT16 = SmallFloat(exponent_bits=5, fraction_bits=10)
LF8 = SmallFloat(exponent_bits=5, fraction_bits=2)
FP8_E4M3 = SmallFloat(exponent_bits=4, fraction_bits=3)
