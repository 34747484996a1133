"""The matrix unit: operands by fidelity phase, sums that enter Dst, products of tiles in floats and 8-bit integers
(DEVICE_NUMERICS 2).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from buda_emu.arithmetic.formats.bits import U32, bit_length
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.registers import (
    I64,
    SIGN,
    Core,
    exponent_of,
    require_pairing,
    sign_of,
    significand_of,
    to_image,
    to_word,
)
from buda_emu.spec.formats import Family
from buda_emu.spec.precision import PHASES

_DROP: Final[Mapping[DstMode, int]] = MappingProxyType({"fp32": 0, "bf16": 16, "fp16": 13})
"""Bits of a fraction of 23 that Dst does not hold (2.3 step 6)."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A signed number that is to be added to Dst (ACC, DEVICE_NUMERICS 2.3): sign 0 or 1, exponent X, and magnitude in
    units of 2^-23 of 2^X."""

    sign: I64
    exponent: I64
    magnitude: I64


def accumulate(dst: U32, sums: Sequence[Sum], family: Family, mode: DstMode, core: Core) -> U32:
    """Return the Dst image after one or two sums are added to it at once (ACC, DEVICE_NUMERICS 2.3); all shapes are the
    same. `family` is that of the operands' formats; `core` says whose errors are imitated. Raises UnsupportedError for
    a 16-bit Dst of the other family."""
    require_pairing(family, mode)
    old = to_word(dst, mode)
    old_exponent = exponent_of(old)
    old_magnitude = np.where(old_exponent == 0, 0, (old & np.uint32(0x7FFFFF)).astype(np.int64) | 1 << 23)
    # 1. The common exponent.
    common = np.maximum.reduce([old_exponent, *(s.exponent for s in sums)])
    # 2. Align: sums round ties towards +inf, Dst away from zero.
    terms = [(s.sign, _shift_and_round_ties_up(s.magnitude, common - s.exponent, s.sign)) for s in sums]
    old_magnitude = _shift_and_round_ties_up(old_magnitude, common - old_exponent, 0)
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
    magnitude = _shift_and_round_ties_away(magnitude, shift - drop) << drop
    exponent = exponent + (magnitude == 1 << 24)
    # 7. The ends of the range.
    too_large = 255
    saturated = 255 << 23
    if mode == "fp16":
        too_large = 32
        saturated = 31 << 23 | 0x3FF << 13
    word = np.where(exponent >= too_large, saturated, exponent << 23 | magnitude & 0x7FFFFF)
    gone = (common <= 0) | (total == 0) | (exponent <= 0)
    return to_image(np.where(gone, 0, sign << 31 | word).astype(np.uint32), mode)


def _shift_and_round_ties_up(magnitude: I64, distance: I64, sign: I64 | int) -> I64:
    """Return magnitudes shifted right by `distance` and rounded to nearest: ties up in magnitude where `sign` is 0,
    down where it is 1; unchanged for no distance, 0 for 31 and more."""
    right = np.clip(distance, 1, 31)
    shifted = (magnitude + (1 << (right - 1)) - sign) >> right
    return np.where(distance <= 0, magnitude, np.where(distance < 31, shifted, 0))


def _shift_and_round_ties_away(magnitude: I64, shift: I64) -> I64:
    """Return magnitudes shifted left by `shift`, or right if it is negative, then rounded to nearest, ties away from
    zero."""
    right = np.clip(-shift, 1, 40)
    return np.where(shift < 0, (magnitude + (1 << (right - 1))) >> right, magnitude << np.clip(shift, 0, 31))


BIAS: Final[Mapping[tuple[Family, DstMode], int]] = MappingProxyType(
    {("b", "bf16"): -127, ("b", "fp32"): -127, ("a", "fp16"): -15, ("a", "fp32"): 97}
)
"""The bias that is added to the sum of both exponents, by the operands' family and the mode of Dst."""


def phase_mask(math_fidelity: str) -> int:
    """Return the phases of a fidelity as the kernels take them: bit p is set where phase p runs."""
    return sum(1 << phase for phase in PHASES[math_fidelity])


@dataclass(frozen=True, slots=True)
class Product:
    """The products of one fidelity phase, element by element: sign 0 or 1, magnitude of at most 12 bits, exponent."""

    sign: I64
    magnitude: I64
    exponent: I64


