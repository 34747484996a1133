"""fused_op: a schedule of sub-ops on whole tensors (OPS 8), and its independent parts, which run side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.ops import sfpu
from buda_emu.emulator.ops.base import Operand, Parallel, PlannedOp, Tiles, implements, serial
from buda_emu.emulator.ops.common import relu
from buda_emu.emulator.ops.fused_plan import OUTPUT, FusedPlan, OperandOrigin, PlannedSubOp, SameCall, fused_plan
from buda_emu.emulator.ops.operands import convert, relu_in_place, run_relu
from buda_emu.netlist.model import Tm
from buda_emu.spec.blocking import TILE_ELEMENTS, Shape


class Part(NamedTuple):
    """A part of a fused op: the tiles of an entry that it computes, and its plan, on tensors of shape (1, 1, tiles)."""

    tiles: slice
    plan: FusedPlan


def is_tile_wise(plan: FusedPlan) -> bool:
    """Return whether tile n of every buffer and of the result is made from the tiles n of the operands alone, so that
    parts of an entry can be computed one by one."""
    return all(step.shape == plan.shape and _is_tile_wise(step) for step in plan.steps)


def fused_parts(call: PlannedOp, tiles: int) -> tuple[Part, ...]:
    """Cut a fused op that works tile by tile into parts of at most `tiles` tiles of an entry, so that its temporaries
    stay in the caches; () if the op does not."""
    return _cut_parts(SameCall(call), tiles)


@lru_cache(maxsize=256)
def _cut_parts(key: SameCall, tiles: int) -> tuple[Part, ...]:
    """Cut the fused op as `fused_parts` does; remembered for each call object."""
    plan = fused_plan(key.call)
    if not is_tile_wise(plan):
        return ()
    t, rows, cols = plan.shape
    total = t * rows * cols
    cuts = [slice(start, min(start + tiles, total)) for start in range(0, total, tiles)]
    return tuple(Part(cut, _plan_of_part(plan, cut)) for cut in cuts)


def _is_tile_wise(step: PlannedSubOp) -> bool:
    """Return whether a sub-op computes each tile from the tiles in the same place: it reads buffers in order, and its
    type works tile by tile."""
    operands = zip(step.call.operands, step.sources, strict=True)
    in_place = all(operand.map.is_identity for operand, source in operands if source.buffer)
    return in_place and step.call.has("tile by tile")


def _plan_of_part(plan: FusedPlan, tiles: slice) -> FusedPlan:
    """Return the plan that computes only these tiles of an entry, as a tensor of shape (1, 1, number of tiles)."""
    shape = (1, 1, tiles.stop - tiles.start)
    return replace(plan, steps=tuple(_step_of_part(step, tiles, shape) for step in plan.steps), shape=shape)


def _step_of_part(step: PlannedSubOp, tiles: slice, shape: Shape) -> PlannedSubOp:
    """Return the sub-op for these tiles of an entry, whose result has `shape`."""

    def of_part(operand: Operand, source: OperandOrigin) -> Operand:
        """Return a sub-op's operand cut to `tiles`: a buffer holds just these and is read in order; of an external
        operand the map picks them."""
        if source.buffer:
            return replace(operand, map=TileMap.identity(shape))
        return replace(operand, map=replace(operand.map, shape=shape, index=operand.map.index[tiles]))

    operands = tuple(map(of_part, step.call.operands, step.sources))
    return replace(step, call=replace(step.call, operands=operands), shape=shape)


# Tiles of one temporary. A tile-wise schedule of large entries runs on parts of them small enough for caches (1 MiB).
PART_TILES: Final = 256
# Others run on whole entries, as many together as make up about this size (4 MiB); threads share each kernel.
GROUP_TILES: Final = 1024


@implements("fused_op")
class Fused:
    """The sub-ops in order; floats are never rounded between them. The base op's relu is part of the sub-op that writes
    output."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return the shape of the content of `output`, (t, R, C) in tiles. Raises ProgramError where the reference
        aborts."""
        return fused_plan(call).shape

    def label(self, call: PlannedOp) -> str:
        """Return the format label of the content of `output` (OPS 3.1, 8.1)."""
        return fused_plan(call).label

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the sub-ops one after the other by their definitions, each on whole tensors, and return the content
        of `output`."""
        buffers: dict[str, Tiles] = {}
        for step in fused_plan(call).steps:
            operands = [
                apply_broadcasts(
                    inputs[source.external] if source.external >= 0 else buffers[source.buffer], source.tms
                )
                for source in step.sources
            ]
            if step.in_place:
                region = sfpu.region_of(step.call)
                result = sfpu.on_region(step.call, step.call.type, region, operands[0], outside=operands[0])
            else:
                result = step.implementation.reference(step.call, operands)
            if step.relu is not None:
                result = relu(result, *step.relu)
            if step.convert:
                buffers[step.target] = quantise(step.convert, result)
            else:
                buffers[step.target] = result
        return buffers[OUTPUT]

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the result by the kernels of the sub-ops: part by part where the op works tile by tile, else on whole
        entries."""
        parts = fused_parts(call, PART_TILES)
        if len(parts) > 1:
            parallel(_run_parts, out.shape[0] * len(parts), out, inputs, parts)
        else:  # entries are small, or cannot be taken apart: several together
            _run_groups(out, inputs, parts[0].plan if parts else fused_plan(call), parallel)


def apply_broadcasts(tiles: Tiles, tms: Sequence[Tm]) -> Tiles:
    """Return float32[w, t, R, C, 32, 32] after the broadcasts among a sub-op's TMs (OPS 7); its tile_broadcast, which
    the sub-op applies, is passed over."""
    for tm in tms:
        if tm.name == "broadcast":
            factors = [1] * tiles.ndim
            factors[{"z": 1, "r": 2, "c": 3}[str(tm.args[0])]] = int(tm.args[1])
            tiles = np.tile(tiles, factors)
    return tiles


@dataclass(slots=True)
class _Pool:
    """Temporaries of one run, by number of tiles of an entry."""

    entries: int
    free: dict[int, list[Tiles]] = field(default_factory=dict[int, list[Tiles]])

    def take(self, tiles: int) -> Tiles:
        """Return a free temporary for `tiles` tiles of each entry, or a new one; its contents are undefined."""
        spare = self.free.get(tiles)
        if spare:
            return spare.pop()
        return np.empty((self.entries, tiles, TILE_ELEMENTS), np.float32)

    def give_back(self, buffer: Tiles) -> None:
        """Take back a temporary that `take` returned, for the next that asks for as many tiles."""
        self.free.setdefault(buffer.shape[1], []).append(buffer)


def _run_groups(out: Tiles, inputs: Sequence[Tiles], plan: FusedPlan, parallel: Parallel) -> None:
    """Run the plan for all entries of `out`, as many of them together as have about GROUP_TILES tiles."""
    together = min(max(1, GROUP_TILES // out.shape[1]), len(out))
    pool = _Pool(together)
    for begin in range(0, len(out), together):
        entries = slice(begin, begin + together)
        _run_plan(plan, [_select_entries(source, entries) for source in inputs], out[entries], pool, parallel)


def _run_parts(start: int, stop: int, out: Tiles, inputs: Sequence[Tiles], parts: Sequence[Part]) -> None:
    """Run work items start..stop. Items are the parts of the entries of `out`, one entry after the other."""
    pool = _Pool(1)
    for number_of_part in range(start, stop):
        entry, number = divmod(number_of_part, len(parts))
        entries = slice(entry, entry + 1)
        sources = [_select_entries(source, entries) for source in inputs]
        _run_plan(parts[number].plan, sources, out[entries, parts[number].tiles], pool, serial)


def _select_entries(source: Tiles, entries: slice) -> Tiles:
    """Return these entries of a source; a source with a single entry, which serves all inputs, stays whole."""
    return source if source.shape[0] == 1 else source[entries]


def _run_plan(plan: FusedPlan, inputs: Sequence[Tiles], out: Tiles, pool: _Pool, parallel: Parallel) -> None:
    """Run the sub-ops in order for the entries of `out`. Temporaries come from `pool`, and go back when their buffer is
    emptied; the last sub-op that writes `output` writes into `out`."""
    buffers: dict[str, Tiles] = {}
    last_write = max(number for number, step in enumerate(plan.steps) if step.target == OUTPUT)
    for number, step in enumerate(plan.steps):
        t, rows, cols = step.shape
        if number == last_write:
            buffer = None
        else:
            buffer = pool.take(t * rows * cols)
        result = out if buffer is None else buffer[: out.shape[0]]
        _run_step(step, inputs, buffers, result, parallel)
        for name in step.emptied:
            pool.give_back(buffers.pop(name))
        if buffer is not None and step.target == OUTPUT:
            pool.give_back(buffer)  # a later sub-op writes output again
        elif buffer is not None:
            buffers[step.target] = buffer


def _run_step(
    step: PlannedSubOp, inputs: Sequence[Tiles], buffers: dict[str, Tiles], result: Tiles, parallel: Parallel
) -> None:
    """Run the kernels of one sub-op into `result`, then its relu and its conversion. `buffers`: temporaries by buffer
    name."""
    entries = result.shape[0]
    operands = [
        inputs[source.external] if source.external >= 0 else buffers[source.buffer][:entries] for source in step.sources
    ]
    if step.in_place:
        result[...] = operands[0]
        sfpu.run_in_place(step.call, step.call.type, sfpu.region_of(step.call), result, parallel)
        relu_in_place(result, step.relu, parallel)
    else:
        run_relu(step.implementation, step.call, operands, step.relu, result, parallel)
    if step.convert:
        convert(result, step.convert, parallel, truncate=True)
