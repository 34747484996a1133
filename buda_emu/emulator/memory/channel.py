"""Queues and rams as an epoch sees them: tile memory plus the pointers and flags of settings (NETLIST 4.1)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.store import EntryView
from buda_emu.spec.ring import RingPointers
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass


@dataclass(slots=True)
class Fifo:
    """A `type: queue`. `flat`, where kept, holds the row-major host data of each slot (OPS 6.10)."""

    view: EntryView
    ring: RingPointers
    prologue: bool = False
    epilogue: bool = False
    zero: bool = False
    rd_ptr_autoinc: int = 1
    global_rdptr_autoinc: int = 0
    flat: dict[int, NDArray[np.float32]] | None = None

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self.view.name

    def describe(self) -> str:
        """Return name, size and pointers for error texts."""
        r = self.ring
        return (
            f"queue {self.name} (entries {r.entries}, rd_ptr_global {r.rd}, wr_ptr_global {r.wr}, "
            f"rd_ptr_local {r.local}, occupancy {r.occupancy})"
        )

    def next_write(self) -> int:
        """Return the slot of the next push and move the write pointer. Raises ProgramError when the queue is full
        (deviation NETLIST 9.1)."""
        if self.ring.full:
            raise ProgramError(f"push to a full queue: {self.describe()}", kind="full", queue=self.name)
        return self.ring.advance_write()

    def next_read(self) -> int:
        """Return the slot at the local read pointer, which the epoch reads for its next input, and move the pointer by
        rd_ptr_autoinc, but not in a static queue (prologue or epilogue; NETLIST 4.1 get). Raises ProgramError when the
        queue is empty."""
        ring = self.ring
        if ring.empty:
            raise ProgramError(f"read from an empty queue: {self.describe()}", kind="empty", queue=self.name)
        return ring.advance_local(0 if self.prologue or self.epilogue else self.rd_ptr_autoinc)

    def pop(self, count: int) -> None:
        """Free `count` entries. Raises ProgramError when there are fewer."""
        if not count:
            return
        if count > self.ring.occupancy:
            raise ProgramError(f"pop of {count} from {self.describe()}", kind="empty", queue=self.name)
        self.ring.advance_read(count)

    def holds_next_read(self) -> bool:
        """Return whether the entry that `next_read` would give has been pushed: the local pointer is behind the write
        pointer, as the device tests it (NETLIST 4.1), or its slot is among those between the global pointers."""
        ring = self.ring
        pushed = 1 <= (ring.wr - ring.local) % ring.limit <= ring.entries
        return not ring.empty and (pushed or (ring.local - ring.rd) % ring.entries < ring.occupancy)

    def undo_reads(self, inputs: int) -> None:
        """Move the local read pointer back over the last `inputs` calls of `next_read`."""
        if not (self.prologue or self.epilogue):
            self.ring.local = (self.ring.local - inputs * self.rd_ptr_autoinc) % self.ring.limit

    def undo_writes(self, inputs: int) -> None:
        """Move the write pointer back over the last `inputs` calls of `next_write`."""
        self.ring.wr = (self.ring.wr - inputs) % self.ring.limit

    def undo_pops(self, count: int) -> None:
        """Move the global read pointer back over `count` entries. Valid only while their slots have not been written
        since."""
        self.ring.rd = (self.ring.rd - count) % self.ring.limit

    def window(self) -> list[int]:
        """Return the slots between global read and write pointer, oldest first."""
        return [self.ring.slot(self.ring.rd + i) for i in range(self.ring.occupancy)]


@dataclass(slots=True)
class Ram:
    """A `type: ram`: slots under a global read and a global write pointer, no fill level."""

    view: EntryView
    rd: int = 0
    wr: int = 0
    prologue: bool = False
    epilogue: bool = False
    zero: bool = False
    global_rdptr_autoinc: int = 0
    global_wrptr_autoinc: int = 0
    flat: dict[int, NDArray[np.float32]] | None = None

    @property
    def name(self) -> str:
        """The name of the ram."""
        return self.view.name

    @property
    def entries(self) -> int:
        """The number of slots."""
        return self.view.entries

    def describe(self) -> str:
        """Return name, size and pointers for error texts."""
        return f"ram {self.name} (entries {self.entries}, rd_ptr_global {self.rd}, wr_ptr_global {self.wr})"

    def place_read(self, pointer: int) -> None:
        """Set the read pointer. Raises ProgramError outside the slots."""
        if not 0 <= pointer < self.entries:
            raise ProgramError(f"rd_ptr_global {pointer} outside {self.describe()}", kind="pointer", queue=self.name)
        self.rd = pointer

    def place_write(self, pointer: int) -> None:
        """Set the write pointer. Raises ProgramError outside the slots."""
        if not 0 <= pointer < self.entries:
            raise ProgramError(f"wr_ptr_global {pointer} outside {self.describe()}", kind="pointer", queue=self.name)
        self.wr = pointer

    def next_write(self) -> int:
        """Return the slot of the next write and move the pointer by its autoinc."""
        slot = self.wr
        self.wr = (self.wr + self.global_wrptr_autoinc) % self.entries
        return slot

    def next_read(self) -> int:
        """Return the slot that the epoch reads for its next input and move the read pointer by its autoinc, which a
        static ram (prologue or epilogue) does not."""
        slot = self.rd
        if self.global_rdptr_autoinc and not (self.prologue or self.epilogue):
            self.rd = (slot + self.global_rdptr_autoinc) % self.entries
        return slot

    def undo_reads(self, inputs: int) -> None:
        """Move the read pointer back over the last `inputs` calls of `next_read`."""
        if not (self.prologue or self.epilogue):
            self.rd = (self.rd - inputs * self.global_rdptr_autoinc) % self.entries

    def undo_writes(self, inputs: int) -> None:
        """Move the write pointer back over the last `inputs` calls of `next_write`."""
        self.wr = (self.wr - inputs * self.global_wrptr_autoinc) % self.entries

    def reset(self) -> None:
        """Set both pointers to 0."""
        self.rd = self.wr = 0
