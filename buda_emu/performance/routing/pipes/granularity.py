"""The pieces into which the buffers that pipes read are cut, and the ids of buffers and pipes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from math import gcd
from typing import Final

from buda_emu.netlist.model import Op, Queue
from buda_emu.performance.routing.pipes.edge import EdgeMap
from buda_emu.performance.routing.pipes.epoch import Epoch
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.ops.edges import OpEdges
from buda_emu.performance.routing.pipes.ops.general import buffered_mblocks, mblock_tiles
from buda_emu.performance.routing.pipes.ops.operands import flat_row_bytes
from buda_emu.spec.formats import tile_bytes

DRAM_PIECE_BYTES = 64 << 10
"""The most that is read from a queue's buffer in one piece."""


@dataclass(frozen=True, slots=True)
class Granularity:
    """The pieces into which a buffer is cut for its readers. `scattered` tells whether they read pieces of `tiles`
    tiles each rather than the whole buffer."""

    scattered: bool
    tiles: int


def op_cut(epoch: Epoch, op: Op, edges: Mapping[str, OpEdges], queues: Mapping[str, EdgeMap]) -> Granularity:
    """Return the pieces in which all readers can read an op's output buffer: a common divisor of those that each needs.
    `edges` has those of each reading op, `queues` those to each queue that the op feeds. Raises RefusedError for pieces
    that do not divide the buffer."""
    buffer_tiles = mblock_tiles(op)
    if not epoch.inputs(op).kind.keeps_strips:
        buffer_tiles *= buffered_mblocks(op)
    maps = [edge for _, edge in _edges_to(epoch, op.name, edges)]
    if not (op.untilize_output or op.gradient_op):
        maps += [queues[queue.name] for queue in epoch.fed.get(op.name, ())]
    uneven = next((edge.granularity for edge in maps if buffer_tiles % edge.granularity), None)
    if uneven is not None:
        raise RefusedError("V081", f"pieces of {uneven} tiles do not cut the {buffer_tiles} that {op.name} buffers")
    tiles = gcd(buffer_tiles, *(edge.granularity for edge in maps))
    return Granularity(tiles != buffer_tiles or any(edge.out_of_order for edge in maps), tiles)


def queue_cut(epoch: Epoch, queue: Queue, edges: Mapping[str, OpEdges]) -> Granularity:
    """Return the pieces in which all readers can read an entry (one input) of one buffer of a queue. `edges` has those
    of each reading op. Raises RefusedError for pieces that do not divide the entry, or if a tile exceeds a read from
    DRAM. Without a reader it is not cut."""
    blocking = queue.blocking
    flat = epoch.flat_reader(queue.name)
    entry_tiles = blocking.tiles_per_core
    if flat is not None:
        entry_tiles = _flat_piece(queue, flat, epoch)
    readers = list(_edges_to(epoch, queue.name, edges))
    if not readers:
        return Granularity(False, blocking.tiles_per_core)
    tiles = entry_tiles
    for op, edge in readers:
        if edge.granularity != entry_tiles and (flat is None or flat.has("row-wise index")):
            if flat is None and entry_tiles % edge.granularity:
                raise RefusedError(
                    "V081", f"pieces of {edge.granularity} tiles do not cut {entry_tiles} of {queue.name}"
                )
            tiles = gcd(tiles, edge.granularity)
        tiles = _cut_to_buffers(epoch, queue.name, op, edges[op.name], tiles)
    return Granularity(True, _within_dram_reads(epoch, queue, tiles))


def _flat_piece(queue: Queue, reader: Op, epoch: Epoch) -> int:
    """Return the rows of flat data that the op reads at a time: up to a tile's rows for a tilizer, 1 for an
    embedding."""
    blocking = queue.blocking
    if reader.has("row-wise index") or blocking.mblock[1] != 1:
        return 1
    row = flat_row_bytes(queue.df, blocking, epoch.netlist.arch)
    if blocking.tile_dim[0] * row <= DRAM_PIECE_BYTES:
        return blocking.tile_dim[0]
    return 1


def _edges_to(epoch: Epoch, producer: str, edges: Mapping[str, OpEdges]) -> Iterable[tuple[Op, EdgeMap]]:
    """Yield (op, edge) for each op of the epoch that reads `producer`, an op or queue by name, once for each operand
    that does."""
    for name in dict.fromkeys(epoch.readers.get(producer, ())):
        op = epoch.ops.get(name)
        if op is not None:
            for index, source in enumerate(op.inputs):
                if source == producer:
                    yield op, edges[name].maps[index]


def _cut_to_buffers(epoch: Epoch, queue: str, op: Op, edges: OpEdges, tiles: int) -> int:
    """Return a divisor of `tiles`, the tiles of a piece of a queue, of which the operand buffers of a reading op hold
    whole pieces."""
    steps = edges.two_steps.get(queue)
    inputs = epoch.inputs(op)
    for index, name in enumerate(op.inputs):
        if name != queue:
            continue
        if steps is not None:
            tiles = gcd(steps.chunk_tiles, tiles)
        elif (size := inputs.size_tiles(index)) < tiles:
            tiles = gcd(size, tiles)
    return tiles


def _within_dram_reads(epoch: Epoch, queue: Queue, tiles: int) -> int:
    """Return the tiles of a piece, at most `tiles`, that one read from a queue's DRAM can take. Raises RefusedError if
    a tile is larger than a read."""
    headers = epoch.flat_reader(queue.name) is None
    size = tile_bytes(queue.df, *queue.blocking.tile_dim, epoch.netlist.arch.alignment, headers)
    limit = DRAM_PIECE_BYTES // size
    if limit < 1:
        raise RefusedError("V081", f"a tile of {queue.name} has {size} bytes, a read from DRAM {DRAM_PIECE_BYTES}")
    while tiles > limit and tiles % limit:
        limit -= 1
    return min(tiles, limit)


ID_STEP: Final = 1_000_000_000
_FIRST: Final = 100 * ID_STEP
"""The first id that net2pipe issues, and the step to the next; pieces of a buffer have the ids in between."""


class Ids:
    """Issues ids of buffers and pipes in rising order, `ID_STEP` apart, so that a buffer's pieces have the ids in
    between."""

    def __init__(self) -> None:
        self._next = count(_FIRST, ID_STEP)

    def new(self) -> int:
        """Issue the next id and return it."""
        return next(self._next)

    def several(self, number: int) -> list[int]:
        """Issue the next `number` ids and return them, in rising order."""
        return [next(self._next) for _ in range(number)]


def base_of(id: int) -> int:
    """Return the id of the buffer to which a piece belongs, given the piece's id; a buffer's own id stays."""
    return id - id % ID_STEP
