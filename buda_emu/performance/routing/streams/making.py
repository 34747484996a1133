"""The streams of each simple pipe, before they get ids and L1."""

from collections.abc import Callable

from buda_emu.performance.routing.streams.connected import BufferNode, invalid_graph
from buda_emu.performance.routing.streams.dram_reads import (
    Chunks,
    first_queue,
    merged_bytes,
    phase_tiles,
    scaled_bytes,
    settled_phase_tiles,
)
from buda_emu.performance.routing.streams.model import (
    ETHERNET_GATHER_TILES,
    GATHER_RELAY_TILES,
    GATHER_TILES,
    Place,
    Refusal,
    RefusedError,
)
from buda_emu.performance.routing.streams.rational import READS_DRAM, Kind, Node, Simple
from buda_emu.spec.archs import GATHER_STREAMS


class Draft:
    """A stream before allocation: `bytes` of its buffer, `msg_size` bytes of a tile that it moves. `forks` are all
    streams of one buffer in L1; `shares` is another stream in whose L1 its buffer lies."""

    __slots__ = (
        "buf_id",
        "buffering",
        "bytes",
        "clears",
        "deleted",
        "ethernet",
        "firmware",
        "forks",
        "given_bytes",
        "has_l1",
        "id",
        "iterations",
        "kind",
        "msg_size",
        "op",
        "operand",
        "padding",
        "phases",
        "pipes",
        "place",
        "reads",
        "shared_id",
        "shares",
        "tracked",
        "union",
        "writes",
    )

    def __init__(self, kind: str, place: Place, size: int, msg_size: int, pipe: Simple) -> None:
        self.kind = kind
        self.place = place
        self.bytes = size
        self.msg_size = msg_size
        if pipe.of is None:
            self.pipes = {}
        else:
            self.pipes = {pipe.of.id: None}
        self.operand: int | None = None
        self.op = ""
        self.forks: list[Draft] | None = None
        self.shares: Draft | None = None
        self.shared_id = self.buf_id = -1
        self.padding: tuple[int, ...] | None = None
        self.reads = self.writes = self.tracked = 0
        self.ethernet = self.firmware = self.deleted = self.has_l1 = False
        self.id: int | None = None  # -1 where there is none left
        self.given_bytes = 0  # bytes of L1 that this stream alone takes
        self.iterations = self.buffering = self.clears = 1
        self.phases: int | None = None
        self.union = False

    def join(self, pipe: Simple) -> None:
        """Note that the stream takes part in a further pipe; forks, which are part of no pipe, do not count."""
        if pipe.of is not None:
            self.pipes[pipe.of.id] = None


