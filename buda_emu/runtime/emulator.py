"""The machine that a user holds: push, run, pop (README)."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.channel import Fifo, Ram
from buda_emu.errors import HostError, ProgramError, UnsupportedError
from buda_emu.netlist.model import Instruction, Netlist, TemporalGraph
from buda_emu.program.interpreter import Interpreter
from buda_emu.program.place import Place
from buda_emu.program.steps import StepBudget
from buda_emu.program.values import Variables
from buda_emu.runtime.epochs import Epochs
from buda_emu.runtime.execute import Context, Executor
from buda_emu.runtime.host_io import HostIo, Readout
from buda_emu.runtime.journal import HOST
from buda_emu.runtime.listeners import Listener
from buda_emu.runtime.machine import Memory, Watched
from buda_emu.runtime.running import ProgressCallback, Run
from buda_emu.runtime.threads import WorkerPool

Precision = Literal["format", "ideal"]
DEFAULT_MEMORY_LIMIT = 16 << 30
DEFAULT_STEP_LIMIT = 10_000_000
DEFAULT_WAIT = 10.0  # seconds that a program on a thread of its own waits for the host


class Emulator:
    """One emulated machine with the queues of one netlist.

    `precision`: "format" is the reference with format quantisation on, "ideal" is float32 throughout (OPS 4.2).
    `threads`: workers, default one for each core; results do not depend on it. `memory_limit`: bytes of tiles held
    in queues and rams. `step_limit`: instructions that one `run` may take. `inputs_at_once`: most inputs of an epoch
    that run together, default as many as memory allows. Use it as a context manager, or call `close`.
    """

    def __init__(
        self,
        netlist: Netlist,
        precision: Precision = "format",
        threads: int | None = None,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        step_limit: int = DEFAULT_STEP_LIMIT,
        inputs_at_once: int | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        if precision not in ("format", "ideal"):
            raise HostError(f"precision {precision!r} is not one of: format, ideal")
        if threads is not None and threads < 1:
            raise HostError(f"threads must be at least 1, not {threads}")
        if inputs_at_once is not None and inputs_at_once < 1:
            raise HostError(f"inputs_at_once must be at least 1, not {inputs_at_once}")
        self.netlist = netlist
        self.precision: Precision = precision
        self._watched = Watched()
        self._watched.listeners.extend(listeners)
        self._pool = WorkerPool(threads or os.cpu_count() or 1)
        self._memory = Memory(netlist, memory_limit)
        quantised = precision == "format"
        self._host = HostIo(netlist, self._memory, self._pool, quantised)
        self._steps = StepBudget(step_limit)
        self._executor = Executor(
            Context(
                netlist, self._memory, self._pool, quantised, self._watched, self._steps, memory_limit, inputs_at_once
            )
        )
        self._epochs = Epochs(netlist, self._memory, self._run_graph, self._watched.journal)
        self._interpreters: dict[str, Interpreter] = {}
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the worker threads. Queues can still be read, programs can no longer run."""
        self._closed = True
        self._pool.close()

    def add_listener(self, listener: Listener) -> None:
        """Let `listener` watch from now on."""
        self._watched.listeners.append(listener)

    @property
    def programs(self) -> tuple[str, ...]:
        """Program names in file order."""
        return tuple(dict.fromkeys(self.netlist.program_order))

    def remove_listener(self, listener: Listener) -> None:
        """Let it watch no longer. Raises HostError when it does not watch."""
        if listener not in self._watched.listeners:
            raise HostError(f"{listener!r} is not a listener of this Emulator")
        self._watched.listeners.remove(listener)

    def push(self, queue: str, array: Any, slot: int | None = None, *, timeout: float = 0.0) -> None:
        """Write host entries: `array` [entries, t, rows, cols], float32, or uint32 for RawUInt formats.

        A queue takes them in order behind its write pointer; a ram takes them in slots `slot`, slot+1, ... (default
        0). Other integer and half types are converted as FORMATS 3.10 says. Raises HostError: unknown name, wrong
        shape or type, queue full, slot out of range.
        """
        for position in self._host.push(queue, array, slot):
            self._watched.push(queue, HOST, position)

    def run_async(
        self,
        program: str,
        params: Mapping[str, object] | None = None,
        *,
        wait: float = DEFAULT_WAIT,
        progress: ProgressCallback | None = None,
    ) -> Run:
        """Start a program on a thread of its own and return at once; see `run` for `wait` and errors, which come out
        of `Run.result`. `progress` is called after each chunk of inputs, on that thread."""
        raise UnsupportedError("run_async is being written")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the machine to one file. Raises HostError while a program runs."""
        raise UnsupportedError("save is being written")

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Take the state of a file that `save` wrote, for the same netlist and precision. Raises HostError, in which
        case the machine is as it was."""
        raise UnsupportedError("restore is being written")

    @classmethod
    def load(cls, path: str | os.PathLike[str], netlist: Netlist | None = None, **options: Any) -> Self:
        """A new machine in the state of a file that `save` wrote. `netlist`: default the one kept in the file;
        `options`: as for Emulator, apart from the precision. Raises HostError."""
        raise UnsupportedError("load is being written")

    def run(self, program: str, params: Mapping[str, object] | None = None, *, wait: float = 0.0) -> None:
        """Run one program to its end. `params` binds `param` names, e.g. {"$p_loop_count": 4}.

        Raises ProgramError naming instruction, graph, op and queue; HostError for an unknown program.
        """
        if self._closed:
            raise HostError("this Emulator is closed")
        body = self.netlist.programs.get(program)
        if body is None:
            raise HostError(f"no program {program!r}; programs: {', '.join(self.netlist.programs)}")
        interpreter = self._interpreters.get(program)
        if interpreter is None:
            interpreter = Interpreter(body, self._epochs, self._steps, self._observe)
            self._interpreters[program] = interpreter
        self._interpreter = interpreter
        self._watched.journal.find = self._place
        self._epochs.begin_run()
        self._steps.begin_run()
        try:
            with np.errstate(all="ignore"):  # inf and NaN are values here
                interpreter.run({name: str(value) for name, value in (params or {}).items()})
        except ProgramError as error:
            if error.place is not None:
                from buda_emu.runtime.stopped import stopped  # a run that ends well need not wait for it

                channels = self._memory.channels
                error.stopped = stopped(error, error.place, self.netlist, channels, self._watched.journal)
            raise

    def pop(
        self, queue: str, count: int = 1, readout: Readout = "host", *, timeout: float = 0.0
    ) -> NDArray[Any]:
        """Take `count` entries out of a queue: [count, t, rows, cols]. Raises HostError when there are fewer, or on a
        ram."""
        channel = self._memory.channel(queue)
        if isinstance(channel, Ram):
            raise HostError(f"pop of ram {queue}: a ram has no entries to pop, use peek")
        array = self.peek(queue, count, readout)
        channel.ring.advance_read(count)
        self._watched.pop(queue, HOST, count)
        return array

    def peek(
        self,
        queue: str,
        count: int | None = None,
        readout: Readout = "host",
        slot: int = 0,
        *,
        timeout: float = 0.0,
    ) -> NDArray[Any]:
        """Read entries and leave them: [count, t, rows, cols] float32, or uint32 for RawUInt formats.

        A queue: `count` entries from the read pointer (default all). A ram: `count` slots from `slot` (default one).
        `readout`: "raw" as held, "host" as the host reads it in the queue's host type, widened. Raises HostError.
        """
        channel = self._memory.channel(queue)
        if isinstance(channel, Fifo):
            window = channel.window()
            wanted = len(window) if count is None else count
            if not 0 <= wanted <= len(window):
                raise HostError(f"read of {wanted} entries from {channel.describe()}")
            slots = window[:wanted]
        else:
            wanted = 1 if count is None else count
            if slot < 0 or wanted < 0 or slot + wanted > channel.entries:
                raise HostError(f"read of slots {slot}..{slot + wanted - 1} of {channel.describe()}")
            slots = list(range(slot, slot + wanted))
        return self._host.read(queue, slots, readout)

    def memory_image(self, queue: str, slot: int = 0) -> list[NDArray[np.uint8]]:
        """The bytes of one entry as the device's memory would hold them: uint8[entry_bytes] for each buffer of the
        grid, row-major, without the queue header. Values are rounded to the queue's format.

        Raises HostError for an entry never written, UnsupportedError for a format without that layout.
        """
        self._memory.channel(queue)
        return self._host.image(queue, slot)

    def outputs(self, readout: Readout = "host") -> dict[str, NDArray[Any]]:
        """Every op-fed queue that holds entries (those between its pointers) and every op-fed ram (all slots, unwritten
        ones zero): {name: [entries, t, rows, cols]}. Nothing is popped."""
        found: dict[str, NDArray[Any]] = {}
        for queue in self.netlist.queues.values():
            if queue.host_fed:
                continue
            channel = self._memory.channels[queue.name]
            slots = channel.window() if isinstance(channel, Fifo) else list(range(channel.entries))
            if slots:
                found[queue.name] = self._host.read(queue.name, slots, readout, missing_is_zero=True)
        return found

    def _run_graph(self, temporal: TemporalGraph, popping: list[Fifo]) -> None:
        try:
            self._executor.run(temporal, popping)
        except ProgramError as error:
            error.within(f"graph {' + '.join(temporal.graphs)}")
            raise

    def _place(self) -> Place:
        return self._interpreter.place(*self._now)

    def _observe(self, index: int, instruction: Instruction, variables: Variables) -> None:
        self._watched.journal.next_instruction()
        self._now = index, instruction
        for listener in self._watched.listeners:
            listener.instruction(self._interpreter.program.name, index, instruction, variables)
