"""What a run does with queues and rams: who fills and empties them, and where pointers wrap."""

from functools import partial
from typing import TYPE_CHECKING, Final

from buda_emu.device.channel import Fifo, Ram
from buda_emu.runtime.emulator import Emulator
from buda_emu.runtime.graph.schedule import Chunk
from buda_emu.runtime.graph.steps import Plan
from buda_emu.runtime.machine.listeners import Listener

if TYPE_CHECKING:
    from buda_emu.ops.on_device.kernel_units import KernelUnits

EVENTS: Final = (
    "queue: push by the host", "queue: push by an op", "queue: pop by a pointer setting",
    "queue: pop by global_rdptr_autoinc", "queue: full", "queue: empty again", "queue: write pointer wraps",
    "queue: read pointer wraps", "queue: an entry is read again", "ram: write by the host", "ram: write by an op",
    "ram: write pointer wraps", "ram: read pointer wraps", "ram: an entry is written again",
    "ram: read and written by one input", "inputs together",
)  # fmt: skip


class Noting(Listener):
    """Watches one machine from its making to its end. `events`: of `EVENTS`; `steps`: of `units.device_steps`."""

    def __init__(self, emulator: Emulator) -> None:
        """Begins."""
        self.events: set[str] = set()
        self.steps: set[str] = set()
        self._emulator = emulator
        self._in_epoch = False
        self._pushed: dict[str, int] = {}
        """The last slot of each."""
        self._read: dict[str, int] = {}
        self._written: set[tuple[str, int]] = set()
        emulator.add_listener(self)
        emulator.record(self._chunk, self._units() if emulator.precision == "device" else None)

    def _units(self) -> "partial[KernelUnits]":
        from buda_emu.coverage.units import NotingUnits  # with all that only precision "device" needs

        return partial(NotingUnits, steps=self.steps)

    def exercised(self) -> dict[str, tuple[str, ...]]:
        """By list what the run had of it."""
        return {"queues and rams": tuple(sorted(self.events)), "device steps": tuple(sorted(self.steps))}

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        self._in_epoch = True

    def epoch_end(self, graphs: tuple[str, ...]) -> None:  # noqa: ARG002
        self._in_epoch = False

    def queue_push(self, queue: str, slot: int) -> None:
        channel = self._emulator.channels[queue]
        by = "the host" if self._emulator.netlist.queues[queue].host_fed else "an op"
        last = self._pushed.get(queue, -1)
        self._pushed[queue] = slot
        if isinstance(channel, Fifo):
            self._note(
                "queue: push by " + by, ("queue: full", channel.ring.full), ("queue: write pointer wraps", slot < last)
            )
            return
        again = (queue, slot) in self._written
        self._written.add((queue, slot))
        wraps = _wraps(last, slot, channel.global_wrptr_autoinc, channel.entries)
        self._note(
            "ram: write by " + by, ("ram: write pointer wraps", wraps), ("ram: an entry is written again", again)
        )

    def queue_pop(self, queue: str, count: int) -> None:  # noqa: ARG002
        channel = self._emulator.channels[queue]
        empty = isinstance(channel, Fifo) and channel.ring.empty
        by = "global_rdptr_autoinc" if self._in_epoch else "a pointer setting"
        self._note("queue: pop by " + by, ("queue: empty again", empty))

    def _chunk(self, plan: Plan, chunk: Chunk) -> None:  # noqa: ARG002
        """Inputs are about to run; their pointers have moved."""
        self._note("", ("inputs together", chunk.inputs > 1))
        for queue, slots in chunk.reads.items():
            channel = self._emulator.channels[queue]
            for slot in slots:
                self._reads(queue, channel, slot)
            both = isinstance(channel, Ram) and bool(set(slots) & set(chunk.writes.get(queue, ())))
            self._note("", ("ram: read and written by one input", both))

    def _reads(self, queue: str, channel: Fifo | Ram, slot: int) -> None:
        last = self._read.get(queue, -1)
        self._read[queue] = slot
        if isinstance(channel, Fifo):
            wraps = _wraps(last, slot, channel.rd_ptr_autoinc, channel.ring.entries)
            self._note("", ("queue: read pointer wraps", wraps), ("queue: an entry is read again", slot == last))
        else:
            wraps = _wraps(last, slot, channel.global_rdptr_autoinc, channel.entries)
            self._note("", ("ram: read pointer wraps", wraps))

    def _note(self, always: str, *events: tuple[str, bool]) -> None:
        self.events.update(name for name, happened in ((always, bool(always)), *events) if happened)


def _wraps(last: int, slot: int, step: int, entries: int) -> bool:
    """Whether a pointer went beyond the last slot, and was not set back: from the slots before and after."""
    return slot < last and (slot - last) % entries == max(step, 1) % entries
