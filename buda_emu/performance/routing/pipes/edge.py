"""One producer and one operand that reads it: the pipes between their cores, tile by tile.

`edge_map` needs no netlist but the two ends: how the producer writes, which TMs stand between, how the operand reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Final, Literal

import numpy as np

from buda_emu.netlist.model import Op, Pad, Tm
from buda_emu.performance.routing.pipes.refusal import RefusedError
from buda_emu.performance.routing.pipes.source_map import CORE, SourceMap, Tiles, cores, places, within_bounds
from buda_emu.performance.routing.pipes.stacking import Consumer, Phases, phases
from buda_emu.spec.blocking import Blocking, Shape

Spread = Literal["blocks", "rows", "columns"]
Dest = tuple[int, int]
ALL = -1
"""In a `Dest`: all rows, or all columns, of the consumer's cores get the same tiles."""
MOST_KEPT_TILES: Final = 1 << 14
"""Edges of more tiles are made again each time: what is kept takes 768 MiB at most."""


@dataclass(frozen=True, slots=True)
class Source:
    """What an edge reads. `buffered`: mblocks of t that an output buffer holds, double buffering not counted; of a
    queue all of t."""

    blocking: Blocking
    buffered: int


@dataclass(frozen=True, slots=True)
class Path:
    """What lies between: unpadding, TMs, padding, in this order (OPS 7.3)."""

    tms: tuple[Tm, ...] = ()
    unpad: Pad = Pad()
    pad: Pad = Pad()


@dataclass(frozen=True, slots=True)
class Reading:
    """How an operand reads. `spread`: each core a block of its own; or each row (column) of cores the rows (columns)
    that it needs, all of the inner dimension, which all cores of the row (column) share."""

    t: int
    grid: tuple[int, int]
    mblock: tuple[int, int]
    ublock: tuple[int, int]
    row_major: bool
    spread: Spread = "blocks"
    kept: int = 0
    """Tiles of a kernel broadcast: the core keeps these alone, which then repeat; 0 for none."""
    kept_per_t: bool = False

    @property
    def tiles(self) -> int:
        """Of an input, those that several cores share counted once."""
        (rows, columns), (m, n), (r, c) = self.cut, self.mblock, self.ublock
        return self.t * rows * m * r * columns * n * c

    @property
    def cut(self) -> tuple[int, int]:
        """Rows and columns of cores that get tiles of their own."""
        rows, columns = self.grid
        return (rows if self.spread != "columns" else 1, columns if self.spread != "rows" else 1)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a pipe reads, piece by piece: the core of the producer (-1 for padding) and the first place there. `read`:
    the cores, in rising order; `end`: the last place; `aligned`: whether all begin at whole pieces."""

    cores: Tiles
    places: Tiles
    read: list[int]
    end: int
    aligned: bool

    @classmethod
    def of(cls, tiles: Tiles, size: int) -> "Pieces":
        """Those of `size` tiles each."""
        first, last = int(tiles.min()) // CORE - 1, int(tiles.max()) // CORE - 1
        read = [first] if first == last else np.unique(cores(tiles)).tolist()
        heads = tiles[::size]
        place = places(heads)
        own = place if first >= 0 else place[place >= 0]
        return cls(cores(heads), place, read, int(place.max()), size == 1 or not (own % size).any())


@dataclass(slots=True)
class EdgePipe:
    """Tiles in the order in which they are read. With several dests they are served in turn; `padding`: whether that
    turn is padding."""

    tiles: Tiles
    dests: list[Dest]
    padding: list[bool]
    _pieces: dict[int, Pieces] = field(default_factory=dict[int, Pieces])

    def pieces(self, size: int) -> Pieces:
        """Its pieces of `size` tiles, worked out once: many operands have the same edge."""
        found = self._pieces.get(size)
        if found is None:
            found = self._pieces[size] = Pieces.of(self.tiles, size)
        return found


@dataclass(slots=True)
class EdgeMap:
    """The pipes of an edge. `granularity`: tiles that lie together wherever a pipe reads; `out_of_order`: whether a
    producer's core has to send other than all it writes, in order, to one pipe."""

    granularity: int
    out_of_order: bool
    pipes: list[EdgePipe]
    producer_grid: tuple[int, int]
    consumer_grid: tuple[int, int]

    @property
    def tiles(self) -> int:
        """Of all pipes."""
        return sum(len(pipe.tiles) for pipe in self.pipes)

    @property
    def most_tiles(self) -> int:
        """Of any pipe."""
        return max((len(pipe.tiles) for pipe in self.pipes), default=0)


