"""Ops of an epoch onto the cores of its chips."""

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
"""Larger grids of an epoch's ops that find no room before no more are tried."""
TRIES = 8
"""Shapes of an op that are tried, from the fewest cores on."""


def in_epochs(
    table: CandidateTable,
    ends: Iterable[int],
    packed: Callable[[int, int, int], tuple[dict[str, PlacementDecision], int]],
) -> dict[str, PlacementDecision]:
    """All ops, those between two ends in one epoch, or in several where they find no room together. `packed` takes the
    first op, the end and the epoch; it returns what found a place, and the first op that did not. Raises
    UnsupportedError for an op that has no room."""
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
    """The ops from `start` on, at the quickest pace that the cores of all chips allow. Also gives the first op that
    found no place: `stop`, unless even the smallest grids are too many. `grid_transpose`: grids may be
    transposed."""
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
    """Chip by chip as many ops as there is room for at a pace; where an op never keeps it, its quickest choice."""
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
    """As many ops as there is room for, each on the chip that it has to stand on."""
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
    """Each op in the first of its shapes that finds room: in their order, else the tallest first."""
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
    """The decisions of an epoch with more cores for the ops that gain most by each, as long as there is room: for a
    single input every op's own cycles count, not just the slowest one's."""
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
    """In its grid, else, where that is asked for, in the transposed one (grid_transpose)."""
    rows, columns = choice.blocks.grid
    at = room.take((rows, columns))
    if at is not None:
        return PlacementDecision(choice, epoch, chip, at)
    at = room.take((columns, rows)) if grid_transpose and rows != columns else None
    return None if at is None else PlacementDecision(choice, epoch, chip, at, grid_transpose=True)
