"""When everything is done: tasks on their units, as soon as each can; where time goes, and why tasks wait for ever."""

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
        """When the last task ends; 0 without tasks."""
        return int(self.end.max(initial=0))

    def busy(self) -> Ints:
        """Time that each unit works."""
        return np.bincount(self.unit, weights=self.end - self.start, minlength=len(self.units)).astype(np.int64)

    def utilisation(self) -> NDArray[np.float64]:
        """Share of the makespan that each unit works."""
        return self.busy() / max(self.makespan, 1)

    def waited(self) -> Ints:
        """How long each task was held by objects after its unit was free."""
        order = np.lexsort((self.start, self.unit))
        free = np.zeros(len(order), np.int64)
        same = self.unit[order[1:]] == self.unit[order[:-1]]
        free[1:] = np.where(same, self.end[order[:-1]], 0)
        result = np.empty(len(order), np.int64)
        result[order] = self.start[order] - free
        return result

    def critical_path(self, to: int | None = None) -> list[int]:
        """Tasks from the beginning to the end of a task, by default the last, each of which let the next one start."""
        if not len(self.end):
            return []
        path = [int(self.end.argmax()) if to is None else to]
        while self.cause[path[-1]] >= 0:
            path.append(int(self.cause[path[-1]]))
        return path[::-1]


_SHOWN = 8


def explain(tasks: Tasks, timing: Timing) -> str:
    """Several lines: how many are left, then a circle of tasks that wait for each other, or the one nobody serves."""
    left = np.flatnonzero(timing.end < 0)
    heads = _heads(timing)
    lines = [f"deadlock: {len(left)} of {len(tasks)} tasks wait for ever"]
    lines += list(_chain(tasks, timing, heads))
    return "\n  ".join(lines)


def _heads(timing: Timing) -> dict[int, int]:
    """The first task of each unit that was not done."""
    found: dict[int, int] = {}
    for task in np.flatnonzero(timing.end < 0).tolist():
        found.setdefault(int(timing.unit[task]), task)
    return found


def _chain(tasks: Tasks, timing: Timing, heads: dict[int, int]) -> Iterator[str]:
    """From the first waiting task to the one it waits for, and on, until the circle is closed."""
    task = min(heads.values())
    seen: list[int] = []
    while task not in seen:
        seen.append(task)
        number = int(timing.held_by[task])
        wait = next(item for item in tasks.waits_of(task) if item.object == number)
        given = tasks.tokens_at_first(number) + _given(tasks, timing, number)
        have = int(timing.tokens[number]) if wait.takes else given
        text = f"{tasks.label(task)} waits for {wait.tokens} of {tasks.objects[number]}, which has {have}"
        servers = [item for item in np.flatnonzero(timing.end < 0).tolist() if _gives(tasks, item, number)]
        if not servers:
            yield f"{text}: no task that is left gives any"
            return
        server = servers[0]
        head = heads[int(timing.unit[server])]
        after = f", which comes after {tasks.label(head)}" if head != server else ""
        if len(seen) <= _SHOWN:
            yield f"{text}: {tasks.label(server)} would give it{after}"
        task = head
    yield f"and {tasks.label(task)} closes the circle"


def _gives(tasks: Tasks, task: int, number: int) -> bool:
    return any(item == number and count for item, count in tasks.signals_of(task))


def _given(tasks: Tasks, timing: Timing, number: int) -> int:
    done = np.flatnonzero(timing.end >= 0).tolist()
    return sum(count for task in done for item, count in tasks.signals_of(task) if item == number)


