"""Padding: buffers of tiles of one value, in DRAM for pipes that stream from there, else in L1."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from buda_emu.netlist.model import Netlist, Op, Pad
from buda_emu.routing.pipes.buffers.granularity import Cut
from buda_emu.routing.pipes.buffers.ids import Ids
from buda_emu.routing.pipes.buffers.op_buffers import Place
from buda_emu.routing.pipes.buffers.queue_buffers import QueueBuffers
from buda_emu.routing.pipes.epoch import Epoch
from buda_emu.routing.pipes.model import POST_TM, PRE_TM, Buffer
from buda_emu.routing.pipes.ops.edges import OpEdges
from buda_emu.routing.pipes.ops.general import buffered_mblocks
from buda_emu.routing.pipes.ops.kinds import kind_of
from buda_emu.spec.formats import tile_bytes

FIRST_ADDRESS: Final = 0x600000
"""Where tiles of padding begin in every DRAM channel."""
TILES: Final = 64
"""Of each value and format."""


class PaddingBuffers:
    """Made when a pipe asks for one, for each operand and core that gathers it."""

    def __init__(
        self, epoch: Epoch, ids: Ids, edges: Mapping[str, OpEdges], cuts: Mapping[str, Cut], queues: QueueBuffers
    ) -> None:
        self.epoch, self.edges, self.cuts, self._ids, self._queues = epoch, edges, cuts, ids, queues
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
        name, count = op.inputs[index], self.epoch.input_count
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
