"""Tiles as rows of 1024 datums, the shape that kernels take them in."""

from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import InternalError

T = TypeVar("T", bound=np.generic)

TILE: Final = TILE_ELEMENTS


def as_rows(tiles: NDArray[T]) -> NDArray[T]:
    """Return [n, 32, 32] datums as [n, 1024], or [n, 32, 2] exponents as [n, 64]: the same memory. Raises InternalError
    for what is not C-contiguous: results that are written to a copy would be lost."""
    if not tiles.flags.c_contiguous:
        raise InternalError(f"an image of {tiles.shape} is not C-contiguous")
    return tiles.reshape(len(tiles), prod(tiles.shape[1:]))


def none(kind: type[Any]) -> NDArray[Any]:
    """Return an image of no tiles, for a parameter that a call does not use."""
    return np.empty((0, TILE), dtype=kind)
