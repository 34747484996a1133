"""The pointer pair of a device queue (NETLIST 4.1 "device pointer pair", LAYOUT 3.2)."""

from buda_emu.support.records import dataclass


@dataclass(slots=True)
class RingPointers:
    """Read and write pointers of a ring of `entries` slots. They run modulo 2*entries, so that full and empty
    differ.

    `local` is the pointer from which a running epoch reads; `local_base` is where the epoch's settings placed it.
    """

    entries: int
    rd: int = 0
    wr: int = 0
    local: int = 0
    local_base: int = 0

    @property
    def limit(self) -> int:
        """Return the modulus of the pointers, which stand in 0..limit-1."""
        return 2 * self.entries

    @property
    def occupancy(self) -> int:
        """Return the number of entries between read and write pointer."""
        return (self.wr - self.rd) % self.limit

    @property
    def empty(self) -> bool:
        """Return whether no entry is between the pointers."""
        return self.rd == self.wr

    @property
    def full(self) -> bool:
        """Return whether no slot is free."""
        return abs(self.wr - self.rd) == self.entries

    def slot(self, pointer: int) -> int:
        """Return the slot to which a pointer points."""
        return pointer % self.entries

    def advance_write(self) -> int:
        """Advance the write pointer; return the slot to write. The caller has checked `full`."""
        slot = self.slot(self.wr)
        self.wr = (self.wr + 1) % self.limit
        return slot

    def advance_read(self, count: int = 1) -> None:
        """Free the oldest `count` entries by moving the read pointer. The caller has checked the occupancy."""
        self.rd = (self.rd + count) % self.limit

    def advance_local(self, count: int) -> int:
        """Return the slot at the local pointer, and advance the pointer by `count`."""
        local = self.local
        entries = self.entries
        self.local = (local + count) % (2 * entries)
        return local % entries

    def place_local(self, pointer: int) -> None:
        """Place the local pointer, and remember the place as `local_base`: a running epoch starts to read there."""
        self.local = self.local_base = pointer % self.limit

    def place_read(self, pointer: int) -> None:
        """Set the read pointer without a check of the occupancy (NETLIST 4.1 set_global_rd)."""
        self.rd = pointer % self.limit

    def pop_to(self, pointer: int) -> int:
        """Move the read pointer to a program's wrapped counter; return by how much the occupancy fell (NETLIST 4.3
        "Propagation").

        Passing the write pointer empties the ring: an occupancy above `entries` cannot exist on the device, so
        everything was popped.
        """
        limit = self.limit
        before = (self.wr - self.rd) % limit
        self.rd = pointer % limit
        left = (self.wr - self.rd) % limit
        if left > self.entries:
            self.wr = self.rd
            left = 0
        return before - left

    def reset(self) -> None:
        """Set all pointers to 0 (NETLIST 3.6 allocate_queue)."""
        self.rd = self.wr = self.local = self.local_base = 0
