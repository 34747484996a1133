"""ELWMUL, ELWADD, ELWSUB, max pool, and moves between Src registers and Dst, over tiles
(`buda_emu.arithmetic.tensix.elementwise`).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.primitives import shift_left, shift_right
from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tensix.products.accumulate import (
    RegisterOperand,
    accumulate_narrow,
    accumulate_wide,
    exponent_bias,
    src_exponent,
    srca_part,
    srcb_part,
)
from buda_emu.arithmetic.kernels.tensix.products.prepared import align_to_cache_line
from buda_emu.arithmetic.kernels.tensix.words import (
    EDGE,
    FP16,
    FP32,
    ROUNDING,
    TILE,
    Lanes,
    Setting,
    Tensor,
    Tiles,
    clear_words,
    clip_infinity,
    fetch_words,
    i32,
    load_word,
    load_words,
    store_word,
    store_words,
    zero_if,
)
from buda_emu.spec.single import HIDDEN, INFINITY, MAGNITUDE, NEGATIVE_SIGN

SRC_BITS: Final = -0x2000  # the 19 bits of a word that SrcA and SrcB hold
LIFT: Final = 112
"""What is added to exponents of 5 bits, whose bias is 15, to make them those of a single, whose bias is 127."""


@kernel
def elwmul_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, phases: int, setting: Setting) -> None:
    """Add srca * srcb, element by element, to tiles start to stop - 1 of dst, one accumulation for each phase
    (DEVICE_NUMERICS 2.4).

    dst: uint32[n, 1024], Dst images of the setting's mode; srca and srcb: uint32[n, 1024] Src words. Bit p of `phases`
    is set where fidelity phase p runs.
    """
    mode, exponent_bits, blackhole = setting
    word = np.empty(TILE, np.int32)
    x = np.empty(TILE, np.int32)
    v = np.empty(TILE, np.int32)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        load_words(word, image, mode)
        for phase in range(4):
            if phases >> phase & 1:
                _multiply_by_phase(x, v, a, b, phase, exponent_bias(mode, exponent_bits, phase))
                _accumulate_terms(word, x, v, mode, blackhole)
        store_words(image, word, mode)


@kernel
def elwadd_tiles(
    start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, subtract: bool, accumulate: bool, setting: Setting
) -> None:
    """Write srca + srcb, or srca - srcb with `subtract`, to tiles start to stop - 1 of dst; with `accumulate` it is
    added to the old dst (DEVICE_NUMERICS 2.5). Arrays as for `elwmul_tiles`."""
    mode, exponent_bits, blackhole = setting
    word = np.zeros(TILE, np.int32)
    x = np.empty(TILE, np.int32)
    v = np.empty(TILE, np.int32)
    flip = i32(0)
    if subtract:
        flip = i32(NEGATIVE_SIGN)
    wide_half = mode == FP32 and exponent_bits == 5
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        if accumulate:
            load_words(word, image, mode)
        else:
            clear_words(word)
        _align_and_add(x, v, a, b, flip, wide_half)
        _accumulate_terms(word, x, v, mode, blackhole)
        store_words(image, word, mode)


@helper
def _accumulate_terms(word: Lanes, x: Lanes, v: Lanes, mode: int, blackhole: bool) -> None:
    """Add the integers v, in units of 2^-10 of 2^x, to the words of a tile of Dst, in place, as ACC does (2.3);
    int32[1024] each."""
    zero = i32(0)
    if mode == FP32:
        for n in range(TILE):
            word[n] = accumulate_wide(word[n], x[n], v[n], zero, zero, blackhole)
    else:
        for n in range(TILE):
            word[n] = accumulate_narrow(word[n], x[n], v[n], zero, zero, mode == FP16)


@helper
def _multiply_by_phase(x: Lanes, v: Lanes, a: Lanes, b: Lanes, phase: int, bias: np.int32) -> None:
    """Write the exponents `x` of the products of Src words a and b in one phase, with `bias` added, and their signed
    values `v`; 0 where the exponent is 0 or less, and v where an operand is a zero (2.4)."""
    for n in range(TILE):
        # A product with a zero has the exponent of the bias alone.
        exponent = i32(max(i32(src_exponent(a[n]) + src_exponent(b[n])), i32(0)) + bias)
        product = i32(srca_part(a[n], phase) * srcb_part(b[n], phase))
        x[n] = max(exponent, i32(0))
        v[n] = zero_if(exponent <= 0, product)


@helper
def _align_and_add(x: Lanes, v: Lanes, a: Lanes, b: Lanes, flip: np.int32, wide_half: bool) -> None:
    """Write the exponents `x` of the sums of Src words a and b, and their signed values `v` (2.5). `flip`: bits that
    are XORed to b, those of the sign to subtract. `wide_half`: the operands are of family A and Dst is fp32, so that
    exponents get a bias of 8 bits."""
    for n in range(TILE):
        first = i32(a[n])
        second = i32(b[n] ^ flip)
        size0 = i32(first & i32(0x7FFFE000))
        size1 = i32(second & i32(0x7FFFE000))
        if size0 < HIDDEN:
            size0 = i32(0)
        if size1 < HIDDEN:
            size1 = i32(0)
        large = max(size0, size1)
        small = min(size0, size1)
        exponent = i32(large >> i32(23))
        distance = min(i32(exponent - i32(small >> i32(23))), i32(12))
        # Eleven bits each, or zero.
        high = zero_if(large == 0, i32(i32(i32(large >> i32(13)) & i32(0x3FF)) | i32(0x400)))
        low = zero_if(small == 0, i32(i32(i32(small >> i32(13)) & i32(0x3FF)) | i32(0x400)))
        low = shift_right(i32(low + i32(shift_left(i32(1), distance) >> i32(1))), distance)
        # A zero has no sign.
        sign0 = zero_if(size0 == 0, i32(first >> i32(31)))
        sign1 = zero_if(size1 == 0, i32(second >> i32(31)))
        sign = sign1
        if size0 >= size1:
            sign = sign0
        total = i32(high - low)
        if sign0 == sign1:
            total = i32(high + low)
        if wide_half:
            exponent = i32(exponent + i32(LIFT))
            if large == 0:
                exponent = i32(97)
        x[n] = exponent
        v[n] = i32(i32(total ^ sign) - sign)


@helper
def _rebias_of(mode: int, exponent_bits: int) -> np.int32:
    """Return what is added to a word with an exponent of family A, of 5 bits, to give it the bias of fp32, where Dst is
    one; 0 otherwise."""
    if mode == FP32 and exponent_bits == 5:
        return i32(LIFT << 23)
    return i32(0)


@kernel
def copy_to_dst_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, mode: int, exponent_bits: int) -> None:
    """Copy tiles start to stop - 1 of `srca` to `dst`, as an op copies its operand (DEVICE_NUMERICS 2.7): into a 16-bit
    Dst by a move, into fp32 by adding zero, which makes an infinity of exponent 255 and gives exponents of family A the
    bias of fp32. Exponent 0 becomes +0 in both.

    dst: uint32[n, 1024], Dst images of `mode`; srca: uint32[n, 1024] Src words. `exponent_bits`: 5 for operands of
    family A, 8 for B.
    """
    rebias = _rebias_of(mode, exponent_bits)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        words = srca[index].view(np.int32)
        for n in range(TILE):
            image[n] = store_word(copy_word(words[n], rebias, mode), mode)


@kernel
def move_to_src_tiles(start: int, stop: int, src: Tiles, dst: Tiles, mode: int, bit_mask: np.uint32) -> None:
    """Move tiles start to stop - 1 of Dst to Src words, `src`, so that a result becomes an operand; of an fp32 datum
    the bits `bit_mask` stay (DEVICE_NUMERICS 2.7). Arrays as for `copy_to_dst_tiles`."""
    mask = i32(-1)
    if mode == FP32:
        mask = i32(bit_mask)
    for index in range(start, stop):
        words = src[index].view(np.int32)
        image = dst[index].view(np.int32)
        for n in range(TILE):
            words[n] = i32(load_word(image[n], mode) & mask)


@kernel
def recode_halves(
    start: int, stop: int, out: NDArray[np.uint16], codes: NDArray[np.uint16], exponent: int, infinite: int
) -> None:
    """Write to `out` what tiles start to stop - 1 of 16-bit floats, `codes`, become when they are unpacked, copied to a
    Dst of the same format and packed: datums without exponent become +0, those with the exponent `infinite` lose their
    fraction. `exponent` has the bits of the exponent field, `infinite` those of the exponent that means infinity;
    uint16[n, 1024] each."""
    mask = np.uint16(exponent)
    infinite_field = np.uint16(infinite)
    for index in range(start, stop):
        target = out[index]
        source = codes[index]
        for n in range(TILE):
            x = source[n]
            field = np.uint16(x & mask)
            if field == infinite_field:
                x = np.uint16(x & np.uint16(np.uint16(0x8000) | mask))
            if field == 0:
                x = np.uint16(0)
            target[n] = x


@helper
def copy_word(word: np.int32, rebias: np.int32, mode: int) -> np.int32:
    """Return the word of Dst after a Src word is copied to it (2.7); `rebias` is added to words with an exponent."""
    word = i32(word & i32(SRC_BITS))
    exponent = i32(word & i32(INFINITY))
    if mode == FP32:
        word = clip_infinity(word)
    return zero_if(exponent == 0, i32(word + rebias))


LOWEST: Final = -(1 << 31)
"""The place of a cleared Dst in the order."""


@kernel
def reduce_max_tiles(
    start: int,
    stop: int,
    dst: Tensor,
    operand: RegisterOperand,
    bit_mask: np.uint32,
    setting: Setting,
    accumulate: bool,
) -> None:
    """Write to tiles start to stop - 1 of dst, counted over all w, the maxima of the columns of source tiles, in row 0;
    or the maxima of rows, in column 0, where the operand is transposed (DEVICE_NUMERICS 2.6, 2.8). The rest of a tile
    becomes 0.

    dst: uint32[w, m, 1024], Dst images of the setting's mode. The operand's places, int32[m * n], are the n source
    tiles of each tile of dst. Words are compared by the bits `bit_mask`. `accumulate`: the row or column that dst holds
    takes part.
    """
    source, index, pad, along_rows = operand
    mode, exponent_bits, _ = setting
    m = dst.shape[1]
    count = index.size // m
    tile = np.empty(TILE, np.int32)
    largest = np.empty(EDGE, np.int32)
    rebias = _rebias_of(mode, exponent_bits)
    stride = 1
    if along_rows:
        stride = EDGE
    for result_index in range(start, stop):
        entry = result_index // m
        at = result_index - entry * m
        image = dst[entry, at].view(np.int32)
        for j in range(EDGE):
            largest[j] = i32(LOWEST)
            if accumulate:
                word = load_word(image[j * stride], mode)
                if mode == FP32:
                    word = i32(word & i32(SRC_BITS))
                largest[j] = _sort_key(word)
        for n in range(at * count, (at + 1) * count):
            fetch_words(tile, source, entry, index[n], pad, along_rows)
            for i in range(EDGE):
                for j in range(EDGE):
                    word = i32(tile[i * EDGE + j] & i32(bit_mask))
                    word = zero_if(i32(word & i32(INFINITY)) == 0, i32(word + rebias))
                    largest[j] = max(largest[j], _sort_key(word))
        for j in range(TILE):
            image[j] = i32(0)
        for j in range(EDGE):
            word = _sort_key(largest[j])
            if along_rows:  # through SrcB and the adder, which has moved the exponents of family A already
                word = copy_word(word, i32(0), mode)
            image[j * stride] = store_word(word, mode)


@helper
def _sort_key(word: np.int32) -> np.int32:
    """Return a word of sign and magnitude as an integer of the same order; applied to that integer, the word again."""
    return i32(word ^ i32(i32(word >> i32(31)) & i32(MAGNITUDE)))


LANES: Final = 16
"""Lanes of the widest vectors: `special`, int32[LANES], notes in which there were numbers too large or too small."""
LEAST: Final = 12 << 23
"""The least exponent at which sums are computed in singles: the unit, 10 below it, is still a normal one."""
MOST: Final = 250 << 23  # the largest one: the sum of two is no infinity
# The least and the greatest sum of the exponents of two factors. The products of the last phase are 12 below those of
# the first. In this place a sum does not fit a signed word of 32 bits, so exponents are halved before they are added.
LEAST_PRODUCT: Final = (127 + 12 + 22) << 23
MOST_PRODUCT: Final = (127 + 200) << 23
MAGIC: Final = 1.5 * 2.0**23  # adding it to a number below 2^22 rounds that to an integer
UPWARD: Final = 0.5 + 2.0**-14  # half a unit, and what the chip's first rounding adds (`accumulate`)
FRACTION_BITS: Final = 10  # a unit is 2^-10 of the largest exponent of both operands
INVERSE: Final = (2 * 127 + FRACTION_BITS) << 23
AWAY: Final = 1 << 10  # 2^-13 of 1, so that ties are rounded away from zero
FP16_MOST: Final = (LIFT + 31) << 23 | 0x3FF << 13
SRCA_CUTS: Final = (-0x80000, -0x4000)  # masks of the first part of a word, and of both parts together
SRCB_CUTS: Final = (-0x20000, -0x2000)  # the same of SrcB


@helper
def _lift_of(exponent_bits: int) -> int:
    """Return what is added to words with exponents of 5 bits to make singles of them; 0 for 8 bits, which are."""
    if exponent_bits == 5:
        return LIFT << 23
    return 0


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
    """Write srca + srcb, or srca - srcb with `subtract`, to tiles start to stop - 1 of dst in single-precision
    arithmetic, quicker than `elwadd_tiles` without accumulation, and to the same bits; arguments as there. left_out:
    bool[n], set to True for a tile with numbers too large or too small for that, whose dst is not written, else to
    False."""
    mode = setting.mode
    word = align_to_cache_line(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = _lift_of(setting.exponent_bits)
    flip = 0
    if subtract:
        flip = 1 << 31
    for index in range(start, stop):
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        add_words(word, a, b, flip, lift, mode, special)
        left_out[index] = _store_unless_special(dst[index].view(np.int32), word, special, mode)


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
    """Write srca * srcb to tiles start to stop - 1 of dst in single-precision arithmetic, quicker than `elwmul_tiles`
    on a Dst of zeros, and to the same bits; arguments as there. left_out: bool[n], set to True for a tile with numbers
    too large or too small for that, whose dst is not written, else to False."""
    mode = setting.mode
    word = align_to_cache_line(np.empty(2 * TILE, np.int32), TILE)
    special = np.zeros(LANES, np.int32)
    lift = _lift_of(setting.exponent_bits)
    for index in range(start, stop):
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        clear_words(word)
        for phase in range(4):
            if phases >> phase & 1:
                if mode == FP32:
                    multiply_exactly(word, a, b, phase, lift, special)
                else:
                    multiply_words(word, a, b, phase, lift, mode, special)
        left_out[index] = _store_unless_special(dst[index].view(np.int32), word, special, mode)


@helper
def take_special(special: Lanes) -> bool:
    """Return whether any lane of `special`, int32[LANES], is set, and clear them all."""
    any_special = i32(0)
    for n in range(LANES):
        any_special = i32(any_special | special[n])
        special[n] = i32(0)
    return any_special != 0


@helper
def _store_unless_special(image: Lanes, word: Lanes, special: Lanes, mode: int) -> bool:
    """Write the Dst image of a tile's lifted words, unless a lane of `special` is set. Return whether one was, and
    clear `special`. `word` changes."""
    if take_special(special):
        return True
    if mode == FP16:
        for n in range(TILE):
            word[n] = zero_if(i32(word[n] & i32(INFINITY)) == 0, i32(word[n] - i32(LIFT << 23)))
    store_words(image, word, mode)
    return False


def add_words(word: Any, a: Any, b: Any, flip: int, lift: int, mode: int, special: Any) -> None:
    """Write to `word` the sums a + (b ^ flip) of Src words, int32[1024] each; `lift` is added to the words' exponents,
    and those of the sums are as much higher. Both terms are rounded to units of 2^-10 of the larger one's exponent,
    halves away from zero, which loses nothing of the larger one (2.5); then their sum is rounded to the precision of a
    Dst of `mode`. `special`, int32[LANES], is set where exponents are too far at an end for singles, and left as it is
    elsewhere."""
    half, mask = ROUNDING[mode]
    with np.errstate(all="ignore"):
        first = _lift_words(a, lift)
        second = _lift_words(b ^ np.array(flip, np.uint32).view(np.int32), lift)
        top = np.maximum(first & i32(INFINITY), second & i32(INFINITY))
        unit = np.maximum(top, i32(LEAST))
        inverse = np.asarray(_constant_minus(INVERSE | AWAY, unit)).view(np.float32)
        magic = np.float32(MAGIC)
        counts = [fma_f32(x.view(np.float32), inverse, magic) - magic for x in (first, second)]
        bits = (np.asarray(counts[0] + counts[1]).view(np.int32) + i32(half)) & i32(mask)
        result = bits.view(np.float32) * (unit - i32(FRACTION_BITS << 23)).view(np.float32)
        word[:] = _clamp_to_fp16(result.view(np.int32), mode)
    special[0] |= bool(((top != 0) & (top < LEAST) | (top > MOST)).any())


def multiply_words(word: Any, a: Any, b: Any, phase: int, lift: int, mode: int, special: Any) -> None:
    """Add to `word` the products a * b of Src words in one phase, int32[1024] each, rounded as a 16-bit Dst of `mode`
    does (2.4); exponents of `word` are `lift` higher than Dst's. `special` as for `add_words`."""
    half, mask = ROUNDING[mode]
    with np.errstate(all="ignore"):
        first, second, pair = _lift_factors(a, b, lift, special)
        shift = 5 * (phase & 1) + 7 * (phase >> 1)
        exponent = np.where(pair == 0, i32(0), (pair << 1) - i32((127 + shift) << 23))
        product = _part_of_factor(first, SRCA_CUTS, phase & 1) * _part_of_factor(second, SRCB_CUTS, phase >> 1)
        if mode == FP16:  # an exponent of zero or less is none
            product = np.where(exponent > i32(LIFT << 23), product, np.float32(0))
        common = np.maximum(np.maximum(exponent, word & i32(INFINITY)), i32(LEAST))
        scale = np.asarray(_constant_minus(INVERSE, common)).view(np.float32)
        away = np.asarray(_constant_minus(INVERSE | AWAY, common)).view(np.float32)
        total = fma_f32(word.view(np.float32), away, np.float32(MAGIC))
        total = total + np.floor(fma_f32(product, scale, np.float32(UPWARD)))
        bits = (np.asarray(total - np.float32(MAGIC)).view(np.int32) + i32(half)) & i32(mask)
        result = bits.view(np.float32) * (common - i32(FRACTION_BITS << 23)).view(np.float32)
        word[:] = _clamp_to_fp16(result.view(np.int32), mode)


