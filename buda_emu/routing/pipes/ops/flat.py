"""Ops that read rows rather than tiles: embedding and tilizer."""

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.maps.edge import EdgeMap, Reading, flat_rows_map, table_rows_map
from buda_emu.routing.pipes.ops.operands import OpInputs, OpKind, Shared
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
