"""What the chip's router can do with an edge between two ops: how stacked slices have to match the reader's blocks, and
the streams that a producing core needs for all its readers.

The vendor's router (net2pipe) turns each operand into pipes: one for each row of cores of a product's first operand,
for each column of its second one, for each core of any other op. A core reads what the producer's buffer holds; where
slices of t that are stacked are more than that, pieces follow each other (phases), and must follow in the order in
which the reader scans its tiles.
"""

from collections.abc import Container
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import Constant, Shape, TileGraph, TileOp, Tm, Use
from buda_emu.compiler.place.blocks import Blocks, step_blocks
from buda_emu.compiler.place.cost import constant_grid
from buda_emu.netlist.model import Tm as NetlistTm
from buda_emu.performance.routing.pipes.edge import Consumer, count_stack_phases
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.source_map import StackFacts, rearrange
from buda_emu.spec.archs import EXTRA_STREAMS, GATHER_STREAMS

FORKS = 4
"""Extra streams of a core that must be left beside those of its operands, for the readers of its result. Where operands
take more, numbers in L1 are repeated (`numbers_to_repeat`), and other constants stay in DRAM."""
GATHERS = 4
"""Operands of a core for which `GATHER_STREAMS` are counted each. Each operand beyond that counts as one stream."""

Pipes = NDArray[np.int64]
"""The number of pipes that each core of the producer's grid feeds, as [rows, columns]."""


def view(op: TileOp, blocks: Blocks, operand: int) -> Consumer:
    """Return how the cores of an op divide its operand number `operand`, in the order in which they scan the tiles (OPS
    6.1, 6.3; FRONTEND 3.4 for the orders). For a fused op with sums, that of the step which reads the operand first."""
    part = op
    division = blocks
    if op.has_sums:
        part = op.reader(operand)
        division = step_blocks(op, blocks, part)
    (rows, columns) = division.grid
    (m, n) = division.mblock
    (r, c) = division.ublock
    if op.type == "depthwise" and operand == 0:
        return Consumer((rows, 1), (m, division.m_k * n), (r, c), row_major=False)
    if part.has("reduces"):
        reduced_axis = part.attrs["dim"]
    else:
        reduced_axis = ""
    if reduced_axis == "r":
        return Consumer(division.grid, (division.m_k, n), (division.u_kt, c), row_major=False)
    if reduced_axis == "c":
        return Consumer(division.grid, (m, division.m_k), (r, division.u_kt), row_major=True)
    words_of_picker = operand == 2 and op.attrs.get("identity")
    if op.is_left_factor(operand) or words_of_picker:  # words are read as the tiles are
        return Consumer((rows, 1), (m, division.m_k), (r, division.u_kt), row_major=False)
    if op.is_factor(operand):
        return Consumer((1, columns), (division.m_k, n), (division.u_kt, c), row_major=True)
    return Consumer(division.grid, division.mblock, division.ublock, row_major=True)


