"""The buffers of ops in L1: operands, results, intermediates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import EthernetCore, arrives_at, sends_from
from buda_emu.performance.routing.pipes.granularity import Granularity, Ids
from buda_emu.performance.routing.pipes.model import Buffer, RefusedError
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import (
    buffered_mblocks,
    has_output_buffer,
    is_ethernet,
    mblock_tiles,
    shares_output,
)
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import FusedUse, Operand
from buda_emu.performance.routing.pipes.source_map import divides
from buda_emu.spec.archs import Arch
from buda_emu.spec.formats import tile_bytes


@dataclass(frozen=True, slots=True)
class Output:
    """The output buffer of one core, as `pipegen.yaml` has it. `epoch_tiles` and `size_tiles` are those of one piece if
    it is read in pieces (`replicate` of them)."""

    tile_size: int
    epoch_tiles: int
    size_tiles: int
    replicate: int
    per_input: int
    cut: Granularity


@dataclass(frozen=True, slots=True)
class Intermediate:
    """One intermediate buffer of a core, as `pipegen.yaml` has it. `gathered` is the tiles of one block in it."""

    tile_size: int
    epoch_tiles: int
    size_tiles: int
    gathered: int


def differs_by_core(op: Op) -> bool:
    """Return whether the cores of an op may have output buffers of different sizes."""
    return kind_of(op).keeps_strips


def output(op: Op, core: int, cut: Granularity, input_count: int, arch: Arch) -> Output:
    """Return the output buffer of core number `core` of an op, counted row by row; `cut` is the pieces in which it is
    read. Raises RefusedError for a buffer that pipes cannot read."""
    if op.acc_df == "Float32" and arch.name == "grayskull":
        raise RefusedError("V333", "acc_df is Float32, the accumulators of grayskull have 16 bits")
    blocking = op.blocking
    block = mblock_tiles(op)
    single = buffered_mblocks(op)
    strips = differs_by_core(op)
    if not strips and not divides(single, blocking.t):
        raise RefusedError(
            "V080", f"buf_size_mb {op.buf_size_mb} buffers {single} mblocks at a time, t is {blocking.t}"
        )
    size = tile_bytes(op.out_df, *blocking.tile_dim, arch.alignment, not op.untilize_output)
    per_input = blocking.t * block
    if not cut.scattered:
        if strips:
            runs = _nonzero_strips(op, core)
        else:
            runs = blocking.t
        if op.untilize_output:
            row = blocking.block_cols * blocking.ublock[0]
        else:
            row = block
        return Output(
            tile_size=size,
            epoch_tiles=input_count * runs * block,
            size_tiles=op.buf_size_mb * row,
            replicate=0,
            per_input=per_input,
            cut=cut,
        )
    total = input_count * blocking.t
    held_mblocks = min(single, total)
    replicate = held_mblocks * block // cut.tiles
    if total <= single:
        full = held_mblocks
    else:
        full = op.buf_size_mb
    return Output(
        tile_size=size,
        epoch_tiles=total * block // replicate,
        size_tiles=full * block // replicate,
        replicate=replicate,
        per_input=per_input,
        cut=cut,
    )


def _nonzero_strips(op: Op, core: int) -> int:
    """Return the number of strips that are not 0 on core number `core` of a sparse product. Raises RefusedError if the
    netlist states none."""
    counts = op.attributes.num_nz_strips
    if core >= len(counts):
        raise RefusedError("V334", f"num_nz_strips has {len(counts)} entries, core {core} has none")
    return counts[core]


def intermediate_buffers(
    op: Op, out: Output, fused: FusedUse | None, count: int, input_count: int, arch: Arch
) -> list[Intermediate]:
    """Return all intermediate buffers of one core, that of the highest operand id first; [] if it has none. `out` is
    the core's output buffer; `count` is their number by the definition of a fused op, else 0."""
    number = kind_of(op).intermediates(op, count)
    buffers: list[Intermediate] = []
    block = mblock_tiles(op)
    attributes = op.attributes
    for index in reversed(range(number)):
        df = op.intermed_df
        tiles = block
        if op.has("result indices"):
            df = op.in_df[index]
            tiles = op.blocking.block_rows * attributes.inner_tiles
        size = tile_bytes(df, *op.blocking.tile_dim, arch.alignment, True)
        if op.gradient_op:
            epoch_tiles = tiles
        else:
            epoch_tiles = input_count * tiles
        buffers.append(Intermediate(size, epoch_tiles, _intermediate_tiles(op, out, fused, index, tiles), tiles))
    return buffers


