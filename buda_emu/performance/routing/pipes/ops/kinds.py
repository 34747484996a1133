"""The kinds of ops that the vendor's pipe compiler distinguishes, by op type or by the number of inputs."""

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
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.ops.general import mblock_tiles
from buda_emu.performance.routing.pipes.ops.operands import OpInputs, OpKind, Shared
from buda_emu.spec.blocking import Blocking, Shape

IDENTITY_K: Final = (1 << 16) - 3
"""mblock_k of a sparse product: how many mblocks there are is known on the core alone."""


class Dense(OpKind):
    """matmul of two dense operands, with a bias or scales."""

    sums = multiplies = is_dense = True

    def input_buffers(self, op: Op) -> int:
        """Return the number of operands with a buffer: 2 for the factors, and 1 for identity's indices, bias or scales,
        or 2 for a bias with one of the others."""
        attributes = op.attributes
        scaled = attributes.requant or attributes.dequant
        return (
            2
            + (attributes.identity or attributes.bias or scaled)
            + (attributes.bias and (attributes.identity or scaled))
        )

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return 1 if the product accumulates over blocks or z, or has a bias, scales or a gradient, else 0."""
        attributes = op.attributes
        accumulates = attributes.m_k > 1 or attributes.accumulate or attributes.identity
        return int(accumulates or attributes.bias or attributes.requant or attributes.dequant or op.gradient_op)

    def passes(self, op: Op) -> int:
        """Return m_k, for each z that is accumulated."""
        attributes = op.attributes
        return attributes.m_k * (attributes.z if attributes.accumulate else 1)

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return that rows of cores share the left factor, and columns the right one."""
        return Shared(rows=index == 0, columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return True: for every operand of a product net2pipe decides whether L1 keeps it in the order in which it is
        read."""
        return True

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand: rows of the left factor, columns of the right one, over all z that are
        accumulated; others are read as the result is written."""
        attributes = inputs.op.attributes
        op = inputs.op
        t = op.blocking.t * (attributes.z if attributes.accumulate else 1)
        if index == 0:
            return rows_of(op, t, attributes.inner)
        if index == 1:
            return columns_of(op, t, attributes.inner)
        return super().reading(inputs, index, source)

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time: along the inner
        dimension a column of ublocks of the left factor or a row of the right one."""
        op = inputs.op
        attributes = inputs.op.attributes
        t = op.blocking.t
        (m, n) = op.blocking.mblock
        (r, c) = op.blocking.ublock
        k = attributes.inner_tiles * (attributes.z if attributes.accumulate else 1)
        if index == 0:
            return t * k * m * r, (1 if attributes.min_buffer_input == 0 else m) * r * attributes.u_kt
        if index == 1:
            return t * k * n * c, (1 if attributes.min_buffer_input == 1 else n) * c * attributes.u_kt
        return super().block(inputs, index)

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of an operand that the kernel frees at a time: a column of ublocks of the left factor or a
        row of the right one, a single ublock for the operand that `min_buffer_input` names, and a ublock of the result
        for a bias or scales."""
        attributes = inputs.op.attributes
        (m, n) = inputs.op.blocking.mblock
        (r, c) = inputs.op.blocking.ublock
        if index == 0:
            return (1 if attributes.min_buffer_input == 0 else m) * r * attributes.u_kt
        if index == 1:
            return (1 if attributes.min_buffer_input == 1 else n) * c * attributes.u_kt
        return r * c


class Sparse(Dense):
    """matmul with `identity`: operands are sparse tiles, activations, indices, bias (OPS 1)."""

    is_dense = False

    def passes(self, op: Op) -> int:
        """Return IDENTITY_K, which stands for a number of mblocks that only the core knows."""
        return IDENTITY_K

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return that columns of cores share the activations; other operands are each core's own."""
        return Shared(columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return whether net2pipe decides if L1 keeps the operand in the order in which it is read: all operands but
        the activations."""
        return index != 1

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand: columns of the activations (net2pipe takes m_k * u_kt as the rows of one
        t), a row of sparse tiles or indices for each core, and a bias as the result is written."""
        op = inputs.op
        attributes = inputs.op.attributes
        if index == 1:
            return columns_of(op, source[0], attributes.inner)
        if index == 3:
            return OpKind.reading(self, inputs, index, source)
        if index == 0:
            tiles = attributes.num_sparse_tiles
        else:
            tiles = attributes.num_index_tiles
        return Reading(
            t=1, grid=op.blocking.grid_size, mblock=(1, tiles), ublock=(1, 1), row_major=op.blocking.ublock_order == "r"
        )

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time: all sparse tiles or
        indices, a row of ublocks of the activations, a bias as the result is written."""
        op = inputs.op
        attributes = inputs.op.attributes
        if index == 1:
            columns = op.blocking.mblock[1] * op.blocking.ublock[1]
            return op.blocking.t * attributes.inner_tiles * columns, columns * attributes.u_kt
        if index == 3:
            return OpKind.block(self, inputs, index)
        if index == 0:
            tiles = attributes.num_sparse_tiles
        else:
            tiles = attributes.num_index_tiles
        return tiles, tiles

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of an operand that the kernel frees at a time: all sparse tiles, a row of ublocks of the
        activations, one tile of indices, a ublock of the bias."""
        attributes = inputs.op.attributes
        (r, c) = inputs.op.blocking.ublock
        return (attributes.num_sparse_tiles, inputs.op.blocking.mblock[1] * c * attributes.u_kt, 1, r * c)[index]

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        """Return 0 for sparse tiles and indices, whose buffer need only hold two clears; for other operands `covering`,
        the bytes that cover the latency of the NoC."""
        if index in (0, 2):
            return 0
        return covering


class Depthwise(OpKind):
    """depthwise: each column of operand 0 with its own column of operand 1."""

    sums = multiplies = is_dense = True

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return 1 if the result accumulates over blocks, or has a bias or a gradient, else 0."""
        return int(op.attributes.m_k > 1 or op.attributes.bias or op.gradient_op)

    def passes(self, op: Op) -> int:
        """Return m_k: the result is a sum of that many products."""
        return op.attributes.m_k

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return that rows of cores share the data, and columns the weights."""
        return Shared(rows=index == 0, columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return True: for every operand net2pipe decides whether L1 keeps it in the order in which it is read."""
        return True

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand: rows of the data, of m_k times the columns of the result, columns of the
        weights, and a bias as the result is written."""
        op = inputs.op
        attributes = inputs.op.attributes
        if index == 0:
            return rows_of(op, op.blocking.t, (attributes.m_k * op.blocking.mblock[1], op.blocking.ublock[1]))
        if index == 1:
            return columns_of(op, op.blocking.t, attributes.inner)
        return super().reading(inputs, index, source)

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time: a column of ublocks
        of the data, a row of those of the weights."""
        op = inputs.op
        attributes = inputs.op.attributes
        t = op.blocking.t
        (m, n) = op.blocking.mblock
        (r, c) = op.blocking.ublock
        if index == 0:
            return t * mblock_tiles(op) * attributes.m_k, m * r * c
        if index == 1:
            return t * n * c * attributes.inner_tiles, n * c * attributes.u_kt
        return super().block(inputs, index)

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of an operand that the kernel frees at a time: a column of ublocks of the data or a row of
        those of the weights, a single ublock for the operand that `min_buffer_input` names, and a ublock of the result
        for a bias."""
        attributes = inputs.op.attributes
        (m, n) = inputs.op.blocking.mblock
        (r, c) = inputs.op.blocking.ublock
        if index == 0:
            return (1 if attributes.min_buffer_input == 0 else m) * r * c
        if index == 1:
            return (1 if attributes.min_buffer_input == 1 else n) * c * attributes.u_kt
        return r * c


class Reduce(OpKind):
    """reduce: over rows, columns or z."""

    sums = True

    def input_buffers(self, op: Op) -> int:
        """Return 1: only the first operand is read."""
        return 1

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return 1 for a gradient, or a sum over several z, else 0."""
        return int(op.gradient_op or (op.attributes.dim == "z" and op.attributes.z > 1))

    def passes(self, op: Op) -> int:
        """Return the number of z that are summed."""
        return op.attributes.z

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of the operand: with dim z all z of the result's blocks in row order, else the blocks
        along the dimension that is reduced. Raises RefusedError for another dim."""
        attributes = inputs.op.attributes
        reading = super().reading(inputs, index, source)
        if attributes.dim == "z":
            return replace(reading, t=reading.t * attributes.z, row_major=True)
        return reduce_reading(reading, attributes.dim, attributes.inner, "")

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of the operand for one input of the epoch, and those gathered at a time: with dim z an
        mblock, else a ublock."""
        attributes = inputs.op.attributes
        tiles = mblock_tiles(inputs.op)
        t = inputs.op.blocking.t
        (m, n) = inputs.op.blocking.mblock
        (r, c) = inputs.op.blocking.ublock
        if attributes.dim == "r":
            return t * attributes.inner_tiles * n * c, c * attributes.u_kt
        if attributes.dim == "c":
            return t * attributes.inner_tiles * m * r, r * attributes.u_kt
        return t * attributes.z * tiles, tiles

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of one ublock of the operand, which the kernel frees at a time."""
        attributes = inputs.op.attributes
        (r, c) = inputs.op.blocking.ublock
        if attributes.dim == "r":
            return c * attributes.u_kt
        if attributes.dim == "c":
            return r * attributes.u_kt
        return r * c


class TopK(OpKind):
    """topk: the largest of each row, and their places."""

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return 2: values and places."""
        return 2

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand: the rows of the result's blocks, with m_k ublocks of u_kt columns."""
        attributes = inputs.op.attributes
        reading = super().reading(inputs, index, source)
        return replace(reading, mblock=(reading.mblock[0], attributes.m_k), ublock=(reading.ublock[0], attributes.u_kt))

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time: a ublock."""
        ublock = self.tiles_per_clear(inputs, index)
        return inputs.op.blocking.t * ublock * inputs.op.blocking.mblock[0] * inputs.op.attributes.m_k, ublock

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of one ublock of the operand, which the kernel frees at a time."""
        return inputs.op.blocking.ublock[0] * inputs.op.attributes.u_kt


class ActivationBuffer(OpKind):
    """buffer: the op that hands the activations of a sparse product on, strip by strip, as its indices say."""

    keeps_strips = True

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return that columns of cores share the activations, and rows the indices."""
        return Shared(rows=index == 1, columns=index == 0)

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand: columns of the activations, and for each row of cores a row of indices."""
        op = inputs.op
        attributes = inputs.op.attributes
        if index == 0:
            return columns_of(op, op.blocking.t, attributes.inner)
        return Reading(
            t=1,
            grid=op.blocking.grid_size,
            mblock=(1, attributes.num_index_tiles),
            ublock=(1, 1),
            row_major=False,
            spread="rows",
        )

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time: a row of ublocks of
        the activations (a single one if `min_buffer_input` is 1), all indices."""
        op = inputs.op
        attributes = inputs.op.attributes
        if index:
            return attributes.num_index_tiles, attributes.num_index_tiles
        n = op.blocking.mblock[1]
        c = op.blocking.ublock[1]
        gathered = (1 if attributes.min_buffer_input == 1 else n) * c * attributes.u_kt
        return op.blocking.t * attributes.inner_tiles * n * c, gathered

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of an operand that the kernel frees at a time: a row of ublocks of the activations, or a
        single ublock if `min_buffer_input` names them; one tile of indices."""
        op = inputs.op
        attributes = inputs.op.attributes
        if attributes.min_buffer_input == 0:
            columns = 1
        else:
            columns = op.blocking.mblock[1]
        if index == 0:
            return columns * op.blocking.ublock[1] * attributes.u_kt
        return 1


def rows_of(op: Op, t: int, k: tuple[int, int]) -> Reading:
    """Return the reading of a product's left operand over `t` slices: each row of cores shares its rows. `k` is
    (mblocks, tiles of a ublock) along the inner dimension."""
    blocking = op.blocking
    return Reading(
        t=t,
        grid=blocking.grid_size,
        mblock=(blocking.mblock[0], k[0]),
        ublock=(blocking.ublock[0], k[1]),
        row_major=False,
        spread="rows",
    )


def columns_of(op: Op, t: int, k: tuple[int, int]) -> Reading:
    """Return the reading of a product's right operand over `t` slices: each column of cores shares its columns. `k` is
    (mblocks, tiles of a ublock) along the inner dimension."""
    blocking = op.blocking
    return Reading(
        t=t,
        grid=blocking.grid_size,
        mblock=(k[0], blocking.mblock[1]),
        ublock=(k[1], blocking.ublock[1]),
        row_major=True,
        spread="columns",
    )


def reduce_reading(result: Reading, dim: str, k: tuple[int, int], sub_op: str) -> Reading:
    """Return the reading of the operand of a reduce over rows ("r") or columns ("c"), given the reading of its result.
    `k` is (mblocks, tiles of a ublock) along the reduced dimension; `sub_op` is the reduce's name in a fused op, ""
    outside one. Raises RefusedError for another dim."""
    (m, n) = result.mblock
    (r, c) = result.ublock
    if dim == "r":
        return replace(result, mblock=(k[0], n), ublock=(k[1], c), row_major=False)
    if dim == "c":
        return replace(result, mblock=(m, k[0]), ublock=(r, k[1]), row_major=True)
    if sub_op:
        raise RefusedError("V331", f"{sub_op}: reduce of dim {dim} in a fused op", "reduce r or c there")
    raise RefusedError("V331", f"reduce of dim {dim}", "reduce r, then c")


class Embedding(OpKind):
    """embedding: rows of a table, by indices."""

    def is_flat(self, index: int) -> bool:
        """Return whether the operand is read as flat rows, as the table is and the indices are not."""
        return index == 0

    def flat_edge(self, inputs: OpInputs) -> EdgeMap:
        """Return the pipes of the table's rows. Raises RefusedError if the table is not cut as the device can read
        it."""
        op = inputs.op
        return table_rows_map(inputs.sources[0].blocking, op.blocking.grid_size, op.attributes.num_indices)

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return that rows of cores share the indices; rows of the table are each core's own."""
        return Shared(rows=index > 0)

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of the indices: a row of tiles for each row of cores."""
        tiles = inputs.sources[index].blocking.mblock[1]
        return Reading(
            t=1, grid=inputs.op.blocking.grid_size, mblock=(1, tiles), ublock=(1, 1), row_major=True, spread="rows"
        )

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the rows of the table, or tiles of indices, for one input of the epoch, and those that are gathered at
        a time."""
        count = inputs.op.attributes.num_indices
        source = inputs.sources[index].blocking
        if index == 0:
            return count * (source.mblock[1] // _cores_per_buffer_column(inputs.op, source)), count
        rows, columns = inputs.op.blocking.grid_size
        tiles = -(-(count // (rows * columns)) // (source.tile_dim[0] * source.tile_dim[1]))
        return tiles, tiles

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return how much of an operand the kernel frees at a time: of the table as many rows as a tile has, of the
        indices one tile."""
        if index == 0:
            return inputs.sources[0].blocking.tile_dim[0]
        return 1


class Tilizer(OpKind):
    """tilizer: flat data, row by row."""

    def is_flat(self, index: int) -> bool:
        """Return whether the operand is the flat data."""
        return index == 0

    def flat_edge(self, inputs: OpInputs) -> EdgeMap:
        """Return the pipes of the rows of flat data. Raises RefusedError if they are not cut as the device can read
        them."""
        blocking = inputs.sources[0].blocking
        return flat_rows_map(
            blocking, inputs.op.blocking.grid_size, blocking.mblock[0] * blocking.ublock[0] * blocking.tile_dim[0]
        )

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the rows of flat data for one input of the epoch, and those that are gathered at a time."""
        blocking = inputs.op.blocking
        source = inputs.sources[index].blocking
        down = max(1, blocking.grid_size[0] // source.grid_size[0])
        count = source.mblock[0] // down * source.ublock[0] * source.tile_dim[0]
        return blocking.t * count * (source.mblock[1] // _cores_per_buffer_column(inputs.op, source)), count

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the rows of elements in one ublock of the flat data, which the kernel frees at a time: in flat data a
        row counts as a tile."""
        source = inputs.sources[index].blocking
        return source.ublock[0] * source.tile_dim[0]


def _cores_per_buffer_column(op: Op, source: Blocking) -> int:
    """Return how many columns of an op's cores read from one column of buffers of the queue with blocking `source`, at
    least 1. An embedding table's row, or a tilizer's flat row, is shared by so many cores."""
    return max(1, op.blocking.grid_size[1] // source.grid_size[1])


class Fused(OpKind):
    """A fused op: several ops as one schedule on the same cores (OPS 8)."""

    def intermediates(self, op: Op, of_fused: int) -> int:
        """Return `of_fused`, the number of intermediate buffers that the definition states; 0 if it states none."""
        if of_fused > 0 or op.gradient_op:
            return max(of_fused, 0)
        return 0

    def sharing(self, inputs: OpInputs, index: int) -> Shared:
        """Return which rows and columns share an operand that a product inside reads; of several on one side, all but
        the first go over the other NoC. Raises RefusedError if more than two operands are multicast."""
        op = inputs.op
        products = [(number, *_first_reader(inputs, number)) for number in range(len(op.inputs))]
        rows = [number for number, name, sub in products if sub.has("rows by columns") and name == sub.inputs[0]]
        columns = [number for number, name, sub in products if sub.has("rows by columns") and name != sub.inputs[0]]
        down, across = op.blocking.grid_size
        total = len(rows) * (across > 1) + len(columns) * (down > 1)
        if total > 2:
            message = f"{total} operands are multicast, at most 2 can be"
            hint = "split the fused op"
            raise RefusedError("V084", message, hint, op.name)
        second = any(index in group[1:] for group in (rows, columns))
        return Shared(index in rows, index in columns, second)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return whether net2pipe decides if L1 keeps the operand in the order in which it is read: if the sub-op that
        reads it first keeps no sums."""
        return not _first_reader(inputs, index)[1].has("keeps sums")

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an operand by the sub-op that reads it first: rows or columns for a product, along its
        dimension for a reduce, else as the sub-op's result. Raises RefusedError for a reduce over z."""
        name, sub = _first_reader(inputs, index)
        attributes = sub.attributes
        (m, n) = sub.mblock
        (r, c) = sub.ublock
        t = inputs.op.blocking.t
        grid = inputs.op.blocking.grid_size
        by_rows = inputs.op.blocking.ublock_order == "r"
        if sub.has("rows by columns") and name == sub.inputs[0]:
            return Reading(
                t=t, grid=grid, mblock=(m, attributes.m_k), ublock=(r, attributes.u_kt), row_major=True, spread="rows"
            )
        if sub.has("rows by columns"):
            return Reading(
                t=t,
                grid=grid,
                mblock=(attributes.m_k, n),
                ublock=(attributes.u_kt, c),
                row_major=False,
                spread="columns",
            )
        reading = Reading(t=t, grid=grid, mblock=sub.mblock, ublock=sub.ublock, row_major=by_rows)
        if sub.has("reduces"):
            return reduce_reading(reading, attributes.dim, attributes.inner, sub.name)
        return reading

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an operand for one input of the epoch, and those gathered at a time, as the sub-op that
        reads it first takes them."""
        name, sub = _first_reader(inputs, index)
        t = inputs.op.blocking.t
        (m, n) = sub.mblock
        (r, c) = sub.ublock
        attributes = sub.attributes
        k = attributes.inner_tiles
        if sub.has("rows by columns"):
            if name == sub.inputs[0]:
                return (t * k * m * r, r * attributes.u_kt)
            return (t * k * n * c, attributes.m_k * c * attributes.u_kt)
        if sub.has("reduces"):
            if attributes.dim == "r":
                return (t * k * n * c, c * attributes.u_kt)
            return (t * k * m * r, r * attributes.u_kt)
        return t * m * n * r * c, m * n * r * c

    def tiles_per_clear(self, inputs: OpInputs, index: int) -> int:
        """Return the tiles of an operand that the kernel frees at a time: a ublock of it (for a product or reduce with
        the inner dimension of the sub-op that reads it first), times the factor by which another sub-op that reads it
        lets its buffer grow."""
        assert inputs.fused is not None
        name, sub = _first_reader(inputs, index)
        (r, c) = sub.ublock
        attributes = sub.attributes
        tiles = r * c
        if sub.has("rows by columns"):
            tiles = (r if name == sub.inputs[0] else c) * attributes.u_kt
        elif sub.has("reduces"):
            tiles = (c if attributes.dim == "r" else r) * attributes.u_kt
        return tiles * inputs.fused.forked.get(name, 1)

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        """Return the least bytes of an operand's buffer: twice all that is read for a product's right operand, and for
        a left one that several columns of ublocks read; else the operand's share of `covering`, the bytes that cover
        the latency of the NoC."""
        name, sub = _first_reader(inputs, index)
        if sub.has("rows by columns") and name == sub.inputs[1]:
            return 2 * size * sub.attributes.m_k * sub.mblock[1] * inputs.tiles_per_clear(index)
        if sub.has("rows by columns") and name == sub.inputs[0] and sub.mblock[1] > 1:
            return 2 * size * sub.attributes.m_k * inputs.tiles_per_clear(index)
        return share_among_operands(inputs.op, covering)


def share_among_operands(op: Op, covering: int) -> int:
    """Return an operand's part of `covering`, the bytes that cover the latency of the NoC: all of it for an op of up to
    three operands, else its equal share of three times as much."""
    if len(op.inputs) > 3:
        return covering * 3 // len(op.inputs)
    return covering


def _first_reader(inputs: OpInputs, index: int) -> tuple[str, SubOp]:
    """Return the name of operand `index` inside the fused op (`input0`, ...), and the sub-op that reads it first."""
    assert inputs.fused is not None
    name = f"input{index}"
    return name, inputs.fused.readers[name]


class TileByTile(OpKind):
    """Ops on one or two operands, tile by tile."""

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        """Return True: for every operand net2pipe decides whether L1 keeps it in the order in which it is read."""
        return True


class Splice(OpKind):
    """splice: whole inputs, in ublocks as the result's."""

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """Return the reading of an input: all that its source has, shared by the cores in ublocks as the result's. With
        granularity "ublock" it has the result's t, else the source's."""
        op = inputs.op
        reading = super().reading(inputs, index, source)
        (rows, columns) = op.blocking.grid_size
        (r, c) = op.blocking.ublock
        if op.attributes.granularity == "ublock":
            t = op.blocking.t
        else:
            t = source[0]
        return replace(reading, t=t, mblock=(source[1] // (rows * r), source[2] // (columns * c)))

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        """Return the tiles of an input for one input of the epoch, reduced by its (first, length, stride) in the
        attribute `inputs`, and the tiles that are gathered at a time: all of a core of its source."""
        op = inputs.op
        source = inputs.sources[index].blocking
        t, rows, columns = shape_after(source, path_of(op, index))
        first, length, stride = dict(op.attributes.inputs).get(index, (0, 1, 1))
        return t * rows * columns // op.blocking.cells * length // (first + stride), source.tiles_per_core

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        """Return the operand's share of the bytes that cover the latency."""
        return share_among_operands(inputs.op, covering)


_SPARSE: Final = Sparse()
_TILE_BY_TILE: Final = TileByTile()
_BY_TYPE: Final[Mapping[str, OpKind]] = {
    "matmul": Dense(),
    "depthwise": Depthwise(),
    "reduce": Reduce(),
    "fused_op": Fused(),
    "splice": Splice(),
    "buffer": ActivationBuffer(),
    "embedding": Embedding(),
    "tilizer": Tilizer(),
    "topk": TopK(),
}


def kind_of(op: Op) -> OpKind:
    """Return the kind of an op, which decides how net2pipe sizes and feeds its operands. Raises RefusedError for an op
    type that has no kind of its own if the op does not have one or two inputs."""
    kind = _BY_TYPE.get(op.type)
    if kind is not None:
        if op.type == "matmul" and op.attributes.identity:
            return _SPARSE
        return kind
    if len(op.inputs) not in (1, 2):
        raise RefusedError("V085", f"{op.type} has input buffers for 2 operands, not for {len(op.inputs)}")
    return _TILE_BY_TILE
