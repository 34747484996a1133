"""The edge between one producer and one operand that reads it: the pipes between their cores, tile by tile.

`edge_map` needs no netlist, only the two ends: how the producer writes, which TMs stand between, how the operand
reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Final, Literal

import numpy as np

from buda_emu.netlist.model import Op, Pad, Tm
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.source_map import (
    CORE,
    SourceMap,
    StackFacts,
    Tiles,
    cores,
    divides,
    places,
    within_bounds,
)
from buda_emu.spec.blocking import Blocking, Shape

_HINT = "give the consumer other mblocks, ublocks or ublock_order, or the producer a buf_size_mb that holds all of t"


@dataclass(frozen=True, slots=True)
class Consumer:
    """Blocks of the reader, over the cores that get tiles of their own: [rows, columns] each. `row_major`: whether a
    core scans the ublocks of its block row by row."""

    grid: tuple[int, int]
    mblock: tuple[int, int]
    ublock: tuple[int, int]
    row_major: bool


@dataclass(frozen=True, slots=True)
class StackPhases:
    """The pieces of a stacked operand that its pipes serve one after the other: their number along [rows, columns],
    `padding` of which hold nothing but padding. `pieces` is how many come from different slices of t, before those
    that the producer buffers together count as one."""

    factors: tuple[int, int]
    padding: tuple[int, int]
    pieces: int


def count_stack_phases(source: StackFacts, consumer: Consumer) -> StackPhases:
    """Return in how many phases the pieces of a stacked operand arrive. Needed where `source.needs_phases`: the
    producer's buffer holds some of the slices that a stack puts side by side, not all, so the pipes wait for the next
    ones. Raises RefusedError for an order or a cut that the device cannot follow."""
    _check_order(source)
    factors, block, first = _pieces(source)
    pieces = prod(factors)
    factors = _merge_pieces(source, factors, first)
    factors, block, padding = _add_padding(source, factors, block)
    _check_cuts(consumer, factors, block)
    _check_scan_order(source, consumer, factors, block)
    return StackPhases((factors[0], factors[1]), (padding[0], padding[1]), pieces)


def _require(holds: bool, message: str, rule: str) -> None:
    """Raise RefusedError with this message and rule unless the condition holds."""
    if not holds:
        raise RefusedError(rule, message, _HINT)


def _check_order(source: StackFacts) -> None:
    """Raise RefusedError unless stacks stand at the end of the TMs, each direction once, with one pad at most."""
    seen: set[str] = set()
    for name in source.names:
        if name in ("hstack", "vstack"):
            fine = name not in seen and "pad" not in seen
            seen.add(name)
        elif name == "pad":
            fine = "pad" not in seen
            seen.add(name)
        else:
            fine = not seen
        if not fine:
            message = f"stacks {source.buffered} buffered mblocks of t {source.t} in phases, but {name} follows"
            raise RefusedError(
                "V321",
                f"{message} {' and '.join(sorted(seen - {name})) or name}",
                "let stacks be the last TMs, or buffer all of t",
            )


def _pieces(source: StackFacts) -> tuple[list[int], list[int], int]:
    """Return in how many pieces, along rows and columns, the stacked source falls that come from different slices of
    the producer's t, the tiles [rows, columns] of each, and the direction (0 rows, 1 columns) that changes first.
    Raises RefusedError if slices and pieces do not divide."""
    _, rows, columns = source.shape
    block = [
        (size - pad) // factor for size, pad, factor in zip((rows, columns), source.padded, source.stacked, strict=True)
    ]
    slices = source.sliced[0] * source.sliced[1]
    first = 1 if source.row_major_stack else 0  # the direction that changes first
    second = 1 - first
    names = ("rows", "columns")
    factors = [1, 1]
    inner = source.stacked[first]
    outer = source.stacked[second]
    _require(
        divides(slices, inner),
        f"stacks {inner} pieces of {names[first]}, {slices} slices come from one t: neither divides the other",
        "V322",
    )
    if slices % inner == 0:
        left = slices // inner
        block[first] *= inner
        _require(
            divides(left, outer),
            f"stacks {outer} pieces of {names[second]}, {left} of the slices of one t are left for them: neither "
            "divides the other",
            "V322",
        )
        if left % outer == 0:
            block[second] *= outer
        else:
            block[second] *= left
            factors[second] = outer // left
    else:
        block[first] *= slices
        factors[first] = inner // slices
        factors[second] = outer
    return factors, block, first


def _merge_pieces(source: StackFacts, factors: list[int], first: int) -> list[int]:
    """Count pieces that the producer buffers together as one, and return the new numbers. `first` is the direction (0
    rows, 1 columns) that changes first. Raises RefusedError if they do not divide."""
    second = 1 - first
    message = f"its producer buffers {source.buffered} mblocks, pieces are stacked by"
    _require(divides(factors[first], source.buffered), f"{message} {factors[first]}: neither divides the other", "V322")
    if factors[first] > source.buffered:
        factors[first] //= source.buffered
        return factors
    factors[first] = 1
    _require(
        divides(factors[second], source.buffered), f"{message} {factors[second]}: neither divides the other", "V322"
    )
    if factors[second] > source.buffered:
        factors[second] = factors[second] // source.buffered
    else:
        factors[second] = 1
    return factors


def _add_padding(source: StackFacts, factors: list[int], block: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Count padding as pieces of its own where there are several pieces, else as part of the only one; return the
    number of pieces, the tiles of each and the pieces of padding. Raises RefusedError for a part of a piece."""
    padding = [0, 0]
    for axis, name in enumerate(("rows", "columns")):
        if factors[axis] > 1:
            _require(
                source.padded[axis] % block[axis] == 0,
                f"{source.padded[axis]} padding tile {name} are not a whole number of pieces of {block[axis]}",
                "V323",
            )
            padding[axis] = source.padded[axis] // block[axis]
            factors[axis] += padding[axis]
        else:
            block[axis] += source.padded[axis]
    return factors, block, padding


