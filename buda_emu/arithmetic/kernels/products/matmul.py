"""The dense matrix product over tiles (OPS 6.1).

An item, the work that a thread claims, is a block of up to GROUP rows and some columns of result tiles, so that each
tile of `b` serves several rows. A tile of `b` that must be transposed, or does not begin at a cache line, is copied
once into a working tile, the panel. Sums run over DEPTH tiles of the inner dimension at a time, so that those of `a`
stay in the cache.

A product of two tiles is left out if one holds only zeros, as padding does, and the other only finite numbers: it would
add zeros to a sum that began at +0, which changes no bit.

A term that is added to the product (a bias, a sum of gradients) and relu are computed while a result tile is in the
cache.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.products.tile_product import add_dense_product, dense_product
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    EDGE,
    NO_RELU,
    TILE,
    WORKING_TILES,
    Tensor,
    add_row,
    add_tile,
    copy_tile,
    entry_in,
    expect_tile,
    fill_tile,
    is_finite,
    is_zero,
    relu_tile,
    starts_cache_line,
    tile_at,
    transpose_tile,
    working_tiles,
)

DEPTH: Final = 16  # inner tiles at a time: more of `a` would not stay in the cache
COLUMNS: Final = 32  # of an item, at most: a larger one leaves fewer items to share
PARTS: Final = 64  # least number of items for threads to share, if there are so many

# Tiles of working memory.
PAD: Final = 0
PANEL: Final = 1
PARKING: Final = 2
ACCUMULATORS: Final = 3
GROUP: Final = 4
assert ACCUMULATORS + GROUP <= WORKING_TILES


AS_IT_IS: Final = 0  # nothing is added
ONTO: Final = 1  # term + product (OPS 6.12)
PLUS: Final = 2  # product + term
PLUS_ROW: Final = 3  # product + row 0 of the term's tile, in every row (OPS 6.1)


class Ending(NamedTuple):
    """The last steps of a product: `how` a term is added (AS_IT_IS, ONTO, PLUS or PLUS_ROW), then `relu`, with its code
    and `threshold` of `tile_memory.relu_tile`. The term is float32[w or 1, tiles, 1024], read as an operand of the
    result's shape: `term_index` has the source tile of each tile, negative for a tile full of `term_pad`."""

    how: int
    term: NDArray[np.float32]
    term_index: NDArray[np.int32]
    term_pad: np.float32
    relu: int = NO_RELU
    threshold: np.float32 = np.float32(0)

    @property
    def nbytes(self) -> int:
        """The size of `term`, the operand that is added, in bytes."""
        return self.term.nbytes


class Reading(NamedTuple):
    """The tiles of `a` and `b` that a product reads, after their TMs.

    a_index: int32[t * rows * inner], the source tile of each tile of a, negative for a tile full of `a_pad`; b_index:
    int32[t * inner * cols] and `b_pad` likewise. With `b_transposed` each tile of b is transposed before it is used.
    """

    a_index: NDArray[np.int32]
    a_pad: np.float32
    b_index: NDArray[np.int32]
    b_pad: np.float32
    b_transposed: bool


class Extent(NamedTuple):
    """Sizes of a product in tiles: `t` slices of a [rows, inner] x b [inner, cols]; an item of the kernel has up to
    `columns` columns."""

    t: int
    rows: int
    inner: int
    cols: int
    columns: int


