"""One job, many items, any number of workers: the results are the same, and so is their order where it is asked for.

`Actors` are workers for items that are worked on all at the same time, such as the parts of one machine."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from buda_emu.support.errors import InternalError
from buda_emu.support.workers.job import Job, Lost, Shared, Work, Workers, insert_shared_values
from buda_emu.support.workers.pool import Answer, OnReport, Pool, Process, death_reason, ignore_report
from buda_emu.support.workers.wire import pack

if TYPE_CHECKING:
    from buda_emu.support.workers.dask_cluster import Cluster


R = TypeVar("R")
OnLost = Callable[[int, Lost], Any]
"""Makes the result of an item, by its number, that was lost with its worker."""


class JobPool:
    """Workers that are kept for several rounds of items of one job. They start with the first round, and closing the
    pool ends them."""

    def __init__(
        self,
        job: Job,
        workers: Workers,
        timeout: float | None = None,
        *,
        isolated: bool = False,
        on_report: OnReport = ignore_report,
    ) -> None:
        """A single worker is this process, or with `isolated` a process of its own. `timeout`: seconds for each item,
        on workers. `on_report`: gets what a job with `reports` reports on processes of this machine."""
        self.workers = workers
        self._job = job
        self._timeout = timeout
        self._on_report = on_report
        self._here = workers.alone and not isolated
        self._work: Work | None = None
        self._hands: Pool | Cluster | None = None
        self._values: dict[int, Any] = {}
        self._shared = 0
        self._number_here = 0
        self._closed = False

    def share(self, value: Any) -> Shared:
        """Return a placeholder for a value that many items have; the items are tuples that contain it."""
        number = self._shared
        self._shared = self._shared + 1
        self._values[number] = value if self._here else pack(value)
        return Shared(number)

    def start(self) -> None:
        """Start the processes of this machine before there are items for them."""
        if not self._here and self.workers.dask is None:
            self._pool().start()

    def close(self) -> None:
        """End all workers at once, and forget all shared values. May be called from another thread."""
        self._closed = True
        self._values.clear()
        if self._hands is not None:
            self._hands.close()
            self._hands = None

    def spread(self, items: Iterable[Any], on_lost: OnLost | None = None) -> Generator[tuple[int, Any], None, None]:
        """Give the number and the result of each item as it is done. Items are asked for when there is a worker to take
        them. Leaving or closing the generator ends all workers: use `contextlib.closing`.

        Raises the BudaError that an item raises; without `on_lost` InternalError for an item whose worker died twice;
        and the errors of `pool.py` and `dask_cluster.py` where there are no workers.
        """
        if self._here:
            self._work = work = self._work or self._job.work(self._report_here)
            for number, work_item in enumerate(items):
                self._number_here = number
                yield number, work(insert_shared_values(work_item, self._values))
            return
        self._closed = False
        retained: dict[int, Any] = {}  # for one more try
        again: list[int] = []
        if on_lost is None:
            items = _remember(items, retained)
        with closing(self._answers(items)) as answers:
            for number, answer in answers:
                if isinstance(answer, Lost) and on_lost is None:
                    again.append(number)
                    continue
                retained.pop(number, None)
                yield number, _result_or_raise(number, answer, on_lost)
        if again and not self._closed:
            yield from self._retry(again, retained)

    def _report_here(self, value: Any) -> None:
        """Report of the item that this process works on."""
        self._on_report(self._number_here, value)

    def _retry(self, numbers: list[int], items: dict[int, Any]) -> Generator[tuple[int, Any], None, None]:
        """Work once more on the items whose workers died."""
        with closing(self._answers([items[number] for number in numbers])) as answers:
            for place, answer in answers:
                yield numbers[place], _result_or_raise(numbers[place], answer, None)

    def _answers(self, items: Iterable[Any]) -> Generator[tuple[int, Any], None, None]:
        """Yield number and answer of each item, from the processes of this machine or from the cluster."""
        if self.workers.dask is None:
            return self._pool().answers(items)
        if self._hands is None:
            from buda_emu.support.workers.dask_cluster import Cluster

            self._hands = Cluster(self._job, self.workers.dask, self._timeout, self._values)
        return self._hands.answers(items)

    def _pool(self) -> Pool:
        """Return the pool of processes on this machine, a new one where the last was closed."""
        if not isinstance(self._hands, Pool) or self._hands.closed:
            self._hands = Pool(self._job, self.workers.count, self._timeout, self._values, on_report=self._on_report)
        return self._hands


def spread(
    job: Job,
    items: Iterable[Any],
    workers: Workers,
    *,
    timeout: float | None = None,
    on_lost: OnLost | None = None,
    isolated: bool = False,
    on_report: OnReport = ignore_report,
) -> Generator[tuple[int, Any], None, None]:
    """Give the number and the result of each item as it is done, on workers for this call alone: see `JobPool`."""
    with closing(JobPool(job, workers, timeout, isolated=isolated, on_report=on_report)) as pool:
        yield from pool.spread(items, on_lost)


def _remember(items: Iterable[Any], memory: dict[int, Any]) -> Generator[Any, None, None]:
    """Give the items, and remember each by its number."""
    for number, work_item in enumerate(items):
        memory[number] = work_item
        yield work_item


def _result_or_raise(number: int, answer: Any, on_lost: OnLost | None) -> Any:
    """Return the result in an answer, or that of `on_lost` for an item that was lost. Raises the BudaError of the
    item."""
    if isinstance(answer, Lost):
        if on_lost is None:
            raise InternalError(f"item {number} of the work: {answer.text}, and so did the one that tried it again")
        return on_lost(number, answer)
    good, value = answer
    if not good:
        raise value
    return value


def in_order(results: Generator[tuple[int, R], None, None]) -> Generator[R, None, None]:
    """Give the results alone, in the order of the items; a result that is early waits."""
    early: dict[int, R] = {}
    place = 0
    with closing(results):
        for number, result in results:
            early[number] = result
            while place in early:
                yield early.pop(place)
                place += 1


_LOOK_SECONDS: Final = 0.05
"""Time between two looks whether the other workers have ended."""
_TURN_SECONDS: Final = 2e-4
"""Time that a thread computes before a waiting one has its turn. Python's default is 5 ms, and an answer takes several
turns."""


@contextmanager
def short_turns() -> Generator[None]:
    """Shorten the turns of Python's threads during the block, so that a thread that serves workers does not wait long
    for one that computes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def spread_with_caller(
    job: Job, items: Iterable[Any], workers: Workers, on_report: OnReport = ignore_report
) -> Generator[tuple[int, Any], None, None]:
    """Give numbers and results as `spread` does, with this process as one of the workers. For items that cannot crash
    or hang a process. On a cluster this process only waits. What this process reports itself is dropped. Raises the
    BudaError of an item, and InternalError as `spread` does."""
    if workers.alone or workers.dask is not None:
        yield from spread(job, items, workers)
        return
    others = _Others(job, items, workers.count - 1, on_report)
    try:
        work = job.work()
        others.start()
        while (numbered := others.take()) is not None:
            yield numbered[0], work(numbered[1])
            yield from others.results(wait=False)
        yield from others.results(wait=True)
    finally:
        others.close()