def buffered_slices(blocks: Blocks) -> int:
    """Return the slices of t in one half of a core's output buffer."""
    return max(1, blocks.buf_size_mb // 2)


def stack_problem(shape: Shape, held: int, tms: tuple[Tm, ...], reader: Consumer) -> str:
    """Return why the router cannot stack slices on their way from a producer to a reader, "" where it can. `shape`: the
    producer's result in tiles; `held`: how many of its slices of t one half of the output buffer has; `tms`: the TMs on
    the way; `reader`: how the reader's cores divide the operand."""
    try:
        facts = StackFacts(shape, held)
        for tm in tms:
            facts.apply(NetlistTm(tm[0], tm[1:]))
        if not facts.needs_phases:
            return ""
        phases = count_stack_phases(facts, reader)
    except RefusedError as refusal:
        return refusal.what
    # The router takes a buffer for all pieces of both stacks where it holds those of the first one. The pieces of the
    # second one are then more than it counts, which matters where several cores lie along it.
    if facts.row_major_stack:
        second = 0
    else:
        second = 1
    if reader.grid[second] > 1 and prod(phases.factors) != max(1, phases.pieces // held):
        return "pieces would go to the wrong cores of the reader"
    return ""


# ------------------------------------------------------------------------------------------------------------ streams
def pipes(op: TileOp, blocks: Blocks, tms: tuple[Tm, ...], reader: Consumer) -> Pipes:
    """Return the number of pipes that each core of the producer (`op`, divided as `blocks` says) feeds for one operand
    of a reader, on the way through that operand's `tms`."""
    return _count_pipes(op.shape, blocks.grid, buffered_slices(blocks), tms, reader.grid)


@cache
def _count_pipes(
    shape: Shape, grid: tuple[int, int], slices: int, tms: tuple[Tm, ...], reader_grid: tuple[int, int]
) -> Pipes:
    """Count the pipes from each core of a producer's `grid`, which holds the first `slices` of its `shape`, by
    following these tiles through `tms` to the cores of `reader_grid`: a pipe for each pair of cores that share a
    tile."""
    t, rows, columns = shape
    core = np.arange(rows)[:, None] * grid[0] // rows * grid[1] + np.arange(columns)[None, :] * grid[1] // columns
    near = np.arange(t) < max(slices, 1)  # what is beyond the buffer comes through the same pipes, in phases
    cores = np.where(near[:, None, None], core[None], -1)
    for tm in tms:
        cores = rearrange(cores, NetlistTm(tm[0], tm[1:]))
    height = cores.shape[1] // reader_grid[0]
    width = cores.shape[2] // reader_grid[1]
    core_tiles = cores.reshape(cores.shape[0], reader_grid[0], height, reader_grid[1], width).transpose(1, 3, 0, 2, 4)
    core_tiles = core_tiles.reshape(prod(reader_grid), -1)
    counts = np.zeros(prod(grid) + 1, np.int64)
    for tiles in core_tiles:
        if tiles[0] >= 0:  # a reader that begins beyond the buffer shares the pipe of another one
            counts[np.unique(tiles)] += 1
    return counts[:-1].reshape(grid)


def streams_of_constants(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Return how many extra streams the fullest core of an op needs for constants that stay in L1.

    Such a buffer lies on one core and goes from there to each core that reads it, each by a stream; two more belong to
    the buffer and its copy. `held`: the sources of the constants that stay in L1; `alone`: the numbers of the operands
    of which each core has a buffer of its own, so that nothing is sent."""
    total = 0
    for number, use in enumerate(op.uses):
        if use.source in held:
            total += 2
            if number in alone:
                fed = 1
            else:
                fed = _cores_fed_from_buffer(tiles, op, blocks, number)
            if fed > 1:
                total += fed
    return total


def _cores_fed_from_buffer(tiles: TileGraph, op: TileOp, blocks: Blocks, number: int) -> int:
    """Return to how many cores the fullest buffer of operand `number`, a constant in L1, is sent. It is 1 where all
    readers share a pipe, and for the tiles and words of an identity matmul, of which each row of cores gets its own
    when the division is known."""
    use = op.uses[number]
    reader = view(op, blocks, number)
    if reader.grid != blocks.grid or (op.attrs.get("identity") and number != 1):
        return 1
    shape = tiles.shape_of(use.source)
    return int(_count_pipes(shape, constant_grid(op, number, shape, blocks.grid), shape[0], use.tms, reader.grid).max())


def streams_of_operands(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Return how many extra streams one core of an op needs for its operands, at most. `held`: the sources of constants
    that stay in L1; `alone`: the numbers of the operands of which each core has a buffer of its own."""
    moving = sum(use.source not in held for use in op.uses)
    wide = min(moving, GATHERS)
    return GATHER_STREAMS * wide + (moving - wide) + streams_of_constants(tiles, op, blocks, held, alone)


def numbers_to_repeat(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> frozenset[int] | None:
    """Return which operands (by number) are to be repeated so that each core has its own copy: constants in L1 (`held`)
    with the same number everywhere, which one core would otherwise send to others. None where the operands leave
    `FORKS` streams as it is; empty where they do not and there is no such operand."""
    if streams_of_operands(tiles, op, blocks, held) <= len(EXTRA_STREAMS) - FORKS:
        return None
    return frozenset(
        number
        for number, use in enumerate(op.uses)
        if use.source in held and is_number(tiles, use) and _cores_fed_from_buffer(tiles, op, blocks, number) > 1
    )


def is_number(tiles: TileGraph, use: Use) -> bool:
    """Return whether an operand is a constant of one tile that has the same number everywhere, with no TMs but
    broadcasts. Raises KeyError for an operand that is no constant."""
    constant = tiles.constants[use.source]
    if constant.kind != "value" or constant.shape != (1, 1, 1) or any(tm[0] != "broadcast" for tm in use.tms):
        return False
    return bool((constant.values == constant.values.flat[0]).all())


def repeat_numbers(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> tuple[TileOp, frozenset[str]]:
    """Return the op with each operand that `numbers_to_repeat` names replaced by a constant of the operand's full
    shape, and the sources of the constants that then stay in L1. The new constants are added to `tiles`; where there
    are none, the op and `held` are returned as they are."""
    uses = list(op.uses)
    held_after = held
    for number in sorted(numbers_to_repeat(tiles, op, blocks, held) or ()):
        source = op.uses[number].source
        (t, rows, columns) = op.operand_shape(number)
        name = f"{source}.{t}x{rows}x{columns}"
        value = tiles.constants[source].values.flat[:1]
        tiles.constants[name] = Constant(name, np.broadcast_to(value, (t, rows * 32, columns * 32)))
        uses[number] = replace(op.uses[number], source=name, tms=())
        held_after = held_after - {source} | {name}
    if held_after is held:
        return op, held
    return replace(op, uses=uses), held_after