def _check_cuts(consumer: Consumer, factors: list[int], block: list[int]) -> None:
    """Raise RefusedError unless the stacked pieces and the consumer's cores, mblocks and ublocks divide each other
    along each direction. `block` is the tiles of a piece."""
    for axis, name in enumerate(("rows", "columns")):
        _require(
            divides(consumer.grid[axis], factors[axis]),
            f"{factors[axis]} stacked pieces over {consumer.grid[axis]} {name} of cores: neither divides the other",
            "V324",
        )
    for axis, name in enumerate(("rows", "columns")):
        mblock = consumer.mblock[axis] * consumer.ublock[axis]
        ublock = consumer.ublock[axis]
        for size, of in ((mblock, "mblock"), (ublock, "ublock")):
            _require(
                divides(block[axis], size),
                f"stacked pieces have {block[axis]} tile {name}, an {of} that is read has {size}: neither divides "
                "the other",
                "V325",
            )


def _check_scan_order(source: StackFacts, consumer: Consumer, factors: list[int], block: list[int]) -> None:
    """Raise RefusedError unless pieces come in the order in which blocks are read: ublocks in ublock_order, tiles in
    them row by row. `factors` is the number of pieces, `block` the tiles of each."""
    row_major = source.row_major_stack
    (rows, columns) = block
    (u_rows, u_columns) = consumer.ublock
    m, n = consumer.mblock
    if columns < u_columns or rows < u_rows:
        message = f"stacked pieces of {rows}x{columns} tiles lie within ublocks of {u_rows}x{u_columns}"
        _require(
            _fills_ublocks_in_order(row_major, consumer, rows, columns),
            f"{message}, which are read row by row",
            "V326",
        )
    elif consumer.row_major and columns < n * u_columns:
        _require(
            row_major or factors[0] == 1,
            f"pieces are stacked downward first, within mblocks of {n} ublocks that are read along rows",
            "V327",
        )
        _require(
            rows == u_rows,
            f"pieces of {rows} tile rows are stacked side by side within mblocks whose ublocks have {u_rows}",
            "V327",
        )
    elif not consumer.row_major and rows < m * u_rows:
        _require(
            not row_major or factors[1] == 1,
            f"pieces are stacked sideways first, within mblocks of {m} ublocks that are read down columns",
            "V327",
        )
        _require(
            columns == u_columns,
            f"pieces of {columns} tile columns are stacked downward within mblocks whose ublocks have {u_columns}",
            "V327",
        )


