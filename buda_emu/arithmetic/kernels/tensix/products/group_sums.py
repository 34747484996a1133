"""The matrix unit's groups of 8 products, in fused multiply-adds of single precision. In a kernel they are vector code
(`intrinsics/dst_words.py`).

Let X be the largest exponent of a group's products. The chip rounds each product to the unit 2^(X - 10), ties away from
zero, and adds up the rounded products (DEVICE_NUMERICS 2.2). Here a sum begins as M = 1.5 * 2^23 units, and one fused
multiply-add for each product does both steps: it rounds the exact result to the last place of M, which is one unit. The
sum stays below 2^15 units, so that it never leaves the binade of M. Fused multiply-adds round ties to even, but no ties
occur: the parts of SrcB are made a little larger (`prepared`), by less than a quarter of a product's last place.

The sums are then added to Dst with the M of the largest exponent of both sums and the word. A word of a 16-bit Dst has
8 or 11 bits: adding it to M rounds it as the chip does. Each sum is rounded to the unit of that M, ties upward: it is
increased by `HALF` and rounded down. A 32-bit Dst is counted in integers of 2^-13 of that unit. All steps are exact
while exponents stay well within those of a single, which `matmul_by_singles` ensures.

Called from Python the functions compute the same in numpy, and so define the code.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tensix.products.accumulate import phase_shift
from buda_emu.arithmetic.kernels.tensix.products.prepared import cut_words, move_words
from buda_emu.arithmetic.kernels.tensix.words import BF16, EDGE, FACE, FP16, FP32, GROUP, ROUNDING, TILE, i32
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

Group: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
"""The pattern of M, and M with the sum."""


ABOVE: Final = 13
"""The exponent field of M is X + ABOVE; its first bit of fraction is set, too."""
OFFSET: Final = 64
"""What is added to the exponents of an fp16 Dst, which would otherwise be among the smallest of a single."""
LOWEST_COMMON: Final = 24
"""The least common exponent of an accumulation in 16 bits: half a unit of the last phase, which is 2^12 below the first
one's, is still a normal single."""
LOWEST_WIDE: Final = 27
"""The same in 32 bits: a quarter of its unit is."""

M_FRACTION: Final = 0x400000  # the fraction of 1.5
AWAY: Final = 1.0 + 2.0**-13  # makes a word of Dst so much larger that ties are rounded away from zero
LEAST: Final = (LOWEST_COMMON + ABOVE) << 23 | M_FRACTION
LEAST_WIDE: Final = (LOWEST_WIDE + ABOVE) << 23 | M_FRACTION
LEAST_FP16: Final = (OFFSET + ABOVE) << 23 | M_FRACTION
"""Patterns of the least M that is used, for a Dst of bf16, of 32 bits and of fp16."""
FP16_MOST: Final = (OFFSET + 31) << 23 | 0x3FF << 13  # the largest fp16 of Dst: exponent 31, all 10 bits of fraction

# Differences of patterns: the pattern of M minus UNIT is the pattern of the unit, and so on. From the two inverses
# the pattern of M is subtracted instead.
UNIT: Final = 23 << 23 | M_FRACTION
INVERSE: Final = (2 * 127 + 23) << 23 | M_FRACTION  # 1 / unit
HALF: Final = (24 << 23 | M_FRACTION) - (1 << 10)
"""Half a unit and 2^-14 of a unit, which the chip's first rounding adds (`accumulate`)."""
HALF_OF_M: Final = float(np.nextafter(np.float32(2.0**-24 * (1.0 + 2.0**-13) / 1.5), np.float32(1)))
"""The same divided by M, rounded up by less than 2^-22 of itself. This changes no result: it could move only a sum with
more than 22 bits below the unit over a tie, and such a sum is not near one."""
FINER: Final = 13 << 23  # the unit of a 32-bit Dst is 2^-13 of that of a 16-bit one
INVERSE_WIDE: Final = INVERSE + FINER
UNIT_WIDE: Final = UNIT + FINER + (2 << 23)  # a quarter of the unit of a 32-bit Dst
BUG: Final = 9 << 23 | M_FRACTION  # 2^4 of 2^X
HALF_BELOW: Final = 0x3EFFFFFF
"""The single below 0.5: added before a fraction is dropped, it rounds to nearest, halves away from zero."""


