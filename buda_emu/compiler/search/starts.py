"""Starting points of the search: the first fit, and epochs by the dynamic program."""

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.place.candidates import first_choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import STEP, CandidateTable
from buda_emu.compiler.search.cuts import cut_epochs
from buda_emu.compiler.search.pack import pack, pack_epochs
from buda_emu.compiler.target import Objective, Target
from buda_emu.support.errors import UnsupportedError


def searched_decisions(
    table: CandidateTable, objective: Objective, full: float, step: float = STEP
) -> dict[str, PlacementDecision]:
    """Return a decision for every op, by name: the dynamic program cuts the ops into epochs, and each epoch is packed
    at the quickest pace for which its ops find room. `full`: the share of a chip's cores that rectangles are expected
    to cover; `step`, as a share of a pace: how much later each op of a chain begins. Raises UnsupportedError for an op
    that has no room."""
    ends, _ = cut_epochs(table, objective, full, step)
    return pack_epochs(table, ends, lambda start, stop, epoch: pack(table, start, stop, epoch, objective.chips))


def first_decisions(tiles: TileGraph, target: Target, chips: int) -> dict[str, PlacementDecision]:
    """Return a decision for every op, by name, from a first fit in the order of the ops, each with the division that
    low effort takes: where an op finds no room it goes to the next of the `chips`, after the last of them to the next
    epoch (FRONTEND 5). Raises UnsupportedError for an op that does not fit an empty chip."""
    rows, columns = target.arch.grid
    room = CoreGrid(rows, columns)
    epoch = 0
    chip = 0
    decisions: dict[str, PlacementDecision] = {}
    program = next((op.program for op in tiles.ops.values()), "")
    for op in tiles.ops.values():
        if op.program != program:  # programs share no epoch (FRONTEND 5)
            room = CoreGrid(rows, columns)
            epoch = epoch + 1
            chip = 0
            program = op.program
        choice = first_choice(target, tiles, op)
        at = room.take(choice.blocks.grid)
        if at is None:
            room = CoreGrid(rows, columns)
            chip = chip + 1
            if chip == chips:
                chip = 0
                epoch = epoch + 1
            at = room.take(choice.blocks.grid)
            if at is None:
                raise UnsupportedError(f"{op.name}: {choice.blocks.grid} cores, {target.title} has {rows}x{columns}")
        decisions[op.name] = PlacementDecision(choice, epoch, chip, at)
    return decisions
