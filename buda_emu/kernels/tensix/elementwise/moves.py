"""Moves between Src registers and Dst over tiles (`buda_emu.tensix.elementwise.moves`)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.jit.kernel import helper, kernel
from buda_emu.kernels.tensix.words import FP32, TILE, Tiles, i32, load_word, store_word


@kernel
def copy_to_dst_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, mode: int, exponent_bits: int) -> None:
    """dst = srca as an op copies its operand, into fp32 by adding zero. Items: the tiles.

    dst: uint32[n, 1024], Dst images of `mode`; srca: uint32[n, 1024] words. `exponent_bits`: 5 for operands of family
    A, 8 for B.
    """
    rebias = i32(112 << 23) if mode == FP32 and exponent_bits == 5 else i32(0)
    for item in range(start, stop):
        image, words = dst[item].view(np.int32), srca[item].view(np.int32)
        for n in range(TILE):
            image[n] = store_word(copied(words[n], rebias, mode), mode)


@kernel
def move_to_src_tiles(start: int, stop: int, src: Tiles, dst: Tiles, mode: int, kept: np.uint32) -> None:
    """src = dst, of which an fp32 datum keeps the bits `kept`. Items: the tiles. Arrays as for `copy_to_dst_tiles`."""
    mask = i32(kept) if mode == FP32 else i32(-1)
    for item in range(start, stop):
        words, image = src[item].view(np.int32), dst[item].view(np.int32)
        for n in range(TILE):
            words[n] = i32(load_word(image[n], mode) & mask)


@kernel
def recode_halves(
    start: int, stop: int, out: NDArray[np.uint16], codes: NDArray[np.uint16], exponent: int, infinite: int
) -> None:
    """Datums of 16 bits unpacked, copied to a Dst of the same bits and packed: without an exponent (the bits of
    `exponent`) they are 0, with that of `infinite` they have no fraction. uint16[n, 1024] each; items: the tiles."""
    mask, most = np.uint16(exponent), np.uint16(infinite)
    for item in range(start, stop):
        target, source = out[item], codes[item]
        for n in range(TILE):
            x = source[n]
            field = np.uint16(x & mask)
            kept = np.uint16(x & np.uint16(np.uint16(0x8000) | mask)) if field == most else x
            target[n] = np.uint16(0) if field == 0 else kept


@helper
def copied(word: np.int32, rebias: np.int32, mode: int) -> np.int32:
    """The word that a copy leaves of one; `rebias` is added to the exponent in place."""
    word = i32(word & i32(-0x2000))
    exponent = i32(word & i32(0x7F800000))
    if mode == FP32:
        word = i32(word & i32(-0x800000)) if exponent == 0x7F800000 else word
    return i32(0) if exponent == 0 else i32(word + rebias)
