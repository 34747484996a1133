"""ELWADD and ELWMUL onto a cleared Dst in single precision, as vector code; `eltwise` computes whatever there is.

A Src word is a single, and so are the parts of its significand that a phase multiplies: both have their value. Products
of parts are exact, and what the chip rounds is rounded by adding 1.5 * 2^23 units, as in `group_sums`. Operands of
family A get the exponents of singles first (`lift`). That holds while exponents keep away from the ends of their range:
tiles in which they do not are left out.

Called from Python the functions compute the same in numpy, and so define the code (`intrinsics/eltwise_by_singles.py`).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tensix.products.prepared import align_to_cache_line
from buda_emu.arithmetic.kernels.tensix.words import BF16, FP16, FP32, TILE, Lanes, Setting, Tiles, i32, store_words
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

LANES: Final = 16
"""Of the widest vectors: `special`, int32[LANES], tells lanes with numbers too large or too small."""
LIFT: Final = 112
"""What is added to exponents of 5 bits."""
LEAST: Final = 12 << 23
"""The least exponent of the larger operand of a sum: 10 below it is still a normal single."""
MOST: Final = 250 << 23
LEAST_PRODUCT: Final = (127 + 12 + 22) << 23  # exponents of a pair of factors, so that those of the last phase are 22
MOST_PRODUCT: Final = (127 + 200) << 23  # would not fit: exponents are halved before they are added
SRC_BITS: Final = -0x2000
MAGIC: Final = 1.5 * 2.0**23
UPWARD: Final = 0.5 + 2.0**-14  # half a unit, and what the chip's first rounding adds (`accumulate`)
FRACTION_BITS: Final = 10
INVERSE: Final = (2 * 127 + FRACTION_BITS) << 23
AWAY: Final = 1 << 10
FP16_MOST: Final = (LIFT + 31) << 23 | 0x3FF << 13
SRCA_CUTS: Final = (-0x80000, -0x4000)  # masks of the first part of a word, and of both parts together
SRCB_CUTS: Final = (-0x20000, -0x2000)
ROUNDING: Final = {BF16: (0x8000, -0x10000), FP16: (0x1000, -0x2000), FP32: (0, -1)}


@kernel
def add_by_singles(
    start: int,
    stop: int,
    dst: Tiles,
    srca: Tiles,
    srcb: Tiles,
    subtract: bool,
    setting: Setting,
    left_out: NDArray[np.bool_],
) -> None:
    """Compute dst = srca + srcb, or the difference. Items: the tiles. Arguments as for `elementwise.elwadd_tiles`.

    left_out: bool[n], True on return for a tile that is not done.
    """
    mode = setting.mode
    word = align_to_cache_line(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = LIFT << 23 if setting.exponent_bits == 5 else 0
    for index in range(start, stop):
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        add_words(word, a, b, 1 << 31 if subtract else 0, lift, mode, special)
        left_out[index] = _put(dst[index].view(np.int32), word, special, mode)


@kernel
def multiply_by_singles(
    start: int,
    stop: int,
    dst: Tiles,
    srca: Tiles,
    srcb: Tiles,
    phases: int,
    setting: Setting,
    left_out: NDArray[np.bool_],
) -> None:
    """Compute dst = srca * srcb. Items: the tiles. Arguments as for `elementwise.elwmul_tiles` and `add_by_singles`."""
    mode = setting.mode
    word = align_to_cache_line(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = LIFT << 23 if setting.exponent_bits == 5 else 0
    for index in range(start, stop):
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        for n in range(TILE):
            word[n] = i32(0)
        for phase in range(4):
            if phases >> phase & 1:
                if mode == FP32:
                    multiply_exactly(word, a, b, phase, lift, special)
                else:
                    multiply_words(word, a, b, phase, lift, mode, special)
        left_out[index] = _put(dst[index].view(np.int32), word, special, mode)


@helper
def _put(image: Lanes, word: Lanes, special: Lanes, mode: int) -> bool:
    """Write the image of lifted words, unless a lane is special. Clear `special`, and return whether one was."""
    any_special = i32(0)
    for n in range(LANES):
        any_special = i32(any_special | special[n])
        special[n] = i32(0)
    if any_special != 0:
        return True
    if mode == FP16:
        for n in range(TILE):
            word[n] = i32(word[n] - i32(LIFT << 23)) if i32(word[n] & i32(INFINITY)) else i32(0)
    store_words(image, word, mode)
    return False


def add_words(word: Any, a: Any, b: Any, flip: int, lift: int, mode: int, special: Any) -> None:
    """Compute word = a + (b ^ flip), int32[1024] each; the result is lifted. `special` is set where the result is not
    right.

    Both are rounded to units of 2^-10 of the larger one's exponent, halves away from zero, which loses nothing of the
    larger one (2.5); then their sum is rounded to the precision of Dst.
    """
    half, mask = ROUNDING[mode]
    with np.errstate(all="ignore"):
        first = _lift(a, lift)
        second = _lift(b ^ np.array(flip, np.uint32).view(np.int32), lift)
        top = np.maximum(first & i32(INFINITY), second & i32(INFINITY))
        unit = np.maximum(top, i32(LEAST))
        inverse = np.asarray(_difference(INVERSE | AWAY, unit)).view(np.float32)
        magic = np.float32(MAGIC)
        counts = [fma_f32(x.view(np.float32), inverse, magic) - magic for x in (first, second)]
        bits = (np.asarray(counts[0] + counts[1]).view(np.int32) + i32(half)) & i32(mask)
        result = bits.view(np.float32) * (unit - i32(FRACTION_BITS << 23)).view(np.float32)
        word[:] = _ends(result.view(np.int32), mode)
    special[0] |= bool(((top != 0) & (top < LEAST) | (top > MOST)).any())


def multiply_words(word: Any, a: Any, b: Any, phase: int, lift: int, mode: int, special: Any) -> None:
    """Compute word += a * b in one phase, int32[1024] each, in a 16-bit Dst; word is lifted. `special` as for
    `add_words`."""
    half, mask = ROUNDING[mode]
    with np.errstate(all="ignore"):
        first, second, pair = _factors(a, b, lift, special)
        shift = 5 * (phase & 1) + 7 * (phase >> 1)
        exponent = np.where(pair == 0, i32(0), (pair << 1) - i32((127 + shift) << 23))
        product = _part_of_factor(first, SRCA_CUTS, phase & 1) * _part_of_factor(second, SRCB_CUTS, phase >> 1)
        if mode == FP16:  # an exponent of zero or less is none
            product = np.where(exponent > i32(LIFT << 23), product, np.float32(0))
        common = np.maximum(np.maximum(exponent, word & i32(INFINITY)), i32(LEAST))
        scale = np.asarray(_difference(INVERSE, common)).view(np.float32)
        away = np.asarray(_difference(INVERSE | AWAY, common)).view(np.float32)
        total = fma_f32(word.view(np.float32), away, np.float32(MAGIC))
        total = total + np.floor(fma_f32(product, scale, np.float32(UPWARD)))
        bits = (np.asarray(total - np.float32(MAGIC)).view(np.int32) + i32(half)) & i32(mask)
        result = bits.view(np.float32) * (common - i32(FRACTION_BITS << 23)).view(np.float32)
        word[:] = _ends(result.view(np.int32), mode)


def multiply_exactly(word: Any, a: Any, b: Any, phase: int, lift: int, special: Any) -> None:
    """Compute word += a * b in one phase in a 32-bit Dst, which holds the sum of all four products exactly: it has 22
    bits."""
    with np.errstate(all="ignore"):
        first, second, _ = _factors(a, b, lift, special)
        part = _part_of_factor(first, SRCA_CUTS, phase & 1), _part_of_factor(second, SRCB_CUTS, phase >> 1)
        word[:] = fma_f32(*part, word.view(np.float32)).view(np.int32)


def _lift(x: Any, lift: int) -> NDArray[np.int32]:
    """Return the 19 bits of Src words with `lift` added, 0 where the exponent is 0."""
    return np.where(x & i32(INFINITY) == 0, i32(0), (x & i32(SRC_BITS)) + i32(lift))


def _difference(constant: int, exponent: Any) -> Any:
    """Return a constant less exponents, as unsigned words."""
    return np.array(constant, np.uint32) - exponent.view(np.uint32)


def _part_of_factor(x: Any, cuts: tuple[int, int], second: int) -> Any:
    """Return as singles the part of lifted words that one phase multiplies: that of the upper bits of their
    significands, or, with `second`, of the lower ones. `cuts` are the masks for the upper bits and for both
    together."""
    first = (x & i32(cuts[0])).view(np.float32)
    return (x & i32(cuts[1])).view(np.float32) - first if second else first


def _factors(a: Any, b: Any, lift: int, special: Any) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return both factors, lifted, and half the sum of their exponents, 0 where one is a zero. `special` is set where
    an exponent or the sum is out of range."""
    first = _lift(a, lift)
    second = _lift(b, lift)
    exponents = (first & i32(INFINITY)) >> 1, (second & i32(INFINITY)) >> 1
    pair = np.where((exponents[0] == 0) | (exponents[1] == 0), i32(0), exponents[0] + exponents[1])
    weak = (pair != 0) & (pair < LEAST_PRODUCT >> 1) | (pair > MOST_PRODUCT >> 1)
    weak |= (pair != 0) & (np.minimum(*exponents) < LEAST >> 1) | (np.maximum(*exponents) > MOST >> 1)
    special[0] |= bool(weak.any())
    return first, second, pair


def _ends(bits: Any, mode: int) -> Any:
    """Return lifted numbers with those clamped or cleared that are too large or too small for an fp16 Dst."""
    if mode != FP16:
        return bits
    size = bits & i32(MAGNITUDE)
    size = np.where(size >= i32((LIFT + 32) << 23), i32(FP16_MOST), size)
    return np.where(size < i32((LIFT + 1) << 23), i32(0), size | (bits & i32(NEGATIVE_SIGN)))
