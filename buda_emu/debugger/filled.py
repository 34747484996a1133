"""What a user writes into a tensor, as all of its elements."""

from typing import Any

import numpy as np

from buda_emu.errors import HostError
from buda_emu.netlist.model import Op, Queue


def filled(
    values: object, shape: tuple[int, int, int], before: Any, tile: tuple[int, int, int] | None, item: Queue | Op
) -> Any:
    """All elements [t, rows, columns], of which `values` may give one tile alone."""
    given: Any = np.asarray(values)
    if tile is None:
        if given.ndim and given.size != int(np.prod(shape)):
            raise HostError(f"{item.name} takes {' x '.join(map(str, shape))} elements, not {given.shape}")
        return np.array(np.broadcast_to(given, shape) if not given.ndim else given.reshape(shape))
    height, width = item.blocking.tile_dim
    t, row, column = tile
    whole = np.array(before)
    rows, columns = slice(row * height, (row + 1) * height), slice(column * width, (column + 1) * width)
    if not (0 <= t < shape[0] and 0 <= row * height < shape[1] and 0 <= column * width < shape[2]):
        raise HostError(f"{item.name} has no tile {t},{row},{column}")
    if given.ndim and given.size != height * width:
        raise HostError(f"a tile has {height} x {width} elements, not {given.shape}")
    whole[t, rows, columns] = given if not given.ndim else given.reshape(height, width)
    return whole
