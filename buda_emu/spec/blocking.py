"""Division of a tensor into cores, mblocks, ublocks and tiles (OPS 2), the same for queues and ops."""

from buda_emu.support.records import dataclass

TILE_EDGE = 32  # rows and columns of a full tile (LAYOUT 2)
TILE_ELEMENTS = TILE_EDGE * TILE_EDGE
FULL_TILE = (TILE_EDGE, TILE_EDGE)
# NETLIST 1.3 tile_dim
LEGAL_TILE_DIMS = (FULL_TILE, (16, 32), (32, 16), (8, 32), (4, 32), (2, 32), (1, 32))

Shape = tuple[int, int, int]  # (t, tile rows, tile columns)


@dataclass(frozen=True, slots=True)
class Blocking:
    """Grid, t, mblock, ublock and tile dims of a queue or an op. All are in tiles except `tile_dim` (elements)."""

    grid_size: tuple[int, int] = (0, 0)
    t: int = -1
    mblock: tuple[int, int] = (-1, -1)
    ublock: tuple[int, int] = (-1, -1)
    ublock_order: str = ""
    tile_dim: tuple[int, int] = FULL_TILE

    @property
    def block_rows(self) -> int:
        """Return the tile rows that one core holds."""
        return self.mblock[0] * self.ublock[0]

    @property
    def block_cols(self) -> int:
        """Return the tile columns that one core holds."""
        return self.mblock[1] * self.ublock[1]

    @property
    def rows(self) -> int:
        """Return the tile rows of the whole tensor; `grid_transpose` never changes them (OPS 2)."""
        return self.grid_size[0] * self.block_rows

    @property
    def cols(self) -> int:
        """Return the tile columns of the whole tensor."""
        return self.grid_size[1] * self.block_cols

    @property
    def shape(self) -> Shape:
        """Return (t, tile rows, tile columns) of one entry."""
        return (self.t, self.rows, self.cols)

    @property
    def cells(self) -> int:
        """Return the number of grid cells: cores of an op, buffers of a queue."""
        return self.grid_size[0] * self.grid_size[1]

    @property
    def tiles_per_core(self) -> int:
        """Return the tiles of one entry in one grid cell."""
        return self.t * self.block_rows * self.block_cols

    @property
    def element_shape(self) -> tuple[int, int, int]:
        """Return (t, rows, columns) of one entry in elements."""
        return (self.t, self.rows * self.tile_dim[0], self.cols * self.tile_dim[1])
