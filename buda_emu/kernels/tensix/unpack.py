"""Unpacking tiles (`buda_emu.tensix.unpack`). Items of each kernel: the tiles.

out: uint32[n, 1024] words; codes: [n, 1024] in the type that holds one datum.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.tensix.words import TILE, Lanes, Tiles, i32

TO_TF32: Final = 0
TO_BF16: Final = 1
TO_FP16: Final = 2


@kernel
def unpack_singles(start: int, stop: int, out: Tiles, codes: Tiles, to: int) -> None:
    """Float32 to TO_TF32, TO_BF16 or TO_FP16."""
    for item in range(start, stop):
        words, x = out[item].view(np.int32), codes[item].view(np.int32)
        if to == TO_TF32:
            for n in range(TILE):
                words[n] = i32(x[n] & i32(-0x2000))
        elif to == TO_BF16:
            for n in range(TILE):
                zero = i32(x[n] & i32(0x7F800000)) == 0
                words[n] = i32(x[n] & (i32(-0x80000000) if zero else i32(-0x10000)))
        else:
            for n in range(TILE):
                exponent = i32(i32(i32(x[n] >> i32(23)) & i32(255)) - i32(112))
                word = i32(i32(exponent << i32(23)) | i32(x[n] & i32(0x007FE000)))
                word = i32(0) if exponent < 0 else word
                word = i32(31 << 23 | 0x3FF << 13) if exponent > 31 else word
                words[n] = i32(word | i32(x[n] & i32(-0x80000000)))


@kernel
def unpack_halves(start: int, stop: int, out: Tiles, codes: NDArray[np.uint16], exponent_bits: int) -> None:
    """Float16_b (8 bits of exponent) or Float16 (5)."""
    for item in range(start, stop):
        words, x = out[item].view(np.int32), codes[item]
        if exponent_bits == 8:
            for n in range(TILE):
                words[n] = i32(i32(x[n]) << i32(16))
        else:
            for n in range(TILE):
                code = i32(x[n])
                words[n] = i32(i32(i32(code & i32(0x8000)) << i32(16)) | i32(i32(code & i32(0x7FFF)) << i32(13)))


@kernel
def unpack_bytes(start: int, stop: int, out: Tiles, codes: NDArray[np.uint8], table: Tiles) -> None:
    """Any format of 8 bits without shared exponents; `table` is the word of each byte."""
    for item in range(start, stop):
        words, x = out[item], codes[item]
        for n in range(TILE):
            words[n] = table[x[n]]


@kernel
def unpack_blocks(
    start: int,
    stop: int,
    out: Tiles,
    codes: NDArray[np.uint8],
    exponents: NDArray[np.uint8],
    bits: int,
    exponent_bits: int,
) -> None:
    """Block formats of `bits` bits for a datum; exponents: uint8[n, 64], those of the 16 datums of a face row."""
    for item in range(start, stop):
        unpack_block_tile(out[item].view(np.int32), codes[item], exponents[item], i32(8 - bits), exponent_bits)


@helper
def unpack_block_tile(
    words: Lanes, codes: NDArray[np.uint8], shared: NDArray[np.uint8], align: np.int32, exponent_bits: int
) -> None:
    """The words of a tile of a block format; `align` shifts a code to fill 8 bits."""
    for group in range(TILE // 16):
        # The pattern of the magnitude as a single is normalised; in it 2^6 stands for the shared exponent.
        moved = i32(i32(shared[group]) - i32(127 + 6))
        for n in range(16 * group, 16 * group + 16):
            code = i32(i32(codes[n]) << align)
            magnitude = i32(code & i32(0x7F))
            pattern = np.float32(magnitude).view(np.int32)
            exponent = i32(i32(pattern >> i32(23)) + moved)
            if exponent_bits == 8:
                exponent, infinite = i32(exponent & i32(255)), i32(255 << 23)
            else:
                exponent, infinite = max(exponent, i32(0)), i32(31 << 23)
            word = i32(i32(exponent << i32(23)) | i32(pattern & i32(0x7FFFFF)))
            if magnitude == 0:
                word = infinite if code != 0 else i32(0)
            words[n] = i32(word | i32(i32(code >> i32(7)) << i32(31)))