class _Others:
    """The workers besides the caller, served on a thread of their own."""

    def __init__(self, job: Job, items: Iterable[Any], count: int, on_report: OnReport) -> None:
        self._items = enumerate(items)
        self._lock = Lock()
        self._pool = JobPool(job, replace(Workers(), count=count), isolated=True, on_report=on_report)
        self._done: SimpleQueue[tuple[int, Any] | BaseException | None] = SimpleQueue()
        self._are_done = self._closed = False
        self._thread = Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Start the thread that serves the workers."""
        self._thread.start()

    def take(self) -> tuple[int, Any] | None:
        """Return the next item that nobody has, with its number; None where there is none."""
        with self._lock:
            if self._closed:
                return None
            return next(self._items, None)

    def results(self, *, wait: bool) -> Iterator[tuple[int, Any]]:
        """Give the results that have arrived, or with `wait` all of them. Raises the error that ended the thread."""
        while not self._are_done:
            try:
                entry = self._done.get(block=wait)
            except Empty:
                return
            if entry is None:
                self._are_done = True
                return
            if isinstance(entry, BaseException):
                raise entry
            yield entry

    def close(self) -> None:
        """End all workers at once, those too that are just being started."""
        self._closed = True
        self._pool.close()
        while self._thread.is_alive():
            self._thread.join(_LOOK_SECONDS)
            self._pool.close()

    def _serve(self) -> None:
        """Run on the thread that `start` starts: give the items that `take` hands out to the worker processes, and put
        their results, then None, in the queue that `results` reads. An error goes into it, too, and `results` raises
        it."""
        numbers: list[int] = []

        def take_items() -> Iterator[Any]:
            """Yield to the pool the items that the calling process has not taken, and note the number of each, by which
            results get their places."""
            while (numbered := self.take()) is not None:
                numbers.append(numbered[0])
                yield numbered[1]

        try:
            with short_turns():
                for place, result in self._pool.spread(take_items()):
                    self._done.put((numbers[place], result))
            self._done.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where results are waited for
            self._done.put(error)


_FATE_SECONDS = 3.0  # until a worker that hung up has said how it ended


class Actors:
    """A group of workers, one for each item, in the order of the items: each takes its item and works on it for long.
    They talk to each other and to the process that started them by connections of their own, not through a scheduler.
    Closing the group ends them at once. Raises OSError where no process can be started, and the errors of
    `dask_cluster.Cluster`."""

    def __init__(self, job: Job, items: Sequence[Any], workers: Workers) -> None:
        self._processes: list[Process] = []
        self._cluster: Any = None
        try:
            self._start(job, items, workers)
        except BaseException:
            self.close()
            raise

    def _start(self, job: Job, items: Sequence[Any], workers: Workers) -> None:
        """Start a worker for each item. Raises as the class says."""
        if workers.dask is not None:
            from buda_emu.support.workers.dask_cluster import Cluster

            self._cluster = Cluster(job, workers.dask, None, {})
            for work_item in items:
                self._cluster.send(work_item)
            return
        for work_item in items:
            self._processes.append(Process(job))
            self._processes[-1].send(work_item, {})

    def has_ended(self, number: int) -> bool:
        """Return whether the worker of that number has stopped running."""
        if self._cluster is not None:
            return bool(self._cluster.is_done(number))
        return self._processes[number].has_ended

    def fate(self, number: int) -> str:
        """Return in words how a worker ended; "" where that is not known."""
        if self._cluster is not None:
            answer = self._cluster.answer_of(number, _FATE_SECONDS)
        else:
            answer = _await_answer(self._processes[number])
        if isinstance(answer, Lost):
            return answer.text
        if answer is None or answer[0]:
            return ""
        return str(answer[1])

    def close(self) -> None:
        """End all workers at once."""
        for process in self._processes:
            process.end()
        self._processes.clear()
        if self._cluster is not None:
            self._cluster.close()


def _await_answer(process: Process) -> Answer | None:
    """Return the answer of a process, or how it died; None where it has not ended within some seconds."""
    try:
        while process.connection.poll(_FATE_SECONDS):
            data = process.connection.recv_bytes()
            if data != b"ready":
                return process.answer(data)
    except (EOFError, OSError):
        return Lost("crashed", death_reason(process.end(grace=0.5)), 0.0)
    return None
