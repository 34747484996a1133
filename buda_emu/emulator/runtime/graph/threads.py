"""Splits kernel work over threads. Kernels release the GIL and write disjoint items: any split gives the same bits."""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from buda_emu.arithmetic.formats.float_state import set_exact
from buda_emu.arithmetic.jit.job_slot import SHARED, JobSlot
from buda_emu.arithmetic.jit.machine_code.loading import end_turns, raised_at, take_turns
from buda_emu.arithmetic.jit.thread_team import await_helpers, serve, spins_in

# Bytes of operands from which on a second thread gains something. Sharing a job takes 5 us, and longer where its data
# lies in the caches of one processor.
_WORTH_SHARING: Final = 1 << 18
# The same for a Python function: threads take turns at Python's lock, which takes 200 us.
_WORTH_DIVIDING: Final = 2 << 20
# The same while processors are scarce: a helper may not run when it is needed, and the thread that waits for it loses
# more.
_WORTH_SHARING_WHEN_SCARCE: Final = 16 << 20
# The same while such work is rare: helpers sleep then, and waking one costs more than a small job gains.
_WORTH_WAKING: Final = 2 << 20
# The same as long as there was hardly any such work: no helper has been started yet, and to start one takes 100 us.
_WORTH_STARTING: Final = 16 << 20
_LITTLE: Final = 5e-4  # seconds of such work, below which helpers are not started for a small job
_SCARCE: Final = 1.5  # processors are scarce when tasks take this many times as long as their threads compute
_RARE: Final = 0.1  # such work is rare when it takes no more than this share of the time
_LONGEST_PAUSE: Final = 5e-3  # seconds between two tasks that count at most: before a program nobody computes
_FORGET: Final = 0.75  # factor for the weight of earlier tasks, with every further task
PARTS_PER_THREAD: Final = 2  # ranges for each thread with which a Python function is called: long ones are better
GRAINS_PER_THREAD: Final = 32  # times that each thread claims items of a kernel whose items are shared
AWAKE_SECONDS: Final = 1e-3  # that a helper stays awake for another job; waking it up takes a tenth of that
_NAP_SECONDS: Final = 2e-5  # between two looks whether the helpers are done, so that they get the processor


class WorkerPool:
    """A pool of `threads` workers, one of them the caller. It is an `ops.base.Parallel`. Close it when done."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._team = _ThreadTeam(threads) if threads > 1 else None
        self._turn = threading.Lock()
        self._demand = _Demand()
        if self._team is not None:
            weakref.finalize(self, self._team.close)

    def close(self) -> None:
        """Stop the workers and wait for them; later calls run on the caller's thread."""
        team = self._team
        self._team = None
        if team is not None:
            team.close()

    def __call__(self, kernel: Callable[..., Any], items: int, *args: Any) -> None:
        """Run `kernel(start, stop, *args)` on ranges of 0..items, shared between the workers where that is worth it,
        and return when all are done. Raises what the kernel raises. All use the default floating-point state, whatever
        a listener has done to that of the caller."""
        set_exact()
        team = self._team
        if _shares(kernel):
            least = _WORTH_SHARING
        else:
            least = _WORTH_DIVIDING
        if team is None or items < 2 or not _have_bytes(args, least):
            kernel(0, items, *args)
            return
        alone = not _have_bytes(args, self._worth_sharing(team))
        start = time.perf_counter()
        computed = time.thread_time()
        if alone or not self._turn.acquire(blocking=False):
            kernel(0, items, *args)  # it is too small, or the workers are busy with a job of another thread
        else:
            try:
                team.run(kernel, items, args)
            finally:
                self._turn.release()
        end = time.perf_counter()
        _SUPPLY.add_task(end - start, time.thread_time() - computed)
        self._demand.add_task(start, end)

    def _worth_sharing(self, team: "_ThreadTeam") -> int:
        """Return the number of operand bytes from which on, at this moment, workers gain time by sharing a task."""
        if _SUPPLY.scarce:
            return _WORTH_SHARING_WHEN_SCARCE
        if not team.started and self._demand.little:
            return _WORTH_STARTING
        return _WORTH_WAKING if self._demand.rare else 0


