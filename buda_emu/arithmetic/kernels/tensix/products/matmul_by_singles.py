"""The matrix product of tiles in singles (`group_sums`), for exponents that are far enough from the ends of their
range.

A panel of result tiles is summed up together, one inner tile after the other, and an operand tile is prepared once for
the whole panel. Numbers near the ends of Dst's range are computed with an offset added to all exponents, and after each
accumulation cut where Dst's range ends.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.primitives import part_of
from buda_emu.arithmetic.kernels.tensix.products.accumulate import PHASES, Product, exponent_bias, phase_and_face
from buda_emu.arithmetic.kernels.tensix.products.group_sums import ABOVE, LOWEST_COMMON, LOWEST_WIDE, OFFSET, add_tile
from buda_emu.arithmetic.kernels.tensix.products.prepared import (
    COUNTS,
    EXPONENTS,
    INFINITE,
    SPAN,
    align_to_cache_line,
    move_words,
    prepare_srca,
    prepare_srcb,
    range_of,
)
from buda_emu.arithmetic.kernels.tensix.products.spills import AS_IT_WAS, spill_words
from buda_emu.arithmetic.kernels.tensix.words import (
    BF16,
    FP16,
    FP32,
    TILE,
    Index,
    Lanes,
    Tensor,
    clear_words,
    load_words,
    store_words,
    words_at,
)

PANEL: Final = 128  # tiles of Dst that are summed up at a time: they and the operands of one step stay in the cache
WIDTH: Final = 16  # of a panel
LINE: Final = 16  # words of a cache line
FLOAT_BIAS: Final = 127  # of exponents of singles
# What exponents must be for singles, of the operands, of their products, of words in Dst.
LEAST_PART: Final = 16  # the parts are normal numbers
MOST_PART: Final = 250  # and no infinities
FINEST: Final = 12  # of the last phase's products below those of the first
LEAST_SUM: Final = LOWEST_COMMON + 10  # an accumulation leaves nothing smaller than 2^-10 of its common exponent
LEAST_WIDE_SUM: Final = LOWEST_WIDE + 23  # or 2^-23 in 32 bits
MOST_SUM: Final = 200  # far enough below 255 that GROWTH and rounding reach no infinity
MOST_WORD: Final = 220  # likewise
GROWTH: Final = 10  # the sums of one tile are together less than 2^10 of its largest product's power of two


class Traversal(NamedTuple):
    """The way through the inner tiles. `spill`: a code of `spills`, the conversion of a result tile after each
    inner tile for which `ends` is set, except the last. `fresh`: Dst begins with zeros, whatever dst holds. `moved`,
    even: what is added to all exponents while the kernel computes; 0 for operands of family A, and not above 0 for a
    spill through blocks."""

    spill: int
    ends: NDArray[np.bool_]
    fresh: bool
    moved: int = 0


@kernel
def matmul_by_singles(
    start: int,
    stop: int,
    dst: Tensor,
    product: Product,
    traversal: Traversal,
    left_out: NDArray[np.bool_],
    memory: NDArray[np.int32],
) -> None:
    """Add in0 x in1 to dst with arithmetic of singles, to the same bits as `matmul_by_integers`; arguments as for
    `tile_matmul.matmul_tiles`.

    left_out: bool[stop - start], set to True for an item whose numbers singles cannot hold; its tile of dst is not
    written. memory: `room_for(start, stop, rows, cols)` int32 to work in; slices of an array of the kernel's own would
    be reference-counted, which takes a fifteenth of the time.
    """
    in0, in0_index, in0_pad, _ = product.in0
    in1, in1_index, in1_pad, in1_transposed = product.in1
    t, rows, inner, cols, first, last, faces = product.extent
    phases = product.phases
    mode, exponent_bits, blackhole = product.setting
    spill, ends, fresh, moved = traversal
    is_blackhole = int(blackhole)
    per_slice = rows * cols
    height, width = _panel(stop - start, rows, cols)
    apart = TILE  # numbers of a prepared tile's parts
    if phases & 0b1110:
        apart = 2 * TILE
    room = align_to_cache_line(memory, len(memory) - LINE)
    used = height * width * TILE
    panel = part_of(room, 0, used)
    words = part_of(room, used, TILE)
    used += TILE
    a_exponents = part_of(room, used, width * EXPONENTS)
    b_exponents = part_of(room, used + width * EXPONENTS, height * EXPONENTS)
    used += (width + height) * EXPONENTS
    a_parts = part_of(room, used, width * apart).view(np.float32)
    b_parts = part_of(room, used + width * apart, height * apart).view(np.float32)
    used += (width + height) * apart
    a_ranges = part_of(room, used, 2 * width)
    b_ranges = part_of(room, used + 2 * width, 2 * height)
    steps = np.empty(2 * PHASES * faces, np.int32)
    count = _write_steps(steps, faces, phases, product.faces_first)
    dst_ranges = np.empty((height * width, 2), np.int64)
    active = np.empty(height * width, np.bool_)

    bias = int(exponent_bias(mode, exponent_bits, 0))
    offset = moved
    above = 0  # of the words, as `add_tile` wants them
    if mode == FP16:
        offset = OFFSET
    if mode == BF16:
        above = ABOVE
    lift = (bias + offset + FLOAT_BIAS) // 2
    plus = COUNTS * (bias + offset + ABOVE) + COUNTS // 2
    floor = _least_common_exponent(mode, exponent_bits)
    lowest = COUNTS * (max(bias + offset, floor) + ABOVE) + COUNTS // 2
    least_sum = max(LEAST_SUM, moved + 1)
    fraction_bits = 10  # of the last place of an accumulation, below its common exponent (DEVICE_NUMERICS 2.3)
    if mode == FP32:
        least_sum = max(LEAST_WIDE_SUM, moved + 1)
        fraction_bits = 23
    index = start
    while index < stop:
        # What is asked for of one slice of one entry, a panel of rows and columns at a time.
        group = index // per_slice
        entry = group // t
        part = group - entry * t
        begin = index - group * per_slice
        end = min(stop - group * per_slice, per_slice)
        index = group * per_slice + end
        top_row = begin // cols
        below = (end - 1) // cols + 1
        from_col = 0
        to_col = cols
        if below - top_row == 1:
            from_col = begin % cols
            to_col = (end - 1) % cols + 1
        across = (to_col - from_col + width - 1) // width
        down = (below - top_row + height - 1) // height
        for corner in range(across * down):
            left = from_col + corner % across * width
            top = top_row + corner // across * height
            right = min(left + width, to_col)
            bottom = min(top + height, below)
            active_count = 0
            for place in range((bottom - top) * (right - left)):
                row = top + place // (right - left)
                col = left + place % (right - left)
                number = row * cols + col
                active[place] = begin <= number < end
                if active[place]:
                    word = part_of(panel, place * TILE, TILE)
                    image = dst[entry, part * per_slice + number].view(np.int32)
                    least, greatest = _load_dst_tile(word, image, mode, fresh)
                    beyond = greatest > 0 and (
                        least + moved < floor or greatest + moved > MOST_WORD or greatest == INFINITE
                    )
                    if mode != FP16 and beyond:
                        active[place] = False
                        left_out[group * per_slice + number - start] = True
                        continue
                    if not fresh:
                        move_words(word, offset + above)
                    dst_ranges[place, 0] = least + min(moved, 0)
                    dst_ranges[place, 1] = greatest + max(moved, 0)
                    active_count += 1
            for k in range(first, last):
                if not active_count:
                    break
                for n in range(right - left):
                    at = in1_index[(part * inner + k) * cols + left + n]
                    source = words_at(words, in1, entry, at, in1_pad, in1_transposed)
                    exponents = part_of(a_exponents, n * EXPONENTS, EXPONENTS)
                    parts = part_of(a_parts, n * apart, apart)
                    prepare_srca(exponents, parts, source, part_of(a_ranges, 2 * n, 2), phases, lift)
                for n in range(bottom - top):
                    at = in0_index[(part * rows + top + n) * inner + k]
                    source = words_at(words, in0, entry, at, in0_pad, False)
                    exponents = part_of(b_exponents, n * EXPONENTS, EXPONENTS)
                    parts = part_of(b_parts, n * apart, apart)
                    prepare_srcb(exponents, parts, source, part_of(b_ranges, 2 * n, 2), phases, lift, plus)
                for place in range((bottom - top) * (right - left)):
                    i = place // (right - left)
                    j = place % (right - left)
                    if not active[place]:
                        continue
                    word = part_of(panel, place * TILE, TILE)
                    a_least = int(a_ranges[2 * j])
                    a_most = int(a_ranges[2 * j + 1])
                    b_least = int(b_ranges[2 * i])
                    b_most = int(b_ranges[2 * i + 1])
                    low = a_least + b_least + bias + moved - FINEST
                    high = a_most + b_most + bias + moved + 1
                    weakest = min(a_least, b_least) + lift
                    strongest = max(a_most, b_most) + lift
                    if mode != FP16 and (dst_ranges[place, 1] > MOST_WORD or dst_ranges[place, 0] < floor):
                        least, greatest = range_of(word, above)
                        dst_ranges[place, 0] = least - above
                        dst_ranges[place, 1] = greatest - above
                    least = dst_ranges[place, 0]
                    greatest = dst_ranges[place, 1]
                    reached = least >= floor and greatest <= MOST_WORD and low >= least_sum and high <= MOST_SUM
                    if mode != FP16 and not (reached and weakest >= LEAST_PART and strongest <= MOST_PART):
                        active[place] = False
                        active_count -= 1
                        left_out[group * per_slice + (top + i) * cols + left + j - start] = True
                        continue
                    # A tile of zeros changes no word, unless zeros have an exponent.
                    if bias > 0 or (a_most and b_most):
                        exponents = part_of(b_exponents, i * EXPONENTS, EXPONENTS)
                        others = part_of(a_exponents, j * EXPONENTS, EXPONENTS)
                        least = min(least, low - fraction_bits)
                        greatest = max(greatest, high + GROWTH) + 1
                        dst_ranges[place, 0] = least
                        dst_ranges[place, 1] = greatest
                        near = a_most - a_least <= SPAN and b_most - b_least <= SPAN
                        least_top = 0
                        if near:
                            least_top = a_least + b_least + bias + offset + ABOVE
                        cut = moved != 0 and not (moved < least and greatest < INFINITE + moved)
                        add_tile(
                            word.view(np.float32),
                            exponents,
                            others,
                            part_of(b_parts, i * apart, apart),
                            part_of(a_parts, j * apart, apart),
                            steps,
                            (count, faces, lowest, least_top, moved, int(cut), mode, is_blackhole),
                        )
                    if spill != AS_IT_WAS and k + 1 < last and ends[k]:
                        spill_words(word, spill)
                        dst_ranges[place, 0] -= 1
                        dst_ranges[place, 1] += 1
            for place in range((bottom - top) * (right - left)):
                if active[place]:
                    word = part_of(panel, place * TILE, TILE)
                    number = (top + place // (right - left)) * cols + left + place % (right - left)
                    _store_dst_tile(dst[entry, part * per_slice + number].view(np.int32), word, above, offset, mode)


def room_for(start: int, stop: int, rows: int, cols: int) -> int:
    """Return how many int32 of `memory` the kernel `matmul_by_singles` needs for items start to stop - 1 of a result
    with slices of rows x cols tiles."""
    height, width = panel_of(stop - start, rows, cols)
    return (height * width + 1) * TILE + (height + width) * (EXPONENTS + 2 * TILE + LINE) + LINE


def panel_of(items: int, rows: int, cols: int) -> tuple[int, int]:
    """Return the rows and columns of tiles of a panel, the result tiles that are summed up together, where so many
    items are asked for."""
    width = max(1, min(cols, items, WIDTH))
    return max(1, min(rows, (items + cols - 1) // cols + 1, PANEL // width)), width


_panel: Final = helper(panel_of)


@helper
def _load_dst_tile(word: Lanes, image: Lanes, mode: int, fresh: bool) -> tuple[int, int]:
    """Write to `word` the words of a tile of Dst, or zeros with `fresh`, and return their least and greatest exponent,
    (255, 0) where all are zeros."""
    if fresh:
        clear_words(word)
        return INFINITE, 0
    load_words(word, image, mode)
    return range_of(word, 0)


@helper
def _store_dst_tile(image: Lanes, word: Lanes, above: int, offset: int, mode: int) -> None:
    """Write the words of a tile, whose exponents are `above` + `offset` higher than Dst's, to its Dst image; `word`
    changes."""
    if above:
        move_words(word, -above)  # zeros become 0
    if offset:
        move_words(word, -offset)
    store_words(image, word, mode)


@helper
def _least_common_exponent(mode: int, exponent_bits: int) -> int:
    """Return the exponent to which a smaller common exponent of a sum is raised, counted as those of the kernel's words
    are, so that all steps are exact; 0 if there is none, as for operands of family A in 32 bits, whose zeros have an
    exponent."""
    if mode == FP16:
        return OFFSET
    if mode == BF16:
        return LOWEST_COMMON
    if exponent_bits == 8:
        return LOWEST_WIDE
    return 0


@helper
def _write_steps(steps: Index, faces: int, phases: int, faces_first: bool) -> int:
    """Write to `steps` the fidelity phase and the inner face of each step of a tile's product, in the chip's order, and
    return the number of steps. Bit p of `phases` is set where phase p runs; `faces_first`: all phases run in one face
    before the next (2.8)."""
    count = 0
    for step in range(PHASES * faces):
        phase, face = phase_and_face(step, faces, faces_first)
        if phases >> phase & 1:
            steps[2 * count] = phase
            steps[2 * count + 1] = face
            count += 1
    return count
