"""The packer: from Dst to the bits in L1, with the intermediate format, ReLU, block formats and accumulation in L1
(DEVICE_NUMERICS 4).
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import F32, U32, Codes
from buda_emu.arithmetic.formats.codecs import BLOCK_CODECS, SCALAR_CODECS
from buda_emu.arithmetic.tensix.lanes import FAMILY_SHIFT, DstMode, load
from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, is_block, is_integer
from buda_emu.spec.single import INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

_TOP: Final = 127  # the largest magnitude of 7 bits


def assemble(datums: U32, out_df: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return datums as a block format stores them: codes uint8[..., n] in the low bits (sign above the magnitude) and
    shared exponents uint8[..., n / 16] (DEVICE_NUMERICS 4.5).

    `datums` uint32[..., n], n a multiple of 16: bf16 patterns for family B, fp16 patterns for family A, of which 7 bits
    of fraction count. An exponent of 0 leaves the fraction as it is, without a leading one: only a relu's threshold has
    that (DEVICE_NUMERICS 10: 4).
    """
    spec = FORMATS[out_df]
    exponent_bits = 8
    if spec.family == "a":
        exponent_bits = 5
        datums = datums >> np.uint32(3)
    wide = datums.astype(np.int32)
    groups = wide.reshape(*datums.shape[:-1], datums.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
    exponent = groups >> 7 & ((1 << exponent_bits) - 1)
    significand = np.where(exponent == 0, 0, 128) | groups & 127
    shared = exponent.max(axis=-1)
    # From a distance of 8 on nothing is left: the significand is less than half a unit (DEVICE_NUMERICS 4.5).
    distance = np.minimum(shared[..., np.newaxis] - exponent, 8)
    magnitude = np.minimum((significand + (1 << distance)) >> (distance + 1), _TOP)
    magnitude = np.where(distance >= 8, 0, magnitude) >> (7 - spec.mantissa_bits)
    sign = groups >> (7 + exponent_bits) & 1
    codes = np.where(magnitude == 0, 0, sign << spec.mantissa_bits | magnitude)
    return codes.astype(np.uint8).reshape(datums.shape), shared.astype(np.uint8)


Intermediate = Literal["Float32", "Tf32", "Float16_b", "Bfp8_b", "Float16", "Bfp8", "Int32", "Int8", "UInt8", "UInt16"]
"""Float32 and Tf32 are fp32 words, Float16_b and Float16 16-bit patterns, Bfp8_b and Bfp8 such with 6 bits of
fraction (E8M6, E5M6), integers are as stored."""

RAW_AS: Final[Mapping[str, str]] = MappingProxyType({"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"})
"""What raw words move as (1.1)."""

_FROM_FP32: Final[Mapping[str, Intermediate]] = MappingProxyType(
    {
        "Float32": "Float32",
        "Tf32": "Float32",
        "Float16_b": "Float16_b",
        # Rounded to 10 bits before the range of the exponent is narrowed, on Wormhole and Blackhole alike.
        "Float16": "Tf32",
        "Lf8": "Tf32",
        "Fp8_e4m3": "Tf32",
    }
)


@lru_cache(maxsize=256)
def intermediate(
    mode: DstMode, out_df: str, integer_op: bool = False, core: Core = "wormhole_b0", from_single: bool = False
) -> Intermediate:
    """Return the packer's first format for a Dst mode and an output format: Dst is converted to it before the relu
    (DEVICE_NUMERICS 4.1).

    `integer_op`: the op computes on integers; then a Dst of 32 bits may also hold fp32 words, which dequantization
    leaves there. `from_single`: the packed tile is the op's output, and its input 0 is a Float32: a Dst of 16 bits then
    goes into blocks of its family without a rounding to 6 bits before (DEVICE_NUMERICS 10: 4.1). Raises
    UnsupportedError for a pair of formats that the packer cannot convert.
    """
    out = RAW_AS.get(out_df, out_df)
    if is_integer(out):
        if mode not in ("int32", "fp32"):
            raise UnsupportedError(f"Dst in {mode} packed as {out_df}: integers leave a 32-bit Dst only")
        return out  # pyright: ignore[reportReturnType] # the integer formats
    if mode == "int32" or (integer_op and mode == "fp32"):
        return "Float32"  # what dequantization left; narrower outputs are cut on the way out
    if mode == "fp32":
        if is_block(out):
            return "Bfp8_b"
        return _FROM_FP32[out]
    return _intermediate_of_16_bits(mode, out_df, core, from_single)


_BLOCKS_OF_FAMILY: Final[Mapping[str, Intermediate]] = MappingProxyType({"a": "Bfp8", "b": "Bfp8_b"})
_FLOATS_OF_FAMILY: Final[Mapping[str, Intermediate]] = MappingProxyType({"a": "Float16", "b": "Float16_b"})


def _intermediate_of_16_bits(mode: DstMode, out_df: str, core: Core, from_single: bool) -> Intermediate:
    """Return the packer's first format for a Dst of 16-bit floats: one of Dst's family of exponents (DEVICE_NUMERICS
    4.1). Raises UnsupportedError for an output of the other family that Grayskull does not pack."""
    out = RAW_AS.get(out_df, out_df)
    family = FORMATS[out].family or "a"  # without a family of its own: Fp8_e4m3, packed from fp16
    dst_family = "b"
    if mode == "fp16":
        dst_family = "a"
    if core == "grayskull" and family != dst_family and out not in ("Float32", "Float16", "Float16_b"):
        raise UnsupportedError(
            f"Dst in {mode} packed as {out_df}: grayskull changes the exponent of 16-bit outputs only"
        )
    if is_block(out) and not (from_single and family == dst_family):
        return _BLOCKS_OF_FAMILY[dst_family]
    return _FLOATS_OF_FAMILY[dst_family]


@lru_cache(maxsize=256)
def relu_threshold(threshold: float, out_df: str, mode: DstMode, fused: bool = False) -> int:
    """Return the bits of the threshold that the packer's relu compares with: 16 bits of Float16 for outputs of family A
    from a 16-bit Dst (DEVICE_NUMERICS 4.3), in a fused op from any Dst (DEVICE_NUMERICS 10: 6), else of bf16; both
    truncate. For integer outputs it is the threshold's integer part, which is inferred."""
    if is_integer(out_df):
        return int(min(threshold, MAGNITUDE))
    narrow = FORMATS[RAW_AS.get(out_df, out_df)].family == "a" and (fused or mode != "fp32")
    held_as = "Float16_b"
    if narrow:
        held_as = "Float16"
    return int(SCALAR_CODECS[held_as].encode(np.array([threshold], dtype=np.float32))[0])


ReluMode = Literal[0, 1, 2, 3]
"""0 off; 1 negative to 0; 2 also what is not above the threshold (Min); 3 negative to 0 and above it to it (Max)."""

RELU_MODES: Final[dict[str, ReluMode]] = {"none": 2, "min": 2, "max": 3}
"""By the netlist's word `relu_mode`."""

WORDS: Final = ("Float32", "Tf32")
INTEGERS: Final = ("Int32", "Int8", "UInt8", "UInt16")


def relu(datums: U32, held_as: Intermediate, mode: ReluMode, threshold: int) -> U32:
    """Return datums of the intermediate format `held_as` after the packer's relu (DEVICE_NUMERICS 4.3); `threshold` is
    a result of `relu_threshold`.

    At x = threshold > 0 the Min mode gives 0.
    """
    if mode == 0:
        return datums
    if held_as in INTEGERS:
        return _apply_integer_relu(datums, held_as, mode, threshold)
    wide = held_as in WORDS
    negative = datums >> np.uint32(31 if wide else 15) != 0
    if mode == 1:
        return np.where(negative, np.uint32(0), datums)
    limit = np.uint32(threshold)
    compared = datums
    if wide:
        limit = np.uint32(threshold << 16)
        compared = datums & np.uint32(0xFFFFE000)  # the upper limit is compared with 19 bits only
    if mode == 2:
        return np.where(negative | (datums <= limit), np.uint32(0), datums)
    return np.where(negative, np.uint32(0), np.where(compared > limit, limit, datums))


def _apply_integer_relu(datums: U32, held_as: Intermediate, mode: ReluMode, threshold: int) -> U32:
    """Return integers of the intermediate format `held_as` after the packer's relu (DEVICE_NUMERICS 4.3). That
    negatives become 0 is documented; a threshold, compared with the magnitude, is inferred."""
    sign = np.uint32({"Int32": SIGN, "Int8": 0x80}.get(held_as, 0))
    limit = np.uint32(threshold)
    cleared = datums & sign != 0
    if mode == 2:
        cleared |= datums <= limit
    if mode == 3:
        datums = np.minimum(datums, limit)
    return np.where(cleared, np.uint32(0), datums)


class Packed(NamedTuple):
    """A tensor in the codes of a format.

    `datums` has one uint8, uint16 or uint32 per element in natural order; `exponents` one uint8 per 16 neighbours for
    block formats, else None.
    """

    datums: Codes
    exponents: NDArray[np.uint8] | None = None


_DATUM_TYPE: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32}
_INTEGER_LIMITS: Final = {"Int8": 127, "UInt8": 255, "UInt16": 65535}
"""Largest magnitudes (4.2)."""


