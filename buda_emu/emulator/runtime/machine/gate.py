"""Access to the machine: one lock, taken in turns by the running program and the host's threads.

A program holds the gate while it moves pointers and stores results. It lets go of it while a chunk of inputs computes
and while it waits for the host; between two instructions it stands aside for host threads that want in. What a
computing chunk reads and writes is in flight and kept from the host.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from threading import get_ident
from time import monotonic
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.runtime.machine.running import Run
from buda_emu.netlist.model import Instruction, Op
from buda_emu.netlist.program.settings import Variables
from buda_emu.support.errors import HostError

Slices = Set[tuple[int, int]]  # (store, z-slice in it)
_NOTHING: Slices = frozenset()
_STAND_ASIDE = 0.1  # seconds; a bound only: a thread that was let in says so when it is through


class InFlight(Protocol):
    """The slices of an epoch's inputs that were begun and are not done."""

    def slices(self, *, written_only: bool) -> Slices:
        """Return the slices that will be written, and unless `written_only` also those that are read."""
        ...


class Gate:
    """The lock of a machine. `with gate:` is for host threads; it raises HostError when the machine is closed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # something that a thread may wait for has happened
        self._turned = threading.Condition(self._lock)  # the host threads that were let in are through
        self._resumed = threading.Condition(self._lock)  # the program has the gate again
        self._wanting: set[int] = set()  # host threads that want in, or are in
        self._asked: set[int] = set()  # those among them that the program stands aside for
        self._sleeping: set[int] = set()  # host threads that wait for a change
        self._runs: deque[Run] = deque()  # in the order in which they were asked for; the first one runs
        self._runner: int | None = None  # its thread
        self._stalled = False  # it waits for the host
        self._returning = False  # it is its turn: host threads that come now stand back
        self._in_flight: InFlight | None = None
        self._claimed = False
        self.closed = False

    # ---------------------------------------------------------------------------------------------- host threads
    def __enter__(self) -> Self:
        self._enter()
        if self.closed:
            self.__exit__()
            raise HostError("this Emulator is closed")
        return self

    def __exit__(self, *_: object) -> None:
        self._stand_back()
        self._lock.release()

    def wait(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        """Sleep until `ready` or the deadline (monotonic seconds, None: without limit), and return the last result of
        `ready`. Call it only within `with gate`, which is left while it sleeps. Raises HostError when the machine is
        closed meanwhile."""
        me = get_ident()
        while not ready():
            if deadline is None:
                left = None
            else:
                left = min(deadline - monotonic(), threading.TIMEOUT_MAX)
            if left is not None and left <= 0:
                return False
            self._stand_back()
            self._sleeping.add(me)
            try:
                self._changed.wait(left)
            finally:
                self._sleeping.discard(me)
            if self.closed:
                raise HostError("this Emulator was closed meanwhile")
        return True

    def notify(self) -> None:
        """Wake the threads that wait for a change, because entries were pushed or popped. Call it only within `with
        gate`."""
        self._returning |= self._stalled
        self._changed.notify_all()

    def in_flight(self, *, written_only: bool) -> Slices:
        """Return the slices that the chunk in progress is going to write, and unless `written_only` also those that it
        reads; empty between epochs."""
        if self._in_flight is not None:
            return self._in_flight.slices(written_only=written_only)
        return _NOTHING

    @property
    def is_runner(self) -> bool:
        """True on the running program's own thread, in a listener. It must not wait for what it does itself."""
        return self._runner == get_ident()

    def wake(self) -> None:
        """Wake the threads that wait for a change, from a thread that does not hold the gate; works on a closed
        machine, too."""
        self._enter()
        self.notify()
        self.__exit__()

    def _enter(self) -> None:
        """Take the lock on a host thread. If it is the program's turn, first sleep until the program had the lock, for
        at most _STAND_ASIDE seconds."""
        me = get_ident()
        self._wanting.add(me)
        try:
            self._lock.acquire()
        except BaseException:
            self._wanting.discard(me)
            raise
        if self._returning:  # or one that asks again and again would never let the program go on
            try:
                self._resumed.wait_for(lambda: not self._returning, _STAND_ASIDE)
            except BaseException:
                self.__exit__()
                raise

    def _stand_back(self) -> None:
        """Record that this host thread no longer wants in. After the last one that the program stood aside for, it is
        the program's turn."""
        me = get_ident()
        self._wanting.discard(me)
        if me in self._asked:
            self._asked.discard(me)
            if not self._asked:
                self._returning = True
                self._turned.notify_all()

    # ---------------------------------------------------------------------------------------------- programs
    def enlist(self, run: Run) -> None:
        """Add a run to the queue of those that wait for their turn, and return at once. Raises HostError if a listener
        of the running program calls it."""
        with self:
            if self.is_runner:
                raise HostError(f"run of {run.program}: a listener of a running program cannot run another")
            self._runs.append(run)

    def begin(self, run: Run) -> None:
        """Wait for the turn of an enlisted run and take the gate for it. Raises RunCancelledError if the run is
        cancelled meanwhile; the run is then no longer enlisted."""
        try:
            self._lock.acquire()
        except BaseException:  # Ctrl-C
            self.withdraw(run)
            raise
        try:
            self._stand_back()
            while self._runs[0] is not run:
                run.check()
                self._changed.wait()
            run.check()
        except BaseException:
            self._leave(run)
            raise
        self._runner = get_ident()

    def end(self, run: Run) -> None:
        """End a run: remove it from the queue, let the next one begin, and release the gate."""
        self._runner = None
        self._end_return()
        self._leave(run)

    def withdraw(self, run: Run) -> None:
        """Remove an enlisted run that will never begin, so that others do not wait for it."""
        self._lock.acquire()
        self._leave(run)

    def _leave(self, run: Run) -> None:
        """Remove a run from the queue, wake the threads that wait for a change, and release the lock."""
        self._runs.remove(run)
        self._changed.notify_all()
        self._lock.release()

    @property
    def run(self) -> Run:
        """The run whose turn it is. Raises IndexError where none is enlisted."""
        return self._runs[0]

    @property
    def idle(self) -> bool:
        """True while no program runs or waits for its turn."""
        return not self._runs

    def stand_aside(self) -> None:
        """Let the host threads that want in at this moment go first, once, for at most _STAND_ASIDE seconds. The
        program calls it between two instructions, or the host would never get the lock."""
        if self._wanting:
            self._asked = self._wanting.copy()
            self._turned.wait_for(lambda: not self._asked, _STAND_ASIDE)
            self._asked.clear()
            self._end_return()

    def _end_return(self) -> None:
        """Record that the program has the gate again, and wake the host threads that waited for that."""
        if self._returning:
            self._returning = False
            self._resumed.notify_all()

    def epoch(self, chunk: InFlight | None) -> None:
        """Make `chunk` the source of `in_flight`; None when the epoch is over, which wakes the threads that wait for a
        change."""
        self._in_flight = chunk
        if chunk is None and self._sleeping:
            self._wanting.update(self._sleeping)
            self._changed.notify_all()

    def open(self) -> None:
        """Release the gate on the program's thread, so that host threads may push and pop while a chunk computes."""
        if self._sleeping:
            self._changed.notify_all()
        self._lock.release()

    def shut(self) -> None:
        """Take the gate again on the program's thread after `open`, before host threads that come now."""
        self._returning = True
        self._lock.acquire()
        self._end_return()

    def chunk_done(self) -> None:
        """Wake the threads that wait for a change, and let them and other host threads go first once. The program calls
        it after each chunk of inputs."""
        if self._sleeping:
            self._wanting.update(self._sleeping)
            self._changed.notify_all()
        self.stand_aside()

    def wait_for_host(self, deadline: float) -> bool:
        """Let the program's thread sleep, and the gate be free, until something changed. Returns False when the
        deadline (monotonic seconds) came first."""
        left = min(deadline - monotonic(), threading.TIMEOUT_MAX)
        if left <= 0:
            return False
        self._changed.notify_all()
        self._stalled = True
        try:
            self._changed.wait(left)
        finally:
            self._stalled = False
            self._end_return()
        return True

    def close(self) -> None:
        """Refuse host threads, cancel every run and wait until none is left, except for the calling thread's own."""
        self._enter()
        self.closed = True
        for run in self._runs:
            run.cancelled = True
        self._changed.notify_all()
        self._stand_back()
        try:
            while self._runs and not self.is_runner:
                self._changed.wait()
        finally:
            self._lock.release()

    def claim(self) -> bool:
        """Return whether the caller is to free the machine: True for one caller only, once the gate is closed and no
        run is left."""
        with self._lock:
            is_claimed = self.closed and not self._runs and not self._claimed
            self._claimed |= is_claimed
            return is_claimed


