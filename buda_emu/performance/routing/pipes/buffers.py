"""All buffers of an epoch: those of ops, of queues, and of padding."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from buda_emu.netlist.model import Buffer as DramPlace
from buda_emu.netlist.model import Netlist, Op, Pad, Queue
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.ethernet import WINDOW_BYTES, window
from buda_emu.performance.routing.pipes.granularity import Cut, Ids
from buda_emu.performance.routing.pipes.model import NO_CORE, POST_TM, PRE_TM, Buffer
from buda_emu.performance.routing.pipes.op_buffers import OpBuffers, Place, core_of, untilized
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import buffered_mblocks
from buda_emu.performance.routing.pipes.ops.kinds import kind_of
from buda_emu.performance.routing.pipes.ops.operands import flat_row_bytes
from buda_emu.spec.formats import tile_bytes

HOST_OFFSET: Final = 0x800000000
"""Address of host memory, as Wormhole sees it."""
HOST_CHANNEL_BYTES: Final = 1 << 30

_TYPES: Final = {(True, True): "unknown", (True, False): "dram_prolog", (False, True): "dram_epilog"}


@dataclass(slots=True)
class QueueBuffer:
    """One buffer of a queue. `emitted`: not of a gradient's queue, whose buffer in L1 carries the address."""

    id: int
    queue: Queue
    cell: int
    core: Place | None
    emitted: bool
    fields: Mapping[str, Any]


