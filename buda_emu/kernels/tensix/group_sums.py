"""The matrix unit's groups of 8 products, in fused multiply-adds of single precision. In a kernel they are vector code
(`intrinsics/group_sums.py`).

A group's sum counts units of 2^-10 of 2^X, X the largest exponent of its products, and each product is rounded to
that unit, ties away from zero, before it is added (DEVICE_NUMERICS 2.2). That is what adding it to M = 1.5 * 2^23 units
does: one fused multiply-add rounds the exact product to the last place of M, and the sum, less than 2^15 units, never
leaves M's binade. Ties, which the instruction rounds to even, do not occur: parts of SrcB are given with a little more
than their magnitude (`prepared`), less than a quarter of the last place of any product.

A 16-bit Dst holds single-precision numbers of 8 or 11 bits, so what follows is done with those, too: its rounding of
the sums, ties upward, is a floor, and that of the word another fused multiply-add. All of it is exact while exponents
stay well within those of a single: `matmul_by_singles` sees to that.

Called from Python the functions compute the same in numpy, and so define the code.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.fma import fma_f32
from buda_emu.kernels.tensix.words import EDGE, FACE, FP16, GROUP, i32

__all__ = [
    "ABOVE",
    "AWAY",
    "EXPONENT",
    "FP16_MOST",
    "FRACTION_BITS",
    "INVERSE",
    "LOWEST_COMMON",
    "MAGIC",
    "M_FRACTION",
    "OFFSET",
    "UPWARD",
    "add_face",
    "find_tops",
    "sum_face",
]

ABOVE: Final = 13
"""The exponent field of M is X + ABOVE; its first bit of fraction is set, too."""
OFFSET: Final = 64
"""What is added to the exponents of an fp16 Dst, which would else lie at the end of those of a single."""
LOWEST_COMMON: Final = 11
"""The least common exponent of an accumulation: 10 below it is still a normal single."""

FRACTION_BITS: Final = 10
M_FRACTION: Final = 0x400000
EXPONENT: Final = 0x7F800000
MAGIC: Final = 1.5 * 2.0**23
UPWARD: Final = 0.5 + 2.0**-14
"""Half a unit, and what the chip's first rounding adds (`accumulate`)."""
AWAY: Final = 1 << 10  # in a power of two: a little more than it
INVERSE: Final = (2 * 127 + FRACTION_BITS) << 23
FP16_MOST: Final = (OFFSET + 31) << 23 | 0x3FF << 13


def find_tops(tops: Any, exponent_b: Any, exponent_a: Any, faces: int, lowest: int) -> None:
    """tops[g][i][j] = the largest of exponent_b[i][k] + exponent_a[k][j] and `lowest`, k going through group g.

    tops: int16[4 * 1024]; exponent_b: int32, each number twice, in both halves of its word; exponent_a: int16; a tile
    is the first 1024. The groups are those of the first `faces` inner faces.
    """
    b, a = _square(exponent_b).astype(np.int16), _square(exponent_a)
    for group, out in enumerate(tops.reshape(-1, EDGE, EDGE)[: faces * FACE // GROUP]):
        k = slice(group * GROUP, (group + 1) * GROUP)
        out[...] = np.maximum((b[:, k, None] + a[None, k]).max(axis=1), np.int16(lowest))


def sum_face(sums: Any, tops: Any, b: Any, a: Any, face: int) -> None:
    """sums[g][i][j] = the sum of group g of an inner face, in units of 2^-10 of 2^X.

    sums: int32[2 * 1024]; tops: of `find_tops`, 2 * (X + ABOVE) + 1; b, a: float32, parts
    from `prepared`, the first 1024.
    """
    for group, (m, total) in enumerate(_group_sums(tops, b, a, face)):
        sums.reshape(2, -1)[group] = total.view(np.int32) - m.view(np.int32)


def add_face(word: Any, tops: Any, b: Any, a: Any, face: int, shift: int, mode: int) -> None:
    """word += SrcB x SrcA over one inner face, in a 16-bit Dst of `mode`.

    word: float32[1024], words of Dst, those of FP16 with OFFSET added to their exponents; tops, b, a as for `sum_face`,
    with X that of phase 0, which is `shift` more than that of this phase.
    """
    (m0, total0), (m1, total1) = _group_sums(tops, b, a, face)
    with np.errstate(all="ignore"):
        patterns = [np.asarray(m.view(np.int32)) for m in (m0, m1)]
        below = np.int32((ABOVE + shift) << 23 | M_FRACTION)
        common = np.maximum(np.maximum(*patterns) - below, word.view(np.int32) & np.int32(EXPONENT))
        common = np.maximum(common, np.int32(LOWEST_COMMON << 23))
        inverse = np.asarray(np.array(INVERSE, np.uint32) - common.view(np.uint32)).view(np.int32)
        scale = (inverse - np.int32(shift << 23)).view(np.float32)
        total = fma_f32(word, (inverse | np.int32(AWAY)).view(np.float32), np.float32(MAGIC))
        for m, pattern, group in ((m0, patterns[0], total0), (m1, patterns[1], total1)):
            v = np.asarray(group - m)
            if mode == FP16:  # an exponent of zero or less is none
                v = np.where(pattern > np.int32((OFFSET + ABOVE + shift) << 23 | M_FRACTION), v, np.float32(0))
            total = total + np.floor(fma_f32(v, scale, np.float32(UPWARD)))
        half, kept = (0x1000, -0x2000) if mode == FP16 else (0x8000, -0x10000)
        bits = (np.asarray(total - np.float32(MAGIC)).view(np.int32) + np.int32(half)) & np.int32(kept)
        result = bits.view(np.float32) * (common - np.int32(FRACTION_BITS << 23)).view(np.float32)
        if mode == FP16:
            bits = result.view(np.int32)
            size = bits & np.int32(0x7FFFFFFF)
            size = np.where(size >= (OFFSET + 32) << 23, np.int32(FP16_MOST), size)
            bits = size | (bits & np.int32(-0x80000000))
            result = np.where(size < (OFFSET + 1) << 23, np.int32(0), bits).view(np.float32)
        word[:] = result


def _square(tile: Any) -> Any:
    """The tile that an array begins with."""
    return tile[: EDGE * EDGE].reshape(EDGE, EDGE)


def _group_sums(tops: Any, b: Any, a: Any, face: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """M, and M with the sum, of both groups of a face."""
    found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    for group in range(2 * face, 2 * face + 2):
        top = tops.reshape(-1, EDGE * EDGE)[group].astype(np.int32)
        m = np.asarray(top << i32(22)).view(np.float32)
        total = m.reshape(EDGE, EDGE)
        for k in range(group * GROUP, (group + 1) * GROUP):
            total = fma_f32(_square(b)[:, k, None], _square(a)[None, k], total)
        found.append((m, total.reshape(-1)))
    return found