Tiles = NDArray[np.float32]
"""The type of tensors that steppers see: float32[inputs or 1, tiles, 1024]."""


class Stepper:
    """A hook that lets everything pass; a subclass holds a program by not returning from a method.

    All calls come on the thread that runs the program. An exception of a method ends the program, whose pointers go
    back to where the chunk of inputs began. `ops`: whether it is called around ops; `most_inputs`: how many inputs of
    an epoch may run together at most, None for as many as without it. Both may be changed at any time."""

    ops = False
    most_inputs: int | None = None

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """Called before the instruction at `index` of a program runs."""

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        """Called before a temporal graph starts; `inputs` is its input_count."""

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        """Called before a chunk of `inputs` inputs runs. `reads` and `writes` have, by queue and ram, the slot for each
        of these inputs."""

    def inputs_done(self, inputs: int) -> None:
        """Called when the results of a chunk of `inputs` inputs are in their queues and rams."""

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:
        """Called with the entries that a chunk read from a queue or ram. This and the methods below are called only
        with `ops`."""

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        """Called before an op runs for `inputs` inputs. If it returns False the op is skipped, and its result is
        zero."""
        return True

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:
        """Called with an op's result, whose memory is used again afterwards. `put` replaces the result; it is None
        where the op passes on the tensor that it reads, or adds to a sum."""


BUFFERED_BYTES: Final = 64 << 20
"""Bytes of values that a machine buffers from another one before it asks for them; the other one waits beyond that."""


class Part(Protocol):
    """The machine of this number, from 0, of several that run one netlist."""

    @property
    def number(self) -> int:
        """The number of this machine."""
        ...

    def owner(self, op: str) -> int:
        """Return the number of the machine that computes an op."""
        ...

    def keepers(self, queue: str) -> frozenset[int]:
        """Return the numbers of the machines that hold the entries of a queue or ram."""
        ...

    def at(self, op: str) -> None:
        """Record that this machine begins with an op, so that a failure can be told with its place."""
        ...

    def send(self, to: int, arrays: Sequence[NDArray[Any]]) -> None:
        """Send a value to the machine of number `to`. Waits while BUFFERED_BYTES of earlier values lie there which that
        machine has not asked for."""
        ...

    def receive(self, source: int) -> list[NDArray[Any]]:
        """Return the next value that machine `source` sends, and wait for it. Raises HostError when that machine is
        lost."""
        ...
