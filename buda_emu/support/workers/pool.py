"""Jobs on processes of this machine: an item that crashes or hangs its worker costs that item only.

Processes are spawned, never forked, and kept for many items. The pool is our own: `concurrent.futures` gives up as a
whole when one process dies.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Any, Final, Literal

from buda_emu.support.errors import InternalError, UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.support.workers.job import Job, Lost, shares
from buda_emu.support.workers.wire import pack, unpack

START_SECONDS: Final = 120.0
"""Time limit for a worker to import all it needs. Imports take seconds, but a loaded machine may take far longer."""
_LAST_STANDARD: Final = 2  # standard error's descriptor
_MODULE: Final = "buda_emu.support.workers.child"


class Process:
    """A worker process, which has its job from the start. Raises OSError when none can be started, and HostError for a
    job that is not one of `JOBS`."""

    def __init__(self, job: Job, folder: str = "") -> None:
        """`folder`: the folder with the job's files, where it runs on another machine than the caller."""
        job.check()
        self._has: set[int] = set()
        self.connection, child_end = Pipe()
        number = child_end.fileno()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(number)],
                pass_fds=(number, *_inherited_files()),
                stdin=None if _is_file(0) else subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError:
            self.connection.close()
            raise
        finally:
            child_end.close()
        with suppress(OSError):  # one that died in between is seen when it is read from
            self.connection.send_bytes(pack((job, folder)))

    @property
    def number(self) -> int:
        """The process id of the worker."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True where the process has stopped running."""
        return self._process.poll() is not None

    def await_ready(self) -> None:
        """Receive the message that a process sends when it has started. Raises EOFError or OSError when it is dead."""
        self.connection.recv_bytes()

    def send(self, work_item: Any, values: Mapping[int, bytes]) -> None:
        """Send an item, and those of the packed `values` it shares that the process has not had. A dead process is
        noticed by `receive`."""
        new = {number: values[number] for number in shares(work_item) if number not in self._has}
        self._has.update(new)
        with suppress(OSError):
            self.connection.send_bytes(pack((new, work_item)))

    def receive(self) -> tuple[bool | None, Any]:
        """Return the next answer, (True, result) or (False, BudaError), or a report, (None, value). Raises EOFError or
        OSError when the process is dead."""
        return self.answer(self.connection.recv_bytes())

    @staticmethod
    def answer(data: bytes) -> tuple[bool | None, Any]:
        """Return the answer that a message holds."""
        return unpack(data)

    def end(self, grace: float = 0.0) -> int:
        """End the process, after `grace` seconds in which it may exit by itself, and return its exit code."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(grace)
        self._process.kill()
        return self._process.wait()


def _inherited_files() -> list[int]:
    """Return the descriptors of files that this process inherited: /dev/fd/63 must be the same file in a worker."""
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
    except OSError:  # no such list on this system
        return []
    return [number for number in map(int, names) if number > _LAST_STANDARD and _is_file(number)]


def _is_file(number: int) -> bool:
    """Return whether a descriptor is an inherited regular file."""
    try:
        return stat.S_ISREG(os.fstat(number).st_mode) and os.get_inheritable(number)
    except OSError:
        return False


def death_reason(code: int) -> str:
    """Return the reason that is reported for an item whose process ended without a result."""
    return f"its worker process died ({describe_exit_code(code)})"


def timeout_reason(timeout: float) -> str:
    """Return the reason that is reported for an item that was not done in time."""
    return f"took longer than {timeout:g} s"


def describe_exit_code(code: int) -> str:
    """Return an exit code in words: a signal's name, or the number."""
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


Answer = tuple[bool | None, Any] | Lost
"""(True, result), (False, BudaError), or nothing. Before it come reports: (None, value)."""
_Item = tuple[int, Any]
"""With its number."""
OnReport = Callable[[int, Any], object]
"""Takes what the work reports of an item, by its number."""


def ignore_report(_number: int, _value: Any) -> None:
    """Do nothing with a report."""


@dataclass(slots=True)
class _Worker:
    """A process of a pool. `item` is the number of its present item, None while it starts or has none."""

    process: Process
    since: float
    started: bool = False
    item: int | None = None


