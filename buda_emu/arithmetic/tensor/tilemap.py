"""Tensor manipulations folded into one map from result tiles to source tiles (OPS 7).

A TM moves whole tiles, so a chain of them is one index array: it is made when a graph is planned, and kernels read
their operands through it. The contents of tiles change only in `pad` (new tiles) and in `tile_broadcast`, which is
apart.
"""

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.blocking import Shape
from buda_emu.support.records import dataclass

Tiles = NDArray[np.float32]
Index = NDArray[np.int32]
PAD_TILE = -1  # no tile has this number
MAX_TILES = 1 << 24
"""Most tiles of a tensor that is stored: 64 GiB of float32. More is a mistake."""
MAX_MAPPED = 1 << 26
"""Most tiles that an operand has behind its TMs, broadcasts included. Only their map is stored: 256 MiB of int32."""


class TmError(ValueError):
    """A TM that does not fit the tensor it is applied to."""


@dataclass(frozen=True, slots=True, eq=False)
class TileMap:
    """A map from the tiles of a tensor after its TMs to those before.

    `source_shape` and `shape` are (t, R, C) in tiles before and after. `index`, int32[t*R*C] in the order of the
    result, holds flat source tiles, or -1 for a tile full of `pad_value` (one value for all pads of a chain, the last
    one given: OPS 7.3). The methods append one TM and return a new map; they raise TmError where its argument does not
    fit the shape.
    """

    source_shape: Shape
    shape: Shape
    index: Index
    pad_value: float = 0.0

    @staticmethod
    def identity(shape: Shape) -> "TileMap":
        """Return the map that leaves every tile of a tensor of this shape in its place: of an empty TM list. Raises
        TmError where the shape is empty or too large."""
        t, rows, cols = require_tiles(shape, MAX_MAPPED)
        return TileMap(shape, shape, _freeze(np.arange(t * rows * cols, dtype=np.int32)))

    @property
    def is_identity(self) -> bool:
        """True where every tile stays in its place."""
        return self.shape == self.source_shape and bool((self.index == np.arange(self.index.size)).all())

    def broadcast(self, dim: str, factor: int) -> "TileMap":
        """Return the map with the whole tensor repeated `factor` times along r, c or z (OPS 7: a multiplier, not the
        target size). Raises TmError for another dimension, a factor below 1 or too many tiles."""
        _check(factor >= 1, f"broadcast {dim} by {factor}: the factor must be at least 1")
        axes = {"z": 0, "r": 1, "c": 2}
        _check(dim in axes, f"broadcast along {dim!r}: there are r, c and z")
        repeats = [1, 1, 1]
        repeats[axes[dim]] = factor
        t, rows, cols = self.shape
        require_tiles((t * repeats[0], rows * repeats[1], cols * repeats[2]), MAX_MAPPED)
        return self._with_index(np.tile(self._index_in_rows(), repeats))

    def hslice(self, n: int) -> "TileMap":
        """Return the map with the columns cut into `n` equal pieces that follow each other in t: [t, R, C] becomes [t *
        n, R, C / n]. Raises TmError where `n` does not divide C."""
        t, rows, cols = self.shape
        _check(n >= 1 and cols % n == 0, f"hslice {n}: does not divide the {cols} tile columns")
        pieces = self._index_in_rows().reshape(t, rows, n, cols // n)
        return self._with_index(pieces.transpose(0, 2, 1, 3).reshape(t * n, rows, cols // n))

    def vslice(self, n: int) -> "TileMap":
        """Return the map with the rows cut into `n` equal pieces that follow each other in t: [t, R, C] becomes [t * n,
        R / n, C]. Raises TmError where `n` does not divide R."""
        t, rows, cols = self.shape
        _check(n >= 1 and rows % n == 0, f"vslice {n}: does not divide the {rows} tile rows")
        return self._with_index(self._index_in_rows().reshape(t * n, rows // n, cols))

    def hstack(self, n: int) -> "TileMap":
        """Return the map with groups of `n` neighbours in t side by side, 0 for all of t: [t, R, C] becomes [t / n, R,
        C * n]. Raises TmError where `n` does not divide t."""
        t, rows, cols = self.shape
        n = n or t
        _check(n >= 1 and t % n == 0, f"hstack {n}: does not divide t = {t}")
        pieces = self._index_in_rows().reshape(t // n, n, rows, cols)
        return self._with_index(pieces.transpose(0, 2, 1, 3).reshape(t // n, rows, n * cols))

    def vstack(self, n: int) -> "TileMap":
        """Return the map with groups of `n` neighbours in t below each other: [t, R, C] becomes [t / n, R * n, C].
        Raises TmError where `n` does not divide t."""
        t, rows, cols = self.shape
        _check(n >= 1 and t % n == 0, f"vstack {n}: does not divide t = {t}")
        return self._with_index(self._index_in_rows().reshape(t // n, n * rows, cols))

    def transpose(self) -> "TileMap":
        """Return the map with tile rows and columns swapped; the contents of tiles are transposed by the op itself (OPS
        7.4)."""
        return self._with_index(self._index_in_rows().transpose(0, 2, 1))

    def pad(self, rt: int, ct: int, value: float) -> "TileMap":
        """Return the map with `rt` tile rows at the bottom and `ct` tile columns at the right appended, full of
        `value`, which all other pad tiles get, too (OPS 7.3). Raises TmError for negative counts or too many tiles."""
        _check(rt >= 0 and ct >= 0, f"pad by {rt} rows and {ct} columns: the counts must not be negative")
        t, rows, cols = self.shape
        require_tiles((t, rows + rt, cols + ct), MAX_MAPPED)
        padded = np.pad(self._index_in_rows(), ((0, 0), (0, rt), (0, ct)), constant_values=PAD_TILE)
        return self._with_index(padded, value)

    def unpad(self, rt: int, ct: int) -> "TileMap":
        """Return the map without the last `rt` tile rows and the last `ct` tile columns. Raises TmError where no tile
        would be left."""
        _, rows, cols = self.shape
        _check(0 <= rt < rows and 0 <= ct < cols, f"unpad by {rt} rows and {ct} columns: there are {rows} and {cols}")
        return self._with_index(self._index_in_rows()[:, : rows - rt, : cols - ct])

    def apply(self, tiles: Tiles) -> Tiles:
        """Return the tensor after the TMs, as a new array: float32[w, t, R, C, 32, 32] of the source shape to the same
        of `shape`. This is the definition in numpy that kernels are compared with. Raises TmError for tiles of another
        shape."""
        w, *source, height, width = tiles.shape
        _check(tuple(source) == self.source_shape, f"the map is for {self.source_shape} tiles, not {tuple(source)}")
        flat = tiles.reshape(w, int(np.prod(self.source_shape)), height, width)
        result = flat[:, self.index]
        result[:, self.index == PAD_TILE] = np.float32(self.pad_value)
        return result.reshape(w, *self.shape, height, width)

    def _index_in_rows(self) -> Index:
        """Return a view of the index as [t, rows, columns]."""
        return self.index.reshape(self.shape)

    def _with_index(self, index: Index, pad_value: float | None = None) -> "TileMap":
        """Return the map of the same source whose tiles are `index`, [t, rows, columns] of flat source tiles; None
        keeps the pad value."""
        t, rows, cols = index.shape
        if pad_value is None:
            pad_value = self.pad_value
        return TileMap(self.source_shape, (t, rows, cols), _freeze(index.reshape(-1)), pad_value)


def tile_broadcast(tiles: Tiles, mode: str) -> Tiles:
    """Return tiles float32[..., 32, 32] with row 0 ("r"), column 0 ("c") or element (0, 0) ("rc") repeated over each
    (OPS 7), as a read-only view. Raises TmError for any other mode; the reference has no mode z either."""
    sources = {"r": tiles[..., :1, :], "c": tiles[..., :, :1], "rc": tiles[..., :1, :1]}
    _check(mode in sources, f"tile_broadcast {mode!r}: only r, c and rc are possible")
    return np.broadcast_to(sources[mode], tiles.shape)


def _freeze(index: Index) -> Index:
    """Return an index as a contiguous int32 array that cannot be written to: the index itself, made read-only, where it
    is one."""
    index = np.ascontiguousarray(index, dtype=np.int32)
    index.flags.writeable = False
    return index


def require_tiles(shape: Shape, limit: int = MAX_TILES) -> Shape:
    """Return the shape itself, (t, R, C) in tiles, if a tensor of it can exist. Raises TmError when it is empty or has
    more than `limit` tiles."""
    t, rows, cols = shape
    holds = min(shape) >= 1 and t * rows * cols <= limit
    _check(holds, f"a tensor of {t} x {rows} x {cols} tiles cannot be held: at least 1 and at most {limit:,}")
    return shape


def _check(holds: bool, message: str) -> None:
    """Raise TmError with the message unless the condition holds."""
    if not holds:
        raise TmError(message)