def part_of_srca(significand: I64, phase: int) -> I64:
    """Return the 5 bits of an 11-bit significand that SrcA gives to a phase (DEVICE_NUMERICS 2.1): the upper ones, or
    in odd phases the next ones. The lowest bit is never used."""
    if phase & 1:
        return significand >> 1 & 31
    return significand >> 6


def part_of_srcb(significand: I64, phase: int) -> I64:
    """Return the 7 bits of an 11-bit significand that SrcB gives to a phase (DEVICE_NUMERICS 2.1): the upper ones, or
    in phases 2 and 3 the lower 4 with zeros below."""
    if phase & 2:
        return (significand & 15) << 3
    return significand >> 4


def correction(phase: int) -> int:
    """Return how many binary places the products of a phase lie below those of phase 0: it is subtracted from their
    exponent (DEVICE_NUMERICS 2.1)."""
    return 5 * (phase & 1) + 7 * (phase >> 1)


def product(srca: U32, srcb: U32, phase: int, family: Family, mode: DstMode) -> Product:
    """Return the products of Src words, which broadcast, in one phase (DEVICE_NUMERICS 2.1). With a zero operand a
    product is +0, and its exponent the bias of the phase alone, or 0 if that is negative."""
    bias = BIAS[family, mode] - correction(phase)
    exponent_a = exponent_of(srca)
    exponent_b = exponent_of(srcb)
    zero = (exponent_a == 0) | (exponent_b == 0)
    parts = part_of_srca(significand_of(srca), phase) * part_of_srcb(significand_of(srcb), phase)
    return Product(
        sign=np.where(zero, 0, sign_of(srca) ^ sign_of(srcb)),
        magnitude=np.where(zero, 0, parts),
        exponent=np.where(zero, max(bias, 0), exponent_a + exponent_b + bias),
    )


LIMIT: Final = (1 << 31) - 1  # at which an integer Dst saturates (DEVICE_NUMERICS 5)
# The bits of a magnitude that a phase takes: of SrcA by bit 0 of its number, of SrcB by bit 1 (DEVICE_NUMERICS 5).
_SRCA_MASKS: Final = (0xE0, 0x1F)
_SRCB_MASKS: Final = (0x3F0, 0x00F)


def int_mvmul(dst: U32, srcb: U32, srca: U32, phase: int) -> U32:
    """Return the integer Dst image [..., rows, cols], words of sign and magnitude, after srcb [..., rows, 16] x srca
    [..., 16, cols] is added in one phase, which multiplies some of the bits of each magnitude (DEVICE_NUMERICS 5);
    saturated at +-(2^31 - 1)."""
    a = _masked_values(srca, _SRCA_MASKS[phase & 1])
    b = _masked_values(srcb, _SRCB_MASKS[phase >> 1])
    return encode(decode(dst) + b @ a)


def int_elwmul(dst: U32, srca: U32, srcb: U32, phase: int) -> U32:
    """Return the integer Dst image after the products of one phase, element by element, are added (DEVICE_NUMERICS 5);
    all shapes are the same. Saturated at +-(2^31 - 1)."""
    a = _masked_values(srca, _SRCA_MASKS[phase & 1])
    b = _masked_values(srcb, _SRCB_MASKS[phase >> 1])
    return encode(decode(dst) + a * b)


def int_elwadd(dst: U32 | None, srca: U32, srcb: U32) -> U32:
    """Return the integer Dst image of srca + srcb, words of 8-bit integers, added to `dst` unless it is None; all
    shapes are the same. Saturated."""
    total = _masked_values(srca, 0x3FF) + _masked_values(srcb, 0x3FF)
    if dst is not None:
        total = decode(dst) + total
    return encode(total)


def int_elwsub(dst: U32 | None, srca: U32, srcb: U32) -> U32:
    """Return the integer Dst image of srca - srcb, words of 8-bit integers, added to `dst` unless it is None; all
    shapes are the same. Saturated."""
    return int_elwadd(dst, srca, srcb ^ SIGN)


def int_copy(srca: U32) -> U32:
    """Return the integer Dst image of an 8-bit operand that an op copies to Dst: the chip's kernels add zero to it
    (DEVICE_NUMERICS 2.7)."""
    return int_elwadd(None, srca, np.zeros_like(srca))


def decode(dst: U32) -> I64:
    """Return the values of words of sign and magnitude (a Dst image of integers); -0 is 0."""
    magnitude = (dst & ~SIGN).astype(np.int64)
    return np.where(dst & SIGN != 0, -magnitude, magnitude)


