"""Block formats as the packer assembles them (DEVICE_NUMERICS 4.5) and the unpacker spreads them; the definitions are
`buda_emu.arithmetic.tensix.conversions.pack` and `buda_emu.arithmetic.tensix.conversions.unpack`.

In a kernel it is vector code (`intrinsics/blocks.py`). Called from Python it is the same in numpy.
"""

from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper

GROUP: Final = 16
FRACTION: Final = 127
LEADING: Final = 128
MOST: Final = 127
FARTHEST: Final = 8  # 255 + 256, shifted by 9: nothing is left
SHARED_ONE: Final = 127 + 6  # exponent of the single that is the magnitude, where the shared one would be 0


@helper
def assemble_row(row: Any, bits: Any, narrow: Any, codes: Any, exponents: Any) -> None:
    """Convert a tile of 1024 words, bf16 or fp16 in the upper half, to codes of `bits` magnitude bits and shared
    exponents."""
    down, greatest = block_position(narrow)
    assemble_groups(row.view(np.int32), down, greatest, 7 - bits, codes, exponents)


@helper
def block_position(narrow: Any) -> Any:
    """Return the bit where 7 bits of fraction begin in fp16 or bf16 in the upper half of a word, and the largest
    exponent."""
    return (19, 31) if narrow else (16, 255)


def assemble_groups(row: Any, down: int, greatest: int, cut: int, codes: Any, exponents: Any) -> None:
    """Assemble blocks from int32[1024], whose exponents begin 7 above bit `down` and are at most `greatest`; `cut` low
    bits of a magnitude of 7 are left out. codes: uint8[1024]; exponents: uint8[64]."""
    x = row.reshape(-1, GROUP)
    exponent = x >> (down + 7) & greatest
    significand = np.where(exponent == 0, 0, LEADING) | x >> down & FRACTION
    shared = exponent.max(axis=1)
    distance = np.minimum(shared[:, None] - exponent, FARTHEST)
    size = np.minimum((significand + (1 << distance)) >> (distance + 1), MOST) >> cut
    codes[:] = np.where(size == 0, 0, size | (x < 0) << (7 - cut)).reshape(-1)
    exponents[:] = shared


def spread_groups(words: Any, codes: Any, exponents: Any, align: int, exponent_bits: int) -> None:
    """Write the words int32[1024] of uint8[1024] codes of a block format, or their upper halves int16[1024], with the
    exponents uint8[64] that 16 of them share. `align` shifts a code to fill 8 bits.

    Words have `exponent_bits` 8 or 5; a code of the sign alone is an infinity. Halves are for 8.
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
