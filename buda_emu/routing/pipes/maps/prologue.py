"""Operands that stay in L1 for a whole epoch (prologue): as they lie in DRAM, as they are read, or, of a product's
right operand, in chunks on the cores of a column that are gathered and multicast each time."""

from dataclasses import dataclass
from math import gcd

import numpy as np

from buda_emu.routing.pipes.maps.edge import ALL, EdgeMap, EdgePipe, Path, Reading, Source, read_in_order, source_map
from buda_emu.routing.pipes.maps.source_map import CORE, Tiles
from buda_emu.routing.pipes.refusal import RefusedError


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """`load`: from the queue to chunks, one for each of the first cores of a column; `gather`: from there to all."""

    load: EdgeMap
    gather: EdgeMap
    chunks: int
    chunk_tiles: int


def unrolled(edge: EdgeMap) -> EdgeMap:
    """Each core gets a pipe of its own, where rows or columns of cores would share one."""
    rows, columns = edge.consumer_grid
    pipes: list[EdgePipe] = []
    for pipe in edge.pipes:
        row, column = pipe.dests[0]
        dests = [(one, column) for one in range(rows)] if row == ALL else [(row, one) for one in range(columns)]
        pipes += [EdgePipe(pipe.tiles, [dest], [False]) for dest in dests]
    return EdgeMap(edge.granularity, edge.out_of_order, pipes, edge.producer_grid, edge.consumer_grid)


def two_steps(source: Source, path: Path, reading: Reading) -> TwoSteps:
    """A right operand in chunks. RefusedError for what the vendor's net2pipe refuses."""
    under_tms = source_map(source, path)
    if under_tms.needs_phases:
        raise RefusedError("V328", "pieces of a stack come in phases, a prologue needs all at once")
    total = reading.t * reading.mblock[0] * reading.ublock[0] * reading.mblock[1] * reading.ublock[1]
    count = reading.grid[0]
    while (reading.kept or total) % count:
        count -= 1
    size = (reading.kept or total) // count
    columns = reading.grid[1]
    load: list[EdgePipe] = []
    gather: list[EdgePipe] = []
    granularity = under_tms.buffer_tiles
    for column, tiles in enumerate(read_in_order(under_tms.tiles, reading)):
        loaded, gathered = _chunks(tiles, reading, size, column)
        load += loaded
        granularity = _runs(np.concatenate([pipe.tiles for pipe in loaded]), granularity)
        numbers = np.concatenate(gathered)
        gather.append(
            EdgePipe(numbers * CORE * columns + (column + 1) * CORE + _within(gathered), [(ALL, column)], [False])
        )
    grid = (count, columns)
    first = EdgeMap(granularity, True, load, source.blocking.grid_size, grid)
    return TwoSteps(first, EdgeMap(size, True, gather, grid, reading.grid), count, size)


def _chunks(tiles: Tiles, reading: Reading, size: int, column: int) -> tuple[list[EdgePipe], list[Tiles]]:
    """Pipes that load the chunks of a column, and for each tile that is gathered the number of its chunk."""
    number = np.arange(len(tiles))
    if reading.kept:
        block = len(tiles) // reading.t
        within = number % block if reading.kept_per_t else number
        kept = within < reading.kept
        if not kept.all():
            last = tiles[kept][-size:]
            like = number[~kept] % reading.kept
            if reading.kept_per_t:
                like = like + number[~kept] // block * reading.kept
            if like.max() >= len(last) or (last[like] != tiles[~kept]).any():
                raise RefusedError("V329", f"kernel_broadcast keeps {reading.kept} tiles, but its prologue has more")
        tiles, number = tiles[kept], number[kept]
    begins = np.nonzero(number % size == 0)[0]
    parts = np.split(tiles, begins[1:])
    pipes = [EdgePipe(part, [(chunk, column)], [False]) for chunk, part in enumerate(parts)]
    return pipes, [np.full(len(part), chunk, np.int64) for chunk, part in enumerate(parts)]


def _within(parts: list[Tiles]) -> Tiles:
    return np.concatenate([np.arange(1, len(part) + 1, dtype=np.int64) for part in parts])


def _runs(tiles: Tiles, granularity: int) -> int:
    """Only runs shorter than what was found so far count here, and not where they begin."""
    breaks = np.nonzero(tiles[1:] != tiles[:-1] + 1)[0] + 1
    ends = np.concatenate((breaks, [len(tiles)]))
    for run in np.diff(ends, prepend=0).tolist():
        if run < granularity:
            granularity = gcd(granularity, run)
    return granularity
