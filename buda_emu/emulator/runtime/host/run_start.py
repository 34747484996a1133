"""The state of a machine before a program runs, to which it goes back when the program fails."""

from operator import attrgetter
from typing import Final

from buda_emu.emulator.runtime.graph.epochs import Epochs
from buda_emu.emulator.runtime.machine.listeners import Journal
from buda_emu.emulator.runtime.machine.memory import Memory
from buda_emu.netlist.program.settings import Variables

_ring_pointers: Final = attrgetter("rd", "wr", "local", "local_base")
_ram_pointers: Final = attrgetter("rd", "wr")


class RunStart:
    """Pointers, allocations, variables and journal as they are before a program runs. Contents of queues and rams are
    not kept: what a program writes to a ram stays, and after it has overwritten an entry that a queue held before it,
    there is no way back."""

    __slots__ = (
        "_allocated",
        "_epochs",
        "_host_moves",
        "_journal",
        "_memory",
        "_rams",
        "_rings",
        "_state",
        "_traffic",
        "_values",
        "_variables",
    )

    def __init__(self, memory: Memory, epochs: Epochs, variables: Variables, journal: Journal) -> None:
        """Note the state of this moment; `variables` are those of the program."""
        self._memory = memory
        self._epochs = epochs
        self._variables = variables
        self._journal = journal
        self._host_moves = memory.host_moves
        memory.held_entries.begin(memory.channels.values())
        self._rings = list(map(_ring_pointers, memory.rings))
        self._rams = list(map(_ram_pointers, memory.rams))
        self._allocated = memory.allocated
        self._state = epochs.state()
        self._values = variables.state()
        self._traffic = journal.state()

    def go_back(self) -> None:
        """Restore the state, unless the host has moved a queue since, or the program has overwritten an entry that a
        queue held: neither can be undone, and then the work that was completed stays."""
        memory = self._memory
        if memory.host_moves != self._host_moves or memory.held_entries.lost:
            return
        for ring, pointers in zip(memory.rings, self._rings, strict=True):
            ring.rd, ring.wr, ring.local, ring.local_base = pointers
        for ram, pointers in zip(memory.rams, self._rams, strict=True):
            ram.rd, ram.wr = pointers
        memory.replace_allocations(self._allocated)
        self._epochs.set_state(self._state)
        self._variables.set_state(*self._values)
        self._journal.replace(*self._traffic)
