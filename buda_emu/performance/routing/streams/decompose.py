"""Decomposition of pipes into simple pipes, subgraph by subgraph, in pipegen2's order."""

from collections.abc import Iterable, Sequence

from buda_emu.performance.routing.streams.connected import (
    NOWHERE,
    BufferNode,
    Connected,
    Inputs,
    PipeNode,
    by_source,
    invalid_graph,
)
from buda_emu.performance.routing.streams.model import CoreLimits, Place
from buda_emu.performance.routing.streams.rational import Kind, Node, Simple, pcie_buffer


class Subgraph:
    """A connected component of buffers and pipes, decomposed into simple pipes and nodes. The constructor raises
    RefusedError for what pipegen2 does not accept."""

    def __init__(self, buffers: Sequence[BufferNode], pipes: Sequence[PipeNode], limits: CoreLimits) -> None:
        self.nodes: list[Node] = []
        self.pipes: list[Simple] = []
        self._limits = limits
        self._node_of: dict[BufferNode, Node] = {}
        for buffer in buffers:
            self._node_of[buffer] = self._add_node(buffer)
        for pipe in pipes:
            self._take_apart(pipe)
        for buffer in buffers:
            if len(buffer.outputs) > 1 or buffer.buffer.buffer_type == "packer" or buffer.pre_tm:
                self._add_fork(buffer)
        for buffer in buffers:
            if buffer.relay:
                self._replace_by_virtual(self._node_of[buffer])

    # Nodes

    def _add_node(self, buffer: BufferNode) -> Node:
        """Return a new node for a buffer, added to the subgraph. Raises RefusedError for a buffer without a known role,
        or on no core of the chip."""
        _check_role(buffer)
        node = Node(buffer, self._place(buffer), buffer.buffer.tile_size, virtual=False)
        self.nodes.append(node)
        return node

    def _place(self, buffer: BufferNode) -> Place:
        """Return the core of a buffer: a worker core, or the Ethernet core of its channel. Raises RefusedError if the
        chip does not have it."""
        channel = buffer.buffer.ethernet_chan
        if buffer.place[1:3] == NOWHERE[1:3]:
            return buffer.place
        if channel >= 0:
            return self._ethernet(buffer.place.chip, channel)
        return self._checked_worker(buffer.place)

    def _checked_worker(self, place: Place) -> Place:
        """Return `place` if the chip has such a worker core. Raises RefusedError otherwise."""
        rows = len(self._limits.rows)
        columns = len(self._limits.columns)
        if place.row >= rows or place.column >= columns:
            raise invalid_graph(f"there is no {place}: a chip has {rows} rows and {columns} columns of worker cores")
        return place

    def _ethernet(self, chip: int, channel: int) -> Place:
        """Return the place of the Ethernet core of a channel. Raises RefusedError if the chip does not have it."""
        cores = self._limits.ethernet_cores
        if channel >= len(cores):
            raise invalid_graph(f"there is no Ethernet channel {channel}: the chip has {len(cores)}")
        return Place(chip, *cores[channel], True)

    def _pipe_place(self, pipe: PipeNode, index: int) -> Place:
        """Return the core that carries out a pipe at scatter index `index`. Raises RefusedError if the chip does not
        have it."""
        place = pipe.places[index]
        if place == NOWHERE:
            return place
        if pipe.pipe.ethernet_chan >= 0:
            return self._ethernet(place.chip, pipe.pipe.ethernet_chan)
        if pipe.pipe.ethernet_pipe:
            return self._on_noc(place)
        return self._checked_worker(place)

    def _on_noc(self, place: Place) -> Place:
        """Return the core of a pipe between chips, whose `place` is in NoC coordinates: a worker core in logical ones,
        any other core as it is."""
        limits = self._limits
        chip, row, column = place[:3]
        if row not in limits.rows or column not in limits.columns:
            return Place(chip, row, column, True)  # of no matter where no stream is made there
        return Place(chip, limits.rows.index(row), limits.columns.index(column))

    def _add_virtual(self, of: BufferNode | None, place: Place, tile_size: int) -> Node:
        """Return a new virtual node on a core, added to the subgraph. `of` is the buffer that it stands for, None if
        there is none."""
        node = Node(of, place, tile_size)
        self.nodes.append(node)
        return node

    def _replace_by_virtual(self, node: Node) -> None:
        """Put a new virtual node in the place of `node` on its pipes: for the stream that passes on a relay's tiles, or
        that waits for indices."""
        virtual = self._add_virtual(node.of, node.place, node.tile_size)
        if node.input is not None:
            filled = node.input.outputs
            filled[filled.index(node)] = virtual
            virtual.input = node.input
            node.input = None
        for pipe in node.outputs:
            pipe.read_through(node, virtual)
        node.outputs = []
        self._node_of[node.buffer] = virtual

    # Pipes

    def _take_apart(self, pipe: PipeNode) -> None:
        """Decompose a pipe into simple pipes, scatter index by scatter index; if there are several indices, also put
        forks behind what they read, since they take turns."""
        first = len(self.pipes)
        sending: dict[tuple[int, ...], Simple] = {}
        for index, outputs in enumerate(pipe.outputs):
            if pipe.pipe.mmio_pipe:
                self._through_pcie(pipe, index, outputs, sending)
            else:
                self._take_apart_scatter_index(pipe, index, outputs, sending)
        if len(pipe.outputs) > 1:
            self._add_serial_forks(pipe, self.pipes[first:])

    def _take_apart_scatter_index(
        self, pipe: PipeNode, index: int, outputs: list[BufferNode], sending: dict[tuple[int, ...], Simple]
    ) -> None:
        """Make the simple pipes that bring a pipe's tiles to `outputs`, the buffers of scatter index `index`. `sending`
        keeps the sending pipes by the ids of their outputs, for indices with the same outputs to share one. Raises
        RefusedError for a pipe of no kind that pipegen2 knows."""
        target = outputs[0]
        one_source = len(pipe.sources) == 1
        one_output = len(outputs) == 1
        joins = self._joins_intermediates(pipe)
        direct = one_source and (not pipe.duplicates or self._multicasts_itself(pipe))
        if _stays_in_l1(pipe) and not joins and not direct:
            self._receive_and_send(pipe, index, outputs, sending)
        elif one_source and one_output:
            kind = self._direct_kind(pipe, index, target)
            self._connect_inputs(self._add_simple(kind, pipe, index, pipe.periodic_repeat), pipe, index).fill(
                self._node_of[target]
            )
        elif one_source or (pipe.reads_dram and not one_output):
            self._multicast(pipe, index, outputs)
        elif (kind := self._join_kind(pipe, target, joins)) is not None:
            self._join(kind, pipe, index, target)
        else:
            raise invalid_graph(f"pipe {pipe.id}, scatter index {index}, is of no kind that pipegen2 knows")

    def _multicast(self, pipe: PipeNode, index: int, outputs: list[BufferNode]) -> None:
        """Make one simple pipe that brings the inputs of a scatter index to all its outputs."""
        if pipe.reads_dram:
            kind = Kind.DRAM_MULTICAST
        else:
            kind = Kind.MULTICAST
        simple = self._connect_inputs(self._add_simple(kind, pipe, index, pipe.periodic_repeat), pipe, index)
        simple.direct = kind is Kind.MULTICAST and self._multicasts_itself(pipe)
        for output in outputs:
            simple.fill(self._node_of[output])

    def _add_simple(self, kind: Kind, pipe: PipeNode, index: int, repeat: int) -> Simple:
        """Return a new simple pipe for a part of `pipe` at a scatter index, added to the subgraph, still without nodes.
        `repeat` is how often its inputs are read."""
        simple = Simple(kind, pipe, self._pipe_place(pipe, index), repeat)
        simple.turn = index
        self.pipes.append(simple)
        return simple

    def _connect_inputs(self, simple: Simple, pipe: PipeNode, index: int) -> Simple:
        """Let a simple pipe read the inputs of a scatter index, those of `pipe` or the padding that replaces them, and
        return it."""
        sources = pipe.sources
        entries = pipe.entries
        counts = pipe.counts
        padding = pipe.padded.get(index)
        if padding is not None:
            sources, entries, counts = by_source(padding)
        simple.sources = [self._node_of[source] for source in sources]
        simple.entries = entries
        simple.counts = counts
        for node in simple.sources:
            node.outputs.append(simple)
        return simple

    @staticmethod
    def _joins_intermediates(pipe: PipeNode) -> bool:
        """Return whether a pipe brings an intermediate buffer together with the packer's buffer whose L1 it shares."""
        output = pipe.single_output
        return (
            output is not None
            and output.intermediate
            and len(pipe.inputs) == 2
            and any(node.intermediate for node, _ in pipe.inputs)
        )

    def _multicasts_itself(self, pipe: PipeNode) -> bool:
        """Return whether the packer's stream itself does the multicast of a pipe."""
        return pipe.pipe.direct_mcast and self._limits.packer_multicast

    def _direct_kind(self, pipe: PipeNode, index: int, output: BufferNode) -> Kind:
        """Return the kind of a simple pipe from one source buffer to the one buffer `output`, at scatter index `index`.
        Raises RefusedError for a relay between chips that is not on Ethernet cores."""
        source = (pipe.padded.get(index) or pipe.inputs)[0][0]
        if source.buffer.hw_tilize:
            return Kind.DRAM_TILIZER
        if pipe.post_tm:
            return Kind.POST_TM
        if pipe.reads_dram:
            return Kind.DRAM_UNICAST
        if output.in_dram:
            return Kind.TO_DRAM
        if len(pipe.inputs) == 1 and source.intermediate and pipe.single_output is not None and output.intermediate:
            if output.buffer.buffer_type == "gradient_op":
                return Kind.GRADIENT
            return Kind.INTERMEDIATE
        if output.relay:
            return self._relay_kind(source, output)
        return Kind.UNICAST

    @staticmethod
    def _relay_kind(source: BufferNode, relay: BufferNode) -> Kind:
        """Return the kind of a simple pipe that fills a relay. Raises RefusedError for a relay between chips that is
        not on Ethernet cores."""
        if source.place.chip == relay.place.chip:
            return Kind.RELAY
        if {source.buffer.buffer_type, relay.buffer.buffer_type} != {"ethernet_relay"}:
            raise invalid_graph(
                f"relay {relay.id} is on another chip than its source, and one of them is not an Ethernet relay"
            )
        if relay.buffer.use_ethernet_fw_stream:
            return Kind.ETHERNET_FIRMWARE_RELAY
        return Kind.ETHERNET_RELAY

    @staticmethod
    def _join_kind(pipe: PipeNode, output: BufferNode, joins: bool) -> Kind | None:
        """Return the kind of a simple pipe from several buffers to one output, None if pipegen2 knows none. `joins`
        tells whether one of them is an intermediate buffer."""
        if pipe.inputs[0][0].buffer.embedding_table:
            return Kind.DRAM_EMBEDDING
        if joins:
            return Kind.SHARED_INTERMEDIATE
        if pipe.post_tm and (pipe.reads_dram or output.in_dram):
            return Kind.POST_TM
        if pipe.reads_dram:
            return Kind.DRAM_GATHER
        if output.in_dram:
            return Kind.TO_DRAM
        return None

    def _join(self, kind: Kind, pipe: PipeNode, index: int, output: BufferNode) -> None:
        """Make the simple pipe from several buffers to one output at scatter index `index`. It reads neither an
        embedding's indices nor a packer's shared buffer: it only waits for them, or takes over their stream."""
        if kind is Kind.DRAM_EMBEDDING:
            self._replace_by_virtual(self._node_of[pipe.inputs[-1][0]])
        if kind is Kind.SHARED_INTERMEDIATE:
            repeat = 1
        else:
            repeat = pipe.periodic_repeat
        simple = self._connect_inputs(self._add_simple(kind, pipe, index, repeat), pipe, index)
        if kind in (Kind.DRAM_EMBEDDING, Kind.SHARED_INTERMEDIATE):  # indices come last, or the packer's buffer
            simple.beside = simple.sources.pop()
            simple.entries = pipe.entries[:-1]
            simple.counts = pipe.counts[:-1]
        simple.fill(self._node_of[output])

    def _receive_and_send(
        self, pipe: PipeNode, index: int, outputs: list[BufferNode], sending: dict[tuple[int, ...], Simple]
    ) -> None:
        """Decompose a pipe between L1 buffers at a scatter index into one simple pipe that receives, by a relay or a
        gather, and one that sends on. Indices with the same outputs share the one that sends: `sending` keeps it by the
        ids of the outputs."""
        one_relay = len(pipe.sources) == 1 or pipe.duplicates or pipe.pipe.dis_gather_opt
        if one_relay:
            kind = Kind.DORMANT_RELAY
        else:
            kind = Kind.GATHER
        receiving = self._connect_inputs(self._add_simple(kind, pipe, index, pipe.periodic_repeat), pipe, index)
        source = (pipe.padded.get(index) or pipe.inputs)[0][0]
        between = self._add_virtual(None, receiving.place, source.buffer.tile_size)
        receiving.fill(between)
        key = tuple(output.id for output in outputs)
        sends = sending.get(key)
        if sends is None:
            sends = sending[key] = self._send(pipe, index, outputs, source)
        sends.read(between)

    def _send(self, pipe: PipeNode, index: int, outputs: list[BufferNode], source: BufferNode) -> Simple:
        """Return the new simple pipe that sends what was received to `outputs`, which the caller has to connect; if
        several scatter indices send to the same outputs, a union before it instead, which gets the input of each.
        `source` is the first buffer that is read."""
        if len(outputs) > 1:
            kind = Kind.MULTICAST
        else:
            if outputs[0].relay:
                kind = self._relay_kind(source, outputs[0])
            else:
                kind = Kind.UNICAST
        simple = self._add_simple(kind, pipe, index, 1)
        for output in outputs:
            simple.fill(self._node_of[output])
        if not _has_repeated_outputs(pipe):
            return simple
        between = self._add_virtual(None, simple.place, 0)
        simple.read(between)
        union = self._add_simple(Kind.UNION, pipe, index, 1)
        union.fill(between)
        return union

    def _through_pcie(
        self, pipe: PipeNode, index: int, outputs: list[BufferNode], sending: dict[tuple[int, ...], Simple]
    ) -> None:
        """Decompose the sends of a pipe to another chip over PCIe, at a scatter index: a write on a core of one chip,
        and a read on a core of the other. Indices with the same outputs share a read: `sending` keeps the union before
        it by the ids of the outputs."""
        inputs = pipe.padded.get(index) or pipe.inputs
        between = pcie_buffer(inputs, outputs)
        gathers = len(inputs) > 1 or any(source.buffer.is_scatter for source, _ in inputs)
        if gathers:
            kind = Kind.GATHER_TO_PCIE
        else:
            kind = Kind.TO_PCIE
        writes = Simple(kind, pipe, self._writing_place(inputs, index), pipe.periodic_repeat)
        writes.turn = index
        key = tuple(output.id for output in outputs)
        if _has_repeated_outputs(pipe):
            union = sending.get(key)
        else:
            union = None
        read = union is not None
        if _has_repeated_outputs(pipe):
            if union is None:
                union = sending[key] = self._add_simple(Kind.UNION, pipe, index, 1)
                union.fill(self._add_virtual(between, between.place, between.buffer.tile_size))
            node = self._add_virtual(between, writes.place, between.buffer.tile_size)
            union.read(node)
        else:
            node = self._add_virtual(between, between.place, between.buffer.tile_size)
            node.virtual = False
        writes.fill(node)
        self.pipes.append(self._connect_inputs(writes, pipe, index))
        if not read:
            self._read_from_pcie(pipe, index, outputs, between)

    def _read_from_pcie(self, pipe: PipeNode, index: int, outputs: list[BufferNode], between: BufferNode) -> None:
        """Make the simple pipe that reads, on the chip of `outputs`, what was written to the buffer `between`."""
        if len(outputs) > 1:
            kind = Kind.PCIE_MULTICAST
        else:
            kind = Kind.PCIE_UNICAST
        reads = self._add_simple(kind, pipe, index, 1)
        reads.place = reads.place._replace(chip=outputs[0].place.chip)
        source = self._add_virtual(between, between.place, between.buffer.tile_size)
        source.virtual = False
        reads.read(source)
        for output in outputs:
            reads.fill(self._node_of[output])

    def _writing_place(self, inputs: Inputs, index: int) -> Place:
        """Return the core that writes to another chip: the first source's; at odd scatter indices that of a source on
        another core, if there is one."""
        places = [self._node_of[buffer].place for buffer, _ in inputs]
        first = places[0]
        if index % 2 == 0:
            return first
        return next((place for place in places if place != first), first)

    # Forks

    def _add_serial_forks(self, pipe: PipeNode, simple_pipes: Iterable[Simple]) -> None:
        """Put a fork behind each buffer, and each padding, that a pipe with several scatter indices reads, since its
        simple pipes (`simple_pipes`) take turns."""
        behind = set(simple_pipes)
        buffers = dict.fromkeys(pipe.sources)
        for padding in pipe.padded.values():
            buffers |= dict.fromkeys(node for node, _ in padding)
        for buffer in buffers:
            node = self._node_of[buffer]
            if buffer.buffer.is_padding:
                kind = Kind.PADDING_SERIAL_FORK
            else:
                kind = Kind.SERIAL_FORK
            fork = Simple(kind, pipe, node.place)
            fork.serial_outputs = len(pipe.outputs)
            fork.padded_outputs = len(pipe.padded)
            self._put_fork(node, fork, behind)

    def _add_fork(self, buffer: BufferNode) -> None:
        """Put a fork behind a buffer, with a branch for each simple pipe that reads it; where the buffer lies decides
        the kind. Branches that lead to a packer's multicast come first."""
        if not buffer.dram_input:
            kind = Kind.FORK
        elif buffer.pre_tm:
            kind = Kind.PRE_TM_FORK
        else:
            kind = Kind.DRAM_FORK
        node = self._node_of[buffer]
        fork = Simple(kind, None, node.place)
        self._put_fork(node, fork, set(node.outputs))
        if any(map(self._multicasts_itself, buffer.outputs)):
            fork.outputs.sort(key=lambda output: not _leads_to_packer_multicast(output))

    def _put_fork(self, node: Node, fork: Simple, behind: set[Simple]) -> None:
        """Put `fork` between a node and those of its readers that are in `behind`; each of them then reads a virtual
        node of its own."""
        serial = fork.kind in (Kind.SERIAL_FORK, Kind.PADDING_SERIAL_FORK)
        fork.sources = [node]
        other_pipes = list[Simple]()
        for pipe in node.outputs:
            if pipe not in behind:
                other_pipes.append(pipe)
                continue
            virtual = self._add_virtual(node.of, pipe.place if serial else node.place, node.tile_size)
            if serial:
                virtual.turn = pipe.turn
            else:
                virtual.turn = None
            fork.fill(virtual)
            pipe.read_through(node, virtual)
        node.outputs = [*other_pipes, fork]
        self.pipes.append(fork)


