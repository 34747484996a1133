"""Times of all tasks of a schedule, the critical path, idle time, and the explanation of a deadlock."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.timeline import Lists, Written, run_in_order, run_timeline
from buda_emu.performance.timeline.tasks import MOST, Tasks
from buda_emu.support.errors import HostError, ProgramError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """Arrays over tasks, in the schedule's unit of time.

    `cause`: the task whose end let a task start, -1 for those that start at once; `held_by`: the object that it waited
    for last, -1 where it waited for its unit alone. `tokens`: what the objects hold at the end.
    """

    units: tuple[str, ...]
    objects: tuple[str, ...]
    unit: Ints
    start: Ints
    end: Ints
    cause: Ints
    held_by: Ints
    tokens: Ints

    @property
    def makespan(self) -> int:
        """Return the time at which the last task ends; 0 without tasks."""
        return int(self.end.max(initial=0))

    def busy(self) -> Ints:
        """Return the time for which each unit works: int64[units]."""
        return np.bincount(self.unit, weights=self.end - self.start, minlength=len(self.units)).astype(np.int64)

    def utilisation(self) -> NDArray[np.float64]:
        """Return the share of the makespan for which each unit works, 0 to 1: float64[units]."""
        return self.busy() / max(self.makespan, 1)

    def waiting_times(self) -> Ints:
        """Return for each task how long it waited for objects after its unit was free: int64[tasks]."""
        order = np.lexsort((self.start, self.unit))
        free = np.zeros(len(order), np.int64)
        same = self.unit[order[1:]] == self.unit[order[:-1]]
        free[1:] = np.where(same, self.end[order[:-1]], 0)
        result = np.empty(len(order), np.int64)
        result[order] = self.start[order] - free
        return result

    def critical_path(self, to: int | None = None) -> list[int]:
        """Return the chain of tasks from the beginning to the end of task `to` (by default the task that ends last),
        each of which let the next one start; [] without tasks."""
        if not len(self.end):
            return []
        path = [int(self.end.argmax()) if to is None else to]
        while self.cause[path[-1]] >= 0:
            path.append(int(self.cause[path[-1]]))
        return path[::-1]


_SHOWN = 8  # tasks of a circle, at most, in a message


def explain(tasks: Tasks, timing: Timing) -> str:
    """Return a report of a deadlock, in several lines: how many tasks are unfinished, then a cycle of tasks that wait
    for each other, or the object that no unfinished task gives tokens of. `timing` has -1 as end of unfinished
    tasks."""
    left = np.flatnonzero(timing.end < 0)
    heads = _unfinished_heads(timing)
    lines = [f"deadlock: {len(left)} of {len(tasks)} tasks wait for ever"]
    lines += list(_cycle_lines(tasks, timing, heads))
    return "\n  ".join(lines)


def _unfinished_heads(timing: Timing) -> dict[int, int]:
    """Return the first unfinished task of each unit that has one."""
    heads: dict[int, int] = {}
    for task in np.flatnonzero(timing.end < 0).tolist():
        heads.setdefault(int(timing.unit[task]), task)
    return heads


def _cycle_lines(tasks: Tasks, timing: Timing, heads: dict[int, int]) -> Iterator[str]:
    """Yield a line for each task of the chain in which one waits for the next, from the first unfinished task until the
    cycle is closed, or to an object that nobody gives. `heads` has the first unfinished task of each unit."""
    task = min(heads.values())
    seen: list[int] = []
    while task not in seen:
        seen.append(task)
        number = int(timing.held_by[task])
        wait = next(entry for entry in tasks.waits_of(task) if entry.object == number)
        tokens_signalled = tasks.tokens_at_first(number) + _signalled_tokens(tasks, timing, number)
        if wait.takes:
            have = int(timing.tokens[number])
        else:
            have = tokens_signalled
        text = f"{tasks.label(task)} waits for {wait.tokens} of {tasks.objects[number]}, which has {have}"
        servers = [entry for entry in np.flatnonzero(timing.end < 0).tolist() if _signals_object(tasks, entry, number)]
        if not servers:
            yield f"{text}: no task that is left gives any"
            return
        server = servers[0]
        head = heads[int(timing.unit[server])]
        if head != server:
            after = f", which comes after {tasks.label(head)}"
        else:
            after = ""
        if len(seen) <= _SHOWN:
            yield f"{text}: {tasks.label(server)} would give it{after}"
        task = head
    yield f"and {tasks.label(task)} closes the circle"


def _signals_object(tasks: Tasks, task: int, number: int) -> bool:
    """Return whether a task gives tokens of the object `number`."""
    return any(number_signalled == number and count for number_signalled, count in tasks.signals_of(task))


def _signalled_tokens(tasks: Tasks, timing: Timing, number: int) -> int:
    """Return how many tokens of the object `number` finished tasks have given."""
    done = np.flatnonzero(timing.end >= 0).tolist()
    total = 0
    for task in done:
        total += sum(count for object_signalled, count in tasks.signals_of(task) if object_signalled == number)
    return total


class Schedule(Tasks):
    """Tasks on units that work in order (see `Tasks`); `run` computes when each is done."""

    @property
    def durations(self) -> Ints:
        """Return the durations of all tasks."""
        return _ints(self._duration)

    def run(self, durations: Ints | None = None) -> Timing:
        """Return the times of all tasks, with their own durations or with `durations`, one for each task. Equal
        schedules give equal times on any machine.

        Raises ProgramError (kind "deadlock") if some tasks wait for ever, with a report of the tasks and objects, and
        HostError if the durations add up to more than 2^62.
        """
        if durations is None:
            duration = self.durations
        else:
            duration = durations
        longest = int(duration.max(initial=0))
        if longest * len(duration) >= MOST and sum(duration.tolist()) >= MOST:
            raise HostError("the durations of all tasks add up to more than 2^62")
        return self.runs()(duration)

    def runs(self) -> Callable[[Ints], Timing]:
        """Return a function that computes the times of all tasks for given durations, whose sum must be below 2^62, for
        many runs of one schedule: preparation happens once, here. The function raises the same ProgramError as
        `run`."""
        unit = _ints(self._unit)
        order = np.argsort(unit, kind="stable")
        unit_first = np.searchsorted(unit[order], np.arange(len(self.units) + 1)).astype(np.int64)
        tasks = len(self)
        waits = Lists(*map(_ints, (self._wait_first, self._wait_objects, self._wait_tokens)))
        signals = Lists(*map(_ints, (self._signal_first, self._signal_objects, self._signal_tokens)))
        takes = _ints(self._takes).astype(np.bool_)
        unit_tasks = unit_first, order.astype(np.int64)
        names = tuple(self.units), tuple(self.objects)

        def run_with(durations: Ints) -> Timing:
            """Return the times of all tasks with these durations. Raises ProgramError for a deadlock."""
            written = Written(*(np.full(tasks, -1, np.int64) for _ in range(4)))
            level = _ints(self._initial).copy()
            ended = run_timeline(unit_tasks, durations, waits, takes, signals, level, written)
            timing = Timing(*names, unit, *written, level)
            if ended < tasks:
                raise ProgramError(explain(self, timing), kind="deadlock")
            return timing

        return run_with

    def makespans(self) -> Callable[[Ints], int]:
        """Return a function that computes the makespan for given durations, one for each task. It is much faster than
        `runs` if each object is given by one unit and taken by at most one, since then each task always waits for the
        same tasks. Raises ProgramError for a deadlock."""
        timed = self.runs()
        order = np.argsort(timed(np.ones(len(self), np.int64)).start, kind="stable")
        pairs = self._fixed_predecessors()
        if pairs is None:
            return lambda durations: timed(durations).makespan
        rank = np.empty(len(self), np.int64)
        rank[order] = np.arange(len(self))
        earlier, later = pairs
        by_later = np.argsort(rank[later], kind="stable")
        first = np.searchsorted(rank[later][by_later], np.arange(len(self) + 1)).astype(np.int64)
        before = earlier[by_later]
        end = np.zeros(len(self), np.int64)
        return lambda durations: run_in_order(order, first, before, durations, end)

    def _fixed_predecessors(self) -> tuple[Ints, Ints] | None:
        """Return the arrays (earlier, later) of all pairs of tasks in which the later waits for the end of the earlier,
        whatever the durations; None if durations decide who waits for whom. The schedule must be free of deadlocks."""
        unit = _ints(self._unit)
        signalled = _ints(self._signal_objects)
        tokens = _ints(self._signal_tokens)
        signaller = _owners(self._signal_first)
        signalled, tokens, signaller = (items[tokens > 0] for items in (signalled, tokens, signaller))
        waited = _ints(self._wait_objects)
        needed = _ints(self._wait_tokens)
        waiter = _owners(self._wait_first)
        takes = _ints(self._takes).astype(np.bool_)
        if not (_has_single_unit(signalled, unit[signaller]) and _has_single_unit(waited[takes], unit[waiter[takes]])):
            return None
        needed = needed + np.where(takes, _sums_before(waited, np.where(takes, needed, 0)), 0)
        needed -= _ints(self._initial)[waited]
        by_object = np.argsort(signalled, kind="stable")
        so_far = np.cumsum(tokens[by_object])
        begin = np.searchsorted(signalled[by_object], waited)
        waits = needed > 0
        target = needed + np.concatenate([[0], so_far])[begin]
        number = np.searchsorted(so_far, target[waits])
        chain = np.argsort(unit, kind="stable")
        same = unit[chain[1:]] == unit[chain[:-1]]
        earlier = np.concatenate([signaller[by_object][number], chain[:-1][same]])
        return earlier, np.concatenate([waiter[waits], chain[1:][same]])

    def changes_of(self, number: int, timing: Timing) -> tuple[Ints, Ints]:
        """Return how many tokens the object with this number holds over a run: times in rising order, and the tokens
        from each of them on."""
        taking = (_ints(self._wait_objects) == number) & _ints(self._takes).astype(np.bool_)
        giving = _ints(self._signal_objects) == number
        takers = _owners(self._wait_first)[taking]
        signallers = _owners(self._signal_first)[giving]
        times = np.concatenate([timing.end[signallers], timing.start[takers], [0]])
        deltas = [_ints(self._signal_tokens)[giving], -_ints(self._wait_tokens)[taking], [self._initial[number]]]
        moments, place = np.unique(times, return_inverse=True)
        return moments, np.cumsum(np.bincount(place, weights=np.concatenate(deltas))).astype(np.int64)


def _owners(first: "array[int]") -> Ints:
    """Return the task to which each entry of a flattened list of lists belongs; `first` has the begin of each task's
    part, and the end of the last."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(_ints(first)))


