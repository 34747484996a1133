"""Work that harms no process: whoever asks for it is one of the workers, and starts one process less."""

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

from buda_emu.workers.job import Job, Workers
from buda_emu.workers.spread import JobPool, spread

_LOOK_SECONDS: Final = 0.05
"""How often it is looked whether the others have ended."""
_TURN_SECONDS: Final = 2e-4
"""That a thread computes before one that waits has its turn: 5 ms as a rule, and an answer takes several turns."""


@contextmanager
def short_turns() -> Generator[None]:
    """While a thread serves workers beside one that computes: they do not wait long for what they do next."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def spread_with_caller(job: Job, items: Iterable[Any], workers: Workers) -> Generator[tuple[int, Any], None, None]:
    """As `spread`, where no item can crash or hang a process; on a cluster this process only waits. Raises the
    BudaError that an item raises, and InternalError as `spread` does."""
    if workers.alone or workers.dask is not None:
        yield from spread(job, items, workers)
        return
    others = _Others(job, items, workers.count - 1)
    try:
        work = job.work()
        others.start()
        while (mine := others.take()) is not None:
            yield mine[0], work(mine[1])
            yield from others.results(wait=False)
        yield from others.results(wait=True)
    finally:
        others.close()


class _Others:
    """The other workers, served on a thread of their own."""

    def __init__(self, job: Job, items: Iterable[Any], count: int) -> None:
        self._items, self._lock = enumerate(items), Lock()
        self._pool = JobPool(job, replace(Workers(), count=count), isolated=True)
        self._done: SimpleQueue[tuple[int, Any] | BaseException | None] = SimpleQueue()
        self._are_done = self._closed = False
        self._thread = Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Let them work."""
        self._thread.start()

    def take(self) -> tuple[int, Any] | None:
        """The next item that nobody has, with its number."""
        with self._lock:
            return None if self._closed else next(self._items, None)

    def results(self, *, wait: bool) -> Iterator[tuple[int, Any]]:
        """What they have done by now, or with `wait` all of it. Raises what went wrong."""
        while not self._are_done:
            try:
                found = self._done.get(block=wait)
            except Empty:
                return
            if found is None:
                self._are_done = True
                return
            if isinstance(found, BaseException):
                raise found
            yield found

    def close(self) -> None:
        """End them at once, those too that are just being started."""
        self._closed = True
        self._pool.close()
        while self._thread.is_alive():
            self._thread.join(_LOOK_SECONDS)
            self._pool.close()

    def _serve(self) -> None:
        numbers: list[int] = []

        def theirs() -> Iterator[Any]:
            while (found := self.take()) is not None:
                numbers.append(found[0])
                yield found[1]

        try:
            with short_turns():
                for place, result in self._pool.spread(theirs()):
                    self._done.put((numbers[place], result))
            self._done.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where results are waited for
            self._done.put(error)
