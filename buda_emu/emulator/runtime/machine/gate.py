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
    """What has been begun of an epoch and is not done."""

    def slices(self, *, written_only: bool) -> Slices:
        """What will be written, and unless `written_only` also what is read."""
        ...


class Gate:
    """`with gate:` is for host threads; raises HostError when the machine is closed."""

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
        self._through()
        self._lock.release()

    def wait(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        """Sleep until `ready` or the deadline (monotonic seconds, None: however long it takes). The result is
        `ready`'s last. Only within `with gate`, which is left while it sleeps."""
        me = get_ident()
        while not ready():
            left = None if deadline is None else min(deadline - monotonic(), threading.TIMEOUT_MAX)
            if left is not None and left <= 0:
                return False
            self._through()
            self._sleeping.add(me)
            try:
                self._changed.wait(left)
            finally:
                self._sleeping.discard(me)
            if self.closed:
                raise HostError("this Emulator was closed meanwhile")
        return True

    def changed(self) -> None:
        """Entries came or went: wake who waits for that."""
        self._returning |= self._stalled
        self._changed.notify_all()

    def in_flight(self, *, written_only: bool) -> Slices:
        """Slices that the running epoch has begun to write, and unless `written_only` also those that it reads."""
        return self._in_flight.slices(written_only=written_only) if self._in_flight is not None else _NOTHING

    @property
    def is_runner(self) -> bool:
        """Is this the running program's own thread, in a listener? It must not wait for what it does itself."""
        return self._runner == get_ident()

    def wake(self) -> None:
        """`changed` for those who do not hold the gate, even when it is closed."""
        self._enter()
        self.changed()
        self.__exit__()

    def _enter(self) -> None:
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

    def _through(self) -> None:
        me = get_ident()
        self._wanting.discard(me)
        if me in self._asked:
            self._asked.discard(me)
            if not self._asked:
                self._returning = True
                self._turned.notify_all()

    # ---------------------------------------------------------------------------------------------- programs
    def enlist(self, run: Run) -> None:
        """A run asks for its turn. Raises HostError from a listener of the running program."""
        with self:
            if self.is_runner:
                raise HostError(f"run of {run.program}: a listener of a running program cannot run another")
            self._runs.append(run)

    def begin(self, run: Run) -> None:
        """Wait for the turn of an enlisted run and take the gate for it. Raises RunCancelledError."""
        try:
            self._lock.acquire()
        except BaseException:  # Ctrl-C
            self.withdraw(run)
            raise
        try:
            self._through()
            while self._runs[0] is not run:
                run.check()
                self._changed.wait()
            run.check()
        except BaseException:
            self._leave(run)
            raise
        self._runner = get_ident()

    def end(self, run: Run) -> None:
        """Give the gate back for good."""
        self._runner = None
        self._resume()
        self._leave(run)

    def withdraw(self, run: Run) -> None:
        """An enlisted run will not begin."""
        self._lock.acquire()
        self._leave(run)

    def _leave(self, run: Run) -> None:
        self._runs.remove(run)
        self._changed.notify_all()
        self._lock.release()

    @property
    def run(self) -> Run:
        """The one that runs."""
        return self._runs[0]

    @property
    def idle(self) -> bool:
        """No program runs or waits for its turn."""
        return not self._runs

    def stand_aside(self) -> None:
        """Between two instructions: host threads that want in come first, once."""
        if self._wanting:
            self._asked = self._wanting.copy()
            self._turned.wait_for(lambda: not self._asked, _STAND_ASIDE)
            self._asked.clear()
            self._resume()

    def _resume(self) -> None:
        if self._returning:
            self._returning = False
            self._resumed.notify_all()

    def epoch(self, chunk: InFlight | None) -> None:
        """The chunks of this epoch are in flight from now on; None: no more."""
        self._in_flight = chunk
        if chunk is None and self._sleeping:
            self._wanting.update(self._sleeping)
            self._changed.notify_all()

    def open(self) -> None:
        """The program's thread lets go while a chunk computes."""
        if self._sleeping:
            self._changed.notify_all()
        self._lock.release()

    def shut(self) -> None:
        """Take the gate again."""
        self._returning = True
        self._lock.acquire()
        self._resume()

    def chunk_done(self) -> None:
        """Those who wait for a change look again before the program goes on."""
        if self._sleeping:
            self._wanting.update(self._sleeping)
            self._changed.notify_all()
        self.stand_aside()

    def wait_for_host(self, deadline: float) -> bool:
        """The program's thread sleeps until something changed; False when the time was over before."""
        left = min(deadline - monotonic(), threading.TIMEOUT_MAX)
        if left <= 0:
            return False
        self._changed.notify_all()
        self._stalled = True
        try:
            self._changed.wait(left)
        finally:
            self._stalled = False
            self._resume()
        return True

    def close(self) -> None:
        """Refuse host threads, cancel every run and wait until none is left, but not for the calling thread's own."""
        self._enter()
        self.closed = True
        for run in self._runs:
            run.cancelled = True
        self._changed.notify_all()
        self._through()
        try:
            while self._runs and not self.is_runner:
                self._changed.wait()
        finally:
            self._lock.release()

    def claim(self) -> bool:
        """Is the caller the one to free the machine? True once, when it is closed and no program is left."""
        with self._lock:
            mine = self.closed and not self._runs and not self._claimed
            self._claimed |= mine
            return mine


Tiles = NDArray[np.float32]
"""float32[inputs or 1, tiles, 1024]."""


class Stepper:
    """Lets everything pass; a subclass holds what it wants to see by not returning from a method.

    All calls come on the thread that runs the program. What a method raises ends the program, whose pointers go back to
    where the chunk of inputs began. `ops`: whether it is called around ops; `most_inputs`: how many inputs of an epoch
    may run together at most, None for as many as without it. Both may be changed at any time.
    """

    ops = False
    most_inputs: int | None = None

    def instruction(self, program: str, index: int, instruction: Instruction, variables: Variables) -> None:
        """An instruction is about to run."""

    def epoch(self, graphs: tuple[str, ...], inputs: int) -> None:
        """A temporal graph starts; `inputs` is its input_count."""

    def inputs(self, reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]], inputs: int) -> None:
        """So many inputs are about to run; `reads` and `writes`: a slot of each queue and ram for each of them."""

    def inputs_done(self, inputs: int) -> None:
        """Their results are in their queues and rams."""

    def read(self, queue: str, tiles: Tiles, inputs: int) -> None:
        """What the epoch read from a queue or ram. Only with `ops`, as what follows."""

    def op(self, op: Op, inputs: int) -> bool:  # noqa: ARG002
        """An op is about to run. False: it is skipped, and its result is zero."""
        return True

    def result(self, op: Op, tiles: Tiles, put: Callable[[Tiles], None] | None, inputs: int) -> None:
        """What an op gave; not to be kept. `put` replaces it; None where the op passes on the tensor that it reads, or
        adds to a sum."""


BUFFERED_BYTES: Final = 64 << 20
"""Of values that a machine has received from another one and not asked for; the other one waits then."""


class Part(Protocol):
    """The machine of this number, from 0."""

    @property
    def number(self) -> int:
        """Its own."""
        ...

    def owner(self, op: str) -> int:
        """Who computes an op."""
        ...

    def keepers(self, queue: str) -> frozenset[int]:
        """Who holds the entries of a queue or ram."""
        ...

    def at(self, op: str) -> None:
        """It begins with an op."""
        ...

    def send(self, to: int, arrays: Sequence[NDArray[Any]]) -> None:
        """Give a value to another one; waits while that one has BUFFERED_BYTES that it has not asked for."""
        ...

    def receive(self, source: int) -> list[NDArray[Any]]:
        """The next value that another one gives. Raises HostError when it is lost."""
        ...
