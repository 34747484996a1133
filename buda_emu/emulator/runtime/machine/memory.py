"""The memory of an emulated machine: every queue and ram of a netlist on its tile store, and the owners of byte ranges
on its channels (NETLIST 1.10, 3.6, 4, V154)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.bit_store import BitStore, BitView
from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.store import ElsewhereStore, EntryView, MemoryBudget, TileStore
from buda_emu.emulator.runtime.machine.gate import Part, Stepper
from buda_emu.emulator.runtime.machine.listeners import Journal, Listener
from buda_emu.netlist.model import Netlist, Queue
from buda_emu.netlist.sizes import entry_bytes, has_tile_headers
from buda_emu.netlist.unknown_queue import no_queue
from buda_emu.spec.ring import RingPointers
from buda_emu.support.errors import ProgramError, UnsupportedError
from buda_emu.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """A range of `size` bytes from `start` on one channel of one chip's memory (`space` is "dram" or "host")."""

    device: int
    space: str
    channel: int
    start: int
    size: int

    def overlaps(self, other: "Region") -> bool:
        """Return whether two half-open ranges of the same channel have a byte in common."""
        return (
            (self.device, self.space, self.channel) == (other.device, other.space, other.channel)
            and self.start < other.start + other.size
            and other.start < self.start + self.size
        )


class RegionTable:
    """The regions that are held at this moment, by owner."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, tuple[Region, ...]] = {}

    @property
    def owners(self) -> list[str]:
        """The owners that hold regions now."""
        return list(self._held)

    def holds(self, owner: str) -> bool:
        """Return whether an owner holds regions now."""
        return owner in self._held

    def conflict(self, regions: Sequence[Region]) -> tuple[str, Region, Region] | None:
        """Return (owner, held region, new region) of the first overlap of these new regions with one that is held, None
        without one."""
        for owner, held in self._held.items():
            for theirs in held:
                for ours in regions:
                    if ours.overlaps(theirs):
                        return owner, theirs, ours
        return None

    def take(self, owner: str, regions: Sequence[Region]) -> None:
        """Record that an owner holds these regions, without a check for overlaps."""
        self._held[owner] = tuple(regions)

    def release(self, owner: str) -> None:
        """Remove the regions of an owner. Raises KeyError for one that holds none."""
        del self._held[owner]

    def clear(self) -> None:
        """Remove the regions of all owners."""
        self._held.clear()


Channel = Fifo | Ram


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of tiles (docs/run/memory.md).

    `queues`: of all queues and rams, now. `widest_cut`: of the tensors of one input that are alive at once, entries
    that are read among them, in the widest of the graphs run so far. `limit`: for both together."""

    queues: int
    widest_cut: int
    limit: int


class HeldEntries:
    """The entries that queues hold when a program begins. `lost` tells whether the program has overwritten one of them
    since, after it popped it."""

    __slots__ = ("_held", "lost")

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, int, int]] = {}  # by queue: read pointer, occupancy and number of slots
        self.lost = False

    def begin(self, channels: Iterable[Channel]) -> None:
        """Record the entries that queues hold at this moment, where a program begins; `lost` is False again."""
        self.lost = False
        self._held.clear()
        for channel in channels:
            if isinstance(channel, Fifo) and not channel.ring.empty:
                ring = channel.ring
                self._held[channel.name] = ring.rd, ring.occupancy, ring.entries

    def note_writes(self, writes: Mapping[str, Sequence[int]]) -> None:
        """Set `lost` if one of these slots, about to be written, has an entry that its queue held at the beginning.
        `writes`: slots by queue."""
        if self.lost or not self._held:
            return
        for queue in self._held.keys() & writes.keys():
            rd, occupancy, entries = self._held[queue]
            if any((slot - rd) % entries < occupancy for slot in writes[queue]):
                self.lost = True

    def note_zeros(self, queue: str) -> None:
        """Set `lost` if the queue, all of whose slots become zeros, held entries at the beginning."""
        self.lost |= queue in self._held


