"""Jobs on processes of this machine: an item that crashes or hangs its worker costs that item only.

Processes are spawned, never forked, and kept for many items. The pool is our own: `concurrent.futures` gives up as
a whole when one process dies.
"""

import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from dataclasses import field
from multiprocessing.connection import wait
from typing import Any, Literal

from buda_emu.errors import InternalError
from buda_emu.records import dataclass
from buda_emu.workers.job import Job, Lost
from buda_emu.workers.process import START_SECONDS, Process, died, how_it_ended, late

Answer = tuple[bool, Any] | Lost
"""(True, result), (False, BudaError), or nothing."""
_Item = tuple[int, Any]
"""With its number."""


@dataclass(slots=True)
class _Worker:
    """`items` that it has, the first of which it works on; none while it starts."""

    process: Process
    since: float
    started: bool = False
    items: deque[_Item] = field(default_factory=deque[_Item])


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
        self._next: _Item | None = None
        self._back: list[_Item] = []  # of workers that died before they came to them

    def answers(self, items: Iterable[Any]) -> Generator[tuple[int, Answer], None, None]:
        """The answer to each item, as they come, with its number. Raises InternalError when no process can be started;
        leaving it ends all that work."""
        self._items = enumerate(items)
        self._next = next(self._items, None)
        done = False
        try:
            for worker in self._workers:
                if worker.started:
                    self._give(worker)
            if self._first is not None:
                self.start()
            while self._first is not None or self._working:
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

    def start(self) -> None:
        """All processes, so that they are ready when there are items."""
        while len(self._workers) < self._count and self._start():
            pass

    def send_ahead(self) -> None:
        """One more item for each worker, as nobody will attend to them for a while."""
        for worker in self._workers:
            if len(worker.items) == 1:
                self._give(worker)

    @property
    def _first(self) -> _Item | None:
        """The item that is given next."""
        return self._back[-1] if self._back else self._next

    def _take(self) -> None:
        """The first item is given."""
        if self._back:
            self._back.pop()
        else:
            self._next = next(self._items, None)

    @property
    def _working(self) -> bool:
        return any(worker.items for worker in self._workers)

    def close(self) -> None:
        """Take every worker down."""
        for worker in self._workers:
            worker.process.end()
        self._workers.clear()
        self._answers.clear()
        self._back.clear()

    def _start(self) -> bool:
        try:
            process = Process(self._job)
        except OSError as error:  # no processes or no memory left
            self._not_started(f"could not start ({error.strerror or error})")
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
        return worker.since + self._timeout if worker.items else float("inf")

    def _attend(self, worker: _Worker) -> None:
        """A worker is ready, has an answer, or is dead."""
        try:
            if worker.started:
                answer = worker.process.receive()
                self._answers.append((worker.items.popleft()[0], answer))
            else:
                worker.process.is_ready()
                worker.started = self._any_started = True
        except (EOFError, OSError):
            self._lost(worker)
            return
        worker.since = time.monotonic()
        if not worker.items:
            self._give(worker)

    def _give(self, worker: _Worker) -> None:
        item = self._first
        if item is not None and worker.process.send(item[1], self._values, ahead=bool(worker.items)):
            worker.since = worker.since if worker.items else time.monotonic()
            worker.items.append(item)
            self._take()

    def _lost(self, worker: _Worker) -> None:
        code = worker.process.end(grace=0.5)
        if not worker.started:
            self._workers.remove(worker)
            self._not_started(f"could not start ({how_it_ended(code)})")
            return
        self._without(worker, "crashed", died(code), time.monotonic() - worker.since)

    def _without(self, worker: _Worker, kind: Literal["crashed", "timeout"], text: str, seconds: float) -> None:
        """What a worker that is gone worked on is lost, what it had not come to is given to others."""
        self._workers.remove(worker)
        if worker.items:
            self._answers.append((worker.items.popleft()[0], Lost(kind, text, seconds)))
        self._back += reversed(worker.items)
        self._replace()

    def _replace(self) -> None:
        if self._first is not None:
            self._start()

    def _not_started(self, how: str) -> None:
        """It costs one item, so that a machine that can start no more processes comes to an end. As long as none has
        ever started, the others may; raises InternalError when none does."""
        if not self._any_started:
            if not self._workers:
                raise InternalError(f"a worker process {how}")
            return
        if self._first is not None:
            self._answers.append((self._first[0], Lost("crashed", f"the worker process for it {how}", 0.0)))
            self._take()
        self._replace()

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for worker in [item for item in self._workers if self._deadline(item) <= now]:
            worker.process.end()
            if worker.started:
                self._without(worker, "timeout", late(self._timeout), now - worker.since)
            else:
                self._workers.remove(worker)
                self._not_started(f"did not start within {START_SECONDS:.0f} s")