def _fills_ublocks_in_order(row_major: bool, consumer: Consumer, rows: int, columns: int) -> bool:
    """Return whether pieces of `rows` by `columns` tiles, smaller than an ublock, come in the order in which its tiles
    are read. `row_major` tells whether they are stacked row by row."""
    (u_rows, u_columns) = consumer.ublock
    m, n = consumer.mblock
    if columns < u_columns:
        one_ublock_row = u_rows == 1 and (consumer.row_major or m == 1)
        return row_major and rows == 1 and (n == 1 or one_ublock_row)
    return columns == u_columns and not row_major and (n == 1 or not consumer.row_major)


Spread = Literal["blocks", "rows", "columns"]
Dest = tuple[int, int]
ALL = -1
"""In a `Dest`: all rows, or all columns, of the consumer's cores get the same tiles."""
MOST_KEPT_TILES: Final = 1 << 14
"""Edges of more tiles are made again each time: what is kept takes 768 MiB at most."""


@dataclass(frozen=True, slots=True)
class EdgeSource:
    """The source of an edge. `buffered` is the mblocks of t that an output buffer holds, double buffering not counted;
    for a queue all of t."""

    blocking: Blocking
    buffered: int


@dataclass(frozen=True, slots=True)
class Path:
    """The unpadding, TMs and padding between producer and operand, in this order (OPS 7.3)."""

    tms: tuple[Tm, ...] = ()
    unpad: Pad = Pad()
    pad: Pad = Pad()