class Schedule(Tasks):
    """Tasks on units that work in order (`Tasks` says what these are); `run` says when each is done."""

    @property
    def durations(self) -> Ints:
        """Of all tasks."""
        return _ints(self._duration)

    def run(self, durations: Ints | None = None) -> Timing:
        """When everything is done, or would be if tasks lasted otherwise. Equal schedules give equal times on any
        machine.

        Raises ProgramError (kind "deadlock") when tasks are left that wait for ever, naming who waits for whom, and
        HostError when the durations add up to more than 2^62.
        """
        duration = self.durations if durations is None else durations
        if sum(duration.tolist()) >= MOST:
            raise HostError("the durations of all tasks add up to more than 2^62")
        return self.runs()(duration)

    def runs(self) -> Callable[[Ints], Timing]:
        """When everything is done for any durations of all tasks, whose sum is below 2^62: what is to be prepared for
        that is prepared once. Raises ProgramError as `run`."""
        unit = _ints(self._unit)
        order = np.argsort(unit, kind="stable")
        unit_first = np.searchsorted(unit[order], np.arange(len(self.units) + 1)).astype(np.int64)
        tasks = len(self)
        waits = Lists(*map(_ints, (self._wait_first, self._wait_objects, self._wait_tokens)))
        signals = Lists(*map(_ints, (self._signal_first, self._signal_objects, self._signal_tokens)))
        takes = _ints(self._takes).astype(np.bool_)
        own = unit_first, order.astype(np.int64)
        names = tuple(self.units), tuple(self.objects)

        def timed(durations: Ints) -> Timing:
            written = Written(*(np.full(tasks, -1, np.int64) for _ in range(4)))
            level = _ints(self._initial).copy()
            ended = run_timeline(own, durations, waits, takes, signals, level, written)
            timing = Timing(*names, unit, *written, level)
            if ended < tasks:
                raise ProgramError(explain(self, timing), kind="deadlock")
            return timing

        return timed

    def makespans(self) -> Callable[[Ints], int]:
        """When the last task ends for any durations, as `runs` says it: much quicker where each object is given by one
        unit and taken by one at most, since then the tasks that each one waits for are always the same."""
        timed = self.runs()
        order = np.argsort(timed(np.ones(len(self), np.int64)).start, kind="stable")
        pairs = self._before()
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

    def _before(self) -> tuple[Ints, Ints] | None:
        """Pairs of tasks, the second of which starts as soon as the first ones of all its pairs have ended; None where
        that depends on durations. Of a schedule that ends."""
        unit = _ints(self._unit)
        given = _ints(self._signal_objects)
        tokens = _ints(self._signal_tokens)
        giver = _owners(self._signal_first)
        given, tokens, giver = (items[tokens > 0] for items in (given, tokens, giver))
        waited = _ints(self._wait_objects)
        needed = _ints(self._wait_tokens)
        waiter = _owners(self._wait_first)
        takes = _ints(self._takes).astype(np.bool_)
        if not (_of_one(given, unit[giver]) and _of_one(waited[takes], unit[waiter[takes]])):
            return None
        needed = needed + np.where(takes, _sums_before(waited, np.where(takes, needed, 0)), 0)
        needed -= _ints(self._initial)[waited]
        by_object = np.argsort(given, kind="stable")
        so_far = np.cumsum(tokens[by_object])
        begin = np.searchsorted(given[by_object], waited)
        waits = needed > 0
        target = needed + np.concatenate([[0], so_far])[begin]
        number = np.searchsorted(so_far, target[waits])
        chain = np.argsort(unit, kind="stable")
        same = unit[chain[1:]] == unit[chain[:-1]]
        earlier = np.concatenate([giver[by_object][number], chain[:-1][same]])
        return earlier, np.concatenate([waiter[waits], chain[1:][same]])

    def changes_of(self, number: int, timing: Timing) -> tuple[Ints, Ints]:
        """Occupancy of an object: times in order, and the tokens that it holds from each of them on."""
        taking = (_ints(self._wait_objects) == number) & _ints(self._takes).astype(np.bool_)
        giving = _ints(self._signal_objects) == number
        taken = _owners(self._wait_first)[taking]
        given = _owners(self._signal_first)[giving]
        times = np.concatenate([timing.end[given], timing.start[taken], [0]])
        deltas = [_ints(self._signal_tokens)[giving], -_ints(self._wait_tokens)[taking], [self._initial[number]]]
        moments, place = np.unique(times, return_inverse=True)
        return moments, np.cumsum(np.bincount(place, weights=np.concatenate(deltas))).astype(np.int64)


