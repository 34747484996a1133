"""What the chip's router can do with an edge between two ops: how stacked slices have to match the reader's blocks, and
the streams that a producing core needs for all its readers.

The vendor's router (net2pipe) turns each operand into pipes: one for each row of cores of a product's first operand,
for each column of its second one, for each core of any other op. A core reads what the producer's buffer holds; where
slices of t that are stacked are more than that, pieces follow each other (phases), and must follow in the order in
which the reader scans its tiles.
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import Constant, Shape, TileGraph, TileOp, Tm, Use
from buda_emu.compiler.place.blocks import Blocks, step_blocks
from buda_emu.compiler.place.cost import divided_like
from buda_emu.performance.routing.pipes.edge import Consumer
from buda_emu.spec.archs import EXTRA_STREAMS, GATHER_STREAMS

FORKS = 4
"""Extra streams of a core that constants leave to its readers, at least."""
GATHERS = 4
"""Most operands that a core gathers in that way; the others take one stream each, and turns."""

Pipes = NDArray[np.int64]
"""The number of pipes that each core of the producer's grid feeds, as [rows, columns]."""


def view(op: TileOp, blocks: Blocks, operand: int) -> Consumer:
    """Return the view of operand number `operand` (OPS 6.1, 6.3; FRONTEND 3.4 for the orders); for a fused op with sums
    that of the step which reads it first."""
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


# ------------------------------------------------------------------------------------------------------------- stacks
@dataclass(slots=True)
class _Stack:
    """The stacks in a chain of TMs: their factors along rows and columns, the slices that were cut before, whether the
    first stack goes along columns, and whether the stacked slices were more than one in the producer (`far`)."""

    rows: int = 1
    columns: int = 1
    slices: int = 1
    along_columns: bool = True
    far: bool = False
    ordered: bool = True
    """True if no other TM stands after a stack, and no stack is there twice."""

    @staticmethod
    def of(tms: tuple[Tm, ...]) -> "_Stack":
        """Collect the stacks of a chain of TMs in their order."""
        stack = _Stack()
        uncut = 1
        for name, axis, count in map(_tm_parts, tms):
            if name in ("hslice", "vslice") or axis == "z":
                stack.slices = stack.slices * count
                uncut = uncut * count
            if name not in ("hstack", "vstack"):
                stack.ordered = stack.ordered and stack.rows == stack.columns == 1
                continue
            if uncut % count == 0:
                uncut = uncut // count
            else:
                uncut = 1
                stack.far = True
            if name == "hstack":
                stack.ordered = stack.ordered and stack.columns == 1
                stack.columns *= count
                stack.along_columns = stack.rows == 1
            else:
                stack.ordered = stack.ordered and stack.rows == 1
                stack.along_columns = stack.columns > 1
                stack.rows *= count
        return stack


