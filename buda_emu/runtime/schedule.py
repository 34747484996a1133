"""Which slots the next inputs of an epoch read and write, and how many inputs may run together (NETLIST 4.2, 4.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from buda_emu.device.channel import Fifo, Ram
from buda_emu.device.store import EntryView
from buda_emu.errors import ProgramError
from buda_emu.runtime.machine import Memory
from buda_emu.runtime.plan import FORWARD
from buda_emu.runtime.topology import Topology


@dataclass(slots=True)
class Chunk:
    """Consecutive inputs that run as one: slots per queue, one for each input, and the sources' labels."""

    inputs: int = 0
    labels: dict[str, str] = field(default_factory=dict[str, str])
    reads: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    writes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


@dataclass(slots=True)
class _Input:
    """The slots of a single input."""

    labels: dict[str, str]
    reads: dict[str, int]
    writes: dict[str, int]


class Scheduler:
    """Moves the pointers of a temporal graph's queues input by input, and groups inputs that cannot see each other."""

    def __init__(self, memory: Memory, topology: Topology, popping: Sequence[Fifo]) -> None:
        self._memory = memory
        self._topology = topology
        self._popping = popping
        self._number = 0  # of the input that the pointers stand at, from 1
        self._next: _Input | None = None  # taken from the pointers already, not in a chunk yet

    def peek(self) -> Mapping[str, str]:
        """Labels of the sources of the next input."""
        if self._next is None:
            self._next = self._counted()
        return self._next.labels

    def take(self, most: int) -> Chunk:
        """The next 1 to `most` inputs. Raises ProgramError when one would read an empty or never written entry."""
        chunk = Chunk()
        written: set[tuple[int, int]] = set()
        while chunk.inputs < most:
            one = self._next if self._next is not None else self._counted()
            self._next = None
            if chunk.inputs and (one.labels != chunk.labels or self._depends(one, written)):
                self._next = one
                break
            chunk.labels = one.labels
            chunk.inputs += 1
            for queue, slot in one.reads.items():
                chunk.reads.setdefault(queue, []).append(slot)
            for queue, slot in one.writes.items():
                chunk.writes.setdefault(queue, []).append(slot)
                written.update(_slices(self._memory.channels[queue].view, slot))
        return chunk

    def _counted(self) -> _Input:
        self._number += 1
        try:
            return self._advance()
        except ProgramError as error:
            error.input = self._number, self._topology.input_count
            raise

    def _advance(self) -> _Input:
        """Move every pointer by one input, in the reference's order: reads, pushes and local reads, pops."""
        channels = self._memory.channels
        one = _Input({}, {}, {})
        for queue in self._topology.reads:
            self._read(queue, channels[queue], one)
        for op in self._topology.ops:
            for queue in self._topology.sinks.get(op.name, ()):
                channel = channels[queue]
                one.writes[queue] = channel.next_write()
                if queue in self._topology.local:
                    slot = channel.next_read()
                    if slot == one.writes[queue]:
                        one.labels[queue] = FORWARD
                    else:
                        self._note(queue, channel, slot, one)
        for channel in self._popping:
            channel.pop(channel.global_rdptr_autoinc)
        return one

    def _read(self, queue: str, channel: Fifo | Ram, one: _Input) -> None:
        self._note(queue, channel, channel.next_read(), one)

    def _note(self, queue: str, channel: Fifo | Ram, slot: int, one: _Input) -> None:
        label = channel.view.label(slot)
        if not label:
            raise ProgramError(
                f"read of entry {slot}, which was never written: {channel.describe()}", kind="unwritten", queue=queue
            )
        one.labels[queue] = label
        one.reads[queue] = slot

    def _depends(self, one: _Input, written: set[tuple[int, int]]) -> bool:
        """Does this input read what an earlier input of the chunk writes?"""
        if not written:
            return False
        channels = self._memory.channels
        return any(not written.isdisjoint(_slices(channels[queue].view, slot)) for queue, slot in one.reads.items())


def _slices(view: EntryView, slot: int) -> set[tuple[int, int]]:
    store = id(view.store)
    return {(store, position) for position in range(slot * view.t, (slot + 1) * view.t)}
