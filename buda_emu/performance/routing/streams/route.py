"""Routing of one epoch: from its pipes to the streams of its cores."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from buda_emu.performance.routing.pipes.model import PipeGraph
from buda_emu.performance.routing.streams.connected import BufferNode, Connected, invalid_graph
from buda_emu.performance.routing.streams.counting import Linking, Steps, count
from buda_emu.performance.routing.streams.decompose import Subgraph, subgraphs
from buda_emu.performance.routing.streams.making import Draft, Makers
from buda_emu.performance.routing.streams.model import (
    ETHERNET_EXTRA_STREAMS,
    ETHERNET_MULTICAST_STREAMS,
    ETHERNET_STREAMS,
    LIMITS,
    MOST_EPOCH_TILES,
    NCRISC_READERS,
    NCRISC_WRITERS,
    READERS_OF_A_QUEUE,
    TILE_HEADER_BUFFER,
    TRACKED_QUEUES,
    TRACKING_BYTES,
    CoreLimits,
    CoreUse,
    Place,
    Refusal,
    RefusedError,
    Routed,
    Stream,
)
from buda_emu.performance.routing.streams.phases import Phases, measure
from buda_emu.performance.routing.streams.rational import MULTICASTS, READS_DRAM, Kind, Node, Simple, in_order
from buda_emu.spec.archs import ETHERNET_L1_BYTES, EXTRA_STREAMS, KERNEL_STREAMS
from buda_emu.support.errors import UnsupportedError
from buda_emu.support.garbage import no_collections

GATHERS = {"gather", "gather_multicast", "multicast", "packer_multicast"}


def _is_transfer(stream: Draft) -> bool:
    """Return whether a stream moves tiles to or from another chip over Ethernet by itself, not by the firmware."""
    return stream.ethernet and not stream.firmware and stream.kind in ("relay", "unpacker")


class Core:
    """The streams of one core while they get ids."""

    def __init__(self, place: Place, limits: CoreLimits) -> None:
        self.place = place
        self.limits = limits
        self.streams: list[Draft] = []
        self.inputs = self.outputs = 0
        self.blob = 0
        self.ops: dict[str, None] = {}  # whose kernels run here
        self.extra = self.multicasts = self.transfers = 0
        self._ids = set[int]()
        self.twice: list[Draft] = []

    def need_blob(self, size: int) -> None:
        """Note that a kernel needs a blob of `size` bytes: `blob` becomes the excess over the room that every core has,
        rounded down to blocks of 4 kB. Only the first demand with an excess counts."""
        beyond = size - self.limits.blob_bytes
        if beyond > 0 and not self.blob:
            self.blob = beyond & ~0xFFF

    def number(self, stream: Draft) -> None:
        """Give ids to `stream` and to the other streams of its packer's buffer that have none yet; -1 where none is
        left."""
        if stream.kind == "packer" and stream.forks:
            for place, fork in enumerate(stream.forks):
                if fork.id is None and not fork.deleted:
                    self._give_id(fork, first=place == 0)
        elif stream.id is None:
            self._give_id(stream)

    def _give_id(self, stream: Draft, first: bool = True) -> None:
        """Give a stream the id that its kind and core demand, and count it. `first` tells whether it is the first
        stream of its buffer, the one that serves the operand."""
        kind = stream.kind
        if kind == "packer_multicast" and not self.place.ethernet:
            self.multicasts += 1
            self._assign(stream, self.limits.multicast_streams - 1 - ((stream.operand or 16) - 16))
        elif kind in GATHERS:
            self.multicasts += 1
            self._assign(stream, self._first_free(range(self._multicast_limit)))
        elif _is_transfer(stream):
            self.transfers += 1
            self._assign(stream, self._first_free((*ETHERNET_STREAMS, *ETHERNET_MULTICAST_STREAMS)))
        elif self.place.ethernet:
            self.extra += 1
            self._assign(stream, self._first_free(ETHERNET_EXTRA_STREAMS))
        elif stream.operand is not None and (first or kind == "intermediate"):
            self._assign(stream, self.limits.operand_streams[stream.operand])
        else:
            self.extra += 1
            self._assign(stream, self._first_free(EXTRA_STREAMS))

    @property
    def _multicast_limit(self) -> int:
        """Return the number of streams of the core that can gather or multicast."""
        if self.place.ethernet:
            return len(ETHERNET_MULTICAST_STREAMS)
        return self.limits.multicast_streams

    def _first_free(self, ids: Iterable[int]) -> int:
        """Return the first of `ids` that no stream of the core has, -1 if all are taken."""
        return next((id for id in ids if id not in self._ids), -1)

    def _assign(self, stream: Draft, id: int) -> None:
        """Give a stream an id, -1 for none left, and note it in `twice` if another stream has it."""
        if id >= 0 and id in self._ids:
            self.twice.append(stream)
        self._ids.add(id)
        stream.id = id

    def short_of(self) -> Iterator[Refusal]:
        """Yield a refusal for each kind of stream of which the core needs more than it has, and for each operand with
        two streams; to be called once all streams have ids."""
        for stream in self.twice:
            message = f"{self.place}: two streams serve operand {stream.operand}"
            yield Refusal(what="operand_stream", message=message, place=self.place, number=2, limit=1)
        ethernet = self.place.ethernet
        if ethernet:
            transfers = len(ETHERNET_STREAMS) + len(ETHERNET_MULTICAST_STREAMS)
        else:
            transfers = 0
        extra = len(ETHERNET_EXTRA_STREAMS if ethernet else EXTRA_STREAMS)
        gathers = "streams that gather or multicast"
        yield from self._beyond("multicast_streams", gathers, self.multicasts, self._multicast_limit)
        yield from self._beyond(
            "ethernet_streams",
            "streams that transfer between chips",
            self.transfers + self.multicasts if self.transfers else 0,
            transfers,
        )
        yield from self._beyond("extra_streams", "extra streams", self.extra, extra)

    def short_of_kernel_operands(self) -> Iterator[Refusal]:
        """Yield a refusal if the kernel has more inputs than a core can have, and one if it has more outputs."""
        yield from self._beyond("kernel_inputs", "kernel inputs", self.inputs, KERNEL_STREAMS)
        yield from self._beyond("kernel_outputs", "kernel outputs", self.outputs, KERNEL_STREAMS)

    def _beyond(self, resource: str, words: str, number: int, limit: int) -> Iterator[Refusal]:
        """Yield a refusal if the core needs `number` of a resource and that exceeds `limit`. `resource` is the
        refusal's `what`, `words` the resource's name in the message."""
        if number > limit:
            if self.ops:
                ops = f" ({', '.join(self.ops)})"
            else:
                ops = ""
            message = f"{self.place}{ops} needs {number} {words}, and has {limit}"
            yield Refusal(what=resource, message=message, place=self.place, number=number, limit=limit)

    def use(self, on_chip: int) -> CoreUse:
        """Return the use of the core's resources. `on_chip` is the number of tile sizes that the worker cores of its
        chip move, each of which but the first needs tile headers of its own."""
        ethernet = self.place.ethernet
        if ethernet:
            sizes = len({stream.msg_size for stream in self.streams})
        else:
            sizes = on_chip
        tracked = sum(stream.tracked for stream in self.streams)
        return CoreUse(
            place=self.place,
            ops=tuple(self.ops),
            streams=tuple(sorted(map(_finished_stream, self.streams), key=lambda stream: stream.id)),
            extra_streams=self.extra,
            multicast_streams=self.multicasts,
            kernel_inputs=self.inputs,
            kernel_outputs=self.outputs,
            tile_header_bytes=(sizes - 1) * TILE_HEADER_BUFFER,
            stream_bytes=sum(stream.given_bytes for stream in self.streams),
            fallback_bytes=max(0, tracked - TRACKED_QUEUES) * TRACKING_BYTES,
            blob_bytes=self.blob,
            available_bytes=ETHERNET_L1_BYTES if ethernet else self.limits.l1_bytes,
        )


def _finished_stream(stream: Draft) -> Stream:
    """Return the finished stream of a draft, with id -1 if none was left."""
    return Stream(
        id=-1 if stream.id is None else stream.id,
        kind=stream.kind,
        operand=stream.operand,
        op=stream.op,
        pipes=tuple(stream.pipes),
        buffer_bytes=stream.given_bytes,
        phases=stream.phases,
        reads_queues=stream.reads,
        writes_queues=stream.writes,
    )


def give_l1(streams: list[Draft]) -> None:
    """Set `given_bytes` of each stream to the L1 that its buffer takes, 0 if it lies in that of another stream: the
    forks of a buffer have one in common, as have streams that share; equal padding has one on each core."""
    _find_sharers(streams)
    padding = set[tuple[object, ...]]()
    for stream in streams:
        if stream.has_l1 or stream.kind in ("gather", "gather_multicast"):
            continue
        if stream.padding is None:
            key = None
        else:
            key = (stream.place, stream.bytes, *stream.padding)
        if key is None or key not in padding:
            stream.given_bytes = stream.bytes
        if key is not None:
            padding.add(key)
        _mark_l1(stream)
        if stream.shares is not None:
            _mark_l1(stream.shares)


def _mark_l1(stream: Draft) -> None:
    """Note that a stream, and the forks of its buffer, have their L1."""
    for fork in stream.forks if stream.forks is not None and stream.kind != "intermediate" else (stream,):
        fork.has_l1 = True


def _find_sharers(streams: list[Draft]) -> None:
    """Set `shares` of each stream to the one in whose L1 its buffer lies, by the ids of buffers; it stays None without
    one."""
    by_buffer = {stream.buf_id: stream for stream in reversed(streams) if stream.buf_id != -1}
    for stream in streams:
        if stream.shared_id != -1:
            other = by_buffer.get(stream.shared_id)
        else:
            other = None
        if other is None or "intermediate" in (stream.kind, other.kind) or stream.shares is not None:
            continue
        stream.shares = other
        if other.shares is None:
            other.shares = stream


def tile_sizes(streams: Iterable[Draft]) -> Counter[int]:
    """Return for each chip the number of different tile sizes that the streams of its worker cores move."""
    sizes = {(stream.place.chip, stream.msg_size) for stream in streams if not stream.place.ethernet}
    return Counter(chip for chip, _ in sizes)


def route(graph: PipeGraph, arch: str, *, phases: bool = False) -> Routed:
    """Return the streams that `graph` needs on each core of an `arch` (`grayskull`, `wormhole_b0`), and the refusals.

    With `phases` phases are counted, which takes twice as long. Refusals come in the order of pipegen2's checks:
    structure of pipes, readers and writers of DRAM, kernel operands, phases, ids, L1. A refusal after which no streams
    can be made leaves no cores. Raises UnsupportedError for other architectures, and for too many tiles or phases.
    """
    limits = LIMITS[require_arch(arch)]
    for buffer in graph.buffers:
        if buffer.epoch_tiles > MOST_EPOCH_TILES:
            subject = f"{buffer.op or 'a queue'}: {buffer.epoch_tiles:,} tiles in an epoch"
            raise UnsupportedError(f"{subject}: streams of no more than {MOST_EPOCH_TILES:,} are followed")
    with no_collections():
        return _route_graph(graph, limits, phases)


def require_arch(arch: str) -> str:
    """Return `arch`. Raises UnsupportedError for an architecture whose streams are not known."""
    if arch not in LIMITS:
        raise UnsupportedError(f"routing knows {' and '.join(LIMITS)}, and not {arch!r}")
    return arch


def _route_graph(graph: PipeGraph, limits: CoreLimits, phases: bool) -> Routed:
    """Do the work of `route` within known limits. Raises UnsupportedError for too many phases."""
    refusals: list[Refusal] = []
    try:
        parts: list[Subgraph] = []
        for part in subgraphs(Connected(graph), limits):
            refusals += _ncrisc_refusals(part)
            parts.append(part)
        _limit_gathers(parts, limits)
        cores = _kernel_cores(parts, limits)
        for core in cores.values():
            refusals += core.short_of_kernel_operands()
        steps: Steps | None = {} if phases else None
        streams = list(chain.from_iterable(_make_streams(part, steps) for part in parts))
        for stream in streams:
            _check_stream_place(stream.place, limits)
        if steps is not None:
            count(steps, limits)
    except RefusedError as stopped:
        return Routed((), (*refusals, stopped.refusal))
    return _allocate(streams, cores, limits, refusals)


def _check_stream_place(place: Place, limits: CoreLimits) -> None:
    """Raise RefusedError for a stream's place in NoC coordinates that is no Ethernet core."""
    if place.ethernet and (place.row, place.column) not in limits.ethernet_cores:
        raise invalid_graph(
            f"a stream is on [{place.row}, {place.column}] of the NoC, which is neither a worker nor an Ethernet core"
        )