def _intermediate_tiles(op: Op, out: Output, fused: FusedUse | None, index: int, tiles: int) -> int:
    """Return the tiles of intermediate buffer number `index`: the output buffer's if both share their bytes; `tiles`
    where nothing else decides."""
    if shares_output(op):
        return out.size_tiles * (out.replicate or 1)
    if op.has("sub-ops"):
        if fused is not None:
            return fused.intermediate_tiles[index]
        return 1
    if op.gradient_op:
        return op.blocking.t * tiles
    return tiles


def mblock_k(op: Op) -> int:
    """Return how often a block passes through the intermediate buffer for one result, a gradient's own sum not
    counted."""
    attributes = op.attributes
    passes = kind_of(op).passes(op)
    if attributes.bias:
        passes += (op.acc_df != "Int32") + (attributes.requant or attributes.dequant)
    return passes


OUTPUT_OPERAND: Final = 16  # net2pipe numbers the outputs from here on
INTERMEDIATE_OPERAND: Final = 24  # the intermediates
CHUNK_OPERAND: Final = 32  # and the pieces of buffers

Place = tuple[int, int]


class OpBuffers:
    """Buffers of the ops of an epoch, made op by op with `make`, and their ids by role."""

    def __init__(self, epoch: Epoch, ids: Ids, edges: Mapping[str, OpEdges], cuts: Mapping[str, Granularity]) -> None:
        self.epoch = epoch
        self.edges = edges
        self.cuts = cuts
        self._ids = ids
        self.arch = epoch.netlist.arch
        self.made: dict[int, Buffer] = {}
        self.core: dict[int, Place] = {}
        """Row and column of the worker core of each buffer; of the NoC for those on cores of Ethernet."""
        self.channel: dict[int, int] = {}
        """Ethernet channel of each buffer on the core of one."""
        self.relays: dict[str, list[int]] = {}
        """Ids of the relays of copies between chips, cell by cell; `arrivals`: of the operands after them."""
        self.arrivals: dict[str, list[int]] = {}
        self.links: dict[str, list[int]] = {}
        """Ids of the pipes between the two."""
        self._on_link: dict[EthernetCore, int] = {}
        self.operands: dict[str, list[Operand]] = {}
        self.inputs: dict[tuple[str, int, int], list[int]] = {}
        """Ids of the operands of an op's core."""
        self.outputs: dict[str, list[int]] = {}
        """Ids of output buffers, core by core."""
        self.chunks: dict[tuple[str, int, int, int], int] = {}
        """Ids by op, number of the chunk, column and operand."""
        self.results: dict[str, Output] = {}

    def make(self, op: Op) -> None:
        """Make the buffers of an op's operands, results and intermediates on all its cores, and of its chunks. Raises
        RefusedError for a result that pipes cannot read."""
        inputs = self.epoch.inputs(op)
        arch = self.arch
        count = self.epoch.input_count
        operands = self.operands[op.name] = [inputs.operand(index) for index in range(inputs.kind.input_buffers(op))]
        if is_ethernet(op):
            self._make_copy_buffers(op, operands[0])
            return
        self._make_chunk_buffers(op, operands)
        if op.type == "tilizer":
            offset = _flat_offsets(op, inputs.sources[0], operands)
        else:
            offset = None
        fields = [self._operand_fields(op, index, operand) for index, operand in enumerate(operands)]
        fused = self.epoch.fused_use_of(op)
        if fused is not None:
            number = self.epoch.netlist.fused_ops[op.attributes.fused_op_id].intermediates
        else:
            number = 0
        shared_fields = result_fields(op)
        passes = mblock_k(op)
        intermediate_fields: dict[str, Any] = {"buffer_type": "intermediate", "mblock_k": passes, **shared_fields}
        rows, columns = op.blocking.grid_size
        ids = self.outputs[op.name] = []
        out = output(op, 0, self.cuts[op.name], count, arch)
        intermediates = intermediate_buffers(op, out, fused, number, count, arch)
        for cell in range(rows * columns):
            row, column = divmod(cell, columns)
            core = core_of(op, row, column)
            self._make_operands_of_core(op, (row, column), core, fields, offset)
            if cell and differs_by_core(op):
                out = output(op, cell, self.cuts[op.name], count, arch)
                intermediates = intermediate_buffers(op, out, fused, number, count, arch)
            id = self._ids.new()
            ids.append(id)
            self.core[id] = core
            intermediate_ids = self._ids.several(len(intermediates))
            if has_output_buffer(op):
                if intermediates and shares_output(op):
                    shared = intermediate_ids[0]
                else:
                    shared = -1
                self.made[id] = self._output_buffer(op, out, id, core, shared, passes, shared_fields)
            for place, (intermediate_id, intermediate) in enumerate(zip(intermediate_ids, intermediates, strict=True)):
                extra: dict[str, Any] = {}
                if op.gradient_op:
                    extra = self._gradient_fields(op, cell, place)
                operand = INTERMEDIATE_OPERAND + len(intermediates) - 1 - place
                self.core[intermediate_id] = core
                self.made[intermediate_id] = _intermediate_buffer(
                    intermediate_id, core, operand, intermediate, {**intermediate_fields, **extra}
                )
        self.results[op.name] = out

    def _make_copy_buffers(self, op: Op, operand: Operand) -> None:
        """Make the buffers of a copy between chips: operand and result where it arrives. Relays only get their ids
        here; they are made later, when their pipes are known."""
        arch = self.arch
        cells = op.blocking.cells
        operand_fields = self._operand_fields(op, 0, operand)
        passes = mblock_k(op)
        blocks = result_fields(op)
        for ids_by_op in (self.relays, self.arrivals, self.links, self.outputs):
            ids_by_op[op.name] = []
        for cell in range(cells):
            arrival_core = arrives_at(self.epoch, op, cell)
            arrival, relay, link, id = self._ids.several(4)
            self.relays[op.name].append(relay)
            self.links[op.name].append(link)
            self.arrivals[op.name].append(arrival)
            self.outputs[op.name].append(id)
            self.inputs[op.name, *divmod(cell, op.blocking.grid_size[1])] = [relay]
            for buffer, core in (
                (relay, sends_from(self.epoch, op, cell)),
                (arrival, arrival_core),
                (id, arrival_core),
            ):
                self.core[buffer] = core.place
                self.channel[buffer] = core.channel
            number = self._on_link[arrival_core] = self._on_link.get(arrival_core, -1) + 1
            place = {
                "chip": arrival_core.chip,
                "row": arrival_core.row,
                "column": arrival_core.column,
                "ethernet_chan": arrival_core.channel,
            }
            out = self.results[op.name] = output(op, cell, self.cuts[op.name], self.epoch.input_count, arch)
            size = _shared_tiles(op, operand.size_tiles, out.size_tiles)
            arrival_buffer = Buffer(id=arrival, **operand_fields)
            self.made[arrival] = replace(arrival_buffer, operand=number, size_tiles=size, **place)
            ids_by_op = self._output_buffer(op, out, id, arrival_core.place, arrival, passes, blocks)
            pieces = {"is_scatter": True, "replicate": max(1, out.replicate)}
            self.made[id] = replace(ids_by_op, operand=OUTPUT_OPERAND + number, size_tiles=size, **pieces, **place)

    def _make_operands_of_core(
        self,
        op: Op,
        cell: Place,
        core: Place,
        fields: list[dict[str, Any]],
        offset: Callable[[int, int], int] | None,
    ) -> None:
        """Make the operand buffers of one core: `cell` is its place in the op's grid, `core` that on the chip. `fields`
        has what all cores share; `offset` returns, for a tilizer, the byte of a cell's part in the flat data (None for
        other ops)."""
        ids = self.inputs[op.name, cell[0], cell[1]] = self._ids.several(len(fields))
        extra: dict[str, Any] = {"tilize_row_col_offset": offset(*cell)} if offset is not None else {}
        for id, operand_fields in zip(ids, fields, strict=True):
            self.core[id] = core
            self.made[id] = Buffer(id=id, row=core[0], column=core[1], **operand_fields, **extra)

    def _operand_fields(self, op: Op, index: int, operand: Operand) -> dict[str, Any]:
        """Return the fields of the buffers of operand `index` that all cores of an op share."""
        embeds = op.has("row-wise index")
        return {
            "operand": index,
            "op": op.name,
            "buffer_type": "unpacker",
            "chip": op.target_device,
            "epoch_tiles": operand.per_input * self.epoch.input_count,
            "tiles_per_input": operand.per_input,
            "size_tiles": operand.size_tiles,
            "tile_size": operand.tile_size,
            "scatter_gather_num_tiles": operand.gathered,
            "tile_clear_granularity": operand.cleared,
            "overlay_blob_size": max(op.overlay_size, 0),
            "embedding_op_data_input": embeds and index == 0,
            "embedding_op_index_input": embeds and index == 1,
        }

    def _output_buffer(
        self, op: Op, out: Output, id: int, core: Place, shared: int, passes: int, fields: Mapping[str, Any]
    ) -> Buffer:
        """Return the pipe graph's output buffer of one core. `shared` is the id of the buffer whose bytes it shares, -1
        if it has its own; `passes` is `mblock_k`."""
        return Buffer(
            id=id,
            operand=OUTPUT_OPERAND,
            buffer_type="packer",
            row=core[0],
            column=core[1],
            epoch_tiles=out.epoch_tiles,
            tiles_per_input=out.per_input,
            size_tiles=out.size_tiles,
            tile_size=out.tile_size,
            scatter_gather_num_tiles=out.cut.tiles,
            is_scatter=out.cut.scattered,
            replicate=out.replicate,
            buffer_space_shared=shared,
            mblock_k=passes,
            **fields,
            **untilize_fields(op),
        )

    def _gradient_fields(self, op: Op, cell: int, number: int) -> dict[str, Any]:
        """Return the fields of the intermediate buffer in which a gradient accumulates on the core number `cell`: it is
        loaded from the op's queue, and stored there. `number` counts the intermediate buffers of the core."""
        queue = self.epoch.fed[op.name][0]
        place = queue.buffers[cell]
        return {
            "buffer_type": "gradient_op",
            "mblock_k": mblock_k(op) + number + 1,
            "dram_ram_flag": queue.is_ram,
            "dram_io_skip_flow_ctrl": queue.is_ram,
            "dram_io_allow_overwrite": queue.is_ram,
            "dram_chan": place.channel,
            "dram_addr": place.address,
            "dram_buf_flag": True,
            "write_dram_buf_flag": queue.name in self.epoch.epilogue,
            "q_slots": queue.entries,
        }

    def _make_chunk_buffers(self, op: Op, operands: list[Operand]) -> None:
        """Make the buffers of the chunks in which a prologue loads some right operands: one chunk on each of the first
        cores of each column, from which it is gathered."""
        for index, name in enumerate(op.inputs[: len(operands)]):
            steps = self.edges[op.name].two_steps.get(name)
            if steps is None:
                continue
            size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True)
            for column in range(op.blocking.grid_size[1]):
                for chunk in range(steps.chunks):
                    core = core_of(op, chunk, column)
                    id = self._ids.new()
                    self.chunks[op.name, chunk, column, index] = id
                    self.core[id] = core
                    self.made[id] = Buffer(
                        id=id,
                        operand=CHUNK_OPERAND,
                        op=op.name,
                        buffer_type="prolog_relay",
                        chip=op.target_device,
                        row=core[0],
                        column=core[1],
                        epoch_tiles=steps.chunk_tiles,
                        size_tiles=steps.chunk_tiles,
                        tile_size=size,
                        scatter_gather_num_tiles=steps.chunk_tiles,
                        is_post_tm_relay_buf=True,
                    )


