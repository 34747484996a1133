"""The unpacker: datums in L1 become register words (DEVICE_NUMERICS 1).

`spread_groups` is the definition of the vector code that kernels call by its name (`intrinsics/conversions.py`).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.tensix.pack import GROUP
from buda_emu.arithmetic.kernels.tensix.words import TILE, Tiles, i32
from buda_emu.spec.single import INFINITY, NEGATIVE_SIGN

SHARED_ONE: Final = 127 + 6  # exponent field of the single 2^6, which stands for the shared exponent


def spread_groups(words: Any, codes: Any, exponents: Any, align: int, exponent_bits: int) -> None:
    """Write a tile of block codes, uint8[1024], and shared exponents, uint8[64], to `words`: int32[1024], or their
    upper halves int16[1024]. `align` shifts a code left to fill 8 bits.

    Words have `exponent_bits` 8 or 5, halves 8. Normalising makes exponents smaller: those of 8 bits wrap around, those
    of 5 bits stop at 0. A code of the sign alone becomes minus infinity (1.2).
    """
    code = codes.astype(np.int32).reshape(-1, GROUP) << align
    magnitude = code & 127
    pattern = magnitude.astype(np.float32).view(np.int32)
    # The pattern of the magnitude as a single is normalised; in it 2^6 stands for the shared exponent.
    exponent = (pattern >> 23) + exponents.astype(np.int32)[:, None] - SHARED_ONE
    exponent = exponent & 255 if exponent_bits == 8 else np.maximum(exponent, 0)
    infinite = (255 if exponent_bits == 8 else 31) << 23
    word = np.where(magnitude == 0, np.where(code == 0, 0, infinite), exponent << 23 | pattern & 0x7FFFFF)
    word = (word.astype(np.int32) | (code >> 7) << 31).reshape(-1)
    words[:] = word if words.itemsize == 4 else word >> 16


# What Float32 is unpacked to (DEVICE_NUMERICS 1.2); only that the codes differ counts.
TO_TF32: Final = 0
TO_BF16: Final = 1
TO_FP16: Final = 2


@kernel
def unpack_singles(start: int, stop: int, out: Tiles, codes: Tiles, to: int) -> None:
    """Write to `out` tiles start to stop - 1 of Float32 `codes` as register words, all truncated: `to` is TO_TF32,
    TO_BF16 (denormals become signed zeros) or TO_FP16 (signed zeros below its range, 0x7fff above) (1.2)."""
    for index in range(start, stop):
        words = out[index].view(np.int32)
        x = codes[index].view(np.int32)
        if to == TO_TF32:
            for n in range(TILE):
                words[n] = i32(x[n] & i32(-0x2000))
        elif to == TO_BF16:
            for n in range(TILE):
                zero = i32(x[n] & i32(INFINITY)) == 0
                mask = i32(-0x10000)
                if zero:
                    mask = i32(NEGATIVE_SIGN)
                words[n] = i32(x[n] & mask)
        else:
            for n in range(TILE):
                exponent = i32(i32(i32(x[n] >> i32(23)) & i32(255)) - i32(112))
                word = i32(i32(exponent << i32(23)) | i32(x[n] & i32(0x007FE000)))
                if exponent < 0:
                    word = i32(0)
                if exponent > 31:
                    word = i32(31 << 23 | 0x3FF << 13)
                words[n] = i32(word | i32(x[n] & i32(NEGATIVE_SIGN)))


@kernel
def unpack_halves(start: int, stop: int, out: Tiles, codes: NDArray[np.uint16], exponent_bits: int) -> None:
    """Write to `out` tiles start to stop - 1 of Float16_b (8 exponent bits) or Float16 (5) `codes` as register words:
    the bits of a datum move to their places, none changes."""
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
    """Write to `out` tiles start to stop - 1 of `codes` in an 8-bit format without shared exponents as register words;
    `table`, uint32[256], has the word of each byte."""
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
    """Write to `out` tiles start to stop - 1 of `codes`, uint8[n, 1024], of a block format with `bits` magnitude bits
    as register words; `exponents`, uint8[n, 64], are those that the 16 datums of a face row share."""
    for index in range(start, stop):
        spread_groups(out[index].view(np.int32), codes[index], exponents[index], 8 - bits, exponent_bits)


@kernel
def unpack_blocks_to_halves(
    start: int, stop: int, out: NDArray[np.uint16], codes: NDArray[np.uint8], exponents: NDArray[np.uint8], bits: int
) -> None:
    """Write to `out`, uint16[n, 1024], tiles start to stop - 1 of `codes` in a block format with exponents of 8 bits as
    Float16_b, the upper halves of the register words, whose lower halves are empty. Threads may share the tiles by
    `claim_items`."""
    for index in claim_items(start, stop):
        spread_groups(out[index].view(np.int16), codes[index], exponents[index], 8 - bits, 8)