def buffered_slices(blocks: Blocks) -> int:
    """Return the slices of t in one half of a core's output buffer."""
    return max(1, blocks.buf_size_mb // 2)


def stack_problem(held: int, t: int, tms: tuple[Tm, ...], after: Shape, reader: Consumer) -> str:
    """Return why slices cannot be stacked on the way, "" where they can. `held` slices of the producer's `t` are in its
    buffer at a time; `after` is the operand's shape after its TMs."""
    stack = _Stack.of(tms)
    total = stack.rows * stack.columns
    if not stack.far or held % total == 0 or held % t == 0:
        return ""
    if not stack.ordered:
        return "another TM after a stack"
    pieces = _pieces(stack, held)
    if pieces is None:
        return "its stacked slices, those cut before and those in the producer's buffer do not divide each other"
    if _pieces_go_astray(stack, held, pieces, reader):
        return "pieces would go to the wrong cores of the reader"
    (block_rows, far_rows), (block_columns, far_columns) = pieces
    size = after[1] // stack.rows * block_rows, after[2] // stack.columns * block_columns
    far = far_rows, far_columns
    if not _fall_on_blocks(size, far, reader):
        return f"pieces of {size[0]} x {size[1]} tiles do not fall on the reader's blocks"
    if not _in_order(stack, size, far, reader):
        return "pieces do not follow the order of the reader's tiles"
    return ""


def _fall_on_blocks(size: tuple[int, int], far: tuple[int, int], reader: Consumer) -> bool:
    """Return whether pieces of `size` tiles divide the reader's blocks and ublocks, and `far` pieces its grid, or are
    divided by them, along rows and along columns."""
    for axis in (0, 1):
        block = reader.mblock[axis] * reader.ublock[axis]
        pairs = ((far[axis], reader.grid[axis]), (size[axis], block), (size[axis], reader.ublock[axis]))
        if not all(_divide(ours, theirs) for ours, theirs in pairs):
            return False
    return True


def _pieces(stack: _Stack, held: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return, along rows and along columns, how many stacked slices one slice of the producer makes and how many pieces
    follow each other in phases; None where counts do not divide each other. `held`: slices in the producer's buffer."""
    first = stack.rows
    second = stack.columns
    if stack.along_columns:
        first = stack.columns
        second = stack.rows
    if not _divide(stack.slices, first):
        return None
    if stack.slices % first == 0:
        left = stack.slices // first
        if not _divide(left, second):
            return None
        along_first = (first, 1)
        along_second = (min(left, second), max(1, second // left))
    else:
        along_first = (stack.slices, first // stack.slices)
        along_second = (1, second)
    if not _divide(along_first[1], held):
        return None
    if along_first[1] > held:
        along_first = along_first[0], along_first[1] // held
    else:
        if not _divide(along_second[1], held):
            return None
        along_first = (along_first[0], 1)
        along_second = (along_second[0], max(1, along_second[1] // held))
    if stack.along_columns:
        return along_second, along_first
    return along_first, along_second


def _pieces_go_astray(
    stack: _Stack, held: int, pieces: tuple[tuple[int, int], tuple[int, int]], reader: Consumer
) -> bool:
    """Return whether pieces would go to the wrong cores. The router takes a buffer for all pieces of both stacks where
    it holds those of the first one (`held` slices); the pieces of the second one are then more than it counts, which
    matters if several cores lie along it."""
    factors = stack.rows, stack.columns
    axis = 0 if stack.along_columns else 1
    first = factors[1 - axis] // pieces[1 - axis][0]
    second = factors[axis] // pieces[axis][0]
    counted = pieces[0][1] * pieces[1][1]
    return reader.grid[axis] > 1 and counted != max(1, first * second // held)


def _in_order(stack: _Stack, size: tuple[int, int], far: tuple[int, int], reader: Consumer) -> bool:
    """Return whether pieces of `size` tiles, `far` of them along each axis, come in the reader's order: ublock by
    ublock, the tiles of each row by row."""
    (rows, columns) = size
    (m, n) = reader.mblock
    (r, c) = reader.ublock
    if columns < c or rows < r:
        return _in_order_within_ublock(stack, size, reader)
    if reader.row_major:
        return columns >= n * c or ((stack.along_columns or far[0] == 1) and rows == r)
    return rows >= m * r or ((not stack.along_columns or far[1] == 1) and columns == c)


def _in_order_within_ublock(stack: _Stack, size: tuple[int, int], reader: Consumer) -> bool:
    """Return whether pieces of `size` tiles, smaller than the reader's ublocks, come in its order."""
    (rows, columns) = size
    (m, n) = reader.mblock
    (r, c) = reader.ublock
    if columns < c:
        one_column_of_ublocks = n == 1 or (r == 1 and (reader.row_major or m == 1))
        return stack.along_columns and rows == 1 and one_column_of_ublocks
    return columns == c and not stack.along_columns and (n == 1 or not reader.row_major)


def _tm_parts(tm: Tm) -> tuple[str, str, int]:
    """Return the name of a TM, the axis of a broadcast, and its count."""
    words = [str(word) for word in tm]
    if len(words) == 1:
        return words[0], "", 1
    return words[0], words[1] if len(words) == 3 else "", int(words[-1])


def _divide(a: int, b: int) -> bool:
    """Return whether one number divides the other."""
    return a % b == 0 or b % a == 0


# ------------------------------------------------------------------------------------------------------------ streams
def pipes(op: TileOp, blocks: Blocks, tms: tuple[Tm, ...], reader: Consumer) -> Pipes:
    """Return the pipes that each core of the producer feeds for one operand, on its way through `tms` to the reader."""
    return _count_pipes(op.shape, blocks.grid, buffered_slices(blocks), tms, reader.grid)


@cache
def _count_pipes(
    shape: Shape, grid: tuple[int, int], slices: int, tms: tuple[Tm, ...], reader_grid: tuple[int, int]
) -> Pipes:
    """Count the pipes from each core of a producer's grid by following the tiles of its buffer, which holds `slices` of
    its `shape`, through the TMs to the cores of the reader."""
    t, rows, columns = shape
    core = np.arange(rows)[:, None] * grid[0] // rows * grid[1] + np.arange(columns)[None, :] * grid[1] // columns
    near = np.arange(t) < max(slices, 1)  # what is beyond the buffer comes through the same pipes, in phases
    cores = np.where(near[:, None, None], core[None], -1)
    for tm in tms:
        cores = _apply_tm(tm, cores)
    height = cores.shape[1] // reader_grid[0]
    width = cores.shape[2] // reader_grid[1]
    core_tiles = cores.reshape(cores.shape[0], reader_grid[0], height, reader_grid[1], width).transpose(1, 3, 0, 2, 4)
    core_tiles = core_tiles.reshape(prod(reader_grid), -1)
    counts = np.zeros(prod(grid) + 1, np.int64)
    for tiles in core_tiles:
        if tiles[0] >= 0:  # a reader that begins beyond the buffer shares the pipe of another one
            counts[np.unique(tiles)] += 1
    return counts[:-1].reshape(grid)


def _apply_tm(tm: Tm, cores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an array of [t, rows, columns] as a TM rearranges it (OPS 7)."""
    t, rows, columns = cores.shape
    name, axis, count = _tm_parts(tm)
    if name == "transpose":
        return cores.transpose(0, 2, 1)
    if name == "broadcast":
        return np.tile(cores, {"z": (count, 1, 1), "r": (1, count, 1), "c": (1, 1, count)}[axis])
    if name == "vslice":
        return cores.reshape(t * count, rows // count, columns)
    if name == "hslice":
        return cores.reshape(t, rows, count, -1).transpose(0, 2, 1, 3).reshape(t * count, rows, -1)
    if name == "vstack":
        return cores.reshape(t // count, rows * count, columns)
    return cores.reshape(t // count, count, rows, columns).transpose(0, 2, 1, 3).reshape(t // count, rows, -1)


def streams_of_constants(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Return the extra streams of an op's fullest core for constants that stay in L1.

    A buffer lies on one core and goes from there to each core that reads it, each by a stream; two more belong to the
    buffer and its copy. `held`: the sources of the constants that stay in L1; `alone`: the numbers of operands that
    have a buffer for each core.
    """
    total = 0
    for number, use in enumerate(op.uses):
        if use.source in held:
            total += 2
            if number in alone:
                fed = 1
            else:
                fed = _fanout(tiles, op, blocks, number)
            if fed > 1:
                total += fed
    return total


def _fanout(tiles: TileGraph, op: TileOp, blocks: Blocks, number: int) -> int:
    """Return the number of cores to which the fullest buffer of operand `number`, a constant in L1, goes; 1 where they
    share a pipe. Each row of cores has its own tiles and words of a picker, which are made when the division is
    known."""
    use = op.uses[number]
    reader = view(op, blocks, number)
    if reader.grid != blocks.grid or (op.attrs.get("identity") and number != 1):
        return 1
    shape = tiles.shape_of(use.source)
    return int(_count_pipes(shape, divided_like(op, number, shape, blocks.grid), shape[0], use.tms, reader.grid).max())


def streams_of_operands(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Return the extra streams that one core of an op needs for its operands, at most. `held`: the sources of constants
    that stay in L1; `alone`: the numbers of operands that have a buffer for each core."""
    moving = sum(use.source not in held for use in op.uses)
    wide = min(moving, GATHERS)
    return GATHER_STREAMS * wide + (moving - wide) + streams_of_constants(tiles, op, blocks, held, alone)


def to_repeat(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> frozenset[int] | None:
    """Return the numbers of the operands that are a single number in L1 (`held`) and for which one core would need more
    streams to all others than it has. They are to be repeated so that each core has its own (`repeat_numbers`). None
    where it has enough streams."""
    if streams_of_operands(tiles, op, blocks, held) <= len(EXTRA_STREAMS) - FORKS:
        return None
    return frozenset(
        number
        for number, use in enumerate(op.uses)
        if use.source in held and is_number(tiles, use) and _fanout(tiles, op, blocks, number) > 1
    )


def is_number(tiles: TileGraph, use: Use) -> bool:
    """Return whether an operand is a constant of one tile that has the same number everywhere."""
    constant = tiles.constants[use.source]
    if constant.kind != "value" or constant.shape != (1, 1, 1) or any(tm[0] != "broadcast" for tm in use.tms):
        return False
    return bool((constant.values == constant.values.flat[0]).all())


def repeat_numbers(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> tuple[TileOp, frozenset[str]]:
    """Return the op with the operands that `to_repeat` names as constants of its own shape, which are added to the
    graph, and the constants that then stay in L1, `held` and these."""
    uses = list(op.uses)
    held_after = held
    for number in sorted(to_repeat(tiles, op, blocks, held) or ()):
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
