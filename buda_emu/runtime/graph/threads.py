"""Splits kernel work over threads. Kernels release the GIL and write disjoint items: any split gives the same bits."""

import threading
import time
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from buda_emu.kernels.crew import HELPER, OWNER, Job, can_share, looks_in, wait_for_change
from buda_emu.numerics.float_state import set_exact
from buda_emu.ops.base import Work

# Below this many bytes of operands a second thread gains nothing: to share a job takes 20 us, more where it is short.
_WORTH_SPLITTING_BYTES: Final = 1 << 20
# The same while processors are scarce: then a helper does not run when it is needed, and who waits for it loses more.
_WORTH_SPLITTING_WHEN_SCARCE: Final = 16 << 20
# And while there is little of it: who wakes a helper, and later shares Python's lock with it, loses more than it gains.
_WORTH_WAKING: Final = 2 << 20
_SCARCE: Final = 1.5  # times as long as computing takes is what a thread needs for it
_RARE: Final = 0.25  # of the time is spent on work for helpers
_LONGEST_PAUSE: Final = 5e-3  # seconds between two tasks that count, at most: before a program nobody computes
_FORGET: Final = 0.75  # of what was seen before, with every task
PARTS_PER_THREAD: Final = 4  # of a Python function: ranges that it is called with
GRAINS_PER_THREAD: Final = 32  # of a kernel that shares its items: times that a thread claims some
AWAKE_SECONDS: Final = 1e-3  # that a helper stays awake for another job; waking it up takes a tenth of that
_NAP_SECONDS: Final = 2e-5
_SIZED: Final = np.ndarray, Work  # no union: every kernel asks, and one would be made each time


class WorkerPool:
    """`threads` workers, one of them the caller. Is an `ops.base.Parallel`. Close it when done."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._crew = _Crew(threads) if threads > 1 else None
        self._turn = threading.Lock()
        self._demand = _Demand()
        if self._crew is not None:
            weakref.finalize(self, self._crew.close)

    def close(self) -> None:
        """Stop the workers."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def __call__(self, kernel: Callable[..., Any], items: int, *args: Any) -> None:
        """Run `kernel` on 0..items, shared between the workers, who have the floating-point state of the caller that
        first needed them: the default, whatever a listener has done to it."""
        set_exact()
        crew = self._crew
        if crew is None or items < 2 or not _have_bytes(args, _WORTH_SPLITTING_BYTES):
            kernel(0, items, *args)
            return
        alone = _SUPPLY.scarce and not _have_bytes(args, _WORTH_SPLITTING_WHEN_SCARCE)
        alone = alone or (self._demand.rare and not _have_bytes(args, _WORTH_WAKING))
        start, computed = time.perf_counter(), time.thread_time()
        if alone or not self._turn.acquire(blocking=False):
            kernel(0, items, *args)  # the last reason: the workers are busy with what another thread asked for
        else:
            try:
                crew.run(kernel, items, args)
            finally:
                self._turn.release()
        end = time.perf_counter()
        _SUPPLY.saw(end - start, time.thread_time() - computed)
        self._demand.saw(start, end)


class _Supply:
    """Whether threads got a processor lately when they had something to compute. It decides who computes, and so how
    long it takes; never what comes out."""

    def __init__(self) -> None:
        self._took = self._computed = 0.0

    @property
    def scarce(self) -> bool:
        """Whether others take a good part of the processors."""
        return self._took > _SCARCE * self._computed

    def saw(self, took: float, computed: float) -> None:
        """A task took that many seconds, of which the thread that asked for it had a processor for so many."""
        self._took = _FORGET * self._took + took
        self._computed = _FORGET * self._computed + computed


class _Demand:
    """Whether work that is worth splitting made up a good part of the time lately. It decides what `_Supply` does."""

    def __init__(self) -> None:
        self._took = self._passed = self._end = 0.0

    @property
    def rare(self) -> bool:
        """Whether a helper would sleep, or wait in vain, most of the time."""
        return self._took <= _RARE * self._passed

    def saw(self, start: float, end: float) -> None:
        """Such a task began and ended then, in seconds of one clock."""
        pause = min(start - self._end, _LONGEST_PAUSE)
        self._took = _FORGET * self._took + end - start
        self._passed = _FORGET * self._passed + pause + end - start
        self._end = end


_SUPPLY: Final = _Supply()  # of the machine, so of all pools; who writes at once with another spoils a guess


