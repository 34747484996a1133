"""A sparse matrix of rows as the operands of an identity matmul: distinct tiles and an encoding (OPS 6.2)."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.tiles import divisors
from buda_emu.compiler.target import Target
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.errors import UnsupportedError

_TILE_WORDS = 2048
PICKER_PAIRS = 700
"""Pairs of tiles that one row of cores takes, if there are more rows."""
PICKER_BYTES = 250_000
"""Of its different tiles, likewise."""
PICKER_ROOM = 500_000
"""Of its different tiles at most, where they would be fewer in two pickers one after the other."""
_STRIP_WORDS = 1700
"""Of one strip; a longer one becomes two of the same index."""

_DENSE = 64
"""Possible keys for each one that there is, up to which a mark for each is quicker than sorting."""
_KEPT = 3
"""Pickers that a table remembers: a search places the same division many times."""

Index = NDArray[np.int64]


class Cut(NamedTuple):
    """How the work is divided: rows of cores, tile rows of an ublock, tiles of the inner dimension in a strip."""

    grid_rows: int
    u_rt: int = 1
    u_kt: int = 1


class Counts(NamedTuple):
    """Of the fullest row of cores: strips, ublocks in them, pairs of tiles; distinct tiles, tiles of words."""

    strips: int
    ublocks: int
    pairs: int
    tiles: int
    word_tiles: int


@dataclass(frozen=True, slots=True)
class Picker:
    """`tiles` float32[1, grid_r * 32, n * 32] and `words` uint32[1, grid_r * 32, m * 32] for each row of cores, which
    has `strips` with at most `pairs` of tiles; `plain` as its table's."""

    tiles: NDArray[np.float32]
    words: NDArray[np.uint32]
    tile_bits: int
    ublock_bits: int
    strips: tuple[int, ...]
    pairs: int
    plain: bool


