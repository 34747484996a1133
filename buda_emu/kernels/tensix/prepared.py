"""Operand tiles of the matrix unit taken apart once for all their products (`group_sums`): exponents as 16-bit
integers, twice the field each; parts for the fidelity phases as singles, each in the place of the first one's bits."""

from typing import Any, Final, TypeAlias

import numpy as np

from buda_emu.kernels.jit import helper
from buda_emu.kernels.tensix.fidelity import srca_part, srcb_part
from buda_emu.kernels.tensix.words import EDGE, FACE, GROUP, TILE, i32

Exponents: TypeAlias = Any
"""int32[512]: in a word those of both groups of an inner face, the first in its lower half. Those of SrcA at [face][k
in a group][column], those of SrcB at [row][face][k in a group]."""
Parts: TypeAlias = Any
"""float32[2 * 1024]: the parts of two phases, one behind the other."""

NO_EXPONENT: Final = -(1 << 14)
"""Of a zero: the sum of two still fits 16 bits."""
_LINE: Final = 64
_SRCA_FRACTION: Final = 4  # bits of a part behind the point
_SRCB_FRACTION: Final = 6
_MORE_BITS: Final = 7  # a unit of those is what a part of SrcB is made larger by, less than 1/4 of 1 in any product


@helper
def aligned(memory: Any, size: int) -> Any:
    """`size` elements of a longer array, from a cache line on."""
    first = (-memory.ctypes.data % _LINE) // memory.itemsize
    return memory[first : first + size]


@helper
def _power(exponent: np.int32) -> np.float32:
    """The single with that exponent field, at least 1."""
    return i32(max(exponent, i32(1)) << i32(23)).view(np.float32)


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
def _doubled(word: np.int32, plus: np.int32) -> np.int32:
    """Twice an exponent, and `plus`."""
    field = i32(i32(word >> i32(23)) & i32(255))
    return i32(NO_EXPONENT) if field == 0 else i32(i32(field << i32(1)) + plus)


@helper
def prepare_srca(exponent: Exponents, parts: Parts, words: Any, phases: int, lift: int) -> None:
    """Of a tile of words. `lift` is added to the exponents of the parts; `phases` has a bit for each phase."""
    for k in range(EDGE // 2):
        upper = (k // GROUP * FACE + k % GROUP) * EDGE
        for n in range(EDGE):
            first = _doubled(words[upper + n], i32(0))
            second = _doubled(words[upper + GROUP * EDGE + n], i32(0))
            exponent[k * EDGE + n] = i32(i32(second << i32(16)) | i32(first & i32(0xFFFF)))
    below = i32(lift - _SRCA_FRACTION)
    for half in range(2):
        if phases & 0b0101 << half:  # phases 0 and 2 share a part, 1 and 3 the other
            out = parts[half * TILE : (half + 1) * TILE]
            for n in range(TILE):
                field = i32(i32(words[n] >> i32(23)) & i32(255))
                out[n] = np.float32(srca_part(words[n], half)) * _power(i32(field + below))


@helper
def prepare_srcb(exponent: Exponents, parts: Parts, words: Any, phases: int, lift: int, plus: int) -> None:
    """The same of SrcB. `plus` is added to the doubled exponents."""
    for row in range(EDGE):
        for face in range(EDGE // FACE):
            first_k = row * EDGE + face * FACE
            for n in range(GROUP):
                first = _doubled(words[first_k + n], i32(plus))
                second = _doubled(words[first_k + GROUP + n], i32(plus))
                exponent[first_k // 2 + n] = i32(i32(second << i32(16)) | i32(first & i32(0xFFFF)))
    below = i32(lift - _SRCB_FRACTION - _MORE_BITS)
    for half in range(2):
        if phases & 0b0011 << 2 * half:
            out = parts[half * TILE : (half + 1) * TILE]
            for n in range(TILE):
                field = i32(i32(words[n] >> i32(23)) & i32(255))
                part = srcb_part(words[n], 2 * half)
                away = i32(i32(part >> i32(31)) | i32(part != 0))  # its sign
                out[n] = np.float32(i32(i32(part << i32(_MORE_BITS)) + away)) * _power(i32(field + below))
