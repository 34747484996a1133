"""Values with one number for each row: computed on part of a tile, and spread over it where they are read."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from buda_emu.compiler.fuse.chains import Readers, is_elementwise
from buda_emu.compiler.fuse.epilogues import is_product
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.tiles import RELU, Constant, SubOp, TileGraph, TileOp, Use, select_attributes

SPREADING: Final = ("add", "subtract", "multiply")  # input 1 of these may be spread (OPS 8.3)
"""Ops whose second input may be spread (OPS 8.3)."""


def fuse_spreads(tiles: TileGraph) -> TileGraph:
    """Move spreading into the readers, in the graph itself, and return it: `s = matmul(m, ones); d = fused_op(x, s)`
    becomes `d = fused_op(x, m)` with m spread in its steps, if all readers of s can do that. A maximum of two spread
    columns is computed on one column first."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        if op.type == "maximum":
            _take_maximum_before_spread(readers, op)
    for op in list(tiles.ops.values()):
        if op.name in tiles.ops and spreads_column(tiles, op) and can_spread(readers, op.name):
            spread_by_readers(readers, op.name, op.uses[0])
            readers.drop(op)
    return tiles


def _take_maximum_before_spread(readers: Readers, op: TileOp) -> None:
    """Replace `y = maximum(spread(a), spread(b))` by `spread(maximum(a, b))`, if the spread values have no other
    reader."""
    sources = [readers.only_source(op, place) for place in (0, 1)]
    if (
        op.attrs
        or None in sources
        or not all(spreads_column(readers.tiles, source_op) for source_op in sources if source_op)
    ):
        return
    first, second = (source_op for source_op in sources if source_op)
    column = replace(op, name=f"{op.name}.column", uses=[first.uses[0], second.uses[0]])
    spread = replace(first, name=op.name, uses=[Use(column.name), first.uses[1]], source=op.source, made_of=op.made_of)
    for source_op in (first, second):
        readers.drop(source_op)
    readers.put([op], spread)
    readers.insert(column, before=spread)


def spreads_column(tiles: TileGraph, op: TileOp) -> bool:
    """Return whether an op only repeats column 0 of each tile over the tile: it is the product of one column of tiles
    with ones in row 0."""
    if not (op.type == "matmul" and op.inner == op.shape[2] == 1 and is_product(op) and len(op.uses) == 2):
        return False
    right = tiles.constants.get(op.uses[1].source)
    ones_in_row_0 = np.zeros((TILE, TILE), np.float32)
    ones_in_row_0[0] = 1.0
    return right is not None and right.shape == (1, 1, 1) and bool((right.values == ones_in_row_0).all())


def can_spread(readers: Readers, name: str) -> bool:
    """Return whether every reader of a tensor can spread its one column over its tiles itself. False without readers,
    and if the host or a ram reads the tensor."""
    tiles = readers.tiles
    uses = readers.of(name)
    return bool(uses) and name not in tiles.shown and all(_reads_column(tiles.ops[op], place) for op, place in uses)


def _reads_column(op: TileOp, place: int) -> bool:
    """Return whether an op can spread the column that it reads as operand `place`."""
    operand = f"input{place}"
    if op.type != "fused_op" and not (is_elementwise(op) and op.uses.count(op.uses[place]) == 1):
        return False
    steps = [step for step in steps_of(op) if operand in step.inputs]
    return all(_with_spread_operand(step, operand) is not None for step in steps)


def steps_of(op: TileOp) -> tuple[SubOp, ...]:
    """Return the steps of a fused op, or the op itself as the only one."""
    inputs = tuple(f"input{place}" for place in range(len(op.uses)))
    return op.steps or (SubOp(op.name, op.type, inputs, "output", attrs=select_attributes(op.attrs, RELU)),)


def _with_spread_operand(step: SubOp, name: str) -> SubOp | None:
    """Return the step with the operand spread, as its second operand; None if the step cannot spread that operand
    alone."""
    if step.type not in SPREADING or step.spread or step.across or step.inputs.count(name) != 1:
        return None
    if step.inputs[1] == name:
        return replace(step, spread="c")
    if step.type == "subtract":
        return None
    return replace(step, inputs=step.inputs[::-1], spread="c")


def spread_by_readers(readers: Readers, name: str, column: Use) -> None:
    """Let all readers of the tensor `name` read `column` instead, and spread it themselves, which `can_spread` must
    have allowed."""
    for reader, place in list(readers.of(name)):
        op = readers.tiles.ops[reader]
        operand = f"input{place}"
        uses = list(op.uses)
        uses[place] = replace(column, tms=column.tms + uses[place].tms)
        steps = tuple(_with_spread_operand(step, operand) or step for step in steps_of(op))
        readers.put([op], replace(op, type="fused_op", uses=uses, steps=steps, attrs={}))