def add_tile(
    word: Any,
    exponent_b: Any,
    exponent_a: Any,
    b: Any,
    a: Any,
    steps: Any,
    how: tuple[int, int, int, int, int, int, int, int],
) -> None:
    """Add SrcB x SrcA, a product of two prepared tiles, to the words of a tile of Dst, in place: the phases and inner
    faces that `steps` names, one accumulation each.

    word: float32[1024]. Exponents of FP16 words are OFFSET higher than Dst's, those of BF16 words ABOVE; a BF16 word
    with an exponent of ABOVE or less is a zero. exponent_b, exponent_a, b, a: exponents and parts of both operands from
    `prepared`. steps: int32[2 * n], the fidelity phase and the inner face of each step. how, in this order: the number
    of steps, at least one; the number of faces; the least exponent of products, as `prepared` counts them; the least
    exponent of M for products that are not zeros, or 0 where exponents are too far apart for bytes; what was added to
    exponents; 1 if words are cut after each step as `cut_words` does; the mode of Dst; 1 for Blackhole.
    """
    count, _, lowest, _, moved, cut, mode, blackhole = how
    count_b = exponent_b[: EDGE * FACE].view(np.int16).reshape(EDGE, 2, GROUP, 2).astype(np.int32)
    count_a = exponent_a[: EDGE * FACE].view(np.int16).reshape(2, GROUP, EDGE, 2).astype(np.int32)
    if mode == BF16:
        move_words(word.view(np.int32), -ABOVE)
    for phase, face in steps[: 2 * count].reshape(-1, 2).tolist():
        sums = (count_b[:, face, :, None] + count_a[None, face]).max(axis=1)
        tops = np.maximum(sums, np.int32(lowest)).reshape(-1, 2) << i32(17)
        shift = phase_shift(phase)
        groups = _group_sums(tops, b[(phase >> 1) * TILE :], a[(phase & 1) * TILE :], face)
        if mode == FP32:
            _add_face_wide(word, groups, shift, bool(blackhole))
        else:
            _add_face(word, groups, shift, mode)
        if cut:
            cut_words(word.view(np.int32), moved)
    if mode == BF16:
        move_words(word.view(np.int32), ABOVE)


def _add_face(word: Any, groups: list[Group], shift: int, mode: int) -> None:
    """Add the sums of both groups of 8 products of one inner face to the words of a 16-bit Dst, in place, as one
    accumulation. `groups`: for each group the patterns of M, the constants that round its sums to their units, and M
    plus the sums. `shift`: by how much the exponents of this phase are less than those of phase 0, for which M is
    chosen."""
    (m0, total0), (m1, total1) = groups
    with np.errstate(all="ignore"):
        least = LEAST
        if mode == FP16:
            least = LEAST_FP16
        common = _common_m(word, m0, m1, shift, least)
        half = np.asarray(common - i32(HALF)).view(np.float32)
        unit, inverse = (x.view(np.float32) for x in (common - i32(UNIT), _constant_minus(INVERSE, common)))
        m = common.view(np.float32)
        total = fma_f32(word, np.float32(AWAY), m)
        for pattern, group in ((m0, total0), (m1, total1)):
            group_sum = np.asarray(group - pattern.view(np.float32))
            if mode == FP16:  # the chip takes an exponent of zero or less for a zero
                is_normal = pattern > i32((OFFSET + ABOVE + shift) << 23 | M_FRACTION)
                group_sum = np.where(is_normal, group_sum, np.float32(0))
            upward = fma_f32(group_sum, np.float32(2.0**-shift), half)
            total = total + np.floor(upward * inverse) * unit
        rounding, mask = ROUNDING[mode]
        bits = (np.asarray(total - m).view(np.int32) + i32(rounding)) & i32(mask)
        if mode == FP16:
            size = bits & i32(MAGNITUDE)
            size = np.where(size >= (OFFSET + 32) << 23, i32(FP16_MOST), size)
            bits = size | (bits & i32(NEGATIVE_SIGN))
            bits = np.where(size < (OFFSET + 1) << 23, i32(0), bits)
        word[:] = bits.view(np.float32)


