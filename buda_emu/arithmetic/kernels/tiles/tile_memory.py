"""Whole tiles moved as memory: a little LLVM code (`intrinsics/loads_and_stores.py`) instead of array loops, which
numba is slow to compile.

A tile is named by `tile_at`: in a kernel its address, in Python a view of 1024 floats. An address does not keep an
array alive: take it of an argument of the kernel, or of its working tiles.
"""

from typing import Any, Final

import numpy as np

from buda_emu.spec.blocking import TILE_EDGE, TILE_ELEMENTS

EDGE: Final = TILE_EDGE
TILE: Final = TILE_ELEMENTS
CACHE_LINE: Final = 64  # bytes
WORKING_TILES: Final = 8
NO_RELU: Final = 0
RELU_FROM: Final = 1  # x where x >= threshold, else +0
RELU_WITHIN: Final = 2  # threshold where x >= threshold, else x where x >= 0, else +0


def tile_at(tiles: Any, entry: int, tile: int) -> Any:
    """Return tile number `tile` of entry `entry` of float32[w, n, 1024]; in a kernel its address."""
    return tiles[entry, tile]


def starts_cache_line(tile: Any) -> bool:
    """Return whether a tile begins at a cache line."""
    return tile.ctypes.data % CACHE_LINE == 0


def is_same(tile: Any, other: Any) -> bool:
    """Return whether both are one tile in memory."""
    return tile.ctypes.data == other.ctypes.data


def is_zero(tile: Any) -> bool:
    """Return whether all elements are zeros, of either sign."""
    return not tile.any()


def is_finite(tile: Any) -> bool:
    """Return whether a tile holds neither infinity nor NaN."""
    return bool(np.isfinite(tile).all())


def working_tiles() -> Any:
    """Return WORKING_TILES tiles of working memory, as float32[1, n, 1024] for `tile_at`; each begins at a cache line.
    In a kernel they lie on the stack, and only one such array can be made in a kernel."""
    return np.empty((1, WORKING_TILES, TILE), np.float32)


def expect_tile(tile: Any, part: int, parts: int) -> None:
    """Let part number `part` of `parts` of a tile be fetched into the second level of cache: a matter of speed."""


def copy_tile(target: Any, source: Any) -> None:
    """Copy every bit of the source to the target; they may not overlap."""
    target[:] = source


def add_tile(target: Any, first: Any, second: Any) -> None:
    """Write first + second to the target; they may not overlap."""
    target[:] = first + second


def add_row(target: Any, first: Any, second: Any) -> None:
    """Write first + row 0 of second, in every row, to the target; they may not overlap."""
    target[:] = (first.reshape(EDGE, EDGE) + second[:EDGE]).reshape(TILE)


def relu_tile(tile: Any, relu: int, threshold: Any) -> None:
    """Apply relu in place (OPS 5, 6.13): NO_RELU, RELU_FROM or RELU_WITHIN; NaN becomes 0, and -0 is not below 0."""
    if relu == RELU_FROM:
        tile[:] = np.where(tile >= threshold, tile, np.float32(0))
    elif relu == RELU_WITHIN:
        tile[:] = np.where(tile >= threshold, threshold, np.where(tile >= 0, tile, np.float32(0)))


def fill_tile(target: Any, value: Any) -> None:
    """Write the value (np.float32) to every element of the target."""
    target[:] = value


def transpose_tile(target: Any, source: Any) -> None:
    """Write target[j][i] = source[i][j], every bit; they may not overlap."""
    target[:] = source.reshape(EDGE, EDGE).T.reshape(TILE)
