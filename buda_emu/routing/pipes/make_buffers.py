"""The buffers of an epoch: operands, results and intermediates in each core, queues in DRAM, padding."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from buda_emu.netlist.model import Op, Pad, Queue
from buda_emu.routing.pipes.edges import OpEdges
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.granularity import Cut
from buda_emu.routing.pipes.model import NO_CORE, POST_TM, PRE_TM, Buffer
from buda_emu.routing.pipes.op_class import (
    buffered_mblocks,
    has_output_buffer,
    input_buffers,
    op_class,
    shares_output,
)
from buda_emu.routing.pipes.operands import Operand, flat_row_bytes
from buda_emu.routing.pipes.results import Output, intermediate_buffers, mblock_k, output
from buda_emu.spec.formats import tile_bytes

FIRST_ID: Final = 100_000_000_000
ID_STEP: Final = 1_000_000_000
"""Ids leave room for the places of a buffer's pieces, as those of net2pipe."""
OUTPUT_OPERAND, INTERMEDIATE_OPERAND, CHUNK_OPERAND = 16, 24, 32
PADDING_BASE: Final = {"grayskull": 0x600000, "wormhole_b0": 0x600000}
PADDING_TILES: Final = 64
HOST_OFFSET: Final = 0x800000000
"""Address of host memory, as Wormhole sees it."""
HOST_CHANNEL_BYTES: Final = 1 << 30

Place = tuple[int, int]


