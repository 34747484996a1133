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
"""Extra streams of a core that are left to its readers, at least, where constants could have them."""
GATHERS = 4
"""Operands that a core gathers in that way, at most; the others take one stream each, and turns."""

Pipes = NDArray[np.int64]
"""[rows, columns] of the producer's grid: how many each of its cores feeds."""


def view(op: TileOp, blocks: Blocks, operand: int) -> Consumer:
    """Of operand number `operand` (OPS 6.1, 6.3; FRONTEND 3.4 for the orders); of a fused op with sums as the step has
    it that reads it first."""
    part = op
    own = blocks
    if op.has_sums:
        part = op.reader(operand)
        own = step_blocks(op, blocks, part)
    (rows, columns) = own.grid
    (m, n) = own.mblock
    (r, c) = own.ublock
    if op.type == "depthwise" and operand == 0:
        return Consumer((rows, 1), (m, own.m_k * n), (r, c), row_major=False)
    if part.has("reduces") and part.attrs["dim"] == "r":
        return Consumer(own.grid, (own.m_k, n), (own.u_kt, c), row_major=False)
    if part.has("reduces") and part.attrs["dim"] == "c":
        return Consumer(own.grid, (m, own.m_k), (r, own.u_kt), row_major=True)
    if op.is_left_factor(operand) or (operand == 2 and op.attrs.get("identity")):  # a picker's words as its tiles
        return Consumer((rows, 1), (m, own.m_k), (r, own.u_kt), row_major=False)
    if op.is_factor(operand):
        return Consumer((1, columns), (own.m_k, n), (own.u_kt, c), row_major=True)
    return Consumer(own.grid, own.mblock, own.ublock, row_major=True)