def pack(
    dst: U32,
    mode: DstMode,
    held_as: Intermediate,
    out_df: str,
    relu_mode: ReluMode = 0,
    threshold: int = 0,
    core: Core = "wormhole_b0",
) -> Packed:
    """Return Dst datums (uint32, see `lanes`) of a Dst of `mode` as the format `out_df` stores them, after the relu.
    `held_as` is the packer's first format (`intermediate`), `threshold` a result of `relu_threshold`. Raises
    UnsupportedError for a pair of Dst mode and first format that the packer does not have."""
    datums = relu(early_conversion(dst, mode, held_as, core, out_df), held_as, relu_mode, threshold)
    if is_block(out_df):
        return Packed(*assemble(late_conversion(datums, held_as, out_df), out_df))
    return Packed(late_conversion(datums, held_as, out_df).astype(_DATUM_TYPE[FORMATS[out_df].bits]))


def decode(out_df: str, packed: Packed) -> F32:
    """Return the values of stored bits of the format `out_df` as the host reads them, float32 of the datums' shape
    (DEVICE_NUMERICS 6.1, FORMATS 3 and 4)."""
    if packed.exponents is None:
        return SCALAR_CODECS[out_df].decode(packed.datums)
    codes = packed.datums.astype(np.uint8)
    groups = codes.reshape(*codes.shape[:-1], codes.shape[-1] // BLOCK_DATUMS, BLOCK_DATUMS)
    return BLOCK_CODECS[out_df].decode(packed.exponents, groups).reshape(codes.shape)


def early_conversion(
    dst: U32, mode: DstMode, held_as: Intermediate, core: Core = "wormhole_b0", out_df: str = ""
) -> U32:
    """Return Dst datums in the packer's first format `held_as`, before the relu (DEVICE_NUMERICS 4.2). NaNs become
    infinities, and floats with exponent 0 become +0, but where the format stays fp32 or an integer; on the way to
    Fp8_e4m3 a bf16 with exponent 0 keeps its sign (DEVICE_NUMERICS 10: 4). Where bits are lost the rest is rounded,
    ties away from zero, but fp32 on its way to Bfp8_b is first cut to 7 bits of fraction. Raises UnsupportedError for a
    conversion that the packer does not have."""
    if held_as in INTEGERS:
        return _clamp_integer(dst, held_as)
    if mode in ("fp32", "int32"):
        return _early_from_fp32(dst, held_as, core)
    if mode == "bf16" and held_as in ("Float16_b", "Bfp8_b"):
        magnitude = np.minimum(dst & np.uint32(0x7FFF), np.uint32(0x7F80))  # NaN becomes an infinity
        value = _flush_exponent_0(dst & np.uint32(0x8000) | magnitude)
        if out_df == "Fp8_e4m3":
            return value | dst & np.uint32(0x8000)
        if held_as == "Bfp8_b":
            return _round_to_e8m6(value)
        return value
    if mode == "fp16" and held_as in ("Float16", "Bfp8"):
        value = dst
        if held_as == "Bfp8":
            magnitude = dst & np.uint32(0x7FFF)
            # Rounding clamps to the last number of E5M6, whose exponent 31 is an ordinary one (4.2).
            rounded = np.where(magnitude > 0x7FF7, np.uint32(0x7FF0), (magnitude + np.uint32(8)) & np.uint32(0xFFF0))
            value = dst & np.uint32(0x8000) | rounded
        return np.where(value & np.uint32(0x7C00) == 0, np.uint32(0), value)
    raise UnsupportedError(f"Dst in {mode} to intermediate {held_as}: the packer has no such conversion")


def late_conversion(datums: U32, held_as: Intermediate, out_df: str) -> U32:
    """Return datums of the packer's first format `held_as` in the output's format, after the relu; for block formats as
    the bf16 or fp16 patterns that `assemble` takes (DEVICE_NUMERICS 4.4). What does not fit is cut."""
    out = RAW_AS.get(out_df, out_df)
    if held_as in INTEGERS or out in ("Float32", "Tf32"):
        return _widen_to_32_bits(datums, held_as)
    if FORMATS[out].family == "b":
        return _to_bf16(datums, held_as, block=is_block(out))
    half = _to_fp16(datums, held_as)
    if out == "Lf8":
        return half >> np.uint32(8)
    if out == "Fp8_e4m3":
        return _to_e4m3(half)
    return half


def _clamp_integer(dst: U32, held_as: Intermediate) -> U32:
    """Return int32 words of Dst as codes of the integer format `held_as`: sign and magnitude, the magnitude clamped; of
    unsigned formats a negative is 0. Int32 stays as it is, UInt16 is by analogy with UInt8 (DEVICE_NUMERICS 4.2)."""
    if held_as == "Int32":
        return dst
    sign = dst >> np.uint32(31)
    magnitude = dst & np.uint32(MAGNITUDE)
    bounded = np.minimum(magnitude, np.uint32(_INTEGER_LIMITS[held_as]))
    if held_as == "Int8":
        return sign << np.uint32(7) | bounded
    return np.where(sign != 0, np.uint32(0), bounded)


def _early_from_fp32(dst: U32, held_as: Intermediate, core: Core) -> U32:
    """Return fp32 words in the packer's first format (DEVICE_NUMERICS 4.2). Raises UnsupportedError for one that the
    packer does not have."""
    if held_as == "Float32":
        return dst
    magnitude = np.minimum(dst & np.uint32(MAGNITUDE), np.uint32(INFINITY))  # NaN becomes an infinity
    word = dst & np.uint32(SIGN) | magnitude
    if held_as == "Float16_b":
        return _flush_exponent_0((word + np.uint32(0x8000)) >> np.uint32(16))
    if held_as == "Bfp8_b":
        return _flush_exponent_0(_round_to_e8m6(word >> np.uint32(16)))
    if held_as == "Tf32":
        rounded = (word + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        # Wormhole's kernel sets a threshold under which the narrow exponent has no room (4.2); Blackhole's packer needs
        # none (7).
        least = FAMILY_SHIFT + 1
        if core == "blackhole":
            least = 1
        return np.where(rounded >> np.uint32(23) & np.uint32(255) < least, np.uint32(0), rounded)
    raise UnsupportedError(f"Dst in fp32 to intermediate {held_as}: the packer has no such conversion")


def _round_to_e8m6(value: U32) -> U32:
    """Return bf16 patterns rounded to 6 bits of fraction, half up in magnitude: the lowest bit becomes 0."""
    return (value + np.uint32(1)) & np.uint32(0xFFFE)


def _flush_exponent_0(value: U32) -> U32:
    """Return bf16 patterns with +0 in place of every one with exponent 0."""
    return np.where(value & np.uint32(0x7F80) == 0, np.uint32(0), value)


def _widen_to_32_bits(datums: U32, held_as: Intermediate) -> U32:
    """Return datums of the packer's first format as fp32 words; integers and fp32 words stay as they are
    (DEVICE_NUMERICS 4.4)."""
    if held_as in ("Float16_b", "Bfp8_b"):
        return datums << np.uint32(16)
    if held_as not in ("Float16", "Bfp8"):
        return datums
    return load(datums, "fp16")


def _to_bf16(datums: U32, held_as: Intermediate, block: bool) -> U32:
    """Return datums of the packer's first format as bf16 patterns: fp32 is cut, fp16 is moved to the wider exponent and
    cut. `block`: for a block format, where fp32 of exponent 0 becomes +0 (DEVICE_NUMERICS 4.4)."""
    if held_as in ("Float16_b", "Bfp8_b"):
        return datums
    if held_as in WORDS:
        value = datums >> np.uint32(16)
        if block:
            return _flush_exponent_0(value)
        return value
    exponent = datums >> np.uint32(10) & np.uint32(31)
    moved = (exponent + np.uint32(FAMILY_SHIFT)) << np.uint32(7) | (datums & np.uint32(0x3FF)) >> np.uint32(3)
    return np.where(exponent == 0, np.uint32(0), datums & np.uint32(0x8000) | moved)


def _to_fp16(datums: U32, held_as: Intermediate) -> U32:
    """Return datums of the packer's first format as fp16 patterns: fp32 and bf16 become a signed zero below the
    exponents of 5 bits, the last code above them, and are cut (DEVICE_NUMERICS 4.4)."""
    if held_as in ("Float16", "Bfp8"):
        return datums
    word = datums if held_as in WORDS else datums << np.uint32(16)
    exponent = (word >> np.uint32(23) & np.uint32(255)).astype(np.int32) - FAMILY_SHIFT
    code = exponent.astype(np.uint32) << np.uint32(10) | word >> np.uint32(13) & np.uint32(0x3FF)
    code = np.where(exponent < 0, np.uint32(0), np.where(exponent > 31, np.uint32(0x7FFF), code))
    return word >> np.uint32(16) & np.uint32(0x8000) | code


def _to_e4m3(half: U32) -> U32:
    """Return fp16 patterns as bytes `s e4 m3`: too small is a signed zero, too large the last code, the fraction is cut
    (DEVICE_NUMERICS 4.4)."""
    exponent = (half >> np.uint32(10) & np.uint32(31)).astype(np.int32)  # its bias is 15, that of four bits 7
    code = (exponent - 8).astype(np.uint32) << np.uint32(3) | half >> np.uint32(7) & np.uint32(7)
    code = np.where(exponent <= 8, np.uint32(0), np.where(exponent >= 24, np.uint32(0x7F), code))
    return half >> np.uint32(8) & np.uint32(0x80) | code


_F64 = NDArray[np.float64]


def accumulate(out_df: str, old: Codes, new: Codes) -> Codes:
    """Return the sum of datums that lie in L1 and packed new ones, as the packer adds them there: Float32, Float16_b or
    Float16, same type and shape (DEVICE_NUMERICS 4.6). Raises UnsupportedError for other formats."""
    adders = {"Float32": _add_fp32, "Float16_b": _add_bf16, "Float16": _add_fp16}
    if out_df not in adders:
        raise UnsupportedError(f"accumulation in L1 as {out_df}: Float32, Float16_b and Float16 are known")
    return adders[out_df](old.astype(np.uint32), new.astype(np.uint32)).astype(old.dtype)


def _add_fp32(old: U32, new: U32) -> U32:
    """Return the IEEE sums of fp32 patterns, with denormals as signed zeros before and after; every NaN is 7fc00000
    (DEVICE_NUMERICS 4.6)."""
    with np.errstate(all="ignore"):
        total = (_flush_denormals(old).view(np.float32) + _flush_denormals(new).view(np.float32)).view(np.uint32)
    is_nan = total & np.uint32(MAGNITUDE) > np.uint32(INFINITY)
    return np.where(is_nan, np.uint32(0x7FC00000), _flush_denormals(total))


def _add_bf16(old: U32, new: U32) -> U32:
    """Return the sums of bf16 patterns, computed in double precision and rounded once to nearest even; only opposite
    infinities make a NaN (DEVICE_NUMERICS 4.6)."""
    old_value = _bf16_value(old)
    new_value = _bf16_value(new)
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
    upper = fraction >> 45
    lower = fraction & ((1 << 45) - 1)
    half = 1 << 44
    up = (lower > half) | ((lower == half) & (upper & 1 != 0))
    code = (exponent << 7 | upper) + up
    code = np.where(exponent <= 0, 0, np.where(exponent >= 255, 0x7F80, code))
    return np.where(is_nan, 0x7FC0, sign | code).astype(np.uint32)


def _add_fp16(old: U32, new: U32) -> U32:
    """Return the sums of fp16 patterns, computed in single precision and rounded to nearest even, where exponent 31 is
    an ordinary one (DEVICE_NUMERICS 4.6)."""
    total = (_fp16_value(old) + _fp16_value(new)).view(np.uint32)
    sign = total >> np.uint32(16) & np.uint32(0x8000)
    exponent = (total >> np.uint32(23) & np.uint32(255)).astype(np.int32) - FAMILY_SHIFT
    fraction = (total & np.uint32(0x7FFFFF)).astype(np.int32)
    upper = fraction >> 13
    lower = fraction & 0x1FFF
    half = 0x1000
    up = (lower > half) | ((lower == half) & (upper & 1 != 0))
    code = np.minimum((exponent << 10 | upper) + up, 0x7FFF)
    # What is too small for fp16 becomes the last code, as on the chip, and so does an exact zero where the old datum
    # was large (4.6).
    code = np.where(exponent == 0, 0, np.where(exponent < 0, 0x7FFF, code)).astype(np.uint32)
    cancelled = np.where(old >> np.uint32(10) & np.uint32(31) >= 30, np.uint32(0x7FFF), np.uint32(0))
    return sign | np.where(total & np.uint32(MAGNITUDE) == 0, cancelled, code)


def _flush_denormals(word: U32) -> U32:
    """Return fp32 patterns with a zero of the same sign in place of every denormal."""
    return np.where(word & np.uint32(INFINITY) == 0, word & np.uint32(SIGN), word)


def _signs(code: U32) -> _F64:
    """Return -1.0 where bit 15 of a 16-bit float is set, else 1.0."""
    return np.where(code & np.uint32(0x8000) != 0, -1.0, 1.0)


def _bf16_value(code: U32) -> _F64:
    """Return bf16 patterns as doubles: exponent 0 is a signed zero, infinities are infinite, and a NaN is the number
    that its bits would be under an ordinary exponent."""
    exponent = (code >> np.uint32(7) & np.uint32(255)).astype(np.int32)
    fraction = (code & np.uint32(0x7F)).astype(np.float64)
    magnitude = np.where(exponent == 0, 0.0, np.ldexp(1 + fraction / 128, exponent - 127))
    return _signs(code) * np.where(code & np.uint32(0x7FFF) == 0x7F80, np.inf, magnitude)


def _fp16_value(code: U32) -> NDArray[np.float32]:
    """Return fp16 as singles, which hold it exactly; exponent 0 is a signed zero."""
    exponent = code >> np.uint32(10) & np.uint32(31)
    wide = (exponent + np.uint32(FAMILY_SHIFT)) << np.uint32(23) | (code & np.uint32(0x3FF)) << np.uint32(13)
    return ((code & np.uint32(0x8000)) << np.uint32(16) | np.where(exponent == 0, np.uint32(0), wide)).view(np.float32)
