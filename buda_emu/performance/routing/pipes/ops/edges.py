"""The edges of an op: for each operand the pipes that bring its tiles, and the changes that a prologue makes to
them."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.routing.pipes.edge import (
    ALL,
    EdgeMap,
    EdgePipe,
    EdgeSource,
    Path,
    Reading,
    edge_map,
    path_of,
    read_in_order,
    shape_after,
    source_map,
)
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.ops.general import buffered_mblocks
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import OpInputs
from buda_emu.performance.routing.pipes.source_map import CORE, Tiles, cores
from buda_emu.support.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """The pipes of a right operand that a prologue loads in chunks. `load` goes from the queue to the chunks, one on
    each of the first cores of a column, `gather` from the chunks to all cores of the column."""

    load: EdgeMap
    gather: EdgeMap
    chunks: int
    chunk_tiles: int


def unroll_multicasts(edge: EdgeMap) -> EdgeMap:
    """Return the edge with a pipe to each single core in place of one to a whole row or column of cores."""
    rows, columns = edge.consumer_grid
    pipes: list[EdgePipe] = []
    for pipe in edge.pipes:
        row, column = pipe.dests[0]
        if row == ALL:
            dests = [(index, column) for index in range(rows)]
        else:
            dests = [(row, index) for index in range(columns)]
        pipes += [EdgePipe(pipe.tiles, [dest], [False]) for dest in dests]
    return EdgeMap(
        granularity=edge.granularity,
        out_of_order=edge.out_of_order,
        pipes=pipes,
        producer_grid=edge.producer_grid,
        consumer_grid=edge.consumer_grid,
    )


def two_steps(source: EdgeSource, path: Path, reading: Reading) -> TwoSteps:
    """Return the pipes that load a right operand in chunks, each on one core of a column, and from there to all its
    cores. Raises RefusedError for what net2pipe refuses."""
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
        loaded, gathered = _chunk_pipes(tiles, reading, size, column)
        load += loaded
        granularity = _common_run(np.concatenate([pipe.tiles for pipe in loaded]), granularity)
        numbers = np.concatenate(gathered)
        gather.append(
            EdgePipe(
                numbers * CORE * columns + (column + 1) * CORE + _numbers_in_chunks(gathered), [(ALL, column)], [False]
            )
        )
    grid = (count, columns)
    first = EdgeMap(
        granularity=granularity,
        out_of_order=True,
        pipes=load,
        producer_grid=source.blocking.grid_size,
        consumer_grid=grid,
    )
    return TwoSteps(
        first,
        EdgeMap(granularity=size, out_of_order=True, pipes=gather, producer_grid=grid, consumer_grid=reading.grid),
        count,
        size,
    )


def _chunk_pipes(tiles: Tiles, reading: Reading, size: int, column: int) -> tuple[list[EdgePipe], list[Tiles]]:
    """Return the pipes that load the chunks of a column of cores, each of `size` of `tiles`, and for each chunk an
    array with its number, repeated for each of its tiles. Raises RefusedError if a kernel broadcast does not repeat
    what it keeps."""
    number = np.arange(len(tiles))
    if reading.kept:
        block = len(tiles) // reading.t
        if reading.kept_per_t:
            within = number % block
        else:
            within = number
        is_kept = within < reading.kept
        if not is_kept.all():
            last = tiles[is_kept][-size:]
            repeated_index = number[~is_kept] % reading.kept
            if reading.kept_per_t:
                repeated_index = repeated_index + number[~is_kept] // block * reading.kept
            if repeated_index.max() >= len(last) or (last[repeated_index] != tiles[~is_kept]).any():
                raise RefusedError("V329", f"kernel_broadcast keeps {reading.kept} tiles, but its prologue has more")
        tiles = tiles[is_kept]
        number = number[is_kept]
    begins = np.nonzero(number % size == 0)[0]
    parts = np.split(tiles, begins[1:])
    pipes = [EdgePipe(part, [(chunk, column)], [False]) for chunk, part in enumerate(parts)]
    return pipes, [np.full(len(part), chunk, np.int64) for chunk, part in enumerate(parts)]


def _numbers_in_chunks(parts: list[Tiles]) -> Tiles:
    """Return for each tile of all chunks `parts` its number in its own chunk, counted from 1: its place in the chunk's
    buffer."""
    return np.concatenate([np.arange(1, len(part) + 1, dtype=np.int64) for part in parts])


def _common_run(tiles: Tiles, granularity: int) -> int:
    """Return the largest divisor of `granularity` that divides every run of adjacent tiles shorter than it; where the
    runs begin does not count."""
    breaks = np.nonzero(tiles[1:] != tiles[:-1] + 1)[0] + 1
    ends = np.concatenate((breaks, [len(tiles)]))
    for run in np.diff(ends, prepend=0).tolist():
        if run < granularity:
            granularity = gcd(granularity, run)
    return granularity


@dataclass(slots=True)
class OpEdges:
    """The edges of an op. `maps` has one for each input that the netlist names, `two_steps` those of queues in chunks,
    by name. `as_read` tells for queues in a prologue whether L1 keeps them in the order in which the op reads them,
    rather than as they lie in DRAM."""

    maps: list[EdgeMap] = field(default_factory=list[EdgeMap])
    two_steps: dict[str, TwoSteps] = field(default_factory=dict[str, TwoSteps])
    as_read: dict[str, bool] = field(default_factory=dict[str, bool])


def make_source(producer: Queue | Op, input_count: int) -> EdgeSource:
    """Return an op or queue as source of an edge; `input_count` is the inputs of the epoch. Raises RefusedError for a
    result that no pipe can read."""
    if isinstance(producer, Queue):
        return EdgeSource(producer.blocking, producer.blocking.t)
    kind = kind_of(producer)
    if kind.sums and producer.blocking.ublock_order != "r":
        raise RefusedError(
            "V178", f"{producer.type} {producer.name} has ublock_order c", "a result that is read needs r"
        )
    if kind.keeps_strips:
        return EdgeSource(producer.blocking, 1)
    return EdgeSource(producer.blocking, min(input_count * producer.blocking.t, buffered_mblocks(producer)))


def operand_edge(inputs: OpInputs, index: int, input_count: int) -> EdgeMap:
    """Return the pipes of operand `index`, as if no prologue loaded it. `input_count` is the inputs of the epoch.
    Raises RefusedError for a refusal of net2pipe, UnsupportedError for too many tiles."""
    if inputs.kind.is_flat(index):
        return inputs.kind.flat_edge(inputs)
    return edge_map(*edge_ends(inputs, index, input_count))


def edge_ends(inputs: OpInputs, index: int, input_count: int) -> tuple[EdgeSource, Path, Reading]:
    """Return the arguments of `edge_map` for operand `index`, which must be read in tiles. `input_count` is the inputs
    of the epoch. Raises RefusedError for a result that no pipe can read."""
    source = make_source(inputs.sources[index], input_count)
    path = path_of(inputs.op, index)
    return source, path, inputs.reading(index, shape_after(source.blocking, path))


def op_edges(inputs: OpInputs, input_count: int, prologue: Collection[str]) -> OpEdges:
    """Return all edges of an op; `input_count` is the inputs of the epoch, `prologue` has the queues that a prologue
    loads into L1. Raises RefusedError for what net2pipe refuses, with its `input` set, and UnsupportedError for too
    many tiles."""
    edges = OpEdges()
    for index, name in enumerate(inputs.op.inputs):
        try:
            edge = operand_edge(inputs, index, input_count)
            if name in prologue:
                edge = _with_prologue(inputs, index, input_count, edge, edges)
        except RefusedError as error:
            error.input = index
            raise
        except UnsupportedError as error:
            raise UnsupportedError(f"op {inputs.op.name}, input {index}: {error}") from None
        edges.maps.append(edge)
    return edges


def _with_prologue(inputs: OpInputs, index: int, input_count: int, edge: EdgeMap, edges: OpEdges) -> EdgeMap:
    """Return the edge of an operand that a prologue loads into L1, given the edge without it, and note in `edges` how
    L1 keeps it: as it is read if it fits the operand's buffer, in chunks, or as it lies in DRAM."""
    op = inputs.op
    name = inputs.op.inputs[index]
    fits_buffer = edge.most_tiles <= inputs.size_tiles(index)
    if inputs.kind.is_dense and index < 2:
        if fits_buffer:
            edges.as_read[name] = True
            return unroll_multicasts(edge)
        if index == 1 and not path_of(op, index).tms:
            steps = two_steps(*edge_ends(inputs, index, input_count))
            edges.two_steps[name] = steps
            edges.as_read[name] = True
            return steps.load
        return edge
    if inputs.kind.keeps_blocks(inputs, index):
        edges.as_read[name] = fits_buffer
    return edge


def queue_edge(queue: Queue, op: Op, input_count: int) -> EdgeMap:
    """Return the pipes from an op to a queue that it feeds. `input_count` is the inputs of the epoch. Raises
    RefusedError for what net2pipe refuses, such as a buffer that several cores would fill, UnsupportedError for too
    many tiles."""
    blocking = queue.blocking
    reading = Reading(
        t=blocking.t,
        grid=blocking.grid_size,
        mblock=blocking.mblock,
        ublock=blocking.ublock,
        row_major=blocking.ublock_order == "r",
    )
    edge = edge_map(make_source(op, input_count), Path(queue.input_tms), reading)
    for pipe in edge.pipes:
        row, column = pipe.dests[0]
        place = f"its buffer at row {row}, column {column}"
        if len(pipe.dests) > 1:
            raise RefusedError(
                "V332", f"{place} would get stacked pieces in turn with others", "stack in an op instead"
            )
        if not op.untilize_output and (cores(pipe.tiles) != cores(pipe.tiles[:1])).any():
            hint = "several cores would fill one buffer: give queue and op the same grid_size"
            raise RefusedError("V078", f"{place} would be filled by several cores of op {op.name}", hint)
    return edge
