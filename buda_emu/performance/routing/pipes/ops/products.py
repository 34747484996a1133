"""Products and sums over blocks: matmul, dense and sparse, depthwise, reduce, topk, and the buffer of sparse ones."""

from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.performance.routing.pipes.edge import Reading
from buda_emu.performance.routing.pipes.ops.general import mblock_tiles
from buda_emu.performance.routing.pipes.ops.operands import OpInputs, OpKind, Shared
from buda_emu.performance.routing.pipes.refusal import RefusedError
from buda_emu.spec.blocking import Shape

IDENTITY_K: Final = (1 << 16) - 3
"""mblock_k of a sparse product: how many mblocks there are is known on the core alone."""


class Dense(OpKind):
    """matmul of two dense operands, with a bias or scales."""

    sums = multiplies = is_dense = True

    def input_buffers(self, op: Op) -> int:
        own = op.attributes
        scaled = own.requant or own.dequant
        return 2 + (own.identity or own.bias or scaled) + (own.bias and (own.identity or scaled))

    def intermediates(self, op: Op, of_fused: int) -> int:
        own = op.attributes
        many = own.m_k > 1 or own.accumulate or own.identity
        return int(many or own.bias or own.requant or own.dequant or op.gradient_op)

    def passes(self, op: Op) -> int:
        own = op.attributes
        return own.m_k * (own.z if own.accumulate else 1)

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        return Shared(rows=index == 0, columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return True

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        own, op = inputs.op.attributes, inputs.op
        t = op.blocking.t * (own.z if own.accumulate else 1)
        if index == 0:
            return rows_of(op, t, (own.m_k, own.u_kt))
        return columns_of(op, t, (own.m_k, own.u_kt)) if index == 1 else super().reading(inputs, index, source)

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        op, own = inputs.op, inputs.op.attributes
        t, (m, n), (r, c) = op.blocking.t, op.blocking.mblock, op.blocking.ublock
        k = own.m_k * own.u_kt * (own.z if own.accumulate else 1)
        if index == 0:
            return t * k * m * r, (1 if own.min_buffer_input == 0 else m) * r * own.u_kt
        if index == 1:
            return t * k * n * c, (1 if own.min_buffer_input == 1 else n) * c * own.u_kt
        return super().block(inputs, index)

    def cleared(self, inputs: OpInputs, index: int) -> int:
        own, (m, n), (r, c) = inputs.op.attributes, inputs.op.blocking.mblock, inputs.op.blocking.ublock
        if index == 0:
            return (1 if own.min_buffer_input == 0 else m) * r * own.u_kt
        return (1 if own.min_buffer_input == 1 else n) * c * own.u_kt if index == 1 else r * c


class Sparse(Dense):
    """matmul with `identity`: operands are sparse tiles, activations, indices, bias (OPS 1)."""

    is_dense = False

    def passes(self, op: Op) -> int:
        return IDENTITY_K

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        return Shared(columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return index != 1

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        """m_k * u_kt are the rows of one t of the activation (net2pipe)."""
        op, own = inputs.op, inputs.op.attributes
        if index == 1:
            return columns_of(op, source[0], (own.m_k, own.u_kt))
        if index == 3:
            return OpKind.reading(self, inputs, index, source)
        tiles = own.num_sparse_tiles if index == 0 else own.num_index_tiles
        return Reading(1, op.blocking.grid_size, (1, tiles), (1, 1), op.blocking.ublock_order == "r")

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        op, own = inputs.op, inputs.op.attributes
        if index == 1:
            columns = op.blocking.mblock[1] * op.blocking.ublock[1]
            return op.blocking.t * own.m_k * own.u_kt * columns, columns * own.u_kt
        if index == 3:
            return OpKind.block(self, inputs, index)
        tiles = own.num_sparse_tiles if index == 0 else own.num_index_tiles
        return tiles, tiles

    def cleared(self, inputs: OpInputs, index: int) -> int:
        own, (r, c) = inputs.op.attributes, inputs.op.blocking.ublock
        return (own.num_sparse_tiles, inputs.op.blocking.mblock[1] * c * own.u_kt, 1, r * c)[index]

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        return 0 if index in (0, 2) else covering


class Depthwise(OpKind):
    """depthwise: each column of operand 0 with its own column of operand 1."""

    sums = multiplies = is_dense = True

    def intermediates(self, op: Op, of_fused: int) -> int:
        return int(op.attributes.m_k > 1 or op.attributes.bias or op.gradient_op)

    def passes(self, op: Op) -> int:
        return op.attributes.m_k

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        return Shared(rows=index == 0, columns=index == 1)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return True

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        op, own = inputs.op, inputs.op.attributes
        if index == 0:
            return rows_of(op, op.blocking.t, (own.m_k * op.blocking.mblock[1], op.blocking.ublock[1]))
        if index == 1:
            return columns_of(op, op.blocking.t, (own.m_k, own.u_kt))
        return super().reading(inputs, index, source)

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        op, own = inputs.op, inputs.op.attributes
        t, (m, n), (r, c) = op.blocking.t, op.blocking.mblock, op.blocking.ublock
        if index == 0:
            return t * mblock_tiles(op) * own.m_k, m * r * c
        if index == 1:
            return t * n * c * own.m_k * own.u_kt, n * c * own.u_kt
        return super().block(inputs, index)

    def cleared(self, inputs: OpInputs, index: int) -> int:
        own, (m, n), (r, c) = inputs.op.attributes, inputs.op.blocking.mblock, inputs.op.blocking.ublock
        if index == 0:
            return (1 if own.min_buffer_input == 0 else m) * r * c
        return (1 if own.min_buffer_input == 1 else n) * c * own.u_kt if index == 1 else r * c


class Reduce(OpKind):
    """reduce: over rows, columns or z."""

    sums = True

    def input_buffers(self, op: Op) -> int:
        return 1

    def intermediates(self, op: Op, of_fused: int) -> int:
        return int(op.gradient_op or (op.attributes.dim == "z" and op.attributes.z > 1))

    def passes(self, op: Op) -> int:
        return op.attributes.z

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        own, found = inputs.op.attributes, super().reading(inputs, index, source)
        if own.dim == "z":
            return replace(found, t=found.t * own.z, row_major=True)
        return reduced(found, own.dim, (own.m_k, own.u_kt), "")

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        own, tiles = inputs.op.attributes, mblock_tiles(inputs.op)
        t, (m, n), (r, c) = inputs.op.blocking.t, inputs.op.blocking.mblock, inputs.op.blocking.ublock
        if own.dim == "r":
            return t * own.m_k * own.u_kt * n * c, c * own.u_kt
        if own.dim == "c":
            return t * own.m_k * own.u_kt * m * r, r * own.u_kt
        return t * own.z * tiles, tiles

    def cleared(self, inputs: OpInputs, index: int) -> int:
        own, (r, c) = inputs.op.attributes, inputs.op.blocking.ublock
        return c * own.u_kt if own.dim == "r" else r * own.u_kt if own.dim == "c" else r * c


class TopK(OpKind):
    """topk: the largest of each row, and their places."""

    def intermediates(self, op: Op, of_fused: int) -> int:
        return 2

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        own, found = inputs.op.attributes, super().reading(inputs, index, source)
        return replace(found, mblock=(found.mblock[0], own.m_k), ublock=(found.ublock[0], own.u_kt))

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        ublock = self.cleared(inputs, index)
        return inputs.op.blocking.t * ublock * inputs.op.blocking.mblock[0] * inputs.op.attributes.m_k, ublock

    def cleared(self, inputs: OpInputs, index: int) -> int:
        return inputs.op.blocking.ublock[0] * inputs.op.attributes.u_kt


class StripBuffer(OpKind):
    """buffer: the strips of activations that a sparse product reads, and their indices."""

    keeps_strips = True

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        return Shared(rows=index == 1, columns=index == 0)

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        op, own = inputs.op, inputs.op.attributes
        if index == 0:
            return columns_of(op, op.blocking.t, (own.m_k, own.u_kt))
        return Reading(1, op.blocking.grid_size, (1, own.num_index_tiles), (1, 1), False, "rows")

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        op, own = inputs.op, inputs.op.attributes
        if index:
            return own.num_index_tiles, own.num_index_tiles
        n, c = op.blocking.mblock[1], op.blocking.ublock[1]
        gathered = (1 if own.min_buffer_input == 1 else n) * c * own.u_kt
        return op.blocking.t * own.m_k * own.u_kt * n * c, gathered

    def cleared(self, inputs: OpInputs, index: int) -> int:
        op, own = inputs.op, inputs.op.attributes
        columns = 1 if own.min_buffer_input == 0 else op.blocking.mblock[1]
        return columns * op.blocking.ublock[1] * own.u_kt if index == 0 else 1


def rows_of(op: Op, t: int, k: tuple[int, int]) -> Reading:
    """The left operand of a product: k = (mblocks, tiles of a ublock) along the inner dimension."""
    own = op.blocking
    return Reading(t, own.grid_size, (own.mblock[0], k[0]), (own.ublock[0], k[1]), False, "rows")


def columns_of(op: Op, t: int, k: tuple[int, int]) -> Reading:
    """The right operand."""
    own = op.blocking
    return Reading(t, own.grid_size, (k[0], own.mblock[1]), (k[1], own.ublock[1]), True, "columns")


def reduced(result: Reading, dim: str, k: tuple[int, int], sub_op: str) -> Reading:
    """What is reduced to a result over rows ("r") or columns ("c"); `sub_op`: its name in a fused op."""
    (m, n), (r, c) = result.mblock, result.ublock
    if dim == "r":
        return replace(result, mblock=(k[0], n), ublock=(k[1], c), row_major=False)
    if dim == "c":
        return replace(result, mblock=(m, k[0]), ublock=(r, k[1]), row_major=True)
    if sub_op:
        raise RefusedError("V331", f"{sub_op}: reduce of dim {dim} in a fused op", "reduce r or c there")
    raise RefusedError("V331", f"reduce of dim {dim}", "reduce r, then c")