def multiply_exactly(word: Any, a: Any, b: Any, phase: int, lift: int, special: Any) -> None:
    """Add to `word` the products a * b of Src words in one phase, int32[1024] each, in a 32-bit Dst. It holds the sum
    of all four products exactly, as that has 22 bits. `lift` and `special` as for `add_words`."""
    with np.errstate(all="ignore"):
        first, second, _ = _lift_factors(a, b, lift, special)
        part = _part_of_factor(first, SRCA_CUTS, phase & 1), _part_of_factor(second, SRCB_CUTS, phase >> 1)
        word[:] = fma_f32(*part, word.view(np.float32)).view(np.int32)


def _lift_words(x: Any, lift: int) -> NDArray[np.int32]:
    """Return the 19 bits of Src words that count, with `lift` added, 0 where the exponent is 0."""
    return np.where(x & i32(INFINITY) == 0, i32(0), (x & i32(SRC_BITS)) + i32(lift))


def _constant_minus(constant: int, exponent: Any) -> Any:
    """Return a constant less exponents, as unsigned words."""
    return np.array(constant, np.uint32) - exponent.view(np.uint32)


def _part_of_factor(x: Any, cuts: tuple[int, int], second: int) -> Any:
    """Return as singles the part of lifted words that one phase multiplies: that of the upper bits of their
    significands, or, with `second`, of the lower ones. `cuts` are the masks for the upper bits and for both
    together."""
    first = (x & i32(cuts[0])).view(np.float32)
    if second:
        return (x & i32(cuts[1])).view(np.float32) - first
    return first


