"""When everything is done: tasks on their units, as soon as each can start."""

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError, ProgramError
from buda_emu.kernels.timeline.run import Lists, Written, run_timeline  # and LLVM with it
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


def _ints(values: "array[int]") -> Ints:
    return np.array(values, np.int64)
