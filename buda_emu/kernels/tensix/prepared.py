"""Operand tiles of the matrix unit taken apart once for all their products (`group_sums`): exponents as 16-bit
integers, twice the field each; parts for the fidelity phases as singles, each in the place of the first one's bits."""

from typing import Any, Final, TypeAlias

import numpy as np

from buda_emu.kernels.jit import helper
from buda_emu.kernels.parts import part_of
from buda_emu.kernels.tensix.words import EDGE, FACE, GROUP, TILE, i32

Exponents: TypeAlias = Any
"""int32[512]: in a word those of both groups of an inner face, the first in its lower half. Those of SrcA at [face][k
in a group][column], those of SrcB at [row][face][k in a group]."""
Parts: TypeAlias = Any
"""float32[2 * 1024]: the parts of two phases, one behind the other."""

__all__ = [
    "INFINITE",
    "NO_EXPONENT",
    "aligned",
    "cut_words",
    "move_words",
    "prepare_srca",
    "prepare_srcb",
    "put_pairs",
    "range_of",
]

INFINITE: Final = 255

NO_EXPONENT: Final = -(1 << 14)
"""Of a zero: the sum of two still fits 16 bits."""
_LINE: Final = 64
_SRCA_FIRST: Final = -0x80000  # what the first part has of a word
_SRCA_BOTH: Final = -0x4000  # and what both have
_SRCB_FIRST: Final = -0x20000  # both have all of it
_MORE: Final = 1 << 10  # of a fraction is what parts of SrcB are made larger by, less than 1/4 of 1 in any product


@helper
def aligned(memory: Any, size: int) -> Any:
    """`size` elements of a longer array, from a cache line on."""
    first = (-memory.ctypes.data % _LINE) // memory.itemsize
    return part_of(memory, first, size)


@helper
def range_of(words: Any) -> tuple[int, int]:
    """The least and the largest exponent field of what is not zero; (255, 0) where all is."""
    least, most = i32(255), i32(0)
    for n in range(TILE):
        exponent = i32(i32(words[n] >> i32(23)) & i32(255))
        most = max(most, exponent)
        least = min(least, i32(255) if exponent == 0 else exponent)
    return int(least), int(most)


@helper
def move_words(word: Any, by: int) -> None:
    """Exponents grow by that; what has the exponent 0 counts as nothing."""
    for n in range(TILE):
        word[n] = i32(word[n] + i32(by << 23)) if i32(word[n] & i32(0x7F800000)) else i32(0)


@helper
def cut_words(word: Any, moved: int) -> None:
    """What is too small or too large for Dst, where exponents are moved (DEVICE_NUMERICS 2.3 step 7)."""
    least, most = i32(max(moved + 1, 0) << 23), i32((INFINITE + min(moved, 0)) << 23)
    for n in range(TILE):
        size = min(i32(word[n] & i32(0x7FFFFFFF)), most)
        word[n] = i32(0) if size < least else i32(i32(word[n] & i32(-0x80000000)) | size)


@helper
def _doubled(word: np.int32) -> np.int32:
    """Twice an exponent."""
    field = i32(i32(word >> i32(23)) & i32(255))
    return i32(NO_EXPONENT) if field == 0 else i32(field << i32(1))


def put_pairs(exponent: Any, words: Any, plus: int) -> None:
    """The doubled exponents of SrcB with `plus` added: int32[512] of int32[1024]."""
    field = words[:TILE].reshape(-1, 2, GROUP) >> 23 & 255
    value = np.where(field == 0, NO_EXPONENT, 2 * field + plus)
    exponent[: TILE // 2] = (value[:, 1] << 16 | value[:, 0] & 0xFFFF).reshape(-1)


@helper
def _lifted(word: np.int32, lift: np.int32) -> np.int32:
    """A word with `lift` added to it, 0 where it has no exponent."""
    return i32(0) if i32(word & i32(0x7F800000)) == 0 else i32(word + lift)


@helper
def prepare_srca(exponent: Exponents, parts: Parts, words: Any, phases: int, lift: int) -> None:
    """Of a tile of words. `lift` is added to the exponents of the parts; `phases` has a bit for each phase."""
    size = GROUP * EDGE
    for face in range(EDGE // FACE):
        first, second = part_of(words, 2 * face * size, size), part_of(words, (2 * face + 1) * size, size)
        out = part_of(exponent, face * size, size)
        for n in range(size):
            low, high = _doubled(first[n]), _doubled(second[n])
            out[n] = i32(i32(high << i32(16)) | i32(low & i32(0xFFFF)))
    more = i32(lift << 23)
    if phases & 0b0101:  # phases 0 and 2 share a part, 1 and 3 the other
        for n in range(TILE):
            parts[n] = i32(_lifted(words[n], more) & i32(_SRCA_FIRST)).view(np.float32)
    if phases & 0b1010:
        out = part_of(parts, TILE, TILE)
        for n in range(TILE):
            word = _lifted(words[n], more)
            first, both = i32(word & i32(_SRCA_FIRST)), i32(word & i32(_SRCA_BOTH))
            out[n] = (both.view(np.float32) - first.view(np.float32)) * np.float32(1 << 5)


@helper
def prepare_srcb(exponent: Exponents, parts: Parts, words: Any, phases: int, lift: int, plus: int) -> None:
    """The same of SrcB. `plus` is added to the doubled exponents."""
    put_pairs(exponent, words, plus)
    more = i32(lift << 23)
    if phases & 0b0011:
        for n in range(TILE):
            word = _lifted(words[n], more)
            first = i32(word & i32(_SRCB_FIRST))
            parts[n] = i32(first | (i32(0) if word == 0 else i32(_MORE))).view(np.float32)
    if phases & 0b1100:
        out = part_of(parts, TILE, TILE)
        for n in range(TILE):
            word = _lifted(words[n], more)
            first, power = i32(word & i32(_SRCB_FIRST)), i32(word & i32(-0x800000))
            second = (i32(word).view(np.float32) - first.view(np.float32)) * np.float32(1 << 7)
            out[n] = second + power.view(np.float32) * np.float32(_MORE / 2**23)