def _has_single_unit(objects: Ints, units: Ints) -> bool:
    """Return whether all entries of each object have the same unit. Both arrays have one number for each entry."""
    by_object = np.argsort(objects, kind="stable")
    objects = objects[by_object]
    units = units[by_object]
    return not ((objects[1:] == objects[:-1]) & (units[1:] != units[:-1])).any()


def _sums_before(objects: Ints, tokens: Ints) -> Ints:
    """Return for each entry the sum of the tokens of earlier entries of the same object."""
    by_object = np.argsort(objects, kind="stable")
    before = np.cumsum(tokens[by_object]) - tokens[by_object]
    first = np.searchsorted(objects[by_object], objects[by_object])
    sums = np.empty(len(objects), np.int64)
    sums[by_object] = before - before[first]
    return sums


def _ints(values: "array[int]") -> Ints:
    """Return an int64 copy, to compute with the lists of a schedule."""
    return np.array(values, np.int64)


BUSY: Final = "busy"
END: Final = "end"


class Gap(NamedTuple):
    """Idle time of a unit from `start` to `end`, in which `task` waited for `object`. Both are -1 after the last
    task."""

    unit: int
    start: int
    end: int
    task: int
    object: int
    category: str


class CriticalTask(NamedTuple):
    """A task of the critical path. It starts when the one before it ends: it waited for `object`, or for its unit if
    `object` is -1. `category` is that of the object, "busy" for the unit."""

    task: int
    start: int
    end: int
    object: int
    category: str


