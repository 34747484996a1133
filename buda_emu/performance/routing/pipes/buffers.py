"""All buffers of an epoch: those of ops, of queues, and of padding."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from buda_emu.netlist.model import Buffer as DramPlace
from buda_emu.netlist.model import Netlist, Op, Pad, Queue
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import WINDOW_BYTES, window
from buda_emu.performance.routing.pipes.granularity import Granularity, Ids
from buda_emu.performance.routing.pipes.model import NO_CORE, POST_TM, PRE_TM, Buffer
from buda_emu.performance.routing.pipes.op_buffers import OpBuffers, Place, core_of, untilize_fields
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import buffered_mblocks
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import flat_row_bytes
from buda_emu.spec.archs import HOST_CHANNEL_BYTES
from buda_emu.spec.formats import tile_bytes

HOST_OFFSET: Final = 0x800000000
"""Address of host memory, as Wormhole sees it."""

_TYPES: Final = {(True, True): "unknown", (True, False): "dram_prolog", (False, True): "dram_epilog"}


@dataclass(slots=True)
class QueueBuffer:
    """One buffer of a queue. `emitted` is False for a gradient's queue, since the buffer in L1 carries its address."""

    id: int
    queue: Queue
    cell: int
    core: Place | None
    emitted: bool
    fields: Mapping[str, Any]


