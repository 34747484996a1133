"""The tasks of a schedule: units, counted objects, tasks, and the bytes of memory that they touch."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.support.errors import HostError

Counted = tuple[int, NDArray[np.int64]]
"""An object, and tokens of it for each of many tasks."""
MOST = (1 << 62) - 1
"""Of a count of tokens, and of the sum of all durations."""


class Wait(NamedTuple):
    """A condition for the start of a task: it takes `tokens` tokens of an object as soon as they are there. Without
    `takes` it leaves them, and waits until as many were given since the beginning."""

    object: int
    tokens: int = 1
    takes: bool = True


class Tasks:
    """Tasks on units that work in order.

    A **unit** does one task at a time, in the order in which they were added. A **counted object** holds tokens: tasks
    give some when they end, and take some, or wait until so many were ever given, before they start. A token bucket, a
    buffer with room for n tiles (n tokens that readers give back), a barrier of n tasks and a fence are all of these.
    Times are integers of any one unit, such as clock cycles.
    """

    def __init__(self) -> None:
        self.units: list[str] = []
        self.objects: list[str] = []
        self._initial = array("q")
        self._unit = array("q")
        self._duration = array("q")
        self._labels: dict[int, str] = {}
        # waits and signals of task i: at first[i] .. first[i+1]-1
        self._wait_first = array("q", [0])
        self._wait_objects = array("q")
        self._wait_tokens = array("q")
        self._signal_first = array("q", [0])
        self._signal_objects = array("q")
        self._signal_tokens = array("q")
        self._takes = array("b")

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self._unit)

    def unit(self, name: str) -> int:
        """Add a unit and return its number."""
        self.units.append(name)
        return len(self.units) - 1

    def object(self, name: str, tokens: int = 0) -> int:
        """Add a counted object that begins with `tokens` tokens and return its number. Raises HostError for a negative
        count."""
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
        """Add a task at the end of a unit's list and return its number. `signals` are pairs (object, tokens) given when
        it ends.

        Raises HostError for a number that is not a unit or object, a negative duration or count.
        """
        if not (0 <= unit < len(self.units) and 0 <= duration < MOST):
            raise HostError(f"task {label or len(self)}: {duration} on unit {unit} is not possible")
        objects = len(self.objects)
        first = self._wait_first[-1]
        for wait in waits:
            number = wait[0]
            tokens = wait[1]
            takes = len(wait) < 3 or wait[2]
            if not (0 <= number < objects and 0 <= tokens < MOST):
                raise self._impossible_tokens(number, tokens, label)
            if takes and number in self._wait_objects[first:]:
                tokens += self._untake(number, first)  # whoever takes twice needs both
            self._wait_objects.append(number)
            self._wait_tokens.append(tokens)
            self._takes.append(takes)
        for number, tokens in signals:
            if not (0 <= number < objects and 0 <= tokens < MOST):
                raise self._impossible_tokens(number, tokens, label)
            self._signal_objects.append(number)
            self._signal_tokens.append(tokens)
        self._wait_first.append(len(self._wait_objects))
        self._signal_first.append(len(self._signal_objects))
        self._unit.append(unit)
        self._duration.append(duration)
        if label:
            self._labels[len(self._unit) - 1] = label
        return len(self._unit) - 1

    def tasks(
        self, unit: int, duration: int, count: int, waits: Sequence[Counted], signals: Sequence[Counted]
    ) -> range:
        """Add many tasks of one duration at the end of a unit's list and return their numbers. Task n starts when
        `tokens[n]` of each object of `waits` were given since the beginning, and gives `tokens[n]` of each object of
        `signals` when it ends; 0 tokens are no wait and no signal.

        Raises HostError as `task` does.
        """
        if not (0 <= unit < len(self.units) and 0 <= duration < MOST):
            raise HostError(f"tasks {len(self)} and on: {duration} on unit {unit} is not possible")
        first = len(self)
        _extend(self._unit, np.full(count, unit, np.int64))
        _extend(self._duration, np.full(count, duration, np.int64))
        held = self._append_counts(count, waits, self._wait_first, self._wait_objects, self._wait_tokens)
        self._takes.frombytes(bytes(held))
        self._append_counts(count, signals, self._signal_first, self._signal_objects, self._signal_tokens)
        return range(first, len(self))

    def _append_counts(
        self, count: int, items: Sequence[Counted], first: "array[int]", objects: "array[int]", tokens: "array[int]"
    ) -> int:
        """Append the waits, or the signals, of `count` tasks to their lists, without zeros; return their number.
        `first` has the begin of each task's part. Raises HostError for a number that is not an object, or an impossible
        count."""
        amounts = np.empty((count, len(items)), np.int64)
        for column, (number, tokens_of_tasks) in enumerate(items):
            amounts[:, column] = tokens_of_tasks
            if not 0 <= number < len(self.objects):
                raise self._impossible_tokens(number, int(tokens_of_tasks[0]) if count else 0, "")
        if amounts.size and (amounts.min() < 0 or amounts.max() >= MOST):
            row, column = divmod(int(((amounts < 0) | (amounts >= MOST)).argmax()), len(items))
            raise self._impossible_tokens(items[column][0], int(amounts[row, column]), "")
        numbers = np.array([number for number, _ in items], np.int64)
        is_positive = amounts > 0
        positive_count = int(np.count_nonzero(is_positive))
        if positive_count == amounts.size:
            _extend(first, np.arange(1, count + 1) * len(items) + first[-1])
            _extend(objects, np.tile(numbers, count))
            _extend(tokens, amounts)
        else:
            _extend(first, first[-1] + np.cumsum(is_positive.sum(1)))
            _extend(objects, np.broadcast_to(numbers, amounts.shape)[is_positive])
            _extend(tokens, amounts[is_positive])
        return positive_count

    def _untake(self, number: int, first: int) -> int:
        """Make the waits for an object since place `first` take nothing; return the tokens that they took."""
        took = 0
        for place in range(first, len(self._wait_objects)):
            if self._wait_objects[place] == number and self._takes[place]:
                took += self._wait_tokens[place]
                self._wait_tokens[place] = 0
        return took

    def _impossible_tokens(self, number: int, tokens: int, label: str) -> HostError:
        """Return the error for tokens of an object that a task cannot give or take."""
        return HostError(f"task {label or len(self)}: {tokens} tokens of object {number} are not possible")

    def label(self, task: int) -> str:
        """Return the label of a task, by default its unit and number."""
        return self._labels.get(task) or f"{self.units[self._unit[task]]} #{task}"

    def unit_of(self, task: int) -> int:
        """Return the number of the unit that does a task."""
        return self._unit[task]

    def waits_of(self, task: int) -> list[Wait]:
        """Return the waits of a task."""
        places = range(self._wait_first[task], self._wait_first[task + 1])
        return [Wait(self._wait_objects[i], self._wait_tokens[i], bool(self._takes[i])) for i in places]

    def signals_of(self, task: int) -> list[tuple[int, int]]:
        """Return the pairs (object, tokens) that a task gives when it ends."""
        places = range(self._signal_first[task], self._signal_first[task + 1])
        return [(self._signal_objects[i], self._signal_tokens[i]) for i in places]

    def tokens_at_first(self, number: int) -> int:
        """Return the tokens with which the object of this number begins."""
        return self._initial[number]


def _extend(values: "array[int]", added: NDArray[np.int64]) -> None:
    """Append numbers to an array of Python's `array`."""
    values.frombytes(np.ascontiguousarray(added, np.int64).tobytes())