def matmul_reference(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product a [..., R, K, 32, 32] x b [..., K, C, 32, 32] = [..., R, C, 32, 32] by its definition, in
    numpy (OPS 6.1): inner tiles are added in ascending order. Leading dimensions broadcast."""
    leading = np.broadcast_shapes(a.shape[:-4], b.shape[:-4])
    out = np.zeros((*leading, a.shape[-4], b.shape[-3], EDGE, EDGE), np.float32)
    with np.errstate(all="ignore"):
        for k in range(a.shape[-3]):
            out += dense_product(a[..., :, None, k, :, :], b[..., None, k, :, :, :])
    return out


@lru_cache(maxsize=1024)
def matmul_blocks(entries: int, t: int, rows: int, cols: int) -> tuple[int, int]:
    """Return the number of items of `matmul_tiles`, and the columns of each: at most COLUMNS, and so few that there are
    PARTS items where the result is large enough. `entries` is the number of inputs w."""
    groups = entries * t * -(-rows // GROUP)
    columns = min(COLUMNS, -(-cols // -(-PARTS // groups)))
    return groups * -(-cols // columns), columns


@helper
def _tile_or_pad(tiles: NDArray[np.float32], entry: int, at: int, pad: Any) -> Any:
    """Return tile `at` of an entry, as `tile_at` does; where `at` is negative, `pad`, a tile."""
    if at < 0:
        return pad
    return tile_at(tiles, entry, at)


@helper
def _readable_right_tile(
    b: NDArray[np.float32], entry: int, at: int, pad: np.float32, transposed: bool, panel: Any
) -> Any:
    """Return tile `at` of `b` as the dense product reads it, transposed if asked and beginning at a cache line: the
    tile itself, or `panel`, a working tile that is filled where it has to be made. Where `at` is negative, it is full
    of `pad`."""
    if at < 0:
        fill_tile(panel, pad)
        return panel
    tile = tile_at(b, entry, at)
    if transposed:
        transpose_tile(panel, tile)
        return panel
    if starts_cache_line(tile):
        return tile
    copy_tile(panel, tile)
    return panel


@helper
def _add_term(target: Any, accumulator: Any, entry: int, place: int, ending: Ending, panel: Any) -> None:
    """Write the sum of the accumulator and tile number `place` of the term to the target, in the order and way that
    `ending.how` says; `panel` is a working tile, and is overwritten for a pad."""
    how, term, term_index, term_pad, _, _ = ending
    at = term_index[place]
    other = panel
    if at < 0:
        fill_tile(panel, term_pad)
    else:
        other = tile_at(term, entry_in(term, entry), at)
    if how == ONTO:
        add_tile(target, other, accumulator)
    elif how == PLUS:
        add_tile(target, accumulator, other)
    else:
        add_row(target, accumulator, other)


@kernel
def matmul_tiles(
    start: int,
    stop: int,
    out: NDArray[np.float32],
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    reading: Reading,
    extent: Extent,
    ending: Ending,
) -> None:
    """Compute out = a x b for each of t slices of each entry w: +0, then the terms of OPS 6.1 for ascending inner
    tiles, then the steps of `ending`.

    out: float32[w, t * rows * cols, 1024]; a: float32[w or 1, tiles, 1024], b likewise (1: the same entry for every w).
    Items start to stop - 1 are computed: blocks of GROUP rows and `columns` columns, those of one group of rows after
    each other, as `matmul_blocks` counts them.
    """
    a_index, a_pad, b_index, b_pad, b_transposed = reading
    t, rows, inner, cols, columns = extent
    work = working_tiles()
    panel = tile_at(work, 0, PANEL)
    parking = tile_at(work, 0, PARKING)
    pad = tile_at(work, 0, PAD)
    fill_tile(pad, a_pad)
    zeros = np.empty(GROUP * DEPTH, np.bool_)  # for each tile of `a` in use: has it only zeros?
    groups = (rows + GROUP - 1) // GROUP
    blocks = (cols + columns - 1) // columns
    for index in claim_items(start, stop):
        number = index // blocks
        first_col = (index - number * blocks) * columns
        last_col = min(first_col + columns, cols)
        entry = number // (t * groups)
        z = number // groups - entry * t
        row = z * rows + number % groups * GROUP
        group = min(GROUP, (z + 1) * rows - row)
        a_entry = entry_in(a, entry)
        b_entry = entry_in(b, entry)
        first_b = z * inner * cols
        for begin in range(0, inner, DEPTH):
            end = min(begin + DEPTH, inner)
            for g in range(group):
                for k in range(begin, end):
                    at = a_index[(row + g) * inner + k]
                    zeros[g * DEPTH + k - begin] = is_zero(_tile_or_pad(a, a_entry, at, pad))
            for col in range(first_col, last_col):
                for g in range(group):
                    if begin == 0:
                        fill_tile(tile_at(work, 0, ACCUMULATORS + g), np.float32(0))
                    else:
                        copy_tile(tile_at(work, 0, ACCUMULATORS + g), tile_at(out, entry, (row + g) * cols + col))
                for k in range(begin, end):
                    at = b_index[first_b + k * cols + col]
                    right = _readable_right_tile(b, b_entry, at, b_pad, b_transposed, panel)
                    no_right = is_zero(right)
                    following = first_b + begin * cols + col + 1
                    if k + 1 < end:
                        following = first_b + (k + 1) * cols + col
                    soon = pad
                    if following < b_index.size:
                        soon = _tile_or_pad(b, b_entry, b_index[following], pad)
                    for g in range(group):
                        at = a_index[(row + g) * inner + k]
                        left = _tile_or_pad(a, a_entry, at, pad)
                        expect_tile(tile_at(out, entry, (row + g) * cols + col), k - begin, end - begin)
                        if (no_right and is_finite(left)) or (zeros[g * DEPTH + k - begin] and is_finite(right)):
                            continue
                        add_dense_product(tile_at(work, 0, ACCUMULATORS + g), left, right, parking, soon, g, group)
                for g in range(group):
                    place = (row + g) * cols + col
                    target = tile_at(out, entry, place)
                    accumulator = tile_at(work, 0, ACCUMULATORS + g)
                    if end < inner or ending.how == AS_IT_IS:
                        copy_tile(target, accumulator)
                    else:
                        _add_term(target, accumulator, entry, place, ending, panel)
                    if end == inner:
                        relu_tile(target, ending.relu, ending.threshold)


@kernel
def count_beyond(start: int, stop: int, tiles: Tensor, limit: np.float32, counts: NDArray[np.int64]) -> None:
    """Write to counts[w * n] how many elements of each tile of float32[w, n, 1024] exceed `limit` in magnitude, for the
    tiles start to stop - 1. NaN is not counted."""
    per_entry = tiles.shape[1]
    for index in claim_items(start, stop):
        count = 0
        entry = index // per_entry
        tile = tiles[entry, index - entry * per_entry]
        for k in range(TILE):
            count += abs(tile[k]) > limit
        counts[index] = count


MOST_SUM = (1 << 31) - 1
"""Largest magnitude of a sum; the caller sees to it that no sum is larger."""


@kernel
def integer_product(rows: NDArray[np.int16], columns: NDArray[np.int16], sums: NDArray[np.int32]) -> None:
    """Compute `sums[p, k]` = sum over j of `rows[p, j]` * `columns[k, j]`, with shapes [P, J], [K, J], [P, K].

    Every step is cut to 32 bits, so sums must not exceed MOST_SUM in magnitude. This changes no sum within it, and lets
    the machine multiply pairs of 16 bits.
    """
    for p in range(rows.shape[0]):
        for k in range(columns.shape[0]):
            total = np.int32(0)
            for j in range(rows.shape[1]):
                total = np.int32(total + np.int32(np.int32(rows[p, j]) * np.int32(columns[k, j])))
            sums[p, k] = total