def _ncrisc_refusals(part: Subgraph) -> Iterable[Refusal]:
    """Yield refusals for queues that the NCRISCs of the cores cannot serve; pipegen2 counts each subgraph by itself."""
    readers: Counter[Place] = Counter()
    writers: Counter[Place] = Counter()
    for pipe in part.pipes:
        if pipe.kind is Kind.DRAM_FORK and len(pipe.outputs) > READERS_OF_A_QUEUE:
            yield _too_many_readers(pipe)
        elif pipe.kind in READS_DRAM or pipe.kind in (Kind.POST_TM, Kind.PCIE_UNICAST, Kind.PCIE_MULTICAST):
            on_pipes_core = pipe.kind in _READ_ON_PIPES_CORE or len(pipe.sources) > 1
            readers[pipe.place if on_pipes_core else pipe.outputs[0].place] += 1
        else:
            writers.update(_writing_places(pipe))
    yield from _check_limit(readers, "ncrisc_readers", "streams that read from DRAM", NCRISC_READERS)
    yield from _check_limit(writers, "ncrisc_writers", "streams that write to DRAM", NCRISC_WRITERS)


def _writing_places(pipe: Simple) -> list[Place]:
    """Return the cores whose NCRISCs write to DRAM or to the host for a pipe, one for each stream that does."""
    if pipe.kind is Kind.TO_DRAM:
        return [source.place for source in pipe.sources]
    if pipe.kind is Kind.GRADIENT:
        return [pipe.outputs[0].place]
    if pipe.kind in (Kind.TO_PCIE, Kind.GATHER_TO_PCIE):
        return [pipe.place]
    return []


