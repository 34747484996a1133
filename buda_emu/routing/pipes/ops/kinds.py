"""The kinds of ops that the vendor's pipe compiler distinguishes: an op type's own, or by how many inputs an op has."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.maps.edge import Reading
from buda_emu.routing.pipes.maps.paths import path_of, shape_after
from buda_emu.routing.pipes.ops.flat import Embedding, Tilizer
from buda_emu.routing.pipes.ops.fused import Fused, for_many
from buda_emu.routing.pipes.ops.operands import OpInputs, OpKind
from buda_emu.routing.pipes.ops.products import Dense, Depthwise, Reduce, Sparse, StripBuffer, TopK
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.blocking import Shape


class TileByTile(OpKind):
    """Ops on one or two operands, tile by tile."""

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return True


class Splice(OpKind):
    """splice: whole inputs, in ublocks as the result's."""

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        op, found = inputs.op, super().reading(inputs, index, source)
        (rows, columns), (r, c) = op.blocking.grid_size, op.blocking.ublock
        t = op.blocking.t if op.attributes.granularity == "ublock" else source[0]
        return replace(found, t=t, mblock=(source[1] // (rows * r), source[2] // (columns * c)))

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """What is left after `index` units are dropped and `length` of every `stride` are taken, over and over."""
        op, source = inputs.op, inputs.sources[index].blocking
        t, rows, columns = shape_after(source, path_of(op, index))
        first, length, stride = dict(op.attributes.inputs).get(index, (0, 1, 1))
        return t * rows * columns // op.blocking.cells * length // (first + stride), source.tiles_per_core

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        return for_many(inputs.op, covering)


_SPARSE: Final = Sparse()
_TILE_BY_TILE: Final = TileByTile()
_BY_TYPE: Final[Mapping[str, OpKind]] = {
    "matmul": Dense(),
    "depthwise": Depthwise(),
    "reduce": Reduce(),
    "fused_op": Fused(),
    "splice": Splice(),
    "buffer": StripBuffer(),
    "embedding": Embedding(),
    "tilizer": Tilizer(),
    "topk": TopK(),
}


def kind_of(op: Op) -> OpKind:
    """The kind of an op. RefusedError for an op of no kind of its own that has more than two inputs."""
    found = _BY_TYPE.get(op.type)
    if found is not None:
        return _SPARSE if op.type == "matmul" and op.attributes.identity else found
    if len(op.inputs) not in (1, 2):
        raise RefusedError("V085", f"{op.type} has input buffers for 2 operands, not for {len(op.inputs)}")
    return _TILE_BY_TILE