@dataclass(eq=False, slots=True)
class PickTable:
    """The pairs of tiles of a matrix whose result has t slices of `rows` tile rows: slice, row, tile of the inner
    dimension and number among the distinct `tiles` of each. Rows of the matrix count through t. `plain`: its tiles hold
    0 and 1 only, for which few bits are enough."""

    t: int
    rows: int
    slice: Index
    row: Index
    inner: Index
    which: Index
    tiles: NDArray[np.float32]
    plain: bool = True
    _counts: dict[Cut, Counts] = field(default_factory=dict[Cut, Counts])
    _pickers: dict[Cut, Picker] = field(default_factory=dict[Cut, Picker])

    @staticmethod
    def of(matrix: Sparse, t: int, rows: int) -> "PickTable":
        """Ordered by slice, row, inner tile."""
        out_tile = matrix.row // 32
        in_tile = matrix.col // 32
        order = np.lexsort((matrix.col, matrix.row, in_tile, out_tile))
        key = np.stack([out_tile, in_tile])[:, order]
        first = np.ones(order.size, bool)
        first[1:] = (key[:, 1:] != key[:, :-1]).any(0)
        starts = np.flatnonzero(first)
        weight = matrix.weight[order]
        dense = np.zeros((starts.size, 1024), np.float32 if (weight != 1).any() else np.uint8)
        place = ((matrix.row % 32) * 32 + matrix.col % 32)[order]
        np.add.at(dense, (np.cumsum(first) - 1, place), weight.astype(dense.dtype))
        tiles, which = _distinct(dense)
        out = key[0, starts]
        plain = bool(np.isin(tiles, (0, 1)).all())
        return PickTable(
            t=t,
            rows=rows,
            slice=out // rows,
            row=out % rows,
            inner=key[1, starts],
            which=which,
            tiles=tiles,
            plain=plain,
        )

    def part(self, start: int, count: int, together: int) -> "PickTable":
        """Of each group of so many slices that follow each other some."""
        group = self.slice // together
        member = self.slice % together
        mine = np.flatnonzero((member >= start) & (member < start + count))
        return PickTable(
            t=self.t // together * count,
            rows=self.rows,
            slice=group[mine] * count + member[mine] - start,
            row=self.row[mine],
            inner=self.inner[mine],
            which=self.which[mine],
            tiles=self.tiles,
            plain=self.plain,
        )

    def sliced(self, count: int, together: int) -> "PickTable":
        """Its slices cut into so many of fewer rows; of each group of `together` slices the first parts follow each
        other, then the second ones: (group, part, member)."""
        height = self.rows // count
        group = self.slice // together
        member = self.slice % together
        slice = (group * count + self.row // height) * together + member
        return self._of(self.t * count, height, slice, self.row % height)

    def gathered(self, count: int) -> "PickTable":
        """So many slices below each other in one."""
        return self._of(
            self.t // count, self.rows * count, self.slice // count, self.slice % count * self.rows + self.row
        )

    def repeated(self, count: int, inner: int) -> "PickTable":
        """For each slice so many, which pick the same rows of as many slices of the operand, of `inner` tile rows each:
        (slice, part) on both sides."""
        part = np.repeat(np.arange(count), self.slice.size)
        slice, row, column, which = (np.tile(own, count) for own in (self.slice, self.row, self.inner, self.which))
        table = replace(self, which=which, _counts={}, _pickers={})
        column = (column // inner * count + part) * inner + column % inner
        return replace(table, inner=column)._of(self.t * count, self.rows, slice * count + part, row)

    def _of(self, t: int, rows: int, slice: Index, row: Index) -> "PickTable":
        order = np.lexsort((self.inner, row, slice))
        return PickTable(
            t=t,
            rows=rows,
            slice=slice[order],
            row=row[order],
            inner=self.inner[order],
            which=self.which[order],
            tiles=self.tiles,
            plain=self.plain,
        )

    def counts(self, cut: Cut) -> Counts:
        """What each row of cores works on, without making the words."""
        if cut not in self._counts:
            self._counts[cut] = self._counted(cut)
        return self._counts[cut]

    def _counted(self, cut: Cut) -> Counts:
        block = self.rows // cut.grid_rows
        core = self.row // block
        wide = int(self.inner.max(initial=0)) // cut.u_kt + 1
        strip = (core * self.t + self.slice) * wide + self.inner // cut.u_kt
        ublock = strip * (block // cut.u_rt) + self.row % block // cut.u_rt
        tile = core * len(self.tiles) + self.which

        strips = _different(strip, cut.grid_rows, self.t * wide)
        ublocks = _different(ublock, cut.grid_rows, self.t * wide * (block // cut.u_rt))
        pairs = np.bincount(core, minlength=cut.grid_rows)
        words = 3 * np.maximum(strips, self.t) + ublocks + pairs
        tiles = _different(tile, cut.grid_rows, len(self.tiles))
        return Counts(
            strips=int(max(self.t, strips.max())),
            ublocks=int(max(1, ublocks.max())),
            pairs=int(max(1, pairs.max())),
            tiles=int(max(1, tiles.max())),
            word_tiles=int(-(-words.max() // (_TILE_WORDS - 64))),
        )

    def fits(self, cut: Cut) -> bool:
        """Whether its numbers fit the 16 bits of a word."""
        tile_bits, ublock_bits, inner_bits = self._bits(cut)
        room = tile_bits + inner_bits + max(0, (cut.u_rt - 1).bit_length()) <= 16
        return room and ublock_bits + (cut.u_rt * cut.u_kt).bit_length() <= 16

    def _bits(self, cut: Cut) -> tuple[int, int, int]:
        """Of a tile's number, of an ublock's, of a tile's place in a strip (OPS 6.2)."""
        m = self.rows // cut.grid_rows // cut.u_rt
        tile_bits = max(1, (self.counts(cut).tiles - 1).bit_length())
        return tile_bits, max(1, (m - 1).bit_length()), 1 if cut.u_kt <= 2 else (cut.u_kt - 1).bit_length()

    def picker(self, cut: Cut) -> Picker:
        """The operands. Raises UnsupportedError when they do not fit 16-bit words."""
        if cut not in self._pickers:
            while len(self._pickers) >= _KEPT:
                del self._pickers[next(iter(self._pickers))]
            self._pickers[cut] = self._made(cut)
        return self._pickers[cut]

    def _made(self, cut: Cut) -> Picker:
        counts = self.counts(cut)
        if not self.fits(cut):
            raise UnsupportedError(
                f"a picker of {counts.tiles} tiles and {self.rows // cut.grid_rows} rows does not fit 16-bit words"
            )
        tile_bits, ublock_bits, inner_bits = self._bits(cut)
        core = self.row // (self.rows // cut.grid_rows)
        out_tiles = np.zeros((cut.grid_rows, counts.tiles, 32, 32), np.float32)
        words: list[list[int]] = []
        strips: list[int] = []
        for number in range(cut.grid_rows):
            mine = np.flatnonzero(core == number)
            own, place = np.unique(self.which[mine], return_inverse=True)
            out_tiles[number, : len(own)] = self.tiles[own]
            found = self._strips(mine, place, cut, (tile_bits, inner_bits))
            strips.append(len(found))
            words.append(_stream(found, ublock_bits))
        longest = -(-max(len(stream) for stream in words) // _TILE_WORDS)
        out_words = np.zeros((cut.grid_rows, longest * _TILE_WORDS), np.uint16)
        for number, stream in enumerate(words):
            out_words[number, : len(stream)] = stream
        # Raw words keep the order of the host's array: tile after tile (OPS 6.10).
        return Picker(
            tiles=out_tiles.transpose(0, 2, 1, 3).reshape(1, cut.grid_rows * 32, counts.tiles * 32),
            words=out_words.view("<u4").reshape(1, cut.grid_rows * 32, longest * 32),
            tile_bits=tile_bits,
            ublock_bits=ublock_bits,
            strips=tuple(strips),
            pairs=counts.pairs,
            plain=self.plain,
        )

    def _strips(self, mine: Index, place: Index, cut: Cut, bits: tuple[int, int]) -> "list[_Strip]":
        """Of one row of cores, in order; every slice has one."""
        tile_bits, inner_bits = bits
        row = self.row[mine] % (self.rows // cut.grid_rows)
        keys = (
            self.slice[mine],
            self.inner[mine] // cut.u_kt,
            row // cut.u_rt,
            row % cut.u_rt,
            self.inner[mine] % cut.u_kt,
        )
        order = np.lexsort(keys[::-1])
        word = (place << (16 - tile_bits)) | (keys[3] << inner_bits) | keys[4]
        found: list[_Strip] = []
        for b, strip, ublock, value in zip(*(key[order].tolist() for key in (*keys[:3], word)), strict=True):
            if not found or (found[-1].slice, found[-1].index) != (b, strip) or found[-1].words > _STRIP_WORDS:
                found.append(_Strip(b, strip))
            found[-1].add(ublock, value)
        used = {item.slice for item in found}
        found += [_Strip(b, 0) for b in range(self.t) if b not in used]
        return sorted(found, key=lambda item: (item.slice, item.index))


@dataclass(slots=True)
class _Strip:
    """Ublocks with their tile words."""

    slice: int
    index: int
    words: int = 3
    ublocks: list[tuple[int, list[int]]] = field(default_factory=list[tuple[int, list[int]]])

    def add(self, ublock: int, word: int) -> None:
        if not self.ublocks or self.ublocks[-1][0] != ublock:
            self.ublocks.append((ublock, []))
            self.words += 1
        self.ublocks[-1][1].append(word)
        self.words += 1


def _different(keys: Index, groups: int, each: int) -> Index:
    """How many different keys each group has; those of a group are `each` numbers that follow each other."""
    if groups * each <= _DENSE * len(keys):
        seen = np.zeros(groups * each, np.bool_)
        seen[keys] = True
        return np.count_nonzero(seen.reshape(groups, each), axis=1)
    keys = np.sort(keys)
    return np.bincount(keys[np.diff(keys, prepend=-1) > 0] // each, minlength=groups)


def _distinct(dense: NDArray[np.generic]) -> tuple[NDArray[np.float32], Index]:
    """Different tiles, and which of them each is."""
    if not len(dense):
        return np.zeros((1, 32, 32), np.float32), np.zeros(0, np.int64)
    if dense.dtype == np.uint8:
        rows = np.packbits(dense.astype(bool), axis=1)
    else:
        rows = dense
    rows = np.ascontiguousarray(rows)
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, index, which = np.unique(as_bytes, return_index=True, return_inverse=True)
    return dense[index].astype(np.float32).reshape(-1, 32, 32), which.ravel()


def _stream(strips: list[_Strip], ublock_bits: int) -> list[int]:
    """The 16-bit words of one core."""
    words: list[int] = []
    position = 0
    last_head = -1
    for number, strip in enumerate(strips):
        if position % _TILE_WORDS + strip.words > _TILE_WORDS and last_head >= 0:
            words[last_head] |= 1 << 15
            words += [0] * (-position % _TILE_WORDS)
            position = len(words)
        last = number + 1 == len(strips) or strips[number + 1].slice != strip.slice
        last_head = len(words) + 1
        words += [strip.index & 0xFFFF, (strip.index >> 16) | (last << 14), len(strip.ublocks)]
        for ublock, tiles in strip.ublocks:
            words += [(len(tiles) << ublock_bits) | ublock, *tiles]
        position = len(words)
    return words


def picker_rows(target: Target, table: PickTable) -> int:
    """Rows of cores for an identity matmul: each holds its own tiles and encoding, so many pairs need many, and so do
    many different tiles that are not of few bits."""
    fits = [n for n in divisors(table.rows) if n <= target.arch.grid[0]]

    def enough(rows: int) -> bool:
        return len(table.row) / rows <= PICKER_PAIRS and _tile_bytes(target, table, rows) <= PICKER_BYTES

    return next((n for n in fits if enough(n)), fits[-1])


def has_room(target: Target, table: PickTable) -> bool:
    """Whether a core keeps the different tiles, beside what it works on."""
    return _tile_bytes(target, table, picker_rows(target, table)) <= PICKER_ROOM


def _tile_bytes(target: Target, table: PickTable, rows: int) -> int:
    """Of the different tiles of one of so many rows of cores."""
    df = target.picker_df if table.plain else target.activation_df
    return table.counts(Cut(rows)).tiles * tile_bytes(df, 32, 32, target.arch.alignment, header=True)
