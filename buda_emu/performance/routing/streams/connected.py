"""A pipe graph with references between buffers and pipes, completed as pipegen2 completes it.

An embedding's table pipe also waits for the indices. An intermediate buffer gets a pipe of its own, from a copy of
itself, and from the packer's buffer whose L1 it shares. A queue that is written and read in one epoch becomes two
buffers. A relay between a fetch of operands after their TMs and the reader is removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from buda_emu.performance.routing.pipes.model import NO_PADDING, POST_TM, Buffer, Pipe, PipeGraph
from buda_emu.performance.routing.streams.model import Place, Refusal, RefusedError

# Numbers of operands, which say what a buffer is for; an intermediate is read and written by the kernel.
_INPUTS = range(16)
_OUTPUTS = range(16, 32)
_INTERMEDIATES = range(24, 32)
_RELAYS = range(32, 64)
NOWHERE = Place(0, 255, 255)  # of pipes from a copy of an intermediate buffer, which are on no core


class BufferNode:
    """A buffer with the pipe that fills it and the pipes that read it."""

    __slots__ = (
        "buffer",
        "dram_input",
        "embedding_index",
        "id",
        "in_dram",
        "in_l1",
        "indices_per_input",
        "indices_per_tile",
        "input",
        "intermediate",
        "kernel_input",
        "kernel_output",
        "outputs",
        "place",
        "post_tm",
        "pre_tm",
        "reads_dram",
        "relay",
        "shared",
    )

    def __init__(self, buffer: Buffer, id: int | None = None) -> None:
        self.buffer = buffer
        self.id = buffer.id
        if id is not None:
            self.id = id
        self.place = Place(buffer.chip, buffer.row, buffer.column)
        self.input: PipeNode | None = None
        self.outputs: dict[PipeNode, None] = {}
        self.shared = buffer.buffer_space_shared
        self.embedding_index = buffer.embedding_index
        self.indices_per_input = buffer.embedding_indices_per_input
        self.indices_per_tile = buffer.embedding_indices_per_tile
        operand = buffer.operand
        self.intermediate = operand in _INTERMEDIATES
        self.kernel_input = operand in _INPUTS or self.intermediate
        self.kernel_output = operand in _OUTPUTS
        self.relay = operand in _RELAYS
        self.in_dram = _is_in_dram(buffer)
        prefetched = buffer.dram_buf_flag and not buffer.dram_buf_streaming and not self.intermediate
        self.post_tm = prefetched and buffer.prefetch_type == POST_TM
        self.pre_tm = prefetched and not self.post_tm
        self.dram_input = (self.in_dram or prefetched) and not buffer.untilized_output
        self.reads_dram = self.dram_input and not self.pre_tm
        self.in_l1 = not self.reads_dram and not self.in_dram


def _is_in_dram(buffer: Buffer) -> bool:
    """Return whether a buffer is a queue in DRAM: one with slots, and without the flags of other buffers in DRAM."""
    accessed_otherwise = buffer.dram_buf_flag or buffer.dram_buf_streaming or buffer.write_dram_buf_flag
    return buffer.dram_io_flag and buffer.q_slots > 0 and not accessed_otherwise


Inputs = tuple[tuple[BufferNode, int], ...]
"""Buffers and the tile of each where the pipe begins to read, in the order of reading."""


class PipeNode:
    """A pipe between buffers. `outputs` has a list for each scatter index; outputs that `pipe_consumer_repeat` repeats
    stand once."""

    __slots__ = (
        "consumer_repeat",
        "counts",
        "duplicates",
        "entries",
        "from_l1",
        "id",
        "inputs",
        "outputs",
        "padded",
        "periodic_repeat",
        "pipe",
        "places",
        "post_tm",
        "reads_dram",
        "sources",
    )

    def __init__(self, pipe: Pipe, id: int | None = None) -> None:
        self.pipe = pipe
        if id is None:
            self.id = pipe.id
        else:
            self.id = id
        self.inputs: Inputs = ()
        self.outputs: list[list[BufferNode]] = []
        self.padded: dict[int, Inputs] = {}
        self.places: Sequence[Place] = ()
        self.periodic_repeat = max(1, pipe.pipe_periodic_repeat)
        self.consumer_repeat = max(1, pipe.pipe_consumer_repeat)
        self.duplicates = False
        self.sources: list[BufferNode] = []
        self.entries: tuple[tuple[int, int], ...] = ()
        self.counts: list[int] = []
        self.reads_dram = self.post_tm = self.from_l1 = False

    def settle(self) -> None:
        """Compute the sources and flags that are read often; to be called once inputs and outputs no longer change."""
        self.sources, self.entries, self.counts = by_source(self.inputs)
        self.reads_dram = all(source.reads_dram for source in self.sources)
        self.post_tm = any(source.post_tm for source in self.sources)
        self.from_l1 = all(source.in_l1 for source in self.sources)

    @property
    def single_output(self) -> BufferNode | None:
        """Return the only buffer that the pipe fills, None if there are several."""
        if len(self.outputs) == 1 and len(self.outputs[0]) == 1:
            return self.outputs[0][0]
        return None


def by_source(inputs: Inputs) -> tuple[list[BufferNode], tuple[tuple[int, int], ...], list[int]]:
    """Return the distinct buffers of the inputs; for each input (index of its buffer among these, tile in it); and the
    number of inputs from each buffer."""
    index: dict[BufferNode, int] = {}
    entries = tuple((index.setdefault(buffer, len(index)), offset) for buffer, offset in inputs)
    counts = [0] * len(index)
    for source, _ in entries:
        counts[source] += 1
    return list(index), entries, counts


class Connected:
    """All buffers and pipes of a graph, connected and completed as pipegen2 does, in its order. The constructor raises
    RefusedError for a graph that pipegen2 does not accept."""

    def __init__(self, graph: PipeGraph) -> None:
        self.buffers = [BufferNode(buffer) for buffer in graph.buffers]
        self.pipes = [PipeNode(pipe) for pipe in graph.pipes]
        self._by_id: dict[int, tuple[BufferNode, int]] = {}
        for node in self.buffers:
            self._register_ids(node)
        for pipe in self.pipes:
            self._connect(pipe)
        self._make_pipes_wait_for_indices()
        self._add_pipes_of_intermediates()
        self._split_queues_written_and_read()
        self._remove_post_tm_relays()
        for pipe in self.pipes:
            pipe.settle()

    def _register_ids(self, node: BufferNode) -> None:
        """Enter a buffer under each id by which pipes name it: one for each of its pieces. Raises RefusedError for an
        id that is taken."""
        for offset in _pieces(node.buffer):
            if self._by_id.setdefault(node.id + offset, (node, offset)) != (node, offset):
                raise invalid_graph(f"two buffers have the id {node.id + offset}")

    def _find_buffer(self, id: int, pipe: PipeNode) -> tuple[BufferNode, int]:
        """Return the buffer that an id names and the tile of it where that id's piece begins. Raises RefusedError,
        which names the pipe, if there is none."""
        entry = self._by_id.get(id)
        if entry is None:
            raise invalid_graph(f"pipe {pipe.id} names buffer {id}, which there is not")
        return entry

    def _connect(self, pipe: PipeNode) -> None:
        """Set the inputs, outputs, padding and places of a pipe node, and enter the pipe at the nodes of these buffers.
        Raises RefusedError for a buffer that is not there, for a pipe without inputs or outputs, and for fewer cores
        than scatter indices."""
        pipe.inputs = tuple(self._find_buffer(id, pipe) for id in pipe.pipe.inputs)
        for node, _ in pipe.inputs:
            node.outputs[pipe] = None
        step = pipe.consumer_repeat
        written = pipe.pipe
        if not pipe.inputs or not written.outputs:
            raise invalid_graph(f"pipe {pipe.id} has no input or no output")
        pipe.duplicates = step > 1 or _has_equal_turns(written.outputs[::step])
        for index, padding in enumerate(written.output_padding[::step]):
            if padding != NO_PADDING:
                pipe.padded[index] = self._padding(pipe, padding)
        self._connect_outputs(pipe, written.outputs[::step])
        pipe.places = [Place(*place) for place in written.mcast_core_rc[::step]]
        if len(pipe.places) < len(pipe.outputs):
            raise invalid_graph(f"pipe {pipe.id} has {len(pipe.outputs)} scatter indices and {len(pipe.places)} cores")

    def _connect_outputs(self, pipe: PipeNode, turns: Iterable[Iterable[int]]) -> None:
        """Connect a pipe with the buffers that it fills. `turns` has their ids for each scatter index. Raises
        RefusedError for an id that no buffer has."""
        for outputs in turns:
            nodes = [self._find_buffer(id, pipe)[0] for id in outputs]
            pipe.outputs.append(nodes)
            for node in nodes:
                node.input = pipe

    def _padding(self, pipe: PipeNode, id: int) -> Inputs:
        """Return the inputs that a pipe reads at a scatter index where padding replaces its own inputs: padding buffer
        `id`, repeated until its tiles are as many as theirs. Raises RefusedError if these are no multiple of the
        buffer's."""
        node, _ = self._find_buffer(id, pipe)
        node.outputs[pipe] = None
        tiles = sum(source.buffer.scatter_gather_num_tiles for source, _ in pipe.inputs)
        count, left = divmod(tiles, node.buffer.scatter_gather_num_tiles)
        if left:
            raise invalid_graph(
                f"pipe {pipe.id}: padding buffer {id} does not divide the {tiles} tiles of a scatter index"
            )
        return tuple(repeat((node, 0), count))

    def _make_pipes_wait_for_indices(self) -> None:
        """Let each pipe that reads an embedding table also wait for the indices on its core, and mark their buffer as
        such. Raises RefusedError if there are none."""
        tables = [pipe for pipe in self.pipes if pipe.inputs[0][0].buffer.embedding_table]
        operands: dict[Place, list[BufferNode]] = {}
        for node in self.buffers if tables else ():
            if node.kernel_input:
                operands.setdefault(node.place, []).append(node)
        for pipe in tables:
            table = pipe.outputs[0][0]
            index = next((candidate for candidate in operands.get(table.place, ()) if candidate is not table), None)
            if index is None or index.input is None or len(index.input.inputs) != 1:
                raise invalid_graph(
                    f"pipe {pipe.id} reads an embedding table, but no pipe with one input reads its indices"
                )
            pipe.inputs = (*pipe.inputs, (index, 0))
            index.outputs[pipe] = None
            queue = index.input.inputs[0][0].buffer
            index.embedding_index = True
            index.indices_per_input = queue.embedding_indices_per_input
            index.indices_per_tile = queue.embedding_indices_per_tile

    def _add_pipes_of_intermediates(self) -> None:
        """Give each buffer that no pipe fills or reads (the intermediate ones) a new pipe from a copy of itself, and
        from the packer's buffer whose L1 it shares, if any."""
        sharing = {node.shared: node for node in reversed(self.buffers) if node.shared != -1}
        copies = list[BufferNode]()
        for node in self.buffers:
            if node.input is not None or node.outputs:
                continue
            copy = BufferNode(node.buffer, node.id - 2)
            pipe = PipeNode(Pipe(id=node.id - 1, inputs=(copy.id,), outputs=((node.id,),)))
            pipe.places = [NOWHERE]
            inputs = [(copy, 0)]
            packer = sharing.get(node.id)
            if packer is not None:
                node.shared = copy.shared = packer.id
                inputs.append((packer, 0))
            pipe.inputs = tuple(inputs)
            for source, _ in inputs:
                source.outputs[pipe] = None
            pipe.outputs = [[node]]
            node.input = pipe
            copies.append(copy)
            self.pipes.append(pipe)
        self.buffers += copies

    def _split_queues_written_and_read(self) -> None:
        """Split each queue that is written and read in one epoch: the writing pipe gets a buffer of its own."""
        for pipe in self.pipes:
            queue = pipe.single_output
            if queue is not None and queue.in_dram and queue.outputs:
                written = BufferNode(queue.buffer, queue.id + 1)
                written.input = pipe
                queue.input = None
                pipe.outputs = [[written]]
                self.buffers.append(written)

    def _remove_post_tm_relays(self) -> None:
        """Remove each relay between a fetch of operands after their TMs and the one pipe that reads it: that pipe takes
        over the fetch's inputs, and is split if it fills several buffers."""
        gone = set[PipeNode | BufferNode]()
        added = list[PipeNode]()
        for fetch, relay, reader in self._relay_chains():
            _hand_over(fetch, reader, fetch.inputs)
            gone |= {fetch, relay}
            if reader.single_output is None:
                added += _split_by_output(reader)
                gone.add(reader)
        self.buffers = [node for node in self.buffers if node not in gone]
        self.pipes = [pipe for pipe in self.pipes if pipe not in gone] + added

    def _relay_chains(self) -> Iterator[tuple[PipeNode, BufferNode, PipeNode]]:
        """Yield (fetch, relay, reader) for each pipe that fetches operands after their TMs into a relay only, and the
        one pipe that reads this relay."""
        for fetch in self.pipes:
            relay = fetch.single_output
            if relay is None or not any(source.post_tm for source, _ in fetch.inputs):
                continue
            if len(relay.outputs) == 1 and relay.buffer.is_post_tm_relay_buf:
                (reader,) = relay.outputs
                if len(reader.inputs) == 1:
                    yield fetch, relay, reader


