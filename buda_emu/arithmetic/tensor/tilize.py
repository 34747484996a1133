"""Row-major tensors to tiles and back (LAYOUT 2)."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.blocking import FULL_TILE
from buda_emu.support.errors import HostError

F32 = NDArray[np.float32]
TILE_SIDE: Final = 32


def tilize(array: F32, tile_dim: tuple[int, int] = FULL_TILE, megarow: bool = False) -> F32:
    """Return float32[w, t, rows, cols] as a new float32[w, t, R, C, 32, 32]; rows = R * tile height, cols = C * tile
    width, smaller tiles are filled up with zeros. `megarow`: tiles hold consecutive runs of the row-major data. Raises
    HostError for another type or shape."""
    if array.ndim != 4 or array.dtype != np.float32:
        raise HostError(f"expected a float32 tensor of 4 dimensions, got {array.dtype} of {array.ndim}")
    w, t, rows, cols = array.shape
    height, width = tile_dim
    if rows % height or cols % width:
        raise HostError(f"{rows}x{cols} elements do not divide into tiles of {height}x{width}")
    down = rows // height
    across = cols // width
    if megarow:
        return _padded_runs(array.reshape(w, t, down, across, height * width))
    part = array.reshape(w, t, down, height, across, width).swapaxes(3, 4)
    if tile_dim == FULL_TILE:
        return part.copy()
    tiles = np.zeros((w, t, down, across, TILE_SIDE, TILE_SIDE), np.float32)
    tiles[..., :height, :width] = part
    return tiles


def untilize(tiles: F32, tile_dim: tuple[int, int] = FULL_TILE, megarow: bool = False) -> F32:
    """Return float32[w, t, R, C, 32, 32] as a new float32[w, t, R * height, C * width], the inverse of `tilize`."""
    w, t, down, across = tiles.shape[:4]
    height, width = tile_dim
    if megarow:
        runs = tiles.reshape(w, t, down, across, TILE_SIDE * TILE_SIDE)[..., : height * width]
        return runs.copy().reshape(w, t, down * height, across * width)
    part = tiles[..., :height, :width].swapaxes(3, 4)
    return part.copy().reshape(w, t, down * height, across * width)


def _padded_runs(runs: F32) -> F32:
    """Return runs float32[w, t, R, C, n] as tiles whose first n datums are the run."""
    tiles = np.zeros((*runs.shape[:4], TILE_SIDE * TILE_SIDE), np.float32)
    tiles[..., : runs.shape[4]] = runs
    return tiles.reshape(*runs.shape[:4], TILE_SIDE, TILE_SIDE)
