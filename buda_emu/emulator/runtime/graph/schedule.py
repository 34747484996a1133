"""Schedules the inputs of an epoch: the slots that they read and write, and how many may run together (NETLIST 4.2,
4.3)."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from itertools import chain
from typing import NoReturn

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.runtime.graph.plan import FORWARD
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.emulator.runtime.machine.memory import Memory
from buda_emu.netlist.model import Netlist
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass


@dataclass(slots=True)
class Chunk:
    """Consecutive inputs that run as one: slots per queue, one for each input, and the sources' labels."""

    inputs: int = 0
    labels: dict[str, str] = field(default_factory=dict[str, str])
    reads: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    writes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


@dataclass(slots=True)
class _Input:
    """The slots that a single input reads and writes, by queue or ram."""

    labels: dict[str, str]
    reads: dict[str, int]
    writes: dict[str, int]
    depends: bool = False  # it reads what an earlier input of the chunk writes


@dataclass(frozen=True, slots=True)
class HostEnds:
    """Queues of a temporal graph that only the host fills, or only the host empties; an epoch may wait for them."""

    filled: tuple[str, ...]
    emptied: tuple[str, ...]


def _append_input(chunk: Chunk, slots_of_input: _Input) -> None:
    """Append one input to a chunk; the first one decides the labels."""
    if not chunk.inputs:
        chunk.labels = slots_of_input.labels
    for queue, slot in slots_of_input.reads.items():
        chunk.reads.setdefault(queue, []).append(slot)
    for queue, slot in slots_of_input.writes.items():
        chunk.writes.setdefault(queue, []).append(slot)
    chunk.inputs += 1


def host_ends(netlist: Netlist, topology: Topology) -> HostEnds:
    """Return the queues that a temporal graph reads and the host feeds, and those that it feeds and no op reads."""
    read = set(chain.from_iterable(op.inputs for op in netlist.ops.values()))
    fed = chain.from_iterable(topology.sinks.values())
    return HostEnds(
        tuple(name for name in topology.reads if netlist.queues[name].host_fed),
        tuple(name for name in fed if name not in read),
    )