class BufferMaker:
    """Makes the buffers of an epoch, and knows their ids by what they are: pipes are made of these."""

    def __init__(self, epoch: Epoch, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut]) -> None:
        self.epoch, self.edges, self.cuts = epoch, edges, cuts
        self.arch = epoch.netlist.arch
        self.made: dict[int, Buffer] = {}
        self.core: dict[int, Place] = {}
        self.operands: dict[str, list[Operand]] = {}
        self.inputs: dict[tuple[str, int, int], list[int]] = {}
        self.outputs: dict[str, list[int]] = {}
        self.chunks: dict[tuple[str, int, int, int], int] = {}
        self.queues: dict[str, list[int]] = {}
        self.forks: dict[tuple[str, str], list[int]] = {}
        self.padding: dict[tuple[str, int, int, int], int] = {}
        self.outs: dict[str, Output] = {}
        self.queue_buffers: list[tuple[int, str, int]] = []
        """Id, queue and cell of every buffer of queues that the epoch reads or writes."""
        self._next = FIRST_ID
        self._order: list[int] = []
        self._pad_addresses: dict[tuple[str, float], int] = {}

    def new_id(self) -> int:
        """The next id."""
        found = self._next
        self._next += ID_STEP
        return found

    def make(self) -> None:
        """All but padding, which pipes ask for."""
        for name in self.epoch.queue_order:
            self.new_id()
            cells = self.epoch.netlist.queues[name].blocking.cells
            self.queues[name] = [self.new_id() for _ in range(cells)]
        self._padding_addresses()
        done: set[str] = set()
        for op in self.epoch.ops.values():
            self._of_op(op)
            for queue in self._queues_of(op):
                if queue.name not in done:
                    done.add(queue.name)
                    self._of_queue(queue)

    def emitted(self, sub_channels: Mapping[int, int]) -> Iterator[Buffer]:
        """All buffers, with the DRAM port of each. A gradient's queue has none: its buffer in L1 carries the address."""
        for id in self._order:
            buffer = self.made[id]
            port = sub_channels.get(id, 0)
            yield with_fields(buffer, dram_sub_chan=port) if port else buffer

    def core_of(self, op: Op, row: int, column: int) -> Place:
        """Row and column of a worker core."""
        if op.grid_transpose:
            row, column = column, row
        return op.grid_loc[0] + row, op.grid_loc[1] + column

    def _queues_of(self, op: Op) -> Iterator[Queue]:
        for name in op.inputs:
            if name in self.epoch.netlist.queues:
                yield self.epoch.netlist.queues[name]
        yield from self.epoch.fed.get(op.name, ())

    def _add(self, buffer: Buffer, core: Place | None) -> None:
        self.made[buffer.id] = buffer
        self._order.append(buffer.id)
        if core is not None:
            self.core[buffer.id] = core

    # ops

    def _of_op(self, op: Op) -> None:
        inputs = self.epoch.inputs(op)
        operands = [inputs.operand(index) for index in range(input_buffers(op))]
        self.operands[op.name] = operands
        self._chunks_of(op, operands)
        rows, columns = op.blocking.grid_size
        offsets = _flat_offsets(op, inputs.sources[0], operands) if op_class(op) == "tilizer" else None
        fused = self.epoch.fused(op)
        count = self._fused_intermediates(op)
        kinds = [self._operand_fields(op, index, operand) for index, operand in enumerate(operands)]
        outputs: list[int] = []
        for row in range(rows):
            for column in range(columns):
                core = self.core_of(op, row, column)
                ids = [self.new_id() for _ in operands]
                self.inputs[op.name, row, column] = ids
                for id, fields in zip(ids, kinds, strict=True):
                    extra = {"tilize_row_col_offset": offsets(row, column)} if offsets is not None else {}
                    self._add(Buffer(id=id, row=core[0], column=core[1], **fields, **extra), core)
                out = output(op, row * columns + column, self.cuts[op.name], self.epoch.input_count, self.arch)
                self.outs[op.name] = out
                out_id = self.new_id()
                outputs.append(out_id)
                between = intermediate_buffers(op, out, fused, count, self.epoch.input_count, self.arch)
                between_ids = [self.new_id() for _ in between]
                self.core[out_id] = core
                if has_output_buffer(op):
                    shared = between_ids[0] if between and shares_output(op, True) else -1
                    self._add(self._output(op, out, out_id, core, shared), core)
                for number, (id, one) in enumerate(zip(between_ids, between, strict=True)):
                    operand = INTERMEDIATE_OPERAND + len(between) - 1 - number
                    fields = dict(tile_size=one.tile_size, epoch_tiles=one.epoch_tiles, size_tiles=one.size_tiles)
                    fields["scatter_gather_num_tiles"] = one.gathered
                    self._add(self._intermediate(op, id, core, operand, number, row * columns + column, fields), core)
        self.outputs[op.name] = outputs

    def _fused_intermediates(self, op: Op) -> int:
        return self.epoch.netlist.fused_ops[op.attributes.fused_op_id].intermediates if op.type == "fused_op" else 0

    def _operand_fields(self, op: Op, index: int, operand: Operand) -> dict[str, Any]:
        fields: dict[str, Any] = dict(
            operand=index,
            op=op.name,
            buffer_type="unpacker",
            chip=op.target_device,
            epoch_tiles=operand.per_input * self.epoch.input_count,
            tiles_per_input=operand.per_input,
            size_tiles=operand.size_tiles,
            tile_size=operand.tile_size,
            scatter_gather_num_tiles=operand.gathered,
            tile_clear_granularity=operand.cleared,
            overlay_blob_size=max(op.overlay_size, 0),
        )
        return fields

    def _result_fields(self, op: Op) -> dict[str, Any]:
        blocking = op.blocking
        return dict(
            op=op.name,
            chip=op.target_device,
            ublock_rt=blocking.ublock[0],
            ublock_ct=blocking.ublock[1],
            mblock_m=blocking.mblock[0],
            mblock_n=blocking.mblock[1],
        )

    def _output(self, op: Op, out: Output, id: int, core: Place, shared: int) -> Buffer:
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
            mblock_k=mblock_k(op),
            **self._result_fields(op),
            **untilized(op),
        )

    def _intermediate(
        self, op: Op, id: int, core: Place, operand: int, number: int, cell: int, fields: dict[str, Any]
    ) -> Buffer:
        passes = mblock_k(op)
        if op.gradient_op:
            passes += number + 1
            queue = self.epoch.fed[op.name][0]
            place = queue.buffers[cell]
            fields |= dict(
                dram_ram_flag=queue.is_ram,
                dram_io_skip_flow_ctrl=queue.is_ram,
                dram_io_allow_overwrite=queue.is_ram,
                dram_chan=place.channel,
                dram_addr=place.address,
                dram_buf_flag=True,
                write_dram_buf_flag=queue.name in self.epoch.epilogue,
                q_slots=queue.entries,
            )
        kind = "gradient_op" if op.gradient_op else "intermediate"
        return Buffer(
            id=id,
            operand=operand,
            buffer_type=kind,
            row=core[0],
            column=core[1],
            mblock_k=passes,
            **self._result_fields(op),
            **fields,
        )

    def _chunks_of(self, op: Op, operands: list[Operand]) -> None:
        """Chunks of right operands that a prologue spreads over the cores of a column."""
        for index, name in enumerate(op.inputs[: len(operands)]):
            steps = self.edges[op.name].two_steps.get(name)
            if steps is None or name not in self.epoch.prologue:
                continue
            for column in range(op.blocking.grid_size[1]):
                for chunk in range(steps.chunks):
                    core, id = self.core_of(op, chunk, column), self.new_id()
                    self.chunks[op.name, chunk, column, index] = id
                    size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True)
                    tiles = steps.chunk_tiles
                    self._add(
                        Buffer(
                            id=id,
                            operand=CHUNK_OPERAND,
                            op=op.name,
                            buffer_type="prolog_relay",
                            chip=op.target_device,
                            row=core[0],
                            column=core[1],
                            epoch_tiles=tiles,
                            size_tiles=tiles,
                            tile_size=size,
                            scatter_gather_num_tiles=tiles,
                            is_post_tm_relay_buf=True,
                        ),
                        core,
                    )

    # queues

    def _of_queue(self, queue: Queue) -> None:
        """A queue's buffers: one set, or with a prologue one for each op that reads it."""
        epoch, name = self.epoch, queue.name
        producer = None if queue.host_fed else epoch.ops.get(queue.input) or epoch.netlist.ops.get(queue.input)
        own = producer is not None and producer.gradient_op and queue.input in epoch.ops
        kept = name in epoch.prologue
        readers = [one for one in dict.fromkeys(epoch.readers.get(name, ())) if one in epoch.ops] if kept else []
        for number, reader in enumerate(readers or [""]):
            ids = self.queues[name] if number == 0 else [self.new_id() for _ in self.queues[name]]
            if kept:
                self.forks[name, reader] = ids
            self.queue_buffers += [(id, name, cell) for cell, id in enumerate(ids)]
            if own:
                continue
            fields = self._queue_fields(queue, producer)
            op = epoch.ops.get(reader)
            for cell, id in enumerate(ids):
                row, column = divmod(cell, queue.blocking.grid_size[1])
                place = queue.buffers[cell]
                core = self._held_by(queue, op, row, column) if op is not None else None
                where = core or (NO_CORE, NO_CORE)
                if op is not None:
                    as_read = self.edges[op.name].as_read.get(name, False) or name in self.edges[op.name].two_steps
                    fields["prefetch_type"] = POST_TM if as_read else PRE_TM
                    if as_read and not self.cuts[name].scattered:
                        fields |= dict(is_scatter=True, replicate=1)
                self._add(
                    Buffer(
                        id=id,
                        row=where[0],
                        column=where[1],
                        dram_chan=place.channel,
                        dram_addr=self._address(queue, place.channel, place.address),
                        **fields,
                    ),
                    core,
                )

    def _held_by(self, queue: Queue, op: Op, row: int, column: int) -> Place:
        """The core of a reader that keeps a buffer of the queue: the reader's grid, over and over."""
        rows, columns = op.blocking.grid_size
        row, column = row % rows, column % columns
        if op_class(op) in ("matmul", "depthwise"):
            index = op.inputs.index(queue.name)
            if index == (0 if op.grid_transpose else 1):
                row = rows - 1 - row
        return self.core_of(op, row, column)

    def _address(self, queue: Queue, channel: int, address: int) -> int:
        if queue.loc != "host":
            return address
        return address + channel * HOST_CHANNEL_BYTES + (0 if self.arch.name == "grayskull" else HOST_OFFSET)

    def _queue_fields(self, queue: Queue, producer: Op | None) -> dict[str, Any]:
        epoch, own = self.epoch, queue.blocking
        kept, stored = queue.name in epoch.prologue, queue.name in epoch.epilogue
        slot, size = self.slot(queue, producer)
        tiles, replicate, piece = slot * epoch.input_count, 0, slot
        cut = self.cuts[queue.name]
        if cut.scattered:
            replicate = slot // cut.tiles
            tiles //= replicate
            piece = slot // replicate if kept else slot
        kinds = {(True, True): "unknown", (True, False): "dram_prolog", (False, True): "dram_epilog"}
        fields: dict[str, Any] = dict(
            operand=0,
            op=queue.name,
            buffer_type=kinds.get((kept, stored), "dram_io"),
            chip=queue.target_device,
            epoch_tiles=tiles,
            tiles_per_input=slot,
            size_tiles=piece,
            tile_size=size,
            scatter_gather_num_tiles=cut.tiles,
            is_scatter=cut.scattered,
            replicate=replicate,
            q_slots=queue.entries,
            dram_io_flag=not kept and not stored,
            dram_io_flag_is_remote=queue.loc == "host",
            dram_io_allow_overwrite=queue.is_ram,
            dram_io_skip_flow_ctrl=queue.is_ram,
            dram_buf_flag=kept,
            write_dram_buf_flag=stored,
            dram_ram_flag=queue.is_ram,
        )
        if producer is not None:
            blocking = producer.blocking
            fields |= dict(zip(("ublock_rt", "ublock_ct"), blocking.ublock, strict=True))
            fields |= dict(zip(("mblock_m", "mblock_n"), blocking.mblock, strict=True))
            fields |= dict(mblock_k=producer.attributes.m_k, **untilized(producer))
        return fields | self._flat_fields(queue, own.tile_dim)

    def pieces(self, queue: Queue) -> int:
        """Pieces of an entry of a queue that is read in pieces."""
        producer = None if queue.host_fed else self.epoch.netlist.ops[queue.input]
        return self.slot(queue, producer)[0] // self.cuts[queue.name].tiles

    def slot(self, queue: Queue, producer: Op | None) -> tuple[int, int]:
        """Tiles of an entry in one buffer, and bytes of a tile; of flat rows, what is fetched of them."""
        own, reader = queue.blocking, self.epoch.flat_reader(queue.name)
        if reader is not None:
            size = flat_row_bytes(queue.df, own, self.arch)
            if reader.type == "embedding":
                return own.mblock[1] * reader.attributes.num_indices, size
            return own.t * own.mblock[0] * own.mblock[1] * own.ublock[0] * own.tile_dim[0], size
        headers = producer is None or not producer.untilize_output
        return own.tiles_per_core, tile_bytes(queue.df, *own.tile_dim, self.arch.alignment, headers)

    def _flat_fields(self, queue: Queue, tile: tuple[int, int]) -> dict[str, Any]:
        own, reader = queue.blocking, self.epoch.flat_reader(queue.name)
        index = self.epoch.index_reader(queue.name)
        if index is not None:
            return dict(
                embedding_index=True,
                embedding_indices_per_tile=tile[0] * tile[1],
                embedding_indices_per_input=index.attributes.num_indices,
            )
        if reader is None:
            return {}
        down, across = (
            cores // buffers for cores, buffers in zip(reader.blocking.grid_size, own.grid_size, strict=True)
        )
        row = own.mblock[1] // across * own.ublock[1]
        fields: dict[str, Any] = dict(
            embedding_table_row_size=own.grid_size[1] * row * across,
            embedding_table_row_size_per_core=row,
            embedding_table_core_c_div=across,
            untilized_output_tile_dim_r=tile[0],
            untilized_output_tile_dim_c=tile[1],
            untilized_output_c_dim=own.mblock[1] // across,
        )
        if reader.type == "embedding":
            return fields | dict(embedding_table=True)
        rows = own.ublock[0] * tile[0] * (1 if own.ublock_order == "r" else own.mblock[0] // down)
        return fields | dict(hw_tilize=True, tilize_mblock_n_loop_num_rows=rows)

    # padding

    def pad(self, op: Op, index: int, core: Place) -> int:
        """The buffer that padding of an operand comes from, for pipes on `core`."""
        key = (op.name, index, *core)
        name = op.inputs[index]
        streams = name in self.epoch.netlist.queues and name not in self.epoch.prologue
        cut = self.cuts[name]
        if key in self.padding:
            id = self.padding[key]
            if not streams:
                known = self.made[id]
                self.made[id] = with_fields(known, tiles_per_input=known.tiles_per_input + cut.tiles)
            return id
        id = self.padding[key] = self.new_id()
        value = pad_value(op, index)
        fields: dict[str, Any] = dict(
            operand=0,
            op=op.name,
            is_scatter=True,
            is_padding=True,
            chip=op.target_device,
            scatter_gather_num_tiles=cut.tiles,
            dram_addr=self._pad_addresses[op.in_df[index], value],
        )
        if streams:
            queue = self.epoch.netlist.queues[name]
            slot, size = self.slot(queue, None if queue.host_fed else self.epoch.netlist.ops[queue.input])
            replicate = slot // cut.tiles if cut.scattered else 0
            tiles = slot * self.epoch.input_count // (replicate or 1)
            fields |= dict(size_tiles=slot, tiles_per_input=slot, tile_size=size, epoch_tiles=tiles)
            fields |= dict(replicate=replicate, q_slots=queue.entries, dram_io_flag=True, prefetch_type=-1)
        else:
            fields |= self._kept_padding(op, index, cut)
            fields |= dict(row=core[0], column=core[1])
        self._add(Buffer(id=id, **fields), None if streams else core)
        return id

    def _kept_padding(self, op: Op, index: int, cut: Cut) -> dict[str, Any]:
        """Padding that waits in L1."""
        name, count = op.inputs[index], self.epoch.input_count
        tiles = count * cut.tiles
        producer = self.epoch.ops.get(name) if name not in self.epoch.netlist.queues else None
        if producer is not None:
            single = buffered_mblocks(producer)
            tiles = cut.tiles if count * producer.blocking.t <= single else tiles * producer.blocking.t // single
        as_read = producer is None and self.edges[op.name].as_read.get(name, False)
        return dict(
            epoch_tiles=tiles,
            tiles_per_input=cut.tiles,
            size_tiles=cut.tiles,
            replicate=1,
            tile_size=tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True),
            dram_buf_flag=True,
            q_slots=1,
            prefetch_type=POST_TM if as_read else PRE_TM,
        )

    def _padding_addresses(self) -> None:
        """Where tiles of a padding value lie in every DRAM channel: in the order in which the netlist's ops ask."""
        address = PADDING_BASE.get(self.arch.name, PADDING_BASE["wormhole_b0"])
        for graph in self.epoch.netlist.graphs.values():
            for op in sorted(graph.ops, key=lambda op: op.name):
                for index in range(input_buffers(op)):
                    if not has_padding(op, index):
                        continue
                    key = (op.in_df[index], pad_value(op, index))
                    if key not in self._pad_addresses:
                        self._pad_addresses[key] = address
                        size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], self.arch.alignment, True)
                        address += size * PADDING_TILES


