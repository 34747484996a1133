"""What is to be done: units, counted objects and tasks; `run` says when each task is done."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError, ProgramError
from buda_emu.timeline.deadlock import explain
from buda_emu.timeline.result import Timing

Ints = NDArray[np.int64]
_MOST = (1 << 62) - 1


class Wait(NamedTuple):
    """A task starts when so many tokens of an object are there, which it takes; without `takes` it starts when so many
    were ever given, and leaves them."""

    object: int
    tokens: int = 1
    takes: bool = True


class Schedule:
    """Tasks on units that work in order.

    A **unit** does one task at a time, in the order in which they were added. A **counted object** holds tokens: tasks
    give some when they end, and take some, or wait until so many were ever given, before they start. A token bucket, a
    buffer with room for n tiles (n tokens that readers give back), a barrier of n tasks and a fence are all of these.
    Times are whole numbers of any one unit, such as clock cycles.
    """

    def __init__(self) -> None:
        self.units: list[str] = []
        self.objects: list[str] = []
        self._initial = array("q")
        self._unit = array("q")
        self._duration = array("q")
        self._labels: dict[int, str] = {}
        # waits and signals of task i: at first[i] .. first[i+1]-1
        self._wait_first, self._wait_objects, self._wait_tokens = array("q", [0]), array("q"), array("q")
        self._signal_first, self._signal_objects, self._signal_tokens = array("q", [0]), array("q"), array("q")
        self._takes = array("b")

    def __len__(self) -> int:
        """Tasks."""
        return len(self._unit)

    def unit(self, name: str) -> int:
        """Add a unit; its number."""
        self.units.append(name)
        return len(self.units) - 1

    def object(self, name: str, tokens: int = 0) -> int:
        """Add a counted object that begins with so many tokens; its number. Raises HostError for a negative one."""
        if tokens < 0:
            raise HostError(f"object {name} cannot begin with {tokens} tokens")
        self.objects.append(name)
        self._initial.append(tokens)
        return len(self.objects) - 1

    def task(
        self,
        unit: int,
        duration: int,
        waits: Iterable[Wait | tuple[int, int]] = (),
        signals: Iterable[tuple[int, int]] = (),
        label: str = "",
    ) -> int:
        """Add a task at the end of a unit's list; its number. `signals`: (object, tokens) given when it ends.

        Raises HostError for a number that is no unit or object, a negative duration or count.
        """
        if not (0 <= unit < len(self.units) and 0 <= duration < _MOST):
            raise HostError(f"task {label or len(self)}: {duration} on unit {unit} is not possible")
        objects = len(self.objects)
        first = self._wait_first[-1]
        for item in waits:
            number, tokens, takes = item[0], item[1], len(item) < 3 or item[2]
            if not (0 <= number < objects and 0 <= tokens < _MOST):
                raise self._impossible(number, tokens, label)
            if takes and number in self._wait_objects[first:]:
                tokens += self._untake(number, first)  # whoever takes twice needs both
            self._wait_objects.append(number)
            self._wait_tokens.append(tokens)
            self._takes.append(takes)
        for number, tokens in signals:
            if not (0 <= number < objects and 0 <= tokens < _MOST):
                raise self._impossible(number, tokens, label)
            self._signal_objects.append(number)
            self._signal_tokens.append(tokens)
        self._wait_first.append(len(self._wait_objects))
        self._signal_first.append(len(self._signal_objects))
        self._unit.append(unit)
        self._duration.append(duration)
        if label:
            self._labels[len(self._unit) - 1] = label
        return len(self._unit) - 1

    def _untake(self, number: int, first: int) -> int:
        """Make the waits of an object since `first` take nothing; how much they took."""
        took = 0
        for place in range(first, len(self._wait_objects)):
            if self._wait_objects[place] == number and self._takes[place]:
                took += self._wait_tokens[place]
                self._wait_tokens[place] = 0
        return took

    def _impossible(self, number: int, tokens: int, label: str) -> HostError:
        return HostError(f"task {label or len(self)}: {tokens} tokens of object {number} are not possible")

    def label(self, task: int) -> str:
        """Of a task: as given, else its unit and number."""
        return self._labels.get(task) or f"{self.units[self._unit[task]]} #{task}"

    def run(self) -> Timing:
        """When everything is done. Equal schedules give equal times on any machine.

        Raises ProgramError (kind "deadlock") when tasks are left that wait for ever, naming who waits for whom, and
        HostError when the durations add up to more than 2^62.
        """
        from buda_emu.kernels.timeline import run_timeline  # numba

        if sum(self._duration) >= _MOST:
            raise HostError("the durations of all tasks add up to more than 2^62")
        unit, duration = _ints(self._unit), _ints(self._duration)
        order = np.argsort(unit, kind="stable")
        unit_first = np.searchsorted(unit[order], np.arange(len(self.units) + 1)).astype(np.int64)
        tasks = len(self)
        start, end, cause, held_by = (np.full(tasks, -1, np.int64) for _ in range(4))
        level = _ints(self._initial).copy()
        ended = run_timeline(
            unit_first, order.astype(np.int64), duration, _ints(self._wait_first), _ints(self._wait_objects),
            _ints(self._wait_tokens), _ints(self._takes).astype(np.bool_), _ints(self._signal_first),
            _ints(self._signal_objects), _ints(self._signal_tokens), level, start, end, cause, held_by,
        )  # fmt: skip
        timing = Timing(tuple(self.units), tuple(self.objects), unit, start, end, cause, held_by, level)
        if ended < tasks:
            raise ProgramError(explain(self, timing), kind="deadlock")
        return timing

    def unit_of(self, task: int) -> int:
        """The unit that does a task."""
        return self._unit[task]

    def waits_of(self, task: int) -> list[Wait]:
        """What a task waits for."""
        found = range(self._wait_first[task], self._wait_first[task + 1])
        return [Wait(self._wait_objects[i], self._wait_tokens[i], bool(self._takes[i])) for i in found]

    def signals_of(self, task: int) -> list[tuple[int, int]]:
        """What a task gives: (object, tokens)."""
        found = range(self._signal_first[task], self._signal_first[task + 1])
        return [(self._signal_objects[i], self._signal_tokens[i]) for i in found]

    def tokens_at_first(self, number: int) -> int:
        """Of an object."""
        return self._initial[number]

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