@dataclass(frozen=True, slots=True)
class Reading:
    """The way in which an operand reads. `spread` "blocks" gives each core a block of its own; "rows" ("columns") gives
    each row (column) of cores the rows (columns) that it needs, for all of the inner dimension, and its cores share
    them."""

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
        """Return the tiles of one input of the operand; those that several cores share count once."""
        (rows, columns) = self.cut
        (m, n) = self.mblock
        (r, c) = self.ublock
        return self.t * rows * m * r * columns * n * c

    @property
    def cut(self) -> tuple[int, int]:
        """Return rows and columns of cores that get tiles of their own."""
        rows, columns = self.grid
        return (rows if self.spread != "columns" else 1, columns if self.spread != "rows" else 1)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces that a pipe reads: for each the core of the producer (-1 for padding) and its first place there.
    `read` has the distinct cores in rising order; `end` is the last place; `aligned` tells whether all pieces begin at
    multiples of their size."""

    cores: Tiles
    places: Tiles
    read: list[int]
    end: int
    aligned: bool

    @classmethod
    def of(cls, tiles: Tiles, size: int) -> "Pieces":
        """Cut tiles into pieces of `size` tiles each, which stand for themselves by their first tile."""
        first = int(tiles.min()) // CORE - 1
        last = int(tiles.max()) // CORE - 1
        if first == last:
            read = [first]
        else:
            read = np.unique(cores(tiles)).tolist()
        heads = tiles[::size]
        place = places(heads)
        if first >= 0:
            real_places = place
        else:
            real_places = place[place >= 0]
        return cls(cores(heads), place, read, int(place.max()), size == 1 or not (real_places % size).any())


@dataclass(slots=True)
class EdgePipe:
    """Tiles in the order in which they are read. Several dests are served in turn; `padding` tells for each whether
    that turn is padding."""

    tiles: Tiles
    dests: list[Dest]
    padding: list[bool]
    _pieces: dict[int, Pieces] = field(default_factory=dict[int, Pieces])

    def pieces(self, size: int) -> Pieces:
        """Return the pieces of `size` tiles that the pipe reads. They are cached, since many operands have the same
        edge."""
        pieces = self._pieces.get(size)
        if pieces is None:
            pieces = self._pieces[size] = Pieces.of(self.tiles, size)
        return pieces


@dataclass(slots=True)
class EdgeMap:
    """The pipes of an edge. `granularity` is the number of adjacent tiles that every read consists of; `out_of_order`
    tells whether a core of the producer sends to a pipe anything but all that it writes, in order."""

    granularity: int
    out_of_order: bool
    pipes: list[EdgePipe]
    producer_grid: tuple[int, int]
    consumer_grid: tuple[int, int]

    @property
    def tiles(self) -> int:
        """Return the number of tiles that all pipes together read."""
        return sum(len(pipe.tiles) for pipe in self.pipes)

    @property
    def most_tiles(self) -> int:
        """Return the number of tiles of the pipe that has most, 0 without pipes."""
        return max((len(pipe.tiles) for pipe in self.pipes), default=0)


def edge_map(source: EdgeSource, path: Path, reading: Reading) -> EdgeMap:
    """Return the pipes of an edge; small edges are cached. Raises RefusedError for a refusal of the vendor's net2pipe,
    UnsupportedError for too many tiles."""
    tiles = reading.tiles * max(1, source.buffered // source.blocking.t)
    if tiles <= MOST_KEPT_TILES:
        return _edge_map(source, path, reading)
    return _edge_map.__wrapped__(source, path, reading)


@lru_cache(maxsize=2048)
def _edge_map(source: EdgeSource, path: Path, reading: Reading) -> EdgeMap:
    """Compute the pipes of an edge for `edge_map`."""
    under_tms = source_map(source, path)
    pipes, granularity = _trace_pipes(under_tms, reading)
    if under_tms.needs_phases:
        if reading.kept:
            raise RefusedError("V328", "pieces of a stack come in phases, kernel_broadcast needs all at once")
        ublock = reading.ublock
        phases = count_stack_phases(under_tms, Consumer(reading.cut, reading.mblock, ublock, reading.row_major))
        if max(phases.factors) > 1:
            _serve_in_turn(pipes, reading, phases, under_tms.row_major_stack)
    out_of_order = _is_out_of_order(pipes, under_tms.mblock_tiles)
    return EdgeMap(
        granularity=granularity,
        out_of_order=out_of_order,
        pipes=pipes,
        producer_grid=source.blocking.grid_size,
        consumer_grid=reading.grid,
    )


def source_map(source: EdgeSource, path: Path) -> SourceMap:
    """Return the producer's tiles as the operand sees them, after unpadding, TMs and padding. Raises RefusedError for
    TMs that pipes cannot follow."""
    result = SourceMap(source.blocking, source.buffered)
    if path.unpad.rt > 0 or path.unpad.ct > 0:
        result.unpad(path.unpad)
    for tm in path.tms:
        result.apply(tm)
    if path.pad.rt > 0 or path.pad.ct > 0:
        result.pad(path.pad.rt, path.pad.ct)
    return result


def _trace_pipes(source: SourceMap, reading: Reading) -> tuple[list[EdgePipe], int]:
    """Return a pipe for each receiver with the tiles that it reads as far as the producer's buffer holds them, and the
    granularity. Raises RefusedError if sizes differ, or a kernel broadcast cannot be kept."""
    buffered = source.buffered
    t = source.producer.t
    _require_readable(source, reading)
    table = read_in_order(source.tiles, reading)
    if not reading.kept and buffered > t:
        within_bounds(table.size * (buffered // t))
        inputs = np.arange(buffered // t, dtype=np.int64)[None, :, None] * (t * source.mblock_tiles)
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
        kept_tiles = tiles[:end]
        if reading.kept:
            kept_tiles = _kept_tiles(kept_tiles, reading)
        if len(kept_tiles):
            granularity = _granularity(kept_tiles[None], granularity)
            pipes.append(EdgePipe(kept_tiles, [dest], [False]))
    return pipes, granularity


def _require_readable(source: SourceMap, reading: Reading) -> None:
    """Raise RefusedError if the operand has another size than its source after TMs (V179), or a kernel broadcast cannot
    be kept (V328)."""
    rows, columns = reading.cut
    size = (reading.t, rows * reading.mblock[0] * reading.ublock[0], columns * reading.mblock[1] * reading.ublock[1])
    if size != source.tiles.shape:
        message = f"(t, tile rows, tile columns) of the operand is {size}, of its source after TMs {source.tiles.shape}"
        raise RefusedError("V179", message)
    t = source.producer.t
    if reading.kept and not reading.kept_per_t and (source.buffered, t) != (1, 1):
        message = f"kernel_broadcast of a producer with t {t} that buffers {source.buffered} mblocks"
        raise RefusedError("V328", message, "use kernel_broadcast_per_t, or a producer with t 1 and buf_size_mb 1 or 2")


def read_in_order(tiles: Tiles, reading: Reading) -> Tiles:
    """Return an array [pipes, tiles]: for each core with tiles of its own, row by row, the tiles of its block of [t,
    rows, columns] in the order in which it reads them (OPS 2)."""
    (rows, columns) = reading.cut
    (m, n) = reading.mblock
    (r, c) = reading.ublock
    blocks = tiles.reshape(reading.t, rows, m, r, columns, n, c)
    if reading.row_major:
        order = (1, 4, 0, 2, 5, 3, 6)
    else:
        order = (1, 4, 0, 5, 2, 3, 6)
    return blocks.transpose(order).reshape(rows * columns, -1)


def _dests(reading: Reading) -> list[Dest]:
    """Return the receiver of each pipe, in the order of the pipes: a core, or a whole row or column of cores."""
    rows, columns = reading.grid
    if reading.spread == "rows":
        return [(row, ALL) for row in range(rows)]
    if reading.spread == "columns":
        return [(ALL, column) for column in range(columns)]
    return list(product(range(rows), range(columns)))


def _granularity(table: Tiles, so_far: int) -> int:
    """Return the greatest divisor of `so_far` that divides every run of adjacent tiles in a table [pipes, tiles], and
    every run's first place in the buffer and in the pipe."""
    starts = np.empty(table.shape, bool)
    starts[:, 0] = True
    padding = table < CORE
    starts[:, 1:] = (table[:, 1:] != table[:, :-1] + 1) & ~(padding[:, 1:] & padding[:, :-1])
    divisor = gcd(so_far, table.shape[1])
    if divisor == 1:
        return 1
    firsts = np.unique(np.concatenate((places(table[starts]), np.nonzero(starts)[1])))
    return gcd(divisor, int(np.gcd.reduce(firsts)))