def fuse_half_tiles(tiles: TileGraph) -> TileGraph:
    """Compute numbers of rows on half of each tile, in the graph itself, and return it: `s = matmul(x, ones); r =
    reciprocal(s); y = multiply(x, r)` becomes `r = reciprocal(s) {vector: "c"}; y = fused_op(x, r)` with r spread in
    its step, if all readers of r can do that."""
    readers = Readers(tiles)
    equal = set[str]()
    for op in list(tiles.ops.values()):
        op = tiles.ops[op.name]  # as it is by now: it may read another one's half tiles
        if not _has_equal_columns(tiles, op, equal):
            continue
        equal.add(op.name)
        halved = _halve(tiles, op, equal)
        if halved is not None and can_spread(readers, op.name):
            spread_by_readers(readers, op.name, Use(op.name))
            tiles.ops[op.name] = halved
    return tiles


def with_equal_columns(tiles: TileGraph) -> set[str]:
    """Return the names of the ops whose result is one column of tiles in which all columns are the same."""
    equal = set[str]()
    for op in tiles.ops.values():
        if _has_equal_columns(tiles, op, equal):
            equal.add(op.name)
    return equal


def _has_equal_columns(tiles: TileGraph, op: TileOp, equal: set[str]) -> bool:
    """Return whether all columns of a result of one column of tiles are the same: in a product by a matrix of equal
    columns, and in what is computed from such results element by element."""
    if op.shape[2] != 1 or _has_attribute_of(op, ("identity", "untilize", "gradient")):
        return False
    if op.has("rows by columns"):
        return all(is_equal(tiles, use, equal) for use in op.uses[1:])
    if op.sums_rows:
        return op.steps[-1] in _steps_of_row_numbers(op, [is_equal(tiles, use, equal) for use in op.uses])
    if not op.is_tile_by_tile or _has_dropout(op):
        return False
    return all(is_equal(tiles, use, equal) for use in op.uses)


def _has_attribute_of(op: TileOp, names: Sequence[str]) -> bool:
    """Return whether one of the attributes is set."""
    return any(op.attrs.get(name) for name in names)


def _has_dropout(op: TileOp) -> bool:
    """Return whether the op or a step of it drops elements at random."""
    return op.type == "dropout" or any(step.type == "dropout" for step in op.steps)


def _steps_of_row_numbers(op: TileOp, equal: Sequence[bool]) -> list[SubOp]:
    """Return the steps of a fused op that compute one number for each row, in all columns of a tile; `equal`: whether
    each operand has equal columns."""
    number_by_name = {f"input{number}": is_number for number, is_number in enumerate(equal)}
    numbers: list[SubOp] = []
    for step in op.steps:
        if step.spread:
            spread = step.inputs[:-1]
        else:
            spread = step.inputs
        if step.inner:
            number_by_name[step.output] = step.has("rows by columns") and number_by_name[step.inputs[1]]
        else:
            number_by_name[step.output] = (step.columns or op.shape[2]) == 1 and all(
                number_by_name[name] for name in spread
            )
        if number_by_name[step.output]:
            numbers.append(step)
    return numbers


def is_equal(tiles: TileGraph, use: Use, equal: Container[str]) -> bool:
    """Return whether all columns of an operand are the same, given the ops whose columns are (`equal`)."""
    if ("transpose",) in use.tms:  # all other TMs put tiles elsewhere as they are
        return False
    constant = tiles.constants.get(use.source)
    if constant is None:
        return use.source in equal
    return equal_columns(constant)


def equal_columns(constant: Constant) -> bool:
    """Return whether all columns of a constant of one column of tiles are the same."""
    values = constant.values
    has_one_column = constant.kind in ("value", "picker") and constant.shape[2] == 1
    return has_one_column and bool((values == values[:, :, :1]).all())


def _halve(tiles: TileGraph, op: TileOp, equal: set[str]) -> TileOp | None:
    """Return the op with the work of the vector unit on half of each tile; None if it has no such work. `equal`: ops
    whose columns are all the same."""
    if op.has("vector unit"):
        return replace(op, attrs={**op.attrs, "vector": "c"})
    if op.steps:
        numbers = _steps_of_row_numbers(op, [is_equal(tiles, use, equal) for use in op.uses])
    else:
        numbers = []
    steps = tuple(_half_step(step) if step in numbers else step for step in op.steps)
    if steps == op.steps:
        return None
    return replace(op, steps=steps)


def _half_step(step: SubOp) -> SubOp:
    """Return a step of the vector unit so that it works on half of each tile; any other step unchanged."""
    if step.has("vector unit"):
        return replace(step, attrs={**step.attrs, "vector": "c"})
    return step
