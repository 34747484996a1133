"""The machine that a user holds: push, run, pop (README)."""

import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.memory.channel import Fifo
from buda_emu.emulator.memory.host import default_memory_limit, usable_processors
from buda_emu.emulator.options import bytes_of
from buda_emu.emulator.runtime.graph.chunk import Context, Recorder
from buda_emu.emulator.runtime.graph.epochs import Epochs
from buda_emu.emulator.runtime.graph.execute import Executor
from buda_emu.emulator.runtime.graph.threads import WorkerPool
from buda_emu.emulator.runtime.host.exchange import Exchange, OutputParts
from buda_emu.emulator.runtime.host.host_io import HostIo, Readout
from buda_emu.emulator.runtime.host.programs import Programs
from buda_emu.emulator.runtime.machine.gate import Gate, Part, Stepper
from buda_emu.emulator.runtime.machine.listeners import Listener, require_events
from buda_emu.emulator.runtime.machine.memory import Channel, Memory, MemoryUse, Watchers
from buda_emu.emulator.runtime.machine.running import ProgressCallback, Run
from buda_emu.netlist.model import Netlist, TemporalGraph, require_netlist
from buda_emu.netlist.program.interpreter import Standing, StepBudget
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT, PRECISIONS, Precision
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, HostTimeoutError, HostWarning, ProgramError
from buda_emu.support.html_table import html_table
from buda_emu.support.lazy import lazy
from buda_emu.support.options import integer_of, names_of, with_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
    from buda_emu.emulator.runtime.snapshots import archive, state
    from buda_emu.emulator.runtime.snapshots.checkpoint import Checkpoints
else:  # only those who save need it
    archive = lazy("buda_emu.emulator.runtime.snapshots.archive")
    state = lazy("buda_emu.emulator.runtime.snapshots.state")

_SHOWN = 6  # queues of a `repr`
DEFAULT_WAIT = 10.0  # seconds that a program on a thread of its own waits for the host


