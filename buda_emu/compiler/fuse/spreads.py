"""The one column in which a maximum leaves its result is spread over its tiles by who reads it (`tile_broadcast`,
OPS 7), and no product with ones does it before."""

from dataclasses import replace
from typing import Final

import numpy as np

from buda_emu.compiler.fuse.bias import is_product
from buda_emu.compiler.fuse.chains import is_elementwise
from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.tiles import RELU, SubOp, TileGraph, TileOp, Use, kept

SPREADING: Final = ("add", "subtract", "multiply")  # input 1 of these may be spread (OPS 8.3)


def fuse_spreads(tiles: TileGraph) -> TileGraph:
    """`s = matmul(m, ones); d = fused_op(x, s)` becomes `d = fused_op(x, m)` with m spread in its steps, where all that
    reads s can do that; what reads two of them, for the larger, works on one column first."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        if op.type == "maximum":
            _larger_first(readers, op)
    for op in list(tiles.ops.values()):
        if op.name in tiles.ops and spreads_column(tiles, op) and can_spread(readers, op.name):
            spread_by_readers(readers, op.name, op.uses[0])
            readers.drop(op)
    return tiles


def _larger_first(readers: Readers, op: TileOp) -> None:
    """`y = maximum(spread(a), spread(b))` becomes `spread(maximum(a, b))`, where nobody else reads what is spread."""
    before = [readers.only_source(op, place) for place in (0, 1)]
    if op.attrs or None in before or not all(spreads_column(readers.tiles, item) for item in before if item):
        return
    first, second = (item for item in before if item)
    column = replace(op, name=f"{op.name}.column", uses=[first.uses[0], second.uses[0]])
    spread = replace(first, name=op.name, uses=[Use(column.name), first.uses[1]], source=op.source, made_of=op.made_of)
    for item in (first, second):
        readers.drop(item)
    readers.put([op], spread)
    readers.insert(column, before=spread)


def spreads_column(tiles: TileGraph, op: TileOp) -> bool:
    """Whether an op is the product of one column of tiles with ones in row 0."""
    if not (op.type == "matmul" and op.inner == op.shape[2] == 1 and is_product(op) and len(op.uses) == 2):
        return False
    right = tiles.constants.get(op.uses[1].source)
    ones = np.zeros((TILE, TILE), np.float32)
    ones[0] = 1.0
    return right is not None and right.shape == (1, 1, 1) and bool((right.values == ones).all())


def can_spread(readers: Readers, name: str) -> bool:
    """Whether each reader of a tensor can spread its columns itself."""
    tiles, found = readers.tiles, readers.of(name)
    return bool(found) and name not in tiles.shown and all(_reads_column(tiles.ops[op], place) for op, place in found)


def _reads_column(op: TileOp, place: int) -> bool:
    own = f"input{place}"
    if op.type != "fused_op" and not (is_elementwise(op) and op.uses.count(op.uses[place]) == 1):
        return False
    steps = [step for step in steps_of(op) if own in step.inputs]
    return all(_spreading(step, own) is not None for step in steps)


def steps_of(op: TileOp) -> tuple[SubOp, ...]:
    """Those of a fused op, or the op itself as the only one."""
    inputs = tuple(f"input{place}" for place in range(len(op.uses)))
    return op.steps or (SubOp(op.name, op.type, inputs, "output", attrs=kept(op.attrs, RELU)),)


def _spreading(step: SubOp, name: str) -> SubOp | None:
    """The step with an operand spread, which is its second then; None where it cannot spread that one alone."""
    if step.type not in SPREADING or step.spread or step.across or step.inputs.count(name) != 1:
        return None
    if step.inputs[1] == name:
        return replace(step, spread="c")
    return None if step.type == "subtract" else replace(step, inputs=step.inputs[::-1], spread="c")


def spread_by_readers(readers: Readers, name: str, column: Use) -> None:
    """All readers of a tensor read that column instead of it, and spread it (`can_spread`)."""
    for reader, place in list(readers.of(name)):
        op, own = readers.tiles.ops[reader], f"input{place}"
        uses = list(op.uses)
        uses[place] = replace(column, tms=column.tms + uses[place].tms)
        made = tuple(_spreading(step, own) or step for step in steps_of(op))
        readers.put([op], replace(op, type="fused_op", uses=uses, steps=made, attrs={}))
