"""From the bits of a format in L1 to register words (DEVICE_NUMERICS 1.2, 1.3). All of it truncates, nothing rounds."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32, Codes
from buda_emu.arithmetic.kernels.tensix.unpack import (
    TO_BF16,
    TO_FP16,
    TO_TF32,
    unpack_blocks,
    unpack_bytes,
    unpack_halves,
    unpack_singles,
)
from buda_emu.arithmetic.tensix.registers import IN_DST, REGISTERS, SIGN, SRC_BITS, Core, exponent_of
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, is_block
from buda_emu.support.errors import InternalError, UnsupportedError

_SIXTEEN_BITS: Final[Mapping[str, str]] = MappingProxyType({"RawUInt16": "Float16", "RawUInt8": "Lf8"})


def unpack(codes: Codes, df: str, register: str, core: Core, exponents: Codes | None = None) -> U32:
    """Return the register words (uint32) of the datums `codes`, which L1 holds in the format `df` (DEVICE_NUMERICS 1.2,
    1.3).

    codes: any shape, one datum each. exponents, of block formats only: the same shape, but a sixteenth of its last
    axis. `register` is the format that `op_registers` gives; for one that goes straight into Dst the result is a Dst
    image. Raises UnsupportedError for pairs of formats that no op uses, InternalError where exponents are missing or
    too many.
    """
    if (exponents is not None) != is_block(df):
        raise InternalError(f"exponents belong to block formats and to no others: {df}")
    name = _SIXTEEN_BITS.get(df, df)
    wide = codes.astype(np.uint32)
    match name, register:
        case ("Float32", "Tf32"):
            return wide & SRC_BITS
        case ("Float32", "Float16_b"):
            return np.where(exponent_of(wide) == 0, wide & SIGN, wide & np.uint32(0xFFFF0000))
        case ("Float32", "Float16"):
            return _fp32_to_fp16_word(wide)
        case ("Float32" | "RawUInt32", "Float32") | ("Int32", "Int32") | ("UInt16", "UInt16"):
            return wide
        case ("Float16_b", "Float16_b"):
            return wide << np.uint32(16)
        case ("Float16", "Float16"):
            return _fp16_word(wide)
        case ("Lf8", "Lf8"):
            return _fp16_word(_lf8_to_fp16(wide, core))
        case ("Fp8_e4m3", "Lf8") if core == "blackhole":
            return _fp16_word(_e4m3_to_fp16(wide))
        case (("Int8" | "UInt8"), ("Int8" | "UInt8")) if name == register:
            return _integer_words(wide, signed=name == "Int8")
        case (("Bfp8_b" | "Bfp4_b" | "Bfp2_b"), "Bfp8_b") | (("Bfp8" | "Bfp4" | "Bfp2"), "Bfp8"):
            assert exponents is not None
            return _block_words(wide, exponents, df)
        case _:
            text = f"{core} does not unpack {df} to a register of {register}"
            if register not in REGISTERS:
                text += f"; registers are {', '.join(REGISTERS)}"
            raise UnsupportedError(text)


def _fp16_word(bits: U32) -> U32:
    """Return fp16 patterns as register words: the 5-bit exponent stands in the low bits of the 8-bit field, with its
    own bias."""
    return (bits & np.uint32(0x8000)) << np.uint32(16) | (bits & np.uint32(0x7FFF)) << np.uint32(13)


def _fp32_to_fp16_word(x: U32) -> U32:
    """Return fp32 patterns as register words of fp16, cut: below the exponents of 5 bits a signed zero, above them the
    last code. Exponent 0 keeps its fraction, which every consumer ignores (DEVICE_NUMERICS 1.2)."""
    exponent = exponent_of(x) - 112
    fraction = x & np.uint32(0x007FE000)
    word = np.clip(exponent, 0, 31).astype(np.uint32) << np.uint32(23) | fraction
    word = np.where(exponent < 0, np.uint32(0), np.where(exponent > 31, np.uint32(31 << 23 | 0x3FF << 13), word))
    return x & SIGN | word


def _lf8_to_fp16(byte: U32, core: Core) -> U32:
    """Return bytes `s e5 m2` as fp16 patterns; Blackhole fills the fraction of the largest magnitude with ones
    (DEVICE_NUMERICS 1.2)."""
    bits = byte << np.uint32(8)
    if core == "blackhole":
        return np.where(byte & np.uint32(0x7F) == 0x7F, bits | np.uint32(0x3FF), bits)
    return bits


def _e4m3_to_fp16(byte: U32) -> U32:
    """Return bytes `s e4 m3` as fp16 patterns: 8 is added to the exponent unless it is 0, and the largest magnitude
    gets a fraction of ones (DEVICE_NUMERICS 1.2)."""
    exponent = byte >> np.uint32(3) & np.uint32(15)
    fraction = byte & np.uint32(7)
    moved = np.where(exponent == 0, np.uint32(0), exponent + np.uint32(8))
    fraction = np.where(byte & np.uint32(0x7F) == 0x7F, np.uint32(0x3FF), fraction << np.uint32(7))
    return (byte & np.uint32(0x80)) << np.uint32(8) | moved << np.uint32(10) | fraction


def _integer_words(byte: U32, signed: bool) -> U32:
    """Return bytes as register words: sign, the dummy exponent 16 and the magnitude; a magnitude of 0 has exponent 0.
    `signed`: bit 7 of a byte is its sign (DEVICE_NUMERICS 1.3)."""
    sign: U32 | np.uint32 = np.uint32(0)
    magnitude = byte
    if signed:
        magnitude = byte & np.uint32(0x7F)
        sign = byte & np.uint32(0x80)
    marked = np.where(magnitude == 0, np.uint32(0), magnitude | np.uint32(0x4000))
    return sign << np.uint32(24) | marked << np.uint32(13)


def _block_words(codes: U32, exponents: Codes, df: str) -> U32:
    """Return codes of a block format with their shared exponents as register words (DEVICE_NUMERICS 1.2): normalised,
    with at most 6 bits of fraction. A negative code of magnitude 0 becomes the word of minus infinity. An exponent of
    family B that falls below 0 wraps around at 256; what that of family A does is not defined, and the datum becomes a
    zero here."""
    spec = FORMATS[df]
    code = (codes << np.uint32(8 - spec.bits)).astype(np.int64)
    shared = np.repeat(exponents.astype(np.int64), BLOCK_DATUMS, axis=-1)
    sign = code >> 7 & 1
    magnitude = code & 0x7F
    zeros = 7 - np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)  # in front of the leading one, of 7 bits
    fraction = magnitude << zeros & 0x3F
    if spec.family == "b":
        exponent = shared - zeros & 255
        infinite = 255
    else:
        exponent = np.maximum(shared - zeros, 0)
        infinite = 31
    word = np.where(magnitude == 0, sign * (infinite << 23), exponent << 23 | fraction << 17)
    return (sign << 31 | word).astype(np.uint32)


Unpacker: TypeAlias = Callable[..., None]
"""Called with (start, stop, out, codes) and of block formats also the exponents: uint32[n, 1024], [n, 1024] in the type
that holds one datum, uint8[n, 64]. Items: the tiles."""

_SINGLES = {"Tf32": TO_TF32, "Float16_b": TO_BF16, "Float16": TO_FP16}


def unpacker(df: str, register: str, core: Core) -> Unpacker:
    """Return the kernel that unpacks tiles of the format `df` to words of `register`, with the bits of `unpack`.

    Raises UnsupportedError for pairs of formats that no op uses, InternalError for a register format that goes straight
    into Dst, for which nothing is to be unpacked.
    """
    if register in IN_DST:
        raise InternalError(f"{df} is in Dst already: nothing is to be unpacked")
    spec = FORMATS[df]
    if is_block(df):
        unpack(np.zeros(16, np.uint8), df, register, core, np.zeros(1, np.uint8))
        exponent_bits = 5 if spec.family == "a" else 8
        return partial(_call_with_constants, unpack_blocks, (spec.bits, exponent_bits))
    if spec.bits == 8:
        table: NDArray[np.uint32] = unpack(np.arange(256, dtype=np.uint8), df, register, core)
        return partial(_call_with_constants, unpack_bytes, (table,))
    unpack(np.zeros(1, np.uint32), df, register, core)
    if spec.bits == 16:
        exponent_bits = 8 if register == "Float16_b" else 5
        return partial(_call_with_constants, unpack_halves, (exponent_bits,))
    return partial(_call_with_constants, unpack_singles, (_SINGLES[register],))


def _call_with_constants(kernel: Any, last: tuple[Any, ...], start: int, stop: int, out: Any, *codes: Any) -> None:
    """Call a kernel as an `Unpacker` is called, with its constants `last` behind the other arguments."""
    kernel(start, stop, out, *codes, *last)