def _stays_in_l1(pipe: PipeNode) -> bool:
    """Return whether a pipe reads only from L1 and the outputs of its first scatter index lie in L1."""
    return pipe.from_l1 and all(node.in_l1 for node in pipe.outputs[0])


def _has_repeated_outputs(pipe: PipeNode) -> bool:
    """Return whether several scatter indices of a pipe have the same outputs, adjacent repeats not counted."""
    written = pipe.pipe.outputs[:: pipe.consumer_repeat]
    return len(pipe.outputs) > 1 and len(set(written)) < len(written)


def _leads_to_packer_multicast(node: Node) -> bool:
    """Return whether a pipe after the node is a multicast by a packer's own stream."""
    ahead = [node]
    while ahead:
        for pipe in ahead.pop().outputs:
            if pipe.direct:
                return True
            ahead += pipe.outputs
    return False


def _check_role(buffer: BufferNode) -> None:
    """Raise RefusedError for a buffer whose type does not fit the pipes at it, so that pipegen2 knows no role for
    it."""
    kind = buffer.buffer.buffer_type
    if buffer.intermediate:
        has_role = kind in ("gradient_op", "intermediate")
    elif buffer.input is None:
        has_role = buffer.dram_input or buffer.kernel_output
    elif not buffer.outputs or buffer.embedding_index:
        has_role = buffer.in_dram or buffer.kernel_input
    else:
        has_role = buffer.relay
    if not has_role:
        raise invalid_graph(
            f"buffer {buffer.id} ({kind}) is neither an input, an output, an intermediate buffer nor a relay"
        )


