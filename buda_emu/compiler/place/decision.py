"""A decision for every op, and the placement that follows from all decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from buda_emu.compiler.lower.tiles import TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import encode_picker
from buda_emu.compiler.place.candidates import Choice, picker_operands
from buda_emu.compiler.place.operand_room import add_prefetch_buffers
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.place.queues import add_epoch_queues, add_queues
from buda_emu.compiler.place.routable import repeat_numbers
from buda_emu.compiler.place.routed import make_routable
from buda_emu.compiler.place.rows import drop_unread_constants
from buda_emu.compiler.search_parts import Part
from buda_emu.compiler.target import Objective, Target


@dataclass(frozen=True, slots=True)
class PlacementDecision:
    """The decisions of a search for one op: its division, its epoch, and where it stands (`at`: the upper left core).

    `grid_transpose`: its rows of cores are columns of the chip; `why`: the reason for its division, where that is not
    its time alone; `begin_by`: the cycle of the epoch by which it has to begin, None to leave that to an estimate."""

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
        if self.grid_transpose:
            return (columns, rows)
        return (rows, columns)

    def differs_in_place(self, other: "PlacementDecision") -> bool:
        """Return whether another decision has other blocks, other cores or another deadline to begin, regardless of its
        epoch and of the constants in L1."""
        position = self.choice.blocks, self.chip, self.at, self.grid_transpose, self.begin_by
        return position != (other.choice.blocks, other.chip, other.at, other.grid_transpose, other.begin_by)


class OneEpoch(NamedTuple):
    """The base of a trial that changes a single epoch: a placement `base` of the same graph, and the only epoch whose
    ops may have other places or divisions than there.

    `near`: the part of the graph on which the queues of the epoch depend, so that a trial takes time for its own epoch
    and not for the whole model."""

    base: Placement
    epoch: int
    near: TileGraph

    @staticmethod
    def of(tiles: TileGraph, base: Placement, epoch: int) -> "OneEpoch":
        """Return the base of trials that change `epoch` in a placement `base` of the graph `tiles`."""
        return OneEpoch(base, epoch, _graph_near(tiles, base, epoch))


def _graph_near(tiles: TileGraph, base: Placement, epoch: int) -> TileGraph:
    """Return the part of the graph with the ops of an epoch and all ops that make or read a tensor which the epoch
    makes or reads. Ops that a ram or the host shows, that let inputs flow through a program, or that stand on the last
    chip are there, too, as they decide what the whole placement looks like. Constants that none of these ops reads are
    left out."""
    tensors: set[str] = set()
    others: list[str] = []
    for op in tiles.ops.values():
        if base.ops[op.name].epoch == epoch:
            tensors.add(op.name)
            tensors.update(use.source for use in op.uses)
        else:
            others.append(op.name)
    names = tensors | tiles.shown
    names.update(sorted(others, key=lambda name: base.ops[name].chip)[-1:])
    for program in dict.fromkeys(op.program for op in tiles.ops.values()):
        names.update(tiles.flow_into(program) or ())
    ops = {
        op.name: op for op in tiles.ops.values() if op.name in names or any(use.source in tensors for use in op.uses)
    }
    read = {use.source for op in ops.values() for use in op.uses}
    constants = {name: constant for name, constant in tiles.constants.items() if name in read}
    return replace(tiles, ops=ops, constants=constants)


def build_placement(
    tiles: TileGraph,
    target: Target,
    decisions: Mapping[str, PlacementDecision],
    objective: Objective,
    rounds: int = 2,
    only: OneEpoch | None = None,
) -> Placement:
    """Build the placement that follows from a decision for every op: with pickers encoded, operands that the router
    cannot connect sent through DRAM, prefetch buffers, and queues with addresses, for the microbatch and copies of the
    objective. Queues of inputs and outputs hold `rounds` rounds.

    With `only`, just the ops and queues near that epoch are there; ops of other epochs are as in its base, and queues
    lie in the channels that they have in the whole placement, at addresses that mean nothing. Raises
    MemoryFullError."""
    if only is not None:
        tiles = only.near
    graph = replace(tiles, ops=dict(tiles.ops), constants=dict(tiles.constants))
    placement = Placement(target, graph, microbatch=objective.microbatch, copies=objective.copies, step=objective.step)
    for op in tiles.ops.values():
        decision = decisions[op.name]
        if only is not None and decision.epoch != only.epoch:
            _copy_op(placement, op, only.base)
        else:
            _add_op(placement, op, decision)
    drop_unread_constants(graph)
    prefetches = not placement.waits_for_one or Part.PREFETCH not in objective.without
    balances = not placement.waits_for_one or Part.BALANCE not in objective.without
    if only is None:
        placement.epochs = max((decision.epoch for decision in decisions.values()), default=-1) + 1
        make_routable(placement)
        if prefetches:
            add_prefetch_buffers(placement)
        add_queues(placement, rounds, balances=balances)
    else:
        placement.epochs = only.base.epochs
        for (reader, source), detour in only.base.detours.items():
            if reader in placement.ops and source in placement.ops and placement.ops[reader].epoch != only.epoch:
                placement.detours[reader, source] = detour
        make_routable(placement, only.epoch)
        if prefetches:
            add_prefetch_buffers(placement, only.epoch)
        add_epoch_queues(placement, rounds, only.epoch, only.base.queues, balances=balances)
    return placement


def _copy_op(placement: Placement, op: TileOp, base: Placement) -> None:
    """Add an op to a placement as the placement `base` of the same graph has it, with the constants that were made for
    it there."""
    placement.ops[op.name] = base.ops[op.name]
    placement.tiles.ops[op.name] = base_op = base.tiles.ops[op.name]
    if base_op is op:
        return
    constants = base.tiles.constants
    placement.tiles.constants |= {use.source: constants[use.source] for use in base_op.uses if use.source in constants}


def _add_op(placement: Placement, op: TileOp, decision: PlacementDecision) -> None:
    """Add an op to a placement as it is decided: with its picker encoded for the division, and with numbers repeated
    for its cores where that saves streams. The constants that this makes are added to the placement's graph."""
    graph = placement.tiles
    blocks = decision.choice.blocks
    held = decision.choice.held
    encoded_op = encode_picker(graph, op, blocks)
    if encoded_op is not op:
        held = held - picker_operands(op) | picker_operands(encoded_op)
    encoded_op, held = repeat_numbers(graph, encoded_op, blocks, held)
    graph.ops[op.name] = encoded_op
    placement.ops[op.name] = PlacedOp(
        op=broadcast_picker(encoded_op, blocks.grid[1]),
        blocks=blocks,
        epoch=decision.epoch,
        at=decision.at,
        chip=decision.chip,
        held=held,
        grid_transpose=decision.grid_transpose,
        why=decision.why,
        begin_by=decision.begin_by,
    )


def broadcast_picker(op: TileOp, columns: int) -> TileOp:
    """Return an identity matmul with TMs that broadcast its tiles and words to each of `columns` columns of cores (OPS
    6.2), and any other op as it is."""
    if not op.attrs.get("identity") or columns == 1:
        return op
    uses = list(op.uses)
    for number in (0, 2):
        uses[number] = Use(uses[number].source, (("broadcast", "c", columns),))
    return replace(op, uses=uses)