class Scheduler:
    """Moves the pointers of a temporal graph's queues input by input, and groups inputs that do not read each other's
    results."""

    def __init__(
        self, memory: Memory, topology: Topology, popping: Sequence[Fifo], ends: HostEnds | None = None
    ) -> None:
        """Prepare an epoch. `popping`: queues whose entries its settings pop. With `ends` a chunk ends before an input
        for which the host must first push or pop, see `obstacle`."""
        self._memory = memory
        self._ends = ends
        self._topology = topology
        self._popping = popping
        self._number = 0  # of the input that the pointers stand at, from 1
        self._next: _Input | None = None  # taken from the pointers already, not in a chunk yet
        self._chunk: Chunk | None = None  # taken and not done
        self._partial: tuple[_Input, int] | None = None  # an input that failed when it was begun, and its pops
        self._shown: list[str] | None = None  # what is written of memory that is read, once somebody asks

    def peek(self) -> Mapping[str, str]:
        """Return the label of the entry that the next input reads of each source, FORWARD where the graph itself pushes
        it just before; moves the pointers by this input if that was not done yet. Raises ProgramError for an entry that
        is not there."""
        if self._next is None:
            self._next = self._next_input()
        elif self._chunk is None:  # it was taken before the results of the chunk before it were stored
            self._relabel(self._next)
        return self._next.labels

    def take(self, limit: int) -> Chunk:
        """Move the pointers by the next 1 to `limit` inputs and return them: as many as do not read each other's
        results and have the same labels. Raises ProgramError when one would read an empty or never written entry."""
        self._chunk = chunk = Chunk()
        written: set[tuple[int, int]] = set()
        while chunk.inputs < limit:
            if chunk.inputs and self._ends is not None and self.obstacle() is not None:
                break
            if self._next is not None:
                next_input = self._next
            else:
                next_input = self._next_input(written)
            self._next = None
            if chunk.inputs and (next_input.depends or next_input.labels != chunk.labels):
                self._next = next_input
                break
            _append_input(chunk, next_input)
            if chunk.inputs < limit:
                for queue in self._writes_on_read_memory():
                    written.update(self._memory.channels[queue].view.slices(next_input.writes[queue]))
        return chunk

    def storing(self) -> None:
        """Tell the memory that the results of the chunk taken last are about to be stored, so that it can see which
        entries they overwrite."""
        if self._chunk is not None:
            self._memory.held_entries.note_writes(self._chunk.writes)

    def done(self) -> None:
        """Record that the results of the chunk taken last are stored: it is no longer in flight, and `undo` keeps
        it."""
        self._chunk = None

    def slices(self, *, written_only: bool) -> set[tuple[int, int]]:
        """Return (store, z-slice) of everything that inputs which were begun and are not done will write, and unless
        `written_only` may still read: the host must not touch these."""
        in_flight: set[tuple[int, int]] = set()
        for queue, slot in self._slots_in_flight(written_only):
            in_flight.update(self._memory.channels[queue].view.slices(slot))
        return in_flight

    def _slots_in_flight(self, written_only: bool) -> Iterator[tuple[str, int]]:
        """Yield (queue, slot) of inputs that were begun and are not done: slots to write, and unless `written_only`
        those to read."""
        if self._chunk is not None:
            for accesses in (self._chunk.writes,) if written_only else (self._chunk.writes, self._chunk.reads):
                for queue, slots in accesses.items():
                    yield from ((queue, slot) for slot in slots)
        if self._next is not None:
            yield from self._next.writes.items()
            if not written_only:
                yield from self._next.reads.items()

    def undo(self) -> None:
        """Move the pointers back over all inputs that were begun and are not done, also over one that failed
        halfway."""
        self._undo_partial()
        inputs = (self._chunk.inputs if self._chunk is not None else 0) + (self._next is not None)
        self._chunk = self._next = None
        channels = self._memory.channels
        for queue in (*self._topology.reads, *self._topology.local):
            channels[queue].undo_reads(inputs)
        for queues in self._topology.sinks.values():
            for queue in queues:
                channels[queue].undo_writes(inputs)
        for channel in self._popping:
            channel.undo_pops(inputs * channel.global_rdptr_autoinc)

    def obstacle(self) -> ProgramError | None:
        """Return the error that the next input would raise because the host has not yet pushed to an input queue or
        popped from an output queue. None if nothing is missing, and for queues that another graph fills or empties:
        waiting for those is in vain."""
        ends = self._ends
        if self._next is not None or ends is None:
            return None
        error: ProgramError | None = None
        for channel in (self._memory.channels[name] for name in ends.filled):
            if isinstance(channel, Fifo) and not channel.holds_next_read():
                problem = f"read beyond the entries pushed to {channel.describe()}"
                error = ProgramError(problem, kind="empty", queue=channel.name)
        for channel in self._popping:
            count = channel.global_rdptr_autoinc
            if channel.name in ends.filled and channel.ring.occupancy < count:
                error = ProgramError(f"pop of {count} from {channel.describe()}", kind="empty", queue=channel.name)
        for channel in (self._memory.channels[name] for name in ends.emptied):
            if isinstance(channel, Fifo) and channel.ring.full:
                error = ProgramError(f"push to a full queue: {channel.describe()}", kind="full", queue=channel.name)
        if error is not None:
            error.input = self._number + 1, self._topology.input_count
        return error

    def _writes_on_read_memory(self) -> list[str]:
        """Return the queues and rams written by the graph whose memory the graph also reads."""
        if self._shown is None:
            channels = self._memory.channels
            topology = self._topology
            read = {id(channels[queue].view.store) for queue in (*topology.reads, *topology.local)}
            self._shown = [queue for queue in topology.writes if id(channels[queue].view.store) in read]
        return self._shown

    def _next_input(self, written: Set[tuple[int, int]] = frozenset()) -> _Input:
        """Move the pointers by one input and return its slots. `written`: (store, z-slice) that earlier inputs of the
        chunk are going to write. Raises ProgramError with the number of the input."""
        self._number += 1
        try:
            return self._advance(written)
        except ProgramError as error:
            error.input = self._number, self._topology.input_count
            raise

    def _advance(self, written: Set[tuple[int, int]]) -> _Input:
        """Move every pointer by one input, in the reference's order: reads, pushes and local reads, pops; return its
        slots. `written` has (store, z-slice) of what earlier inputs of the chunk are going to write. Raises
        ProgramError, and keeps what was moved for `undo`."""
        channels = self._memory.channels
        topology = self._topology
        slots_of_input = _Input({}, {}, {})
        pops = 0
        try:
            for queue in topology.reads:
                channel = channels[queue]
                self._note_read(queue, channel, channel.next_read(), slots_of_input, written)
            for queue in topology.writes:
                channel = channels[queue]
                slots_of_input.writes[queue] = pushed = channel.next_write()
                if queue in topology.local:
                    slot = channel.next_read()
                    if slot == pushed:
                        slots_of_input.labels[queue] = FORWARD
                    else:
                        self._note_read(queue, channel, slot, slots_of_input, written)
            for channel in self._popping:
                channel.pop(channel.global_rdptr_autoinc)
                pops += 1
        except ProgramError:
            self._partial = slots_of_input, pops
            raise
        return slots_of_input

    def _undo_partial(self) -> None:
        """Move the pointers back that an input had moved before it failed."""
        if self._partial is None:
            return
        slots_of_input, pops = self._partial
        self._partial = None
        channels = self._memory.channels
        for channel in self._popping[:pops]:
            channel.undo_pops(channel.global_rdptr_autoinc)
        for queue in slots_of_input.writes:
            channels[queue].undo_writes(1)
        forwarded = (queue for queue, label in slots_of_input.labels.items() if label == FORWARD)
        for queue in (*slots_of_input.reads, *forwarded):
            channels[queue].undo_reads(1)

    def _note_read(
        self, queue: str, channel: Fifo | Ram, slot: int, slots_of_input: _Input, written: Set[tuple[int, int]]
    ) -> None:
        """Record in `slots_of_input` that the input reads a slot, with the label of the entry; "" for one that an
        earlier input of the chunk is going to write (`written`). Raises ProgramError for an entry never written."""
        slots_of_input.reads[queue] = slot
        if written and not written.isdisjoint(channel.view.slices(slot)):
            slots_of_input.labels[queue] = ""
            slots_of_input.depends = True
        else:
            slots_of_input.labels[queue] = channel.view.label(slot) or _refuse_to_read(queue, channel, slot)

    def _relabel(self, slots_of_input: _Input) -> None:
        """Look up the labels of an input again after the chunk before it has stored its results (OPS 3.1, 12). Raises
        ProgramError for an entry never written."""
        channels = self._memory.channels
        try:
            for queue, slot in slots_of_input.reads.items():
                self._note_read(queue, channels[queue], slot, slots_of_input, frozenset())
        except ProgramError as error:
            error.input = self._number, self._topology.input_count
            raise


def _refuse_to_read(queue: str, channel: Fifo | Ram, slot: int) -> NoReturn:
    """Raise ProgramError for the read of an entry that was never written."""
    raise ProgramError(
        f"read of entry {slot}, which was never written: {channel.describe()}", kind="unwritten", queue=queue
    )