class _Crew:
    """The helpers of a pool, and where they see what to do."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._board = array("q", [0])  # the number of the latest task, for those who look at it without Python
        self.address, _ = self._board.buffer_info()
        self.looks = 0
        self._task: _Task | None = None
        self._count = 0
        self._helpers: list[threading.Thread] = []
        self._bell = threading.Condition()
        self._asleep = 0
        self._closed = False

    def run(self, kernel: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        """All of a task."""
        if not self._helpers:
            self._start()
        self._count += 1
        task = (_SharedKernel if can_share(kernel) else _Ranges)(self, self._count, kernel, items, args)
        self._task = task
        if self._asleep:
            with self._bell:
                self._bell.notify_all()
        try:
            task.own()
        finally:
            self._task = None

    def close(self) -> None:
        """Send the helpers home, and wait for them."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()
        for helper in self._helpers:
            if helper is not threading.current_thread():  # the collector of garbage runs anywhere
                helper.join()

    def announce(self, number: int) -> None:
        """Tell helpers that are awake of the task: what a `Job` does by itself."""
        self._board[0] = number

    def stay_awake(self, number: int) -> None:
        """Wait for a task after that number, for a while."""
        wait_for_change(self.address, number, self.looks)

    def _start(self) -> None:
        self.looks = looks_in(AWAKE_SECONDS)
        with self._bell:
            for _ in range(0 if self._closed else self.threads - 1):
                helper = threading.Thread(target=self._help, name="buda-emu", daemon=True)
                helper.start()
                self._helpers.append(helper)

    def _help(self) -> None:
        seen = 0
        while not self._closed:
            task = self._task
            if task is not None and task.number != seen:
                seen = task.number
                task.help()
            elif seen != self._board[0]:  # a task that was over before this helper came
                seen = self._board[0]
                self.stay_awake(seen)
            else:
                del task  # and with it the arrays
                self._sleep(seen)

    def _sleep(self, seen: int) -> None:
        with self._bell:
            self._asleep += 1
            while not self._closed and (self._task is None or self._task.number == seen):
                self._bell.wait()
            self._asleep -= 1


class _Task(ABC):
    """What the workers do together now."""

    def __init__(self, crew: _Crew, number: int, kernel: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.number = number
        self._crew = crew
        self._kernel = kernel
        self._args = args
        self._error: BaseException | None = None

    @abstractmethod
    def own(self) -> None:
        """The part of the caller, who comes back when all is done. Raises what any part raised."""

    @abstractmethod
    def help(self) -> None:
        """The part of a helper, who then stays awake for a while."""


class _SharedKernel(_Task):
    """A kernel whose items the threads claim."""

    def __init__(self, crew: _Crew, number: int, kernel: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        super().__init__(crew, number, kernel, args)
        grain = max(1, items // (GRAINS_PER_THREAD * crew.threads))
        self._job = Job(items, grain, crew.address, number, crew.looks)

    def own(self) -> None:
        try:
            self._kernel(self._job.address, OWNER, *self._args)
        except BaseException:
            self._job.call_off()
            raise
        finally:
            while not self._job.all_left:
                time.sleep(_NAP_SECONDS)
        if self._error is not None:
            raise self._error

    def help(self) -> None:
        self._job.join()
        try:
            self._kernel(self._job.address, HELPER, *self._args)
        except BaseException as error:  # noqa: BLE001 - `own` raises it
            self._error = error
            self._job.call_off()
            self._job.leave()


class _Ranges(_Task):
    """A function that is called with ranges of items."""

    def __init__(self, crew: _Crew, number: int, kernel: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        super().__init__(crew, number, kernel, args)
        self._todo = deque(parts(items, crew.threads))
        self._changed = threading.Condition()
        self._working = 0

    def own(self) -> None:
        self._crew.announce(self.number)
        self._work()
        with self._changed:
            while self._working:
                self._changed.wait()
        if self._error is not None:
            raise self._error

    def help(self) -> None:
        self._work()
        self._crew.stay_awake(self.number)

    def _work(self) -> None:
        with self._changed:
            self._working += 1
        try:
            while True:
                try:
                    start, stop = self._todo.popleft()
                except IndexError:
                    break
                self._kernel(start, stop, *self._args)
        except BaseException as error:  # noqa: BLE001 - `own` raises it
            self._todo.clear()
            self._error = error
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()


def parts(items: int, threads: int) -> list[tuple[int, int]]:
    """Ranges that cover 0..items: a few more than there are threads, as they and the processors differ in speed."""
    count = min(items, PARTS_PER_THREAD * threads)
    return list(pairwise(items * part // count for part in range(count + 1)))


def _have_bytes(args: tuple[Any, ...], least: int) -> bool:
    left = least
    for arg in args:
        if isinstance(arg, _SIZED):
            left -= arg.nbytes
            if left <= 0:
                return True
    return False
