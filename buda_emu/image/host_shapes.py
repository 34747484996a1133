"""The rules of shapes between host and queue (FRONTEND 7, NETLIST 8), without the data.

Each function gives what is wrong, "" where nothing is: opening an image asks them of the shapes that it states, a
transform of the shapes that it is given.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from buda_emu.image.metadata import Transform
from buda_emu.netlist.model import Queue

TILE: Final = 32
_COLUMNS: Final = (-1, 3)
_ROWS: Final = (-2, 2)


def unstated(transform: Transform, field: str) -> str:
    """Whether a transform lacks a shape that its type needs."""
    if getattr(transform, field):
        return ""
    return f"the image states no {field} for its runtime transform {transform.type}"


def unlike_entries(elements: int, shape: Sequence[int]) -> str:
    """Whether elements do not divide into entries of another shape, whose first number, a batch, does not count."""
    if elements % prod(shape[1:]) == 0:
        return ""
    return f"the image states shape {list(shape)} for a tensor of {elements} elements"


def filling(
    shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]
) -> Iterator[tuple[int, int, bool]]:
    """What [w, z, r, c] lacks to whole tiles: axis, how many, and whether they are repeated instead of zeros."""
    height, width = tile_dim
    for axis, count, dims in ((3, -shape[3] % width, _COLUMNS), (2, -shape[2] % height, _ROWS)):
        if count:
            yield axis, count, any(dim in dims for dim in broadcast)


def unrepeatable(shape: Sequence[int], tile_dim: tuple[int, int], broadcast: Sequence[int]) -> str:
    """Whether rows or columns of [w, z, r, c] are to be repeated and are more than one."""
    for axis, _, repeated in filling(shape, tile_dim, broadcast):
        if repeated and shape[axis] != 1:
            return f"{shape[axis]} {'columns' if axis == 3 else 'rows'} cannot be repeated over a tile, only 1 can"
    return ""


def unequal_strides(transform: Transform) -> str:
    """NETLIST 8: one stride for both directions."""
    strides = transform.stride_height, transform.stride_width
    if (strides[0] or 0) > 0 and strides[0] == strides[1]:
        return ""
    return f"Prestride with stride {strides[0]}x{strides[1]}: both must be equal, and 1 or more"


def undivided_indices(width: int, queue: Queue) -> str:
    """Whether so many indices, filled up to whole tiles, have no place in the queue of an embedding."""
    rows = tile_rows(queue)
    if width % (rows * TILE) == 0:
        return ""
    return f"{width} indices do not divide into the {rows} rows of tiles of queue {queue.name}"


def tile_rows(queue: Queue) -> int:
    """Rows of tiles of a queue, over all of its cores."""
    blocking = queue.blocking
    return blocking.grid_size[0] * blocking.mblock[0] * blocking.ublock[0]


def extent_of(cut: Sequence[int]) -> tuple[int, int, int]:
    """t, rows and columns of a host's shape, whose first number, a batch, does not count."""
    rows, columns = (1, 1, *cut[1:])[-2:] if len(cut) > 1 else (1, 1)
    return prod(cut[1:-2]), rows, columns


def unlike_cut(have: Sequence[int], cut: Sequence[int], shape: Sequence[int]) -> str:
    """Whether [entries, t, rows, columns] cannot be cut to the rows and columns of `cut` and be given a shape."""
    t, rows, columns = extent_of(cut)
    if t > have[1] or rows > have[2] or columns > have[3]:
        return f"shape {list(have)} cannot be narrowed to {list(cut)}"
    elements = t * rows * columns
    if elements != prod(shape[1:]):
        return f"the image states shape {list(shape)} for entries of {elements} elements"
    return ""


def unlike_parts(shapes: Sequence[Sequence[int]], dim: int) -> str:
    """Whether shapes [entries, t, rows, columns] cannot be concatenated along a dimension."""
    axis = dim + 4 if dim < 0 else dim
    rest = {tuple(size for place, size in enumerate(shape) if place != axis) for shape in shapes}
    return (
        ""
        if 0 <= axis < 4 and len(rest) == 1
        else f"{len(shapes)} outputs cannot be concatenated along dimension {dim}"
    )
