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
"""Number of shapes of an op that are tried, from the fewest cores on."""


def pack_epochs(
    table: CandidateTable,
    ends: Iterable[int],
    pack_epoch: Callable[[int, int, int], tuple[dict[str, PlacementDecision], int]],
) -> dict[str, PlacementDecision]:
    """Return the decisions of all ops, those between two ends in one epoch, or in several where they find no room
    together.

    `pack_epoch` takes the first op, the end and the number of the epoch; it returns the decisions of the ops that found
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
    """Pack the ops from `start` on at the quickest pace that the cores of all chips allow.

    Returns their decisions, in epoch number `epoch`, and the first op that found no place: `stop`, unless even the
    smallest grids are too many. With `grid_transpose`, grids may be transposed.
    """
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
    """Pack chip by chip as many ops as there is room for at a pace, the cycles that each op may take for an input.
    Returns nothing packed where an op has no choice that reaches the pace."""
    placed_ops: dict[str, PlacementDecision] = {}
    fits: list[list[Choice]] = []
    worth = float(table.cores_a_byte(np.array([pace]))[0])
    for op_choices in table.found[start:stop]:
        quick = [choice for choice in op_choices if choice.cycles <= pace]
        if not quick:
            return placed_ops, start
        fits.append(sorted(quick, key=lambda choice: (choice.cores + choice.streamed * worth, choice.cycles))[:TRIES])
    if table.assigned:
        return _pack_on_assigned_chips(table, start, stop, fits, epoch, grid_transpose=grid_transpose)
    for chip in range(chips):
        if not fits:
            break
        decisions = _pack_first(table, start, fits, epoch, chip, grid_transpose=grid_transpose)
        placed_ops |= decisions
        start += len(decisions)
        fits = fits[len(decisions) :]
    return placed_ops, start


def _pack_first(
    table: CandidateTable, start: int, fits: Sequence[Sequence[Choice]], epoch: int, chip: int, *, grid_transpose: bool
) -> dict[str, PlacementDecision]:
    """Pack as many ops from `start` on as one chip has room for; `fits` are the choices of each that are quick
    enough."""
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
    """Pack as many ops as there is room for, each on the chip that it is assigned to; `fits` are the choices of each
    that are quick enough."""
    for end in range(stop, start, -1):
        if table.whole[end] != end:
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
    """Place each of the ops `numbers` in the first of its `fits` that finds room: in the order of the ops, else the
    tallest first, else the largest first. None where an op finds none."""
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
    """Return the decisions of an epoch with more cores for the ops that gain most by each core, as long as there is
    room. For a single input the cycles of every op count, not just those of the slowest."""
    result = dict(decisions)
    for chip in sorted({decision.chip for decision in decisions.values()}):
        chip_decisions = {table.index[name]: decision for name, decision in decisions.items() if decision.chip == chip}
        result |= _widen_on_chip(table, chip_decisions)
    return result


def _widen_on_chip(table: CandidateTable, decisions: Mapping[int, PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return the new decisions of the ops of one chip with more cores for some of them; empty where none gets more."""
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
    """Yield the quicker choices of ops with up to `free` more cores, each after the cycles that each core gains and the
    number of the op; not those in `refused`."""
    for number, choice in chosen.items():
        for larger in table.best[number]:
            fits = choice.cores < larger.cores <= choice.cores + free
            if fits and larger.cycles < choice.cycles and (number, larger.cores) not in refused:
                yield (choice.cycles - larger.cycles) / (larger.cores - choice.cores), number, larger


def _take_cores(
    room: CoreGrid, choice: Choice, epoch: int, chip: int, *, grid_transpose: bool
) -> PlacementDecision | None:
    """Take cores for a choice in its own grid or else, if `grid_transpose` is set, in the transposed one; None where
    neither has room."""
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
