"""The floorplan of an epoch, packed: rectangles of cores for its ops at the quickest pace that finds room."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import prod

import numpy as np

from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.support.errors import UnsupportedError

TRIES = 8
"""Most choices of an op that are tried for a pace or a price, the cheapest first. No measurement of the figure is
recorded."""


def pack_epochs(
    table: CandidateTable,
    ends: Iterable[int],
    pack_epoch: Callable[[int, int, int], tuple[dict[str, PlacementDecision], int]],
) -> dict[str, PlacementDecision]:
    """Return the decisions of all ops, by name. `ends` are the numbers of the ops before which epochs end, from 0 up to
    the number of ops; the ops between two of them share an epoch, or several if they find no room together.

    `pack_epoch` takes the first op, the end and the number of an epoch; it returns the decisions of the ops that found
    a place, and the first op that did not. Raises UnsupportedError for an op that has no room."""
    decisions: dict[str, PlacementDecision] = {}
    epoch = 0
    for start, stop in pairwise(ends):
        while start < stop:
            epoch_decisions, end = pack_epoch(start, stop, epoch)
            if end == start:
                raise UnsupportedError(f"{table.ops[start].name}: no room for it on {table.target.title}")
            decisions |= epoch_decisions
            start = end
            epoch = epoch + 1
    return decisions


def pack(
    table: CandidateTable, start: int, stop: int, epoch: int, chips: int, *, grid_transpose: bool = False
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack the ops from `start` up to `stop`, without it, at the quickest pace for which all find room on `chips`
    chips.

    Returns their decisions, in epoch number `epoch`, and the first op that found no place: `stop`, unless even the
    slowest pace has no room for all. With `grid_transpose`, grids may be transposed."""
    paces = sorted({choice.cycles for choice in chain.from_iterable(table.best[start:stop])})
    best, end = _pack_at_pace(table, start, stop, epoch, chips, paces[-1], grid_transpose=grid_transpose)
    if end < stop:
        return best, end
    low, high = 0, len(paces) - 1  # paces[high] is kept
    while low < high:
        middle = (low + high) // 2
        attempt, end = _pack_at_pace(table, start, stop, epoch, chips, paces[middle], grid_transpose=grid_transpose)
        if end == stop:
            best = attempt
            high = middle
        else:
            low = middle + 1
    return best, stop


