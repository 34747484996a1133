"""Fused ops whose tiles do not depend on each other, cut into parts: each goes through the whole schedule by itself."""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from buda_emu.ops.base import OpCall, Operand
from buda_emu.ops.fused.plan import FusedPlan, SameCall, Source, Step, fused_plan
from buda_emu.spec.blocking import Shape
from buda_emu.tensor.tilemap import TileMap


class Part(NamedTuple):
    """The tiles of an entry that a part makes, and its plan, on tensors of shape (1, 1, tiles)."""

    tiles: slice
    plan: FusedPlan


def is_tile_wise(plan: FusedPlan) -> bool:
    """Whether tile n of every buffer and of the result is made from tiles n of the operands alone."""
    return all(step.shape == plan.shape and _is_tile_wise(step) for step in plan.steps)


def fused_parts(call: OpCall, tiles: int) -> tuple[Part, ...]:
    """A tile-wise fused op cut into parts of at most `tiles` tiles of an entry; () if the op is not tile-wise."""
    return _parts(SameCall(call), tiles)


@lru_cache(maxsize=256)
def _parts(key: SameCall, tiles: int) -> tuple[Part, ...]:
    plan = fused_plan(key.call)
    if not is_tile_wise(plan):
        return ()
    t, rows, cols = plan.shape
    total = t * rows * cols
    cuts = [slice(start, min(start + tiles, total)) for start in range(0, total, tiles)]
    return tuple(Part(cut, _plan_of_part(plan, cut)) for cut in cuts)


def _is_tile_wise(step: Step) -> bool:
    operands = zip(step.call.operands, step.sources, strict=True)
    in_place = all(operand.map.is_identity for operand, source in operands if source.buffer)
    return in_place and step.call.has("tile by tile")


def _plan_of_part(plan: FusedPlan, tiles: slice) -> FusedPlan:
    shape = (1, 1, tiles.stop - tiles.start)
    return replace(plan, steps=tuple(_step_of_part(step, tiles, shape) for step in plan.steps), shape=shape)


def _step_of_part(step: Step, tiles: slice, shape: Shape) -> Step:
    def of_part(operand: Operand, source: Source) -> Operand:
        if source.buffer:
            return replace(operand, map=TileMap.identity(shape))
        return replace(operand, map=replace(operand.map, shape=shape, index=operand.map.index[tiles]))

    operands = tuple(map(of_part, step.call.operands, step.sources))
    return replace(step, call=replace(step.call, operands=operands), shape=shape)