def edge_map(source: Source, path: Path, reading: Reading) -> EdgeMap:
    """The pipes of an edge. RefusedError for what the vendor's net2pipe refuses, UnsupportedError for more tiles than
    pipes are made of."""
    tiles = reading.tiles * max(1, source.buffered // source.blocking.t)
    return (
        _edge_map(source, path, reading) if tiles <= MOST_KEPT_TILES else _edge_map.__wrapped__(source, path, reading)
    )


@lru_cache(maxsize=2048)
def _edge_map(source: Source, path: Path, reading: Reading) -> EdgeMap:
    under_tms = source_map(source, path)
    pipes, granularity = _traced(under_tms, reading)
    if under_tms.needs_phases:
        if reading.kept:
            raise RefusedError("V328", "pieces of a stack come in phases, kernel_broadcast needs all at once")
        ublock = reading.ublock
        found = phases(under_tms, Consumer(reading.cut, reading.mblock, ublock, reading.row_major))
        if max(found.factors) > 1:
            _serve_in_turn(pipes, reading, found, under_tms.row_major_stack)
    out_of_order = _is_out_of_order(pipes, under_tms.mblock_tiles)
    return EdgeMap(granularity, out_of_order, pipes, source.blocking.grid_size, reading.grid)


def source_map(source: Source, path: Path) -> SourceMap:
    """The producer's tiles as the operand sees them."""
    found = SourceMap(source.blocking, source.buffered)
    if path.unpad.rt > 0 or path.unpad.ct > 0:
        found.unpad(path.unpad)
    for tm in path.tms:
        found.apply(tm)
    if path.pad.rt > 0 or path.pad.ct > 0:
        found.pad(path.pad.rt, path.pad.ct)
    return found


def _traced(source: SourceMap, reading: Reading) -> tuple[list[EdgePipe], int]:
    """Tiles of each pipe as far as the producer's buffer holds them, and the granularity."""
    rows, columns = reading.cut
    size = (reading.t, rows * reading.mblock[0] * reading.ublock[0], columns * reading.mblock[1] * reading.ublock[1])
    if size != source.tiles.shape:
        what = f"(t, tile rows, tile columns) of the operand is {size}, of its source after TMs {source.tiles.shape}"
        raise RefusedError("V179", what)
    held, t = source.buffered, source.producer.t
    if reading.kept and not reading.kept_per_t and (held, t) != (1, 1):
        what = f"kernel_broadcast of a producer with t {t} that buffers {held} mblocks"
        raise RefusedError("V328", what, "use kernel_broadcast_per_t, or a producer with t 1 and buf_size_mb 1 or 2")
    table = read_in_order(source.tiles, reading)
    if not reading.kept and held > t:
        within_bounds(table.size * (held // t))
        inputs = np.arange(held // t, dtype=np.int64)[None, :, None] * (t * source.mblock_tiles)
        table = (table[:, None, :] + inputs).reshape(len(table), -1)
    pipes: list[EdgePipe] = []
    granularity = source.buffer_tiles
    dests = _dests(reading)
    beyond = places(table) >= source.buffer_tiles
    if not beyond.any() and not reading.kept:
        granularity = _granularity(table, granularity)
        return [EdgePipe(tiles, [dest], [False]) for tiles, dest in zip(table, dests, strict=True)], granularity
    ends = np.where(beyond.any(axis=1), beyond.argmax(axis=1), table.shape[1])
    for tiles, end, dest in zip(table, ends, dests, strict=True):
        kept = _kept(tiles[:end], reading) if reading.kept else tiles[:end]
        if len(kept):
            granularity = _granularity(kept[None], granularity)
            pipes.append(EdgePipe(kept, [dest], [False]))
    return pipes, granularity


def read_in_order(tiles: Tiles, reading: Reading) -> Tiles:
    """[pipes, tiles]: the order in which a core reads its block of [t, rows, columns] (OPS 2)."""
    (rows, columns), (m, n), (r, c) = reading.cut, reading.mblock, reading.ublock
    blocks = tiles.reshape(reading.t, rows, m, r, columns, n, c)
    order = (1, 4, 0, 2, 5, 3, 6) if reading.row_major else (1, 4, 0, 5, 2, 3, 6)
    return blocks.transpose(order).reshape(rows * columns, -1)


def _dests(reading: Reading) -> list[Dest]:
    rows, columns = reading.grid
    if reading.spread == "rows":
        return [(row, ALL) for row in range(rows)]
    if reading.spread == "columns":
        return [(ALL, column) for column in range(columns)]
    return [(row, column) for row in range(rows) for column in range(columns)]


def _granularity(table: Tiles, so_far: int) -> int:
    """The greatest number of tiles that divides every run of tiles that lie together, and every run's first place."""
    starts = np.empty(table.shape, bool)
    starts[:, 0] = True
    padding = table < CORE
    starts[:, 1:] = (table[:, 1:] != table[:, :-1] + 1) & ~(padding[:, 1:] & padding[:, :-1])
    found = gcd(so_far, table.shape[1])
    if found == 1:
        return 1
    firsts = np.unique(np.concatenate((places(table[starts]), np.nonzero(starts)[1])))
    return gcd(found, int(np.gcd.reduce(firsts)))


def _kept(tiles: Tiles, reading: Reading) -> Tiles:
    """The tiles that a kernel broadcast keeps; all others have to repeat them."""
    block = reading.mblock[0] * reading.mblock[1] * reading.ublock[0] * reading.ublock[1]
    number = np.arange(len(tiles))
    within = number % block if reading.kept_per_t else number
    kept = tiles[within < reading.kept]
    like = number % reading.kept
    if reading.kept_per_t:
        like = like + (number // block) % reading.t * reading.kept
    repeats = within >= reading.kept
    wrong = repeats.any() and (like[repeats].max() >= len(kept) or (kept[like[repeats]] != tiles[repeats]).any())
    if wrong:
        name = "kernel_broadcast_per_t" if reading.kept_per_t else "kernel_broadcast"
        raise RefusedError("V329", f"{name} keeps {reading.kept} tiles, but the operand does not repeat them")
    return kept


def _serve_in_turn(pipes: list[EdgePipe], reading: Reading, found: Phases, row_major: bool) -> None:
    """Several dests for each pipe, where pieces go to several cores."""
    (r_factor, c_factor), (r_padding, c_padding) = found.factors, found.padding
    cut_r, cut_c = reading.cut
    rows, columns = reading.grid
    over_cores = (r_factor > 1 and cut_r > 1) or (c_factor > 1 and cut_c > 1)
    if not over_cores and not r_padding and not c_padding:
        return
    # Where all pieces of one direction go to the same cores the dests repeat: one period of them is enough.
    period = r_factor * c_factor
    if row_major and cut_r == 1 and cut_c > 1 and not r_padding:
        period = c_factor
    elif not row_major and cut_c == 1 and cut_r > 1 and not c_padding:
        period = r_factor
    for pipe in pipes:
        (row, column) = pipe.dests[0]
        pipe.dests, pipe.padding = [], []
        for turn in range(period):
            down, across = divmod(turn, c_factor) if row_major else (turn % r_factor, turn // r_factor)
            dest_row = ALL if row == ALL else row + down * rows // r_factor
            dest_column = ALL if column == ALL else column + across * columns // c_factor
            pipe.dests.append((dest_row, dest_column))
            pipe.padding.append(down >= r_factor - r_padding or across >= c_factor - c_padding)


def _is_out_of_order(pipes: Sequence[EdgePipe], mblock_tiles: int) -> bool:
    if any(len(pipe.dests) > 1 for pipe in pipes):
        return True
    next_place: dict[int, int] = {}
    for pipe in pipes:
        tiles, first = pipe.tiles, int(pipe.tiles[0])
        if first < CORE:
            return True
        if (tiles[1:] == tiles[:-1] + 1).all():  # one core's, one after the other
            core, place = divmod(first - CORE, CORE)
            if core in next_place or place != 1:
                return True
            next_place[core] = len(tiles)
            continue
        core = cores(tiles)
        changes = np.nonzero(core[1:] != core[:-1])[0] + 1
        own: dict[int, int] = {}
        for start, end in zip((0, *changes), (*changes, len(tiles)), strict=True):
            one = int(core[start])
            if one < 0 or one in next_place:
                return True
            run = places(tiles[start:end])
            first = own.get(one, 0)
            if run[0] != first or not (run[1:] == run[:-1] + 1).all():
                return True
            own[one] = first + len(run)
        next_place.update(own)
    return any(count % mblock_tiles for count in next_place.values())


@lru_cache(maxsize=16)
def table_rows_map(producer: Blocking, grid: tuple[int, int], indices: int) -> EdgeMap:
    """The rows that an embedding looks up. RefusedError where the table is not cut as the device can read it."""
    across = _cut_of_flat_data(producer, grid, "embedding")[1]
    rows, columns = producer.grid_size
    within_bounds(grid[0] * grid[1] * indices * (producer.mblock[1] // across))
    pipes: list[EdgePipe] = []
    tiles = np.arange(1, indices + 1, dtype=np.int64)
    for row in range(grid[0]):
        for column in range(grid[1]):
            core = rows * row // grid[0] * columns + columns * column // grid[1]
            own = np.tile(tiles + (core + 1) * CORE, producer.mblock[1] // across)
            pipes.append(EdgePipe(own, [(row, column)], [False]))
    return EdgeMap(1, True, pipes, producer.grid_size, grid)


@lru_cache(maxsize=16)
def flat_rows_map(producer: Blocking, grid: tuple[int, int], rows_per_input: int) -> EdgeMap:
    """The rows of flat data that a tilizer reads. RefusedError as above."""
    down, across = _cut_of_flat_data(producer, grid, "tilizer")
    count = rows_per_input // down
    loops = 1
    if producer.ublock_order == "r":
        if producer.mblock[0] % down:
            what = f"rows of {producer.mblock[0]} mblocks for {down} rows of cores"
            raise RefusedError("V330", f"{what}: flat data is cut by whole mblocks", "use another grid or mblock")
        loops = producer.mblock[0] // down
        count //= loops
    within_bounds(grid[0] * grid[1] * producer.t * loops * (producer.mblock[1] // across) * count)
    rows, columns = producer.grid_size
    turns = np.arange(loops)[:, None, None] * count + np.arange(count)[None, None, :]
    one_t = np.broadcast_to(turns, (loops, producer.mblock[1] // across, count)).reshape(-1)
    all_t = (np.arange(producer.t)[:, None] * rows_per_input + one_t).reshape(-1)
    pipes: list[EdgePipe] = []
    for row in range(grid[0]):
        for column in range(grid[1]):
            core = rows * row // grid[0] * columns + columns * column // grid[1]
            pipes.append(EdgePipe(all_t + 1 + (core + 1) * CORE, [(row, column)], [False]))
    return EdgeMap(1, True, pipes, producer.grid_size, grid)


def _cut_of_flat_data(producer: Blocking, grid: tuple[int, int], op: str) -> tuple[int, int]:
    """Rows and columns of cores for each buffer of the queue."""
    rows, columns = producer.grid_size
    if grid[0] % rows or grid[1] % columns:
        what = f"a grid of {grid[0]}x{grid[1]} cores reads a queue of {rows}x{columns} buffers"
        raise RefusedError("V330", f"{what}: each buffer needs a whole number of cores")
    down, across = grid[0] // rows, grid[1] // columns
    if producer.mblock[1] % across:
        what = f"{across} columns of cores share {producer.mblock[1]} columns of mblocks of a buffer"
        hint = f"{op} cuts flat data by whole mblocks, never within a ublock: use smaller ublocks in the queue"
        raise RefusedError("V330", what, hint)
    return down, across


_NO_PAD = Pad()


def path_of(op: Op, index: int) -> Path:
    """Of operand `index`."""
    pads = [pads[index] if index < len(pads) else _NO_PAD for pads in (op.input_unpad, op.input_pad)]
    tms = op.input_tms[index] if index < len(op.input_tms) else ()
    return Path(tms, pads[0], pads[1])


def shape_after(source: Blocking, path: Path) -> Shape:
    """(t, tile rows, tile columns) of a source after its TMs; where one does not fit, what is left of it."""
    t, rows, columns = source.shape
    rows, columns = rows - path.unpad.rt, columns - path.unpad.ct
    for tm in path.tms:
        if tm.name == "transpose":
            rows, columns = columns, rows
        elif tm.name == "broadcast":
            factor = int(tm.args[1])
            t, rows, columns = (
                size * factor if axis == tm.args[0] else size
                for axis, size in zip("zrc", (t, rows, columns), strict=True)
            )
        elif tm.name == "pad":
            rows, columns = rows + int(tm.args[0]), columns + int(tm.args[1])
        elif tm.name == "hslice":
            t, columns = t * int(tm.args[0]), columns // int(tm.args[0])
        elif tm.name == "vslice":
            t, rows = t * int(tm.args[0]), rows // int(tm.args[0])
        elif tm.name == "hstack":
            t, columns = t // int(tm.args[0]), columns * int(tm.args[0])
        elif tm.name == "vstack":
            t, rows = t // int(tm.args[0]), rows * int(tm.args[0])
    return t, rows + path.pad.rt, columns + path.pad.ct
