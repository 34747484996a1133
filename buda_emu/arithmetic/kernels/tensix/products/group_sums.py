"""The matrix unit's groups of 8 products, in fused multiply-adds of single precision. In a kernel they are vector code
(`intrinsics/dst_words.py`).

A group's sum counts units of 2^-10 of 2^X, X the largest exponent of its products, and each product is rounded to
that unit, ties away from zero, before it is added (DEVICE_NUMERICS 2.2). That is what adding it to M = 1.5 * 2^23 units
does: one fused multiply-add rounds the exact product to the last place of M, and the sum, less than 2^15 units, never
leaves M's binade. Ties, which the instruction rounds to even, do not occur: parts of SrcB are given with a little more
than their magnitude (`prepared`), less than a quarter of the last place of any product.

What follows is done with the M of the common exponent of sums and Dst. A 16-bit Dst holds numbers of 8 or 11 bits:
adding such a one to M rounds it as the chip does, and so does adding the sums, ties upward, if it is rounded down. A
32-bit Dst is counted in units of 2^-23, as integers. All of it is exact while exponents stay well within those of a
single: `matmul_by_singles` sees to that.

Called from Python the functions compute the same in numpy, and so define the code.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tensix.products.accumulate import shift_of
from buda_emu.arithmetic.kernels.tensix.products.prepared import cut_words, move_words
from buda_emu.arithmetic.kernels.tensix.words import BF16, EDGE, FACE, FP16, FP32, GROUP, TILE, i32
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

Group: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
"""The pattern of M, and M with the sum."""


ABOVE: Final = 13
"""The exponent field of M is X + ABOVE; its first bit of fraction is set, too."""
OFFSET: Final = 64
"""What is added to the exponents of an fp16 Dst, which would else lie at the end of those of a single."""
LOWEST_COMMON: Final = 24
"""The least common exponent of an accumulation in 16 bits: half a unit of the last phase, which is 2^12 below the first
one's, is still a normal single."""
LOWEST_WIDE: Final = 27
"""The same in 32 bits: a quarter of its unit is."""

M_FRACTION: Final = 0x400000
AWAY: Final = 1.0 + 2.0**-13
LEAST: Final = (LOWEST_COMMON + ABOVE) << 23 | M_FRACTION
LEAST_WIDE: Final = (LOWEST_WIDE + ABOVE) << 23 | M_FRACTION
LEAST_FP16: Final = (OFFSET + ABOVE) << 23 | M_FRACTION
"""Patterns of the least M, of a Dst of bf16, of 32 bits, and of fp16."""
FP16_MOST: Final = (OFFSET + 31) << 23 | 0x3FF << 13

# What to take from the pattern of M, or to take it from, for the pattern of:
UNIT: Final = 23 << 23 | M_FRACTION
INVERSE: Final = (2 * 127 + 23) << 23 | M_FRACTION  # 1 / unit
HALF: Final = (24 << 23 | M_FRACTION) - (1 << 10)
"""Half a unit, and what the chip's first rounding adds, 2^-14 of one (`accumulate`)."""
HALF_OF_M: Final = float(np.nextafter(np.float32(2.0**-24 * (1.0 + 2.0**-13) / 1.5), np.float32(1)))
"""The same as a part of M, or less than 2^-22 of it more: a sum that this would take over a tie has more than 22 bits
below the unit, and is not near one."""
FINER: Final = 13 << 23  # unit of a 32-bit Dst, of that of a 16-bit one
INVERSE_WIDE: Final = INVERSE + FINER
UNIT_WIDE: Final = UNIT + FINER + (2 << 23)  # a quarter of it
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
    """word += SrcB x SrcA of a tile.

    word: float32[1024], words of Dst. The exponents of those of FP16 are greater by OFFSET; those of BF16 by ABOVE, and
    one with an exponent of ABOVE or less is a zero. exponent_b, exponent_a, b, a: exponents and parts from `prepared`;
    steps: int32[2 * n], of each its fidelity phase and its inner face. how: how many steps, at least one; how many
    faces; what exponents of products are at least, as `prepared` counts them; what those of M are at least, for
    products that are not zeros, or 0 where exponents are too far apart for bytes; by how much exponents are greater;
    whether (1) words are cut after each step as `cut_words` does; the mode of Dst; whether (1) it is a Blackhole.
    """
    count, _, lowest, _, moved, cut, mode, blackhole = how
    count_b = exponent_b[: EDGE * FACE].view(np.int16).reshape(EDGE, 2, GROUP, 2).astype(np.int32)
    count_a = exponent_a[: EDGE * FACE].view(np.int16).reshape(2, GROUP, EDGE, 2).astype(np.int32)
    if mode == BF16:
        move_words(word.view(np.int32), -ABOVE)
    for phase, face in steps[: 2 * count].reshape(-1, 2).tolist():
        sums = (count_b[:, face, :, None] + count_a[None, face]).max(axis=1)
        tops = np.maximum(sums, np.int32(lowest)).reshape(-1, 2) << i32(17)
        shift = shift_of(phase)
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
    """Add one inner face in a 16-bit Dst; the M are those of X in phase 0, which is `shift` more than in this one."""
    (m0, total0), (m1, total1) = groups
    with np.errstate(all="ignore"):
        common = _common(word, m0, m1, shift, LEAST_FP16 if mode == FP16 else LEAST)
        half = np.asarray(common - i32(HALF)).view(np.float32)
        unit, inverse = (x.view(np.float32) for x in (common - i32(UNIT), _difference(INVERSE, common)))
        m = common.view(np.float32)
        total = fma_f32(word, np.float32(AWAY), m)
        for pattern, group in ((m0, total0), (m1, total1)):
            v = np.asarray(group - pattern.view(np.float32))
            if mode == FP16:  # an exponent of zero or less is none
                v = np.where(pattern > i32((OFFSET + ABOVE + shift) << 23 | M_FRACTION), v, np.float32(0))
            upward = fma_f32(v, np.float32(2.0**-shift), half)
            total = total + np.floor(upward * inverse) * unit
        rounding, mask = (0x1000, -0x2000) if mode == FP16 else (0x8000, -0x10000)
        bits = (np.asarray(total - m).view(np.int32) + i32(rounding)) & i32(mask)
        if mode == FP16:
            size = bits & i32(MAGNITUDE)
            size = np.where(size >= (OFFSET + 32) << 23, i32(FP16_MOST), size)
            bits = size | (bits & i32(NEGATIVE_SIGN))
            bits = np.where(size < (OFFSET + 1) << 23, i32(0), bits)
        word[:] = bits.view(np.float32)