class _Supply:
    """A measure of whether threads got a processor lately when they had something to compute. It decides who computes,
    and so how long it takes; never the results."""

    def __init__(self) -> None:
        self._took = self._computed = 0.0

    @property
    def scarce(self) -> bool:
        """True where other processes take a good part of the processors."""
        return self._took > _SCARCE * self._computed

    def add_task(self, took: float, computed: float) -> None:
        """Record a task that took `took` seconds, of which its thread had a processor for `computed` seconds."""
        self._took = _FORGET * self._took + took
        self._computed = _FORGET * self._computed + computed


class _Demand:
    """A measure of how much of the time lately was work that is worth splitting. It decides whether helpers are started
    or woken; never the results."""

    def __init__(self) -> None:
        self._all = self._took = self._passed = self._end = 0.0

    @property
    def little(self) -> bool:
        """True while there was hardly any work yet that is worth splitting over threads."""
        return self._all < _LITTLE

    @property
    def rare(self) -> bool:
        """True where work that is worth splitting was so rare lately that a helper would sleep, or wait in vain, most
        of the time."""
        return self._took <= _RARE * self._passed

    def add_task(self, start: float, end: float) -> None:
        """Record a task that was worth splitting, from `start` to `end`, in seconds of one clock."""
        pause = min(start - self._end, _LONGEST_PAUSE)
        self._all += end - start
        self._took = _FORGET * self._took + end - start
        self._passed = _FORGET * self._passed + pause + end - start
        self._end = end


_SUPPLY: Final = _Supply()  # one for all pools; threads that record at the same time may spoil an estimate


