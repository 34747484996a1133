"""GELU with tanh after a product runs on the product's own core, before it is packed (OPS 6.1)."""

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.tiles import TileGraph


def fuse_activation(tiles: TileGraph) -> TileGraph:
    """`p = matmul(x, w); y = gelu(p)` becomes `y = matmul(x, w) {sfpu_op: gelu}`, if nobody else reads p."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        product = readers.only_source(op, 0) if op.type == "gelu" else None
        if product is None or product.type != "matmul":
            continue
        if not any(product.attrs.get(key) for key in ("identity", "relu_en", "sfpu_op")):
            readers.join(product, op, product.uses, sfpu_op="gelu")
    return tiles