def _shared_tiles(op: Op, operand: int, result: int) -> int:
    """Return the tiles of the one buffer that is operand and result of a copy between chips, given the tiles that each
    needs. Raises RefusedError unless one number divides the other."""
    size = max(operand, result)
    if size % min(operand, result):
        message = f"its result has {result} tiles, its operand {operand}: they share bytes, so one divides the other"
        raise RefusedError("V080", message, "choose another buf_size_mb or ublock", op.name)
    return size


def core_of(op: Op, row: int, column: int) -> Place:
    """Return row and column, on the chip, of the worker core at a place in an op's grid."""
    if op.grid_transpose:
        row, column = column, row
    return op.grid_loc[0] + row, op.grid_loc[1] + column


def result_fields(op: Op) -> dict[str, Any]:
    """Return the fields of output and intermediate buffers that describe the op's blocks."""
    (m, n) = op.blocking.mblock
    (r, c) = op.blocking.ublock
    return {"op": op.name, "chip": op.target_device, "ublock_rt": r, "ublock_ct": c, "mblock_m": m, "mblock_n": n}


def untilize_fields(op: Op) -> dict[str, Any]:
    """Return the fields of the buffer of an untilized result, {} for a result in tiles."""
    if not op.untilize_output:
        return {}
    blocking = op.blocking
    return {
        "untilized_output": True,
        "untilized_output_full_r_dim": blocking.rows,
        "untilized_output_full_c_dim": blocking.cols,
        "untilized_output_r_dim": blocking.block_rows,
        "untilized_output_c_dim": blocking.block_cols,
        "untilized_output_z_dim": blocking.t,
        "untilized_output_tile_dim_r": blocking.tile_dim[0],
        "untilized_output_tile_dim_c": blocking.tile_dim[1],
    }


