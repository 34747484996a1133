"""The kinds of ops that the vendor's pipe compiler distinguishes: an op type's own, or by how many inputs an op has."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Op, SubOp
from buda_emu.performance.routing.pipes.edge import (
    EdgeMap,
    Reading,
    flat_rows_map,
    path_of,
    shape_after,
    table_rows_map,
)
from buda_emu.performance.routing.pipes.ops.operands import OpInputs, OpKind, Shared
from buda_emu.performance.routing.pipes.ops.products import Dense, Depthwise, Reduce, Sparse, StripBuffer, TopK, reduced
from buda_emu.performance.routing.pipes.refusal import RefusedError
from buda_emu.spec.blocking import Blocking, Shape


class Embedding(OpKind):
    """embedding: rows of a table, by indices."""

    def is_flat(self, index: int) -> bool:
        return index == 0

    def flat_edge(self, inputs: OpInputs) -> EdgeMap:
        op = inputs.op
        return table_rows_map(inputs.sources[0].blocking, op.blocking.grid_size, op.attributes.num_indices)

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        return Shared(rows=index > 0)

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        tiles = inputs.sources[index].blocking.mblock[1]
        return Reading(1, inputs.op.blocking.grid_size, (1, tiles), (1, 1), True, "rows")

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Rows of the table, or tiles of indices."""
        count, source = inputs.op.attributes.num_indices, inputs.sources[index].blocking
        if index == 0:
            return count * (source.mblock[1] // _across(inputs.op, source)), count
        rows, columns = inputs.op.blocking.grid_size
        tiles = -(-(count // (rows * columns)) // (source.tile_dim[0] * source.tile_dim[1]))
        return tiles, tiles

    def cleared(self, inputs: OpInputs, index: int) -> int:
        return inputs.sources[0].blocking.tile_dim[0] if index == 0 else 1


class Tilizer(OpKind):
    """tilizer: flat data, row by row."""

    def is_flat(self, index: int) -> bool:
        return index == 0

    def flat_edge(self, inputs: OpInputs) -> EdgeMap:
        own = inputs.sources[0].blocking
        return flat_rows_map(own, inputs.op.blocking.grid_size, own.mblock[0] * own.ublock[0] * own.tile_dim[0])

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        own, source = inputs.op.blocking, inputs.sources[index].blocking
        down = max(1, own.grid_size[0] // source.grid_size[0])
        count = source.mblock[0] // down * source.ublock[0] * source.tile_dim[0]
        return own.t * count * (source.mblock[1] // _across(inputs.op, source)), count

    def cleared(self, inputs: OpInputs, index: int) -> int:
        source = inputs.sources[index].blocking
        return source.ublock[0] * source.tile_dim[0]


def _across(op: Op, source: Blocking) -> int:
    """Columns of cores that share one column of the queue's buffers."""
    return max(1, op.blocking.grid_size[1] // source.grid_size[1])


class Fused(OpKind):
    """fused_op (OPS 8)."""

    def intermediates(self, op: Op, of_fused: int) -> int:
        return max(of_fused, 0) if of_fused > 0 or op.gradient_op else 0

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        op = inputs.op
        products = [(number, *_reader(inputs, number)) for number in range(len(op.inputs))]
        rows = [number for number, name, sub in products if sub.has("rows by columns") and name == sub.inputs[0]]
        columns = [number for number, name, sub in products if sub.has("rows by columns") and name != sub.inputs[0]]
        down, across = op.blocking.grid_size
        total = len(rows) * (across > 1) + len(columns) * (down > 1)
        if total > 2:
            what, hint = f"{total} operands are multicast, at most 2 can be", "split the fused op"
            raise RefusedError("V084", what, hint, op.name)
        second = any(index in group[1:] for group in (rows, columns))
        return Shared(index in rows, index in columns, second)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return not _reader(inputs, index)[1].has("keeps sums")

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        name, sub = _reader(inputs, index)
        own, (m, n), (r, c) = sub.attributes, sub.mblock, sub.ublock
        t, grid, by_rows = inputs.op.blocking.t, inputs.op.blocking.grid_size, inputs.op.blocking.ublock_order == "r"
        if sub.has("rows by columns") and name == sub.inputs[0]:
            return Reading(t, grid, (m, own.m_k), (r, own.u_kt), True, "rows")
        if sub.has("rows by columns"):
            return Reading(t, grid, (own.m_k, n), (own.u_kt, c), False, "columns")
        found = Reading(t, grid, sub.mblock, sub.ublock, by_rows)
        return reduced(found, own.dim, (own.m_k, own.u_kt), sub.name) if sub.has("reduces") else found

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        name, sub = _reader(inputs, index)
        t, (m, n), (r, c), own = inputs.op.blocking.t, sub.mblock, sub.ublock, sub.attributes
        k = own.m_k * own.u_kt
        if sub.has("rows by columns"):
            return (t * k * m * r, r * own.u_kt) if name == sub.inputs[0] else (t * k * n * c, own.m_k * c * own.u_kt)
        if sub.has("reduces"):
            return (t * k * n * c, c * own.u_kt) if own.dim == "r" else (t * k * m * r, r * own.u_kt)
        return t * m * n * r * c, m * n * r * c

    def cleared(self, inputs: OpInputs, index: int) -> int:
        assert inputs.fused is not None
        name, sub = _reader(inputs, index)
        (r, c), own = sub.ublock, sub.attributes
        tiles = r * c
        if sub.has("rows by columns"):
            tiles = (r if name == sub.inputs[0] else c) * own.u_kt
        elif sub.has("reduces"):
            tiles = (c if own.dim == "r" else r) * own.u_kt
        return tiles * inputs.fused.forked.get(name, 1)

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        name, sub = _reader(inputs, index)
        if sub.has("rows by columns") and name == sub.inputs[1]:
            return 2 * size * sub.attributes.m_k * sub.mblock[1] * inputs.cleared(index)
        if sub.has("rows by columns") and name == sub.inputs[0] and sub.mblock[1] > 1:
            return 2 * size * sub.attributes.m_k * inputs.cleared(index)
        return for_many(inputs.op, covering)


def for_many(op: Op, covering: int) -> int:
    """Bytes that cover the latency, of which ops with more than three operands have a part for each."""
    return covering * 3 // len(op.inputs) if len(op.inputs) > 3 else covering


def _reader(inputs: OpInputs, index: int) -> tuple[str, SubOp]:
    """The name of an input inside the fused op, and the sub-op that reads it first."""
    assert inputs.fused is not None
    name = f"input{index}"
    return name, inputs.fused.readers[name]


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