def has_padding(op: Op, index: int) -> bool:
    """Whether an operand is padded, after its TMs or by one of them."""
    pad = op.input_pad[index] if index < len(op.input_pad) else Pad()
    tms = op.input_tms[index] if index < len(op.input_tms) else ()
    return pad.rt > 0 or pad.ct > 0 or any(tm.name == "pad" for tm in tms)


def pad_value(op: Op, index: int) -> float:
    """The value of its padding."""
    return op.input_pad[index].value if index < len(op.input_pad) else 0.0


def with_fields(buffer: Buffer, **changes: Any) -> Buffer:
    """A copy with other values."""
    from dataclasses import replace

    return replace(buffer, **changes)


def untilized(op: Op) -> dict[str, Any]:
    """What a queue has to know of a result that is written without tiles."""
    if not op.untilize_output:
        return {}
    own = op.blocking
    return dict(
        untilized_output=True,
        untilized_output_full_r_dim=own.rows,
        untilized_output_full_c_dim=own.cols,
        untilized_output_r_dim=own.block_rows,
        untilized_output_c_dim=own.block_cols,
        untilized_output_z_dim=own.t,
        untilized_output_tile_dim_r=own.tile_dim[0],
        untilized_output_tile_dim_c=own.tile_dim[1],
    )


def _flat_offsets(op: Op, source: Queue | Op, operands: list[Operand]) -> Any:
    """For each core of a tilizer, where its part of a buffer of flat data begins."""
    own = source.blocking
    down, across = (cores // buffers for cores, buffers in zip(op.blocking.grid_size, own.grid_size, strict=True))
    row = own.mblock[1] // across * operands[0].tile_size
    rows = own.mblock[0] // down * own.ublock[0] * own.tile_dim[0]
    return lambda r, c: r // own.grid_size[0] * rows * row * across + c // own.grid_size[1] * row
