"""The buffers of an op's operands in one core: tiles, bytes, and how many are cleared at a time."""

from dataclasses import dataclass

from buda_emu.netlist.model import Op, Queue
from buda_emu.routing.pipes.maps.paths import path_of, shape_after
from buda_emu.routing.pipes.ops.fused import FusedUse
from buda_emu.routing.pipes.ops.op_class import input_buffers, is_ethernet, kernel_broadcast, mblock_tiles, op_class
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.formats import tile_bytes

LATENCY_CYCLES = 1024
"""Cycles that an operand's buffer is meant to cover (net2pipe)."""
NOC_BYTES, ETH_BYTES = 32, 1
"""Bytes that come in a cycle, as net2pipe sizes buffers for them."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The buffer of one operand, as `pipegen.yaml` has it. `per_input`: tiles that come for one input of the epoch."""

    tile_size: int
    size_tiles: int
    per_input: int
    gathered: int
    cleared: int


@dataclass(frozen=True, slots=True)
class OpInputs:
    """What the operands of an op need: its sources in order, the fused op's definition, the architecture."""

    op: Op
    sources: tuple[Queue | Op, ...]
    fused: FusedUse | None
    arch: Arch

    def operand(self, index: int) -> Operand:
        """The buffer of operand `index`."""
        cleared = self.cleared(index)
        block, gathered = self._block(index)
        kept, per_t = kernel_broadcast(self.op, index)
        if kept:
            block, gathered = cleared * (self.op.blocking.t if per_t else 1), cleared
        return Operand(self.tile_size(index), self.size_tiles(index), block, gathered, cleared)

    def is_flat(self, index: int) -> bool:
        """Whether it reads rows of an embedding table or of flat data."""
        return index == 0 and op_class(self.op) in ("embedding", "tilizer")

    def tile_size(self, index: int) -> int:
        """Bytes of one tile; of flat data: of one row of a ublock."""
        op = self.op
        if not self.is_flat(index):
            return tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True)
        source = self.sources[index]
        if not isinstance(source, Queue):
            raise RefusedError("V082", f"input 0 of {op.type} must be a queue in DRAM")
        return flat_row_bytes(op.in_df[index], source.blocking, self.arch)

    def size_tiles(self, index: int) -> int:
        """Tiles of the buffer: enough for the latency of the NoC, and for two of what is cleared at a time."""
        op = self.op
        header = not self.is_flat(index)
        size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, header)
        cleared = self.cleared(index) * size
        least = max(self._least_bytes(index, size), 2 * cleared)
        wanted = (op.input_buf_min_size_tiles[index] if index < len(op.input_buf_min_size_tiles) else 0) * size
        unit = 2 * cleared
        if least < wanted:
            least, unit = wanted, cleared
        return -(-least // unit) * unit // size

    def _least_bytes(self, index: int, size: int) -> int:
        op, kind = self.op, op_class(self.op)
        if kernel_broadcast(op, index)[0] or (kind == "matmul" and op.attributes.identity and index in (0, 2)):
            return 0
        least = _covering(LATENCY_CYCLES * (ETH_BYTES if is_ethernet(op) else NOC_BYTES), size)
        if kind in ("fused_op", "splice") and len(op.inputs) > 3:
            least = least * 3 // len(op.inputs)
        if kind == "fused_op" and self.fused is not None:
            name = f"input{index}"
            sub = self.fused.readers[name]
            if sub.type == "matmul" and name == sub.inputs[1]:
                least = 2 * size * sub.attributes.m_k * sub.mblock[1] * self.cleared(index)
            elif sub.type == "matmul" and name == sub.inputs[0] and sub.mblock[1] > 1:
                least = 2 * size * sub.attributes.m_k * self.cleared(index)
        return least

    def cleared(self, index: int) -> int:
        """Tiles that the kernel clears at a time."""
        op, own, kind = self.op, self.op.attributes, op_class(self.op)
        kept = kernel_broadcast(op, index)[0]
        if kept:
            return kept
        (m, n), (r, c) = op.blocking.mblock, op.blocking.ublock
        rows = 1 if own.min_buffer_input == 0 else m
        if kind == "matmul" and own.identity:
            return (own.num_sparse_tiles, n * c * own.u_kt, 1, r * c)[index]
        if kind == "matmul":
            columns = 1 if own.min_buffer_input == 1 else n
            return rows * r * own.u_kt if index == 0 else columns * c * own.u_kt if index == 1 else r * c
        if kind == "depthwise":
            columns = 1 if own.min_buffer_input == 1 else n
            return rows * r * c if index == 0 else columns * c * own.u_kt if index == 1 else r * c
        if kind == "reduce":
            return c * own.u_kt if own.dim == "r" else r * own.u_kt if own.dim == "c" else r * c
        if kind == "fused_op":
            return self._cleared_by_fused(index)
        if kind == "buffer":
            return (1 if own.min_buffer_input == 0 else n) * c * own.u_kt if index == 0 else 1
        if kind == "embedding":
            return self.sources[0].blocking.tile_dim[0] if index == 0 else 1
        if kind == "tilizer":
            return self.sources[index].blocking.ublock[0] * self.sources[index].blocking.tile_dim[0]
        return r * own.u_kt if kind == "topk" else r * c

    def _cleared_by_fused(self, index: int) -> int:
        assert self.fused is not None
        name = f"input{index}"
        sub = self.fused.readers[name]
        (r, c), own = sub.ublock, sub.attributes
        if sub.type == "matmul":
            tiles = (r if name == sub.inputs[0] else c) * own.u_kt
        elif sub.type == "reduce":
            tiles = (c if own.dim == "r" else r) * own.u_kt
        else:
            tiles = r * c
        return tiles * self.fused.forked.get(name, 1)

    def _block(self, index: int) -> tuple[int, int]:
        """Tiles for one input of the epoch, and tiles that are gathered at a time."""
        op, own, kind = self.op, self.op.attributes, op_class(self.op)
        t, (m, n), (r, c) = op.blocking.t, op.blocking.mblock, op.blocking.ublock
        block = mblock_tiles(op)
        k = own.m_k * own.u_kt
        if kind == "matmul" and own.identity:
            return (
                (own.num_sparse_tiles, own.num_sparse_tiles),
                (t * k * n * c, n * c * own.u_kt),
                (own.num_index_tiles, own.num_index_tiles),
                (t * block, block),
            )[index]
        if kind == "matmul":
            runs = own.z if own.accumulate else 1
            if index == 0:
                return t * runs * k * m * r, (1 if own.min_buffer_input == 0 else m) * r * own.u_kt
            if index == 1:
                return t * runs * k * n * c, (1 if own.min_buffer_input == 1 else n) * c * own.u_kt
            return t * block, block
        if kind == "depthwise":
            if index == 0:
                return t * block * own.m_k, m * r * c
            return (t * n * c * k, n * c * own.u_kt) if index == 1 else (t * block, block)
        if kind == "reduce":
            if own.dim == "r":
                return t * k * n * c, c * own.u_kt
            return (t * k * m * r, r * own.u_kt) if own.dim == "c" else (t * own.z * block, block)
        if kind == "fused_op":
            return self._block_of_fused(index)
        if kind == "splice":
            return self._block_of_splice(index)
        if kind == "buffer":
            if index == 0:
                return t * k * n * c, (1 if own.min_buffer_input == 1 else n) * c * own.u_kt
            return own.num_index_tiles, own.num_index_tiles
        if kind in ("embedding", "tilizer"):
            return self._rows(index)
        if kind == "topk":
            return t * r * own.u_kt * m * own.m_k, r * own.u_kt
        return t * block, block

    def _block_of_fused(self, index: int) -> tuple[int, int]:
        assert self.fused is not None
        name = f"input{index}"
        sub = self.fused.readers[name]
        t, (m, n), (r, c), own = self.op.blocking.t, sub.mblock, sub.ublock, sub.attributes
        k = own.m_k * own.u_kt
        if sub.type == "matmul":
            return (t * k * m * r, r * own.u_kt) if name == sub.inputs[0] else (t * k * n * c, own.m_k * c * own.u_kt)
        if sub.type == "reduce":
            return (t * k * n * c, c * own.u_kt) if own.dim == "r" else (t * k * m * r, r * own.u_kt)
        return t * m * n * r * c, m * n * r * c

    def _block_of_splice(self, index: int) -> tuple[int, int]:
        """What is left after `index` units are dropped and `length` of every `stride` are taken, over and over."""
        op, source = self.op, self.sources[index].blocking
        t, rows, columns = shape_after(source, path_of(op, index))
        first, length, stride = dict(op.attributes.inputs).get(index, (0, 1, 1))
        return t * rows * columns // op.blocking.cells * length // (first + stride), source.tiles_per_core

    def _rows(self, index: int) -> tuple[int, int]:
        """Rows of a table or of flat data, or tiles of indices."""
        op, own = self.op, self.op.attributes
        source = self.sources[index].blocking
        rows, columns = op.blocking.grid_size
        across = max(1, columns // source.grid_size[1])
        if op.type == "tilizer":
            count = source.mblock[0] // max(1, rows // source.grid_size[0]) * source.ublock[0] * source.tile_dim[0]
            return op.blocking.t * count * (source.mblock[1] // across), count
        if index == 0:
            return own.num_indices * (source.mblock[1] // across), own.num_indices
        tiles = -(-(own.num_indices // (rows * columns)) // (source.tile_dim[0] * source.tile_dim[1]))
        return tiles, tiles


def op_inputs_count(op: Op) -> int:
    """Operands that have a buffer, of those that the netlist names."""
    return min(input_buffers(op), len(op.inputs))


def flat_row_bytes(df: str, source: Blocking, arch: Arch) -> int:
    """Bytes of one row of a ublock of flat data."""
    return tile_bytes(df, *source.tile_dim, arch.alignment, False) * source.ublock[1] // source.tile_dim[0]


def _covering(bytes_wanted: int, size: int) -> int:
    """`bytes_wanted` as a number of tiles that is a power of two, by the power of two next to a tile's size."""
    if bytes_wanted % size == 0:
        return bytes_wanted
    lower = 1 << (size.bit_length() - 1)
    divisor = 2 * lower if 2 * lower - size < size - lower else lower
    return bytes_wanted // divisor * size
