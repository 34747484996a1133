"""The products of an identity matmul whose sparse tiles have at most one element in each row that is not zero.

Such a row picks one row of the other operand, its *line*. Of its groups of products all but one are zero, and change no
word of Dst (DEVICE_NUMERICS 2.2); the remaining group has a single product, so nothing is aligned to it. All that is
left of a row is one accumulation for each phase, that of ELWMUL (2.4). In a 16-bit Dst it is vector code in singles
(`elementwise.multiply_words`), while exponents keep away from the ends of their range; other tiles, and a 32-bit Dst,
are computed in integers.

The product of the first term with an empty Dst is known where its elements are powers of two, as those of pickers are:
they have the parts 64 and 0 (2.1), so the phases add up the parts of the datum that SrcA gives them, which follow each
other in one significand. Nothing is rounded, exponents are added, and from 255 on (8 bits) the result is an infinity.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.primitives import part_of
from buda_emu.arithmetic.kernels.tensix.elementwise import LANES, LIFT, multiply_words, take_special
from buda_emu.arithmetic.kernels.tensix.pack import add_bf16_tile
from buda_emu.arithmetic.kernels.tensix.products.accumulate import (
    PHASES,
    accumulate_narrow,
    accumulate_wide,
    exponent_bias,
    srca_part,
    srcb_part,
)
from buda_emu.arithmetic.kernels.tensix.products.prepared import (
    INFINITE,
    align_to_cache_line,
    cut_words,
    move_words,
    range_of,
)
from buda_emu.arithmetic.kernels.tensix.products.spills import spill_any
from buda_emu.arithmetic.kernels.tensix.unpack import spread_groups
from buda_emu.arithmetic.kernels.tensix.words import (
    BF16,
    EDGE,
    FP16,
    FP32,
    TILE,
    Index,
    Lanes,
    Setting,
    Tiles,
    clear_words,
    clip_infinity,
    i32,
    load_word,
    store_words,
    zero_if,
)
from buda_emu.spec.single import INFINITY, NEGATIVE_SIGN

# How `Codes` holds tiles; only that the kinds differ counts.
BLOCKS: Final = 0
HALVES: Final = 1
WORDS: Final = 2

ROOM: Final = 8 * TILE  # seven tiles, from a cache line on
LEAST: Final = 24  # the least exponent of a first term's product, with room below for the later phases
MOST: Final = 260  # the greatest, at which the parts of a later phase are still no larger than an infinity
LEAST_FP16: Final = 6  # the least one for fp16, whose exponents have 5 bits
MOST_FP16: Final = 31  # the greatest one, the largest exponent that fp16 has
BIAS: Final = 127  # of exponents of singles
DOWN: Final = -96
FAR: Final = 200
FEEBLE: Final = 12
"""Where a word or a product has an exponent above FAR, all exponents of a tile are moved DOWN while terms are added in
singles; none may be less than FEEBLE then."""
FIRST_PART: Final = 0x780000
BOTH_PARTS: Final = 0x7FC000
"""Bits of a fraction that SrcA gives to the first two phases."""


class Picks(NamedTuple):
    """The terms of an identity matmul. Those of row r of the result's tiles (counted over all t) in column group g are
    number begin[g, r] to begin[g, r + 1] - 1. Term n adds weight tile weight[n] x the tile in row act_row[n] and the
    result's column of the source; where ends[n] is set, Dst is spilled after it.

    The elements of weight tile n that are not zero are number begin_of[n] to begin_of[n + 1] - 1 of `line` (the row in
    the tile), `column` and `word` (the Src word).
    """

    begin: NDArray[np.int64]
    weight: NDArray[np.int64]
    act_row: NDArray[np.int64]
    ends: NDArray[np.bool_]
    begin_of: NDArray[np.int64]
    line: NDArray[np.int64]
    column: NDArray[np.int64]
    word: Lanes


class Codes(NamedTuple):
    """Tiles as they lie in L1 [w or 1, tiles, 1024], in one of these arrays by `kind`, the other arrays being empty.
    BLOCKS: codes of a block format in `bytes`, with `exponents` [w or 1, tiles, 64]; shifted left by `align`, a code
    fills 8 bits. HALVES: datums of 16 bits. WORDS: datums of 32 bits, of which a register holds the bits `mask`."""

    kind: int
    bytes: NDArray[np.uint8]
    exponents: NDArray[np.uint8]
    align: int
    halves: NDArray[np.uint16]
    words: NDArray[np.uint32]
    mask: int


class Reading(NamedTuple):
    """The operand that lines are picked from: its tiles as stored; `places`, the stored tile of each tile after TMs,
    negative for a tile full of the word `pad`; and whether each tile is `transposed` first."""

    codes: Codes
    places: Index
    pad: np.uint32
    transposed: bool


class Picking(NamedTuple):
    """The settings of picking lines. The result has rows of `cols` tiles, in groups of `group_cols` columns that have
    the same terms; bit p of `phases` is set where fidelity phase p runs; `spill` is the conversion of a tile between
    two strips of inner tiles, a code of `products.spills`."""

    cols: int
    group_cols: int
    phases: int
    setting: Setting
    spill: int


@kernel
def pick_tiles(
    start: int,
    stop: int,
    dst: Tiles,
    picks: Picks,
    source: Reading,
    picking: Picking,
    in_l1: NDArray[np.uint16],
    memory: NDArray[np.int32],
) -> None:
    """Compute tiles start to stop - 1 of the result of an identity matmul, counted over all entries w, as sums of
    picked lines.

    dst: uint32[stop - start, 1024], Dst images of the setting's mode, full of zeros; the products are added to them.
    in_l1: uint16[stop - start, 1024], or empty. If it is not empty, a bf16 Dst is packed as Float16_b after each strip
    and added up there, as the packer accumulates in L1 (DEVICE_NUMERICS 4.6); dst then needs one tile, and is left
    alone. memory: int32[ROOM] to work in; slices of an array of the kernel's own would be reference-counted, which
    takes longer than the work on them.

    Not for operands of family A in a 32-bit Dst: there products with zeros have exponents (2.1).
    """
    codes, index, pad, transposed = source
    cols, group_cols, phases, setting, spill = picking
    mode, exponent_bits, blackhole = setting
    entries = max(codes.bytes.shape[0], codes.halves.shape[0], codes.words.shape[0])  # one, or one for every w
    sums = in_l1.size > 0
    packed = np.empty(TILE, np.uint16)
    rows = picks.begin.shape[1] - 1
    room = align_to_cache_line(memory, 7 * TILE)
    word = part_of(room, 0, TILE)
    source_tile = part_of(room, TILE, TILE)
    lines = part_of(room, 2 * TILE, TILE)
    before = part_of(room, 3 * TILE, TILE)
    factor = part_of(room, 4 * TILE, TILE)
    part = part_of(room, 5 * TILE, TILE)
    exponents = part_of(room, 6 * TILE, TILE)
    special = np.zeros(LANES, np.int32)
    narrow = (mode == BF16 and exponent_bits == 8) or (mode == FP16 and exponent_bits == 5)
    for result_index in range(start, stop):
        entry = result_index // (rows * cols)
        tile = result_index - entry * rows * cols
        row = tile // cols
        column = tile - row * cols
        image = dst[0 if sums else result_index - start].view(np.int32)
        first = picks.begin[column // group_cols, row]
        last = picks.begin[column // group_cols, row + 1]
        if first == last:
            if sums:
                for n in range(TILE):
                    in_l1[result_index - start, n] = np.uint16(0)
            continue
        clear_words(word)
        has_sum = False
        empty = True
        singles = narrow
        moved = 0
        for term in range(first, last):
            weight = picks.weight[term]
            begin = int(picks.begin_of[weight])
            end = int(picks.begin_of[weight + 1])
            if begin < end:
                at = int(index[picks.act_row[term] * cols + column])
                _fetch_source_tile(source_tile, codes, entry if entries > 1 else 0, at, pad, exponent_bits)
                if empty and _try_first_term(word, source_tile, lines, picks, (begin, end), transposed, picking):
                    begin = end
                elif end < begin + EDGE:
                    clear_words(lines)
                for number in range(begin, end):
                    to = EDGE * picks.line[number]
                    _copy_picked_line(part_of(lines, to, EDGE), source_tile, picks.column[number], transposed)
                    _fill_line(part_of(factor, to, EDGE), picks.word[number])
                empty = False
                if begin < end and singles:
                    singles, moved = _add_term_in_singles(word, lines, factor, phases, mode, moved, before, special)
                    if singles:
                        begin = end
                    elif moved:
                        move_words(word, -moved)
                        moved = 0
                for phase in range(PHASES):
                    if begin < end and phases >> phase & 1:
                        _multiply_by_phase(
                            part, exponents, lines, factor, phase, exponent_bias(mode, exponent_bits, phase)
                        )
                        _accumulate_products(word, part, exponents, mode, blackhole)
            if moved and (picks.ends[term] or term + 1 == last):
                move_words(word, -moved)
                moved = 0
            if sums and (picks.ends[term] or term + 1 == last):
                if has_sum:
                    _pack_as_float16_b(packed, word)
                    add_bf16_tile(in_l1[result_index - start], packed)
                else:
                    _pack_as_float16_b(in_l1[result_index - start], word)
                has_sum = True
                empty = True
                singles = narrow
                moved = 0
                clear_words(word)
            elif picks.ends[term]:
                spill_any(word, spill)
        if not sums:
            store_words(image, word, mode)


@helper
def _try_first_term(
    word: Lanes,
    source_tile: Lanes,
    room: Lanes,
    picks: Picks,
    elements: tuple[int, int],
    transposed: bool,
    picking: Picking,
) -> bool:
    """Write to `word`, full of zeros, the sum over all phases of a result tile's first term, and return True. Return
    False, with `word` full of zeros again, unless the term's weights are powers of two and the products' exponents lie
    between LEAST and MOST (LEAST_FP16 and MOST_FP16), so that this takes a single multiplication.

    `elements`: the first of the weight tile's elements in `picks`, and one past the last. `room`: int32[1024] to work
    in.
    """
    (begin, end) = elements
    (mode, exponent_bits, _) = picking.setting
    keep = i32(FIRST_PART)
    if picking.phases & 0b0010:
        keep = i32(BOTH_PARTS)
    lowest = i32(LEAST)
    highest = i32(MOST)
    if mode == FP16:
        lowest = i32(LEAST_FP16)
        highest = i32(MOST_FP16)
    bias = exponent_bias(mode, exponent_bits, 0)
    least = part_of(room, 0, EDGE)
    greatest = part_of(room, EDGE, EDGE)
    picked = part_of(room, 2 * EDGE, EDGE)
    for n in range(EDGE):
        least[n] = lowest
        greatest[n] = i32(0)
    fraction = i32(0)
    for number in range(begin, end):
        factor = picks.word[number]
        place = picks.column[number]
        fraction = i32(fraction | i32(factor & i32(0x7FFFFF)))
        exponent_change = i32(i32(i32(factor >> i32(23)) & i32(255)) + bias)
        flip = i32(factor & i32(NEGATIVE_SIGN))
        line = picked
        if transposed:
            _copy_picked_line(line, source_tile, place, transposed)
        else:
            line = part_of(source_tile, EDGE * place, EDGE)
        _scale_line(
            part_of(word, EDGE * picks.line[number], EDGE), line, least, greatest, exponent_change, flip, keep, lowest
        )
    low = lowest
    high = i32(0)
    for n in range(EDGE):
        low = min(low, least[n])
        high = max(high, greatest[n])
    if fraction == 0 and low >= lowest and high <= highest:
        return True
    clear_words(word)
    return False


@helper
def _fill_line(out: Lanes, element: np.int32) -> None:
    """Write the element to all 32 places of `out`, a row of a tile."""
    for n in range(EDGE):
        out[n] = element


@helper
def _multiply_by_phase(part: Lanes, exponents: Lanes, lines: Lanes, factor: Lanes, phase: int, bias: np.int32) -> None:
    """Write to `part` the products of the words of `lines` (SrcA) and `factor` (SrcB) in one phase, element by element,
    and to `exponents` their exponents with the phase's `bias` added, 0 for products with a zero in SrcA; int32[1024]
    each."""
    for n in range(TILE):
        part[n] = i32(srca_part(lines[n], phase) * srcb_part(factor[n], phase))
        exponent = i32(i32(lines[n] >> i32(23)) & i32(255))
        other = i32(i32(factor[n] >> i32(23)) & i32(255))
        exponents[n] = zero_if(exponent == 0, max(i32(i32(exponent + other) + bias), i32(0)))


@helper
def _copy_picked_line(out: Lanes, source_tile: Lanes, place: int, transposed: bool) -> None:
    """Write to `out`, int32[32], row `place` of the source tile, or column `place` if the operand is `transposed`."""
    if transposed:
        column = part_of(source_tile, place, TILE - place)
        for n in range(EDGE):
            out[n] = column[EDGE * n]
    else:
        row = part_of(source_tile, EDGE * place, EDGE)
        for n in range(EDGE):
            out[n] = row[n]


@helper
def _scale_line(
    out: Lanes,
    line: Lanes,
    least: Lanes,
    greatest: Lanes,
    exponent_change: np.int32,
    flip: np.int32,
    keep: np.int32,
    lowest: np.int32,
) -> None:
    """Write to `out` a line of 32 words multiplied by a power of two: `exponent_change` is added to the exponents,
    `flip` is XORed to the signs, `keep` masks the fractions; exponents from 255 on give an infinity. By column, `least`
    and `greatest` are updated with the new exponents; a zero counts as `lowest` in `least`."""
    for n in range(EDGE):
        element = line[n]
        field = i32(i32(element >> i32(23)) & i32(255))
        exponent = i32(field + exponent_change)
        greatest[n] = max(greatest[n], zero_if(field == 0, exponent))
        least[n] = min(least[n], lowest if field == 0 else exponent)
        size = i32(i32(min(exponent, i32(INFINITE)) << i32(23)) | i32(element & keep))
        if exponent >= i32(INFINITE):
            size = i32(INFINITE << 23)
        out[n] = zero_if(field == 0, i32(size | i32(i32(element & i32(NEGATIVE_SIGN)) ^ flip)))


# How a term suits singles; only that the codes differ counts.
UNSUITABLE: Final = 0
ADDS_NOTHING: Final = 1
SUITS_SINGLES: Final = 2


@helper
def _move_exponents_down(word: Lanes, lines: Lanes, factor: Lanes, moved: int) -> tuple[int, int]:
    """Add DOWN to the exponents of the words of a bf16 Dst and of the picked lines, where singles could not hold their
    products otherwise. Return whether the term suits singles (SUITS_SINGLES, UNSUITABLE, or ADDS_NOTHING where it is
    all zeros), and what is added to the words' exponents now. `moved`: what was added to them before, 0 or DOWN. Lines
    are only changed if the term suits."""
    lines_least, lines_greatest = range_of(lines, 0)
    _, factor_greatest = range_of(factor, 0)
    if lines_greatest == 0 or factor_greatest == 0:
        return ADDS_NOTHING, moved
    least, greatest = range_of(word, 0)
    if moved == 0 and (greatest > FAR or lines_greatest + factor_greatest > FAR + BIAS):
        if greatest and least + DOWN < FEEBLE:
            return UNSUITABLE, 0
        moved = DOWN
        move_words(word, moved)
    if moved:
        if lines_least + moved < FEEBLE or lines_greatest + moved + factor_greatest > FAR + BIAS:
            return UNSUITABLE, moved
        move_words(lines, moved)
    return SUITS_SINGLES, moved


@helper
def _add_term_in_singles(
    word: Lanes, lines: Lanes, factor: Lanes, phases: int, mode: int, moved: int, before: Lanes, special: Lanes
) -> tuple[bool, int]:
    """Add all phases of a term to the words of a 16-bit Dst, in singles. Return whether its numbers suit singles, and
    what is added to the words' exponents now, 0 or DOWN (`moved`: what was before). If they do not suit, the words have
    their old values but for that shift. `before`, int32[1024], is memory to work in; `special`, int32[LANES], is all
    zero before and after."""
    lift = 0
    if mode == BF16:
        suits, moved = _move_exponents_down(word, lines, factor, moved)
        if suits != SUITS_SINGLES:
            return suits == ADDS_NOTHING, moved
    else:
        lift = LIFT
        move_words(word, lift)
    for n in range(TILE):
        before[n] = word[n]
    for phase in range(PHASES):
        if phases >> phase & 1:
            multiply_words(word, lines, factor, phase, lift << 23, mode, special)
            if moved:
                cut_words(word, moved)
    is_special = take_special(special)
    if is_special:
        for n in range(TILE):
            word[n] = before[n]
        if moved:
            move_words(lines, -moved)
    if lift:
        move_words(word, -lift)
    return not is_special, moved


@helper
def _pack_as_float16_b(out: NDArray[np.uint16], word: Lanes) -> None:
    """Write the words of a bf16 Dst to `out`, uint16[1024], as the packer stores Float16_b: no NaN, and +0 for exponent
    0 (DEVICE_NUMERICS 4.2)."""
    for n in range(TILE):
        exponent = i32(word[n] & i32(INFINITY))
        clipped = clip_infinity(word[n])
        out[n] = np.uint16(zero_if(exponent == 0, i32(i32(clipped >> i32(16)) & i32(0xFFFF))))


@helper
def _accumulate_products(word: Lanes, value: Lanes, exponent: Lanes, mode: int, blackhole: bool) -> None:
    """Add single products to the words of a tile: `value` in units of 2^-10 of 2^`exponent` (int32[1024] each); a
    product with exponent 0 adds nothing."""
    none = i32(0)
    if mode == FP32:
        for n in range(TILE):
            v = zero_if(exponent[n] == 0, value[n])
            word[n] = accumulate_wide(word[n], exponent[n], v, none, none, blackhole)
    else:
        for n in range(TILE):
            v = zero_if(exponent[n] == 0, value[n])
            word[n] = accumulate_narrow(word[n], exponent[n], v, none, none, mode == FP16)


@helper
def _fetch_source_tile(out: Lanes, source: Codes, entry: int, at: int, pad: np.uint32, exponent_bits: int) -> None:
    """Write to `out` the register words, int32[1024], of stored tile `at` of an entry; where `at` is negative, all are
    `pad`."""
    if at < 0:
        for n in range(TILE):
            out[n] = i32(pad)
    elif source.kind == BLOCKS:
        spread_groups(out, source.bytes[entry, at], source.exponents[entry, at], source.align, exponent_bits)
    elif source.kind == HALVES:
        halves = source.halves[entry, at]
        mode = BF16
        if exponent_bits == 5:
            mode = FP16
        for n in range(TILE):
            out[n] = load_word(i32(halves[n]), mode)
    else:
        words = source.words[entry, at].view(np.int32)
        for n in range(TILE):
            out[n] = i32(words[n] & i32(source.mask))