_READ_ON_PIPES_CORE = {Kind.DRAM_GATHER, Kind.DRAM_MULTICAST, Kind.DRAM_EMBEDDING, Kind.PCIE_MULTICAST}


def _check_limit(counts: dict[Place, int], resource: str, words: str, limit: int) -> Iterable[Refusal]:
    """Yield a refusal for each core whose NCRISC would serve more streams than it can. `words` names the streams in the
    message."""
    for place, number in counts.items():
        if number > limit:
            message = f"{place} needs {number} {words} for pipes that are connected, and its NCRISC has {limit}"
            yield Refusal(what=resource, message=message, place=place, number=number, limit=limit)


def _too_many_readers(fork: Simple) -> Refusal:
    """Return the refusal of a queue that more pipes read than can be counted."""
    queue = fork.sources[0].of
    if queue is not None:
        name = f"{queue.buffer.op!r}, buffer {queue.id},"
    else:
        name = "a queue"
    number = len(fork.outputs)
    message = f"queue {name} has {number} readers, and may have {READERS_OF_A_QUEUE}"
    return Refusal(what="readers_of_a_queue", message=message, place=None, number=number, limit=READERS_OF_A_QUEUE)


def _limit_gathers(parts: Iterable[Subgraph], limits: CoreLimits) -> None:
    """Turn gathers into relays (`kind` of the pipes) where their core has no more streams that can gather. A gather
    that a multicast of the same core follows needs no stream of its own."""
    pipes = list(chain.from_iterable(part.pipes for part in parts))
    used_streams = Counter(pipe.place for pipe in pipes if pipe.kind in MULTICASTS)
    for pipe in pipes:
        if pipe.kind is not Kind.GATHER:
            continue
        follower = pipe.outputs[0].outputs[0]
        if follower.kind is Kind.MULTICAST and follower.place == pipe.place:
            continue
        if pipe.place not in used_streams or used_streams[pipe.place] < _gather_stream_count(pipe.place, limits):
            used_streams[pipe.place] += 1
        else:
            pipe.kind = Kind.DORMANT_RELAY