def _kept_tiles(tiles: Tiles, reading: Reading) -> Tiles:
    """Return the tiles that the core keeps of an operand with kernel broadcast. Raises RefusedError unless all others
    repeat them."""
    block = reading.mblock[0] * reading.mblock[1] * reading.ublock[0] * reading.ublock[1]
    number = np.arange(len(tiles))
    if reading.kept_per_t:
        within = number % block
    else:
        within = number
    kept_tiles = tiles[within < reading.kept]
    repeated_index = number % reading.kept
    if reading.kept_per_t:
        repeated_index = repeated_index + (number // block) % reading.t * reading.kept
    repeats = within >= reading.kept
    wrong = repeats.any() and (
        repeated_index[repeats].max() >= len(kept_tiles)
        or (kept_tiles[repeated_index[repeats]] != tiles[repeats]).any()
    )
    if wrong:
        if reading.kept_per_t:
            name = "kernel_broadcast_per_t"
        else:
            name = "kernel_broadcast"
        raise RefusedError("V329", f"{name} keeps {reading.kept} tiles, but the operand does not repeat them")
    return kept_tiles


def _serve_in_turn(pipes: list[EdgePipe], reading: Reading, phases: StackPhases, row_major: bool) -> None:
    """Give each pipe several receivers, served one after the other, if pieces of a stack go to several cores or are
    padding. `row_major` tells whether pieces are stacked row by row."""
    (r_factor, c_factor) = phases.factors
    (r_padding, c_padding) = phases.padding
    cut_r, cut_c = reading.cut
    over_cores = (r_factor > 1 and cut_r > 1) or (c_factor > 1 and cut_c > 1)
    if not over_cores and not r_padding and not c_padding:
        return
    period = _turn_period(reading, phases, row_major)
    for pipe in pipes:
        first = pipe.dests[0]
        pipe.dests = []
        pipe.padding = []
        for turn in range(period):
            down, across = _piece_of_turn(turn, phases.factors, row_major)
            pipe.dests.append(_dest_of_turn(first, reading.grid, phases.factors, (down, across)))
            pipe.padding.append(down >= r_factor - r_padding or across >= c_factor - c_padding)


def _piece_of_turn(turn: int, factors: tuple[int, int], row_major: bool) -> tuple[int, int]:
    """Return row and column of the piece that a pipe serves in a turn. `factors` is the number of pieces along rows and
    columns; `row_major` tells whether they are stacked row by row."""
    if row_major:
        return divmod(turn, factors[1])
    across, down = divmod(turn, factors[0])
    return down, across


def _turn_period(reading: Reading, phases: StackPhases, row_major: bool) -> int:
    """Return the number of turns after which a pipe's receivers repeat: all pieces, or those of one direction if the
    pieces of the other one go to the same cores. `row_major` tells whether pieces are stacked row by row."""
    (r_factor, c_factor) = phases.factors
    (r_padding, c_padding) = phases.padding
    cut_r, cut_c = reading.cut
    if row_major and cut_r == 1 and cut_c > 1 and not r_padding:
        return c_factor
    if not row_major and cut_c == 1 and cut_r > 1 and not c_padding:
        return r_factor
    return r_factor * c_factor


def _dest_of_turn(first: Dest, grid: tuple[int, int], factors: tuple[int, int], piece: tuple[int, int]) -> Dest:
    """Return the receiver of a piece (its row and column among the pieces), given that of the first piece. `grid` is
    the reader's, `factors` the number of pieces along rows and columns."""
    row, column = first
    if row != ALL:
        row += piece[0] * grid[0] // factors[0]
    if column != ALL:
        column += piece[1] * grid[1] // factors[1]
    return row, column


def _is_out_of_order(pipes: Sequence[EdgePipe], mblock_tiles: int) -> bool:
    """Return whether a core of the producer sends to a pipe anything but all that it writes, in order: padding, pieces
    in turn, part of an mblock, or to several pipes. `mblock_tiles` is the tiles of the producer's mblock."""
    if any(len(pipe.dests) > 1 for pipe in pipes):
        return True
    next_place: dict[int, int] = {}
    for pipe in pipes:
        tiles = pipe.tiles
        first = int(pipe.tiles[0])
        if first < CORE:
            return True
        if (tiles[1:] == tiles[:-1] + 1).all():  # one core's, one after the other
            core, place = divmod(first - CORE, CORE)
            if core in next_place or place != 1:
                return True
            next_place[core] = len(tiles)
            continue
        read_of_core = _tiles_in_order(tiles)
        if read_of_core is None or not read_of_core.keys().isdisjoint(next_place):
            return True
        next_place.update(read_of_core)
    return any(count % mblock_tiles for count in next_place.values())


def _tiles_in_order(tiles: Tiles) -> dict[int, int] | None:
    """Return how many tiles of each core of the producer a pipe reads, if it reads those of every core from the first
    on, in order, and no padding; else None."""
    core = cores(tiles)
    changes = np.nonzero(core[1:] != core[:-1])[0] + 1
    tiles_of_core: dict[int, int] = {}
    for start, end in zip((0, *changes), (*changes, len(tiles)), strict=True):
        core_here = int(core[start])
        if core_here < 0:
            return None
        run = places(tiles[start:end])
        first = tiles_of_core.get(core_here, 0)
        if run[0] != first or not (run[1:] == run[:-1] + 1).all():
            return None
        tiles_of_core[core_here] = first + len(run)
    return tiles_of_core


@lru_cache(maxsize=16)
def table_rows_map(producer: Blocking, grid: tuple[int, int], indices: int) -> EdgeMap:
    """Return the pipes that bring an embedding on `grid` the table's rows that it looks up, `indices` for each core.
    Raises RefusedError if the table is not cut as the device can read it, UnsupportedError for too many tiles."""
    across = _cut_of_flat_data(producer, grid, "embedding")[1]
    rows, columns = producer.grid_size
    within_bounds(grid[0] * grid[1] * indices * (producer.mblock[1] // across))
    pipes: list[EdgePipe] = []
    tiles = np.arange(1, indices + 1, dtype=np.int64)
    for row in range(grid[0]):
        for column in range(grid[1]):
            core = rows * row // grid[0] * columns + columns * column // grid[1]
            tiles_of_core = np.tile(tiles + (core + 1) * CORE, producer.mblock[1] // across)
            pipes.append(EdgePipe(tiles_of_core, [(row, column)], [False]))
    return EdgeMap(granularity=1, out_of_order=True, pipes=pipes, producer_grid=producer.grid_size, consumer_grid=grid)


@lru_cache(maxsize=16)
def flat_rows_map(producer: Blocking, grid: tuple[int, int], rows_per_input: int) -> EdgeMap:
    """Return the pipes that bring a tilizer on `grid` rows of flat data, of which one t of a buffer has
    `rows_per_input`. Raises RefusedError if the data are not cut as the device can read them, UnsupportedError for too
    many tiles."""
    down, across = _cut_of_flat_data(producer, grid, "tilizer")
    count = rows_per_input // down
    loops = 1
    if producer.ublock_order == "r":
        if producer.mblock[0] % down:
            message = f"rows of {producer.mblock[0]} mblocks for {down} rows of cores"
            raise RefusedError("V330", f"{message}: flat data is cut by whole mblocks", "use another grid or mblock")
        loops = producer.mblock[0] // down
        count //= loops
    within_bounds(grid[0] * grid[1] * producer.t * loops * (producer.mblock[1] // across) * count)
    rows, columns = producer.grid_size
    rows_of_t = np.arange(loops)[:, None, None] * count + np.arange(count)[None, None, :]
    one_t = np.broadcast_to(rows_of_t, (loops, producer.mblock[1] // across, count)).reshape(-1)
    all_t = (np.arange(producer.t)[:, None] * rows_per_input + one_t).reshape(-1)
    pipes: list[EdgePipe] = []
    for row in range(grid[0]):
        for column in range(grid[1]):
            core = rows * row // grid[0] * columns + columns * column // grid[1]
            pipes.append(EdgePipe(all_t + 1 + (core + 1) * CORE, [(row, column)], [False]))
    return EdgeMap(granularity=1, out_of_order=True, pipes=pipes, producer_grid=producer.grid_size, consumer_grid=grid)


def _cut_of_flat_data(producer: Blocking, grid: tuple[int, int], op: str) -> tuple[int, int]:
    """Return how many rows and columns of cores of the reader's grid share each buffer of a queue of flat data. `op` is
    the type of the reader, for the hint. Raises RefusedError if cores and buffers do not divide."""
    rows, columns = producer.grid_size
    if grid[0] % rows or grid[1] % columns:
        message = f"a grid of {grid[0]}x{grid[1]} cores reads a queue of {rows}x{columns} buffers"
        raise RefusedError("V330", f"{message}: each buffer needs a whole number of cores")
    down = grid[0] // rows
    across = grid[1] // columns
    if producer.mblock[1] % across:
        message = f"{across} columns of cores share {producer.mblock[1]} columns of mblocks of a buffer"
        hint = f"{op} cuts flat data by whole mblocks, never within a ublock: use smaller ublocks in the queue"
        raise RefusedError("V330", message, hint)
    return down, across


_NO_PAD = Pad()


def path_of(op: Op, index: int) -> Path:
    """Return the unpadding, TMs and padding of operand `index`, as the netlist states them."""
    pads = [pads[index] if index < len(pads) else _NO_PAD for pads in (op.input_unpad, op.input_pad)]
    if index < len(op.input_tms):
        tms = op.input_tms[index]
    else:
        tms = ()
    return Path(tms, pads[0], pads[1])


def shape_after(source: Blocking, path: Path) -> Shape:
    """Return (t, tile rows, tile columns) of a source after unpadding, TMs and padding. Divisions that leave a
    remainder are rounded down."""
    t, rows, columns = source.shape
    rows = rows - path.unpad.rt
    columns = columns - path.unpad.ct
    for tm in path.tms:
        if tm.name == "transpose":
            rows, columns = columns, rows
        elif tm.name == "broadcast":
            factors = {"z": 1, "r": 1, "c": 1, str(tm.args[0]): int(tm.args[1])}
            t = t * factors["z"]
            rows = rows * factors["r"]
            columns = columns * factors["c"]
        elif tm.name == "pad":
            rows = rows + int(tm.args[0])
            columns = columns + int(tm.args[1])
        elif tm.name == "hslice":
            t = t * int(tm.args[0])
            columns = columns // int(tm.args[0])
        elif tm.name == "vslice":
            t = t * int(tm.args[0])
            rows = rows // int(tm.args[0])
        elif tm.name == "hstack":
            t = t // int(tm.args[0])
            columns = columns * int(tm.args[0])
        elif tm.name == "vstack":
            t = t // int(tm.args[0])
            rows = rows * int(tm.args[0])
    return t, rows + path.pad.rt, columns + path.pad.ct