class _ThreadTeam:
    """The helper threads of a pool, and the slot in which they find their jobs."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._slot = JobSlot()
        self._spins = 0
        self._awaited = 0  # the number of the latest job, before it is in the slot
        self._ranges: _Ranges | None = None
        self._helpers: list[threading.Thread] = []
        self._wake = threading.Condition()
        self._changed = threading.Condition()  # how many are busy with ranges
        self._asleep = 0
        self._closed = False

    @property
    def started(self) -> bool:
        """True once the helper threads have been started."""
        return bool(self._helpers)

    def run(self, kernel: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        """Run all items of a task on caller and helpers, which are started at the first call. Raises what any part of
        the task raised."""
        if not self._helpers:
            self._start()
        if _shares(kernel):
            self._share(kernel, items, args)
        else:
            self._divide(kernel, items, args)

    def close(self) -> None:
        """Stop the helpers, and wait for them."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        for helper in self._helpers:
            if helper is not threading.current_thread():  # the collector of garbage runs anywhere
                helper.join()

    def _share(self, kernel: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        """Run a compiled kernel that lets each thread claim items from the job slot. Raises what the kernel raised."""
        slot = self._slot
        self._wait()
        slot.prepare(items, max(1, items // (GRAINS_PER_THREAD * self.threads)), self._spins)
        number = self._expect_job()
        try:
            kernel(slot.address, SHARED, *args)
        finally:
            self._wait()
            if slot.number < number:
                slot.announce()  # it was never called, and is over
        if slot.raised:
            raise raised_at(slot.raised, kernel.__name__)

    def _divide(self, function: Callable[..., Any], items: int, args: tuple[Any, ...]) -> None:
        """Run a Python function on ranges of items that caller and helpers take one by one. Raises what the function
        raised."""
        ranges = _Ranges(self._expect_job(), function, parts(items, self.threads), args, self._slot, self._changed)
        self._ranges = ranges
        take_turns()
        self._slot.announce()
        try:
            ranges.work_and_wait(self._spins)
        finally:
            end_turns()
            self._ranges = None

    def _wait(self) -> None:
        """Wait until no helper works on a kernel any more; mostly that is so at once, as the kernel itself waits for
        them."""
        while not self._slot.done:
            time.sleep(_NAP_SECONDS)

    def _expect_job(self) -> int:
        """Announce that a job is coming, so that helpers wake up or stay awake, and return its number."""
        self._awaited = number = self._slot.number + 1
        if self._asleep:
            with self._wake:
                self._wake.notify_all()
        return number

    def _start(self) -> None:
        """Start the helper threads; none once the team is closed."""
        self._spins = spins_in(AWAKE_SECONDS)
        with self._wake:
            for _ in range(0 if self._closed else self.threads - 1):
                helper = threading.Thread(target=self._serve_jobs, name="buda-emu", daemon=True)
                helper.start()
                self._helpers.append(helper)

    def _serve_jobs(self) -> None:
        """Do a helper's work until the team is closed: serve kernels in the slot, help with ranges, and sleep when
        neither comes for a while."""
        seen = helped = 0
        while not self._closed:
            seen = serve(self._slot.address, seen, self._spins)
            ranges = self._ranges
            if ranges is not None and ranges.number > helped:
                seen = helped = ranges.number
                ranges.help()
            elif seen < self._awaited:
                time.sleep(AWAKE_SECONDS)  # its kernel is being compiled
            else:
                self._sleep(seen)
            del ranges  # and with it the arrays

    def _sleep(self, seen: int) -> None:
        """Sleep until a job after number `seen` is announced, or the team is closed."""
        with self._wake:
            self._asleep += 1  # before it looks for a job: `_expect_job` announces one first and then looks at this
            if not self._closed and self._awaited <= seen:
                self._wake.wait()
            self._asleep -= 1


class _Ranges:
    """A job of the team: a function, and the ranges of items that it has yet to be called with."""

    def __init__(
        self,
        number: int,
        function: Callable[..., Any],
        ranges: list[tuple[int, int]],
        args: tuple[Any, ...],
        slot: JobSlot,
        changed: threading.Condition,
    ) -> None:
        self.number = number
        self._function = function
        self._args = args
        self._slot = slot
        self._error: BaseException | None = None
        self._todo = deque(ranges)
        self._changed = changed

    def work_and_wait(self, spins: int) -> None:
        """Work on ranges on the caller's thread, then wait until the helpers are done, after `spins` looks asleep.
        Raises what any part raised."""
        self.help()
        if self._slot.busy:
            await_helpers(self._slot.address, spins)
        with self._changed:
            while self._slot.busy:
                self._changed.wait()
        if self._error is not None:
            raise self._error

    def help(self) -> None:
        """Work on ranges of the job, in any thread, until none is left. Keeps an exception for `work_and_wait`, and
        drops the ranges left."""
        with self._changed:
            self._slot.count_busy(1)
        try:
            while True:
                try:
                    start, stop = self._todo.popleft()
                except IndexError:
                    break
                self._function(start, stop, *self._args)
        except BaseException as error:  # noqa: BLE001 - `work_and_wait` raises it
            self._todo.clear()
            self._error = error
        finally:
            with self._changed:
                self._slot.count_busy(-1)
                self._changed.notify_all()


def parts(items: int, threads: int) -> list[tuple[int, int]]:
    """Return ranges (start, stop) that cover 0..items: up to two for each thread, as threads and processors differ in
    speed."""
    count = min(items, PARTS_PER_THREAD * threads)
    return list(pairwise(items * part // count for part in range(count + 1)))


def _shares(function: Callable[..., Any]) -> bool:
    """Return whether a function is a compiled kernel whose items the threads claim, not one that is called with
    ranges."""
    return getattr(function, "shares", False)


def _have_bytes(args: tuple[Any, ...], least: int) -> bool:
    """Return whether the arguments that are arrays have at least `least` bytes together."""
    left = least
    for arg in args:
        left -= getattr(arg, "nbytes", 0)
        if left <= 0:
            return True
    return False
