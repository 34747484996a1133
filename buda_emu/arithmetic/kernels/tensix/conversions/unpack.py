"""Unpacking tiles (`buda_emu.arithmetic.tensix.conversions.unpack`). Items of each kernel: the tiles.

out: uint32[n, 1024] words; codes: [n, 1024] in the type that holds one datum.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.thread_team import claimed
from buda_emu.arithmetic.kernels.tensix.conversions.blocks import spread_groups
from buda_emu.arithmetic.kernels.tensix.words import TILE, Tiles, i32
from buda_emu.spec.single import INFINITY, NEGATIVE_SIGN

TO_TF32: Final = 0
TO_BF16: Final = 1
TO_FP16: Final = 2


@kernel
def unpack_singles(start: int, stop: int, out: Tiles, codes: Tiles, to: int) -> None:
    """Unpack Float32 to TO_TF32, TO_BF16 or TO_FP16."""
    for index in range(start, stop):
        words = out[index].view(np.int32)
        x = codes[index].view(np.int32)
        if to == TO_TF32:
            for n in range(TILE):
                words[n] = i32(x[n] & i32(-0x2000))
        elif to == TO_BF16:
            for n in range(TILE):
                zero = i32(x[n] & i32(INFINITY)) == 0
                words[n] = i32(x[n] & (i32(NEGATIVE_SIGN) if zero else i32(-0x10000)))
        else:
            for n in range(TILE):
                exponent = i32(i32(i32(x[n] >> i32(23)) & i32(255)) - i32(112))
                word = i32(i32(exponent << i32(23)) | i32(x[n] & i32(0x007FE000)))
                word = i32(0) if exponent < 0 else word
                word = i32(31 << 23 | 0x3FF << 13) if exponent > 31 else word
                words[n] = i32(word | i32(x[n] & i32(NEGATIVE_SIGN)))


@kernel
def unpack_halves(start: int, stop: int, out: Tiles, codes: NDArray[np.uint16], exponent_bits: int) -> None:
    """Unpack Float16_b (8 bits of exponent) or Float16 (5)."""
    for index in range(start, stop):
        words = out[index].view(np.int32)
        x = codes[index]
        if exponent_bits == 8:
            for n in range(TILE):
                words[n] = i32(i32(x[n]) << i32(16))
        else:
            for n in range(TILE):
                code = i32(x[n])
                words[n] = i32(i32(i32(code & i32(0x8000)) << i32(16)) | i32(i32(code & i32(0x7FFF)) << i32(13)))


@kernel
def unpack_bytes(start: int, stop: int, out: Tiles, codes: NDArray[np.uint8], table: Tiles) -> None:
    """Unpack any format of 8 bits without shared exponents; `table` holds the word of each byte."""
    for index in range(start, stop):
        words = out[index]
        x = codes[index]
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
    """Unpack block formats of `bits` bits for a datum; exponents: uint8[n, 64], those of the 16 datums of a face
    row."""
    for index in range(start, stop):
        spread_groups(out[index].view(np.int32), codes[index], exponents[index], 8 - bits, exponent_bits)


@kernel
def unpack_blocks_to_halves(
    start: int, stop: int, out: NDArray[np.uint16], codes: NDArray[np.uint8], exponents: NDArray[np.uint8], bits: int
) -> None:
    """Unpack block formats with exponents of 8 bits to Float16_b: the upper halves of the words, whose lower ones are
    empty. out: uint16[n, 1024]."""
    for index in claimed(start, stop):
        spread_groups(out[index].view(np.int16), codes[index], exponents[index], 8 - bits, 8)
