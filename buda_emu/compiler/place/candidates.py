"""The legal divisions of an op that are worth considering: the fastest for each number of cores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from buda_emu.compiler.lower.picker import WorkDivision
from buda_emu.compiler.lower.tiles import TileGraph, TileOp, divisors
from buda_emu.compiler.place.blocks import (
    DOUBLE,
    SINGLE,
    Blocks,
    as_cut,
    buffer_bytes,
    choose_blocks,
    cuts_of,
    divided,
    divided_as,
    grids,
    no_grid,
    size_of_tile,
)
from buda_emu.compiler.place.cost import (
    fits_channels,
    op_cycles,
    streamed_bytes,
    tiles_read,
    transfer_cycles,
)
from buda_emu.compiler.place.routable import FORKS, streams_of_operands, to_repeat
from buda_emu.compiler.target import Target
from buda_emu.spec.archs import EXTRA_STREAMS
from buda_emu.support.errors import UnsupportedError

DEEP = 8
"""Halves of an output buffer hold so many inputs at most."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A division, the constants that stay in L1, the estimated cycles of one input, of a core (`math`), and of the
    slowest of the core and its transfers, and what DRAM moves for it."""

    blocks: Blocks
    held: frozenset[str]
    math: float
    cycles: float
    streamed: float = 0.0

    @property
    def cores(self) -> int:
        """How many it takes."""
        return prod(self.blocks.grid)


def first_choice(target: Target, tiles: TileGraph, op: TileOp) -> Choice:
    """What low effort takes: the smallest grid within a measure of work, parameters in DRAM (FRONTEND 4.6)."""
    try:
        blocks = choose_blocks(target, op)
    except UnsupportedError:
        if "table" not in op.attrs:
            raise
        return choices(target, tiles, op)[0]  # its strips and ublocks cut in other ways
    held = pickers(op)
    target = target.of(op.precision)
    return _estimated(target, tiles, op, blocks, held)


def pickers(op: TileOp) -> frozenset[str]:
    """Operands that have to stay in L1: the tiles and words of an identity matmul."""
    return frozenset(op.uses[number].source for number in (0, 2)) if op.attrs.get("identity") else frozenset()


def choices(target: Target, tiles: TileGraph, op: TileOp) -> list[Choice]:
    """By number of cores; each quicker than all that have fewer cores. Raises UnsupportedError when no grid has room
    for the buffers."""
    target = target.of(op.precision)
    best = _of_grids(target, tiles, op, DOUBLE) or _of_grids(target, tiles, op, SINGLE)
    if not best:
        raise no_grid(target, op)
    return [choice for choice in best if fits_channels(target, tiles, op, choice.blocks.grid)] or best


def _of_grids(target: Target, tiles: TileGraph, op: TileOp, buffers: int) -> list[Choice]:
    """The quickest choice of each grid that has room."""
    best: list[Choice] = []
    for grid in grids(target, op if "table" not in op.attrs else replace(op, grid=None)):
        own = [_of_grid(target, tiles, item, grid, buffers, cut) for item, cut in _variants(target, op, grid)]
        kept = [choice for choice in own if choice is not None]
        if kept:
            best.append(min(kept, key=lambda choice: choice.cycles))
    return best


def quicker(found: list[Choice]) -> list[Choice]:
    """Without those that take as many cores as another, and are slower without reading less of DRAM."""
    kept: list[Choice] = []
    for choice in sorted(found, key=lambda choice: (choice.cores, choice.cycles, choice.streamed)):
        if all(choice.cycles < other.cycles or choice.streamed < other.streamed for other in kept):
            kept.append(choice)
    return kept


def _variants(target: Target, op: TileOp, grid: tuple[int, int]) -> Iterator[tuple[TileOp, WorkDivision | None]]:
    """The op; an identity matmul in all ways in which its strips and ublocks may be cut."""
    if "table" not in op.attrs:
        yield op, None
        return
    for cut in cuts_of(op, grid[0], target.dest_tiles):
        yield as_cut(op, cut), cut


def _of_grid(
    target: Target, tiles: TileGraph, op: TileOp, grid: tuple[int, int], buffers: int, cut: WorkDivision | None = None
) -> Choice | None:
    """With as many constants in L1 as there is room for, the smallest first."""
    must = pickers(op)
    holdable = [
        use.source
        for use in op.uses
        if use.source in tiles.constants
        and use.source not in must
        and tiles.constants[use.source].kind != "table"
        and not op.has("reads flat data")
    ]
    probe = Blocks(grid, op.shape[0], (1, 1), (1, 1))
    act = size_of_tile(target.activation_df, target.arch.alignment)
    need: dict[str, int] = {}
    for number, use in enumerate(op.uses):
        if use.source in holdable:
            need[use.source] = need.get(use.source, 0) + act * tiles_read(tiles, op, probe, number)
    order = sorted(need, key=lambda name: (need[name], name))
    for count in range(len(order), -1, -1):
        size = sum(need[name] for name in order[:count])
        if size > target.buffer_room:
            continue
        if cut is None:
            blocks = divided(target, op, grid, size, buffers=buffers)
        else:
            blocks = divided_as(target, op, grid, cut)
        held = must | frozenset(order[:count])
        if blocks is None or (count and not _has_streams(tiles, op, blocks, held)):
            continue
        if buffer_bytes(target, op, blocks, held=size) <= target.buffer_room:
            found = _estimated(target, tiles, op, blocks, held)
            return replace(found, blocks=deepened(target, op, blocks, size))
    return None


def _has_streams(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> bool:
    """For constants that stay in L1, repeated where that helps."""
    repeated = to_repeat(tiles, op, blocks, held)
    return repeated is None or streams_of_operands(tiles, op, blocks, held, repeated) <= len(EXTRA_STREAMS) - FORKS


def deepened(target: Target, op: TileOp, blocks: Blocks, held: int) -> Blocks:
    """With an output buffer of up to `DEEP` inputs, as far as L1 goes: no larger buffer makes anything slower, and
    branches of different length that meet again need it (FRONTEND 5, fork-join)."""
    if op.attrs.get("untilize"):
        return blocks
    t = blocks.t
    without = buffer_bytes(target, op, replace(blocks, buf_size_mb=0), held=held)
    each = buffer_bytes(target, op, replace(blocks, buf_size_mb=1), held=held) - without
    best = blocks.buf_size_mb
    for single in [*(n for n in divisors(t) if n > 1), *(t * n for n in range(2, DEEP + 1))]:  # V080
        if without + 2 * single * each > target.buffer_room:
            break
        best = 2 * single
    return replace(blocks, buf_size_mb=best)


def _estimated(target: Target, tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> Choice:
    math = op_cycles(target, op, blocks)
    cycles = max(math, transfer_cycles(target, tiles, op, blocks, held))
    return Choice(blocks=blocks, held=held, math=math, cycles=cycles, streamed=streamed_bytes(target, tiles, op, held))