def _pack_at_pace(
    table: CandidateTable, start: int, stop: int, epoch: int, chips: int, pace: float, *, grid_transpose: bool
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack as many of the ops from `start` up to `stop`, in order, as there is room for at a pace, the cycles that each
    op may take for one input: chip by chip, or on the chips that the ops are assigned to. Returns their decisions and
    the first op that found no place: no decisions and `start` if some op has no choice that keeps the pace."""
    placed_ops: dict[str, PlacementDecision] = {}
    fits: list[list[Choice]] = []
    worth = float(table.cores_a_byte(np.array([pace]))[0])
    for op_choices in table.corrected[start:stop]:
        quick = [choice for choice in op_choices if choice.cycles <= pace]
        if not quick:
            return placed_ops, start
        fits.append(sorted(quick, key=lambda choice: (choice.cores + choice.streamed * worth, choice.cycles))[:TRIES])
    if table.assigned:
        return _pack_on_assigned_chips(table, start, stop, fits, epoch, grid_transpose=grid_transpose)
    for chip in range(chips):
        if not fits:
            break
        decisions = _pack_one_chip(table, start, fits, epoch, chip, grid_transpose=grid_transpose)
        placed_ops |= decisions
        start += len(decisions)
        fits = fits[len(decisions) :]
    return placed_ops, start


def _pack_one_chip(
    table: CandidateTable, start: int, fits: Sequence[Sequence[Choice]], epoch: int, chip: int, *, grid_transpose: bool
) -> dict[str, PlacementDecision]:
    """Return the decisions of as many ops from `start` on as one chip has room for, empty if there is none for the
    first. `fits` are the choices of each op that keep the pace, those to be tried first in front."""
    room = prod(table.target.arch.grid)
    count = 0
    while count < len(fits) and room >= fits[count][0].cores:
        room -= fits[count][0].cores
        count += 1
    for number in range(count, 0, -1):
        ops = range(start, start + number)
        decisions = pack_on_chip(table, ops, fits[:number], epoch, chip, grid_transpose=grid_transpose)
        if decisions is not None:
            return decisions
    return {}


def _pack_on_assigned_chips(
    table: CandidateTable, start: int, stop: int, fits: Sequence[Sequence[Choice]], epoch: int, *, grid_transpose: bool
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack as many ops from `start` up to `stop` as there is room for, each on the chip that it is assigned to, and
    return their decisions and the first op that found no place. An op of which several chips run a part is packed as a
    whole or not at all. `fits` are the choices of each op that keep the pace."""
    for end in range(stop, start, -1):
        if table.next_ends[end] != end:
            continue
        numbers_by_chip: dict[int, list[int]] = {}
        for number in range(start, end):
            numbers_by_chip.setdefault(table.ops[number].chip or 0, []).append(number)
        placed_ops: dict[str, PlacementDecision] = {}
        for chip, numbers in numbers_by_chip.items():
            shapes = [fits[number - start] for number in numbers]
            if sum(shape[0].cores for shape in shapes) > prod(table.target.arch.grid):
                break
            decisions = pack_on_chip(table, numbers, shapes, epoch, chip, grid_transpose=grid_transpose)
            if decisions is None:
                break
            placed_ops |= decisions
        else:
            return placed_ops, end
    return {}, start


def pack_on_chip(
    table: CandidateTable,
    numbers: Sequence[int],
    fits: Sequence[Sequence[Choice]],
    epoch: int,
    chip: int,
    *,
    grid_transpose: bool,
) -> dict[str, PlacementDecision] | None:
    """Place each of the ops `numbers` on an empty chip, in the first of its `fits` that finds room, and return their
    decisions. Ops are placed in their order; if one finds no room then again with the tallest grids first, then with
    the largest first. None if that fails, too."""
    orders = (
        range(len(numbers)),
        sorted(range(len(numbers)), key=lambda n: (-fits[n][0].blocks.grid[0], -fits[n][0].blocks.grid[1])),
        sorted(range(len(numbers)), key=lambda n: (-fits[n][0].cores, -fits[n][0].blocks.grid[0])),
    )
    for order in orders:
        room = CoreGrid(*table.target.arch.grid)
        placed_ops: dict[str, PlacementDecision] = {}
        for number in order:
            for choice in fits[number]:
                decision = _take_cores(room, choice, epoch, chip, grid_transpose=grid_transpose)
                if decision is not None:
                    placed_ops[table.ops[numbers[number]].name] = decision
                    break
            else:
                break
        if len(placed_ops) == len(numbers):
            return placed_ops
    return None


def widen_ops(table: CandidateTable, decisions: Mapping[str, PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return the decisions of an epoch with more cores for the ops that gain most cycles by each core, as long as there
    is room on their chips; other ops may get other places. For a single input the cycles of every op count, not just
    those of the slowest."""
    result = dict(decisions)
    for chip in sorted({decision.chip for decision in decisions.values()}):
        chip_decisions = {table.index[name]: decision for name, decision in decisions.items() if decision.chip == chip}
        result |= _widen_on_chip(table, chip_decisions)
    return result


def _widen_on_chip(table: CandidateTable, decisions: Mapping[int, PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return new decisions of all ops of one chip, by name, some of them with more cores; empty where none gets more.
    `decisions` are the present ones, by the number of the op."""
    grid_transpose = any(decision.grid_transpose for decision in decisions.values())
    first = next(iter(decisions.values()))
    chosen = {number: decision.choice for number, decision in sorted(decisions.items())}
    free = prod(table.target.arch.grid) - sum(choice.cores for choice in chosen.values())
    refused: set[tuple[int, int]] = set()
    result: dict[str, PlacementDecision] = {}
    while steps := [*_larger_choices(table, chosen, free, refused)]:
        _, number, larger = max(steps, key=lambda step: (step[0], -step[1]))
        wished = {**chosen, number: larger}
        shapes = [[shape] for shape in wished.values()]
        placed = pack_on_chip(table, list(wished), shapes, first.epoch, first.chip, grid_transpose=grid_transpose)
        if placed is None:
            refused.add((number, larger.cores))
            continue
        free -= larger.cores - chosen[number].cores
        chosen = wished
        result |= placed
    return result


def _larger_choices(
    table: CandidateTable, chosen: Mapping[int, Choice], free: int, refused: Container[tuple[int, int]]
) -> Iterator[tuple[float, int, Choice]]:
    """Yield the quicker choices of ops with up to `free` more cores than they have, each with the cycles that one more
    core gains and the number of the op. Pairs of op and number of cores in `refused` are left out."""
    for number, choice in chosen.items():
        for larger in table.best[number]:
            fits = choice.cores < larger.cores <= choice.cores + free
            if fits and larger.cycles < choice.cycles and (number, larger.cores) not in refused:
                yield (choice.cycles - larger.cycles) / (larger.cores - choice.cores), number, larger


def _take_cores(
    room: CoreGrid, choice: Choice, epoch: int, chip: int, *, grid_transpose: bool
) -> PlacementDecision | None:
    """Mark the first free cores for a choice as used, in its own grid or else, with `grid_transpose`, in the transposed
    one, and return the decision for these cores; None, with nothing marked, where neither has room."""
    rows, columns = choice.blocks.grid
    at = room.take((rows, columns))
    if at is not None:
        return PlacementDecision(choice, epoch, chip, at)
    if not grid_transpose or rows == columns:
        return None
    at = room.take((columns, rows))
    if at is None:
        return None
    return PlacementDecision(choice, epoch, chip, at, grid_transpose=True)
