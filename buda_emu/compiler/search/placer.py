"""From netlist ops to their blocks, cores, epochs, chips, queues and addresses (docs/placing.md)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.candidates import first_choice
from buda_emu.compiler.place.decision import Spot, placed
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.compiler.place.placement import Placed, Placement, Queue
from buda_emu.compiler.place.room import Room
from buda_emu.compiler.search.cuts import FULL, cuts
from buda_emu.compiler.search.forms import Forms
from buda_emu.compiler.search.improve import BUDGETS, improved
from buda_emu.compiler.search.judge import Judged, judged
from buda_emu.compiler.search.line import Line
from buda_emu.compiler.search.pack import pack
from buda_emu.compiler.target import ONE_BY_ONE, Aim, Target
from buda_emu.errors import HostError, UnsupportedError

SHARES = (0.8, 0.88, 1.0)
"""Other shares of a chip's cores that rectangles are taken to cover: high effort tries them with every form of a graph,
default effort with the best one, on one chip, where there are epochs to cut."""


def place(
    tiles: TileGraph, target: Target, aim: Aim = ONE_BY_ONE, *, entries: int = 2, forms: Forms | None = None
) -> Placement:
    """Blocks, cores, epochs, queues and addresses of a graph; queues have room for `entries` rounds of inputs. `forms`
    of the graph, where they are known. Raises UnsupportedError for what does not fit."""
    if aim.chips > 1 and target.arch.eth_cores == 0:
        raise HostError(f"compile: chips of {target.arch.name} are not connected: one only")
    if tiles.states:  # what an input leaves in a ram the next one reads
        if aim.chips > 1:
            raise HostError("compile: what keeps states from input to input (training, caches) takes one chip")
        trains = any(not op.program.startswith("fwd") for op in tiles.ops.values())
        aim = replace(aim, effort="low" if trains else aim.effort, microbatch=1)
    found = _quickest(tiles, target, aim, entries, forms)
    found.given, found.ids = tiles, aim.ids
    return found


def _quickest(tiles: TileGraph, target: Target, aim: Aim, entries: int, forms: Forms | None) -> Placement:
    """Cut over all chips, or a copy on each, whichever takes more inputs in a second."""
    if aim.chips == 1 or aim.effort == "low" or aim.objective != "throughput":
        return _in_memory(tiles, target, aim, entries, forms)
    try:
        copies = judged(_in_memory(tiles, target, replace(aim, chips=1, copies=aim.chips), entries, forms))
    except MemoryFullError:  # one chip's
        return _in_memory(tiles, target, aim, entries, forms)
    if copies.cycles <= copies.host:  # nothing is quicker than the host link
        return copies.placement
    return min(judged(_in_memory(tiles, target, aim, entries, forms)), copies, key=_cycles).placement


def _in_memory(tiles: TileGraph, target: Target, aim: Aim, entries: int, forms: Forms | None) -> Placement:
    """With rounds of as many inputs as memory has room for. Raises MemoryFullError."""
    while True:
        try:
            return _place(tiles, target, aim, entries, forms)
        except MemoryFullError:
            if aim.microbatch == 1 or aim.firm:
                raise
            aim = replace(aim, microbatch=aim.microbatch // 2)


def _place(tiles: TileGraph, target: Target, aim: Aim, entries: int, forms: Forms | None) -> Placement:
    first = placed(tiles, target, first_spots(tiles, target, aim.chips), aim, entries)
    if aim.effort == "low":
        return first
    forms = forms.on(aim.chips) if forms is not None else Forms.of(tiles, target, aim.chips)

    def make(line: Line, spots: dict[str, Spot]) -> Placement:
        return placed(line.tiles, target, spots, aim, entries)

    if aim.objective == "cores":
        return min(make(forms.plain, searched_spots(forms.plain, aim, FULL)), first, key=_cores)
    best = judged(first)
    kept: tuple[Line, dict[str, Spot]] | None = None

    def tried(line: Line, full: float) -> None:
        nonlocal best, kept
        found = improved(line, searched_spots(line, aim, full), partial(make, line), BUDGETS["default"], aim.chips)
        now = judged(make(line, found))
        if kept is None or now.cycles < best.cycles:
            best, kept = min(now, best, key=_cycles), (line, found)

    for line in forms.likely(aim):
        for full in (FULL, *SHARES) if aim.effort == "high" else (FULL,):
            tried(line, full)
    for full in SHARES if aim.effort == "default" and aim.chips == 1 else ():
        if kept is None or best.placement.epochs == 1 or best.cycles <= best.host:
            break
        tried(kept[0], full)
    if aim.effort == "high" and kept is not None:
        line, spots = kept
        found = improved(line, spots, partial(make, line), BUDGETS["high"], aim.chips)
        best = min(judged(make(line, found)), best, key=_cycles)
    return best.placement


def _cycles(found: Judged) -> float:
    """Of one input."""
    return found.cycles


def quickest(found: Sequence[tuple[int, Placement]]) -> tuple[int, Placement]:
    """Of placements of several graphs of one model that of the fewest cycles, with its number."""
    return found[0] if len(found) == 1 else min(found, key=lambda item: judged(item[1]).cycles)


def first_placement(found: Placement) -> Placement:
    """The first legal choice for the same graph, chips and microbatch."""
    tiles = found.given or found.tiles
    aim = Aim("low", chips=found.stages, microbatch=found.microbatch, copies=found.copies)
    return placed(tiles, found.target, first_spots(tiles, found.target, found.stages), aim)


def _cores(placement: Placement) -> int:
    """Of all ops."""
    return sum(prod(placed.blocks.grid) for placed in placement.ops.values())


def searched_spots(line: Line, aim: Aim, full: float) -> dict[str, Spot]:
    """Epochs by the dynamic program, each packed at its best pace."""
    ends, _ = cuts(line, aim, full)
    spots: dict[str, Spot] = {}
    epoch = 0
    for start, stop in pairwise(ends):
        while start < stop:
            found, end = pack(line, start, stop, epoch, aim.chips)
            if end == start:
                raise UnsupportedError(f"{line.ops[start].name}: no room for it on {line.target.arch.name}")
            spots |= found
            start, epoch = end, epoch + 1
    return spots


def first_spots(tiles: TileGraph, target: Target, chips: int) -> dict[str, Spot]:
    """First fit in order: the next chip, then the next epoch, where an op finds no room (FRONTEND 5)."""
    rows, columns = target.arch.grid
    room, epoch, chip = Room(rows, columns), 0, 0
    spots: dict[str, Spot] = {}
    program = next((op.program for op in tiles.ops.values()), "")
    for op in tiles.ops.values():
        if op.program != program:  # programs share no epoch (FRONTEND 5)
            room, epoch, chip, program = Room(rows, columns), epoch + 1, 0, op.program
        choice = first_choice(target, tiles, op)
        at = room.take(choice.blocks.grid)
        if at is None:
            room = Room(rows, columns)
            epoch, chip = (epoch, chip + 1) if chip + 1 < chips else (epoch + 1, 0)
            at = room.take(choice.blocks.grid)
            if at is None:
                raise UnsupportedError(
                    f"{op.name}: {choice.blocks.grid} cores, {target.arch.name} has {rows}x{columns}"
                )
        spots[op.name] = Spot(choice, epoch, chip, at)
    return spots


__all__: Sequence[str] = ["Placed", "Placement", "Queue", "place"]
