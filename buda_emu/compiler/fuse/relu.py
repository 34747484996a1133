"""A clamp becomes the packer's own of the op before it (FRONTEND 3.2, OPS 6.13)."""

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.tiles import TileGraph


def fuse_relu(tiles: TileGraph) -> TileGraph:
    """`s = add(x, y); z = nop(s) {relu_en}` becomes `z = add(x, y) {relu_en}`, if nobody else reads s."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        if op.type != "nop" or not op.attrs.get("relu_en") or op.attrs.get("untilize"):
            continue
        before = readers.only_source(op, 0)
        if before is not None and before.has("clamps") and not before.attrs.get("relu_en"):
            readers.join(before, op, before.uses, **op.attrs)
    return tiles
