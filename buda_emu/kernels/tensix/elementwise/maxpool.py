"""Maximum reductions of tiles by max pool (`buda_emu.tensix.elementwise.maxpool`)."""

from typing import Final

import numpy as np

from buda_emu.jit.kernel import helper, kernel
from buda_emu.kernels.tensix.elementwise.moves import copied
from buda_emu.kernels.tensix.products.product import Source
from buda_emu.kernels.tensix.words import EDGE, FP32, TILE, Setting, Tensor, fetch_words, i32, load_word, store_word

LOWEST: Final = -(1 << 31)
"""The place of a cleared Dst in the order."""


@kernel
def reduce_max_tiles(
    start: int, stop: int, dst: Tensor, operand: Source, kept: np.uint32, setting: Setting, accumulate: bool
) -> None:
    """Each tile of dst = the maxima over as many tiles of the operand, in row 0, or of a transposed one in column 0.

    dst: uint32[w, m, 1024], Dst images of the setting's mode, zero elsewhere. The operand's places: int32[m * n], the n
    source tiles of each tile of dst. Of the words the comparison sees the bits `kept`. `accumulate`: begins with the
    line that dst holds. Items: the tiles of dst.
    """
    source, index, pad, along_rows = operand
    mode, exponent_bits, _ = setting
    m = dst.shape[1]
    count = index.size // m
    tile = np.empty(TILE, np.int32)
    largest = np.empty(EDGE, np.int32)
    rebias = i32(112 << 23) if mode == FP32 and exponent_bits == 5 else i32(0)
    stride = EDGE if along_rows else 1
    for item in range(start, stop):
        entry = item // m
        at = item - entry * m
        image = dst[entry, at].view(np.int32)
        for j in range(EDGE):
            largest[j] = i32(LOWEST)
            if accumulate:
                word = load_word(image[j * stride], mode)
                largest[j] = _ordered(i32(word & i32(-0x2000)) if mode == FP32 else word)
        for n in range(at * count, (at + 1) * count):
            fetch_words(tile, source, entry, index[n], pad, along_rows)
            for i in range(EDGE):
                for j in range(EDGE):
                    word = i32(tile[i * EDGE + j] & i32(kept))
                    word = i32(0) if i32(word & i32(0x7F800000)) == 0 else i32(word + rebias)
                    largest[j] = max(largest[j], _ordered(word))
        for j in range(TILE):
            image[j] = i32(0)
        for j in range(EDGE):
            word = _ordered(largest[j])
            if along_rows:  # through SrcB and the adder, which has moved the exponents of family A already
                word = copied(word, i32(0), mode)
            image[j * stride] = store_word(word, mode)


@helper
def _ordered(word: np.int32) -> np.int32:
    """A word of sign and magnitude as an integer in the same order, and back."""
    return i32(word ^ i32(i32(word >> i32(31)) & i32(0x7FFFFFFF)))
