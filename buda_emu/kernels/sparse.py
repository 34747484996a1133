"""The sum of tile products of an identity (sparse) matmul (OPS 6.2)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.gather import Operand, Tensor, fetch_tile
from buda_emu.kernels.jit import kernel
from buda_emu.kernels.tile_product import EDGE, TILE, add_sparse_tile_product, add_tile_product


@kernel
def mark_finite_tiles(start: int, stop: int, marks: NDArray[np.bool_], tiles: Tensor) -> None:
    """marks[w, n] = whether that tile of float32[w, n, 1024] holds neither infinity nor NaN. Items: the w*n tiles."""
    per_entry = tiles.shape[1]
    for item in range(start, stop):
        entry = item // per_entry
        tile = tiles[entry, item - entry * per_entry]
        finite = True
        for k in range(TILE):
            finite &= abs(tile[k]) < np.float32(np.inf)
        marks[entry, item - entry * per_entry] = finite


@kernel
def sparse_tiles(
    start: int,
    stop: int,
    out: Tensor,
    weights: Tensor,
    nonzero: NDArray[np.int64],
    nonzero_begin: NDArray[np.int64],
    acts: Operand,
    finite: NDArray[np.bool_],
    terms: NDArray[np.int64],
    term_weight: NDArray[np.int64],
    term_row: NDArray[np.int64],
    cols: int,
    group_cols: int,
) -> None:
    """Every tile of out float32[w, rows * cols, 1024] as the ordered sum of its tile products. Items: these tiles.

    weights: float32[w or 1, tiles, 1024]. `nonzero` are the ascending flat positions of its elements that are not zero;
    those of tile n (counted over all w) stand at nonzero_begin[n]..nonzero_begin[n + 1].
    acts: the operand of `cols` tiles a row; `finite` [w or 1, source tiles] marks its source.
    terms: [groups, rows + 1]; the products of output row r in column group g = column // group_cols are number
    terms[g, r]..terms[g, r + 1] in term_weight (weight tile) and term_row (row of tiles in acts).
    """
    rows = terms.shape[1] - 1
    source, index, pad_value, _ = acts
    pad_is_finite = abs(pad_value) < np.float32(np.inf)
    all_weights = weights.reshape(weights.size)
    scratch = np.empty(TILE, np.float32)
    line = np.empty(EDGE, np.float32)
    for item in range(start, stop):
        entry = item // (rows * cols)
        tile = item - entry * rows * cols
        row = tile // cols
        column = tile - row * cols
        act_entry = entry if source.shape[0] > 1 else 0
        weight_entry = entry if weights.shape[0] > 1 else 0
        target = out[entry, tile]
        for k in range(TILE):
            target[k] = np.float32(0)
        group = column // group_cols
        for term in range(terms[group, row], terms[group, row + 1]):
            position = term_row[term] * cols + column
            at = index[position]
            b = fetch_tile(acts, entry, position, scratch)
            if pad_is_finite if at < 0 else finite[act_entry, at]:
                number = weight_entry * weights.shape[1] + term_weight[term]
                positions = nonzero[nonzero_begin[number] : nonzero_begin[number + 1]]
                add_sparse_tile_product(target, positions, number * TILE, all_weights, b, line)
            else:
                add_tile_product(target, weights[weight_entry, term_weight[term]], b, line)