def _add_face_wide(word: Any, groups: list[Group], shift: int, blackhole: bool) -> None:
    """Add one inner face in a 32-bit Dst; the M are those of X in phase 0."""
    (m0, total0), (m1, total1) = groups
    with np.errstate(all="ignore"):
        common = _common(word, m0, m1, shift, LEAST_WIDE)
        inverse = _difference(INVERSE_WIDE, common)
        half = (word.view(np.int32) & i32(NEGATIVE_SIGN)) | i32(HALF_BELOW)
        n = fma_f32(word, inverse.view(np.float32), half.view(np.float32)).astype(np.int32)  # towards zero
        scale = np.asarray(inverse - i32(shift << 23)).view(np.float32)
        for pattern, group in ((m0, total0), (m1, total1)):
            v = np.asarray(group - pattern.view(np.float32))
            n = n + np.floor(fma_f32(v, scale, np.float32(0.5))).astype(np.int32)
        size = np.abs(n)
        # Of four times that singles round no ties: one more than that is none.
        quadruple = (size.view(np.uint32) << np.uint32(2)) + np.minimum(size >> i32(23), i32(1)).view(np.uint32)
        result = quadruple.astype(np.float32) * np.asarray(common - i32(UNIT_WIDE)).view(np.float32)
        bits = result.view(np.int32) | (n & i32(NEGATIVE_SIGN))
        if not blackhole:  # an error of the chip (2.3 step 5)
            bits = np.where(n == -1, (common - i32(BUG)) | i32(NEGATIVE_SIGN), bits)
        word[:] = bits.view(np.float32)


def _square(tile: Any) -> Any:
    """Return the tile that an array begins with, [32, 32]."""
    return tile[: EDGE * EDGE].reshape(EDGE, EDGE)


def _difference(number: int, pattern: Any) -> Any:
    """Return a constant, `number`, less the patterns, as words that wrap around."""
    return np.asarray(np.array(number, np.uint32) - pattern.view(np.uint32)).view(np.int32)


def _common(word: Any, m0: Any, m1: Any, shift: int, least: int) -> Any:
    """Return the pattern of the M of the largest exponent, `least` where there is none: sums of nothing have none in
    the later phases."""
    word_pattern = ((word.view(np.int32) + i32(ABOVE << 23)) & i32(INFINITY)) | i32(M_FRACTION)
    return np.maximum(np.maximum(np.maximum(m0, m1) - i32(shift << 23), word_pattern), i32(least))


def _group_sums(patterns: NDArray[np.int32], b: Any, a: Any, face: int) -> list[Group]:
    """Return the pattern of M and M with the sum, for both groups of a face."""
    sums: list[Group] = []
    for group in range(2):
        m = np.ascontiguousarray(patterns[:, group])
        total = m.view(np.float32).reshape(EDGE, EDGE)
        for k in range(face * FACE + group * GROUP, face * FACE + (group + 1) * GROUP):
            total = fma_f32(_square(b)[:, k, None], _square(a)[None, k], total)
        sums.append((m, total.reshape(-1)))
    return sums