def _pieces(buffer: Buffer) -> Iterable[int]:
    """Return the first tile of each piece that pipes can address in a buffer; one piece for a buffer that is not
    scattered."""
    if buffer.is_scatter:
        pieces = max(1, buffer.replicate)
    else:
        pieces = 1
    return (piece * buffer.scatter_gather_num_tiles for piece in range(pieces))


def invalid_graph(message: str) -> RefusedError:
    """Return, to be raised, the error for a pipe graph that pipegen2 does not accept."""
    return RefusedError(Refusal("pipe_graph", message))


def _has_equal_turns(turns: Sequence[tuple[int, ...]]) -> bool:
    """Return whether a pipe fills the same buffers at two of its scatter indices. `turns` has the ids of the buffers
    that it fills, for each index."""
    return len(set(turns)) < len(turns)


def _hand_over(old: PipeNode, new: PipeNode, inputs: Inputs) -> None:
    """Let the pipe `new` read `inputs`, the inputs of `old`, in place of `old`, and repeat them as often."""
    new.inputs = inputs
    for source, _ in inputs:
        source.outputs.pop(old, None)
        source.outputs[new] = None
    new.periodic_repeat = old.periodic_repeat


def _split_by_output(pipe: PipeNode) -> list[PipeNode]:
    """Return a copy of a pipe for each buffer that it fills at its first scatter index, and connect the copies in its
    place; the pipe itself has to be dropped by the caller."""
    pipes = list[PipeNode]()
    for number, output in enumerate(pipe.outputs[0]):
        copy = PipeNode(pipe.pipe, pipe.id + number + 1)
        copy.consumer_repeat = 1
        copy.outputs = [[output]]
        copy.places = [output.place]
        output.input = copy
        _hand_over(pipe, copy, pipe.inputs)
        pipes.append(copy)
    return pipes
