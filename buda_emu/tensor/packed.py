"""Entries in the bytes of their format, as arrays by reference."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import BudaError, HostError
from buda_emu.formats.codecs import PACKED_AS
from buda_emu.formats.packing import unpack_tiles
from buda_emu.spec.blocking import Blocking
from buda_emu.tensor.boxes import Box
from buda_emu.tensor.layout import EntryLayout, tile_order
from buda_emu.tensor.mapped import giving_back
from buda_emu.tensor.referenced import Referenced
from buda_emu.tensor.tilize import TILE_SIDE, untilize


def pushed_layout(df: str, blocking: Blocking, alignment: int) -> EntryLayout:
    """Of tiles whose values become these very tiles when they are pushed into a queue of that format: pushed as what
    the packer understood, they end as the same bytes."""
    return EntryLayout(PACKED_AS.get(df, df), blocking, "tilized", alignment)


def packed_tiles(
    data: NDArray[np.uint8],
    layout: EntryLayout,
    origin: str,
    check: Callable[[], None] = lambda: None,
    error: Callable[[str], BudaError] = HostError,
) -> Referenced:
    """Tiles (LAYOUT 3.1) as float32 [entries, t, rows, cols], by reference to their bytes, those of all entries of a
    core after each other: uint8[size]; of no format of words. `check` is called before and after they are read and
    raises if their file is not what it was, `error` makes the error of tiles whose headers do not state their size."""
    blocking = layout.blocking
    order = tile_order(blocking)
    t, rows, columns = blocking.shape
    height, width = blocking.tile_dim
    places = np.empty(order.size, np.int64)
    places[order.reshape(-1)] = np.arange(order.size)
    places = places.reshape(t, rows, columns)
    held = data.reshape(blocking.cells, -1, blocking.tiles_per_core, layout.entry_bytes // blocking.tiles_per_core)

    def read(box: Box) -> NDArray[Any]:
        """Whole tiles around the box, then the box of them."""
        check()
        entries, slices, down, across = box
        first, left = down.start // height, across.start // width
        tiles = places[slices, first : -(-down.stop // height), left : -(-across.stop // width)]
        cells, at = np.divmod(tiles, blocking.tiles_per_core)
        count = entries.stop - entries.start
        found = np.empty((count, *tiles.shape, TILE_SIDE, TILE_SIDE), np.float32)
        for number in range(count):
            image = held[cells, entries.start + number, at].reshape(tiles.size, -1)
            try:
                with np.errstate(all="ignore"):
                    own = unpack_tiles(layout.format, image, blocking.tile_dim, layout.alignment)
            except HostError as wrong:
                check()
                raise error(f"entry {entries.start + number}: {wrong}") from None
            found[number] = own.reshape(found.shape[1:])
        check()
        part = untilize(found, blocking.tile_dim)
        top, edge = down.start - first * height, across.start - left * width
        return part[:, :, top : top + down.stop - down.start, edge : edge + across.stop - across.start]

    def packed() -> NDArray[np.uint8]:
        check()
        return data

    shape = (held.shape[1], *blocking.element_shape)
    found = Referenced(
        shape,
        np.float32,
        read,
        (data.__array_interface__["data"][0], shape),
        origin,
        lambda: np.inf,
        giving_back(data),
    )
    found.packed = packed
    return found