def _add_face_wide(word: Any, groups: list[Group], shift: int, blackhole: bool) -> None:
    """Add the sums of both groups of 8 products of one inner face to the words of a 32-bit Dst, in place, as one
    accumulation. `groups` and `shift` are those of `_add_face`: for each group M and M plus its sums, and by how much
    exponents are less than those of phase 0, for which M is chosen. `blackhole`: without Wormhole's error for a sum of
    -1 (2.3 step 5)."""
    (m0, total0), (m1, total1) = groups
    with np.errstate(all="ignore"):
        common = _common_m(word, m0, m1, shift, LEAST_WIDE)
        inverse = _constant_minus(INVERSE_WIDE, common)
        half = (word.view(np.int32) & i32(NEGATIVE_SIGN)) | i32(HALF_BELOW)
        count = fma_f32(word, inverse.view(np.float32), half.view(np.float32)).astype(np.int32)  # towards zero
        scale = np.asarray(inverse - i32(shift << 23)).view(np.float32)
        for pattern, group in ((m0, total0), (m1, total1)):
            group_sum = np.asarray(group - pattern.view(np.float32))
            count = count + np.floor(fma_f32(group_sum, scale, np.float32(0.5))).astype(np.int32)
        size = np.abs(count)
        # A size from 2^23 on may not fit a single, which rounds ties to even: four times the size and 1 is never a tie.
        quadruple = (size.view(np.uint32) << np.uint32(2)) + np.minimum(size >> i32(23), i32(1)).view(np.uint32)
        result = quadruple.astype(np.float32) * np.asarray(common - i32(UNIT_WIDE)).view(np.float32)
        bits = result.view(np.int32) | (count & i32(NEGATIVE_SIGN))
        if not blackhole:  # an error of the chip (2.3 step 5)
            bits = np.where(count == -1, (common - i32(BUG)) | i32(NEGATIVE_SIGN), bits)
        word[:] = bits.view(np.float32)


def _as_tile(tile: Any) -> Any:
    """Return the first 1024 elements of an array as a tile [32, 32]."""
    return tile[: EDGE * EDGE].reshape(EDGE, EDGE)


def _constant_minus(number: int, pattern: Any) -> Any:
    """Return the constant `number` minus each word of `pattern`, as int32 that wrap around."""
    return np.asarray(np.array(number, np.uint32) - pattern.view(np.uint32)).view(np.int32)


def _common_m(word: Any, m0: Any, m1: Any, shift: int, least: int) -> Any:
    """Return for each word the pattern of the M at which both sums and the word are added: that of their largest
    exponent, but no less than `least`, since in later phases sums of zeros alone have smaller exponents. `m0` and `m1`:
    the patterns of the groups' M in phase 0; `shift`: by how much this phase's exponents are less."""
    word_pattern = ((word.view(np.int32) + i32(ABOVE << 23)) & i32(INFINITY)) | i32(M_FRACTION)
    return np.maximum(np.maximum(np.maximum(m0, m1) - i32(shift << 23), word_pattern), i32(least))


def _group_sums(patterns: NDArray[np.int32], b: Any, a: Any, face: int) -> list[Group]:
    """Return for both groups of an inner face the patterns of M, int32[1024], and M plus the group's sum,
    float32[1024]. `patterns`, int32[1024, 2], are those of M; `b` and `a` begin with the parts of the operands that the
    phase multiplies."""
    sums: list[Group] = []
    for group in range(2):
        m = np.ascontiguousarray(patterns[:, group])
        total = m.view(np.float32).reshape(EDGE, EDGE)
        for k in range(face * FACE + group * GROUP, face * FACE + (group + 1) * GROUP):
            total = fma_f32(_as_tile(b)[:, k, None], _as_tile(a)[None, k], total)
        sums.append((m, total.reshape(-1)))
    return sums