class Memory:
    """All queues and rams of a netlist, by name. `as_bits`: they hold bits of their formats (precision "device")."""

    def __init__(self, netlist: Netlist, limit: int, *, as_bits: bool = False, part: Part | None = None) -> None:
        """Make all queues and rams. `part`: this machine's part, of several, which decides what is held here."""
        self._netlist = netlist
        self._part = part
        self._as_bits = as_bits
        self._ops = netlist.ops
        self._budget = MemoryBudget(limit)
        self._regions = RegionTable()
        self.dynamic = netlist.dynamic
        self.channels: dict[str, Channel] = {}
        self.lends = False  # whether some of it has been held by reference
        self.host_moves = 0  # entries that the host has pushed to queues and popped from them
        self.held_entries = HeldEntries()  # since the program began that runs
        stores = self._shared_stores()
        for queue in netlist.queues.values():
            t, rows, cols = queue.blocking.shape
            store = stores.get(queue.name) or self._new_store(queue, rows * cols)
            if isinstance(store, BitStore):
                view: EntryView = BitView(queue.name, store, queue.entries, t)
            else:
                view = EntryView(queue.name, store, queue.entries, t)
            # Of bits a tilizer reads those in memory: there is nothing else on a device.
            flat = None
            if queue.layout == "flat" and not as_bits:
                flat = dict[int, NDArray[np.float32]]()
            if queue.is_ram:
                self.channels[queue.name] = Ram(view, flat=flat)
            else:
                self.channels[queue.name] = Fifo(view, RingPointers(queue.entries), flat=flat)
        channels = self.channels.values()
        self.rings = [channel.ring for channel in channels if isinstance(channel, Fifo)]
        self.rams = [channel for channel in channels if isinstance(channel, Ram)]

    def channel(self, name: str) -> Channel:
        """Return the queue or ram of that name. Raises HostError, which suggests similar names, for an unknown one."""
        channel = self.channels.get(name)
        if channel is None:
            raise no_queue(self._netlist, name)
        return channel

    @property
    def held(self) -> int:
        """Bytes of all queues and rams."""
        return self._budget.used

    @property
    def limit(self) -> int:
        """Bytes that may be held."""
        return self._budget.limit

    @property
    def left(self) -> int:
        """Bytes of the limit that queues and rams do not take at the moment."""
        return self._budget.left

    @property
    def allocated(self) -> list[str]:
        """Dynamic queues that hold their byte ranges now."""
        return self._regions.owners

    def replace_allocations(self, names: Sequence[str]) -> None:
        """Let exactly these dynamic queues hold their byte ranges, and leave pointers as they are. For going back to an
        earlier state; overlaps are not checked."""
        self._regions.clear()
        for name in names:
            self._regions.take(name, self._queue_regions(self._netlist.queues[name]))

    def check_room(self, count: int) -> None:
        """Raise HostError when `count` bytes, in place of all that queues and rams hold now, would exceed the memory
        limit."""
        MemoryBudget(self._budget.limit).take(count, "a snapshot")

    def free(self) -> None:
        """Give all tiles back. The memory cannot be used afterwards."""
        for store in {id(channel.view.store): channel.view.store for channel in self.channels.values()}.values():
            store.free()
        self.channels.clear()
        self.rings.clear()
        self.rams.clear()

    def _shared_stores(self) -> dict[str, TileStore]:
        """Return new stores, by ram, for rams that are views of the same memory: static rams with the same buffers
        share one (NETLIST 1.10). Empty without such rams. Raises UnsupportedError where their layouts differ."""
        groups: dict[object, list[Queue]] = {}
        for queue in self._netlist.queues.values():
            if queue.is_ram and queue.name not in self.dynamic:
                key = (queue.target_device, queue.loc, queue.buffers, self._buffer_bytes(queue))
                groups.setdefault(key, []).append(queue)
        stores: dict[str, TileStore] = {}
        for views in groups.values():
            if len(views) < 2:
                continue
            base = max(views, key=lambda queue: queue.entries)
            _, rows, cols = base.blocking.shape
            store = self._new_store(base, rows * cols)
            for view in views:
                self._require_same_layout(base, view, store.slices)
                stores[view.name] = store
        return stores

    def _require_same_layout(self, base: Queue, view: Queue, slices: int) -> None:
        """Raise UnsupportedError unless the ram `view` has the tile rows and columns, the `slices` in all, and (as
        bits) the format of the ram `base` that it shares memory with."""
        _, rows, cols = base.blocking.shape
        view_t, view_rows, view_cols = view.blocking.shape
        if self._as_bits and view.df != base.df:
            raise UnsupportedError(
                f"rams {base.name} and {view.name} share their memory, but one is {base.df}, the other "
                f"{view.df}: precision device does not read the bits of one as the other"
            )
        if (view_rows, view_cols) != (rows, cols) or view.entries * view_t != slices:
            raise UnsupportedError(
                f"rams {base.name} and {view.name} share their memory, but their tile rows and columns "
                f"({rows}x{cols}, {view_rows}x{view_cols}) or their slices differ"
            )

    def _new_store(self, queue: Queue, tiles: int) -> TileStore:
        """Return a new store for a queue, with `tiles` in each slice: one without data where another machine holds the
        queue, else of bits or of floats as this memory is."""
        slices = queue.entries * queue.blocking.t
        if self._part is not None and self._part.number not in self._part.keepers(queue.name):
            return ElsewhereStore(queue.name, slices, tiles, self._budget)
        if self._as_bits:
            return BitStore(name=queue.name, slices=slices, tiles=tiles, budget=self._budget, df=queue.df)
        return TileStore(queue.name, slices, tiles, self._budget)

    def allocate(self, name: str) -> None:
        """Do the instruction allocate_queue: take the byte ranges of a dynamic queue and set its pointers to 0;
        contents stay (NETLIST 3.6). Raises ProgramError where it is allocated already, or another queue that is not its
        alias holds some of the bytes."""
        if self._regions.holds(name):
            raise ProgramError(f"allocate_queue {name}: it is already allocated", kind="allocation", queue=name)
        regions = self._queue_regions(self._netlist.queues[name])
        conflict = self._regions.conflict(regions)
        if conflict is not None and not self._are_aliases(name, conflict[0]):
            owner, theirs, ours = conflict
            raise ProgramError(
                f"allocate_queue {name}: bytes {ours.start:#x}..{ours.start + ours.size:#x} of {ours.space} channel "
                f"{ours.channel} on device {ours.device} are held by {owner} "
                f"({theirs.start:#x}..{theirs.start + theirs.size:#x})",
                kind="allocation",
                queue=name,
            )
        self._regions.take(name, regions)
        channel = self.channels[name]
        if isinstance(channel, Ram):
            channel.reset()
        else:
            channel.ring.reset()

    def deallocate(self, name: str) -> None:
        """Do the instruction deallocate_queue: give the byte ranges of a dynamic queue back; data and pointers stay.
        Raises ProgramError where it is not allocated."""
        if not self._regions.holds(name):
            raise ProgramError(f"deallocate_queue {name}: it is not allocated", kind="allocation", queue=name)
        self._regions.release(name)

    def _are_aliases(self, a: str, b: str) -> bool:
        """Return whether one of two queues is declared as the alias of the other, so that they may share bytes."""
        queues = self._netlist.queues
        return queues[a].alias == b or queues[b].alias == a

    def _buffer_bytes(self, queue: Queue) -> int:
        """Return the bytes of all entries in one buffer of a queue, without the queue header, counted as the reference
        does when it compares buffers (NETLIST 1.9)."""
        headers = queue.host_fed or has_tile_headers(queue, self._ops)
        return entry_bytes(queue, self._netlist.arch, headers) * queue.entries

    def _queue_regions(self, queue: Queue) -> list[Region]:
        """Return the byte ranges of a queue's buffers."""
        size = self._buffer_bytes(queue)
        return [
            Region(device=queue.target_device, space=queue.loc, channel=buffer.channel, start=buffer.address, size=size)
            for buffer in queue.buffers
        ]


class Watchers:
    """Journal, listeners and stepper of one machine, called in order."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.listeners: tuple[Listener, ...] = ()  # replaced, never changed: threads may be going through it
        self.stepper: Stepper | None = None

    def push(self, queue: str, by: str, slot: int) -> None:
        """Report a push into a slot by the host or an op (`by`) to journal and listeners."""
        self.journal.push(queue, by, slot)
        for listener in self.listeners:
            listener.queue_push(queue, slot)

    def pushes(self, queue: str, by: str, slots: Sequence[int]) -> None:
        """Report pushes by an op into these slots, in that order, to journal and listeners."""
        if self.listeners:
            for slot in slots:
                self.push(queue, by, slot)
        else:
            self.journal.push(queue, by, slots[-1], len(slots))

    def pop(self, queue: str, by: str, count: int) -> None:
        """Report that `by` (HOST or SETTINGS) freed `count` entries of a queue, to journal and listeners."""
        self.journal.pop(queue, by, count)
        for listener in self.listeners:
            listener.queue_pop(queue, count)