class Pool:
    """Worker processes of one job. `values` holds the packed values that items share, by number; it may grow.
    `on_report` gets what a worker reports, with the number of its item. A pool that is `closed` does no more work."""

    def __init__(
        self,
        job: Job,
        count: int,
        timeout: float | None,
        values: Mapping[int, bytes],
        on_report: OnReport = ignore_report,
    ) -> None:
        self._job = job
        self._count = count
        self._timeout = float("inf") if timeout is None else timeout
        self._values = values
        self._on_report = on_report
        self._workers: list[_Worker] = []
        self._any_started = False
        self._answers: list[tuple[int, Answer]] = []
        self._items = enumerate(iter(()))
        self._next: _Item | None = None  # asked for, and not given yet
        self._are_left = False  # items that nobody has asked for, as far as is known
        self.closed = False

    def answers(self, items: Iterable[Any]) -> Generator[tuple[int, Answer], None, None]:
        """Give the number and the answer of each item as it is done, `Lost` for one whose worker died or was late.
        Leaving the loop early closes the pool. Raises UnsupportedError or InternalError when no process can be
        started."""
        self._items = enumerate(items)
        self._next = None
        self._are_left = not self.closed
        done = False
        try:
            for worker in self._workers:
                if worker.started:
                    self._give(worker)
            if len(self._workers) < self._count and self._first is not None:
                self.start()
            while self._next is not None or self._are_left or self._working:
                self._wait()
                yield from self._answers
                self._answers.clear()
            done = True
        finally:
            if not done or self.closed:
                self.close()

    def _wait(self) -> None:
        """Wait for messages and deadlines of the workers, and handle them."""
        ready = set(wait([worker.process.connection for worker in self._workers], self._seconds_left()))
        for worker in list(self._workers):
            if worker.process.connection in ready:
                self._attend(worker)
        self._end_the_late()

    def start(self) -> None:
        """Start all processes, so that they are ready when there are items."""
        while not self.closed and len(self._workers) < self._count and self._start():
            pass

    @property
    def _first(self) -> _Item | None:
        """The next item to be worked on. It is asked for when there is a worker to take it, no earlier."""
        if self._next is None and self._are_left:
            self._next = next(self._items, None)
            self._are_left = self._next is not None
        return self._next

    @property
    def _working(self) -> bool:
        """True where a worker has an item."""
        return any(worker.item is not None for worker in self._workers)

    def close(self) -> None:
        """End all workers for good. May be called from another thread, whereupon `answers` ends."""
        self.closed = True
        self._next = None
        self._are_left = False
        for worker in self._workers:
            worker.process.end()
        self._workers.clear()
        self._answers.clear()

    def _start(self) -> bool:
        """Start a process; return whether that was possible. A start that fails is reported as `_report_failed_start`
        says."""
        try:
            process = Process(self._job)
        except OSError as error:  # no processes or no memory left
            self._report_failed_start(f"could not start ({error.strerror or error})", by_machine=True)
            return False
        self._workers.append(_Worker(process, time.monotonic()))
        return True

    def _seconds_left(self) -> float | None:
        """Return the seconds until the first deadline, None where there is none."""
        deadline = min((self._deadline(worker) for worker in self._workers), default=0.0)
        if deadline == float("inf"):
            return None
        return max(0.0, deadline - time.monotonic())

    def _deadline(self, worker: _Worker) -> float:
        """Return the time (`time.monotonic`) at which a worker is late with starting or with its item."""
        if not worker.started:
            return worker.since + START_SECONDS
        if worker.item is None:
            return float("inf")
        return worker.since + self._timeout

    def _attend(self, worker: _Worker) -> None:
        """Handle a message or the death of a worker, and give it the next item after an answer."""
        try:
            if worker.started:
                good, value = worker.process.receive()
                if good is None:
                    self._on_report(worker.item or 0, value)
                    return
                if worker.item is not None:
                    self._answers.append((worker.item, (good, value)))
            else:
                worker.process.await_ready()
                worker.started = self._any_started = True
        except (EOFError, OSError):
            self._handle_death(worker)
            return
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        """Give a worker the next item, if there is one."""
        worker.item = None
        if self._first is None:
            return
        (worker.item, work_item) = self._first
        self._next = None
        worker.since = time.monotonic()
        worker.process.send(work_item, self._values)

    def _handle_death(self, worker: _Worker) -> None:
        """Handle the death of a worker: its item is lost, or counts as one whose process could not start."""
        code = worker.process.end(grace=0.5)
        if not worker.started:
            self._workers.remove(worker)
            self._report_failed_start(f"could not start ({describe_exit_code(code)})", by_machine=code < 0)
            return
        self._remove_lost(worker, "crashed", death_reason(code), time.monotonic() - worker.since)

    def _remove_lost(self, worker: _Worker, kind: Literal["crashed", "timeout"], text: str, seconds: float) -> None:
        """Remove a worker that is gone, and report its item as lost: `kind`, `text` and `seconds` are those of
        `Lost`."""
        self._workers.remove(worker)
        if worker.item is not None:
            self._answers.append((worker.item, Lost(kind, text, seconds)))
        self._start_replacement()

    def _start_replacement(self) -> None:
        """Start a process in place of one that is gone, if there are items for it."""
        if self._first is not None:
            self._start()

    def _report_failed_start(self, how: str, *, by_machine: bool) -> None:
        """Report a process that could not be started; `how` ends the message. It costs an item, so that a machine
        that can start no more processes comes to an end. As long as none has ever started, the others may; when none
        does, raises UnsupportedError where that is the machine's fault, InternalError where it is not."""
        if not self._any_started:
            if self._workers:
                return
            if by_machine:
                raise UnsupportedError(
                    f"a worker process {how}: is there enough memory, and are more processes allowed? Fewer workers "
                    "take less of both (-n 1)"
                )
            raise InternalError(f"a worker process {how}")
        if self._first is not None:
            self._answers.append((self._first[0], Lost("crashed", f"the worker process for it {how}", 0.0)))
            self._next = None
        self._start_replacement()

    def _end_the_late(self) -> None:
        """End all workers that are past their deadline."""
        current_time = time.monotonic()
        for worker in [worker for worker in self._workers if self._deadline(worker) <= current_time]:
            worker.process.end()
            if worker.started:
                self._remove_lost(worker, "timeout", timeout_reason(self._timeout), current_time - worker.since)
            else:
                self._workers.remove(worker)
                self._report_failed_start(f"did not start within {START_SECONDS:.0f} s", by_machine=True)
