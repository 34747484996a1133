"""Places of the tiles of a tensor after the TMs of its reader: for each tile the producer's core and the place there.

A tile is one integer: (core + 1) * CORE + place + 1, core being row * columns + column of the producer's grid, place
its number in the core's output buffer, in the order in which the core writes. Padding is 0: core -1 and place -1.
"""

from math import gcd, prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from buda_emu.netlist.model import Pad, Tm
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.spec.blocking import Blocking, Shape
from buda_emu.support.errors import UnsupportedError

Tiles: TypeAlias = npt.NDArray[np.int64]

CORE = 1 << 40
"""The codes of a core begin at (core + 1) * CORE + 1, which is its place 0. Places of any core fit 40 bits."""

MOST_TILES: Final = 1 << 22
"""Limit for the tiles of one operand after its TMs: sixteen times what the largest public netlist has."""


def within_bounds(tiles: int, limit: int = MOST_TILES) -> None:
    """Raise UnsupportedError for more tiles than `limit`, before memory is taken for them."""
    if tiles > limit:
        raise UnsupportedError(f"{tiles:,} tiles are read: pipes are made of no more than {limit:,}")


def places(tiles: Tiles) -> Tiles:
    """Return the number of each tile in its core's buffer; -1 for padding."""
    return (tiles & (CORE - 1)) - 1


def cores(tiles: Tiles) -> Tiles:
    """Return the producer's core of each tile; -1 for padding."""
    return (tiles >> 40) - 1


def divides(a: int, b: int) -> bool:
    """Return whether one of the two is a multiple of the other."""
    return gcd(a, b) in (a, b)


def written_tiles(blocking: Blocking) -> Tiles:
    """Return the codes of all tiles of a tensor [t, rows, columns] as its producer's cores write them (OPS 2)."""
    (grid_r, grid_c) = blocking.grid_size
    (m, n) = blocking.mblock
    (r, c) = blocking.ublock
    t = blocking.t
    ublock = r * c
    within_bounds(t * grid_r * grid_c * m * n * ublock)
    if blocking.ublock_order == "r":
        row_step = n * ublock
        column_step = ublock
    else:
        row_step = ublock
        column_step = m * ublock

    def along(*parts: tuple[int, int]) -> Tiles:
        """Return the codes along an axis that is divided into nested parts. `parts`: the number of parts and the
        distance of their codes at each level, the outermost level first."""
        codes = np.zeros(1, np.int64)
        for count, step in parts:
            codes = np.add.outer(codes, np.arange(count, dtype=np.int64) * step).reshape(-1)
        return codes

    rows = along((grid_r, grid_c * CORE), (m, row_step), (r, c)) + (CORE + 1)
    columns = along((grid_c, CORE), (n, column_step), (c, 1))
    return along((t, m * n * ublock))[:, None, None] + rows[:, None] + columns


