"""A decision for every op, and the placement that follows from all decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from buda_emu.compiler.lower.tiles import TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import encoded
from buda_emu.compiler.place.candidates import Choice, pickers
from buda_emu.compiler.place.operand_room import prefetch
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.place.queues import add_queues, add_queues_of
from buda_emu.compiler.place.routable import repeated
from buda_emu.compiler.place.routed import make_routable
from buda_emu.compiler.target import Objective, Target


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    """The place and the division of an op.

    `grid_transpose`: its rows of cores are columns of the chip; `why`: the reason for its division, where that is not
    its time alone; `begin_by`: as in `Placed`."""

    choice: Choice
    epoch: int
    chip: int
    at: tuple[int, int]
    grid_transpose: bool = False
    why: str = ""
    begin_by: float | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the chip that the op takes."""
        rows, columns = self.choice.blocks.grid
        return (columns, rows) if self.grid_transpose else (rows, columns)

    def placed_otherwise(self, other: "PlacementDecision") -> bool:
        """Return whether another decision has other blocks or other cores, regardless of its epoch and constants."""
        own = self.choice.blocks, self.chip, self.at, self.grid_transpose, self.begin_by
        return own != (other.choice.blocks, other.chip, other.at, other.grid_transpose, other.begin_by)


class OneEpoch(NamedTuple):
    """Another placement of the same graph, and the only epoch whose ops have other places or divisions in it."""

    base: Placement
    epoch: int


def placed(
    tiles: TileGraph,
    target: Target,
    decisions: Mapping[str, PlacementDecision],
    objective: Objective,
    rounds: int = 2,
    only: OneEpoch | None = None,
) -> Placement:
    """Build the placement of all decisions with its queues, with the rounds and copies of the objective.

    With `only`, just the queues of that epoch are added, in the channels that they have in the whole placement and at
    addresses that mean nothing. Raises MemoryFullError."""
    made = replace(tiles, ops=dict(tiles.ops), constants=dict(tiles.constants))
    found = Placement(target, made, microbatch=objective.microbatch, copies=objective.copies, step=objective.step)
    for op in tiles.ops.values():
        decision = decisions[op.name]
        held = decisions[op.name].choice.held
        if only is not None and decision.epoch != only.epoch:
            found.ops[op.name] = only.base.ops[op.name]
            made.ops[op.name] = own = only.base.tiles.ops[op.name]
            kept = only.base.tiles.constants
            made.constants |= {use.source: kept[use.source] for use in own.uses if own is not op and use.source in kept}
            continue
        own = encoded(made, op, decision.choice.blocks)
        if own is not op:
            held = held - pickers(op) | pickers(own)
        own, held = repeated(made, own, decision.choice.blocks, held)
        made.ops[op.name] = own
        found.ops[op.name] = Placed(
            op=with_columns(own, decision.choice.blocks.grid[1]),
            blocks=decision.choice.blocks,
            epoch=decision.epoch,
            at=decision.at,
            chip=decision.chip,
            held=held,
            grid_transpose=decision.grid_transpose,
            why=decision.why,
            begin_by=decision.begin_by,
        )
    read = {use.source for op in made.ops.values() for use in op.uses}
    made.constants = {name: item for name, item in made.constants.items() if name in read}
    found.epochs = max((decision.epoch for decision in decisions.values()), default=-1) + 1
    if only is None:
        make_routable(found)
        prefetch(found)
        add_queues(found, rounds)
    else:
        detours = only.base.detours.items()
        found.detours = {edge: way for edge, way in detours if found.ops[edge[0]].epoch != only.epoch}
        make_routable(found, only.epoch)
        prefetch(found, only.epoch)
        add_queues_of(found, rounds, only.epoch, only.base.queues)
    return found


def with_columns(op: TileOp, columns: int) -> TileOp:
    """Return an identity matmul with its tiles and words broadcast to every column of cores (OPS 6.2), and any other op
    as it is."""
    if not op.attrs.get("identity") or columns == 1:
        return op
    uses = [
        Use(use.source, (("broadcast", "c", columns),)) if number in (0, 2) else use
        for number, use in enumerate(op.uses)
    ]
    return replace(op, uses=uses)
