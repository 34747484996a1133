"""Machines that run the programs of a netlist from the start: clean ones that are recorded, and machines with a fault
in a queue's pointers or fill, which decide what is read at all and whether a program goes on."""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from typing import Final

from buda_emu.arithmetic.tensix.registers import core_of
from buda_emu.emulator.memory.bit_store import BitView
from buda_emu.emulator.memory.channel import Fifo
from buda_emu.emulator.options import Machine, with_memory
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.graph.schedule import Chunk
from buda_emu.emulator.runtime.graph.steps import Plan
from buda_emu.emulator.runtime.machine.listeners import Listener
from buda_emu.netlist.model import Netlist
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import ProgramError
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import Fault
from buda_emu.testing.injection.trace import Trace, beyond
from buda_emu.testing.injection.values import Arithmetic, Floats, OnDevice, Value

Fill = Callable[[Emulator, int], object]
"""A function that pushes a machine's inputs; generated inputs come from the seed."""
POINTERS: Final = ("rd", "wr", "local")
"""The pointers of a queue; a ram has no local one."""


class _Epochs(Listener):
    """A listener that tells traces which graphs each execute runs; the list may be filled after it was made."""

    def __init__(self, trace: "list[Trace]") -> None:
        self._trace = trace

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        """Tell every trace in the list that an execute of `graphs` begins."""
        for trace in self._trace:
            trace.epoch(graphs)


@dataclass(frozen=True, slots=True)
class Machines:
    """Runs a netlist from the start, as often as faults need: programs with their parameters in order, precision,
    memory `limit` in bytes. `fill` pushes the inputs; `made_up` says that they depend on the seed."""

    netlist: Netlist
    fill: Fill
    programs: Mapping[str, Mapping[str, str]]
    precision: Precision
    limit: int
    made_up: bool = True

    def arithmetic(self) -> Arithmetic:
        """Return the functions that compute, store and compare values as machines of this precision do."""
        if self.precision != "device":
            return Floats()
        return OnDevice(core_of(self.netlist.arch_name))

    @contextmanager
    def _open_machine(self, listeners: tuple[Listener, ...], seed: int) -> Generator[Emulator]:
        """Yield a new machine for one input at a time, with its inputs already pushed; close it at the end."""
        machine = with_memory(Machine(threads=1), self.limit)
        emulator = Emulator(self.netlist, self.precision, **machine, inputs_at_once=1, listeners=listeners)
        with closing(emulator):
            self.fill(emulator, seed)
            yield emulator

    def _run_programs(self, emulator: Emulator, recorder: Callable[[Plan, Chunk], None]) -> None:
        """Run all programs on a machine to their end; `recorder` is called with plan and chunk before each input
        runs."""
        emulator.record(recorder)
        for name, parameters in self.programs.items():
            emulator.run(name, parameters)
        emulator.record(None)

    def record_run(self, seed: int = 0) -> Trace:
        """Run the programs without a fault on a new machine, with inputs of `seed`, and return every value of the run.
        Raises the errors of a run, and UnsupportedError where the values exceed the memory limit."""
        traces: list[Trace] = []
        with self._open_machine((_Epochs(traces),), seed) as emulator:
            trace = Trace(emulator, self.arithmetic(), self.limit)
            traces.append(trace)
            trace.begun = windows(emulator)
            self._run_programs(emulator, trace)
            trace.finish()
            trace.left = windows(emulator)
        return trace

    def run_with_fault(self, fault: Fault, clean: Trace, outputs: Mapping[tuple[str, int], int]) -> "Left":
        """Run with a fault in a queue's pointer or entry, made after `fault.entry` inputs; return what the run leaves.
        `outputs` are the clean run's output values, by queue and slot. Raises the errors that stop a program;
        ProgramError of kind "empty" where an op would wait for ever for an entry that the pointers do not hold (NETLIST
        4.1, device pointer pair), unless the clean run reads such entries of that queue."""
        with self._open_machine((), 0) as emulator:
            inputs = 0

            def step() -> None:
                """Count an input, and change the machine when the fault's moment has come."""
                nonlocal inputs
                if inputs == fault.entry:
                    spoil(emulator, fault)
                inputs += 1

            def recorder(plan: Plan, chunk: Chunk) -> None:  # noqa: ARG001
                """Stop the program where an op would wait for an entry, else go on to the next input."""
                for queue in sorted(beyond(emulator.channels, chunk) - clean.beyond):
                    problem = f"read beyond the entries pushed to {emulator.channels[queue].describe()}"
                    raise ProgramError(problem, kind="empty", queue=queue)
                step()

            step()
            self._run_programs(emulator, recorder)
            arithmetic = self.arithmetic()
            values = dict[int, Value]()
            for (queue, slot), number in outputs.items():
                channel = emulator.channels[queue]
                if channel.view.label(slot):
                    values[number] = arithmetic.read(channel, slot, flat=False)
            return Left(values, windows(emulator))


@dataclass(frozen=True, slots=True)
class Left:
    """The memory that a run left: the outputs that were written, by the number of the clean run's value, and the slots
    between the pointers of each queue."""

    values: Mapping[int, Value]
    windows: Mapping[str, tuple[int, ...]]


def windows(emulator: Emulator) -> dict[str, tuple[int, ...]]:
    """Return, by queue, the slots between its pointers in order: the entries that the host would pop. Rams are left
    out."""
    return {name: tuple(channel.window()) for name, channel in emulator.channels.items() if isinstance(channel, Fifo)}


def spoil(emulator: Emulator, fault: Fault) -> None:
    """Change a machine in place as the fault says: flip a bit of a pointer of a queue or ram, or lose or repeat an
    entry. Raises ProgramError for a pointer outside of its ram, and for an entry that has no room."""
    channel = emulator.channels[fault.where]
    if fault.kind == "entry":
        assert isinstance(channel, Fifo)
        if fault.how == "lost":
            _remove_entry(channel, fault.tile)
        else:
            _repeat_entry(channel, fault.tile)
    elif isinstance(channel, Fifo):
        ring = channel.ring
        name = fault.how
        setattr(ring, name, (getattr(ring, name) ^ 1 << fault.bits[0]) % ring.limit)
    elif fault.how == "rd":
        channel.place_read(channel.rd ^ 1 << fault.bits[0])
    else:
        channel.place_write(channel.wr ^ 1 << fault.bits[0])


def _remove_entry(channel: Fifo, place: int) -> None:
    """Remove the entry number `place` of a queue's window: those after it move up a slot, and the queue holds one
    less."""
    slots = channel.window()
    for slot, after in zip(slots[place:], slots[place + 1 :], strict=False):
        _copy_slot(channel, after, slot)
    channel.ring.wr = (channel.ring.wr - 1) % channel.ring.limit


def _repeat_entry(channel: Fifo, place: int) -> None:
    """Insert entry number `place` of a queue's window once more after itself; those after it move down a slot. Raises
    ProgramError where the queue has no room."""
    channel.next_write()
    slots = channel.window()
    for slot, after in reversed(list(zip(slots[place:], slots[place + 1 :], strict=False))):
        _copy_slot(channel, slot, after)


def _copy_slot(channel: Fifo, source: int, target: int) -> None:
    """Copy an entry of a queue from one slot to another, with its format and the host's data as pushed."""
    view = channel.view
    if isinstance(view, BitView):
        view.write_bits([target], view.read_bits([source]).copy(), view.label(source))
    else:
        view.write([target], view.read([source]).copy(), view.label(source))
    if channel.flat is not None and source in channel.flat:
        channel.flat[target] = channel.flat[source]
