"""The emulated machine behind a BackendApi, and the interface by which descriptors reach it."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from buda_emu.app.api.backend.config import BackendConfig
from buda_emu.app.api.backend.enums import BackendType
from buda_emu.netlist.program.parameters import no_program, parameter_names
from buda_emu.netlist.unknown_queue import no_queue
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buda_emu.app.api.backend import host_tensors
    from buda_emu.netlist.model import Netlist, Queue
else:
    host_tensors = lazy("buda_emu.app.api.backend.host_tensors")


class ProgramThread:
    """A daemon thread that calls `run(program, parameters)` for each submitted program in turn.

    `run` must handle its own errors. After `close` no further program is begun.
    """

    def __init__(self, run: Callable[[str, Mapping[str, str]], None]) -> None:
        self._run = run
        self._waiting: deque[tuple[str, Mapping[str, str]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, program: str, parameters: Mapping[str, str]) -> None:
        """Queue a program, which runs when those before it have run; after `close` it is dropped."""
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="buda-emu-device", daemon=True)
                self._thread.start()
            self._waiting.append((program, parameters))
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when everything that was submitted has run, or the thread was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not (self._waiting or self._busy))

    def close(self) -> None:
        """Drop the programs that wait. The one that runs goes on: its owner has to stop it."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        """Run the waiting programs one after another, on the thread, until it is closed."""
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                self._busy = True
                program, parameters = self._waiting.popleft()
            self._run(program, parameters)


HOST_WAIT: Final = 30.0
"""Seconds that a program waits for the host: for an entry to read, or for room to write."""


class Port(Protocol):
    """The operations on a machine that descriptors need, from its own process or from another.

    Every method raises HostTimeoutError if it cannot be done within `timeout` seconds, and HostError or another
    BudaError for other failures.
    """

    def push(self, name: str, array: "NDArray[Any]", df: str, timeout: float, slot: int) -> None:
        """Write a tensor [w, z, r, c] declared as format `df` to a queue, or to `slot` of a ram."""
        ...

    def push_packed(self, name: str, data: "NDArray[Any]", df: str, timeout: float, slot: int) -> None:
        """Write entries packed in format `df`, uint8[grid cells, bytes], to a queue, or to `slot` of a ram."""
        ...

    def read(self, name: str, single: bool, timeout: float, slot: int) -> "tuple[NDArray[Any], str]":
        """Return elements [n, t, rows, cols] at the front of a queue or in a ram's slot, and their format. `single`
        reads a single entry, else `input_count` are read."""
        ...

    def pop(self, name: str, single: bool, timeout: float) -> None:
        """Remove entries from the front of a queue: one if `single`, else `input_count` of them."""
        ...

    def pack(self, name: str, array: "NDArray[Any]", df: str) -> "tuple[NDArray[Any], str]":
        """Return a tensor as the queue's buffers would hold it: uint8[grid cells, bytes], and the format."""
        ...

    def is_untilized(self, name: str) -> bool:
        """Return whether the device untilizes the entries of a queue. Raises HostError when the machine is gone, or has
        no such queue."""
        ...


