"""A row that is added to a product becomes the product's third operand (OPS 6.1, 6.3)."""

from typing import Final

import numpy as np

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.tiles import RELU, TileAttributes, TileGraph, TileOp, kept

_TAKEN: Final = ("bias", "identity", "relu_en", "sfpu_op")


def fuse_bias(tiles: TileGraph) -> TileGraph:
    """`p = matmul(x, w); y = add(p, row)` becomes `y = matmul(x, w, row) {bias}`, if nobody else reads p."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        for operand in (0, 1) if op.type == "add" else ():
            product, row = readers.only_source(op, operand), op.uses[1 - operand]
            if product is None or not is_product(product) or not _one_row(tiles, row.source):
                continue
            made: TileAttributes = {"bias": True, **kept(op.attrs, RELU)}
            readers.join(product, op, [*product.uses, row], **made)
            break
    return tiles


def is_product(op: TileOp) -> bool:
    """Whether nothing has been put after the product yet."""
    return op.has("inner dimension") and not any(op.attrs.get(key) for key in _TAKEN)


def _one_row(tiles: TileGraph, name: str) -> bool:
    """Of the bias the math unit reads row 0 of each tile, for all rows: so all must be equal."""
    constant = tiles.constants.get(name)
    if constant is None or constant.kind != "value":
        return False
    t, rows, columns = constant.values.shape
    by_tile = constant.values.reshape(t, rows // 32, 32, columns)
    return bool(np.all(by_tile == by_tile[:, :, :1]))
