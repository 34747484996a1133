"""Of what is one number for each row, such as a sum's reciprocal, the vector unit computes the left half of each tile
alone (`vector: c`, OPS 5.2), and who reads it spreads column 0 over the tile (`tile_broadcast`, OPS 7)."""

from collections.abc import Container, Sequence
from dataclasses import replace

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.fuse.spreads import can_spread, spread_by_readers
from buda_emu.compiler.lower.tiles import Constant, SubOp, TileGraph, TileOp, Use


def fuse_half_tiles(tiles: TileGraph) -> TileGraph:
    """`s = matmul(x, ones); r = reciprocal(s); y = multiply(x, r)` becomes `r = reciprocal(s) {vector: "c"};
    y = fused_op(x, r)` with r spread in its step, where all that reads r can do that."""
    readers, equal = Readers(tiles), set[str]()
    for op in list(tiles.ops.values()):
        op = tiles.ops[op.name]  # as it is by now: it may read another one's half tiles
        if not _has_equal_columns(tiles, op, equal):
            continue
        equal.add(op.name)
        halved = _halved(tiles, op, equal)
        if halved is not None and can_spread(readers, op.name):
            spread_by_readers(readers, op.name, Use(op.name))
            tiles.ops[op.name] = halved
    return tiles


def with_equal_columns(tiles: TileGraph) -> set[str]:
    """Ops of one column of tiles whose columns are all the same."""
    found = set[str]()
    for op in tiles.ops.values():
        if _has_equal_columns(tiles, op, found):
            found.add(op.name)
    return found


def _has_equal_columns(tiles: TileGraph, op: TileOp, equal: set[str]) -> bool:
    """Whether all columns of a result of one column of tiles are the same: that of a product by a matrix of equal
    columns, or what is computed of such results number by number."""
    if op.shape[2] != 1 or any(op.attrs.get(name) for name in ("identity", "untilize", "gradient")):
        return False
    if op.has("rows by columns"):
        return all(is_equal(tiles, use, equal) for use in op.uses[1:])
    if op.sums_rows:
        return op.steps[-1] in _numbers(op, [is_equal(tiles, use, equal) for use in op.uses])
    return (
        op.is_tile_by_tile
        and "dropout" not in {op.type, *(step.type for step in op.steps)}
        and all(is_equal(tiles, use, equal) for use in op.uses)
    )


def _numbers(op: TileOp, equal: Sequence[bool]) -> list[SubOp]:
    """Steps of a fused op that are one number for each row, in all columns of a tile; `equal`: operands that are."""
    held = {f"input{number}": own for number, own in enumerate(equal)}
    found: list[SubOp] = []
    for step in op.steps:
        spread = step.inputs[:-1] if step.spread else step.inputs
        if step.inner:
            held[step.output] = step.has("rows by columns") and held[step.inputs[1]]
        else:
            held[step.output] = (step.columns or op.shape[2]) == 1 and all(held[name] for name in spread)
        if held[step.output]:
            found.append(step)
    return found


def is_equal(tiles: TileGraph, use: Use, equal: Container[str]) -> bool:
    """Whether all columns of an operand are the same, if those of the ops in `equal` are."""
    if ("transpose",) in use.tms:  # all other TMs put tiles elsewhere as they are
        return False
    constant = tiles.constants.get(use.source)
    return use.source in equal if constant is None else equal_columns(constant)


def equal_columns(constant: Constant) -> bool:
    """Whether all columns of a constant of one column of tiles are the same."""
    values = constant.values
    one = constant.kind in ("value", "picker") and constant.shape[2] == 1
    return one and bool((values == values[:, :, :1]).all())


def _halved(tiles: TileGraph, op: TileOp, equal: set[str]) -> TileOp | None:
    """With its work for the vector unit on half of each tile; None where there is none."""
    if op.has("vector unit"):
        return replace(op, attrs={**op.attrs, "vector": "c"})
    numbers = _numbers(op, [is_equal(tiles, use, equal) for use in op.uses]) if op.steps else []
    steps = tuple(_half_step(step) if step in numbers else step for step in op.steps)
    return None if steps == op.steps else replace(op, steps=steps)


def _half_step(step: SubOp) -> SubOp:
    return replace(step, attrs={**step.attrs, "vector": "c"}) if step.has("vector unit") else step
