"""The emulated machines of a compiled model: filled with its constants, fed, run and read."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.graph.graph import FORWARD, Array
from buda_emu.compiler.place.placement import Placement
from buda_emu.image.model_io import ModelIo, ModelOutput
from buda_emu.image.sets import joined, stream
from buda_emu.netlist.microbatch import LOOP, of_microbatch
from buda_emu.netlist.model import Netlist
from buda_emu.runtime.emulator import Emulator
from buda_emu.runtime.machine.listeners import Listener
from buda_emu.spec.precision import Precision

Tensors = Callable[[], Iterable[tuple[str, Array]]]


class Machines:
    """Made when they are needed. `tensors`: the model's method that gives constants and parameters by queue."""

    def __init__(self, netlist: Netlist, placement: Placement, io: ModelIo, tensors: Tensors) -> None:
        self._netlist = netlist
        self._placement = placement
        self._io = io
        self._tensors = weakref.WeakMethod(tensors)  # the model has its machines, and goes with them
        self.open: dict[tuple[str, int], Emulator] = {}  # by precision and copies of the model

    @cached_property
    def single(self) -> Netlist:
        """For one input at a time (`of_microbatch`), and of copies on several chips one, with the names of the
        placement: the same ops on the same cores."""
        if self._placement.copies == 1:
            return of_microbatch(self._netlist, 1)
        return of_microbatch(netlist_of(replace(self._placement, copies=1), self._netlist.path), 1)

    def run(self, arrays: Mapping[str, Array], precision: Precision) -> tuple[Array, ...]:
        """The outputs; several sets of inputs stream through the machine."""
        queues = [queue for queue in self._placement.queues.values() if queue.role in ("input", "output")]
        at_once = min(queue.entries for queue in queues) // self._placement.microbatch * self._placement.copies
        rounds = list(stream(self._io, arrays, at_once))
        copies = self._placement.copies if len(rounds[0]) > 1 else 1
        machine = self.machine(precision, copies)
        found = [self._round(machine, sets, copies) for sets in rounds]
        return tuple(joined(parts) for parts in zip(*found, strict=True))

    def _round(self, machine: Emulator, sets: Sequence[Mapping[str, Array]], copies: int) -> tuple[Array, ...]:
        """Copies of the model take the sets in turn; where the last ones are left without, they take the last set once
        more, and its outputs are dropped."""
        dealt = [*sets, *[sets[-1]] * (-len(sets) % copies)]
        for number, arrays in enumerate(dealt):
            for name, array in self._io.queues(arrays).items():
                machine.push(self._queues(name, copies)[number % copies], array)
        machine.run(program_name(FORWARD), {LOOP: len(dealt) // copies})

        def popped(output: ModelOutput) -> Iterator[Array]:
            names = self._queues(output.queue, copies)
            return (output.from_queue(machine.pop(names[number % copies])) for number in range(len(dealt)))

        outputs = [list(popped(output))[: len(sets)] for output in self._io.outputs]
        return tuple(joined(parts) for parts in outputs)

    def _queues(self, name: str, copies: int) -> tuple[str, ...]:
        """A queue in the machine of so many copies."""
        return self._placement.copied(name) if copies > 1 else (name,)

    def machine(self, precision: Precision, copies: int = 1) -> Emulator:
        """A machine with all constants, kept for the next call; one at a time."""
        key = precision, copies
        if key not in self.open:
            self.close()
            machine = Emulator(of_microbatch(self._netlist, 1) if copies > 1 else self.single, precision)
            weakref.finalize(self, machine.close)
            try:
                self.fill(machine, copies=copies)
            except BaseException:
                machine.close()
                raise
            self.open[key] = machine
        return self.open[key]

    def fill(self, machine: Emulator, inputs: Sequence[Array] = (), copies: int = 1) -> None:
        """Constants and parameters, and one set of inputs."""
        tensors = self._tensors()
        for name, array in tensors() if tensors is not None else ():
            for queue in self._queues(name, copies):
                machine.push(queue, array)
        if inputs:
            for name, array in self._io.queues(dict(zip(self._io.labels, inputs, strict=True))).items():
                machine.push(name, array)

    def watched(self, inputs: Sequence[Array], precision: Precision, listener: Listener) -> tuple[Array, ...]:
        """One set of inputs on a machine of its own, that a listener watches."""
        self.close()
        with Emulator(self.single, precision, listeners=(listener,), inputs_at_once=1) as machine:
            self.fill(machine, inputs)
            machine.run(program_name(FORWARD), {LOOP: 1})
            return tuple(output.from_queue(machine.pop(output.queue)) for output in self._io.outputs)

    def close(self) -> None:
        """Free them; the next call makes another."""
        for machine in self.open.values():
            machine.close()
        self.open.clear()
