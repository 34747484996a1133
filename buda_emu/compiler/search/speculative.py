"""Epochs of the starts that a search tries, improved by this process and by workers side by side.

This process works in the order in which the search asks for them, workers from the last one on, so that they meet.
Where it is clear what the search will try later, workers do that meanwhile. Their results are used as if they had been
found here, within the search's own bound of work, so the result of the search is the same for any number of workers."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from threading import Condition, Thread
from typing import Any, Final

from buda_emu.arithmetic.jit.reporting import with_sent_kernels
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.evaluate import EpochCache
from buda_emu.compiler.search.improve import ImprovedEpoch, KnownResult, Start, improve_epoch, match_epochs, no_result
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.support.errors import BudaError
from buda_emu.support.progress import SendKernel, do_nothing
from buda_emu.support.workers.job import Job, Shared
from buda_emu.support.workers.spread import JobPool, short_turns

JOB: Final = Job("buda_emu.compiler.search.speculative:worker", reports=True)
SPLIT: Final = 4
"""Divisor of a task's size: a task has as many epochs as each worker's share of those that wait, divided by this, so
that workers get several tasks and end at about the same time. No measurement of the figure is recorded."""
STARTS: Final = 3
"""Fewest starts that may wait for workers at a time; one more than there are workers if that is greater. Each holds a
placement in memory, so they are not all made at once. No measurement of the figure is recorded."""
Later = Iterator[tuple[CandidateTable, Start]]
"""Starts that are going to be tried, with their tables, each made when it is asked for."""


def improve_ahead(
    table: CandidateTable, starts: Iterable[Start | None], side: "SideBySide | None"
) -> Generator[KnownResult, None, None]:
    """Give the starts of a table to workers and yield for each start, in order, a function of an epoch's number that
    returns what workers found for that epoch, or None where this process has to improve it. The function always returns
    None without workers (`side` is None) and for a start of None. Closing the generator withdraws the starts that were
    not reached. The functions raise InternalError where workers are lost."""
    if side is None:
        for _ in starts:
            yield no_result
        return
    starts = iter(starts)
    next_starts = deque[Start | None]()
    try:
        while True:
            for start in islice(starts, side.most_starts - len(next_starts)):
                next_starts.append(start)
                if start is not None:
                    side.add(table, start)
            side.look_further()
            if not next_starts:
                return
            yield no_result if next_starts[0] is None else partial(side.take_result, next_starts[0])
            side.withdraw(next_starts.popleft())
    finally:
        for start in next_starts:
            side.withdraw(start)


@dataclass(frozen=True, slots=True)
class _EpochTask:
    """An epoch of a start that waits to be improved: the table and the start; `form` and `token`, by which tasks for
    workers refer to these two; and the names of the epoch's ops."""

    table: CandidateTable
    start: Start
    form: Shared
    token: Shared
    names: list[str]


