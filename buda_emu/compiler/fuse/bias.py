"""A row that is added to a product becomes the product's third operand (OPS 6.1, 6.3)."""

from dataclasses import replace
from typing import Final

import numpy as np

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.tiles import RELU, Constant, TileAttributes, TileGraph, TileOp, Use, kept

_TAKEN: Final = ("bias", "identity", "relu_en", "sfpu_op")


def fuse_bias(tiles: TileGraph) -> TileGraph:
    """`p = matmul(x, w); y = add(p, row)` becomes `y = matmul(x, w, row) {bias}`, if nobody else reads p; `row` is a
    constant of equal rows, or what a product with ones copies from row 0 into all rows, which then nobody has to do."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        for operand in (0, 1) if op.type == "add" else ():
            product, other = readers.only_source(op, operand), op.uses[1 - operand].source
            if product is None or not is_product(product):
                continue
            row = _row(tiles, op.uses[1 - operand], op.program)
            if row is None:
                continue
            made: TileAttributes = {"bias": True, **kept(op.attrs, RELU)}
            readers.join(product, op, [*product.uses, row], **made)
            if row.source != other and not readers.of(other):
                readers.drop(tiles.ops[other])
            break
    return tiles


def is_product(op: TileOp) -> bool:
    """Whether nothing has been put after the product yet."""
    return op.has("inner dimension") and not any(op.attrs.get(key) for key in _TAKEN)


def _row(tiles: TileGraph, use: Use, program: str) -> Use | None:
    """What the math unit adds to all rows, which is row 0 of each tile of a bias; None where rows differ."""
    constant = tiles.constants.get(use.source)
    if constant is not None:
        return use if constant.kind == "value" and _rows_are_equal(constant) else None
    op = tiles.ops.get(use.source)
    if op is None or op.program != program or not _copies_row_0(tiles, op):
        return None
    tms = op.uses[1].tms
    if ("transpose",) in tms or any(tm[0] != "broadcast" for tm in use.tms):  # a product transposes no third operand
        return None
    return replace(op.uses[1], tms=tms + use.tms)


def _copies_row_0(tiles: TileGraph, op: TileOp) -> bool:
    """Whether an op is the product of ones in column 0 with one row of tiles."""
    if not (op.type == "matmul" and op.inner == op.shape[1] == 1 and is_product(op)):
        return False
    left = tiles.constants.get(op.uses[0].source)
    ones = np.zeros((TILE, TILE), np.float32)
    ones[:, 0] = 1.0
    return left is not None and left.kind == "value" and left.shape == (1, 1, 1) and bool(np.all(left.values == ones))


def _rows_are_equal(constant: Constant) -> bool:
    """Those of each tile."""
    t, rows, columns = constant.values.shape
    by_tile = constant.values.reshape(t, rows // TILE, TILE, columns)
    return bool(np.all(by_tile == by_tile[:, :, :1]))
