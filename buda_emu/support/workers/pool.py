"""Jobs on processes of this machine: an item that crashes or hangs its worker costs that item only.

Processes are spawned, never forked, and kept for many items. The pool is our own: `concurrent.futures` gives up as
a whole when one process dies.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Any, Final, Literal

from buda_emu.support.errors import InternalError
from buda_emu.support.records import dataclass
from buda_emu.support.workers.job import Job, Lost, shares
from buda_emu.support.workers.wire import pack, unpack

START_SECONDS: Final = 120.0
"""For a worker to import what it needs."""
_LAST_STANDARD: Final = 2  # standard error's descriptor
_MODULE: Final = "buda_emu.support.workers.child"


class Process:
    """One process; it has its job from the start. Raises OSError when none can be started, and HostError for a job that
    is not one of `JOBS`."""

    def __init__(self, job: Job, folder: str = "") -> None:
        """`folder`: of the job's files on another machine."""
        job.check()
        self._has: set[int] = set()
        self.connection, there = Pipe()
        number = there.fileno()
        path = os.pathsep.join(item or os.getcwd() for item in sys.path)  # noqa: PTH109
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(number)],
                pass_fds=(number, *_handed_over()),
                stdin=None if _is_file(0) else subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError:
            self.connection.close()
            raise
        finally:
            there.close()
        with suppress(OSError):  # one that died in between is seen when it is read from
            self.connection.send_bytes(pack((job, folder)))

    @property
    def number(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self._process.poll() is not None

    def is_ready(self) -> None:
        """Take what it says when it has started. Raises EOFError or OSError when it is dead."""
        self.connection.recv_bytes()

    def send(self, item: Any, values: Mapping[int, bytes]) -> None:
        """Give it an item, and of the packed `values` that it shares with others those that it has not had. One that is
        dead is found out by `receive`."""
        new = {number: values[number] for number in shares(item) if number not in self._has}
        self._has.update(new)
        with suppress(OSError):
            self.connection.send_bytes(pack((new, item)))

    def receive(self) -> tuple[bool, Any]:
        """Its answer: (True, result) or (False, BudaError). Raises EOFError or OSError when it is dead."""
        return self.answer(self.connection.recv_bytes())

    @staticmethod
    def answer(data: bytes) -> tuple[bool, Any]:
        """An answer that was received."""
        return unpack(data)

    def end(self, grace: float = 0.0) -> int:
        """Take it down, after `grace` seconds in which it may die by itself; its exit code."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(grace)
        self._process.kill()
        return self._process.wait()


def _handed_over() -> list[int]:
    """Descriptors of files that whoever started this process handed over: /dev/fd/63 is the same file in a worker."""
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
    except OSError:  # no such list on this system
        return []
    return [number for number in map(int, names) if number > _LAST_STANDARD and _is_file(number)]


def _is_file(number: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(number).st_mode) and os.get_inheritable(number)
    except OSError:
        return False


def death_reason(code: int) -> str:
    """What is said of an item whose process ended without its result."""
    return f"its worker process died ({describe_exit_code(code)})"


def timeout_reason(timeout: float) -> str:
    """What is said of an item that was not done in time."""
    return f"took longer than {timeout:g} s"


def describe_exit_code(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


Answer = tuple[bool, Any] | Lost
"""(True, result), (False, BudaError), or nothing."""
_Item = tuple[int, Any]
"""With its number."""


@dataclass(slots=True)
class _Worker:
    """`item` is the number of the one it works on, None while it starts or there is none for it."""

    process: Process
    since: float
    started: bool = False
    item: int | None = None


class Pool:
    """Processes of one job. `values`: what items share, packed, by number; it may grow. One that is `closed` does no
    more work."""

    def __init__(self, job: Job, count: int, timeout: float | None, values: Mapping[int, bytes]) -> None:
        self._job = job
        self._count = count
        self._timeout = float("inf") if timeout is None else timeout
        self._values = values
        self._workers: list[_Worker] = []
        self._any_started = False
        self._answers: list[tuple[int, Answer]] = []
        self._items = enumerate(iter(()))
        self._next: _Item | None = None  # asked for, and not given yet
        self._are_left = False  # items that nobody has asked for, as far as is known
        self.closed = False

    def answers(self, items: Iterable[Any]) -> Generator[tuple[int, Answer], None, None]:
        """The answer to each item, as they come, with its number. Raises InternalError when no process can be started;
        leaving it ends all that work."""
        self._items, self._next, self._are_left = enumerate(items), None, not self.closed
        done = False
        try:
            for worker in self._workers:
                if worker.started:
                    self._give(worker)
            if len(self._workers) < self._count and self._first is not None:
                self.start()
            while self._next is not None or self._are_left or self._working:
                ready = set(wait([worker.process.connection for worker in self._workers], self._seconds_left()))
                for worker in list(self._workers):
                    if worker.process.connection in ready:
                        self._attend(worker)
                self._end_the_late()
                yield from self._answers
                self._answers.clear()
            done = True
        finally:
            if not done or self.closed:
                self.close()

    def start(self) -> None:
        """All processes, so that they are ready when there are items."""
        while not self.closed and len(self._workers) < self._count and self._start():
            pass

    @property
    def _first(self) -> _Item | None:
        """The item that is given next: asked for when there is somebody to take it, no earlier."""
        if self._next is None and self._are_left:
            self._next = next(self._items, None)
            self._are_left = self._next is not None
        return self._next

    @property
    def _working(self) -> bool:
        return any(worker.item is not None for worker in self._workers)

    def close(self) -> None:
        """Take every worker down for good; from another thread, too, whereupon `answers` ends."""
        self.closed = True
        self._next = None
        self._are_left = False
        for worker in self._workers:
            worker.process.end()
        self._workers.clear()
        self._answers.clear()

    def _start(self) -> bool:
        try:
            process = Process(self._job)
        except OSError as error:  # no processes or no memory left
            self._report_failed_start(f"could not start ({error.strerror or error})")
            return False
        self._workers.append(_Worker(process, time.monotonic()))
        return True

    def _seconds_left(self) -> float | None:
        """Until the first deadline."""
        deadline = min((self._deadline(worker) for worker in self._workers), default=0.0)
        return None if deadline == float("inf") else max(0.0, deadline - time.monotonic())

    def _deadline(self, worker: _Worker) -> float:
        if not worker.started:
            return worker.since + START_SECONDS
        return worker.since + self._timeout if worker.item is not None else float("inf")

    def _attend(self, worker: _Worker) -> None:
        """A worker is ready, has an answer, or is dead."""
        try:
            if worker.started:
                answer = worker.process.receive()
                if worker.item is not None:
                    self._answers.append((worker.item, answer))
            else:
                worker.process.is_ready()
                worker.started = self._any_started = True
        except (EOFError, OSError):
            self._lost(worker)
            return
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        worker.item = None
        if self._first is None:
            return
        (worker.item, item) = self._first
        self._next = None
        worker.since = time.monotonic()
        worker.process.send(item, self._values)

    def _lost(self, worker: _Worker) -> None:
        code = worker.process.end(grace=0.5)
        if not worker.started:
            self._workers.remove(worker)
            self._report_failed_start(f"could not start ({describe_exit_code(code)})")
            return
        self._without(worker, "crashed", death_reason(code), time.monotonic() - worker.since)

    def _without(self, worker: _Worker, kind: Literal["crashed", "timeout"], text: str, seconds: float) -> None:
        """What a worker that is gone worked on is lost."""
        self._workers.remove(worker)
        if worker.item is not None:
            self._answers.append((worker.item, Lost(kind, text, seconds)))
        self._replace()

    def _replace(self) -> None:
        if self._first is not None:
            self._start()

    def _report_failed_start(self, how: str) -> None:
        """It costs one item, so that a machine that can start no more processes comes to an end. As long as none has
        ever started, the others may; raises InternalError when none does."""
        if not self._any_started:
            if not self._workers:
                raise InternalError(f"a worker process {how}")
            return
        if self._first is not None:
            self._answers.append((self._first[0], Lost("crashed", f"the worker process for it {how}", 0.0)))
            self._next = None
        self._replace()

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for worker in [item for item in self._workers if self._deadline(item) <= now]:
            worker.process.end()
            if worker.started:
                self._without(worker, "timeout", timeout_reason(self._timeout), now - worker.since)
            else:
                self._workers.remove(worker)
                self._report_failed_start(f"did not start within {START_SECONDS:.0f} s")