def _owners(first: "array[int]") -> Ints:
    """The task of each item of a list of lists."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(_ints(first)))


def _of_one(objects: Ints, units: Ints) -> bool:
    """Whether each object has to do with one unit only."""
    by_object = np.argsort(objects, kind="stable")
    objects = objects[by_object]
    units = units[by_object]
    return not ((objects[1:] == objects[:-1]) & (units[1:] != units[:-1])).any()


def _sums_before(objects: Ints, tokens: Ints) -> Ints:
    """Of each item the tokens of those before it that are of its object."""
    by_object = np.argsort(objects, kind="stable")
    before = np.cumsum(tokens[by_object]) - tokens[by_object]
    first = np.searchsorted(objects[by_object], objects[by_object])
    found = np.empty(len(objects), np.int64)
    found[by_object] = before - before[first]
    return found


def _ints(values: "array[int]") -> Ints:
    return np.array(values, np.int64)


BUSY: Final = "busy"
END: Final = "end"


class Gap(NamedTuple):
    """Idle time of a unit from `start` to `end`: `task` waited for `object`. After its last task both are -1."""

    unit: int
    start: int
    end: int
    task: int
    object: int
    category: str


class Step(NamedTuple):
    """A task of the critical path, which starts when the one before it ends: it waited for `object`, or, where that is
    -1, for its unit. `category` is that of the object, "busy" for the unit."""

    task: int
    start: int
    end: int
    object: int
    category: str


def idle(timing: Timing, categories: Mapping[int, str] | None = None) -> list[Gap]:
    """Every stretch in which a unit does nothing, by unit and time.

    All of it is put down to what was there last of the things that the next task needed. `categories`: a word for each
    counted object (`load`, `weights`, `producer`, `room`, ...); an object without one stands for itself, by its name.
    What is left after the last task of a unit is "end".
    """
    words = categories or {}
    order = np.lexsort((np.arange(len(timing.unit)), timing.unit))
    free = [0] * len(timing.units)
    gaps: list[Gap] = []
    columns = (timing.unit, timing.start, timing.end, timing.held_by)
    unit, start, end, held = (column[order].tolist() for column in columns)
    for task, own, begin, finish, number in zip(order.tolist(), unit, start, end, held, strict=True):
        if begin > free[own]:
            gaps.append(
                Gap(
                    unit=own,
                    start=free[own],
                    end=begin,
                    task=task,
                    object=number,
                    category=_category(timing, words, number),
                )
            )
        free[own] = finish
    last = timing.makespan
    gaps += [
        Gap(unit=own, start=at, end=last, task=-1, object=-1, category=END) for own, at in enumerate(free) if at < last
    ]
    return sorted(gaps)


def time_by_category(timing: Timing, categories: Mapping[int, str] | None = None) -> list[dict[str, int]]:
    """Of each unit: "busy", what it waited for (`idle`), "end" after its last task. They add up to the makespan."""
    busy = timing.busy().tolist()
    found: list[dict[str, int]] = [{BUSY: time} for time in busy]
    for gap in idle(timing, categories):
        found[gap.unit][gap.category] = found[gap.unit].get(gap.category, 0) + gap.end - gap.start
    return found


def critical_steps(timing: Timing, categories: Mapping[int, str] | None = None, to: int | None = None) -> list[Step]:
    """The critical path with its causes, from time 0 to the makespan, or to the end of task `to`, without a hole."""
    words = categories or {}
    steps: list[Step] = []
    for task in timing.critical_path(to):
        number = int(timing.held_by[task])
        category = _category(timing, words, number)
        steps.append(
            Step(task=task, start=int(timing.start[task]), end=int(timing.end[task]), object=number, category=category)
        )
    return steps


def _category(timing: Timing, words: Mapping[int, str], number: int) -> str:
    if number < 0:
        return BUSY
    return words.get(number) or timing.objects[number]
