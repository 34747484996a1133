"""The divisions of an op that the search chooses from: for each grid the quickest one that has room, with as many
constants in L1 as fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from buda_emu.compiler.lower.picker import WorkDivision
from buda_emu.compiler.lower.tiles import TileGraph, TileOp, divisors
from buda_emu.compiler.place.blocks import (
    DOUBLE,
    SINGLE,
    Blocks,
    buffer_bytes,
    choose_blocks,
    divide_op,
    divide_picker,
    grids,
    no_grid_error,
    picker_cuts,
    size_of_tile,
    with_cut_counts,
)
from buda_emu.compiler.place.cost import (
    fits_channels,
    op_cycles,
    streamed_bytes,
    tiles_read,
    transfer_cycles,
)
from buda_emu.compiler.place.routable import FORKS, numbers_to_repeat, streams_of_operands
from buda_emu.compiler.target import Target
from buda_emu.spec.archs import EXTRA_STREAMS
from buda_emu.support.errors import UnsupportedError

MOST_BUFFERED_INPUTS = 8
"""Most inputs that one half of an output buffer holds (docs/compile/placing.md, "The search", step 1). No measurement
chose the figure."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A division of an op with the constants that stay in L1 (`held`) and its estimates.

    `math`: cycles of one input on one core; `cycles`: the same, or those of its slowest transfer if that takes longer;
    `streamed`: bytes that DRAM moves for each input."""

    blocks: Blocks
    held: frozenset[str]
    math: float
    cycles: float
    streamed: float = 0.0

    @property
    def cores(self) -> int:
        """The number of cores of the grid."""
        return prod(self.blocks.grid)


def first_choice(target: Target, tiles: TileGraph, op: TileOp) -> Choice:
    """Return the division that low effort takes: the smallest grid within a limit of work, parameters in DRAM (FRONTEND
    4.6). A picker that fits no grid as it was lowered is cut in another way, with constants in L1. Raises
    UnsupportedError when no grid has room for the buffers."""
    try:
        blocks = choose_blocks(target, op)
    except UnsupportedError:
        if "table" not in op.attrs:
            raise
        return choices(target, tiles, op)[0]  # its strips and ublocks cut in other ways
    held = picker_operands(op)
    target = target.of(op.precision)
    return _estimate_choice(target, tiles, op, blocks, held)


def picker_operands(op: TileOp) -> frozenset[str]:
    """Return the sources of the operands of an identity matmul that have to stay in L1, its tiles and its words; none
    for other ops."""
    if not op.attrs.get("identity"):
        return frozenset()
    return frozenset(op.uses[number].source for number in (0, 2))


def choices(target: Target, tiles: TileGraph, op: TileOp) -> list[Choice]:
    """Return the quickest choice of each grid, the grids with the fewest cores first. Grids for which a buffer of a
    constant exceeds a DRAM channel are left out unless all do. Where no grid has room for two mblocks of the result,
    all choices have one. Raises UnsupportedError when no grid has room for the buffers."""
    target = target.of(op.precision)
    best = _choices_by_grid(target, tiles, op, DOUBLE) or _choices_by_grid(target, tiles, op, SINGLE)
    if not best:
        raise no_grid_error(target, op)
    return [choice for choice in best if fits_channels(target, tiles, op, choice.blocks.grid)] or best


def _choices_by_grid(target: Target, tiles: TileGraph, op: TileOp, buffers: int) -> list[Choice]:
    """Return the quickest choice of each grid that has room with `buffers` mblocks in the result's buffer, the grids
    with the fewest cores first; empty where none has."""
    best: list[Choice] = []
    for grid in grids(target, op if "table" not in op.attrs else replace(op, grid=None)):
        cut_choices = [
            _choice_for_grid(target, tiles, variant, grid, buffers, cut)
            for variant, cut in _picker_variants(target, op, grid)
        ]
        legal = [choice for choice in cut_choices if choice is not None]
        if legal:
            best.append(min(legal, key=lambda choice: choice.cycles))
    return best


def drop_slower(candidates: list[Choice]) -> list[Choice]:
    """Return the choices by number of cores, the fewest first, without those that gain nothing over a choice of as many
    or fewer cores: neither fewer cycles nor fewer bytes out of DRAM."""
    best: list[Choice] = []
    for choice in sorted(candidates, key=lambda choice: (choice.cores, choice.cycles, choice.streamed)):
        if all(choice.cycles < other.cycles or choice.streamed < other.streamed for other in best):
            best.append(choice)
    return best


def _picker_variants(target: Target, op: TileOp, grid: tuple[int, int]) -> Iterator[tuple[TileOp, WorkDivision | None]]:
    """Yield the op with None, or an identity matmul with the counts of each way to cut its strips and ublocks over the
    grid's rows of cores, and that way."""
    if "table" not in op.attrs:
        yield op, None
        return
    for cut in picker_cuts(op, grid[0], target.dest_tiles):
        yield with_cut_counts(op, cut), cut