class StackFacts:
    """The facts of a tensor under its TMs that the vendor's checks of stacked pieces use: its `shape` (t, rows,
    columns) after them, the `names` of the TMs, by how many pieces it is `stacked`, `sliced` and `padded` along rows
    and columns.

    `buffered` is the number of mblocks of t that the producer's output buffer holds at a time, double buffering not
    counted."""

    def __init__(self, shape: Shape, buffered: int) -> None:
        """Begin without TMs. Raises RefusedError for a buffer that does not go with t."""
        self.t = shape[0]
        self.shape: Shape = shape
        self.buffered = buffered
        self.names: list[str] = []
        self.stacked = [1, 1]  # rows, columns
        self.sliced = [1, 1]
        self.padded = [0, 0]
        self.row_major_stack = False
        self.reaches_several_t = False
        self._open_slices = 1
        if not divides(buffered, self.t):
            raise RefusedError(
                "V080",
                f"its output buffer holds {buffered} mblocks, t is {self.t}: neither divides the other",
                "choose buf_size_mb so that half of it divides t, or t divides it",
            )

    def apply(self, tm: Tm) -> None:
        """Apply one TM (OPS 7). Raises RefusedError for a TM that the vendor's tile maps cannot express."""
        self.names.append(tm.name)
        t, rows, columns = self.shape
        if tm.name == "broadcast":
            self._broadcast(str(tm.args[0]), int(tm.args[1]))
        elif tm.name == "transpose":
            self.shape = (t, columns, rows)
        elif tm.name == "pad":
            self._pad(int(tm.args[0]), int(tm.args[1]))
        elif tm.name in ("hslice", "vslice"):
            self._slice(1 if tm.name == "hslice" else 0, int(tm.args[0]))
        elif tm.name in ("hstack", "vstack"):
            self._stack(1 if tm.name == "hstack" else 0, int(tm.args[0]))
        else:
            raise RefusedError("V179", f"TM {tm.name} moves no tiles between cores")

    def _pad(self, rows: int, columns: int) -> None:
        """Add tile rows and columns of padding at the end."""
        t, inner_rows, inner_columns = self.shape
        self.shape = (t, inner_rows + rows, inner_columns + columns)
        self.padded = [rows, columns]

    def _broadcast(self, axis: str, factor: int) -> None:
        """Repeat the tensor along axis "z", "r" or "c". Raises RefusedError along z for a tensor with t above 1."""
        t, rows, columns = self.shape
        if axis == "z":
            if factor != 1 and t > 1:
                raise RefusedError(
                    "V320",
                    f"broadcast: {{z: {factor}}} of a tensor with t {t}",
                    "only a tensor with t 1 can be repeated along z on its way between cores",
                )
            self.sliced[0] *= factor
            self._open_slices *= factor
            self.shape = (t * factor, rows, columns)
        elif axis == "r":
            self.shape = (t, rows * factor, columns)
        else:
            self.shape = (t, rows, columns * factor)

    def _slice(self, axis: int, factor: int) -> None:
        """Cut rows (axis 0) or columns (axis 1) into `factor` pieces that follow each other along t. Raises
        RefusedError if they do not divide."""
        t, rows, columns = self.shape
        size = (rows, columns)[axis]
        if size % factor:
            raise RefusedError("V179", f"{'vh'[axis]}slice: {factor} does not divide {size} tiles")
        if axis == 0:
            self.shape = (t * factor, rows // factor, columns)
        else:
            self.shape = (t * factor, rows, columns // factor)
        self.sliced[axis] *= factor
        self._open_slices *= factor

    def _stack(self, axis: int, factor: int) -> None:
        """Put `factor` slices of t below (axis 0) or beside (axis 1) each other, and note the order of stacks and
        whether they join slices of several t. Raises RefusedError if `factor` does not divide t."""
        t, rows, columns = self.shape
        if t % factor:
            raise RefusedError("V179", f"{'vh'[axis]}stack: {factor} does not divide t {t}")
        if self._open_slices % factor == 0:
            self._open_slices //= factor
        else:
            self._open_slices = 1
            self.reaches_several_t = True
        if axis == 0:
            self.row_major_stack = self.stacked[1] > 1
            self.shape = (t // factor, rows * factor, columns)
        else:
            self.row_major_stack = self.stacked[0] == 1
            self.shape = (t // factor, rows, columns * factor)
        self.stacked[axis] *= factor

    @property
    def needs_phases(self) -> bool:
        """Return whether a stack joins more slices of t than the producer's buffer holds at a time, so that its pieces
        come in phases."""
        factor = self.stacked[0] * self.stacked[1]
        fits_buffer = factor == 1 or self.buffered % factor == 0 or self.buffered % self.t == 0
        return self.reaches_several_t and not fits_buffer


class SourceMap(StackFacts):
    """A tensor under its TMs, tile by tile, with the facts that the vendor's checks use. `producer` is the blocking of
    the op or queue that holds the tensor."""

    def __init__(self, blocking: Blocking, buffered: int) -> None:
        """Begin without TMs, with the tiles as the producer writes them. Raises RefusedError for a buffer that does not
        go with t."""
        self.producer = blocking
        self.tiles = written_tiles(blocking)
        t, rows, columns = self.tiles.shape
        super().__init__((t, rows, columns), buffered)

    @property
    def mblock_tiles(self) -> int:
        """Return the tiles of one mblock of the producer."""
        return self.producer.block_rows * self.producer.block_cols

    @property
    def buffer_tiles(self) -> int:
        """Return the tiles that a producer's core holds at a time."""
        return self.mblock_tiles * self.buffered

    def unpad(self, pad: Pad) -> None:
        """Drop tile rows and columns at the end."""
        t, rows, columns = self.shape
        self.tiles = self.tiles[:, : rows - pad.rt, : columns - pad.ct]
        self.shape = (t, rows - pad.rt, columns - pad.ct)

    def pad(self, rows: int, columns: int) -> None:
        """Add tile rows and columns of padding at the end. Raises UnsupportedError for too many tiles."""
        self._pad(rows, columns)
        within_bounds(prod(self.shape))
        self.tiles = np.pad(self.tiles, ((0, 0), (0, rows), (0, columns)))

    def apply(self, tm: Tm) -> None:
        """Apply one TM (OPS 7). Raises RefusedError for a TM that the vendor's tile maps cannot express,
        UnsupportedError for too many tiles."""
        super().apply(tm)
        within_bounds(prod(self.shape))
        self.tiles = rearrange(self.tiles, tm)


def rearrange(tiles: Tiles, tm: Tm) -> Tiles:
    """Return the tiles of a tensor, an array of [t, rows, columns], as a TM that moves whole tiles arranges them
    (OPS 7)."""
    t, rows, columns = tiles.shape
    if tm.name == "transpose":
        return tiles.swapaxes(1, 2)
    if tm.name == "broadcast":
        axis = str(tm.args[0])
        times = int(tm.args[1])
        return np.tile(tiles, [times if name == axis else 1 for name in "zrc"])
    if tm.name == "pad":
        return np.pad(tiles, ((0, 0), (0, int(tm.args[0])), (0, int(tm.args[1]))))
    factor = int(tm.args[0])
    if tm.name == "vslice":
        return tiles.reshape(t * factor, rows // factor, columns)
    if tm.name == "hslice":
        cut = tiles.reshape(t, rows, factor, columns // factor)
        return cut.swapaxes(1, 2).reshape(t * factor, rows, columns // factor)
    if tm.name == "vstack":
        return tiles.reshape(t // factor, rows * factor, columns)
    pieces = tiles.reshape(t // factor, factor, rows, columns).swapaxes(1, 2)
    return pieces.reshape(t // factor, rows, columns * factor)