def _gather_stream_count(place: Place, limits: CoreLimits) -> int:
    """Return the number of streams of a core that can gather or multicast."""
    if place.ethernet:
        return 4
    return limits.multicast_streams


def _kernel_cores(parts: Iterable[Subgraph], limits: CoreLimits) -> dict[Place, Core]:
    """Return, by place, the cores that have buffers, with the operands and blobs of their kernels counted."""
    cores: dict[Place, Core] = {}
    for part in parts:
        for node in part.nodes:
            if node.virtual or node.of is None:
                continue
            core = cores.get(node.place)
            if core is None:
                core = cores[node.place] = Core(node.place, limits)
            _count_operands(core, node, node.of)
    return cores


def _count_operands(core: Core, node: Node, buffer: BufferNode) -> None:
    """Count a buffer of a core among the kernel's inputs and outputs (an intermediate buffer that a pipe fills is
    both), and note its op and blob."""
    if buffer.intermediate:
        if node.input is not None:
            core.inputs += 1
            core.outputs += 1
    elif node.kernel_operand is not None:
        core.inputs += 1
        core.need_blob(buffer.buffer.overlay_blob_size)
    elif buffer.kernel_output:
        core.outputs += 1
    if (buffer.kernel_input or buffer.kernel_output) and not buffer.dram_input:
        core.ops[buffer.buffer.op] = None