def _choice_for_grid(
    target: Target, tiles: TileGraph, op: TileOp, grid: tuple[int, int], buffers: int, cut: WorkDivision | None = None
) -> Choice | None:
    """Return the choice for one grid with as many constants in L1 as there is room and there are streams for, the
    smallest first; None where the buffers do not even fit without them. `buffers`: mblocks in the result's buffer;
    `cut`: the strips and ublocks of an identity matmul, None for other ops."""
    need = _holdable_bytes(target, tiles, op, grid)
    order = sorted(need, key=lambda name: (need[name], name))
    for count in range(len(order), -1, -1):
        size = sum(need[name] for name in order[:count])
        if size > target.buffer_room:
            continue
        if cut is None:
            blocks = divide_op(target, op, grid, size, buffers=buffers)
        else:
            blocks = divide_picker(target, op, grid, cut)
        held = picker_operands(op) | frozenset(order[:count])
        if blocks is None or (count and not _has_streams(tiles, op, blocks, held)):
            continue
        if buffer_bytes(target, op, blocks, held=size) <= target.buffer_room:
            choice = _estimate_choice(target, tiles, op, blocks, held)
            return replace(choice, blocks=deepen_buffer(target, op, blocks, size))
    return None


def _holdable_bytes(target: Target, tiles: TileGraph, op: TileOp, grid: tuple[int, int]) -> dict[str, int]:
    """Return the bytes that each constant of the op would take in the L1 of one core, by its name. Tables, the operands
    that a picker always keeps in L1, and constants of ops that read flat data are left out: they are not a choice."""
    if op.has("reads flat data"):
        return {}
    must = picker_operands(op)
    probe = Blocks(grid, op.shape[0], (1, 1), (1, 1))
    act = size_of_tile(target.activation_df, target.arch.alignment)
    need: dict[str, int] = {}
    for number, use in enumerate(op.uses):
        constant = tiles.constants.get(use.source)
        if constant is not None and constant.kind != "table" and use.source not in must:
            need[use.source] = need.get(use.source, 0) + act * tiles_read(tiles, op, probe, number)
    return need


def _has_streams(tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> bool:
    """Return whether a core has streams enough for its operands if the constants `held` stay in L1, once constants of a
    single number are repeated where that saves streams (`repeat_numbers`)."""
    repeated = numbers_to_repeat(tiles, op, blocks, held)
    return repeated is None or streams_of_operands(tiles, op, blocks, held, repeated) <= len(EXTRA_STREAMS) - FORKS


def deepen_buffer(target: Target, op: TileOp, blocks: Blocks, held: int) -> Blocks:
    """Return the division with an output buffer of up to `MOST_BUFFERED_INPUTS` inputs, as far as L1 goes beside `held`
    bytes of constants; an untilized result keeps its buffer. No larger buffer makes anything slower, and branches of
    different length that meet again need it (FRONTEND 5, fork-join)."""
    if op.attrs.get("untilize"):
        return blocks
    t = blocks.t
    without = buffer_bytes(target, op, replace(blocks, buf_size_mb=0), held=held)
    mblock_bytes = buffer_bytes(target, op, replace(blocks, buf_size_mb=1), held=held) - without
    best = blocks.buf_size_mb
    for single in [*(n for n in divisors(t) if n > 1), *(t * n for n in range(2, MOST_BUFFERED_INPUTS + 1))]:  # V080
        if without + 2 * single * mblock_bytes > target.buffer_room:
            break
        best = 2 * single
    return replace(blocks, buf_size_mb=best)


def _estimate_choice(target: Target, tiles: TileGraph, op: TileOp, blocks: Blocks, held: frozenset[str]) -> Choice:
    """Return the choice of these blocks and constants in L1 (`held`), with the cycles and DRAM bytes that the cost
    model estimates."""
    math = op_cycles(target, op, blocks)
    cycles = max(math, transfer_cycles(target, tiles, op, blocks, held))
    return Choice(blocks=blocks, held=held, math=math, cycles=cycles, streamed=streamed_bytes(target, tiles, op, held))
