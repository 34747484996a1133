"""Jobs on processes of this machine: an item that crashes or hangs its worker costs that item only.

Processes are started anew, never forked, and kept for many items. The pool is our own: `concurrent.futures` gives up as
a whole when one process dies.
"""

import time
from collections.abc import Generator, Iterable, Mapping
from multiprocessing.connection import wait
from typing import Any, Final

from buda_emu.errors import InternalError
from buda_emu.records import dataclass
from buda_emu.workers.job import Job, Lost
from buda_emu.workers.process import START_SECONDS, Process, died, how_it_ended, late

Answer = tuple[bool, Any] | Lost
"""(True, result), (False, BudaError), or nothing."""
_IDLE: Final = -1


@dataclass(slots=True)
class _Worker:
    """`item` is the number of the one it works on, _IDLE when there is none for it, None while it starts."""

    process: Process
    item: int | None
    since: float


class Pool:
    """Processes of one job. `values`: what items share, packed, by number; it may grow."""

    def __init__(self, job: Job, count: int, timeout: float | None, values: Mapping[int, bytes]) -> None:
        self._job = job
        self._count = count
        self._timeout = float("inf") if timeout is None else timeout
        self._values = values
        self._workers: list[_Worker] = []
        self._any_started = False
        self._answers: list[tuple[int, Answer]] = []
        self._items = enumerate(iter(()))
        self._next: tuple[int, Any] | None = None

    def answers(self, items: Iterable[Any]) -> Generator[tuple[int, Answer], None, None]:
        """The answer to each item, as they come, with its number. Raises InternalError when no process can be started;
        leaving it ends all that work."""
        self._items = enumerate(items)
        self._next = next(self._items, None)
        done = False
        try:
            for worker in [worker for worker in self._workers if worker.item == _IDLE]:
                self._give(worker)
            while len(self._workers) < self._count and self._next is not None and self._start():
                pass
            while self._next is not None or self._working:
                ready = set(wait([worker.process.connection for worker in self._workers], self._seconds_left()))
                for worker in list(self._workers):
                    if worker.process.connection in ready:
                        self._attend(worker)
                self._end_the_late()
                yield from self._answers
                self._answers.clear()
            done = True
        finally:
            if not done:
                self.close()

    @property
    def _working(self) -> bool:
        return any(worker.item is not None and worker.item >= 0 for worker in self._workers)

    def close(self) -> None:
        """Take every worker down."""
        for worker in self._workers:
            worker.process.end()
        self._workers.clear()
        self._answers.clear()

    def _start(self) -> bool:
        try:
            process = Process(self._job)
        except OSError as error:  # no processes or no memory left
            self._not_started(f"could not start ({error.strerror or error})")
            return False
        self._workers.append(_Worker(process, None, time.monotonic()))
        return True

    def _seconds_left(self) -> float | None:
        """Until the first deadline."""
        deadline = min((self._deadline(worker) for worker in self._workers), default=0.0)
        return None if deadline == float("inf") else max(0.0, deadline - time.monotonic())

    def _deadline(self, worker: _Worker) -> float:
        if worker.item == _IDLE:
            return float("inf")
        return worker.since + (START_SECONDS if worker.item is None else self._timeout)

    def _attend(self, worker: _Worker) -> None:
        """A worker is ready, has an answer, or is dead."""
        try:
            if worker.item is None:
                worker.process.is_ready()
            else:
                self._answers.append((worker.item, worker.process.receive()))
        except (EOFError, OSError):
            self._lost(worker)
            return
        self._any_started = True
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        if self._next is None:
            worker.item = _IDLE
            return
        worker.item, item = self._next
        worker.since = time.monotonic()
        worker.process.send(item, self._values)
        self._next = next(self._items, None)

    def _lost(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        code = worker.process.end(grace=0.5)
        if worker.item is None:
            self._not_started(f"could not start ({how_it_ended(code)})")
            return
        if worker.item >= 0:
            self._answers.append((worker.item, Lost("crashed", died(code), time.monotonic() - worker.since)))
        self._replace()

    def _replace(self) -> None:
        if self._next is not None:
            self._start()

    def _not_started(self, how: str) -> None:
        """It costs one item, so that a machine that can start no more processes comes to an end. As long as none has
        ever started, the others may; raises InternalError when none does."""
        if not self._any_started:
            if not self._workers:
                raise InternalError(f"a worker process {how}")
            return
        if self._next is not None:
            self._answers.append((self._next[0], Lost("crashed", f"the worker process for it {how}", 0.0)))
            self._next = next(self._items, None)
        self._replace()

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for worker in [item for item in self._workers if self._deadline(item) <= now]:
            worker.process.end()
            self._workers.remove(worker)
            if worker.item is None:
                self._not_started(f"did not start within {START_SECONDS:.0f} s")
                continue
            self._answers.append((worker.item, Lost("timeout", late(self._timeout), now - worker.since)))
            self._replace()