def _lift_factors(
    a: Any, b: Any, lift: int, special: Any
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return both factors, lifted, and half the sum of their exponents (in the place of the exponent field), 0 where
    one is a zero. `special` is set where an exponent or the sum is out of range."""
    first = _lift_words(a, lift)
    second = _lift_words(b, lift)
    exponents = (first & i32(INFINITY)) >> 1, (second & i32(INFINITY)) >> 1
    pair = np.where((exponents[0] == 0) | (exponents[1] == 0), i32(0), exponents[0] + exponents[1])
    weak = (pair != 0) & (pair < LEAST_PRODUCT >> 1) | (pair > MOST_PRODUCT >> 1)
    weak |= (pair != 0) & (np.minimum(*exponents) < LEAST >> 1) | (np.maximum(*exponents) > MOST >> 1)
    special[0] |= bool(weak.any())
    return first, second, pair


def _clamp_to_fp16(bits: Any, mode: int) -> Any:
    """Return words that an fp16 Dst can hold, their exponents LIFT higher: +0 for those too small, its largest code
    with the sign for those too large; other modes' words are unchanged."""
    if mode != FP16:
        return bits
    size = bits & i32(MAGNITUDE)
    size = np.where(size >= i32((LIFT + 32) << 23), i32(FP16_MOST), size)
    return np.where(size < i32((LIFT + 1) << 23), i32(0), size | (bits & i32(NEGATIVE_SIGN)))