def encode(values: I64) -> U32:
    """Return integers as words of sign and magnitude (a Dst image), saturated at +-(2^31 - 1); zero is +0."""
    magnitude = np.minimum(np.abs(values), LIMIT).astype(np.uint32)
    return np.where(values < 0, SIGN | magnitude, magnitude)


def _masked_values(words: U32, mask: int) -> I64:
    """Return the integers that Src words hold, with only those bits of their magnitude that `mask` selects."""
    magnitude = (words >> np.uint32(13) & np.uint32(mask)).astype(np.int64)
    signed = np.where(sign_of(words) == 1, -magnitude, magnitude)
    return np.where(exponent_of(words) == 0, 0, signed)


GROUP = 8
"""Products that are aligned to one exponent and summed."""


def mvmul(dst: U32, srcb: U32, srca: U32, phase: int, family: Family, mode: DstMode, core: Core) -> U32:
    """Return the Dst image [..., rows, cols] after srcb [..., rows, 16] x srca [..., 16, cols] is added in one phase:
    the instruction MVMUL (DEVICE_NUMERICS 2.2). The sums of products 0 to 7 and 8 to 15 enter one single addition,
    which rounds once."""
    terms = product(srca[..., None, :, :], srcb[..., :, :, None], phase, family, mode)
    sums = [_group_sum(terms, slice(first, first + GROUP)) for first in range(0, srca.shape[-2], GROUP)]
    return accumulate(dst, sums, family, mode, core)


def _group_sum(terms: Product, k: slice) -> Sum:
    """Return the sum of the products in slice `k` of the last axis but one, each aligned to the largest exponent among
    them and rounded half up in magnitude (DEVICE_NUMERICS 2.2); +0 with exponent 0 where that exponent is not
    positive."""
    sign, magnitude, exponent = (x[..., k, :] for x in (terms.sign, terms.magnitude, terms.exponent))
    largest = np.maximum.reduce(exponent, axis=-2)
    distance = np.minimum(largest[..., None, :] - exponent, 30)
    aligned: I64 = (2 * magnitude + (1 << distance)) >> (distance + 1)
    total = np.add.reduce(np.where(sign == 1, -aligned, aligned), axis=-2)
    total = np.where(largest <= 0, 0, total)
    return Sum((total < 0).astype(np.int64), np.maximum(largest, 0), np.abs(total) << 13)


FACE: Final = 16
"""Edge of a face, the length of the inner dimension that one MVMUL works on."""


def tile_matmul(dst: U32, in0: U32, in1: U32, phases: Sequence[int], family: Family, mode: DstMode, core: Core) -> U32:
    """Return the Dst image [..., rows, cols] after K tiles in0 [..., K, rows, k] x in1 [..., K, k, cols] are added, in
    the order of the chip's matmul kernel (DEVICE_NUMERICS 2.8): each step of 16 products rounds to what Dst holds.

    k is 16 or 32: an inner face that does not exist is skipped. Leading axes broadcast with those of `dst`.
    """
    for kt in range(in0.shape[-3]):
        for phase, k in _mvmul_steps(phases, in0.shape[-1], core):
            dst = mvmul(dst, in0[..., kt, :, k], in1[..., kt, k, :], phase, family, mode, core)
    return dst


def int_tile_matmul(dst: U32, in0: U32, in1: U32, core: Core) -> U32:
    """Return the integer Dst image [..., rows, cols] after K tiles in0 [..., K, rows, k] x in1 [..., K, k, cols] of
    8-bit integers are added, in the four phases that are mandatory for integers."""
    for kt in range(in0.shape[-3]):
        for phase, k in _mvmul_steps(PHASES["HiFi4"], in0.shape[-1], core):
            dst = int_mvmul(dst, in0[..., kt, :, k], in1[..., kt, k, :], phase)
    return dst


def _mvmul_steps(phases: Sequence[int], inner: int, core: Core) -> Iterator[tuple[int, slice]]:
    """Yield (phase, inner face) of each MVMUL of one tile, the face as a slice of the inner dimension: on Grayskull
    face by face with all phases, elsewhere phase by phase with all faces (DEVICE_NUMERICS 2.8)."""
    faces = [slice(first, first + FACE) for first in range(0, inner, FACE)]
    if core == "grayskull":
        for k in faces:
            yield from ((phase, k) for phase in phases)
    else:
        for phase in phases:
            yield from ((phase, k) for k in faces)