class QueueBuffers:
    """Buffers of the queues that an epoch reads and writes: `make` makes those of a queue, `emit` yields them all."""

    def __init__(self, epoch: Epoch, ids: Ids, edges: Mapping[str, OpEdges], cuts: Mapping[str, Granularity]) -> None:
        self.epoch = epoch
        self.edges = edges
        self.cuts = cuts
        self._ids = ids
        self.arch = epoch.netlist.arch
        used = set(chain.from_iterable(op.inputs for op in epoch.ops.values()))
        used |= {queue.name for queue in chain.from_iterable(epoch.fed.values())}
        queues = epoch.netlist.queues
        self.ids = {name: ids.several(queues[name].blocking.cells) for name in epoch.queue_order if name in used}
        """Ids of a queue's buffers, by its name."""
        self.forks: dict[tuple[str, str], list[int]] = {}
        """Ids of what a prologue loads, by queue and op that reads it."""
        self.made: list[QueueBuffer] = []
        self._slots: dict[str, tuple[int, int]] = {}

    def make(self, queue: Queue) -> None:
        """Make the buffers of a queue, in `made`: one set, or for a queue in a prologue a set on the cores of each op
        that reads it, with ids of its own from the second on."""
        epoch = self.epoch
        name = queue.name
        producer = epoch.producer(queue)
        is_gradient = producer is not None and producer.gradient_op and queue.input in epoch.ops
        in_prologue = name in epoch.prologue
        readers: list[str] = []
        if in_prologue:
            readers = [reader for reader in dict.fromkeys(epoch.readers.get(name, ())) if reader in epoch.ops]
        fields = self._common_fields(queue, producer)
        for number, reader in enumerate(readers or [""]):
            ids = self.ids[name]
            if number > 0:
                ids = self._ids.several(len(ids))
            if in_prologue:
                self.forks[name, reader] = ids
            op = epoch.ops.get(reader)
            if op is not None:
                fields = fields | self._kept_fields(queue, op)
            for cell, id in enumerate(ids):
                core = None
                if op is not None:
                    core = core_that_keeps(queue, op, *divmod(cell, queue.blocking.grid_size[1]))
                self.made.append(
                    QueueBuffer(id=id, queue=queue, cell=cell, core=core, emitted=not is_gradient, fields=fields)
                )

    def emit(self, ports: Mapping[int, int]) -> Iterator[Buffer]:
        """Yield the buffers as the pipe graph has them, except those of gradients' queues. `ports` has the DRAM port
        (subchannel) of each buffer by its id; 0 for one that is missing there."""
        for buffer in self.made:
            if not buffer.emitted:
                continue
            place = buffer.queue.buffers[buffer.cell]
            core = buffer.core or (NO_CORE, NO_CORE)
            far = window(self.epoch, buffer.queue)
            yield Buffer(
                id=buffer.id,
                row=core[0],
                column=core[1],
                dram_chan=place.channel,
                dram_addr=self._device_address(buffer.queue, place, far),
                dram_sub_chan=ports.get(buffer.id, 0),
                **buffer.fields,
            )

    def pieces(self, queue: Queue) -> int:
        """Return into how many pieces readers cut an entry (one input) of one buffer of a queue."""
        return self.slot(queue)[0] // self.cuts[queue.name].tiles

    def slot(self, queue: Queue) -> tuple[int, int]:
        """Return (tiles of one buffer's part of an entry, bytes of a tile); for a queue that is read as flat rows,
        (rows that are fetched, bytes of a row). Cached for each queue."""
        slot = self._slots.get(queue.name)
        if slot is None:
            slot = self._slots[queue.name] = self._compute_slot(queue)
        return slot

    def _compute_slot(self, queue: Queue) -> tuple[int, int]:
        """Compute the result of `slot`: tiles and bytes of a tile, or rows and bytes of a row."""
        blocking = queue.blocking
        reader = self.epoch.flat_reader(queue.name)
        if reader is not None:
            size = flat_row_bytes(queue.df, blocking, self.arch)
            if reader.has("row-wise index"):
                return blocking.mblock[1] * reader.attributes.num_indices, size
            return blocking.t * blocking.mblock[0] * blocking.mblock[1] * blocking.ublock[0] * blocking.tile_dim[
                0
            ], size
        producer = self.epoch.producer(queue)
        headers = producer is None or not producer.untilize_output
        return blocking.tiles_per_core, tile_bytes(queue.df, *blocking.tile_dim, self.arch.alignment, headers)

    def _kept_fields(self, queue: Queue, op: Op) -> dict[str, Any]:
        """Return the fields that a queue's buffer has in addition if a prologue loads it into L1 for `op`: whether it
        lies there as in DRAM, or in the order in which the op reads it."""
        edges = self.edges[op.name]
        as_read = edges.as_read.get(queue.name, False) or queue.name in edges.two_steps
        fields: dict[str, Any] = {"prefetch_type": POST_TM if as_read else PRE_TM}
        if as_read and not self.cuts[queue.name].scattered:
            fields |= {"is_scatter": True, "replicate": 1}
        return fields

    def _device_address(self, queue: Queue, place: DramPlace, far: int | None) -> int:
        """Return the address of a queue's buffer as the device sees it: in its DRAM channel, in host memory, or at
        `far`, the address of the window to another chip's DRAM (None if it needs none)."""
        if far is not None:
            return far + place.address % WINDOW_BYTES
        if queue.loc != "host":
            return place.address
        return (
            place.address + place.channel * HOST_CHANNEL_BYTES + (0 if self.arch.name == "grayskull" else HOST_OFFSET)
        )

    def _common_fields(self, queue: Queue, producer: Op | None) -> dict[str, Any]:
        """Return the fields that all buffers of a queue share. `producer` is the op that feeds it, None for the
        host."""
        epoch = self.epoch
        in_prologue = queue.name in epoch.prologue
        stored = queue.name in epoch.epilogue
        slot, size = self.slot(queue)
        tiles = slot * epoch.input_count
        replicate = 0
        piece = slot
        cut = self.cuts[queue.name]
        if cut.scattered:
            replicate = slot // cut.tiles
            tiles //= replicate
            if in_prologue:
                piece = slot // replicate
            else:
                piece = slot
        fields: dict[str, Any] = {
            "operand": 0,
            "op": queue.name,
            "buffer_type": _TYPES.get((in_prologue, stored), "dram_io"),
            "chip": queue.target_device,
            "epoch_tiles": tiles,
            "tiles_per_input": slot,
            "size_tiles": piece,
            "tile_size": size,
            "scatter_gather_num_tiles": cut.tiles,
            "is_scatter": cut.scattered,
            "replicate": replicate,
            "q_slots": queue.entries,
            "dram_io_flag": not in_prologue and not stored,
            "dram_io_flag_is_remote": queue.loc == "host" or window(epoch, queue) is not None,
            "dram_io_allow_overwrite": queue.is_ram,
            "dram_io_skip_flow_ctrl": queue.is_ram,
            "dram_buf_flag": in_prologue,
            "write_dram_buf_flag": stored,
            "dram_ram_flag": queue.is_ram,
        }
        if producer is not None:
            (m, n) = producer.blocking.mblock
            (r, c) = producer.blocking.ublock
            fields |= {
                "ublock_rt": r,
                "ublock_ct": c,
                "mblock_m": m,
                "mblock_n": n,
                "mblock_k": producer.attributes.m_k,
            }
            fields |= untilize_fields(producer)
        return fields | self._flat_fields(queue)

    def _flat_fields(self, queue: Queue) -> dict[str, Any]:
        """Return the fields of a queue from which an embedding takes rows or indices, or a tilizer flat data; {} for a
        queue of tiles."""
        blocking = queue.blocking
        tile = queue.blocking.tile_dim
        reader = self.epoch.flat_reader(queue.name)
        index = self.epoch.index_reader(queue.name)
        if index is not None:
            return {
                "embedding_index": True,
                "embedding_indices_per_tile": tile[0] * tile[1],
                "embedding_indices_per_input": index.attributes.num_indices,
            }
        if reader is None:
            return {}
        down, across = (
            cores // buffers for cores, buffers in zip(reader.blocking.grid_size, blocking.grid_size, strict=True)
        )
        row = blocking.mblock[1] // across * blocking.ublock[1]
        fields: dict[str, Any] = {
            "embedding_table_row_size": blocking.grid_size[1] * row * across,
            "embedding_table_row_size_per_core": row,
            "embedding_table_core_c_div": across,
            "untilized_output_tile_dim_r": tile[0],
            "untilized_output_tile_dim_c": tile[1],
            "untilized_output_c_dim": blocking.mblock[1] // across,
        }
        if reader.has("row-wise index"):
            return fields | {"embedding_table": True}
        rows = blocking.ublock[0] * tile[0] * (1 if blocking.ublock_order == "r" else blocking.mblock[0] // down)
        return fields | {"hw_tilize": True, "tilize_mblock_n_loop_num_rows": rows}


def core_that_keeps(queue: Queue, op: Op, row: int, column: int) -> Place:
    """Return the core (row, column on the chip) of an op that keeps the buffer at a row and column of a queue's grid in
    L1. Buffers are dealt over the op's grid, round after round; rows of a product's right operand from the last row up,
    from where its columns are multicast."""
    rows, columns = op.blocking.grid_size
    row = row % rows
    column = column % columns
    if kind_of(op).multiplies and op.inputs.index(queue.name) == (0 if op.grid_transpose else 1):
        row = rows - 1 - row
    return core_of(op, row, column)


FIRST_ADDRESS: Final = 0x600000
"""Where tiles of padding begin in every DRAM channel."""
TILES: Final = 64
"""Of each value and format."""


class PaddingBuffers:
    """Buffers of padding, for each operand and core that gathers it; made when a pipe first asks `get` for one."""

    def __init__(
        self,
        epoch: Epoch,
        ids: Ids,
        edges: Mapping[str, OpEdges],
        cuts: Mapping[str, Granularity],
        queues: QueueBuffers,
    ) -> None:
        self.epoch = epoch
        self.edges = edges
        self.cuts = cuts
        self._ids = ids
        self._queues = queues
        self.made: dict[int, Buffer] = {}
        self._known: dict[tuple[str, int, tuple[int, int, int]], int] = {}
        self._addresses: Mapping[tuple[str, float], int] | None = None

    def get(self, op: Op, index: int, core: tuple[int, int, int]) -> int:
        """Return the id of the buffer for padding of operand `index` that is gathered on `core` (chip, row, column),
        and make it if it is new. A further call for the same buffer lengthens it by one piece, unless it is read from
        DRAM while the epoch runs."""
        name = op.inputs[index]
        streams = name in self.epoch.netlist.queues and name not in self.epoch.prologue
        id = self._known.get((op.name, index, core))
        if id is not None:
            if not streams:
                buffer = self.made[id]
                self.made[id] = replace(
                    buffer, tiles_per_input=buffer.tiles_per_input + buffer.scatter_gather_num_tiles
                )
            return id
        id = self._known[op.name, index, core] = self._ids.new()
        cut = self.cuts[name]
        if streams:
            fields = self._streaming_fields(name, cut)
        else:
            fields = self._prologue_fields(op, index, cut, core[1:])
        self.made[id] = Buffer(
            id=id,
            operand=0,
            op=op.name,
            is_scatter=True,
            is_padding=True,
            chip=core[0],
            scatter_gather_num_tiles=cut.tiles,
            dram_addr=self._padding_address(op, index),
            **fields,
        )
        return id

    def existing_id(self, op: Op, index: int, core: tuple[int, int, int]) -> int:
        """Return the id of the buffer that `get` made for the same arguments. Raises KeyError if it did not."""
        return self._known[op.name, index, core]

    def _padding_address(self, op: Op, index: int) -> int:
        """Return the DRAM address of the padding of operand `index`, by its format and value."""
        if self._addresses is None:
            self._addresses = padding_addresses(self.epoch.netlist)
        return self._addresses[op.in_df[index], pad_value(op, index)]

    def _streaming_fields(self, name: str, cut: Granularity) -> dict[str, Any]:
        """Return the fields of padding that is read from DRAM together with the queue `name`: as long as an entry of
        the queue."""
        queue = self.epoch.netlist.queues[name]
        slot, size = self._queues.slot(queue)
        if cut.scattered:
            replicate = slot // cut.tiles
        else:
            replicate = 0
        return {
            "size_tiles": slot,
            "tiles_per_input": slot,
            "tile_size": size,
            "epoch_tiles": slot * self.epoch.input_count // (replicate or 1),
            "replicate": replicate,
            "q_slots": queue.entries,
            "dram_io_flag": True,
            "prefetch_type": -1,
        }

    def _prologue_fields(self, op: Op, index: int, cut: Granularity, core: Place) -> dict[str, Any]:
        """Return the fields of padding that is loaded into L1 of `core`: as long as one piece into which its source is
        cut."""
        name = op.inputs[index]
        count = self.epoch.input_count
        tiles = count * cut.tiles
        if name not in self.epoch.netlist.queues:
            producer = self.epoch.ops.get(name)
        else:
            producer = None
        if producer is not None:
            single = buffered_mblocks(producer)
            if count * producer.blocking.t <= single:
                tiles = cut.tiles
            else:
                tiles = tiles * producer.blocking.t // single
        as_read = producer is None and self.edges[op.name].as_read.get(name, False)
        return {
            "row": core[0],
            "column": core[1],
            "epoch_tiles": tiles,
            "tiles_per_input": cut.tiles,
            "size_tiles": cut.tiles,
            "replicate": 1,
            "tile_size": tile_bytes(
                op.in_df[index], *op.input_tile_dims[index], self.epoch.netlist.arch.alignment, True
            ),
            "dram_buf_flag": True,
            "q_slots": 1,
            "prefetch_type": POST_TM if as_read else PRE_TM,
        }


def padding_addresses(netlist: Netlist) -> dict[tuple[str, float], int]:
    """Return the DRAM address of the tiles of padding for each (format, value) that the netlist's ops need; net2pipe
    puts them one after the other in the order of the ops. {} if none is padded."""
    result: dict[tuple[str, float], int] = {}
    address = FIRST_ADDRESS
    for graph in netlist.graphs.values():
        for op in sorted(graph.ops, key=lambda op: op.name):
            for index in range(kind_of(op).input_buffers(op)):
                key = (op.in_df[index], pad_value(op, index))
                if key not in result and has_padding(op, index):
                    result[key] = address
                    size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], netlist.arch.alignment, True)
                    address += size * TILES
    return result