def idle(timing: Timing, categories: Mapping[int, str] | None = None) -> list[Gap]:
    """Return every stretch of time in which a unit is idle, by unit and time.

    A gap is attributed to the object that the next task waited for last. `categories` maps numbers of objects to words
    (`load`, `weights`, `producer`, `room`, ...); other objects have their own names. The gap after the last task of a
    unit is "end".
    """
    words = categories or {}
    order = np.lexsort((np.arange(len(timing.unit)), timing.unit))
    free = [0] * len(timing.units)
    gaps: list[Gap] = []
    columns = (timing.unit, timing.start, timing.end, timing.held_by)
    unit, start, end, held = (column[order].tolist() for column in columns)
    for task, unit_number, begin, finish, number in zip(order.tolist(), unit, start, end, held, strict=True):
        if begin > free[unit_number]:
            gaps.append(
                Gap(
                    unit=unit_number,
                    start=free[unit_number],
                    end=begin,
                    task=task,
                    object=number,
                    category=_category(timing, words, number),
                )
            )
        free[unit_number] = finish
    last = timing.makespan
    gaps += [
        Gap(unit=unit_number, start=at, end=last, task=-1, object=-1, category=END)
        for unit_number, at in enumerate(free)
        if at < last
    ]
    return sorted(gaps)


def time_by_category(timing: Timing, categories: Mapping[int, str] | None = None) -> list[dict[str, int]]:
    """Return the time of each unit by category: "busy", the categories of `idle`, and "end" after its last task. They
    add up to the makespan."""
    busy = timing.busy().tolist()
    times: list[dict[str, int]] = [{BUSY: time} for time in busy]
    for gap in idle(timing, categories):
        times[gap.unit][gap.category] = times[gap.unit].get(gap.category, 0) + gap.end - gap.start
    return times


def critical_steps(
    timing: Timing, categories: Mapping[int, str] | None = None, to: int | None = None
) -> list[CriticalTask]:
    """Return the tasks of the critical path, each with what it waited for, without gaps from time 0 to the end of task
    `to` (by default the task that ends last). `categories` maps numbers of objects to words, as for `idle`."""
    words = categories or {}
    steps: list[CriticalTask] = []
    for task in timing.critical_path(to):
        number = int(timing.held_by[task])
        category = _category(timing, words, number)
        steps.append(
            CriticalTask(
                task=task, start=int(timing.start[task]), end=int(timing.end[task]), object=number, category=category
            )
        )
    return steps


def _category(timing: Timing, words: Mapping[int, str], number: int) -> str:
    """Return the category of the object with this number: its word in `words`, else its name; "busy" for -1."""
    if number < 0:
        return BUSY
    return words.get(number) or timing.objects[number]