class Emulator:
    """One emulated machine with the queues of one netlist.

    `precision`: "format" is the reference with format quantisation on, "ideal" is float32 throughout (OPS 4.2),
    "device" is the chip's own arithmetic on the bits of each format (DEVICE_NUMERICS 6). `threads`: workers, default
    `usable_processors()`; results do not depend on it. `memory_limit`: bytes of tiles held in queues and rams, as a
    number or as a text such as "8G", default a share of what the computer has available (docs/run/memory.md).
    `step_limit`: instructions that one `run` may take. `inputs_at_once`: most inputs of an epoch that run together,
    default as many as memory allows.
    `late_pointer_checks`: a ram's pointer that a varinst moves beyond the slots is an error when a graph uses it, as on
    silicon, and not at once, as in the reference (NETLIST 12). `part`: this machine's part, of several machines that
    run the netlist together (`buda_emu.emulator.distributed`); one input at a time then. Use it as a context manager,
    or call `close`."""

    @with_hints
    def __init__(
        self,
        netlist: Netlist,
        precision: Precision = "format",
        threads: int | None = None,
        *,
        memory_limit: int | str | None = None,
        step_limit: int = DEFAULT_STEP_LIMIT,
        inputs_at_once: int | None = None,
        listeners: tuple[Listener, ...] = (),
        late_pointer_checks: bool = False,
        part: Part | None = None,
    ) -> None:
        require_netlist(netlist, "Emulator")
        if precision not in PRECISIONS:
            raise HostError(f"precision {precision!r} is not one of: {', '.join(PRECISIONS)}")
        integer_of("threads", 1, optional=True)(threads)
        integer_of("inputs_at_once", 1, optional=True)(inputs_at_once)
        integer_of("step_limit", 0)(step_limit)
        byte_limit = bytes_of(memory_limit)
        if byte_limit is None:
            byte_limit = default_memory_limit()
        for listener in listeners:
            require_events(listener)
        self.netlist = netlist
        self.precision: Precision = precision
        self._watched = Watchers()
        self._watched.listeners = tuple(listeners)
        self._pool = WorkerPool(threads or usable_processors())
        self._memory = Memory(netlist, byte_limit, as_bits=precision == "device", part=part)
        self._gate = Gate()
        quantised = precision != "ideal"
        host = HostIo(netlist, self._pool, quantised)
        self._exchange = Exchange(
            netlist=netlist, memory=self._memory, host=host, gate=self._gate, watched=self._watched
        )
        steps = StepBudget(step_limit)
        self._context = Context(
            netlist=netlist,
            memory=self._memory,
            parallel=self._pool,
            quantised=quantised,
            watched=self._watched,
            steps=steps,
            inputs_at_once=inputs_at_once,
            gate=self._gate,
        )
        if precision == "device":
            from buda_emu.arithmetic.tensix.registers import core_of

            self._context.core = core_of(netlist.arch_name)
        if part is not None:  # else machines could differ in what they take at once
            self._context.part = part
            self._context.inputs_at_once = 1
        self._executor = Executor(self._context)
        self._epochs = epochs = Epochs(
            netlist, self._memory, self._run_graph, self._watched, late_checks=late_pointer_checks
        )
        # Looked for at the first save; b"": not to be had, or a part's, whose snapshots are of this run alone.
        if part is None:
            self._netlist_text: bytes | None = None
        else:
            self._netlist_text = b""
        self._begun: state.ImageUse | None = None
        self._programs = Programs(
            netlist=netlist,
            memory=self._memory,
            epochs=epochs,
            steps=steps,
            gate=self._gate,
            watched=self._watched,
            undo=self._executor.undo,
            free=self._free,
        )

    def __repr__(self) -> str:
        return f"Emulator({self.netlist.path}, precision={self.precision!r}: {self._state_text()})"

    def _repr_html_(self) -> str:
        """Return a table of the queues and rams that hold entries, for notebooks."""
        rows = [(name, str(count), str(entries)) for name, count, entries in self._occupancies()]
        return html_table(repr(self), ("queue or ram", "entries held", "of"), rows)

    def _state_text(self) -> str:
        """Return the state for `repr`: closed, all empty, or how full the first few queues and rams are."""
        if self._gate.closed:
            return "closed"
        filled = self._occupancies()
        if not filled:
            return f"{plural(len(self.netlist.queues), 'queue')}, all empty"
        shown = ", ".join(f"{name} {count}/{entries}" for name, count, entries in filled[:_SHOWN])
        if len(filled) > _SHOWN:
            return f"{shown}, ..."
        return shown

    def _occupancies(self) -> list[tuple[str, int, int]]:
        """Return (name, entries held, entries that fit) of each queue and ram that holds any."""
        filled: list[tuple[str, int, int]] = []
        for name, channel in self._memory.channels.items():
            if isinstance(channel, Fifo):
                count = channel.ring.occupancy
            else:
                count = channel.view.written
            if count:
                filled.append((name, count, channel.view.entries))
        return filled

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel running programs and wait for their end, stop all threads, free the memory. A thread that waits in a
        push or pop gets a HostError, and so does every later call. From a listener: the program ends after it."""
        self._gate.close()
        self._programs.join()
        self._pool.close()
        self._free()

    def _free(self) -> None:
        """Free memory and tensors if the machine is closed and no program is left; earlier and later calls do
        nothing."""
        if self._gate.claim():
            self._memory.free()
            self._context.free()
            self._executor.free()

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` for every later event. Raises HostError for an object that is no listener, or has a public
        method that is no event."""
        require_events(listener)
        with self._gate:
            self._watched.listeners = (*self._watched.listeners, listener)

    def remove_listener(self, listener: Listener) -> None:
        """Stop calling `listener`. Raises HostError when it is not a listener of this machine."""
        with self._gate:
            remaining = tuple(other for other in self._watched.listeners if other is not listener)
            if len(remaining) == len(self._watched.listeners):
                raise HostError(f"{listener!r} is not a listener of this Emulator")
            self._watched.listeners = remaining

    def record(self, recorder: "Recorder | None", units: "Callable[..., KernelUnits] | None" = None) -> None:
        """Call `recorder(plan, chunk)` before each later chunk of inputs runs, with what the chunk reads, computes and
        writes; None: no calls. The arguments are the machine's own and must not be changed. `units`: in precision
        "device" a function `units(core, lend=...)` that makes the units that ops run on."""
        with self._gate:
            self._context.recorder = recorder
            self._context.units = units

    @property
    def channels(self) -> "Mapping[str, Channel]":
        """Queues and rams by name, as the machine holds them. They may be read while nothing runs, or by a recorder."""
        return self._memory.channels

    @property
    def programs(self) -> tuple[str, ...]:
        """Program names in file order."""
        return tuple(dict.fromkeys(self.netlist.program_order))

    @property
    def memory(self) -> MemoryUse:
        """The memory that tensors take. Raises HostError when the machine is closed."""
        self._require_open("memory")
        return MemoryUse(self._memory.held, self._executor.widest_cut, self._memory.limit)

    def push(self, queue: str, array: object, slot: int | None = None, *, timeout: float = 0.0) -> None:
        """Write host entries: `array` [entries, t, rows, cols] of numpy, ml_dtypes or torch, or anything that numpy
        takes. Three dimensions are [entries, rows, cols], two are one entry (NETLIST 7.4).

        Elements: float32; other floats, halves and integers are converted as FORMATS 3.10 says; RawUInt formats take
        integers. A queue takes entries in order after its write pointer, as room appears within `timeout` seconds,
        without a time-out all of them or none; a ram takes them in slots `slot`, slot+1, ... (default 0).

        Warns with HostWarning of a queue that an op feeds: its entries come from there.

        Raises HostTimeoutError (a HostError) when the queue is full, HostError: unknown name, wrong shape or type,
        slot out of range.
        """
        self._require_open("push")
        self._exchange.push(queue, array, slot, timeout)
        target = self.netlist.queues[queue]
        if not target.host_fed and not target.is_ram:
            message = f"push to {queue}: op {target.input} feeds this queue, and its entries come from there"
            warnings.warn(message, HostWarning, stacklevel=2)

    def begin_with(self, image: "state.InitialImage") -> None:
        """Push the constants and parameters of a device image into a machine that holds nothing. Snapshots refer to the
        image for data that has not changed since (docs/run/snapshots.md). Raises as `push`, ImageError."""
        self._require_open("begin_with")
        filled_before = state.stores(self._memory)
        filled: dict[str, int] = {}
        for tensor in image.initial_tensors():
            self.push(tensor.queue, tensor.array, tensor.slot)
            store = self._memory.channel(tensor.queue).view.store
            filled[store.name] = store.writes
        image_stores = {name: count for name, count in filled.items() if name not in filled_before}
        self._begun = state.ImageUse(image, image_stores)

    def pushed_elsewhere(self, queue: str, count: int, slot: int | None = None) -> None:
        """Count a push of `count` entries that another machine holds, of several that run one netlist: pointers move,
        no data is stored. `slot`: the first slot of a ram. Raises as `push`."""
        self._require_open("pushed_elsewhere")
        self._exchange.pushed_elsewhere(queue, count, slot)

    def pop(self, queue: str, count: int = 1, readout: Readout = "host", *, timeout: float = 0.0) -> NDArray[Any]:
        """Take `count` entries out of a queue: [count, t, rows, cols], float32, or uint32 for RawUInt formats.

        Raises HostTimeoutError when there are fewer for `timeout` seconds, HostError on a ram or beyond its entries."""
        self._require_open("pop")
        try:
            return self._exchange.pop(queue, count, readout, timeout)
        except HostTimeoutError as error:
            self._raise_with_cause(queue, error)

    def peek(
        self, queue: str, count: int | None = None, readout: Readout = "host", slot: int = 0, *, timeout: float = 0.0
    ) -> NDArray[Any]:
        """Read entries and leave them: [count, t, rows, cols] float32, or uint32 for RawUInt formats.

        A queue: `count` entries from the read pointer (default: all that are there), waiting for them at most `timeout`
        seconds. A ram: `count` slots from `slot` (default one), waiting until they are written. `readout`: "raw" as
        held, "host" as the host reads it in the queue's host type, widened. Raises HostTimeoutError, HostError.
        """
        self._require_open("peek")
        try:
            return self._exchange.peek(queue, count, readout, slot, timeout)
        except HostTimeoutError as error:
            self._raise_with_cause(queue, error)

    def _raise_with_cause(self, queue: str, error: HostTimeoutError) -> NoReturn:
        """Raise the error of a read that found too few entries. If an op fills the queue and the last program failed,
        the error names that failure, since an error of `run_async` shows nowhere else."""
        failure = self._programs.last_failure
        if failure is None or self.netlist.queues[queue].host_fed:
            raise error from None
        program, cause = failure
        first_line = (str(cause) or type(cause).__name__).splitlines()[0]
        raise HostTimeoutError(f"{error}; the last program, {program}, failed: {first_line}") from cause

    def put(self, queue: str, array: object, slot: int) -> None:
        """Replace the content of an entry of a queue or ram, whoever fills it, and leave pointers as they are; for
        debuggers. `array`: one entry, as `push` takes it. Raises HostError."""
        self._require_open("put")
        self._exchange.put(queue, array, slot)

    def put_bytes(self, queue: str, slot: int, offset: int, data: bytes) -> None:
        """Change bytes of an entry that was written, for debuggers. `offset` counts from the first buffer of its
        `memory_image`, all buffers one after the other. Raises what `memory_image` raises, and HostError for bytes
        outside of it."""
        self._require_open("put_bytes")
        self._exchange.put_bytes(queue, slot, offset, data)

    def memory_image(self, queue: str, slot: int = 0) -> list[NDArray[np.uint8]]:
        """Return the bytes of one entry as the device's memory would hold them: uint8[entry_bytes] for each buffer of
        the grid, row-major, without the queue header. Values are rounded to the queue's format.

        Raises HostError for an entry never written, UnsupportedError for a format without that layout."""
        self._require_open("memory_image")
        return self._exchange.image(queue, slot)

    def outputs(
        self, readout: Readout = "host", queues: str | Collection[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return every op-fed queue that holds entries (those between its pointers) and every op-fed ram (all slots,
        unwritten ones zero): {name: [entries, t, rows, cols]}. Nothing is popped. `queues`: only these."""
        self._require_open("outputs")
        return self._exchange.outputs(readout, None if queues is None else names_of(queues))

    def outputs_in_parts(self, readout: Readout = "host") -> Iterator[OutputParts]:
        """Yield the outputs without ever holding a whole one: each with its shape, type and an iterator of arrays [some
        entries, t, rows, cols], to be exhausted before the next output. No program may run meanwhile."""
        self._require_open("outputs_in_parts")
        return self._exchange.outputs_in_parts(readout)

    def run(
        self,
        program: str,
        params: Mapping[str, object] | None = None,
        *,
        wait: float = 0.0,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Run one program to its end, after those asked for before it. `params` binds `param` names, e.g.
        {"$p_loop_count": 4}; the `$` may be left out. Parameters of earlier runs stay unless such a run failed.

        `wait`: seconds that an epoch which has nothing to do waits for the host to push to an input queue, or to pop
        from a full output queue; then, and at once with 0, that is a deadlock. The inputs that are there run meanwhile.
        `progress` is called with a Progress after each chunk of inputs; its exception ends the program.

        Raises ProgramError naming instruction, graph, op and queue; HostError for an unknown program, and for a
        parameter that no program of the netlist takes; RunCancelledError when the machine is closed meanwhile. After a
        ProgramError pointers and variables are as before the run (docs/python/embedding.md).
        """
        self._require_open("run")
        self._programs.run(program, params, wait, progress)

    def run_async(
        self,
        program: str,
        params: Mapping[str, object] | None = None,
        *,
        wait: float = DEFAULT_WAIT,
        progress: ProgressCallback | None = None,
    ) -> Run:
        """Start a program on a thread of its own and return at once; its errors come out of `Run.result`. See `run`.

        `progress` is called with a Progress after each chunk of inputs, on that thread. Raises HostError for an
        unknown program or parameter.
        """
        self._require_open("run_async")
        return self._programs.start(program, params, wait, progress)

    def resume(self, standing: Standing) -> None:
        """Run the rest of a program from the instruction of `standing` on, on the calling thread, after `checkpoints`
        brought the machine back to it. Raises as `run`."""
        self._require_open("resume")
        self._programs.resume(standing)

    @property
    def stepper(self) -> Stepper | None:
        """The stepper that is called between the steps of programs, and may hold them, look and change; at most one."""
        return self._watched.stepper

    @stepper.setter
    def stepper(self, stepper: Stepper | None) -> None:
        """Set the stepper, or with None remove it."""
        self._watched.stepper = stepper

    @property
    def machine(self) -> "state.Machine":
        """The parts of the machine, for a stepper while a program is held, and for others while none runs."""
        self._require_open("machine")
        return self._machine_state()

    def checkpoints(self) -> "Checkpoints":
        """Return an object that takes copies of the machine's state in memory and restores them, for debuggers."""
        from buda_emu.emulator.runtime.snapshots.checkpoint import Checkpoints

        return Checkpoints(self._machine_state(), self._epochs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the machine to one file (docs/run/snapshots.md); a file of that name is replaced.

        Raises HostError while a program runs or waits for its turn, and when the file cannot be written."""
        self._require_open("save")
        if self._netlist_text is None:
            self._netlist_text = state.unchanged_file_of(self.netlist) or b""
        with self._gate:
            self._require_idle("save")
            state.save(self._machine_state(), path, self._netlist_text or None)

    def restore(self, path: str | os.PathLike[str], image: "state.InitialImage | None" = None) -> None:
        """Restore the state of a file that `save` wrote with the same version, netlist and precision. `image` is the
        one that the file refers to, by default that of `begin_with`.

        Raises HostError, in which case the machine is as it was: a file that does not fit or is damaged, a program that
        runs or waits for its turn."""
        self._require_open("restore")
        with archive.Reader(path, self._memory.limit) as reader, self._gate:
            self._require_idle("restore")
            self._begun = state.restore(self._machine_state(), reader, image)
            self._gate.notify()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        netlist: Netlist | None = None,
        threads: int | None = None,
        *,
        memory_limit: int | str | None = None,
        step_limit: int = DEFAULT_STEP_LIMIT,
        inputs_at_once: int | None = None,
        listeners: tuple[Listener, ...] = (),
        image: "state.InitialImage | None" = None,
    ) -> Self:
        """Return a new machine in the state of a file that `save` wrote, with its precision. `netlist`: default the one
        that the file keeps. `image`: the device image that it refers to. Raises HostError."""
        byte_limit = bytes_of(memory_limit)
        if byte_limit is None:
            byte_limit = default_memory_limit()
        with archive.Reader(path, byte_limit) as reader:
            emulator = cls(
                state.netlist_of(reader, netlist),
                state.precision_of(reader),
                threads,
                memory_limit=byte_limit,
                step_limit=step_limit,
                inputs_at_once=inputs_at_once,
                listeners=listeners,
            )
            try:
                emulator._begun = state.restore(emulator._machine_state(), reader, image)
                if netlist is None:
                    emulator._netlist_text = reader.netlist  # its file need not be here
            except BaseException:
                emulator.close()
                raise
        return emulator

    def _machine_state(self) -> "state.Machine":
        """Return the parts of the machine that hold state, not copied, for snapshots, checkpoints and steppers."""
        return state.Machine(
            self.netlist,
            self.precision,
            self._memory,
            self._programs,
            self._context.gradients,
            self._watched.journal,
            self._exchange.filler,
            self._begun,
        )

    def _require_idle(self, call: str) -> None:
        """Raise HostError, naming the method `call`, while a program runs or waits for its turn."""
        if not self._gate.idle:
            raise HostError(f"{call}: a program is running or waits for its turn; wait for its end first")

    def _require_open(self, call: str) -> None:
        """Raise HostError, naming the method `call`, once the machine is closed."""
        if self._gate.closed:
            raise HostError(f"{call}: this Emulator is closed")

    def _run_graph(self, temporal: TemporalGraph, popping: list[Fifo]) -> None:
        """Run all inputs of a temporal graph, and add its name to a ProgramError. `popping`: the queues that the
        epoch's settings name, which may free entries for each input."""
        try:
            self._executor.run(temporal, popping)
        except ProgramError as error:
            error.within(f"graph {' + '.join(temporal.graphs)}")
            raise
