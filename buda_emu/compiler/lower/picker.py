"""Sparse matrices as operands of an identity matmul: the distinct tiles, and an encoding that says where each tile
stands (OPS 6.2)."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.tiles import divisors
from buda_emu.compiler.target import Target
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.errors import UnsupportedError

_TILE_WORDS = 2048  # 16-bit words of an index tile; what a strip needs may not cross into the next tile
PICKER_PAIRS = 700
"""Largest number of tile pairs that one row of cores takes as long as the grid has another row to share them with.
A smaller number takes more rows of cores for the same work, a larger one makes the row with most pairs slower."""
PICKER_BYTES = 250_000
"""Largest size in bytes of the distinct tiles that one row of cores takes as long as the grid has another row. Each
core of the row holds them in L1: a larger limit leaves less of it for buffers, a smaller one takes more cores."""
PICKER_ROOM = 500_000
"""Largest size in bytes of the distinct tiles of one picker as long as two pickers in sequence would have fewer. A
larger one may not fit L1 beside the other buffers; a smaller one adds an op where one picker would do."""
_STRIP_WORDS = 1700
"""Largest number of words in a strip; a longer one becomes two with the same index. A strip may have two more, and must
fit _TILE_WORDS. A smaller number makes more heads of strips; a larger one leaves more of a tile empty where the next
strip does not fit."""

_DENSE = 64
"""Ratio of possible to present keys up to which marking each possible key is quicker than sorting."""
_KEPT = 3
"""Number of pickers that a table remembers: a search places the same division many times."""

Index = NDArray[np.int64]


class WorkDivision(NamedTuple):
    """The division of the work: rows of cores, tile rows of an ublock, tiles of the inner dimension in a strip."""

    grid_rows: int
    u_rt: int = 1
    u_kt: int = 1


class Counts(NamedTuple):
    """Work of the fullest row of cores: strips, ublocks in them, pairs of tiles; distinct tiles, tiles of words."""

    strips: int
    ublocks: int
    pairs: int
    tiles: int
    word_tiles: int


@dataclass(frozen=True, slots=True)
class Picker:
    """The operands of an identity matmul: `tiles` float32[1, grid_r * 32, n * 32] and `words` uint32[1, grid_r * 32, m
    * 32] for each row of cores, which has `strips` with at most `pairs` of tiles; `plain` as in its table."""

    tiles: NDArray[np.float32]
    words: NDArray[np.uint32]
    tile_bits: int
    ublock_bits: int
    strips: tuple[int, ...]
    pairs: int
    plain: bool


@dataclass(eq=False, slots=True)
class PickTable:
    """The tiles of a matrix that are not empty. Each is a pair: of a tile row of the result and a tile of the inner
    dimension. The result has t slices of `rows` tile rows, and the rows of the matrix count through all slices. The
    fields of a pair are its slice, its row in the slice, its inner tile, and the number (`which`) of its content among
    the distinct `tiles`. `plain`: the tiles hold only 0 and 1, for which few bits are enough."""

    t: int
    rows: int
    slice: Index
    row: Index
    inner: Index
    which: Index
    tiles: NDArray[np.float32]
    plain: bool = True
    _counts: dict[WorkDivision, Counts] = field(default_factory=dict[WorkDivision, Counts])
    _pickers: dict[WorkDivision, Picker] = field(default_factory=dict[WorkDivision, Picker])

    @staticmethod
    def of(matrix: Sparse, t: int, rows: int) -> "PickTable":
        """Build the table of a matrix, ordered by slice, row and inner tile."""
        out_tile = matrix.row // 32
        in_tile = matrix.col // 32
        order = np.lexsort((matrix.col, matrix.row, in_tile, out_tile))
        key = np.stack([out_tile, in_tile])[:, order]
        first = np.ones(order.size, bool)
        first[1:] = (key[:, 1:] != key[:, :-1]).any(0)
        starts = np.flatnonzero(first)
        weight = matrix.weight[order]
        dense = np.zeros((starts.size, TILE_ELEMENTS), np.float32 if (weight != 1).any() else np.uint8)
        place = ((matrix.row % 32) * 32 + matrix.col % 32)[order]
        np.add.at(dense, (np.cumsum(first) - 1, place), weight.astype(dense.dtype))
        tiles, tile_numbers = _distinct_tiles(dense)
        out = key[0, starts]
        plain = bool(np.isin(tiles, (0, 1)).all())
        return PickTable(
            t=t,
            rows=rows,
            slice=out // rows,
            row=out % rows,
            inner=key[1, starts],
            which=tile_numbers,
            tiles=tiles,
            plain=plain,
        )

    def part(self, start: int, count: int, together: int) -> "PickTable":
        """Return the table of `count` slices from `start` on in each group of `together` consecutive slices."""
        group = self.slice // together
        member = self.slice % together
        selected = np.flatnonzero((member >= start) & (member < start + count))
        return PickTable(
            t=self.t // together * count,
            rows=self.rows,
            slice=group[selected] * count + member[selected] - start,
            row=self.row[selected],
            inner=self.inner[selected],
            which=self.which[selected],
            tiles=self.tiles,
            plain=self.plain,
        )

    def slice_rows(self, count: int, together: int) -> "PickTable":
        """Return the table with each slice cut into `count` slices of fewer rows. In each group of `together` slices
        the first parts follow each other, then the second ones: (group, part, member)."""
        height = self.rows // count
        group = self.slice // together
        member = self.slice % together
        slice = (group * count + self.row // height) * together + member
        return self._with_pairs_at(self.t * count, height, slice, self.row % height)

    def gather_slices(self, count: int) -> "PickTable":
        """Return the table with every `count` consecutive slices below each other in one."""
        return self._with_pairs_at(
            self.t // count, self.rows * count, self.slice // count, self.slice % count * self.rows + self.row
        )

    def repeat_slices(self, count: int, inner: int) -> "PickTable":
        """Return the table with `count` slices in place of each slice s: the slices s * count + part. Each of them
        picks the same rows as s did, from slices of the operand that are numbered likewise and have `inner` tile
        rows."""
        part = np.repeat(np.arange(count), self.slice.size)
        slice, row, column, tile_numbers = (
            np.tile(pair_field, count) for pair_field in (self.slice, self.row, self.inner, self.which)
        )
        table = replace(self, which=tile_numbers, _counts={}, _pickers={})
        column = (column // inner * count + part) * inner + column % inner
        return replace(table, inner=column)._with_pairs_at(self.t * count, self.rows, slice * count + part, row)

    def _with_pairs_at(self, t: int, rows: int, slice: Index, row: Index) -> "PickTable":
        """Return the table with the pairs at other slices and rows, sorted."""
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

    def counts(self, cut: WorkDivision) -> Counts:
        """Return the work of the fullest row of cores when it is divided by `cut`, without encoding the words."""
        if cut not in self._counts:
            self._counts[cut] = self._measure_fullest_row(cut)
        return self._counts[cut]

    def _measure_fullest_row(self, cut: WorkDivision) -> Counts:
        """Return the largest numbers of strips, ublocks, pairs and distinct tiles of any row of cores, each by itself,
        and of the tiles that hold the words of a row."""
        block = self.rows // cut.grid_rows
        core = self.row // block
        wide = int(self.inner.max(initial=0)) // cut.u_kt + 1
        strip = (core * self.t + self.slice) * wide + self.inner // cut.u_kt
        ublock = strip * (block // cut.u_rt) + self.row % block // cut.u_rt
        tile = core * len(self.tiles) + self.which

        strips = _count_distinct(strip, cut.grid_rows, self.t * wide)
        ublocks = _count_distinct(ublock, cut.grid_rows, self.t * wide * (block // cut.u_rt))
        pairs = np.bincount(core, minlength=cut.grid_rows)
        words = 3 * np.maximum(strips, self.t) + ublocks + pairs
        tiles = _count_distinct(tile, cut.grid_rows, len(self.tiles))
        return Counts(
            strips=int(max(self.t, strips.max())),
            ublocks=int(max(1, ublocks.max())),
            pairs=int(max(1, pairs.max())),
            tiles=int(max(1, tiles.max())),
            word_tiles=int(-(-words.max() // (_TILE_WORDS - 64))),
        )

    def fits(self, cut: WorkDivision) -> bool:
        """Return whether the words of a picker whose work is divided by `cut` have at most 16 bits, so that `picker`
        can encode it."""
        tile_bits, ublock_bits, inner_bits = self._field_bits(cut)
        row_bits = (cut.u_rt - 1).bit_length()
        tile_count_bits = (cut.u_rt * cut.u_kt).bit_length()
        tile_word_fits = tile_bits + inner_bits + row_bits <= 16
        ublock_word_fits = ublock_bits + tile_count_bits <= 16
        return tile_word_fits and ublock_word_fits

    def _field_bits(self, cut: WorkDivision) -> tuple[int, int, int]:
        """Return the bits of a tile's number, of an ublock's number, and of a tile's place in a strip (OPS 6.2)."""
        ublocks = self.rows // cut.grid_rows // cut.u_rt
        tile_bits = max(1, (self.counts(cut).tiles - 1).bit_length())
        ublock_bits = max(1, (ublocks - 1).bit_length())
        inner_bits = max(1, (cut.u_kt - 1).bit_length())
        return tile_bits, ublock_bits, inner_bits

    def picker(self, cut: WorkDivision) -> Picker:
        """Return the operands of an identity matmul whose work is divided by `cut`. Raises UnsupportedError if they do
        not fit 16-bit words."""
        if cut not in self._pickers:
            while len(self._pickers) >= _KEPT:
                del self._pickers[next(iter(self._pickers))]
            self._pickers[cut] = self._encode(cut)
        return self._pickers[cut]

    def _encode(self, cut: WorkDivision) -> Picker:
        """Encode the table, with its work divided by `cut`, as tiles and 16-bit words for each row of cores. Raises
        UnsupportedError if numbers do not fit a word."""
        counts = self.counts(cut)
        if not self.fits(cut):
            raise UnsupportedError(
                f"a picker of {counts.tiles} tiles and {self.rows // cut.grid_rows} rows does not fit 16-bit words"
            )
        tile_bits, ublock_bits, inner_bits = self._field_bits(cut)
        core = self.row // (self.rows // cut.grid_rows)
        out_tiles = np.zeros((cut.grid_rows, counts.tiles, 32, 32), np.float32)
        words: list[list[int]] = []
        strips: list[int] = []
        for number in range(cut.grid_rows):
            pairs = np.flatnonzero(core == number)
            core_tiles, place = np.unique(self.which[pairs], return_inverse=True)
            out_tiles[number, : len(core_tiles)] = self.tiles[core_tiles]
            core_strips = self._make_strips(pairs, place, cut, (tile_bits, inner_bits))
            strips.append(len(core_strips))
            words.append(_encode_strips(core_strips, ublock_bits))
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

    def _make_strips(self, pairs: Index, place: Index, cut: WorkDivision, bits: tuple[int, int]) -> "list[_Strip]":
        """Return the strips of one row of cores in order, at least one for every slice. `pairs`: the pairs of the row;
        `place`: the number of each pair's tile; `bits`: the bits of a tile's number and of a place in a strip."""
        tile_bits, inner_bits = bits
        row = self.row[pairs] % (self.rows // cut.grid_rows)
        keys = (
            self.slice[pairs],
            self.inner[pairs] // cut.u_kt,
            row // cut.u_rt,
            row % cut.u_rt,
            self.inner[pairs] % cut.u_kt,
        )
        order = np.lexsort(keys[::-1])
        word = (place << (16 - tile_bits)) | (keys[3] << inner_bits) | keys[4]
        strips: list[_Strip] = []
        columns = [key[order].tolist() for key in (*keys[:3], word)]
        for slice, index, ublock, value in zip(*columns, strict=True):
            is_new = not strips or (strips[-1].slice, strips[-1].index) != (slice, index)
            if is_new or strips[-1].words > _STRIP_WORDS:
                strips.append(_Strip(slice, index))
            strips[-1].add(ublock, value)
        used_slices = {strip.slice for strip in strips}
        strips += [_Strip(slice, 0) for slice in range(self.t) if slice not in used_slices]
        return sorted(strips, key=lambda strip: (strip.slice, strip.index))


@dataclass(slots=True)
class _Strip:
    """A strip of the encoding: ublocks with the words of their tiles."""

    slice: int
    index: int
    words: int = 3  # its head has three
    ublocks: list[tuple[int, list[int]]] = field(default_factory=list[tuple[int, list[int]]])

    def add(self, ublock: int, word: int) -> None:
        """Add the word of a tile, after the word of its ublock unless the previous tile had the same one."""
        if not self.ublocks or self.ublocks[-1][0] != ublock:
            self.ublocks.append((ublock, []))
            self.words += 1
        self.ublocks[-1][1].append(word)
        self.words += 1


def _count_distinct(keys: Index, groups: int, keys_per_group: int) -> Index:
    """Return the number of distinct keys in each group; the keys of a group are `keys_per_group` consecutive
    numbers."""
    if groups * keys_per_group <= _DENSE * len(keys):
        seen = np.zeros(groups * keys_per_group, np.bool_)
        seen[keys] = True
        return np.count_nonzero(seen.reshape(groups, keys_per_group), axis=1)
    keys = np.sort(keys)
    return np.bincount(keys[np.diff(keys, prepend=-1) > 0] // keys_per_group, minlength=groups)


def _distinct_tiles(dense: NDArray[np.generic]) -> tuple[NDArray[np.float32], Index]:
    """Return the distinct tiles, and the number of each tile among them."""
    if not len(dense):
        return np.zeros((1, 32, 32), np.float32), np.zeros(0, np.int64)
    if dense.dtype == np.uint8:
        rows = np.packbits(dense.astype(bool), axis=1)
    else:
        rows = dense
    rows = np.ascontiguousarray(rows)
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, index, numbers = np.unique(as_bytes, return_index=True, return_inverse=True)
    return dense[index].astype(np.float32).reshape(-1, 32, 32), numbers.ravel()


def _encode_strips(strips: list[_Strip], ublock_bits: int) -> list[int]:
    """Return the 16-bit words that encode the strips of one row of cores."""
    words: list[int] = []
    position = 0
    last_head = -1
    for number, strip in enumerate(strips):
        if position % _TILE_WORDS + strip.words > _TILE_WORDS and last_head >= 0:
            words[last_head] |= 1 << 15
            words += [0] * (-position % _TILE_WORDS)
            position = len(words)
        is_last_of_slice = number + 1 == len(strips) or strips[number + 1].slice != strip.slice
        last_head = len(words) + 1
        words += [strip.index & 0xFFFF, (strip.index >> 16) | (is_last_of_slice << 14), len(strip.ublocks)]
        for ublock, tiles in strip.ublocks:
            words += [(len(tiles) << ublock_bits) | ublock, *tiles]
        position = len(words)
    return words


def picker_rows(target: Target, table: PickTable) -> int:
    """Return the rows of cores, a divisor of the table's tile rows, for an identity matmul. Each row holds its own
    tiles and encoding, so many pairs need many rows, and so do many distinct tiles of many bits."""
    possible_rows = [n for n in divisors(table.rows) if n <= target.arch.grid[0]]

    def have_room(rows: int) -> bool:
        """Return whether each of `rows` rows of cores has room for its share of the pairs and for its distinct
        tiles."""
        return len(table.row) / rows <= PICKER_PAIRS and _tile_bytes(target, table, rows) <= PICKER_BYTES

    return next((n for n in possible_rows if have_room(n)), possible_rows[-1])


def has_room(target: Target, table: PickTable) -> bool:
    """Return whether one picker is small enough: whether a core can hold the distinct tiles of its row beside the tiles
    that it works on."""
    return _tile_bytes(target, table, picker_rows(target, table)) <= PICKER_ROOM


def _tile_bytes(target: Target, table: PickTable, rows: int) -> int:
    """Return the size of the distinct tiles of one row of cores, if the work is divided over `rows` rows of cores."""
    if table.plain:
        df = target.picker_df
    else:
        df = target.activation_df
    return table.counts(WorkDivision(rows)).tiles * tile_bytes(df, 32, 32, target.arch.alignment, header=True)
