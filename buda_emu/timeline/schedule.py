"""When everything is done: tasks on their units, as soon as each can start."""

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError, ProgramError
from buda_emu.kernels.timeline.run import Lists, Written, run_in_order, run_timeline  # and LLVM with it
from buda_emu.timeline.deadlock import explain
from buda_emu.timeline.result import Timing
from buda_emu.timeline.tasks import MOST, Tasks

Ints = NDArray[np.int64]


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
        before, end = earlier[by_later], np.zeros(len(self), np.int64)
        return lambda durations: run_in_order(order, first, before, durations, end)

    def _before(self) -> tuple[Ints, Ints] | None:
        """Pairs of tasks, the second of which starts as soon as the first ones of all its pairs have ended; None where
        that depends on durations. Of a schedule that ends."""
        unit = _ints(self._unit)
        given, tokens = _ints(self._signal_objects), _ints(self._signal_tokens)
        giver = _owners(self._signal_first)
        given, tokens, giver = (items[tokens > 0] for items in (given, tokens, giver))
        waited, needed, waiter = _ints(self._wait_objects), _ints(self._wait_tokens), _owners(self._wait_first)
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
        taken, given = _owners(self._wait_first)[taking], _owners(self._signal_first)[giving]
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
    objects, units = objects[by_object], units[by_object]
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