def _intermediate_buffer(
    id: int, core: Place, operand: int, intermediate: Intermediate, fields: dict[str, Any]
) -> Buffer:
    """Return the pipe graph's buffer of an intermediate of one core; `fields` has those that it shares with the op's
    others."""
    return Buffer(
        id=id,
        operand=operand,
        row=core[0],
        column=core[1],
        tile_size=intermediate.tile_size,
        epoch_tiles=intermediate.epoch_tiles,
        size_tiles=intermediate.size_tiles,
        scatter_gather_num_tiles=intermediate.gathered,
        **fields,
    )


def _flat_offsets(op: Op, source: Queue | Op, operands: list[Operand]) -> Callable[[int, int], int]:
    """Return a function that maps row and column of a tilizer's core to the bytes from the begin of a buffer of flat
    data to the core's part."""
    blocking = source.blocking
    down, across = (cores // buffers for cores, buffers in zip(op.blocking.grid_size, blocking.grid_size, strict=True))
    step = blocking.mblock[1] // across * operands[0].tile_size
    rows = blocking.mblock[0] // down * blocking.ublock[0] * blocking.tile_dim[0]

    def offset(row: int, column: int) -> int:
        """Return the bytes from the begin of the buffer to the part of the core at a place of the grid."""
        return row // blocking.grid_size[0] * rows * step * across + column // blocking.grid_size[1] * step

    return offset