class QueueBuffers:
    """Buffers of the queues that an epoch reads and writes."""

    def __init__(self, epoch: Epoch, ids: Ids, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut]) -> None:
        self.epoch = epoch
        self.edges = edges
        self.cuts = cuts
        self._ids = ids
        self.arch = epoch.netlist.arch
        used = {name for op in epoch.ops.values() for name in op.inputs}
        used |= {queue.name for group in epoch.fed.values() for queue in group}
        queues = epoch.netlist.queues
        self.ids = {name: ids.several(queues[name].blocking.cells) for name in epoch.queue_order if name in used}
        """Ids of a queue's buffers, by its name."""
        self.forks: dict[tuple[str, str], list[int]] = {}
        """Ids of what a prologue loads, by queue and op that reads it."""
        self.made: list[QueueBuffer] = []
        self._slots: dict[str, tuple[int, int]] = {}

    def make(self, queue: Queue) -> None:
        """One set of buffers, or with a prologue one for each op that reads the queue."""
        epoch = self.epoch
        name = queue.name
        producer = epoch.producer(queue)
        own = producer is not None and producer.gradient_op and queue.input in epoch.ops
        kept = name in epoch.prologue
        readers = [one for one in dict.fromkeys(epoch.readers.get(name, ())) if one in epoch.ops] if kept else []
        fields = self._fields(queue, producer)
        for number, reader in enumerate(readers or [""]):
            ids = self.ids[name] if number == 0 else self._ids.several(len(self.ids[name]))
            if kept:
                self.forks[name, reader] = ids
            op = epoch.ops.get(reader)
            if op is not None:
                fields = fields | self._kept_fields(queue, op)
            for cell, id in enumerate(ids):
                core = held_by(queue, op, *divmod(cell, queue.blocking.grid_size[1])) if op is not None else None
                self.made.append(QueueBuffer(id=id, queue=queue, cell=cell, core=core, emitted=not own, fields=fields))

    def emitted(self, ports: Mapping[int, int]) -> Iterator[Buffer]:
        """The buffers, each with its DRAM port."""
        for one in self.made:
            if not one.emitted:
                continue
            place = one.queue.buffers[one.cell]
            core = one.core or (NO_CORE, NO_CORE)
            far = window(self.epoch, one.queue)
            yield Buffer(
                id=one.id,
                row=core[0],
                column=core[1],
                dram_chan=place.channel,
                dram_addr=self._address(one.queue, place, far),
                dram_sub_chan=ports.get(one.id, 0),
                **one.fields,
            )

    def pieces(self, queue: Queue) -> int:
        """Pieces of an entry of a queue that is read in pieces."""
        return self.slot(queue)[0] // self.cuts[queue.name].tiles

    def slot(self, queue: Queue) -> tuple[int, int]:
        """Tiles of an entry in one buffer, and bytes of a tile; of flat rows, what is fetched of them."""
        found = self._slots.get(queue.name)
        if found is None:
            found = self._slots[queue.name] = self._slot(queue)
        return found

    def _slot(self, queue: Queue) -> tuple[int, int]:
        own = queue.blocking
        reader = self.epoch.flat_reader(queue.name)
        if reader is not None:
            size = flat_row_bytes(queue.df, own, self.arch)
            if reader.has("row-wise index"):
                return own.mblock[1] * reader.attributes.num_indices, size
            return own.t * own.mblock[0] * own.mblock[1] * own.ublock[0] * own.tile_dim[0], size
        producer = self.epoch.producer(queue)
        headers = producer is None or not producer.untilize_output
        return own.tiles_per_core, tile_bytes(queue.df, *own.tile_dim, self.arch.alignment, headers)

    def _kept_fields(self, queue: Queue, op: Op) -> dict[str, Any]:
        edges = self.edges[op.name]
        as_read = edges.as_read.get(queue.name, False) or queue.name in edges.two_steps
        fields: dict[str, Any] = {"prefetch_type": POST_TM if as_read else PRE_TM}
        if as_read and not self.cuts[queue.name].scattered:
            fields |= {"is_scatter": True, "replicate": 1}
        return fields

    def _address(self, queue: Queue, place: DramPlace, far: int | None) -> int:
        if far is not None:
            return far + place.address % WINDOW_BYTES
        if queue.loc != "host":
            return place.address
        return (
            place.address + place.channel * HOST_CHANNEL_BYTES + (0 if self.arch.name == "grayskull" else HOST_OFFSET)
        )

    def _fields(self, queue: Queue, producer: Op | None) -> dict[str, Any]:
        epoch = self.epoch
        kept = queue.name in epoch.prologue
        stored = queue.name in epoch.epilogue
        slot, size = self.slot(queue)
        tiles = slot * epoch.input_count
        replicate = 0
        piece = slot
        cut = self.cuts[queue.name]
        if cut.scattered:
            replicate = slot // cut.tiles
            tiles //= replicate
            piece = slot // replicate if kept else slot
        fields: dict[str, Any] = {
            "operand": 0,
            "op": queue.name,
            "buffer_type": _TYPES.get((kept, stored), "dram_io"),
            "chip": queue.target_device,
            "epoch_tiles": tiles,
            "tiles_per_input": slot,
            "size_tiles": piece,
            "tile_size": size,
            "scatter_gather_num_tiles": cut.tiles,
            "is_scatter": cut.scattered,
            "replicate": replicate,
            "q_slots": queue.entries,
            "dram_io_flag": not kept and not stored,
            "dram_io_flag_is_remote": queue.loc == "host" or window(epoch, queue) is not None,
            "dram_io_allow_overwrite": queue.is_ram,
            "dram_io_skip_flow_ctrl": queue.is_ram,
            "dram_buf_flag": kept,
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
            fields |= untilized(producer)
        return fields | self._flat_fields(queue)

    def _flat_fields(self, queue: Queue) -> dict[str, Any]:
        """What reading rows of a table, indices or flat data needs."""
        own = queue.blocking
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
            cores // buffers for cores, buffers in zip(reader.blocking.grid_size, own.grid_size, strict=True)
        )
        row = own.mblock[1] // across * own.ublock[1]
        fields: dict[str, Any] = {
            "embedding_table_row_size": own.grid_size[1] * row * across,
            "embedding_table_row_size_per_core": row,
            "embedding_table_core_c_div": across,
            "untilized_output_tile_dim_r": tile[0],
            "untilized_output_tile_dim_c": tile[1],
            "untilized_output_c_dim": own.mblock[1] // across,
        }
        if reader.has("row-wise index"):
            return fields | {"embedding_table": True}
        rows = own.ublock[0] * tile[0] * (1 if own.ublock_order == "r" else own.mblock[0] // down)
        return fields | {"hw_tilize": True, "tilize_mblock_n_loop_num_rows": rows}


def held_by(queue: Queue, op: Op, row: int, column: int) -> Place:
    """The core of an op that keeps a buffer of a queue: its grid, over and over; a product's right operand from the
    last row on, where its columns are multicast from."""
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
    """Made when a pipe asks for one, for each operand and core that gathers it."""

    def __init__(
        self, epoch: Epoch, ids: Ids, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut], queues: QueueBuffers
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
        """The id of the buffer for padding of an operand that is gathered on `core`: chip, row and column."""
        name = op.inputs[index]
        streams = name in self.epoch.netlist.queues and name not in self.epoch.prologue
        id = self._known.get((op.name, index, core))
        if id is not None:
            if not streams:
                own = self.made[id]
                self.made[id] = replace(own, tiles_per_input=own.tiles_per_input + own.scatter_gather_num_tiles)
            return id
        id = self._known[op.name, index, core] = self._ids.new()
        cut = self.cuts[name]
        fields = self._streamed(name, cut) if streams else self._kept(op, index, cut, core[1:])
        self.made[id] = Buffer(
            id=id,
            operand=0,
            op=op.name,
            is_scatter=True,
            is_padding=True,
            chip=core[0],
            scatter_gather_num_tiles=cut.tiles,
            dram_addr=self._address(op, index),
            **fields,
        )
        return id

    def known(self, op: Op, index: int, core: tuple[int, int, int]) -> int:
        """The id of a buffer that was asked for before."""
        return self._known[op.name, index, core]

    def _address(self, op: Op, index: int) -> int:
        if self._addresses is None:
            self._addresses = addresses(self.epoch.netlist)
        return self._addresses[op.in_df[index], pad_value(op, index)]

    def _streamed(self, name: str, cut: Cut) -> dict[str, Any]:
        """In DRAM, as long as the queue's entry."""
        queue = self.epoch.netlist.queues[name]
        slot, size = self._queues.slot(queue)
        replicate = slot // cut.tiles if cut.scattered else 0
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

    def _kept(self, op: Op, index: int, cut: Cut, core: Place) -> dict[str, Any]:
        """In L1, as long as one piece."""
        name = op.inputs[index]
        count = self.epoch.input_count
        tiles = count * cut.tiles
        producer = self.epoch.ops.get(name) if name not in self.epoch.netlist.queues else None
        if producer is not None:
            single = buffered_mblocks(producer)
            tiles = cut.tiles if count * producer.blocking.t <= single else tiles * producer.blocking.t // single
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


def addresses(netlist: Netlist) -> dict[tuple[str, float], int]:
    """Where the padding of each format and value lies, in the order in which the netlist's ops ask for it."""
    found: dict[tuple[str, float], int] = {}
    address = FIRST_ADDRESS
    for graph in netlist.graphs.values():
        for op in sorted(graph.ops, key=lambda op: op.name):
            for index in range(kind_of(op).input_buffers(op)):
                key = (op.in_df[index], pad_value(op, index))
                if key not in found and has_padding(op, index):
                    found[key] = address
                    size = tile_bytes(op.in_df[index], *op.input_tile_dims[index], netlist.arch.alignment, True)
                    address += size * TILES
    return found


def has_padding(op: Op, index: int) -> bool:
    """Whether an operand is padded, after its TMs or by one of them."""
    pad = op.input_pad[index] if index < len(op.input_pad) else Pad()
    tms = op.input_tms[index] if index < len(op.input_tms) else ()
    return pad.rt > 0 or pad.ct > 0 or any(tm.name == "pad" for tm in tms)


def pad_value(op: Op, index: int) -> float:
    """The value of its padding."""
    return op.input_pad[index].value if index < len(op.input_pad) else 0.0


class Buffers:
    """Buffers of queues, ops, and padding, in the order in which net2pipe numbers them."""

    def __init__(self, epoch: Epoch, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut]) -> None:
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
        self.core |= {one.id: one.core for one in self.queues.made if one.core is not None}

    def bases(self, reader: str, source: str) -> list[int]:
        """Ids of the buffers of what an op reads, core by core, or buffer by buffer of a queue."""
        if source not in self.epoch.netlist.queues:
            return self.ops.outputs[source]
        return self.queues.forks[source, reader] if source in self.epoch.prologue else self.queues.ids[source]

    def emitted(self, ports: Mapping[int, int]) -> Iterator[Buffer]:
        """All of them; `ports`: DRAM ports of queues' buffers, by id."""
        yield from self.ops.made.values()
        yield from self.queues.emitted(ports)
        yield from self.padding.made.values()
