"""The packer: from Dst to the bits in L1 (DEVICE_NUMERICS 4).

Early conversion to the intermediate format, relu, late conversion to the output format, blocks. Adding in L1 is
`buda_emu.tensix.conversions.l1_acc`. Shapes are any whose last axis divides by 16, so that neighbours are those of a
face row: [..., 32, 32] in natural order.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.formats.bits import F32, U32, Codes
from buda_emu.formats.codecs import BLOCK_CODECS, SCALAR_CODECS
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, is_block
from buda_emu.tensix.conversions.blocks import assemble
from buda_emu.tensix.conversions.intermediate import RAW_AS, Intermediate
from buda_emu.tensix.conversions.relu import INTEGERS, WORDS, ReluMode, relu
from buda_emu.tensix.lanes import FAMILY_SHIFT, DstMode, load
from buda_emu.tensix.words import Core


class Packed(NamedTuple):
    """A tensor as its format stores it.

    `datums` has one uint8, uint16 or uint32 per element in natural order; `exponents` one uint8 per 16 neighbours for
    block formats, else None.
    """

    datums: Codes
    exponents: NDArray[np.uint8] | None = None


_DATUM_TYPE: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32}
_INTEGER_LIMITS: Final = {"Int8": 127, "UInt8": 255, "UInt16": 65535}


def pack(
    dst: U32,
    mode: DstMode,
    held_as: Intermediate,
    out_df: str,
    relu_mode: ReluMode = 0,
    threshold: int = 0,
    core: Core = "wormhole_b0",
) -> Packed:
    """Dst datums (uint32, see `lanes`) as stored in the output format; `held_as` is the intermediate one (4.1)."""
    datums = relu(early(dst, mode, held_as, core, out_df), held_as, relu_mode, threshold)
    if is_block(out_df):
        return Packed(*assemble(late(datums, held_as, out_df), out_df))
    return Packed(late(datums, held_as, out_df).astype(_DATUM_TYPE[FORMATS[out_df].bits]))


def decode(out_df: str, packed: Packed) -> F32:
    """The values of stored bits as the host reads them, float32 of the datums' shape (6.1, FORMATS 3 and 4)."""
    if packed.exponents is None:
        return SCALAR_CODECS[out_df].decode(packed.datums)
    codes = packed.datums.astype(np.uint8)
    groups = codes.reshape(*codes.shape[:-1], codes.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
    return BLOCK_CODECS[out_df].decode(packed.exponents, groups).reshape(codes.shape)


def early(dst: U32, mode: DstMode, held_as: Intermediate, core: Core = "wormhole_b0", out_df: str = "") -> U32:
    """Dst to the intermediate format; what narrows rounds, ties away from zero (4.2). On the way to Fp8_e4m3 a bf16
    with exponent 0 keeps its sign (10: 4)."""
    if held_as in INTEGERS:
        return _integer(dst, held_as)
    if mode in ("fp32", "int32"):
        return _early_from_fp32(dst, held_as, core)
    if mode == "bf16" and held_as in ("Float16_b", "Bfp8_b"):
        magnitude = np.minimum(dst & np.uint32(0x7FFF), np.uint32(0x7F80))  # NaN becomes an infinity
        value = _without_exponent_0(dst & np.uint32(0x8000) | magnitude)
        if out_df == "Fp8_e4m3":
            return value | dst & np.uint32(0x8000)
        return _rounded_to_e8m6(value) if held_as == "Bfp8_b" else value
    if mode == "fp16" and held_as in ("Float16", "Bfp8"):
        value = dst
        if held_as == "Bfp8":
            magnitude = dst & np.uint32(0x7FFF)
            rounded = np.where(magnitude > 0x7FF7, np.uint32(0x7FF0), (magnitude + np.uint32(8)) & np.uint32(0xFFF0))
            value = dst & np.uint32(0x8000) | rounded
        return np.where(value & np.uint32(0x7C00) == 0, np.uint32(0), value)
    raise UnsupportedError(f"Dst in {mode} to intermediate {held_as}: the packer has no such conversion")


def late(datums: U32, held_as: Intermediate, out_df: str) -> U32:
    """The intermediate format to the output's; for block formats to bf16 or fp16 patterns (4.4)."""
    out = RAW_AS.get(out_df, out_df)
    if held_as in INTEGERS or out in ("Float32", "Tf32"):
        return _widened(datums, held_as)
    if FORMATS[out].family == "b":
        return _to_bf16(datums, held_as, block=is_block(out))
    half = _to_fp16(datums, held_as)
    if out == "Lf8":
        return half >> np.uint32(8)
    return _to_e4m3(half) if out == "Fp8_e4m3" else half


def _integer(dst: U32, held_as: Intermediate) -> U32:
    """Sign and magnitude, clamped; unsigned formats have no negatives. UInt16 by analogy with UInt8."""
    if held_as == "Int32":
        return dst
    sign, magnitude = dst >> np.uint32(31), dst & np.uint32(0x7FFFFFFF)
    bounded = np.minimum(magnitude, np.uint32(_INTEGER_LIMITS[held_as]))
    if held_as == "Int8":
        return sign << np.uint32(7) | bounded
    return np.where(sign != 0, np.uint32(0), bounded)


def _early_from_fp32(dst: U32, held_as: Intermediate, core: Core) -> U32:
    if held_as == "Float32":
        return dst
    magnitude = np.minimum(dst & np.uint32(0x7FFFFFFF), np.uint32(0x7F800000))  # NaN becomes an infinity
    word = dst & np.uint32(0x80000000) | magnitude
    if held_as == "Float16_b":
        return _without_exponent_0((word + np.uint32(0x8000)) >> np.uint32(16))
    if held_as == "Bfp8_b":
        return _without_exponent_0(_rounded_to_e8m6(word >> np.uint32(16)))
    if held_as == "Tf32":
        rounded = (word + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        # Wormhole's kernel sets a threshold under which the narrow exponent has no room.
        least = 1 if core == "blackhole" else FAMILY_SHIFT + 1
        return np.where(rounded >> np.uint32(23) & np.uint32(255) < least, np.uint32(0), rounded)
    raise UnsupportedError(f"Dst in fp32 to intermediate {held_as}: the packer has no such conversion")


def _rounded_to_e8m6(value: U32) -> U32:
    """bf16 rounded half up on its last bit."""
    return (value + np.uint32(1)) & np.uint32(0xFFFE)


def _without_exponent_0(value: U32) -> U32:
    """bf16 with exponent 0 as +0."""
    return np.where(value & np.uint32(0x7F80) == 0, np.uint32(0), value)


def _widened(datums: U32, held_as: Intermediate) -> U32:
    """To an fp32 word; integers stay."""
    if held_as in ("Float16_b", "Bfp8_b"):
        return datums << np.uint32(16)
    if held_as not in ("Float16", "Bfp8"):
        return datums
    return load(datums, "fp16")


def _to_bf16(datums: U32, held_as: Intermediate, block: bool) -> U32:
    """To bf16: fp32 is cut, fp16 is moved to the wider exponent and cut."""
    if held_as in ("Float16_b", "Bfp8_b"):
        return datums
    if held_as in WORDS:
        value = datums >> np.uint32(16)
        return _without_exponent_0(value) if block else value
    exponent = datums >> np.uint32(10) & np.uint32(31)
    moved = (exponent + np.uint32(FAMILY_SHIFT)) << np.uint32(7) | (datums & np.uint32(0x3FF)) >> np.uint32(3)
    return np.where(exponent == 0, np.uint32(0), datums & np.uint32(0x8000) | moved)


def _to_fp16(datums: U32, held_as: Intermediate) -> U32:
    """To fp16: fp32 and bf16 keep a signed zero below the exponents of 5 bits, and the last code above them."""
    if held_as in ("Float16", "Bfp8"):
        return datums
    word = datums if held_as in WORDS else datums << np.uint32(16)
    exponent = (word >> np.uint32(23) & np.uint32(255)).astype(np.int32) - FAMILY_SHIFT
    code = exponent.astype(np.uint32) << np.uint32(10) | word >> np.uint32(13) & np.uint32(0x3FF)
    code = np.where(exponent < 0, np.uint32(0), np.where(exponent > 31, np.uint32(0x7FFF), code))
    return word >> np.uint32(16) & np.uint32(0x8000) | code


def _to_e4m3(half: U32) -> U32:
    exponent = (half >> np.uint32(10) & np.uint32(31)).astype(np.int32)
    code = (exponent - 8).astype(np.uint32) << np.uint32(3) | half >> np.uint32(7) & np.uint32(7)
    code = np.where(exponent <= 8, np.uint32(0), np.where(exponent >= 24, np.uint32(0x7F), code))
    return half >> np.uint32(8) & np.uint32(0x80) | code
