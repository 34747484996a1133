"""The two-operand element-wise ops, tile by tile (OPS 5, 6.4)."""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    TILE,
    Operand,
    Tensor,
    Tile,
    blank_tile,
    expect_tile,
    fetch_tile,
    is_same,
    relu_tile,
    tile_at,
)

# Codes of the operations; only that they differ counts.
ADD: Final = 0
SUBTRACT: Final = 1
MULTIPLY: Final = 2
MAXIMUM: Final = 3
SCALE_SHIFT: Final = 4  # quantization, requantization: a * b + zero_point
SHIFT_SCALE: Final = 5  # dequantization: (a + -zero_point) * b


@helper
def multiply(a: np.float32, b: np.float32) -> np.float32:
    """Return a * b, but +0 if either is +0, even against infinity and NaN; -0 is not special (OPS 5)."""
    a_is_zero = a == np.float32(0) and not np.signbit(a)
    b_is_zero = b == np.float32(0) and not np.signbit(b)
    if a_is_zero or b_is_zero:
        return np.float32(0)
    return a * b


@helper
def combine(code: int, out: Tile, a: Tile, b: Tile, zero_point: np.float32) -> None:
    """Compute out = a OP b for the 1024 elements of one tile; `code` names the operation, `zero_point` is that of the
    quantizations (SCALE_SHIFT, SHIFT_SCALE)."""
    if code == ADD:
        for k in range(TILE):
            out[k] = a[k] + b[k]
    elif code == SUBTRACT:
        for k in range(TILE):
            out[k] = a[k] - b[k]
    elif code == MULTIPLY:
        for k in range(TILE):
            out[k] = multiply(a[k], b[k])
    elif code == MAXIMUM:
        for k in range(TILE):
            out[k] = a[k] if a[k] > b[k] else b[k]  # b where either is NaN and for zeros of either sign
    elif code == SCALE_SHIFT:
        for k in range(TILE):
            out[k] = multiply(a[k], b[k]) + zero_point
    else:
        for k in range(TILE):
            out[k] = multiply(a[k] + -zero_point, b[k])


@kernel
def binary_tiles(
    start: int,
    stop: int,
    out: Tensor,
    a: Operand,
    b: Operand,
    operation: tuple[int, np.float32],
    dims: tuple[int, int],
    relu: tuple[int, np.float32],
) -> None:
    """Compute out = a OP b, multiplied by 0 outside `dims` (rows, columns of a tile), then relu, for tiles start to
    stop - 1 of out, float32[w, n, 1024], counted over all w.

    `operation`: its code and zero point; `relu`: the code and threshold of `relu_tile`. `a` may be read from `out`
    itself, tile by tile.
    """
    (code, zero_point) = operation
    (height, width) = dims
    (relu_code, threshold) = relu
    tiles = out.shape[1]
    scratch_a = np.empty(TILE, np.float32)
    scratch_b = np.empty(TILE, np.float32)
    for index in claim_items(start, stop):
        entry = index // tiles
        tile = index - entry * tiles
        if tile + 1 < tiles:
            expect_tile(tile_at(out, entry, tile + 1), 0, 1)
        to = out[entry, tile]
        first = fetch_tile(a, entry, tile, scratch_a)
        if is_same(tile_at(a[0], 0, 0), tile_at(out, 0, 0)):  # a loop that reads and writes one tile is not vector code
            for k in range(TILE):
                scratch_a[k] = first[k]
            first = scratch_a
        combine(code, to, first, fetch_tile(b, entry, tile, scratch_b), zero_point)
        if height < 32 or width < 32:
            blank_tile(to, height, width)
        relu_tile(tile_at(out, entry, tile), relu_code, threshold)
