"""Operands of the multipliers taken apart for a fidelity phase (`buda_emu.arithmetic.tensix.products`)."""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.tensix.products.accumulate import ZERO_EXPONENT
from buda_emu.arithmetic.kernels.tensix.words import TILE, Lanes, i32
from buda_emu.spec.single import INFINITY

PHASES: Final = 4


@helper
def phase_and_face(step: int, faces: int, faces_first: bool) -> tuple[int, int]:
    """Return phase and face of step 0 to PHASES * faces - 1 of a tile's product; `faces_first`: the phases run inside a
    face."""
    if faces_first:
        return step % PHASES, step // PHASES
    return step // faces, step % faces


@helper
def exponent_of(word: np.int32) -> np.int32:
    """Return the exponent field of a Src word, that of a zero far below."""
    exponent = i32(i32(word >> i32(23)) & i32(255))
    return i32(ZERO_EXPONENT) if exponent == 0 else exponent


@helper
def srca_part(word: np.int32, phase: int) -> np.int32:
    """Return the 5 bits of the significand that a phase multiplies in SrcA, with the word's sign; 0 of a zero."""
    m = i32(i32(i32(word >> i32(13)) & i32(0x3FF)) | i32(0x400))
    part = i32(i32(m >> i32(1)) & i32(31)) if phase & 1 else i32(m >> i32(6))
    return _with_sign(part, word)


@helper
def srcb_part(word: np.int32, phase: int) -> np.int32:
    """Return the 7 bits of the significand that a phase multiplies in SrcB, with the word's sign; 0 of a zero."""
    m = i32(i32(i32(word >> i32(13)) & i32(0x3FF)) | i32(0x400))
    part = i32(i32(m & i32(15)) << i32(3)) if phase & 2 else i32(m >> i32(4))
    return _with_sign(part, word)


@helper
def _with_sign(part: np.int32, word: np.int32) -> np.int32:
    """Return a part with the sign of its word, 0 where the word is a zero."""
    part = i32(0) if i32(word & i32(INFINITY)) == 0 else part
    sign = i32(word >> i32(31))
    return i32(i32(part ^ sign) - sign)


@helper
def exponents(out: Lanes, words: Lanes) -> None:
    """Write the exponents of a tile's words."""
    for n in range(TILE):
        out[n] = exponent_of(words[n])


@helper
def srca_parts(out: Lanes, words: Lanes, phase: int) -> None:
    """Write the parts of a tile in SrcA that a phase multiplies."""
    for n in range(TILE):
        out[n] = srca_part(words[n], phase)


@helper
def srcb_parts(out: Lanes, words: Lanes, phase: int) -> None:
    """Write the parts of a tile in SrcB that a phase multiplies."""
    for n in range(TILE):
        out[n] = srcb_part(words[n], phase)