class SideBySide:
    """The work of this process and its workers on one search. `most_starts` is how many starts may wait for workers at
    a time; `later` yields further starts that the search is going to try, for workers that have nothing else to do. To
    be closed when the search is over."""

    def __init__(self, pool: JobPool, cache: EpochCache) -> None:
        """Share a search with the workers of `pool`; `cache` is what this process has learned of epochs."""
        self.most_starts = max(STARTS, pool.workers.count + 1)
        self.later: Later = iter(())
        self._pool = pool
        self._cache = cache
        self._forms: list[tuple[CandidateTable, Shared]] = []
        self._starts: dict[int, Start] = {}  # by number, those that are not done
        self._count = 0  # of all so far
        self._changed = Condition()
        self._waiting: dict[
            tuple[int, int], _EpochTask
        ] = {}  # by the numbers of start and epoch: nobody has begun them
        self._begun: set[tuple[int, int]] = set()  # by workers
        self._found: dict[tuple[int, int], ImprovedEpoch | None] = {}
        self._closed = False
        self._lost: BaseException | None = None
        self._thread: Thread | None = None

    def add(self, table: CandidateTable, start: Start) -> None:
        """Let workers improve the epochs of a start that is tried soon: only the first one of equal epochs, and only
        those that the start improves. Does nothing if the start was added before, or if its placement does not fit in
        memory, which the search will find, too."""
        if self._number_of_start(start) is not None:
            return
        try:
            alike = match_epochs(table, start)
        except MemoryFullError:  # the search will find it, too
            return
        number = self._count
        self._count = self._count + 1
        self._starts[number] = start
        token = self._pool.share(replace(start, objective=replace(start.objective, record=SearchRecord())))
        form = self._shared_table(table)
        with self._changed:
            for epoch, (first, names) in enumerate(alike):
                if first == epoch and start.improves(epoch):
                    self._waiting[number, epoch] = _EpochTask(table, start, form, token, names)
            self._changed.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._serve, daemon=True)
            self._thread.start()

    def look_further(self) -> None:
        """Add starts from `later` until `most_starts` of them have waiting epochs or `later` is exhausted."""
        while len({number for number, _ in self._waiting}) < self.most_starts:
            table, start = next(self.later, (None, None))
            if table is None or start is None:
                return
            self.add(table, start)

    def take_result(self, start: Start, epoch: int) -> ImprovedEpoch | None:
        """Return the result of workers for the epoch number `epoch` of a start; None if this process has to improve it
        itself, also if the worker failed. While a worker is busy with the epoch, this process improves other waiting
        ones and, where there are none, blocks. A result is returned once only. Raises the error of the thread that
        serves workers."""
        number = self._number_of_start(start)
        while number is not None:
            place = number, epoch
            with self._changed:
                if self._lost is not None:
                    raise self._lost
                if place in self._found:
                    return self._found.pop(place)
                if place not in self._begun:
                    self._waiting.pop(place, None)
                    return None
                if not self._waiting:
                    self._changed.wait()
                    continue
                other = next(iter(self._waiting))
                task = self._waiting.pop(other)
            result = _improve_or_none(task.table, task.start, task.names, self._cache)
            with self._changed:
                self._found[other] = result
        return None

    def withdraw(self, start: Start | None) -> None:
        """Withdraw a start that has been tried, or that is not tried after all: its waiting epochs are dropped, and its
        placement can be freed. Does nothing for None or a start that was not added."""
        if start is None:
            number = None
        else:
            number = self._number_of_start(start)
        if number is None:
            return
        del self._starts[number]
        with self._changed:
            for place in [place for place in self._waiting if place[0] == number]:
                del self._waiting[place]

    def _number_of_start(self, start: Start) -> int | None:
        """Return the number of a start that was added and is not done, else None."""
        return next((number for number, other in self._starts.items() if other is start), None)

    def close(self) -> None:
        """Drop the epochs that no worker has begun, and block until workers are done with the others."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        """Run waiting epochs on workers until the search is closed; the body of the serving thread. An error ends it
        and is kept, to be raised where a result is asked for."""
        try:
            with short_turns():
                while self._wait_for_tasks():
                    self._run_on_workers()
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for a result
            with self._changed:
                self._lost = error
                self._changed.notify_all()

    def _run_on_workers(self) -> None:
        """Send waiting epochs to workers until none waits, and store the results as they come."""
        handed_out: list[list[tuple[int, int]]] = []
        with closing(self._pool.spread(self._take_tasks(handed_out))) as results:
            for number, result in results:
                with self._changed:
                    self._found.update(zip(handed_out[number], result, strict=True))
                    self._begun.difference_update(handed_out[number])
                    self._changed.notify_all()

    def _wait_for_tasks(self) -> bool:
        """Block until epochs are waiting or the search is closed, and return whether epochs are waiting."""
        with self._changed:
            while not (self._waiting or self._closed):
                self._changed.wait()
            return bool(self._waiting)

    def _take_tasks(self, handed_out: list[list[tuple[int, int]]]) -> Iterator[Any]:
        """Yield tasks for workers, each several waiting epochs of one start, from the last start on; they are smaller
        when fewer epochs wait. The epochs are marked as begun, and their numbers are appended to `handed_out`."""
        while True:
            with self._changed:
                if not self._waiting:
                    return
                many = max(1, len(self._waiting) // (SPLIT * self._pool.workers.count))
                places = [next(reversed(self._waiting))]
                places = [place for place in self._waiting if place[0] == places[0][0]][-many:]
                items = [self._waiting.pop(place) for place in places]
                self._begun.update(places)
                handed_out.append(places)
            yield items[0].form, items[0].token, [task.names for task in items]

    def _shared_table(self, table: CandidateTable) -> Shared:
        """Return the object by which tasks refer to a table; it is sent to each worker once, without the values of
        large constants."""
        for shared_table, form in self._forms:
            if shared_table is table:
                return form
        self._forms.append((table, self._pool.share(_without_values(table))))
        return self._forms[-1][1]


class _Shape:
    """A stand-in for the values of a constant, with their shape: the search of epochs reads nothing else of them."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _without_values(table: CandidateTable) -> CandidateTable:
    """Return the table without the values of constants of more than one tile. Those of a single tile stay, as the
    search checks whether they are a single number (`numbers_to_repeat`)."""
    bare: Any = {
        name: constant if constant.shape == (1, 1, 1) else replace(constant, values=_Shape(constant.values.shape))  # type: ignore[arg-type]
        for name, constant in table.tiles.constants.items()
    }
    return replace(table, tiles=replace(table.tiles, constants=bare))


def worker(
    _about: None, report: SendKernel = do_nothing
) -> Callable[[tuple[CandidateTable, Start, list[list[str]]]], list[ImprovedEpoch | None]]:
    """Return the work of `JOB`: a function that improves epochs and returns for each its decisions and the ops that
    were modelled, or None where that fails, as it then will in the main process. `report` gets the kernels that it
    compiles."""

    def improve(task: tuple[CandidateTable, Start, list[list[str]]]) -> list[ImprovedEpoch | None]:
        """Return the improved epochs of one task: a table, a start, and the names of the ops of each of its epochs."""
        table, start, epochs = task
        cache = EpochCache()
        return [_improve_or_none(table, start, names, cache) for names in epochs]

    return with_sent_kernels(improve, report)


def _improve_or_none(table: CandidateTable, start: Start, names: list[str], cache: EpochCache) -> ImprovedEpoch | None:
    """Improve the epoch of the ops `names`, and return its decisions, the number of ops that were modelled and the
    parts of the search that gained; None where that raises BudaError."""
    record = SearchRecord()
    try:
        return improve_epoch(table, start, record, names, cache), record.modelled, record.gained
    except BudaError:
        return None