class Makers:
    """Makes the streams of one subgraph, with `make` for each simple pipe; the other methods make those of one kind of
    pipe. Pipes must come in topological order. All raise RefusedError for a pipe that pipegen2 cannot turn into
    streams."""

    def __init__(self) -> None:
        self.streams: list[Draft] = []
        self.streams_of: dict[Simple, list[Draft]] = {}
        self._chunks = Chunks()

    def make(self, pipe: Simple) -> None:
        """Make the streams of a simple pipe, as its kind demands: add them to `streams`, and to `streams_of` under the
        pipe."""
        first = len(self.streams)
        _MAKERS[pipe.kind](self, pipe)
        self.streams_of[pipe] = self.streams[first:]

    def _add(self, kind: str, place: Place, size: int, msg_size: int, pipe: Simple) -> Draft:
        """Add to `streams` a stream with a buffer of `size` bytes on a core, and return it. `msg_size` is the bytes of
        a tile that it moves."""
        stream = Draft(kind=kind, place=place, size=size, msg_size=msg_size, pipe=pipe)
        self.streams.append(stream)
        return stream

    def _add_unpacker(self, pipe: Simple, node: Node) -> Draft:
        """Add the stream that hands an operand to the kernel, let it bring the node's tiles, and return it. Raises
        RefusedError if the node is no operand."""
        operand = _checked_operand(pipe, node)
        written = operand.buffer
        size = written.tile_size * written.size_tiles
        stream = self._add("unpacker", node.place, size, written.tile_size, pipe)
        stream.operand = written.operand
        stream.op = written.op
        stream.buf_id = operand.id
        stream.clears = max(1, written.tile_clear_granularity)
        node.stream = stream
        return stream

    # Between cores

    def fork(self, pipe: Simple) -> None:
        """Add the streams of a packer's buffer: one for each pipe that reads it."""
        buffer = pipe.sources[0].buffer
        if not buffer.kernel_output or buffer.intermediate:
            raise invalid_graph(f"buffer {buffer.id} is forked, and is neither a packer's nor in DRAM")
        streams = self._add_forks("packer", pipe, buffer)
        for stream in streams:
            stream.operand = buffer.buffer.operand
            stream.op = buffer.buffer.op
            stream.shared_id = buffer.shared
            if buffer.buffer.replicate:
                stream.buf_id = -1
            else:
                stream.buf_id = buffer.id

    def pre_tm_fork(self, pipe: Simple) -> None:
        """Add the streams of an operand that is kept in L1 as it lies in DRAM, before its TMs: a relay for each pipe
        that reads it."""
        buffer = pipe.sources[0].buffer
        for stream in self._add_forks("relay", pipe, buffer):
            stream.reads = 1
            stream.op = buffer.buffer.op
            if buffer.buffer.is_padding:
                stream.padding = _dram_place(buffer)

    def _add_forks(self, kind: str, pipe: Simple, buffer: BufferNode) -> list[Draft]:
        """Add streams of one buffer, one for each output of the fork `pipe`, and return them; they share the buffer's
        L1."""
        written = buffer.buffer
        size = written.tile_size * written.size_tiles * (written.replicate or 1)
        streams = list[Draft]()
        for output in pipe.outputs:
            stream = self._add(kind, pipe.place, size, written.tile_size, output.outputs[0])
            output.stream = stream
            streams.append(stream)
        for stream in streams:
            stream.forks = streams
            if written.replicate:
                stream.buffering = max(1, written.size_tiles // max(1, written.scatter_gather_num_tiles))
        return streams

    def serial_fork(self, pipe: Simple) -> None:
        """Let the one stream that comes in bring the tiles of all outputs, whose pipes take turns."""
        for output in pipe.outputs:
            output.stream = _incoming(pipe)

    def padding_serial_fork(self, pipe: Simple) -> None:
        """Add a stream of padding on each core that sends it, in place of the stream that comes in, which is
        deleted."""
        base = _incoming(pipe)
        base.deleted = True
        by_place: dict[Place, Draft] = {}
        for output in pipe.outputs:
            stream = by_place.get(output.place)
            if stream is None:
                stream = by_place[output.place] = self._add("relay", output.place, base.bytes, base.msg_size, pipe)
                stream.reads = base.reads
                stream.op = base.op
                stream.padding = base.padding
                stream.buffering = base.buffering
                stream.forks = [stream]
            output.stream = stream

    def gather(self, pipe: Simple) -> None:
        """Add up to GATHER_STREAMS relays that take turns in receiving from the sources, and the stream that gathers
        from these and sends on."""
        relays = min(len(pipe.sources), GATHER_STREAMS)
        tile = pipe.sources[0].tile_size
        for source in pipe.sources:
            _stream_of(source).join(pipe)
        for _ in range(relays):
            self._add("gather_relay", pipe.place, _relay_tiles(len(pipe.sources), False) * tile, tile, pipe)
        _bring_output(pipe, self._add("gather", pipe.place, 0, tile, pipe))

    def dormant_relay(self, pipe: Simple) -> None:
        """Add one relay that takes tiles from all sources in turn."""
        tile = pipe.outputs[0].tile_size
        for source in pipe.sources:
            _stream_of(source).join(pipe)
        size = _relay_tiles(len(pipe.sources), pipe.place.ethernet) * tile
        _bring_output(pipe, self._add("relay", pipe.place, size, tile, pipe))

    def relay(self, pipe: Simple) -> None:
        """Add the stream of a relay's buffer, which may be on another chip than the sender."""
        node = pipe.outputs[0]
        buffer = node.buffer
        sender = _incoming(pipe)
        written = buffer.buffer
        stream = self._add("relay", node.place, written.size_tiles * written.tile_size, written.tile_size, pipe)
        stream.buf_id = buffer.id
        stream.op = written.op
        if pipe.kind is not Kind.RELAY:
            sender.ethernet = stream.ethernet = True
            sender.firmware = stream.firmware = pipe.kind is Kind.ETHERNET_FIRMWARE_RELAY
        node.stream = stream

    def unicast(self, pipe: Simple) -> None:
        """Add the stream of the receiver's operand; if sender and receiver are on different chips, let both transfer
        over Ethernet."""
        sender = _incoming(pipe)
        stream = self._add_unpacker(pipe, pipe.outputs[0])
        if sender.place.chip != stream.place.chip:
            sender.ethernet = stream.ethernet = True

    def multicast(self, pipe: Simple) -> None:
        """Let the incoming stream multicast if it can, else add one that does; add the streams of the receivers'
        operands."""
        sender = _incoming(pipe)
        by_itself = sender.kind == "packer" and pipe.direct
        if by_itself:
            sender.kind = "packer_multicast"
        elif sender.place != pipe.place or sender.reads or sender.buf_id != -1:
            tile = pipe.sources[0].tile_size
            self._add("multicast", pipe.place, _relay_tiles(1, False) * tile, tile, pipe)
        else:
            if sender.kind != "gather":
                sender.kind = "multicast"
            else:
                sender.kind = "gather_multicast"
        for output in pipe.outputs:
            self._add_unpacker(pipe, output)

    def union(self, pipe: Simple) -> None:
        """Let the first relay that comes in do the work of all, and delete the others."""
        first, *others = (_stream_of(source) for source in pipe.sources)
        for other in others:
            other.deleted = True
        output = pipe.outputs[0]
        output.stream = first

    # From and to DRAM

    def dram_read(self, pipe: Simple) -> None:
        """Add the streams that read chunks from DRAM: the operand's stream alone if its buffer can serve both, else a
        relay before it; only a relay if the pipe ends in one. Raises RefusedError if a table's or flat rows do not fit
        a shared buffer, since these need one."""
        queue = first_queue(pipe)
        node = pipe.outputs[0]
        relay = node.of is not None and node.of.relay
        if relay:
            operand = None
        else:
            operand = _checked_operand(pipe, node)
        chunk = self._chunks.of(pipe)
        if operand is None:
            merged = None
        else:
            merged = merged_bytes(pipe, chunk, operand, pipe.pipe.pipe.op_input_dram_io_buf_size_tiles)
        if merged is None:
            if queue.post_tm:
                base = _post_tm_bytes(pipe, queue)
            else:
                base = chunk * queue.buffer.tile_size
            stream = self._add("relay", pipe.place, base, queue.buffer.tile_size, pipe)
        else:
            stream = self._add_unpacker(pipe, node)
            stream.buf_id = -1
            stream.bytes = merged
        if merged is None or (queue.in_dram and not queue.embedding_index):
            stream.bytes = scaled_bytes(pipe, stream.bytes, phase_tiles(pipe, merged is not None))
        self._note_reads(pipe, stream, queue)
        if relay:
            node.stream = stream
        elif merged is None:
            if pipe.kind in (Kind.DRAM_EMBEDDING, Kind.DRAM_TILIZER):
                raise invalid_graph(
                    f"pipe {pipe.pipe.id}: a table's rows and the operand share a buffer, which is too large"
                )
            self._add_unpacker(pipe, node)

    def post_tm(self, pipe: Simple) -> None:
        """Add the stream of an operand that is kept whole in L1 in the order in which its kernel reads it, after its
        TMs."""
        queue = first_queue(pipe)
        node = pipe.outputs[0]
        size = _post_tm_bytes(pipe, queue)
        if node.of is not None and node.of.relay:
            stream = node.stream = self._add("relay", pipe.place, size, queue.buffer.tile_size, pipe)
        else:
            stream = self._add_unpacker(pipe, node)
            stream.bytes = size
            stream.buf_id = -1
        self._note_reads(pipe, stream, queue)

    def dram_multicast(self, pipe: Simple) -> None:
        """Add a stream that reads from DRAM and multicasts, and the streams of the receivers' operands."""
        queue = first_queue(pipe)
        tile = queue.buffer.tile_size
        stream = self._add("multicast", pipe.place, self._chunks.of(pipe) * tile, tile, pipe)
        stream.bytes = scaled_bytes(pipe, stream.bytes, pipe.outputs[0].max_tiles)
        self._note_reads(pipe, stream, queue)
        for output in pipe.outputs:
            self._add_unpacker(pipe, output)

    @staticmethod
    def _note_reads(pipe: Simple, stream: Draft, queue: BufferNode) -> None:
        """Note on a stream how many queues' buffers it reads, and, if they are in DRAM, that the NCRISC keeps track of
        them. Raises RefusedError if no phase can hold the stream's buffer."""
        settled_phase_tiles(pipe, stream.bytes // stream.msg_size)
        stream.reads = len(pipe.sources)
        if queue.in_dram:
            stream.tracked = stream.reads
        else:
            stream.tracked = 0

    def to_pcie(self, pipe: Simple) -> None:
        """Let packers' streams write to another chip over PCIe, as to a queue in DRAM."""
        self.to_dram(pipe)

    def gather_to_pcie(self, pipe: Simple) -> None:
        """Add a relay that takes tiles from packers in turn and writes them to another chip over PCIe."""
        between = pipe.outputs[0].buffer.buffer
        for source in pipe.sources:
            _stream_of(source).join(pipe)
        stream = self._add("relay", pipe.place, between.size_tiles * between.tile_size, between.tile_size, pipe)
        stream.writes = stream.tracked = 1
        _bring_output(pipe, stream)

    def pcie_read(self, pipe: Simple) -> None:
        """Add streams that read what another chip wrote over PCIe: the operand's stream alone if its buffer can serve
        both, else a relay before it."""
        between = pipe.sources[0].buffer.buffer
        node = pipe.outputs[0]
        merged = merged_bytes(pipe, between.size_tiles, _checked_operand(pipe, node), 0)
        if merged is None:
            base = between.size_tiles * between.tile_size * between.q_slots
            stream = self._add("relay", pipe.place, base, between.tile_size, pipe)
        else:
            stream = self._add_unpacker(pipe, node)
            stream.bytes = merged
            stream.buf_id = -1
        self._note_reads(pipe, stream, pipe.sources[0].buffer)
        if merged is None:
            self._add_unpacker(pipe, node)

    def pcie_multicast(self, pipe: Simple) -> None:
        """Add a stream that multicasts what another chip wrote over PCIe, and the streams of the receivers'
        operands."""
        between = pipe.sources[0].buffer.buffer
        base = between.size_tiles * between.tile_size * between.q_slots
        self._note_reads(
            pipe, self._add("multicast", pipe.place, base, between.tile_size, pipe), pipe.sources[0].buffer
        )
        for output in pipe.outputs:
            self._add_unpacker(pipe, output)

    def to_dram(self, pipe: Simple) -> None:
        """Let packers' streams write to a queue."""
        for source in pipe.sources:
            stream = _stream_of(source)
            stream.writes = stream.tracked = 1
            stream.join(pipe)

    def nothing(self, pipe: Simple) -> None:
        """Do nothing: a queue that several pipes read takes no streams of its own."""

    # Intermediate buffers

    def intermediate(self, pipe: Simple) -> None:
        """Add the stream of an intermediate buffer, which a kernel both writes and reads; of a gradient, a stream that
        also writes to DRAM."""
        buffer = pipe.outputs[0].buffer
        written = buffer.buffer
        place = pipe.outputs[0].place
        size = written.tile_size * written.size_tiles
        stream = self._add("intermediate", place, size, written.tile_size, pipe)
        stream.operand = written.operand
        stream.op = written.op
        stream.buf_id = buffer.id
        stream.pipes = {}  # its pipe stands in no file
        if pipe.kind is Kind.GRADIENT:
            stream.writes = 1
        else:
            stream.writes = 0

    def shared_intermediate(self, pipe: Simple) -> None:
        """Turn one of the packer's streams into that of an intermediate buffer which lies in the packer's L1. Raises
        RefusedError if the packer's buffer has no stream."""
        buffer = pipe.outputs[0].buffer
        if pipe.beside is not None:
            stream = pipe.beside.stream
        else:
            stream = None
        if not isinstance(stream, Draft):
            raise invalid_graph(f"intermediate buffer {buffer.id} shares L1 with a buffer that no pipe reads")
        written = buffer.buffer
        stream.kind = "intermediate"
        stream.place = pipe.outputs[0].place
        stream.operand = written.operand
        stream.bytes = written.tile_size * written.size_tiles
        stream.msg_size = written.tile_size
        stream.buf_id = buffer.id
        stream.shared_id = -1
        stream.pipes = {}
        stream.buffering = 1


_MAKERS: dict[Kind, Callable[[Makers, Simple], None]] = {
    Kind.DRAM_UNICAST: Makers.dram_read,
    Kind.DRAM_TILIZER: Makers.dram_read,
    Kind.DRAM_EMBEDDING: Makers.dram_read,
    Kind.DRAM_GATHER: Makers.dram_read,
    Kind.DRAM_MULTICAST: Makers.dram_multicast,
    Kind.DRAM_FORK: Makers.nothing,
    Kind.POST_TM: Makers.post_tm,
    Kind.PRE_TM_FORK: Makers.pre_tm_fork,
    Kind.UNICAST: Makers.unicast,
    Kind.MULTICAST: Makers.multicast,
    Kind.GATHER: Makers.gather,
    Kind.DORMANT_RELAY: Makers.dormant_relay,
    Kind.RELAY: Makers.relay,
    Kind.ETHERNET_RELAY: Makers.relay,
    Kind.ETHERNET_FIRMWARE_RELAY: Makers.relay,
    Kind.UNION: Makers.union,
    Kind.FORK: Makers.fork,
    Kind.SERIAL_FORK: Makers.serial_fork,
    Kind.PADDING_SERIAL_FORK: Makers.padding_serial_fork,
    Kind.TO_DRAM: Makers.to_dram,
    Kind.TO_PCIE: Makers.to_pcie,
    Kind.GATHER_TO_PCIE: Makers.gather_to_pcie,
    Kind.PCIE_UNICAST: Makers.pcie_read,
    Kind.PCIE_MULTICAST: Makers.pcie_multicast,
    Kind.INTERMEDIATE: Makers.intermediate,
    Kind.GRADIENT: Makers.intermediate,
    Kind.SHARED_INTERMEDIATE: Makers.shared_intermediate,
}


def _relay_tiles(sources: int, ethernet: bool) -> int:
    """Return the tiles of each relay that takes tiles from so many sources: at least GATHER_RELAY_TILES, and more for
    few sources. `ethernet` tells whether it is on an Ethernet core, where less is enough."""
    if ethernet:
        least = ETHERNET_GATHER_TILES
    else:
        least = GATHER_TILES
    if GATHER_RELAY_TILES * sources < least:
        return least // sources
    return GATHER_RELAY_TILES


def _post_tm_bytes(pipe: Simple, queue: BufferNode) -> int:
    """Return the bytes of all tiles that an operand keeps in L1 after its TMs."""
    return pipe.sources[0].tiles * pipe.inputs * queue.buffer.tile_size


def _dram_place(buffer: BufferNode) -> tuple[int, ...]:
    """Return channel, subchannel and address of a buffer in DRAM, which tell paddings apart."""
    written = buffer.buffer
    return written.dram_chan, written.dram_sub_chan, written.dram_addr


def _checked_operand(pipe: Simple, node: Node) -> BufferNode:
    """Return the kernel's operand that a pipe fills at a node. Raises RefusedError if it is none, or, unless the pipe
    reads from DRAM or PCIe, if no phase holds whole inputs of the source."""
    operand = node.kernel_operand
    if operand is None:
        raise invalid_graph(f"pipe {pipe.pipe.id} does not end in a kernel's operand")
    if pipe.kind not in _READS and node.max_tiles == 0:
        message = f"buffer {operand.id}: no phase of a stream holds a whole number of its source's inputs"
        raise RefusedError(Refusal("phases", message, node.place))
    return operand


_READS = {
    *READS_DRAM,
    Kind.POST_TM,
    Kind.PCIE_UNICAST,
    Kind.PCIE_MULTICAST,
}


def _stream_of(node: Node) -> Draft:
    """Return the stream that brings the tiles of a node. Raises RefusedError if none does."""
    if not isinstance(node.stream, Draft):
        raise invalid_graph("a pipe reads tiles that no stream brings")
    return node.stream


def _incoming(pipe: Simple) -> Draft:
    """Return the stream that brings the tiles of a pipe's first source, and note on it that it takes part in the pipe.
    Raises RefusedError if there is none."""
    stream = _stream_of(pipe.sources[0])
    stream.join(pipe)
    return stream


def _bring_output(pipe: Simple, stream: Draft) -> None:
    """Let a stream bring the tiles of a pipe's first output."""
    pipe.outputs[0].stream = stream