class Machine:
    """A `Port` on an Emulator of this process.

    Golden runs a program inside `run`. A missing entry is an error at once, until `shared` is set, which means that
    another process may push: then a program waits for the host, up to HOST_WAIT seconds. All other types run programs
    in turn on a thread, where they always wait so; `wait_until_idle` reports failures. A program that fails there
    closes the machine (NETLIST, "Where an error surfaces").
    """

    def __init__(self, netlist: "Netlist", config: BackendConfig, shared: threading.Event) -> None:
        from buda_emu.emulator.runtime.emulator import Emulator

        self.netlist = netlist
        self.ideal = config.ignores_precision
        self._emulator = Emulator(netlist, config.precision, late_pointer_checks=config.type != BackendType.Golden)
        self._shared = shared
        self._lock = threading.Lock()
        self._programs = None if config.type == BackendType.Golden else ProgramThread(self._run_on_thread)
        self._problem = ""  # the reason why the machine takes no more calls

    def push(self, name: str, array: "NDArray[Any]", df: str, timeout: float, slot: int) -> None:
        """Write a host array, whose elements have format `df`, to a queue or to `slot` of a ram."""
        queue = self._queue(name)
        self._write(queue, host_tensors.entries_for(queue, array, df), timeout, slot)

    def push_packed(self, name: str, data: "NDArray[Any]", df: str, timeout: float, slot: int) -> None:
        """Write packed tiles of format `df` to a queue or to `slot` of a ram."""
        queue = self._queue(name)
        host_tensors.refuse_repacking(queue.df, self.ideal)
        self._write(queue, host_tensors.unpack(self.netlist, queue, data, df), timeout, slot)

    def pack(self, name: str, array: "NDArray[Any]", df: str) -> "tuple[NDArray[Any], str]":
        """Return the array in the queue's packed form, and the queue's format."""
        queue = self._queue(name)
        return host_tensors.pack(self.netlist, queue, host_tensors.entries_for(queue, array, df)), queue.df

    def read(self, name: str, single: bool, timeout: float, slot: int) -> "tuple[NDArray[Any], str]":
        """Return entries at the front of a queue, or the entry in `slot` of a ram, as the host reads them, and their
        format. Nothing is popped. Of a queue, `single` asks for one entry instead of `input_count`. Raise HostError for
        a ram without a slot."""
        queue = self._queue(name)
        if queue.is_ram:
            if slot < 0:
                raise HostError(f"read of ram {name}: its slot must be given, not {slot}")
            values = self._emulator.peek(name, 1, "raw", slot, timeout=timeout)
        else:
            values = self._emulator.peek(name, self._entry_count(queue, single), "raw", timeout=timeout)
        return host_tensors.host_elements(queue, values, self.ideal)

    def pop(self, name: str, single: bool, timeout: float) -> None:
        """Remove one entry from the front of a queue if `single`, else `input_count` of them."""
        queue = self._queue(name)
        self._emulator.pop(name, self._entry_count(queue, single), "raw", timeout=timeout)

    def is_untilized(self, name: str) -> bool:
        """Return whether the queue is fed by an op that untilizes its output."""
        producer = self.netlist.ops.get(self._queue(name).input)
        return producer is not None and producer.untilize_output

    def run(self, program: str, parameters: Mapping[str, str]) -> None:
        """Run a program, or, on a device, queue it after those that have yet to run. Parameters that no program takes
        are ignored, as by the vendor's machine. Raises ProgramError or HostError."""
        self._require_open()
        names = parameter_names(self.netlist.programs.values())
        parameters = {name: value for name, value in parameters.items() if name in names}
        if program not in self.netlist.programs:
            raise no_program(self.netlist, program)
        if self._programs is None:
            wait = HOST_WAIT if self._shared.is_set() else 0
            self._emulator.run(program, parameters, wait=wait)
        else:
            self._programs.submit(program, dict(parameters))

    def wait_until_idle(self) -> None:
        """Wait until every submitted program has run. Raises HostError with the first failure, or if the machine is
        closed."""
        if self._programs is not None:
            self._programs.wait()
        self._require_open()

    def close(self, problem: str = "the backend is finished") -> None:
        """Close the machine: stop the program that runs, let waiting calls return, and refuse later ones with the
        text `problem`."""
        with self._lock:
            if self._problem:
                return
            self._problem = problem
        if self._programs is not None:
            self._programs.close()
        self._emulator.close()

    def _run_on_thread(self, program: str, parameters: Mapping[str, str]) -> None:
        """Run a program; a failure closes the machine, and the next call reports it."""
        try:
            self._emulator.run(program, parameters, wait=HOST_WAIT)
        except Exception as error:  # noqa: BLE001 - kept for the next call, which may be from any thread
            self.close(f"program {program} failed, which closed the device: {error}")

    def _write(self, queue: "Queue", entries: "NDArray[Any]", timeout: float, slot: int) -> None:
        """Write entries to a queue, or to `slot` of a ram. Raise HostError for a ram without a slot."""
        if queue.is_ram and slot < 0:
            raise HostError(f"push to ram {queue.name}: its slot must be given, not {slot}")
        self._emulator.push(queue.name, entries, slot if queue.is_ram else None, timeout=timeout)

    def _queue(self, name: str) -> "Queue":
        """Return the queue or ram of that name. Raise HostError if there is none or the machine is closed."""
        self._require_open()
        queue = self.netlist.queues.get(name)
        if queue is None:
            raise no_queue(self.netlist, name)
        return queue

    def _entry_count(self, queue: "Queue", single: bool) -> int:
        """Return the number of entries of an access: 1 if `single`, else the queue's `input_count`. Raises HostError
        for more than the queue can ever hold."""
        count = 1 if single else queue.input_count
        if not 1 <= count <= queue.entries:
            raise HostError(f"access to {plural(count, 'entry')} of queue {queue.name}, which has {queue.entries}")
        return count

    def _require_open(self) -> None:
        """Raise HostError if the machine is closed, with the reason."""
        if self._problem:
            raise HostError(self._problem)
