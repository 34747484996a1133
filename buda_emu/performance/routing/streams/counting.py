"""The number of phases of each stream: those in which tiles are received and sent, over the iterations that are
unrolled.

Iterations of the firmware are unrolled into phases as far as the blobs of all cores on the way have room. If a stream
changes neither source nor receiver, its unrolled phases become one phase again.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import gcd, lcm

from buda_emu.performance.routing.streams.dram_reads import settled_phase_tiles
from buda_emu.performance.routing.streams.making import Draft, Makers
from buda_emu.performance.routing.streams.model import EPOCH_BYTES, PHASE_BYTES, TILES_A_PHASE, CoreLimits, Place
from buda_emu.performance.routing.streams.phases import Phase, Phases
from buda_emu.performance.routing.streams.rational import MULTICASTS, Kind, Node, Simple


class StreamPhase:
    """A phase of a stream with the stream that its tiles come from (`source`) and those that they go to (`receivers`).
    `turn` is the scatter index at which a sender sends it."""

    __slots__ = ("begin", "receivers", "source", "tiles", "turn")

    def __init__(self, phase: Phase, turn: int = 0) -> None:
        self.begin, self.tiles = phase
        self.turn = turn
        self.source: Draft | None = None
        self.receivers: tuple[Draft, ...] = ()


Steps = dict[Draft, list[StreamPhase]]


class Linking:
    """Gives the streams of one subgraph their phases in `steps`, and connects phases of senders with phases of
    receivers. Pipes must come in topological order."""

    def __init__(self, phases: Phases, makers: Makers, steps: Steps) -> None:
        self._phases = phases
        self._streams_of = makers.streams_of
        self._steps = steps

    def link(self, pipe: Simple) -> None:
        """Give phases to the streams of a simple pipe, and to those that send into it, in the way of its kind. Forks
        get none."""
        _LINKS.get(pipe.kind, Linking.link_nothing)(self, pipe)

    def _receive(self, stream: Draft, pipe: Simple, output: Node) -> None:
        """Set the phases and iterations of a stream that receives the tiles of `output`, an output of the pipe."""
        self._steps[stream] = [StreamPhase(phase) for phase in self._phases.receiving_phases(output)]
        stream.iterations = pipe.outputs[-1].iterations

    def _send(self, pipe: Simple, node: Node, receivers: list[Draft]) -> None:
        """Add to the stream of `node` the phases in which it sends into `pipe`; successive phases go to `receivers` in
        turn. Without receivers the tiles leave the core's streams (DRAM, another chip, or a multicast connected
        later)."""
        sender = node.stream
        assert isinstance(sender, Draft)
        steps = self._steps.setdefault(sender, [])
        sends = self._phases.sending_phases(node, pipe)
        begins_in_steps = {step.begin for step in steps}
        if sends[0].begin in begins_in_steps:
            new = steps
        else:
            new = [StreamPhase(phase, node.turn or 0) for phase in sends]
            steps += new
            steps.sort(key=lambda step: step.begin)
            sender.iterations = pipe.outputs[-1].iterations
        if receivers:
            begins = [phase.begin for phase in self._phases.receiving_phases(pipe.outputs[0])]
            for step in new:
                index = bisect_right(begins, step.begin) - 1
                turn, receiver = divmod(index, len(receivers))
                step.receivers = (receivers[receiver],)
                self._steps[receivers[receiver]][turn].source = sender

    def link_nothing(self, pipe: Simple) -> None:
        """Do nothing: for forks, which have no phases of their own."""

    def link_one_receiver(self, pipe: Simple) -> None:
        """Link a pipe with one receiving stream, an operand's or a relay's, to all its senders."""
        (stream,) = self._streams_of[pipe]
        self._receive(stream, pipe, pipe.outputs[0])
        for source in pipe.sources:
            self._send(pipe, source, [stream])

    def link_gather(self, pipe: Simple) -> None:
        """Link the streams of a gather: relays that take turns, and the last stream, which gathers."""
        *relays, gather = self._streams_of[pipe]
        self._receive(gather, pipe, pipe.outputs[0])
        for number, relay in enumerate(relays):
            steps_of_relay = self._steps[gather][number :: len(relays)]
            self._steps[relay] = [StreamPhase(Phase(step.begin, step.tiles)) for step in steps_of_relay]
            relay.iterations = gather.iterations
            for step in self._steps[relay]:
                step.receivers = (gather,)
        for number, step in enumerate(self._steps[gather]):
            step.source = relays[number % len(relays)]
        for source in pipe.sources:
            self._send(pipe, source, relays)

    def link_multicast(self, pipe: Simple) -> None:
        """Link the streams of a multicast: the one that multicasts, which may be the sender itself, and the
        receivers."""
        streams = self._streams_of[pipe]
        source = pipe.sources[0]
        sender = source.stream
        assert isinstance(sender, Draft)
        if len(streams) > len(pipe.outputs):
            sender, *streams = streams
            self._receive(sender, pipe, pipe.outputs[0])
            self._send(pipe, source, [sender])
        elif sender.kind == "packer_multicast":
            self._send(pipe, source, [])
        for stream, output in zip(streams, pipe.outputs, strict=True):
            self._receive(stream, pipe, output)
        self._connect_all(sender, streams)

    def _connect_all(self, sender: Draft, receivers: list[Draft]) -> None:
        """Connect a sender with receivers that all get the same tiles."""
        for step in self._steps[sender]:
            step.receivers = tuple(receivers)
        for receiver in receivers:
            for step in self._steps[receiver]:
                step.source = sender

    def link_union(self, pipe: Simple) -> None:
        """Move the phases of all relays that a union joins to the first of them, and redirect the streams that sent to
        the other relays to it."""
        first, *others = dict.fromkeys(source.stream for source in pipe.sources)
        assert isinstance(first, Draft)
        first.union = True
        for other in others:
            assert isinstance(other, Draft)
            for step in self._steps.pop(other):
                self._steps[first].append(step)
                for sent in self._steps[step.source] if step.source is not None else ():
                    sent.receivers = tuple(first if receiver is other else receiver for receiver in sent.receivers)
        self._steps[first].sort(key=lambda step: step.begin)

    def link_dram_write(self, pipe: Simple) -> None:
        """Link the streams that write to DRAM or to another chip: they only send."""
        for source in pipe.sources:
            self._send(pipe, source, [])

    def link_intermediate(self, pipe: Simple) -> None:
        """Link the stream of a kernel's own buffer, which receives all tiles in one iteration."""
        if pipe.beside is None:
            stream = self._streams_of[pipe][0]
        else:
            stream = pipe.beside.stream
        assert isinstance(stream, Draft)
        self._receive(stream, pipe, pipe.outputs[0])
        stream.iterations = 1

    def link_dram_read(self, pipe: Simple) -> None:
        """Link the stream that reads chunks from DRAM, or what was written through PCIe, and the streams to which it
        passes them on. Phases are cut to tiles that divide the queue's and its read buffer's."""
        streams = self._streams_of[pipe]
        reader = streams[0]
        merged = len(streams) == 1 and pipe.outputs[0].kernel_operand is not None and pipe.kind is not Kind.POST_TM
        max_tiles = settled_phase_tiles(pipe, reader.bytes // reader.msg_size)
        queue = pipe.sources[0].owner  # or what is written through PCIe
        sent = sorted(chain.from_iterable(self._phases.sending_phases(source, pipe) for source in pipe.sources))
        self._steps[reader] = _cut_and_merge(sent, queue.tiles, max_tiles)
        reader.iterations = pipe.outputs[-1].iterations
        if pipe.kind in MULTICASTS:
            for stream in streams[1:]:
                self._receive_dram_read(stream, pipe, pipe.outputs[0], queue, max_tiles)
            self._connect_all(reader, streams[1:])
        elif len(streams) > 1 and not merged:
            self._receive_dram_read(streams[1], pipe, pipe.outputs[0], queue, max_tiles)
            self._connect_all(reader, streams[1:])

    def _receive_dram_read(self, stream: Draft, pipe: Simple, output: Node, queue: Node, max_tiles: int) -> None:
        """Give a stream the phases in which it receives, for `output`, tiles that another stream reads from `queue`,
        cut and merged like the phases of that one to at most `max_tiles`."""
        self._steps[stream] = _cut_and_merge(self._phases.receiving_phases(output), queue.tiles, max_tiles)
        stream.iterations = pipe.outputs[-1].iterations


_LINKS: dict[Kind, Callable[[Linking, Simple], None]] = {
    Kind.DRAM_UNICAST: Linking.link_dram_read,
    Kind.DRAM_TILIZER: Linking.link_dram_read,
    Kind.DRAM_EMBEDDING: Linking.link_dram_read,
    Kind.DRAM_GATHER: Linking.link_dram_read,
    Kind.DRAM_MULTICAST: Linking.link_dram_read,
    Kind.POST_TM: Linking.link_dram_read,
    Kind.UNICAST: Linking.link_one_receiver,
    Kind.RELAY: Linking.link_one_receiver,
    Kind.ETHERNET_RELAY: Linking.link_one_receiver,
    Kind.ETHERNET_FIRMWARE_RELAY: Linking.link_one_receiver,
    Kind.DORMANT_RELAY: Linking.link_one_receiver,
    Kind.MULTICAST: Linking.link_multicast,
    Kind.GATHER: Linking.link_gather,
    Kind.UNION: Linking.link_union,
    Kind.TO_DRAM: Linking.link_dram_write,
    Kind.TO_PCIE: Linking.link_dram_write,
    Kind.GATHER_TO_PCIE: Linking.link_one_receiver,
    Kind.PCIE_UNICAST: Linking.link_dram_read,
    Kind.PCIE_MULTICAST: Linking.link_dram_read,
    Kind.INTERMEDIATE: Linking.link_intermediate,
    Kind.GRADIENT: Linking.link_intermediate,
    Kind.SHARED_INTERMEDIATE: Linking.link_intermediate,
}


def _cut_and_merge(phases: Sequence[Phase], at_once: int, max_tiles: int) -> list[StreamPhase]:
    """Cut phases of more than `at_once` tiles (those that arrive at once) into equal pieces, merge successive pieces to
    phases of at most `max_tiles` tiles, and return these phases."""
    size = min(max_tiles, at_once)
    pieces = list[int]()
    for phase in phases:
        if phase.tiles <= size:
            pieces.append(phase.tiles)
        else:
            part = gcd(size, phase.tiles - size)
            pieces += [part] * (phase.tiles // part)
    steps = list[StreamPhase]()
    for number, tiles in enumerate(pieces):
        if steps and steps[-1].tiles + tiles <= max_tiles:
            steps[-1].tiles += tiles
        else:
            steps.append(StreamPhase(Phase(phases[0].begin + number, tiles)))
    return steps


def count(steps: Steps, limits: CoreLimits) -> None:
    """Set `phases`, the number of phases, of all streams of an epoch, with iterations unrolled as far as the blobs of
    the cores have room. `steps` has the phases of each stream in one iteration, and may get some of them merged."""
    footprint: dict[Place, int] = {}
    for stream, stream_steps in steps.items():
        footprint[stream.place] = footprint.get(stream.place, 0) + len(stream_steps) * PHASE_BYTES * stream.buffering
    room = limits.blob_bytes - EPOCH_BYTES
    for component in _components(steps):
        max_steps = min(room // footprint[stream.place] for stream in component)
        for stream in component:
            source = _first_source(steps[stream])
            if stream.kind == "unpacker" and source is not None and source.union:
                _merge_turns(stream, steps[stream])
        _unroll(component, steps, max_steps)


def _components(steps: Steps) -> Iterable[list[Draft]]:
    """Yield the lists of streams that are connected with each other, directly or over further streams."""
    near: dict[Draft, dict[Draft, None]] = {stream: {} for stream in steps}
    for stream, stream_steps in steps.items():
        for step in stream_steps:
            others = list(step.receivers)
            if step.source is not None:
                others.append(step.source)
            for other in others:
                near[stream][other] = near[other][stream] = None
    seen = set[Draft]()
    for start in steps:
        if start not in seen:
            yield _component(near, start, seen)


def _component(near: Mapping[Draft, Iterable[Draft]], start: Draft, seen: set[Draft]) -> list[Draft]:
    """Return the streams that can be reached from `start` over neighbours (`near`), and add them to `seen`."""
    seen.add(start)
    component = [start]
    ahead = [start]
    while ahead:
        for other in near[ahead.pop()]:
            if other not in seen:
                seen.add(other)
                component.append(other)
                ahead.append(other)
    return component


def _first_source(stream_steps: list[StreamPhase]) -> Draft | None:
    """Return the stream from which the tiles of a stream's first phase come, None if they come from none."""
    return stream_steps[0].source


def _merge_turns(stream: Draft, stream_steps: list[StreamPhase]) -> None:
    """Merge in place the consecutive phases of an operand that several senders feed in turn, up to the number of tiles
    that its kernel frees at once."""
    merged = [stream_steps[0]]
    for step in stream_steps[1:]:
        if merged[-1].tiles + step.tiles <= stream.clears:
            merged[-1].tiles += step.tiles
        else:
            merged.append(step)
    stream_steps[:] = merged


def _tiles_of_turn(stream_steps: list[StreamPhase]) -> int:
    """Return the tiles of all phases of the turn that the first phase belongs to."""
    return sum(step.tiles for step in stream_steps if step.turn == stream_steps[0].turn)


def _unroll(component: list[Draft], steps: Steps, max_times: int) -> None:
    """Set the number of phases of each of the connected streams `component`: it covers as many iterations as phases and
    blobs have room for, at most `max_times`. `steps`: what each stream does in one iteration."""
    limit = 1 << 32
    skip = 1
    for stream in component:
        tiles = _tiles_of_turn(steps[stream])
        if stream.kind == "unpacker" and stream.clears > tiles:
            skip = lcm(skip, stream.clears // tiles)
        fitting = TILES_A_PHASE // tiles
        if fitting <= stream.iterations:
            limit = min(limit, fitting)
    for stream in component:
        times = _unrolled_iterations(stream.iterations, max_times, limit, skip)
        stream_steps = steps[stream]
        stream.phases = len(stream_steps) * times
        if (
            times > 1
            and _is_single_phase(stream, stream_steps, steps)
            and _tiles_of_turn(stream_steps) * times <= TILES_A_PHASE
        ):
            stream.phases = 1


def _unrolled_iterations(iterations: int, max_times: int, limit: int, skip: int) -> int:
    """Return how many of a stream's iterations are unrolled into phases: if possible the largest divisor of
    `iterations` that is a multiple of `skip` and at most `max_times` and `limit`. `limit` is the most iterations whose
    tiles one phase can hold, 0 if it cannot hold one."""
    highest = min(max_times, iterations, limit or iterations)
    times = max(
        (times_tried for times_tried in range(skip, highest + 1, skip) if iterations % times_tried == 0), default=0
    )
    if times:
        return times
    if limit and limit <= max_times and limit < iterations:
        if iterations % limit == 0:
            return limit
        return skip
    if iterations <= max_times:
        return iterations
    return skip


def _is_single_phase(stream: Draft, stream_steps: list[StreamPhase], steps: Steps) -> bool:
    """Return whether the hardware can run the unrolled phases of a stream as one: it has one source throughout, and
    this source sends to nobody else in between."""
    source = _first_source(stream_steps)
    if source is None or stream.kind not in ("unpacker", "multicast", "gather_multicast", "relay"):
        return False
    if any(step.source is not source for step in stream_steps):
        return False
    if stream.kind.endswith("multicast") and source.kind != "relay":
        return False
    return not source.union and not _changes_receiver(steps[source])


def _changes_receiver(stream_steps: list[StreamPhase]) -> bool:
    """Return whether phases of a stream differ in their first receiver."""
    first = stream_steps[0].receivers[:1]
    return any(step.receivers[:1] != first for step in stream_steps)
