"""Tile memory that holds the bits of a format: queues and rams of precision "device" (DEVICE_NUMERICS 6.1).

A Bfp8_b queue costs Bfp8_b bytes. The host's side, `entry` and `write`, speaks float32 and encodes and decodes; ops
read and write `bits`."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits, floats_for, stored_tile_bytes
from buda_emu.emulator.memory.memory_pool import POOL, address_of
from buda_emu.emulator.memory.store import (
    Arrays,
    EntryView,
    MemoryBudget,
    Source,
    TileStore,
    consecutive,
)
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import InternalError

_LARGEST_NARROW: Final = 31
"""The largest shared exponent of family A, which has 5 bits."""


class BitStore(TileStore):
    """A sequence of z-slices, each `tiles` tiles of 32x32 in the format `df`."""

    __slots__ = ("_bits", "df")

    def __init__(self, name: str, slices: int, tiles: int, budget: MemoryBudget, df: str) -> None:
        super().__init__(name, slices, tiles, budget)
        self.df = df
        self._bits = Bits.empty(df, 0, tiles)

    def data(self, slices: int) -> NDArray[np.float32]:
        """Raise InternalError: the store has no float32 values."""
        raise InternalError(f"{self.name} holds bits of {self.df}, not values ({slices} slices)")

    def bits(self, slices: int) -> Bits:
        """Return all bits of the store, [>=slices, tiles], after making room for at least `slices` slices. Raises
        HostError beyond the memory limit."""
        self.settle()
        self.reach(slices)
        return self._bits

    def _capacity(self) -> int:
        """Return the number of slices that memory is allocated for."""
        return len(self._bits)

    def _grow(self, reached: int, room: int) -> None:
        """Move the first `reached` slices into new memory for `room` slices. Raises MemoryError."""
        memory = POOL.take(floats_for(self.df, room * self.tiles), self.name)
        grown = Bits.on(memory, self.df, room, self.tiles)
        grown.assign(slice(0, reached), self._bits[:reached])
        self._bits = grown

    def _fill(self, source: Source, slices: int) -> None:
        """Encode slices 0..slices-1 of an array that the store refers to, read by `source`, into the store's memory one
        by one."""
        for number in range(slices):
            self._bits.assign(slice(number, number + 1), Bits.encode(self.df, source(number, number + 1)))

    def slice_bytes(self, slices: int) -> int:
        """Return the bytes of `slices` slices."""
        return slices * self.tiles * stored_tile_bytes(self.df)

    def fresh(self, slices: int) -> Arrays:
        """Return new arrays with undefined contents for `slices` slices, not part of the store: datums, and shared
        exponents where the format has them."""
        return _arrays_of(Bits.empty(self.df, slices, self.tiles))

    def arrays(self) -> Arrays:
        """Return the datums [>=slices, tiles, 1024], and shared exponents [>=slices, tiles, 64] where the format has
        them."""
        self.settle()
        return _arrays_of(self._bits)

    def may_hold(self, arrays: Arrays) -> bool:
        """Return whether all values of `arrays`, read from a file that may be damaged, are codes and exponents of the
        format: codes of Bfp4 and Bfp2, for example, do not use all bits of their bytes."""
        datums, *exponents = arrays
        spec = FORMATS[self.df]
        narrow = spec.family == "a" and any(array.size and array.max() > _LARGEST_NARROW for array in exponents)
        return not narrow and not (datums.size and int(datums.max()) >> spec.bits)

    def free(self) -> None:
        """Give the store's memory back to the pool; it then holds no slices."""
        POOL.give(self._bits.datums, self.name)
        self.replace(self.fresh(0), ())

    def _replace_arrays(self, arrays: Arrays) -> None:
        """Make these datums, and exponents if the format has them, the memory of the store."""
        datums, *exponents = arrays
        self._bits = Bits(self.df, datums, exponents[0] if exponents else None)

    def zero_entries(self, view: EntryView) -> None:
        """Set the bits of every written entry of a view to zero."""
        for slot in range(len(self.labels) // view.t):
            if view.label(slot):
                first = slot * view.t
                entry = self._bits[first : first + view.t]
                entry.datums[...] = 0
                if entry.exponents is not None:
                    entry.exponents[...] = 0


def _arrays_of(bits: Bits) -> Arrays:
    """Return the datums, and where the format has them the exponents, as one tuple."""
    if bits.exponents is None:
        return (bits.datums,)
    return (bits.datums, bits.exponents)


class BitView(EntryView):
    """The entries of a queue or ram on a store of bits."""

    __slots__ = ("_store",)

    def __init__(self, name: str, store: BitStore, entries: int, t: int) -> None:
        super().__init__(name, store, entries, t)
        self._store = store

    @property
    def df(self) -> str:
        """The format of the entries."""
        return self._store.df

    def bits(self, slot: int, count: int) -> Bits:
        """Return `count` consecutive entries from `slot` on as a writable view, [count, tiles]; makes room for them.
        Raises HostError beyond the memory limit."""
        first = slot * self.t
        last = (slot + count) * self.t
        part = self._store.bits(last)[first:last]
        if part.exponents is None:
            exponents = None
        else:
            exponents = part.exponents.reshape(count, self.tiles, -1)
        return Bits(part.df, part.datums.reshape(count, self.tiles, TILE_ELEMENTS), exponents)

    def read_bits(self, slots: Sequence[int]) -> Bits:
        """Return the entries of these slots in that order: [w, tiles]; a view of the memory where the slots are
        consecutive and the store has their bits, else a copy."""
        if consecutive(slots):
            if self._store.source is not None:
                return Bits.encode(self.df, self.lent(slots[0], len(slots)))
            return self.bits(slots[0], len(slots))
        entries = Bits.empty(self.df, len(slots), self.tiles)
        for position, slot in enumerate(slots):
            entries.assign(position, self.read_bits([slot])[0])
        return entries

    def write_bits(self, slots: Sequence[int], values: Bits, label: str) -> None:
        """Store values[i], or a single value everywhere, in slots[i], and mark the slots with the format label `label`.
        Where a slot occurs twice the last value remains. Raises HostError beyond the memory limit."""
        self.reserve(max(slots, default=-1) + 1)
        for position, slot in enumerate(slots):
            self.bits(slot, 1).assign(0, values[position if len(values) > 1 else 0])
        self.mark(slots, label)

    def holds_bits(self, slot: int, bits: Bits) -> bool:
        """Return whether `bits`, a view taken earlier from `slot` on, still lies in the store's memory: the store may
        have grown, and moved, since."""
        return address_of(bits.datums) == address_of(self.bits(slot, 1).datums)

    def entry(self, slot: int) -> NDArray[np.float32]:
        """Return the values of one entry as the host reads them, a copy: float32[tiles, 1024]."""
        return self.read_bits([slot])[0].values()

    def write(self, slots: Sequence[int], values: NDArray[np.float32], label: str) -> None:
        """Store values[i], float32[w, tiles, 1024], in slots[i], encoded as by the host (FORMATS 3, 4), and mark them
        with the format label `label`."""
        self.write_bits(slots, Bits.encode(self.df, values), label)
