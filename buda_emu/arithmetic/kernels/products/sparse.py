"""The sum of tile products of an identity (sparse) matmul (OPS 6.2), whose weight tiles are nearly empty."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.products.tile_product import (
    EDGE,
    TILE,
    add_row_product,
    add_sparse_tile_product,
    add_tile_product,
)
from buda_emu.arithmetic.kernels.tiles.tile_memory import Operand, Tensor, entry_in, fetch_tile, is_finite, tile_at


class Weights(NamedTuple):
    """Weight tiles float32[w or 1, tiles, 1024] of an identity matmul, and where they are not zero. Tile n is counted
    over all w.

    `nonzero`: the flat positions in `tiles` of the elements that are not zero, ascending; those of tile n are number
    begin[n] to begin[n + 1] - 1. `single`: whether a tile has at most one such element in each row. The element of row
    i of such a tile n is factors[n, i] in column columns[n, i]; a row without one has factor 0.
    """

    tiles: Tensor
    nonzero: NDArray[np.int64]
    begin: NDArray[np.int64]
    single: NDArray[np.bool_]
    columns: NDArray[np.int64]
    factors: NDArray[np.float32]

    @staticmethod
    def of(tiles: Tensor) -> "Weights":
        """Return weight tiles float32[w or 1, tiles, 1024] with the positions of their elements that are not zero."""
        count = tiles.shape[0] * tiles.shape[1]
        begin = np.zeros(count + 1, np.int64)
        count_nonzero(tiles, begin[1:])
        np.cumsum(begin, out=begin)
        single = np.empty(count, np.bool_)
        nonzero = np.empty(begin[-1], np.int64)
        columns = np.zeros((count, EDGE), np.int64)
        factors = np.zeros((count, EDGE), np.float32)
        find_nonzero(tiles, begin, nonzero, single, columns, factors)
        return Weights(tiles=tiles, nonzero=nonzero, begin=begin, single=single, columns=columns, factors=factors)


class Terms(NamedTuple):
    """All tile products of one entry, ordered by result row: those of the result tiles in row r of column group g are
    number begin[g, r] to begin[g, r + 1] - 1. Product n is weight tile weight[n] x the tile in row act_row[n] and the
    result's column of the activations. begin: int64[groups, t * R + 1]."""

    begin: NDArray[np.int64]
    weight: NDArray[np.int64]
    act_row: NDArray[np.int64]


@kernel
def count_nonzero(tiles: Tensor, counts: NDArray[np.int64]) -> None:
    """Write to `counts`, int64[w * n], how many elements of each tile of float32[w, n, 1024] are not zero."""
    for tile in range(counts.size):
        elements = tiles[tile // tiles.shape[1], tile % tiles.shape[1]]
        count = np.int32(0)
        for k in range(TILE):
            count += np.int32(elements[k] != np.float32(0))
        counts[tile] = count


@kernel
def find_nonzero(
    tiles: Tensor,
    begin: NDArray[np.int64],
    nonzero: NDArray[np.int64],
    single: NDArray[np.bool_],
    columns: NDArray[np.int64],
    factors: NDArray[np.float32],
) -> None:
    """Fill the fields `nonzero`, `single`, `columns` and `factors` of `Weights` from its tiles and `begin`; `columns`
    and `factors` are zeros on entry."""
    for tile in range(single.size):
        single[tile] = True
        at = begin[tile]
        if begin[tile + 1] == at:
            continue
        elements = tiles[tile // tiles.shape[1], tile % tiles.shape[1]]
        for row in range(EDGE):
            before = at
            for column in range(EDGE):
                value = elements[row * EDGE + column]
                if value != np.float32(0):
                    nonzero[at] = tile * TILE + row * EDGE + column
                    columns[tile, row] = column
                    factors[tile, row] = value
                    at += 1
            if at > before + 1:
                single[tile] = False


@kernel
def same_words(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> bool:
    """Return whether two arrays of the same size have equal words."""
    for begin in range(0, a.size, TILE):
        different = np.uint32(0)
        for k in range(begin, min(begin + TILE, a.size)):
            different |= a[k] ^ b[k]
        if different:
            return False
    return True


@kernel
def mark_finite_tiles(start: int, stop: int, marks: NDArray[np.bool_], tiles: Tensor) -> None:
    """Write to marks[w, n] whether a tile of float32[w, n, 1024] has neither infinity nor NaN, for tiles start to stop
    - 1, counted over all w."""
    per_entry = tiles.shape[1]
    for index in claim_items(start, stop):
        entry = index // per_entry
        tile = index - entry * per_entry
        marks[entry, tile] = is_finite(tile_at(tiles, entry, tile))


@kernel
def sparse_tiles(
    start: int,
    stop: int,
    out: Tensor,
    weights: Weights,
    acts: Operand,
    finite: NDArray[np.bool_],
    products: Terms,
    columns: tuple[int, int],
) -> None:
    """Compute tiles start to stop - 1 of out, float32[w, rows * cols, 1024] counted over all w, each as the sum of its
    tile products, from +0 and in their order (OPS 6.2).

    acts: the activations, an operand with rows of as many tiles as the result. finite: bool[w or 1, source tiles] marks
    those of its source that have neither infinity nor NaN, for which zeros of the weights are left out. columns: the
    tiles in a row; those in a column group.
    """
    (terms, term_weight, term_row) = products
    (cols, group_cols) = columns
    rows = terms.shape[1] - 1
    source, index, pad_value, _ = acts
    pad_is_finite = abs(pad_value) < np.float32(np.inf)
    all_weights = weights.tiles.reshape(weights.tiles.size)
    scratch = np.empty(TILE, np.float32)
    line = np.empty(EDGE, np.float32)
    for result_index in claim_items(start, stop):
        entry = result_index // (rows * cols)
        tile = result_index - entry * rows * cols
        row = tile // cols
        column = tile - row * cols
        act_entry = entry_in(source, entry)
        first_weight = entry_in(weights.tiles, entry) * weights.tiles.shape[1]
        target = out[entry, tile]
        for k in range(TILE):
            target[k] = np.float32(0)
        group = column // group_cols
        for term in range(terms[group, row], terms[group, row + 1]):
            number = first_weight + term_weight[term]
            position = term_row[term] * cols + column
            at = index[position]
            b = fetch_tile(acts, entry, position, scratch)
            is_finite_tile = pad_is_finite
            if at >= 0:
                is_finite_tile = finite[act_entry, at]
            if not is_finite_tile:
                add_tile_product(target, all_weights[number * TILE : (number + 1) * TILE], b, line, False)
            elif weights.single[number]:
                add_row_product(target, weights.columns[number], weights.factors[number], b)
            else:
                positions = weights.nonzero[weights.begin[number] : weights.begin[number + 1]]
                add_sparse_tile_product(target, positions, number * TILE, all_weights, b, line)
