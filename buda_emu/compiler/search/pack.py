"""Packs the ops of an epoch onto the cores of its chips."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod

import numpy as np

from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.support.errors import UnsupportedError

REFUSALS = 12
"""Number of larger grids that may find no room before no more are tried."""
TRIES = 8
"""Number of shapes of an op that are tried, from the fewest cores on."""


def in_epochs(
    table: CandidateTable,
    ends: Iterable[int],
    packed: Callable[[int, int, int], tuple[dict[str, PlacementDecision], int]],
) -> dict[str, PlacementDecision]:
    """Return the decisions of all ops, those between two ends in one epoch, or in several where they find no room
    together.

    `pack_epoch` takes the first op, the end and the number of the epoch; it returns the decisions of the ops that found
    a place, and the first op that did not. Raises UnsupportedError for an op that has no room."""
    decisions: dict[str, PlacementDecision] = {}
    epoch = 0
    for start, stop in pairwise(ends):
        while start < stop:
            found, end = packed(start, stop, epoch)
            if end == start:
                raise UnsupportedError(f"{table.ops[start].name}: no room for it on {table.target.title}")
            decisions |= found
            start = end
            epoch = epoch + 1
    return decisions


def pack(
    table: CandidateTable, start: int, stop: int, epoch: int, chips: int, *, grid_transpose: bool = False
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack the ops from `start` on at the quickest pace that the cores of all chips allow.

    Returns their decisions and the first op that found no place: `stop`, unless even the smallest grids are too many.
    With `grid_transpose`, grids may be transposed."""
    paces = sorted({choice.cycles for own in table.best[start:stop] for choice in own})
    best, end = _at(table, start, stop, epoch, chips, paces[-1], grid_transpose=grid_transpose)
    if end < stop:
        return best, end
    low, high = 0, len(paces) - 1  # paces[high] is kept
    while low < high:
        middle = (low + high) // 2
        found, end = _at(table, start, stop, epoch, chips, paces[middle], grid_transpose=grid_transpose)
        if end == stop:
            best = found
            high = middle
        else:
            low = middle + 1
    return best, stop


def _at(
    table: CandidateTable, start: int, stop: int, epoch: int, chips: int, pace: float, *, grid_transpose: bool
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack chip by chip as many ops as there is room for at a pace. Returns nothing packed where an op has no choice
    that reaches the pace."""
    found: dict[str, PlacementDecision] = {}
    fits: list[list[Choice]] = []
    worth = float(table.cores_a_byte(np.array([pace]))[0])
    for own in table.found[start:stop]:
        quick = [choice for choice in own if choice.cycles <= pace]
        if not quick:
            return found, start
        fits.append(sorted(quick, key=lambda choice: (choice.cores + choice.streamed * worth, choice.cycles))[:TRIES])
    if table.assigned:
        return _on_their_chips(table, start, stop, fits, epoch, grid_transpose=grid_transpose)
    for chip in range(chips):
        if start == stop:
            break
        offset = stop - len(fits)
        room = prod(table.target.arch.grid)
        end = start
        while end < stop and room >= fits[end - offset][0].cores:
            room -= fits[end - offset][0].cores
            end += 1
        while end > start:
            shapes = [fits[n - offset] for n in range(start, end)]
            decisions = on_chip(table, list(range(start, end)), shapes, epoch, chip, grid_transpose=grid_transpose)
            if decisions is not None:
                found |= decisions
                break
            end -= 1
        start = end
    return found, start


def _on_their_chips(
    table: CandidateTable, start: int, stop: int, fits: Sequence[Sequence[Choice]], epoch: int, *, grid_transpose: bool
) -> tuple[dict[str, PlacementDecision], int]:
    """Pack as many ops as there is room for, each on the chip that it is assigned to."""
    for end in range(stop, start, -1):
        if table.whole[end] != end:
            continue
        own: dict[int, list[int]] = {}
        for number in range(start, end):
            own.setdefault(table.ops[number].chip or 0, []).append(number)
        found: dict[str, PlacementDecision] = {}
        for chip, numbers in own.items():
            shapes = [fits[number - start] for number in numbers]
            room = sum(shape[0].cores for shape in shapes) <= prod(table.target.arch.grid)
            decisions = on_chip(table, numbers, shapes, epoch, chip, grid_transpose=grid_transpose) if room else None
            if decisions is None:
                break
            found |= decisions
        else:
            return found, end
    return {}, start


def on_chip(
    table: CandidateTable,
    numbers: Sequence[int],
    fits: Sequence[Sequence[Choice]],
    epoch: int,
    chip: int,
    *,
    grid_transpose: bool,
) -> dict[str, PlacementDecision] | None:
    """Place each op in the first of its shapes that finds room: in the order of the ops, else the tallest first, else
    the largest first. None where an op finds none."""
    orders = (
        range(len(numbers)),
        sorted(range(len(numbers)), key=lambda n: (-fits[n][0].blocks.grid[0], -fits[n][0].blocks.grid[1])),
        sorted(range(len(numbers)), key=lambda n: (-fits[n][0].cores, -fits[n][0].blocks.grid[0])),
    )
    for order in orders:
        room = CoreGrid(*table.target.arch.grid)
        found: dict[str, PlacementDecision] = {}
        for number in order:
            for choice in fits[number]:
                decision = _taken(room, choice, epoch, chip, grid_transpose=grid_transpose)
                if decision is not None:
                    found[table.ops[numbers[number]].name] = decision
                    break
            else:
                break
        if len(found) == len(numbers):
            return found
    return None


def widened(table: CandidateTable, decisions: Mapping[str, PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return the decisions of an epoch with more cores for the ops that gain most by each core, as long as there is
    room. For a single input the cycles of every op count, not just those of the slowest."""
    found = dict(decisions)
    for chip in sorted({decision.chip for decision in decisions.values()}):
        mine = {table.index[name]: decision for name, decision in decisions.items() if decision.chip == chip}
        grid_transpose = any(decision.grid_transpose for decision in mine.values())
        epoch = next(iter(mine.values())).epoch
        chosen = {number: decision.choice for number, decision in sorted(mine.items())}
        free = prod(table.target.arch.grid) - sum(choice.cores for choice in chosen.values())
        refused: set[tuple[int, int]] = set()
        while len(refused) < REFUSALS:
            steps = [
                ((choice.cycles - more.cycles) / (more.cores - choice.cores), number, more)
                for number, choice in chosen.items()
                for more in table.best[number]
                if choice.cores < more.cores <= choice.cores + free
                and more.cycles < choice.cycles
                and (number, more.cores) not in refused
            ]
            if not steps:
                break
            _, number, more = max(steps, key=lambda step: (step[0], -step[1]))
            wished = {**chosen, number: more}
            placed = on_chip(
                table, list(wished), [[item] for item in wished.values()], epoch, chip, grid_transpose=grid_transpose
            )
            if placed is None:
                refused.add((number, more.cores))
                continue
            free -= more.cores - chosen[number].cores
            chosen = wished
            found |= placed
    return found


def _taken(room: CoreGrid, choice: Choice, epoch: int, chip: int, *, grid_transpose: bool) -> PlacementDecision | None:
    """Take cores for a choice in its own grid or else, if `grid_transpose` is set, in the transposed one; None where
    neither has room."""
    rows, columns = choice.blocks.grid
    at = room.take((rows, columns))
    if at is not None:
        return PlacementDecision(choice, epoch, chip, at)
    at = room.take((columns, rows)) if grid_transpose and rows != columns else None
    return None if at is None else PlacementDecision(choice, epoch, chip, at, grid_transpose=True)
