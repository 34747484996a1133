"""The codecs of all number formats, from the table of `spec`: what a value is after it was stored (FORMATS 1 to 4)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import F32, Codes, from_bits, nan_as_zero, round_half_away, to_bits
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS
from buda_emu.spec.single import FRACTION, HIDDEN, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.records import dataclass

Rounding = Literal["nearest", "truncate"]

_HIDDEN = np.int32(HIDDEN)
_FAMILY_SHIFT = 127 - 15
"""How much larger the exponent of a single is than that of the 5-bit family."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A block format (FORMATS 4): 16 neighbours share an exponent, and each has a sign and `magnitude_bits` (7, 3 or 1)
    with an explicit leading one. `narrow`: exponents have 5 bits (family A), else 8 (family B)."""

    magnitude_bits: int
    narrow: bool

    def encode(self, groups: F32, rounding: Rounding) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Encode float32[..., 16], groups that share an exponent, as exponents uint8[...] and datums uint8[..., 16]
        with the sign above the magnitude (FORMATS 4).

        The shared exponent is the group's largest. Magnitudes are aligned to it, and rounded half up ("nearest") or cut
        ("truncate"); where rounding overflows they saturate, and the exponent stays. A magnitude of 0 has no sign.
        """
        bits = to_bits(groups)
        field = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
        fraction = (bits & np.uint32(FRACTION)).astype(np.int32)
        exponent = field
        if self.narrow:
            narrow_field = field - _FAMILY_SHIFT
            exponent = np.clip(narrow_field, 0, 31)
            # Underflow is not flushed: the hidden one below makes it exactly 2^-15.
            fraction = np.where(
                narrow_field > 31, np.int32(0x7FFFFF), np.where(narrow_field < 0, np.int32(0), fraction)
            )
        shared = exponent.max(axis=-1)
        distance = np.minimum(shared[..., np.newaxis] - exponent, 31)  # all bits are gone from 24 on
        aligned = (_HIDDEN | fraction) >> distance
        drop = 24 - self.magnitude_bits
        if rounding == "nearest":
            aligned = aligned + (1 << (drop - 1))
        magnitude = np.minimum(aligned >> drop, (1 << self.magnitude_bits) - 1)
        magnitude = np.where(bits & np.uint32(MAGNITUDE) == 0, 0, magnitude)
        sign = (bits >> np.uint32(31)).astype(np.int32) << self.magnitude_bits
        datums = np.where(magnitude == 0, 0, sign | magnitude)
        return shared.astype(np.uint8), datums.astype(np.uint8)

    def decode(self, exponents: NDArray[np.uint8], datums: NDArray[np.uint8]) -> F32:
        """Decode shared exponents uint8[...] and datums uint8[..., 16] to float32[..., 16]; a magnitude of 0 gives a
        zero with the datum's sign."""
        wide = datums.astype(np.uint32)
        magnitude = wide & np.uint32((1 << self.magnitude_bits) - 1)
        sign = wide >> np.uint32(self.magnitude_bits)
        leading_zeros = _leading_zeros(self.magnitude_bits)[magnitude]
        base = exponents.astype(np.uint32)[..., np.newaxis]
        if self.narrow:
            base = base + np.uint32(_FAMILY_SHIFT)
        field = (base - leading_zeros) & np.uint32(0xFF)
        # The leading one goes out at the top of the 24 bits, what follows it is the fraction.
        fraction = (magnitude << (np.uint32(24 - self.magnitude_bits) + leading_zeros)) & np.uint32(FRACTION)
        positive = np.where(magnitude == 0, np.uint32(0), field << np.uint32(23) | fraction)
        return from_bits(sign << np.uint32(31) | positive)


def _leading_zeros(magnitude_bits: int) -> NDArray[np.uint32]:
    """Return the table uint32[2^magnitude_bits] of how many leading zeros each magnitude of `magnitude_bits` bits has;
    0 has as many as there are bits."""
    return np.array([magnitude_bits - value.bit_length() for value in range(1 << magnitude_bits)], dtype=np.uint32)


_SINGLE_BIAS = 127  # of exponents of IEEE single precision
_SINGLE_FRACTION = 23  # bits of fraction in single precision


