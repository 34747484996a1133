"""Tile memory that holds the bits of a format: queues and rams of precision "device" (DEVICE_NUMERICS 6.1).

A Bfp8_b queue costs Bfp8_b bytes. The host's side, `entry` and `write`, speaks float32 and encodes and decodes; ops
read and write `bits`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.stored import Bits, floats_for, stored_tile_bytes
from buda_emu.emulator.memory.memory_pool import POOL, address_of
from buda_emu.emulator.memory.store import (
    TILE_ELEMENTS,
    Arrays,
    EntryView,
    MemoryBudget,
    Source,
    TileStore,
    consecutive,
)
from buda_emu.spec.formats import FORMATS
from buda_emu.support.errors import InternalError

_LARGEST_NARROW: Final = 31
"""Shared exponents of family A have 5 bits."""


class BitStore(TileStore):
    """A sequence of z-slices, each `tiles` tiles of 32x32 in the format `df`."""

    __slots__ = ("_bits", "df")

    def __init__(self, name: str, slices: int, tiles: int, budget: MemoryBudget, df: str) -> None:
        super().__init__(name, slices, tiles, budget)
        self.df = df
        self._bits = Bits.empty(df, 0, tiles)

    def data(self, slices: int) -> NDArray[np.float32]:
        """There is none. Raises InternalError."""
        raise InternalError(f"{self.name} holds bits of {self.df}, not values ({slices} slices)")

    def bits(self, slices: int) -> Bits:
        """Room for at least `slices` slices: [>=slices, tiles]."""
        self.settle()
        self.reach(slices)
        return self._bits

    def _capacity(self) -> int:
        return len(self._bits)

    def _grow(self, reached: int, room: int) -> None:
        memory = POOL.take(floats_for(self.df, room * self.tiles), self.name)
        grown = Bits.on(memory, self.df, room, self.tiles)
        grown.assign(slice(0, reached), self._bits[:reached])
        self._bits = grown

    def _fill(self, source: Source, slices: int) -> None:
        for number in range(slices):
            self._bits.assign(slice(number, number + 1), Bits.encode(self.df, source(number, number + 1)))

    def slice_bytes(self, slices: int) -> int:
        """Bytes of so many slices."""
        return slices * self.tiles * stored_tile_bytes(self.df)

    def fresh(self, slices: int) -> Arrays:
        """Datums, and shared exponents where the format has them."""
        return _parts(Bits.empty(self.df, slices, self.tiles))

    def arrays(self) -> Arrays:
        """Datums [>=slices, tiles, 1024], and shared exponents [>=slices, tiles, 64] where the format has them."""
        self.settle()
        return _parts(self._bits)

    def may_hold(self, arrays: Arrays) -> bool:
        """Are these codes and exponents that the format has? Those of Bfp4 and Bfp2 do not fill their bytes."""
        datums, *exponents = arrays
        spec = FORMATS[self.df]
        narrow = spec.family == "a" and any(array.size and array.max() > _LARGEST_NARROW for array in exponents)
        return not narrow and not (datums.size and int(datums.max()) >> spec.bits)

    def free(self) -> None:
        POOL.give(self._bits.datums, self.name)
        self.replace(self.fresh(0), ())

    def _take(self, arrays: Arrays) -> None:
        datums, *exponents = arrays
        self._bits = Bits(self.df, datums, exponents[0] if exponents else None)

    def zero_entries(self, view: EntryView) -> None:
        """Set every written entry of a view to zero bits."""
        for slot in range(len(self.labels) // view.t):
            if view.label(slot):
                first = slot * view.t
                there = self._bits[first : first + view.t]
                there.datums[...] = 0
                if there.exponents is not None:
                    there.exponents[...] = 0


def _parts(bits: Bits) -> Arrays:
    return (bits.datums,) if bits.exponents is None else (bits.datums, bits.exponents)


class BitView(EntryView):
    """A queue's or ram's entries on a store of bits."""

    __slots__ = ("_store",)

    def __init__(self, name: str, store: BitStore, entries: int, t: int) -> None:
        super().__init__(name, store, entries, t)
        self._store = store

    @property
    def df(self) -> str:
        """The format of the entries."""
        return self._store.df

    def bits(self, slot: int, count: int) -> Bits:
        """`count` consecutive entries, writable, no copy: [count, tiles]."""
        first = slot * self.t
        last = (slot + count) * self.t
        part = self._store.bits(last)[first:last]
        exponents = None if part.exponents is None else part.exponents.reshape(count, self.tiles, -1)
        return Bits(part.df, part.datums.reshape(count, self.tiles, TILE_ELEMENTS), exponents)

    def read_bits(self, slots: Sequence[int]) -> Bits:
        """Entries in that order: [w, tiles]; a view where the slots are consecutive, else a copy."""
        if consecutive(slots):
            if self._store.source is not None:
                return Bits.encode(self.df, self.lent(slots[0], len(slots)))
            return self.bits(slots[0], len(slots))
        found = Bits.empty(self.df, len(slots), self.tiles)
        for position, slot in enumerate(slots):
            found.assign(position, self.read_bits([slot])[0])
        return found

    def write_bits(self, slots: Sequence[int], values: Bits, label: str) -> None:
        """Store values[i] in slots[i]; of values for one slot the last remains. One value may be for all slots."""
        self.reserve(max(slots, default=-1) + 1)
        for position, slot in enumerate(slots):
            self.bits(slot, 1).assign(0, values[position if len(values) > 1 else 0])
        self.mark(slots, label)

    def holds_bits(self, slot: int, bits: Bits) -> bool:
        """Are earlier `bits` from `slot` on still memory of the store? A push may have made the store grow since."""
        return address_of(bits.datums) == address_of(self.bits(slot, 1).datums)

    def entry(self, slot: int) -> NDArray[np.float32]:
        """The values of one entry as the host reads them, a copy: float32[tiles, 1024]."""
        return self.read_bits([slot])[0].values()

    def write(self, slots: Sequence[int], values: NDArray[np.float32], label: str) -> None:
        """Store values[i], float32[w, tiles, 1024], encoded as by the host (FORMATS 3, 4)."""
        self.write_bits(slots, Bits.encode(self.df, values), label)