class Ring(NamedTuple):
    """Bytes `low` to `high` - 1 of a space, used as a ring: data that would pass the last byte continues at the
    first."""

    low: int
    high: int


def pieces(address: int, size: int, ring: Ring | None = None) -> tuple[tuple[int, int], ...]:
    """Return the ranges (first byte, byte after the last) of `size` bytes from an address, in order: one, or two if
    they wrap in a ring. Raises HostError for bytes outside of the ring."""
    if ring is None:
        return ((address, address + size),)
    if not (ring.low <= address < ring.high and 0 <= size <= ring.high - ring.low):
        raise HostError(f"{size} bytes at {address} do not lie in the ring from {ring.low} to {ring.high}")
    end = address + size
    if end <= ring.high:
        return ((address, end),)
    return (address, ring.high), (ring.low, ring.low + end - ring.high)


def union_length(ranges: Iterable[tuple[int, int]]) -> int:
    """Count the numbers that lie in at least one of the ranges (first, one after the last)."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


class ByteSet:
    """A set of byte addresses, stored as ranges that do not touch each other."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def add(self, low: int, high: int) -> None:
        """Add every byte from low to high - 1."""
        if low >= high:
            return
        first = bisect_left(self._highs, low)  # the first range that touches it
        last = bisect_right(self._lows, high)
        if first < last:
            low = min(low, self._lows[first])
            high = max(high, self._highs[last - 1])
        self._lows[first:last] = [low]
        self._highs[first:last] = [high]

    def missing(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches of low to high - 1 that are not in the set, in order."""
        at = bisect_right(self._highs, low)
        while low < high:
            if at < len(self._lows):
                first = self._lows[at]
            else:
                first = high
            if low < first:
                yield low, min(first, high)
            if at < len(self._highs):
                low = self._highs[at]
            else:
                low = high
            at += 1

    def __len__(self) -> int:
        """Return the number of bytes."""
        return sum(self._highs) - sum(self._lows)


class Access(NamedTuple):
    """Bytes that a task reads or writes while it runs. In a `ring` they may wrap."""

    task: int
    space: str  # an L1, a DRAM channel, ...
    address: int
    size: int
    writes: bool
    ring: Ring | None = None

    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Return the ranges (first byte, byte after the last) of the access. Raises HostError for bytes outside of its
        ring."""
        return pieces(self.address, self.size, self.ring)


def by_space(accesses: Iterable[Access], tasks: int) -> dict[str, list[Access]]:
    """Return the accesses of each space. Raises HostError for an access of no bytes, at a negative address, or by a
    task beyond `tasks`, the number of tasks."""
    accesses_by_space: dict[str, list[Access]] = {}
    for access in accesses:
        if access.size <= 0 or access.address < 0 or not 0 <= access.task < tasks:
            raise HostError(f"access of {access.size} bytes at {access.address} by task {access.task} is not possible")
        accesses_by_space.setdefault(access.space, []).append(access)
    return accesses_by_space