def _make_streams(part: Subgraph, steps: Steps | None) -> list[Draft]:
    """Make and return the streams of a subgraph, and add their phases to `steps` unless it is None. Raises RefusedError
    for what pipegen2 does not accept."""
    measure(part.nodes)
    makers = Makers()
    pipes = _creation_order(part.pipes)
    for pipe in pipes:
        makers.make(pipe)
    if steps is not None:
        linking = Linking(Phases(part.nodes), makers, steps)
        for pipe in pipes:
            linking.link(pipe)
    return [stream for stream in makers.streams if not stream.deleted]


def _creation_order(pipes: list[Simple]) -> list[Simple]:
    """Return pipes in the order in which pipegen2 makes their streams, on which the ids depend.

    It goes depth first from pipes that no other pipe feeds. Of two such pipes the later one is made first; of two pipes
    that read the outputs of one, that of the earlier output.
    """
    fed = {id(follower) for follower in chain.from_iterable(map(_followers, pipes))}
    sources = [pipe for pipe in pipes if id(pipe) not in fed]
    return in_order((*sources, *pipes), lambda pipe: reversed(list(_followers(pipe))))  # all pipes: some form circles


def _followers(pipe: Simple) -> Iterable[Simple]:
    """Return the simple pipes that read the outputs of `pipe`."""
    return chain.from_iterable(node.outputs for node in pipe.outputs)


def _allocate(streams: list[Draft], cores: dict[Place, Core], limits: CoreLimits, refusals: list[Refusal]) -> Routed:
    """Give the streams ids and L1 on their cores, and return the result of routing. `refusals` are those so far; those
    of ids and L1 are added to the list."""
    for stream in streams:
        if stream.place not in cores:
            cores[stream.place] = Core(stream.place, limits)
        cores[stream.place].streams.append(stream)
    for stream in streams:
        cores[stream.place].number(stream)
    for core in cores.values():
        refusals += core.short_of()
    give_l1(streams)
    sizes = tile_sizes(streams)
    used = [core.use(max(1, sizes[core.place.chip])) for _, core in sorted(cores.items()) if core.streams]
    refusals += [_out_of_l1(core) for core in used if core.l1_bytes > core.available_bytes]
    return Routed(tuple(used), tuple(refusals))


def _out_of_l1(core: CoreUse) -> Refusal:
    """Return the refusal of a core whose data buffers need more L1 than it has."""
    message = (
        f"{core.place} ({', '.join(core.ops)}) needs {core.l1_bytes} bytes of L1 for data buffers, and has "
        f"{core.available_bytes}: {core.stream_bytes} for streams, {core.tile_header_bytes} for tile headers, "
        f"{core.blob_bytes} for a larger blob, {core.fallback_bytes} for queues to keep track of"
    )
    return Refusal(what="l1", message=message, place=core.place, number=core.l1_bytes, limit=core.available_bytes)