@dataclass(frozen=True, slots=True)
class UpperBits:
    """A format that keeps the upper `kept` bits of a single in a datum of `width` bits: truncation toward zero (FORMATS
    3.1, 3.2, 3.3).

    Float32 keeps 32, Float16_b 16. Tf32 keeps 19, but in a 32-bit datum whose low bits are zero. Infinities, denormals
    and -0 stay; a NaN whose payload is in the dropped bits alone becomes an infinity.
    """

    kept: int
    width: int

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The type of one stored code."""
        if self.width == 16:
            return np.uint16
        return np.uint32

    def encode(self, values: F32) -> Codes:
        """Encode float32 as codes of `width` bits, same shape, by dropping the lower bits."""
        upper = to_bits(values) >> np.uint32(32 - self.kept) << np.uint32(self.width - self.kept)
        return upper.astype(self.dtype)

    def decode(self, codes: Codes) -> F32:
        """Decode codes to float32, same shape, with zeros for the dropped bits."""
        return from_bits(codes.astype(np.uint32) << np.uint32(32 - self.width))


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A float with a narrow exponent and without infinities, NaNs and denormals (FORMATS 3.4, 3.5, 3.6).

    Encoding truncates the fraction, turns what is below the smallest normal into a zero, and everything above the
    largest value (infinities and NaNs too) into the largest magnitude; the sign always stays. The top exponent is an
    ordinary one.
    """

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        """The exponent bias: 15 for 5 bits, 7 for 4."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The type of one stored code."""
        if self.exponent_bits + self.fraction_bits > 7:
            return np.uint16
        return np.uint8

    def encode(self, values: F32) -> Codes:
        """Encode float32 as codes, same shape, truncated and saturated (see the class)."""
        bits = to_bits(values)
        magnitude_bits = self.exponent_bits + self.fraction_bits
        magnitude = bits & np.uint32(MAGNITUDE)
        smallest = np.uint32((_SINGLE_BIAS - self.bias + 1) << _SINGLE_FRACTION)
        beyond = np.uint32((_SINGLE_BIAS - self.bias + (1 << self.exponent_bits)) << _SINGLE_FRACTION)
        # Inside of the range the code is the upper part of the single with its exponent moved to the smaller bias.
        upper = np.clip(magnitude, smallest, beyond - np.uint32(1)) >> np.uint32(_SINGLE_FRACTION - self.fraction_bits)
        code = upper - np.uint32((_SINGLE_BIAS - self.bias) << self.fraction_bits)
        code[magnitude < smallest] = 0
        code |= bits >> np.uint32(31) << np.uint32(magnitude_bits)
        return code.astype(self.dtype)

    def decode(self, codes: Codes) -> F32:
        """Decode codes to float32, same shape. A code with exponent 0 becomes a single with exponent 0 whose fraction
        begins with the code's (FORMATS 3.4)."""
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


_TWO_31 = np.float32(2147483648.0)  # magnitudes from here on do not fit 31 bits
_SIGN_32 = np.uint32(SIGN)
_DTYPES: dict[int, type[np.unsignedinteger]] = {8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True, slots=True)
class SignMagnitude8:
    """Int8: rounded half away from zero, clamped to -127..127, stored as sign and magnitude; NaN is 0 (FORMATS 3.7, OPS
    4.3)."""

    def encode(self, values: F32) -> Codes:
        """Encode float32 as uint8 codes, same shape; a zero never carries a sign."""
        rounded = _round_and_clamp(values, -127, 127)
        sign = np.where(rounded < 0, np.uint8(0x80), np.uint8(0))
        return sign | np.abs(rounded).astype(np.uint8)

    def decode(self, codes: Codes) -> F32:
        """Decode codes to float32, same shape; 0x80 (minus zero) gives +0."""
        magnitude = (codes & 0x7F).astype(np.float32)
        return np.where((codes >> 7 != 0) & (magnitude != 0), -magnitude, magnitude)


@dataclass(frozen=True, slots=True)
class Unsigned:
    """UInt8 and UInt16: rounded half away from zero, clamped to 0 .. 2^width - 1; NaN is 0 (FORMATS 3.7)."""

    width: int

    def encode(self, values: F32) -> Codes:
        """Encode float32 as codes, same shape."""
        return _round_and_clamp(values, 0, (1 << self.width) - 1).astype(_DTYPES[self.width])

    def decode(self, codes: Codes) -> F32:
        """Decode codes to float32, same shape."""
        return codes.astype(np.float32)