# ------------------------------------------------------------------------------------------------------------- stacks
@dataclass(slots=True)
class _Stack:
    """What a chain of TMs stacks: `factors` along rows and columns, slices that were cut before, whether the first
    stack goes along columns, and whether slices are stacked that were more than one in the producer (`far`)."""

    rows: int = 1
    columns: int = 1
    slices: int = 1
    along_columns: bool = True
    far: bool = False
    ordered: bool = True
    """No other TM stands after a stack, and none is there twice."""

    @staticmethod
    def of(tms: tuple[Tm, ...]) -> "_Stack":
        """From the TMs in their order."""
        found = _Stack()
        uncut = 1
        for name, axis, count in map(_parts, tms):
            if name in ("hslice", "vslice") or axis == "z":
                found.slices = found.slices * count
                uncut = uncut * count
            if name not in ("hstack", "vstack"):
                found.ordered = found.ordered and found.rows == found.columns == 1
                continue
            uncut, found.far = (uncut // count, found.far) if uncut % count == 0 else (1, True)
            if name == "hstack":
                found.ordered = found.ordered and found.columns == 1
                found.columns *= count
                found.along_columns = found.rows == 1
            else:
                found.ordered = found.ordered and found.rows == 1
                found.along_columns = found.columns > 1
                found.rows *= count
        return found


def slices_held(blocks: Blocks) -> int:
    """Of t, in one half of a core's output buffer."""
    return max(1, blocks.buf_size_mb // 2)


def stack_problem(held: int, t: int, tms: tuple[Tm, ...], after: Shape, reader: Consumer) -> str:
    """Why slices cannot be stacked on the way, "" where they can. `held` slices of the producer's `t` are in its buffer
    at a time; `after`: the operand's shape after its TMs."""
    stack = _Stack.of(tms)
    total = stack.rows * stack.columns
    if not stack.far or held % total == 0 or held % t == 0:
        return ""
    if not stack.ordered:
        return "another TM after a stack"
    pieces = _pieces(stack, held)
    if pieces is None:
        return "its stacked slices, those cut before and those in the producer's buffer do not divide each other"
    if _astray(stack, held, pieces, reader):
        return "pieces would go to the wrong cores of the reader"
    (block_rows, far_rows), (block_columns, far_columns) = pieces
    size = after[1] // stack.rows * block_rows, after[2] // stack.columns * block_columns
    far = far_rows, far_columns
    for axis in (0, 1):
        block = reader.mblock[axis] * reader.ublock[axis]
        for ours, theirs in ((far[axis], reader.grid[axis]), (size[axis], block), (size[axis], reader.ublock[axis])):
            if not _divide(ours, theirs):
                return f"pieces of {size[0]} x {size[1]} tiles do not fall on the reader's blocks"
    return "" if _in_order(stack, size, far, reader) else "pieces do not follow the order of the reader's tiles"


def _pieces(stack: _Stack, held: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Along rows and columns: how many stacked slices one slice of the producer makes, and how many pieces follow each
    other in phases. None where counts do not divide each other."""
    first, second = (stack.columns, stack.rows) if stack.along_columns else (stack.rows, stack.columns)
    if not _divide(stack.slices, first):
        return None
    if stack.slices % first == 0:
        left = stack.slices // first
        if not _divide(left, second):
            return None
        one = (first, 1)
        other = (min(left, second), max(1, second // left))
    else:
        one = (stack.slices, first // stack.slices)
        other = (1, second)
    if not _divide(one[1], held):
        return None
    if one[1] > held:
        one = one[0], one[1] // held
    else:
        if not _divide(other[1], held):
            return None
        one = (one[0], 1)
        other = (other[0], max(1, other[1] // held))
    return (other, one) if stack.along_columns else (one, other)


def _astray(stack: _Stack, held: int, pieces: tuple[tuple[int, int], tuple[int, int]], reader: Consumer) -> bool:
    """The router takes a buffer for all pieces of both stacks where it holds those of the first one: the pieces of the
    second one are then more than it counts, which several cores along it notice."""
    axis = 0 if stack.along_columns else 1
    first = (stack.columns if stack.along_columns else stack.rows) // pieces[1 - axis][0]
    second = (stack.rows if axis == 0 else stack.columns) // pieces[axis][0]
    counted = pieces[0][1] * pieces[1][1]
    return reader.grid[axis] > 1 and counted != max(1, first * second // held)


def _in_order(stack: _Stack, size: tuple[int, int], far: tuple[int, int], reader: Consumer) -> bool:
    """Whether pieces of such a size come in the reader's order: ublock by ublock, tiles of each row by row."""
    (rows, columns) = size
    (m, n) = reader.mblock
    (r, c) = reader.ublock
    if columns < c:
        return stack.along_columns and rows == 1 and (n == 1 or (r == 1 and (reader.row_major or m == 1)))
    if rows < r:
        return columns == c and not stack.along_columns and (n == 1 or not reader.row_major)
    if reader.row_major:
        return columns >= n * c or ((stack.along_columns or far[0] == 1) and rows == r)
    return rows >= m * r or ((not stack.along_columns or far[1] == 1) and columns == c)


def _parts(tm: Tm) -> tuple[str, str, int]:
    """Name, axis of a broadcast, and count."""
    words = [str(item) for item in tm]
    return words[0], words[1] if len(words) == 3 else "", int(words[-1]) if len(words) > 1 else 1


def _divide(a: int, b: int) -> bool:
    return a % b == 0 or b % a == 0


# ------------------------------------------------------------------------------------------------------------ streams
def pipes(op: TileOp, blocks: Blocks, tms: tuple[Tm, ...], reader: Consumer) -> Pipes:
    """Of one operand."""
    return _pipes(op.shape, blocks.grid, slices_held(blocks), tms, reader.grid)


@cache
def _pipes(shape: Shape, grid: tuple[int, int], held: int, tms: tuple[Tm, ...], readers: tuple[int, int]) -> Pipes:
    t, rows, columns = shape
    core = np.arange(rows)[:, None] * grid[0] // rows * grid[1] + np.arange(columns)[None, :] * grid[1] // columns
    near = np.arange(t) < max(held, 1)  # what is beyond the buffer comes through the same pipes, in phases
    where = np.where(near[:, None, None], core[None], -1)
    for tm in tms:
        where = _after(tm, where)
    height = where.shape[1] // readers[0]
    width = where.shape[2] // readers[1]
    own = where.reshape(where.shape[0], readers[0], height, readers[1], width).transpose(1, 3, 0, 2, 4)
    own = own.reshape(prod(readers), -1)
    found = np.zeros(prod(grid) + 1, np.int64)
    for tiles in own:
        if tiles[0] >= 0:  # a reader that begins beyond the buffer shares the pipe of another one
            found[np.unique(tiles)] += 1
    return found[:-1].reshape(grid)


def _after(tm: Tm, where: NDArray[np.int64]) -> NDArray[np.int64]:
    """What a TM makes of [t, rows, columns] (OPS 7)."""
    t, rows, columns = where.shape
    name, axis, count = _parts(tm)
    if name == "transpose":
        return where.transpose(0, 2, 1)
    if name == "broadcast":
        return np.tile(where, {"z": (count, 1, 1), "r": (1, count, 1), "c": (1, 1, count)}[axis])
    if name == "vslice":
        return where.reshape(t * count, rows // count, columns)
    if name == "hslice":
        return where.reshape(t, rows, count, -1).transpose(0, 2, 1, 3).reshape(t * count, rows, -1)
    if name == "vstack":
        return where.reshape(t // count, rows * count, columns)
    return where.reshape(t // count, count, rows, columns).transpose(0, 2, 1, 3).reshape(t // count, rows, -1)


def streams_of_constants(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Extra streams of the fullest core of an op for constants that stay in L1: a buffer lies on one core and goes from
    there to each core that reads it, each by a stream; two more are the buffer's and its copy's. Operands that are
    `alone` have a buffer for each core."""
    total = 0
    for number, use in enumerate(op.uses):
        if use.source in held:
            fed = 1 if number in alone else _fed(tiles, op, blocks, number)
            total += 2 + (fed if fed > 1 else 0)
    return total


def _fed(tiles: TileGraph, op: TileOp, blocks: Blocks, number: int) -> int:
    """Cores to which the fullest buffer of a constant that stays in L1 goes; 1 where they share a pipe. Each row of
    cores has its own tiles and words of a picker, which are made when the division is known."""
    use = op.uses[number]
    reader = view(op, blocks, number)
    if reader.grid != blocks.grid or (op.attrs.get("identity") and number != 1):
        return 1
    shape = tiles.shape_of(use.source)
    return int(_pipes(shape, divided_like(op, number, shape, blocks.grid), shape[0], use.tms, reader.grid).max())


def streams_of_operands(
    tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str], alone: Container[int] = ()
) -> int:
    """Extra streams of one core of an op for its operands, at most."""
    moving = sum(use.source not in held for use in op.uses)
    wide = min(moving, GATHERS)
    return GATHER_STREAMS * wide + (moving - wide) + streams_of_constants(tiles, op, blocks, held, alone)


def to_repeat(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> frozenset[int] | None:
    """Operands that are one number, which stays in L1, and for which one core would need more streams to all others
    than it has: they are to be repeated, so that each core has its own (`repeated`). None where it has enough."""
    if streams_of_operands(tiles, op, blocks, held) <= len(EXTRA_STREAMS) - FORKS:
        return None
    return frozenset(
        number
        for number, use in enumerate(op.uses)
        if use.source in held and is_number(tiles, use) and _fed(tiles, op, blocks, number) > 1
    )


def is_number(tiles: TileGraph, use: Use) -> bool:
    """Whether an operand is a constant of one tile that has the same number everywhere."""
    constant = tiles.constants[use.source]
    if constant.kind != "value" or constant.shape != (1, 1, 1) or any(tm[0] != "broadcast" for tm in use.tms):
        return False
    return bool((constant.values == constant.values.flat[0]).all())


def repeated(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> tuple[TileOp, frozenset[str]]:
    """The op with the numbers that are to be repeated as constants of its own shape, which are put into the graph, and
    what then stays in L1."""
    uses = list(op.uses)
    kept = held
    for number in sorted(to_repeat(tiles, op, blocks, held) or ()):
        source = op.uses[number].source
        (t, rows, columns) = op.operand_shape(number)
        name = f"{source}.{t}x{rows}x{columns}"
        value = tiles.constants[source].values.flat[:1]
        tiles.constants[name] = Constant(name, np.broadcast_to(value, (t, rows * 32, columns * 32)))
        uses[number] = replace(op.uses[number], source=name, tms=())
        kept = kept - {source} | {name}
    return (op, held) if kept is held else (replace(op, uses=uses), kept)
