"""What a tile in Dst is after it went to intermed_df and back between two blocks of a product (DEVICE_NUMERICS 2.8):
packed, unpacked and copied, without leaving the cache. SPILLS names the conversion of Dst's words for each combination
of formats that is known.

The words are those of `matmul_by_singles`: no exponent is 0 but that of +0, and in 16 bits none is near 255. There a
zero of `group_sums.add_tile`, a word with an exponent of ABOVE or less, stays one: it is kept or becomes 0, beside
others 0.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tensix.pack import assemble_row
from buda_emu.arithmetic.kernels.tensix.products.prepared import range_of
from buda_emu.arithmetic.kernels.tensix.unpack import spread_groups
from buda_emu.arithmetic.kernels.tensix.words import BF16, FP16, FP32, TILE, Lanes, clip_infinity, i32, zero_if
from buda_emu.spec.single import HIDDEN, INFINITY, MAGNITUDE, NEGATIVE_SIGN

# What a spill does to a word; only that the kinds differ counts.
AS_IT_WAS: Final = 0
BLOCKS: Final = 1
TF32: Final = 2
SPILLS: Final[Mapping[tuple[int, str, str, str], int]] = MappingProxyType(
    {
        (BF16, "Float16_b", "Float16_b", "Float16_b"): AS_IT_WAS,
        (FP16, "Float16", "Float16", "Float16"): AS_IT_WAS,
        (BF16, "Bfp8_b", "Bfp8_b", "Bfp8_b"): BLOCKS,
        (FP32, "Float32", "Float32", "Tf32"): TF32,
    }
)
"""By what Dst holds, the packer's intermediate format, intermed_df, and its register format."""

GROUP: Final = 16  # datums under one exponent
HALF: Final = 0x10000  # of the last bit of the packer's source, which has 6 bits of fraction (4.2)
KEPT: Final = 0x7FFE0000  # the bits of a magnitude from the last one up
FRACTION_BITS: Final = 6  # of a magnitude of 7 bits, relative to the shared exponent
MOST: Final = 127.0  # the largest magnitude of 7 bits
INVERSE: Final = (2 * 127 + FRACTION_BITS) << 23
NEAREST_LEAST: Final = 20  # exponents with which `through_blocks` is left alone
NEAREST_MOST: Final = 220  # the upper bound of these exponents
LEAST: Final = 11 << 23  # below that of any word but a zero; a group of zeros has none


@helper
def spill_any(word: Lanes, kind: int) -> None:
    """Convert a tile's words in place as `spill_words` does, but for words with any exponents, as integer arithmetic
    leaves them."""
    if kind != BLOCKS:
        spill_words(word, kind)
        return
    least, greatest = range_of(word, 0)
    if least > NEAREST_LEAST and greatest < NEAREST_MOST:
        through_blocks(word.view(np.float32))
        return
    codes = np.empty(TILE, np.uint8)
    shared = np.empty(TILE // GROUP, np.uint8)
    for n in range(TILE):
        size = min(i32(word[n] & i32(MAGNITUDE)), i32(INFINITY))
        size = zero_if(size < i32(HIDDEN), i32(i32(size + i32(HALF)) & i32(KEPT)))
        word[n] = zero_if(size == 0, i32(i32(word[n] & i32(NEGATIVE_SIGN)) | size))
    assemble_row(word, 7, False, codes, shared)
    spread_groups(word, codes, shared, 0, 8)
    for n in range(TILE):
        word[n] = zero_if(i32(word[n] & i32(INFINITY)) == 0, word[n])


@helper
def spill_words(word: Lanes, kind: int) -> None:
    """Convert a tile's words in place as a spill does: `kind` is AS_IT_WAS (no change), BLOCKS (`through_blocks`) or
    TF32, which cuts the fraction to 10 bits, and makes exponent 0 a +0 and exponent 255 an infinity (2.7)."""
    if kind == BLOCKS:
        through_blocks(word.view(np.float32))
    elif kind == TF32:
        for n in range(TILE):
            exponent = i32(word[n] & i32(INFINITY))
            cut = clip_infinity(i32(word[n] & i32(-0x2000)))
            word[n] = zero_if(exponent == 0, cut)


def through_blocks(word: Any) -> None:
    """Convert words of a bf16 Dst, float32[1024], to Bfp8_b and back, in place: rounded to 6 bits of fraction, then in
    groups of 16 to magnitudes of 7 bits, at most 127, at the largest exponent of the group; both times halves away from
    zero (4.2, 4.5, 1.2)."""
    bits = word.view(np.int32)
    size = np.asarray((bits & i32(MAGNITUDE)) + i32(HALF)) & i32(KEPT)
    shared = np.maximum(size.reshape(-1, GROUP).max(axis=1) & i32(INFINITY), i32(LEAST)).repeat(GROUP)
    inverse = np.asarray(np.array(INVERSE, np.uint32) - shared.view(np.uint32)).view(np.float32)
    count = np.minimum(np.floor(fma_f32(size.view(np.float32), inverse, np.float32(0.5))), np.float32(MOST))
    value = np.asarray(count * (shared - i32(FRACTION_BITS << 23)).view(np.float32)).view(np.int32)
    bits[:] = np.where(count == 0, i32(0), value | (bits & i32(NEGATIVE_SIGN)))