@dataclass(frozen=True, slots=True)
class SignMagnitude32:
    """Int32: negative values rounded half away from zero, others truncated, stored as sign and magnitude (FORMATS 3.8,
    OPS 4.4).

    From 2^31 up, and for NaN, the reference's language leaves the result open. Here it is what an x86-64 machine gives:
    the low 32 bits of the 64-bit integer, whose top bit then counts as the sign, and 0 from 2^63 up and for NaN; -2^31
    and below become minus zero, which decodes to 0.
    """

    def encode(self, values: F32) -> Codes:
        """Encode float32 as uint32 codes, same shape."""
        numbers = nan_as_zero(values)
        negative = numbers < 0
        magnitude = np.where(negative, round_half_away(np.minimum(np.abs(numbers), _TWO_31)), np.trunc(numbers))
        convertible = magnitude < np.float32(2.0**63)
        low_bits = np.where(convertible, magnitude, np.float32(0)).astype(np.int64).astype(np.uint32)
        return np.where(negative, low_bits | _SIGN_32, low_bits)

    def decode(self, codes: Codes) -> F32:
        """Decode codes to the nearest float32, same shape; minus zero gives +0."""
        magnitude = (codes & np.uint32(MAGNITUDE)).astype(np.float32)
        return np.where((codes & _SIGN_32 != 0) & (magnitude != 0), -magnitude, magnitude)


@dataclass(frozen=True, slots=True)
class RawWord:
    """RawUInt*: words that travel as the bit patterns of floats, of which the low `width` bits are stored; nothing is
    converted (FORMATS 3.9)."""

    width: int

    def encode(self, values: F32) -> Codes:
        """Return the low `width` bits of words viewed as float32, same shape."""
        return to_bits(values).astype(_DTYPES[self.width])

    def decode(self, codes: Codes) -> F32:
        """Return codes as words viewed as float32, same shape."""
        return from_bits(codes)


def _round_and_clamp(values: F32, low: int, high: int) -> F32:
    """Return values rounded half away from zero and clamped to low .. high, as float32; NaN becomes 0."""
    return round_half_away(np.clip(nan_as_zero(values), np.float32(low), np.float32(high)))


INT8 = SignMagnitude8()
INT32 = SignMagnitude32()
UINT8 = Unsigned(8)
UINT16 = Unsigned(16)
RAW_UINT8 = RawWord(8)
RAW_UINT16 = RawWord(16)
RAW_UINT32 = RawWord(32)


class ScalarCodec(Protocol):
    """The conversions of a format that stores every value by itself, without a shared exponent."""

    def encode(self, values: F32) -> Codes:
        """Encode float32 as codes (uint8, uint16 or uint32), same shape."""
        ...

    def decode(self, codes: Codes) -> F32:
        """Decode codes to float32, same shape."""
        ...


SCALAR_CODECS: Final[Mapping[str, ScalarCodec]] = MappingProxyType(
    {
        "Float32": FLOAT32,
        "Tf32": TF32,
        "Float16_b": FLOAT16_B,
        "Float16": FLOAT16,
        "Lf8": LF8,
        "Fp8_e4m3": FP8_E4M3,
        "Int8": INT8,
        "UInt8": UINT8,
        "UInt16": UINT16,
        "Int32": INT32,
        "RawUInt8": RAW_UINT8,
        "RawUInt16": RAW_UINT16,
        "RawUInt32": RAW_UINT32,
    }
)
"""Codec of every format without a shared exponent."""

BLOCK_CODECS: Final[Mapping[str, BlockFormat]] = MappingProxyType(
    {
        name: BlockFormat(spec.mantissa_bits, narrow=spec.family == "a")
        for name, spec in FORMATS.items()
        if spec.kind == "block"
    }
)
"""Codec of every block format."""

PACKED_AS: Final[Mapping[str, str]] = MappingProxyType({"Fp8_e4m3": "Lf8"})
"""Formats whose tiles are written by the encoder of another one (FORMATS 3.6); reading uses their own decoder."""


def pack_codec(name: str) -> ScalarCodec:
    """Return the codec that writes the datums of a tile of the scalar format `name`: its own, but Lf8's for Fp8_e4m3,
    as the reference does (FORMATS 3.6). Raises KeyError for block and unknown formats."""
    return SCALAR_CODECS[PACKED_AS.get(name, name)]


def quantise(name: str, tiles: F32, rounding: Rounding = "nearest") -> F32:
    """Return `tiles` packed in a format and unpacked again (FORMATS 5.1).

    `tiles` is float32[..., 32, 32]; for a block format any shape whose last axis divides by 16, since 16 neighbours are
    one row of one face. Float32 gives the input's bits; RawUInt* keep the low bits of the pattern. `rounding` matters
    for block formats only: a host push rounds, a conversion inside a graph truncates (FORMATS 4). Raises
    UnsupportedError for an unknown format.
    """
    block = BLOCK_CODECS.get(name)
    if block is not None:
        groups = tiles.reshape(*tiles.shape[:-1], tiles.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
        return block.decode(*block.encode(groups, rounding)).reshape(tiles.shape)
    if name not in SCALAR_CODECS:
        raise UnsupportedError(f"unknown number format {name!r}")
    return SCALAR_CODECS[name].decode(pack_codec(name).encode(tiles))