def has_padding(op: Op, index: int) -> bool:
    """Return whether an operand is padded, after its TMs or by one of them."""
    if index < len(op.input_pad):
        pad = op.input_pad[index]
    else:
        pad = Pad()
    if index < len(op.input_tms):
        tms = op.input_tms[index]
    else:
        tms = ()
    return pad.rt > 0 or pad.ct > 0 or any(tm.name == "pad" for tm in tms)


def pad_value(op: Op, index: int) -> float:
    """Return the value with which operand `index` of an op is padded, 0 if it has no padding."""
    if index < len(op.input_pad):
        return op.input_pad[index].value
    return 0.0


class Buffers:
    """All buffers of an epoch: of queues, ops and padding, numbered in the order of net2pipe."""

    def __init__(self, epoch: Epoch, edges: Mapping[str, OpEdges], cuts: Mapping[str, Granularity]) -> None:
        self.epoch = epoch
        self.cuts = cuts
        self.edges = edges
        self.ids = Ids()
        self.queues = QueueBuffers(epoch, self.ids, edges, cuts)
        self.ops = OpBuffers(epoch, self.ids, edges, cuts)
        self.padding = PaddingBuffers(epoch=epoch, ids=self.ids, edges=edges, cuts=cuts, queues=self.queues)
        done: set[str] = set()
        for op in epoch.ops.values():
            self.ops.make(op)
            for queue in epoch.queues_of(op):
                if queue.name not in done:
                    done.add(queue.name)
                    self.queues.make(queue)
        self.core: dict[int, Place] = dict(self.ops.core)
        """The core of every buffer in L1."""
        self.core |= {
            queue_buffer.id: queue_buffer.core for queue_buffer in self.queues.made if queue_buffer.core is not None
        }

    def bases(self, reader: str, source: str) -> list[int]:
        """Return the ids of the buffers of op or queue `source` that `reader` reads: core by core of an op, buffer by
        buffer of a queue; for a queue in a prologue those that lie on the reader's cores."""
        if source not in self.epoch.netlist.queues:
            return self.ops.outputs[source]
        if source in self.epoch.prologue:
            return self.queues.forks[source, reader]
        return self.queues.ids[source]

    def emit(self, ports: Mapping[int, int]) -> Iterator[Buffer]:
        """Yield all buffers as the pipe graph has them. `ports` has the DRAM ports (subchannels) of queues' buffers, by
        id."""
        yield from self.ops.made.values()
        yield from self.queues.emit(ports)
        yield from self.padding.made.values()
