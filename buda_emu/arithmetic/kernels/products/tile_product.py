"""Products of two tiles: the dense one (OPS 6.1), and those of identity matmul and depthwise, in which each product and
each sum is rounded on its own (OPS 6.2, 6.3).

The dense product adds a term D to the accumulator. D is built from eight partial sums: lane l sums a[i][8q + l] * b[8q
+ l][j] over q = 0..3 in fused multiply-adds, and D = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)).
`add_dense_product` in numpy is its definition, and the name by which kernels call its vector code
(`intrinsics/dense_product.py`).

In the others the sum over k of one element starts at +0 and runs upward in k; it is then added to the accumulator once.
The loops run over the columns j inside k: other elements, so the same bits. Nothing there may be contracted into fused
multiply-adds.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.fma import fma_f32
from buda_emu.arithmetic.kernels.tiles.tile_memory import EDGE, TILE, Operand, Tensor, Tile, entry_in, fetch_tile


@helper
def add_tile_product(accumulator: Tile, a: Tile, b: Tile, line: Tile, skip: bool) -> None:
    """Compute accumulator += a x b for tiles of 1024; each product and each sum is rounded. `line` is float32[32] to
    work in. `skip`: rows of `a` that are all zeros are left out, which changes no bit for a finite `b` and an
    accumulator without -0.

    Eight steps of k at a time keep the sums in registers, in the order of one at a time.
    """
    for i in range(EDGE):
        if skip:
            zero = True
            for k in range(EDGE):
                zero &= a[i * EDGE + k] == np.float32(0)
            if zero:
                continue
        for j in range(EDGE):
            line[j] = np.float32(0)
        for k in range(0, EDGE, 8):
            at = i * EDGE + k
            a0 = a[at]
            a1 = a[at + 1]
            a2 = a[at + 2]
            a3 = a[at + 3]
            a4 = a[at + 4]
            a5 = a[at + 5]
            a6 = a[at + 6]
            a7 = a[at + 7]
            for j in range(EDGE):
                s = line[j]
                s += a0 * b[k * EDGE + j]
                s += a1 * b[(k + 1) * EDGE + j]
                s += a2 * b[(k + 2) * EDGE + j]
                s += a3 * b[(k + 3) * EDGE + j]
                s += a4 * b[(k + 4) * EDGE + j]
                s += a5 * b[(k + 5) * EDGE + j]
                s += a6 * b[(k + 6) * EDGE + j]
                s += a7 * b[(k + 7) * EDGE + j]
                line[j] = s
        for j in range(EDGE):
            accumulator[i * EDGE + j] += line[j]


# The next two leave out zeros of `a`, for a finite `b` and an accumulator without -0. These would add zeros to sums
# that begin with +0, and change nothing but the sign of a sum of zero; and a zero of either sign leaves such an
# accumulator as it is. So the bits are those of `add_tile_product`.


@helper
def add_row_product(accumulator: Tile, columns: NDArray[np.int64], factors: Tile, b: Tile) -> None:
    """Compute accumulator += a x b, where row i of a holds factors[i] in column columns[i] and zeros elsewhere; `b` is
    finite, the accumulator without -0."""
    for i in range(EDGE):
        factor = factors[i]
        k = columns[i] * EDGE
        for j in range(EDGE):
            accumulator[i * EDGE + j] += factor * b[k + j]


@helper
def add_sparse_tile_product(
    accumulator: Tile, positions: NDArray[np.int64], first: int, elements: Tile, b: Tile, line: Tile
) -> None:
    """Compute accumulator += a x b, where a is the tile that begins at elements[first], and `positions` are the
    ascending places in `elements` of its elements that are not zero; `b` is finite, the accumulator without -0. `line`
    is float32[32] to work in."""
    n = 0
    count = positions.shape[0]
    while n < count:
        i = (positions[n] - first) // EDGE
        end = first + (i + 1) * EDGE
        for j in range(EDGE):
            line[j] = np.float32(0)
        while n < count and positions[n] < end:
            factor = elements[positions[n]]
            k = (positions[n] - first) % EDGE * EDGE
            for j in range(EDGE):
                line[j] += factor * b[k + j]
            n += 1
        for j in range(EDGE):
            accumulator[i * EDGE + j] += line[j]


@kernel
def depthwise_tiles(
    start: int,
    stop: int,
    out: Tensor,
    in0: Operand,
    in1: Operand,
    finite: NDArray[np.bool_],
    size: tuple[int, int, int],
) -> None:
    """Compute out[t][r][c] = sum over k of in0[t][r][c + k * cols] x in1[t][k][c] (OPS 6.3) for the result tiles start
    to stop - 1, counted over all w.

    out: float32[w, t * rows * cols, 1024]; in0: [t, rows, kernel_size * cols]; in1: [t, kernel_size, cols]. finite:
    bool[w or 1, source tiles] marks those of in1's source that have neither infinity nor NaN
    (`products.sparse.mark_finite_tiles`). size: rows, cols, kernel_size.
    """
    rows, cols, kernel_size = size
    tiles = out.shape[1]
    scratch0 = np.empty(TILE, np.float32)
    scratch1 = np.empty(TILE, np.float32)
    line = np.empty(EDGE, np.float32)
    for index in claim_items(start, stop):
        entry = index // tiles
        tile = index - entry * tiles
        row = tile // cols
        c = tile - row * cols
        t = row // rows
        target = out[entry, tile]
        for i in range(TILE):
            target[i] = np.float32(0)
        for k in range(kernel_size):
            a = fetch_tile(in0, entry, (row * kernel_size + k) * cols + c, scratch0)
            position = (t * kernel_size + k) * cols + c
            b = fetch_tile(in1, entry, position, scratch1)
            at = in1[1][position]
            skip = bool(at >= 0 and finite[entry_in(finite, entry), at])
            add_tile_product(target, a, b, line, skip)


Tree: TypeAlias = "int | tuple[Tree, Tree]"
LANE_TREE: Final[Tree] = (((0, 4), (2, 6)), ((1, 5), (3, 7)))  # OPS 6.1
LANES: Final = 8  # of the reference, each of which sums every eighth product (OPS 6.1)


def dense_product(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return D, the term that one tile product adds (OPS 6.1), in numpy: float32[..., 32, 32] each, broadcasting. It is
    the definition."""

    def total(node: Tree) -> NDArray[np.float32]:
        """Return the sum of a node of LANE_TREE: of one lane, or the sum of its left half plus that of its right
        half."""
        if isinstance(node, tuple):
            return total(node[0]) + total(node[1])
        lane = np.float32(0)
        for k in range(node, EDGE, LANES):
            lane = fma_f32(a[..., :, k, None], b[..., None, k, :], lane)
        return np.asarray(lane)

    with np.errstate(all="ignore"):
        return total(LANE_TREE)


def add_dense_product(accumulator: Any, a: Any, b: Any, parking: Any, soon: Any, part: int, parts: int) -> None:
    """Add the tile product D(a, b) of OPS 6.1 (`dense_product`) to the accumulator. These three, `parking` and `soon`
    are tiles from `tile_at`; `parking` is memory to work in and overwritten.

    For speed: `b`, `parking` and `accumulator` should begin at a cache line, as vectors that straddle two cost a
    quarter of the speed, and part number `part` of `parts` of the tile `soon` is fetched into the second level of cache
    meanwhile.
    """
    del parking, soon, part, parts  # matters of speed
    square = (EDGE, EDGE)
    accumulator += dense_product(a.reshape(square), b.reshape(square)).reshape(TILE)
