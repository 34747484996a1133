"""Reductions of tiles: the maximum over rows, columns, whole tiles or z (OPS 6.7), and the k greatest values of a row
(OPS 6.11).
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE, Operand, Tensor, Tile, blank_tile, fetch_tile

# Dimensions that are reduced; only that the codes differ counts.
ROWS: Final = 0
COLUMNS: Final = 1
BOTH: Final = 2
Z: Final = 3


@helper
def greater(value: np.float32, best: np.float32) -> np.float32:
    """Return the value if it is greater than the best so far, else the best, also if either is NaN."""
    if value > best:
        return value
    return best


@helper
def _write_greatest(to: Tile, best: Tile, dim: int) -> None:
    """Write to the tile `to` the greatest values `best`, float32[32], of the columns of tiles: in row 0 for ROWS, in
    column 0 for COLUMNS (whose tiles were transposed), and for BOTH the greatest of all in element 0; zeros
    elsewhere."""
    for k in range(TILE):
        to[k] = np.float32(0)
    if dim == ROWS:
        for j in range(32):
            to[j] = best[j]
    elif dim == COLUMNS:
        for i in range(32):
            to[32 * i] = best[i]
    else:
        greatest = best[0]
        for j in range(1, 32):
            greatest = greater(best[j], greatest)
        to[0] = greatest


@kernel
def reduce_tiles(
    start: int, stop: int, out: Tensor, operand: Operand, bases: NDArray[np.int64], stride: int, count: int, dim: int
) -> None:
    """Write to tile i of out, float32[w, n, 1024], the maxima of the operand's tiles bases[i] + s * stride for s in
    0..count - 1, along `dim`; for tiles start to stop - 1, counted over all w (OPS 6.7).

    ROWS, COLUMNS, BOTH: NaN is ignored (all NaN: -inf), of equal values the first one met is kept, elements that are
    not results are 0. For COLUMNS the operand must be arranged with TRANSPOSE. Z: element by element, "the new value
    unless it is less", so a NaN replaces the value so far and the next value replaces the NaN.
    """
    tiles = out.shape[1]
    scratch = np.empty(TILE, np.float32)
    best = np.empty(32, np.float32)
    for index in claim_items(start, stop):
        entry = index // tiles
        tile = index - entry * tiles
        base = int(bases[tile])
        to = out[entry, tile]
        if dim == Z:
            for k in range(TILE):
                to[k] = np.float32(-np.inf)
            for step in range(count):
                data = fetch_tile(operand, entry, base + step * stride, scratch)
                for k in range(TILE):
                    to[k] = to[k] if data[k] < to[k] else data[k]
            continue
        for j in range(32):
            best[j] = np.float32(-np.inf)
        for step in range(count):
            data = fetch_tile(operand, entry, base + step * stride, scratch)
            for i in range(0, TILE, 256):  # eight rows at a time keep the values in registers
                for j in range(32):
                    value = greater(data[i + j], best[j])
                    value = greater(data[i + 32 + j], value)
                    value = greater(data[i + 64 + j], value)
                    value = greater(data[i + 96 + j], value)
                    value = greater(data[i + 128 + j], value)
                    value = greater(data[i + 160 + j], value)
                    value = greater(data[i + 192 + j], value)
                    best[j] = greater(data[i + 224 + j], value)
        _write_greatest(to, best, dim)


LANES: Final = 32  # rows of a tile
Columns: TypeAlias = NDArray[np.float32]  # [elements, LANES]


@helper
def _exchange_if(columns: Columns, i: int, j: int, lane: int, swap: bool) -> None:
    """Exchange elements i and j of a row, number `lane`, if `swap` is set. Both are written in any case: vector code
    has no branches."""
    first = columns[i, lane]
    second = columns[j, lane]
    columns[i, lane] = second if swap else first
    columns[j, lane] = first if swap else second


@helper
def run_network(values: Columns, indices: Columns, network: NDArray[np.int32]) -> None:
    """Apply the exchanges (i, j, largest, flip) of a sorting network, int32[steps, 4], to all 32 rows at once, in
    `values` and likewise in `indices`, [elements, 32] each.

    Elements i and j are exchanged if they are in the wrong order, which is ascending with `largest` (OPS 6.11 CE, also
    of equal ones); with `flip` they are exchanged if they are not.
    """
    for step in range(network.shape[0]):
        i = network[step, 0]
        j = network[step, 1]
        largest = network[step, 2] != 0
        flip = network[step, 3] != 0
        for lane in range(LANES):
            a = values[i, lane]
            b = values[j, lane]
            before = a
            after = b
            if largest:
                before = b
                after = a
            swap = (before > after) | ((a == b) & ((a < np.float32(0)) == largest))
            swap = swap != flip
            _exchange_if(values, i, j, lane, swap)
            _exchange_if(indices, i, j, lane, swap)


@helper
def index_number(x: np.float32) -> np.float32:
    """Return an index as an integer, truncated; what does not fit 32 bits becomes -2^31 as on x86 (OPS 6.11)."""
    limit = np.float32(2147483648)
    if not (x >= -limit and x < limit):
        return -limit
    return np.float32(np.trunc(x)) + np.float32(0)  # + 0: an integer has no negative zero


@kernel
def topk_rows(
    start: int,
    stop: int,
    out: Tensor,
    values: Operand,
    indices: Operand,
    network: NDArray[np.int32],
    choice: tuple[int, int, bool],
    dims: tuple[int, int],
) -> None:
    """Write the k greatest of each row of `values`, or with argmax the numbers that stand beside them in `indices`;
    each core sorts its own columns (OPS 6.11).

    network: the exchanges that sort one row, see `run_network`. choice: cores, k, argmax. out: float32[w, t * rows *
    cores * ceil(k / 32), 1024], multiplied by 0 outside `dims` (rows, columns of a tile). Items start to stop - 1 are
    computed, of w * t * rows * cores: for each row of tiles its cores.
    """
    (cores, k, argmax) = choice
    (height, width) = dims
    out_columns = (k + LANES - 1) // LANES
    tile_rows = out.shape[1] // (cores * out_columns)
    columns = values[1].shape[0] // (tile_rows * cores)
    n = columns * LANES
    v = np.empty((n, LANES), np.float32)
    x = np.empty((n, LANES), np.float32)
    scratch = np.empty(LANES * LANES, np.float32)
    for index in claim_items(start, stop):
        entry = index // (tile_rows * cores)
        group = index - entry * tile_rows * cores  # (row of tiles, core)
        for column in range(columns):
            tile = fetch_tile(values, entry, group * columns + column, scratch)
            for i in range(LANES):
                for j in range(LANES):
                    v[column * LANES + j, i] = tile[i * LANES + j]
            tile = fetch_tile(indices, entry, group * columns + column, scratch)
            for i in range(LANES):
                for j in range(LANES):
                    x[column * LANES + j, i] = index_number(tile[i * LANES + j])
        run_network(v, x, network)
        answer = v
        if argmax:
            answer = x
        for column in range(out_columns):
            to = out[entry, group * out_columns + column]
            for i in range(LANES):
                for j in range(LANES):
                    n_th = column * LANES + j
                    to[i * LANES + j] = answer[n_th, i] if n_th < k else np.float32(0)
            if height < 32 or width < 32:
                blank_tile(to, height, width)
