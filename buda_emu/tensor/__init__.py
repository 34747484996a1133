"""Tiles and layout: tilize and untilize, the byte image of queue entries, and TMs folded into one tile map."""

from buda_emu.spec.host_shape import expand_shape, shape_for_dim
from buda_emu.tensor.host import prestride, stack_entries
from buda_emu.tensor.layout import EntryLayout, pack_entry, tile_order, unpack_entry
from buda_emu.tensor.tilemap import TileMap, TmError, tile_broadcast
from buda_emu.tensor.tilize import tilize, untilize

__all__ = [
    "EntryLayout",
    "TileMap",
    "TmError",
    "expand_shape",
    "pack_entry",
    "prestride",
    "shape_for_dim",
    "stack_entries",
    "tile_broadcast",
    "tile_order",
    "tilize",
    "unpack_entry",
    "untilize",
]