def subgraphs(connected: Connected, limits: CoreLimits) -> Iterable[Subgraph]:
    """Yield each connected set of buffers and pipes, in the order in which pipegen2 takes them."""
    groups = _Groups(connected)
    buffers: dict[int, list[BufferNode]] = {}
    pipes: dict[int, list[PipeNode]] = {}
    for buffer in connected.buffers:
        buffers.setdefault(groups.root(buffer.id), []).append(buffer)
    for pipe in connected.pipes:
        pipes.setdefault(groups.root(pipe.id), []).append(pipe)
    for root in sorted(buffers):
        yield Subgraph(buffers[root], pipes.get(root, ()), limits)


class _Groups:
    """Union-find by size over the ids of buffers and pipes. The id of the root orders the groups."""

    def __init__(self, connected: Connected) -> None:
        self._parent: dict[int, int] = {}
        self._size: dict[int, int] = {}
        for node in (*connected.buffers, *connected.pipes):
            self._parent[node.id] = node.id
            self._size[node.id] = 1
        for pipe in connected.pipes:
            for buffer in pipe.sources:
                self._join(buffer.id, pipe.id)
            for padding in pipe.padded.values():
                self._join(padding[0][0].id, pipe.id)
            for outputs in pipe.outputs:
                for buffer in outputs:
                    self._join(buffer.id, pipe.id)
        for buffer in connected.buffers:
            if buffer.shared != -1:
                self._join(buffer.id, buffer.shared)

    def root(self, id: int) -> int:
        """Return the id that stands for the group of a buffer or pipe."""
        parent = self._parent
        while parent[id] != id:
            parent[id] = parent[parent[id]]
            id = parent[id]
        return id

    def _join(self, left: int, right: int) -> None:
        """Unite the groups of two ids (buffers or pipes), under the root of the larger group."""
        left = self.root(left)
        right = self.root(right)
        if left == right:
            return
        if self._size[left] < self._size[right]:
            left, right = right, left
        self._size[left] += self._size[right]
        self._parent[right] = left
