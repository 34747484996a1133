"""Operand tiles of the matrix unit prepared once for all their products (`group_sums`): their exponents as 16-bit
integers, COUNTS times the field each, and as bytes where they are near each other; their parts for the fidelity phases
as singles, each multiplied by the power of two that puts it in the place of the first part.

In a kernel that is vector code, one pass over the words (`intrinsics/prepared.py`); called from Python the functions
compute the same in numpy, and so define it.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.jit.primitives import part_of
from buda_emu.arithmetic.kernels.tensix.words import GROUP, TILE, i32, zero_if
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

Exponents: TypeAlias = Any
"""int32[EXPONENTS]. In each of the first HALVES words those of both groups of an inner face, the first in its lower
half: of SrcA at [face][k in a group][column], of SrcB at [row][face][k in a group]. Then in each word those of both
groups of both faces, the first in the lowest byte: of SrcA at [k in a group][column], of SrcB at [row][k in a group].

A byte is 0 for a zero, SPAN + 1 for the least exponent of all, and so on; those of SrcA are less by 128. Bytes mean
nothing where exponents are more than SPAN apart."""


INFINITE: Final = 255  # the exponent field of infinities

COUNTS: Final = 64
"""Half of what an exponent of 1 is in the upper 16 bits of a single, so that sums of two fit."""
HALVES: Final = TILE // 2
EXPONENTS: Final = HALVES + TILE // 4
SPAN: Final = 63
"""So that the sum of two bytes is one, and tells whether none of them is of a zero: then it is above 127."""
NO_EXPONENT: Final = -(1 << 14)
"""Of a zero: the sum of two still fits 16 bits."""
_LINE: Final = 64  # bytes of a cache line
SRCA_FIRST: Final = -0x80000  # what the first part has of a word
SRCA_BOTH: Final = -0x4000  # and what both have
SRCB_FIRST: Final = -0x20000  # both have all of it
POWER: Final = -0x800000  # the mask of sign and exponent
MORE: Final = 1 << 10  # of a fraction is what parts of SrcB are made larger by, less than 1/4 of 1 in any product
MORE_OF_POWER: Final = np.float32(MORE / 2**23)


@helper
def align_to_cache_line(memory: Any, size: int) -> Any:
    """Return the `size` elements of `memory` from the first one on that begins a cache line; `memory` must be longer by
    a line."""
    first = (-memory.ctypes.data % _LINE) // memory.itemsize
    return part_of(memory, first, size)


@helper
def range_of(words: Any, none: int) -> tuple[int, int]:
    """Return the least and the greatest exponent field of a tile's words, of those above `none`; (255, 0) if there are
    none."""
    least = i32(255)
    greatest = i32(0)
    nothing = i32(none)
    for n in range(TILE):
        exponent = i32(i32(words[n] >> i32(23)) & i32(255))
        if exponent <= nothing:
            exponent = i32(0)
        greatest = max(greatest, exponent)
        if exponent == 0:
            exponent = i32(255)
        least = min(least, exponent)
    return int(least), int(greatest)


@helper
def move_words(word: Any, by: int) -> None:
    """Add `by` to the exponents of a tile's words, in place; a word whose exponent is 0, or is 0 or less afterwards,
    becomes +0."""
    increment = i32(by << 23)
    none = i32(max(-by, 0) << 23)
    for n in range(TILE):
        word[n] = zero_if(i32(word[n] & i32(INFINITY)) <= none, i32(word[n] + increment))


@helper
def cut_words(word: Any, moved: int) -> None:
    """Cut a tile's words, in place, to what Dst can hold, where exponents are `moved` higher than Dst's: words below
    the least normal number become +0, those above the largest an infinity (2.3 step 7)."""
    least = i32(max(moved + 1, 0) << 23)
    greatest = i32((INFINITE + min(moved, 0)) << 23)
    for n in range(TILE):
        size = min(i32(word[n] & i32(MAGNITUDE)), greatest)
        word[n] = zero_if(size < least, i32(i32(word[n] & i32(NEGATIVE_SIGN)) | size))


def prepare_srca(exponent: Any, parts: Any, words: Any, ends: Any, phases: int, lift: int) -> None:
    """Prepare a tile of SrcA words, int32[1024]. Write its exponents to `exponent`, int32[EXPONENTS]; to `parts`, as
    singles with `lift` added to their exponents, the first parts and, if a phase needs them, the second ones; and the
    least and greatest exponent field, as of `range_of`, to `ends`, int32[2]. Bit p of `phases` is set where phase p
    runs."""
    _write_exponents(exponent, ends, words[:TILE].reshape(2, 2, -1), 0)
    faces = exponent[HALVES:EXPONENTS].view(np.uint8).reshape(GROUP, -1, 2, 2)
    faces[...] = _exponent_bytes(words[:TILE].reshape(2, 2, GROUP, -1), ends).transpose(2, 3, 0, 1) ^ np.uint8(0x80)
    lifted = _lift_words(words, lift)
    first = (lifted & i32(SRCA_FIRST)).view(np.float32)
    parts[:TILE] = first
    if phases & 0b1010:  # phases 0 and 2 share a part, 1 and 3 the other
        with np.errstate(all="ignore"):  # infinities, which `matmul_by_singles` does not use
            parts[TILE : 2 * TILE] = ((lifted & i32(SRCA_BOTH)).view(np.float32) - first) * np.float32(1 << 5)


def prepare_srcb(exponent: Any, parts: Any, words: Any, ends: Any, phases: int, lift: int, plus: int) -> None:
    """Prepare a tile of SrcB words as `prepare_srca` does for SrcA; parts get a bit more, so that no ties occur
    (`MORE`). `plus` is added to the exponents as counted in COUNTS, but not to the bytes."""
    _write_exponents(exponent, ends, words[:TILE].reshape(-1, 2, GROUP), plus)
    faces = exponent[HALVES:EXPONENTS].view(np.uint8).reshape(-1, GROUP, 2, 2)
    faces[...] = _exponent_bytes(words[:TILE].reshape(-1, 2, 2, GROUP), ends).transpose(0, 3, 1, 2)
    lifted = _lift_words(words, lift)
    first = lifted & i32(SRCB_FIRST)
    parts[:TILE] = np.where(lifted == 0, i32(0), first | i32(MORE)).view(np.float32)
    if phases & 0b1100:
        with np.errstate(all="ignore"):
            second = (lifted.view(np.float32) - first.view(np.float32)) * np.float32(1 << 7)
            parts[TILE : 2 * TILE] = second + (lifted & i32(POWER)).view(np.float32) * MORE_OF_POWER


def _write_exponents(exponent: Any, ends: Any, words: Any, plus: int) -> None:
    """Write the first HALVES words of `Exponents`, with `plus` added to each, and the least and greatest exponent field
    to `ends`. `words` [n, group, m] are those of a tile, viewed so that both groups of an inner face stand side by
    side."""
    field = words >> 23 & 255
    ends[0] = np.where(field == 0, 255, field).min()
    ends[1] = field.max()
    value = np.where(field == 0, NO_EXPONENT, COUNTS * field + plus)
    exponent[:HALVES] = (value[:, 1] << 16 | value[:, 0] & 0xFFFF).reshape(-1)


def _exponent_bytes(words: Any, ends: Any) -> NDArray[np.uint8]:
    """Return exponents as the bytes of `Exponents`: SPAN + 1 for the least one, ends[0], and 0 for zeros."""
    field = words >> 23 & 255
    return np.where(field == 0, 0, field - ends[0] + SPAN + 1).astype(np.uint8)


def _lift_words(words: Any, lift: int) -> Any:
    """Return a tile's words with `lift` added to their exponents, 0 where the exponent is 0."""
    word = words[:TILE]
    return np.where(word & i32(INFINITY), word + i32(lift << 23), i32(0))
