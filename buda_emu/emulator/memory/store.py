"""Tile memory: a growing array of z-slices with a label for each, and entry views on it (NETLIST 1.10, 4.5).

Values are held as float32 tiles, as the reference holds them (OPS 3: queues store an exact copy). The byte image that a
chip would hold is made on demand by `buda_emu.arithmetic.tensor`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory import memory_pool
from buda_emu.emulator.memory.memory_pool import POOL
from buda_emu.emulator.options import MORE_MEMORY
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.errors import HostError, InternalError
from buda_emu.support.records import dataclass

Arrays = tuple[NDArray[Any], ...]
Source = Callable[[int, int], NDArray[np.float32]]
"""A function that returns the slices from one number up to another of a lent store, float32[count, tiles, 1024], read
anew by each call."""
_NEVER = ""
_ROOM_BYTES = 256 << 20  # asked for where memory for all that the limit allows is not to be had


@dataclass(slots=True)
class MemoryBudget:
    """The bytes of tiles that one machine may hold; a request beyond the limit is refused with the figures."""

    limit: int
    used: int = 0

    def take(self, count: int, owner: str) -> None:
        """Count `count` more bytes as used, for `owner`, who is named in the error. Raises HostError beyond the
        limit."""
        if self.used + count > self.limit:
            gib = float(1 << 30)
            raise HostError(
                f"{owner} needs {count / gib:.2f} GiB more; {self.used / gib:.2f} of {self.limit / gib:.2f} GiB are "
                f"in use: push fewer entries or raise the memory limit ({MORE_MEMORY})"
            )
        self.used += count

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.limit - self.used

    def give_back(self, count: int) -> None:
        """Return `count` bytes that were taken before."""
        self.used -= count


def consecutive(slots: Sequence[int]) -> bool:
    """Return whether each slot is the one after the slot before it; also for one slot and none."""
    return len(slots) < 2 or list(slots) == list(range(slots[0], slots[0] + len(slots)))


class TileStore:
    """A sequence of z-slices, each `tiles` tiles of 32x32 float32. Memory grows with use, up to `slices`.

    Slices that were `lent` lie in a file and take no memory here: they are read from there each time, until somebody
    writes to the store."""

    __slots__ = ("_budget", "_data", "_labels", "name", "slices", "source", "tiles", "writes")

    def __init__(self, name: str, slices: int, tiles: int, budget: MemoryBudget) -> None:
        self.name = name
        self.slices = slices
        self.tiles = tiles
        self._budget = budget
        self._data: NDArray[np.float32] = np.empty((0, tiles, TILE_ELEMENTS), np.float32)
        self._labels: list[str] = []  # one for each slice that has been asked for so far
        self.source: Source | None = None  # of slices that are lent
        self.writes = 0  # grows with each write that gives slices a label

    def lend(self, source: Source, slices: int, label: str) -> bool:
        """Make an empty store refer to `slices` slices of that format label, which `source` reads when they are needed.
        Returns False, and does nothing, where slices have been asked for already."""
        if self._labels:
            return False
        self.source = source
        self._labels = [label] * slices
        self.writes += 1
        return True

    def settle(self) -> None:
        """Copy slices that the store only refers to into memory of its own; does nothing without such slices. Raises
        HostError beyond the memory limit."""
        source = self.source
        labels = self._labels
        if source is None:
            return
        self.source = None
        self._labels = []
        try:
            self.reach(len(labels))
        except HostError:
            self.source = source
            self._labels = labels
            raise
        self._fill(source, len(labels))
        self._labels = labels

    def _fill(self, source: Source, slices: int) -> None:
        """Copy slices 0..slices-1 of an array that the store refers to, read by `source`, into the store's memory, one
        by one."""
        for number in range(slices):
            self._data[number] = source(number, number + 1)[0]

    def data(self, slices: int) -> NDArray[np.float32]:
        """Return the whole writable array, float32[>=slices, tiles, 1024], after making room for at least `slices`
        slices. Raises HostError beyond the memory limit."""
        if self.source is not None:
            self.settle()
        if slices > len(self._labels):
            self.reach(slices)
        return self._data

    def reach(self, slices: int) -> None:
        """Make room for at least `slices` slices and count them against the budget. Raises HostError beyond its
        limit."""
        reached = len(self._labels)
        if slices <= reached:
            return
        if self.source is not None:
            self.settle()
        size = self.slice_bytes(1)
        self._budget.take((slices - reached) * size, f"memory of {self.name}")
        have = self._capacity()
        if slices > have:
            POOL.shrink(self._budget.left)
            self._make_room(slices, reached, size)
        self._labels.extend([_NEVER] * (slices - reached))

    def _make_room(self, slices: int, reached: int, size: int) -> None:
        """Move the `reached` slices into memory for at least `slices` slices of `size` bytes, more if it can be had.
        Raises HostError where not even that can."""
        for room in self._room_attempts(reached, slices, size):
            try:
                self._grow(reached, min(self.slices, max(slices, room)))  # who still reads the old keeps it alive
            except MemoryError:
                continue
            return
        self._budget.give_back((slices - reached) * size)
        raise HostError(f"memory of {self.name}: {slices * size} bytes are not to be had")

    def _room_attempts(self, reached: int, slices: int, size: int) -> tuple[int, ...]:
        """Return the numbers of slices to ask memory for, one after the other until it succeeds; `size`: bytes of a
        slice. Untouched memory costs nothing, so the first is room for all that the limit allows, which saves a later
        move."""
        return slices + self._budget.left // size, max(2 * reached, _ROOM_BYTES // size), slices

    def _capacity(self) -> int:
        """Return the number of slices that memory is allocated for."""
        return self._data.shape[0]

    def _grow(self, reached: int, room: int) -> None:
        """Move the first `reached` slices into new memory for `room` slices. Raises MemoryError."""
        grown = POOL.take(room * self.tiles * TILE_ELEMENTS, self.name).reshape(room, self.tiles, TILE_ELEMENTS)
        grown[:reached] = self._data[:reached]
        self._data = grown

    def exchange(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """Make `array`, float32[slices, tiles, 1024], the memory of all slices, without a copy, and return the array
        that was it before."""
        old = self.data(self.slices)
        self._data = array
        return old

    def label(self, first: int, count: int) -> str:
        """Return the format label of `count` slices from `first` on, "" when one of them was never written."""
        if count == 1:
            if first < len(self._labels):
                return self._labels[first]
            return _NEVER
        labels = self._labels[first : first + count]
        if len(labels) == count and _NEVER not in labels:
            return labels[0]
        return _NEVER

    def mark(self, first: int, count: int, label: str) -> None:
        """Record that `count` slices from `first` on were written with data of the format `label`."""
        self.writes += 1
        self._labels[first : first + count] = [label] * count

    @property
    def labels(self) -> list[str]:
        """Labels of the slices asked for so far, "" for one never written. The list must not be changed."""
        return self._labels

    @property
    def bytes_used(self) -> int:
        """Bytes that are counted against the budget."""
        if self.source is None:
            return self.slice_bytes(len(self._labels))
        return 0

    def slice_bytes(self, slices: int) -> int:
        """Return the bytes of `slices` slices."""
        return slices * self.tiles * TILE_ELEMENTS * 4

    def fresh(self, slices: int) -> Arrays:
        """Return undefined memory for `slices` slices, in the form of `arrays` and `replace`. Raises MemoryError."""
        return (memory_pool.fresh(slices * self.tiles * TILE_ELEMENTS).reshape(slices, self.tiles, TILE_ELEMENTS),)

    def arrays(self) -> Arrays:
        """Return all memory of the store, with slices along the first axis of each array: float32[>=slices, tiles,
        1024]."""
        self.settle()
        return (self._data,)

    def may_hold(self, arrays: Arrays) -> bool:  # noqa: ARG002 - any 32 bits are a float32
        """Return whether slices read from a file that may be damaged are valid values of this store: always, as any 32
        bits are a float32."""
        return True

    def replace(self, arrays: Arrays, labels: Sequence[str]) -> None:
        """Make these arrays, of len(labels) slices, the contents of the store. The caller has checked the memory
        limit."""
        self._budget.used += self.slice_bytes(len(labels)) - self.bytes_used
        self.source = None
        self.writes += 1
        self._replace_arrays(arrays)
        self._labels = list(labels)

    def _replace_arrays(self, arrays: Arrays) -> None:
        """Make this single array the memory of the store."""
        (self._data,) = arrays

    def free(self) -> None:
        """Release all slices; nobody may hold a view of them."""
        POOL.give(self._data, self.name)
        self.replace(self.fresh(0), ())

    def zero_entries(self, view: "EntryView") -> None:
        """Set every written entry of a view to 0.0 (NETLIST 4.1 zero; a dual view writes through, 4.5)."""
        for slot in range(len(self._labels) // view.t):
            if view.label(slot):
                view.block(slot, 1)[...] = 0.0


class ElsewhereStore(TileStore):
    """A store whose slices another machine holds; only their labels are here."""

    __slots__ = ()

    def data(self, slices: int) -> NDArray[np.float32]:
        """Raise InternalError: the values lie on another machine."""
        raise InternalError(f"{self.name} lies on another machine ({slices} slices)")

    def reach(self, slices: int) -> None:
        """Extend the list of labels to at least `slices`; no memory is taken."""
        self._labels.extend([_NEVER] * (slices - len(self._labels)))

    def slice_bytes(self, slices: int) -> int:  # noqa: ARG002
        """Return 0: slices take no memory here."""
        return 0

    def fresh(self, slices: int) -> Arrays:  # noqa: ARG002
        """Return an array of 0 slices, whatever is asked for."""
        return super().fresh(0)

    def zero_entries(self, view: "EntryView") -> None:
        """Do nothing: the machine that holds the slices sets them to zero."""


class EntryView:
    """The entries of a queue or ram on a store: entry p covers z-slices [p*t, (p+1)*t).

    A dual view, one on the memory of another ram, has labels of its own: a push to the view gives an entry its label,
    and a push to the store beneath changes the data alone (OPS 12: 3.1). An entry that was never pushed through the
    view has the label of its slices in the store."""

    __slots__ = ("entries", "labels", "name", "store", "t", "tiles")

    def __init__(self, name: str, store: TileStore, entries: int, t: int) -> None:
        self.name = name
        self.store = store
        self.entries = entries
        self.t = t
        self.tiles = t * store.tiles  # of one entry
        if name != store.name:
            self.labels: dict[int, str] | None = {}
        else:
            self.labels = None

    def label(self, slot: int) -> str:
        """Return the format label of an entry, "" when it was never (wholly) written."""
        beneath = self.store.label(slot * self.t, self.t)
        if self.labels and beneath:
            return self.labels.get(slot, beneath)
        return beneath

    @property
    def written(self) -> int:
        """The number of entries that are wholly written."""
        reached = min(self.entries, len(self.store.labels) // self.t)
        return sum(bool(self.label(slot)) for slot in range(reached))

    def slices(self, slot: int) -> set[tuple[int, int]]:
        """Return (id of the store, number of the z-slice) for each slice of an entry. Rams that are views of one memory
        have such pairs in common."""
        store = id(self.store)
        return {(store, position) for position in range(slot * self.t, (slot + 1) * self.t)}

    def entry(self, slot: int) -> NDArray[np.float32]:
        """Return one entry, not to be written to: float32[tiles, 1024]. Its contents are undefined if it was never
        written."""
        return self.read([slot])[0]

    def reserve(self, entries: int) -> None:
        """Make room for that many entries at once. Raises HostError when memory does not suffice."""
        self.store.reach(entries * self.t)

    def block(self, slot: int, count: int) -> NDArray[np.float32]:
        """Return `count` consecutive entries from `slot` on, writable, without a copy: float32[count, tiles, 1024]."""
        first = slot * self.t
        last = (slot + count) * self.t
        slices = self.store.data(last)[first:last]
        if self.t == 1:
            return slices
        return slices.reshape(count, self.tiles, TILE_ELEMENTS)

    def read(self, slots: Sequence[int]) -> NDArray[np.float32]:
        """Return the entries of these slots in that order, not to be written to: float32[w, tiles, 1024]; a view where
        the slots are consecutive, else a copy."""
        if len(slots) == 1 or consecutive(slots):
            if self.store.source is not None:
                return self.lent(slots[0], len(slots))
            return self.block(slots[0], len(slots))
        return np.stack([self.entry(slot) for slot in slots])

    def lent(self, slot: int, count: int) -> NDArray[np.float32]:
        """Read `count` consecutive entries, from `slot` on, of a store that only refers to an array: float32[count,
        tiles, 1024]. Fails with AssertionError for another store."""
        source = self.store.source
        assert source is not None, "of a store that is lent"
        return source(slot * self.t, (slot + count) * self.t).reshape(count, self.tiles, TILE_ELEMENTS)

    def write(self, slots: Sequence[int], values: NDArray[np.float32], label: str) -> None:
        """Store values[i] in slots[i]: float32[w, tiles, 1024], and mark them with the format label `label`; where a
        slot occurs twice the last value remains."""
        if len(slots) == 1:
            self.block(slots[0], 1)[...] = values
            self.mark(slots, label)
            return
        self.reserve(max(slots, default=-1) + 1)
        for slot, value in dict(zip(slots, values, strict=True)).items():
            self.block(slot, 1)[...] = value
        self.mark(slots, label)

    def exchange(self, values: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Make `values`, float32[1, tiles, 1024], the memory of the store without a copy, if that has one entry, and
        return the memory that it had. Returns None, and changes nothing, where the store has more entries."""
        if self.store.slices != self.t:
            return None
        return self.store.exchange(values.reshape(self.t, self.store.tiles, TILE_ELEMENTS))

    def holds(self, slot: int, block: NDArray[np.float32]) -> bool:
        """Return whether `block`, a view taken earlier from `slot` on, still lies in the store's memory: the store may
        have grown, and moved, since."""
        return memory_pool.address_of(block) == memory_pool.address_of(self.block(slot, 1))

    def note(self, slots: Sequence[int], label: str) -> None:
        """Mark these slots as written, with the format label `label`, after making room; for entries whose data another
        machine holds or that arrive later."""
        self.reserve(max(slots, default=-1) + 1)
        self.mark(slots, label)

    def mark(self, slots: Sequence[int], label: str) -> None:
        """Record that the entries in these slots were written with data of the format `label`."""
        for slot in slots:
            self.store.mark(slot * self.t, self.t, label)
            if self.labels is not None:
                self.labels[slot] = label
