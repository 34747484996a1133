"""The tasks of a schedule: units, counted objects, tasks, and the bytes of memory that they touch."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.support.errors import HostError

Ints = NDArray[np.int64]
MOST = (1 << 62) - 1
"""The greatest count of tokens, and the greatest sum of all durations."""


class TokenCounts(NamedTuple):
    """The tokens that each of many tasks waits for, or gives, of each object of a list, without zeros. It names no
    objects, so that tasks of the same form share it.

    `tasks`: their number; `ends`: for each task the number of counts up to its last one; `columns` and `tokens`: the
    place in the list of objects and the tokens of each count."""

    tasks: int
    ends: Ints
    columns: Ints
    tokens: Ints

    @staticmethod
    def of(tasks: int, tokens_by_object: Sequence[Ints]) -> "TokenCounts":
        """Return the counts of `tasks` tasks. `tokens_by_object` has for each object the tokens of each task, zeros
        included. Raises HostError for an impossible count."""
        amounts = np.empty((tasks, len(tokens_by_object)), np.int64)
        for column, tokens in enumerate(tokens_by_object):
            amounts[:, column] = tokens
        if amounts.size and (amounts.min() < 0 or amounts.max() >= MOST):
            impossible = amounts[(amounts < 0) | (amounts >= MOST)]
            raise HostError(f"tasks: {int(impossible[0])} tokens of an object are not possible")
        owners, columns = np.nonzero(amounts > 0)
        ends = np.searchsorted(owners, np.arange(tasks), side="right")
        return TokenCounts(tasks, ends.astype(np.int64), columns.astype(np.int64), amounts[owners, columns])


ManyCounts = tuple[Sequence[int], TokenCounts]
"""The numbers of some objects, and the tokens of each that each of many tasks waits for, or gives."""


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
        """Add a task at the end of a unit's list and return its number. It starts when `waits`, waits or pairs (object,
        tokens to take), are served; `signals` are pairs (object, tokens) given when it ends.

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

    def tasks(self, unit: int, duration: int, waits: ManyCounts, signals: ManyCounts) -> range:
        """Add many tasks of one duration at the end of a unit's list and return their numbers. Each starts when the
        tokens of `waits` were given since the beginning (none are taken), and gives the tokens of `signals` when it
        ends.

        Raises HostError as `task` does, and for unequal numbers of waiting and signalling tasks.
        """
        count = waits[1].tasks
        if not (0 <= unit < len(self.units) and 0 <= duration < MOST and signals[1].tasks == count):
            raise HostError(f"tasks {len(self)} and on: {count} of {duration} on unit {unit} are not possible")
        first = len(self)
        self._unit.extend(array("q", [unit]) * count)
        self._duration.extend(array("q", [duration]) * count)
        self._append_counts(waits, self._wait_first, self._wait_objects, self._wait_tokens)
        self._takes.frombytes(bytes(len(waits[1].tokens)))
        self._append_counts(signals, self._signal_first, self._signal_objects, self._signal_tokens)
        return range(first, len(self))

    def _append_counts(
        self, many: ManyCounts, first: "array[int]", objects: "array[int]", tokens: "array[int]"
    ) -> None:
        """Append the waits, or the signals, of many tasks to their lists. `first` has the begin of each task's part.
        Raises HostError for a number that is not an object."""
        numbers, counts = many
        for number in numbers:
            if not 0 <= number < len(self.objects):
                raise HostError(f"tasks {len(self)} and on: object {number} is not possible")
        _extend(first, counts.ends + first[-1])
        _extend(objects, np.array(numbers, np.int64)[counts.columns])
        _extend(tokens, counts.tokens)

    def _untake(self, number: int, first: int) -> int:
        """Make the waits for an object from index `first` on take nothing, and return the tokens that they took, for a
        later wait to take them all."""
        took = 0
        for place in range(first, len(self._wait_objects)):
            if self._wait_objects[place] == number and self._takes[place]:
                took += self._wait_tokens[place]
                self._wait_tokens[place] = 0
        return took

    def _impossible_tokens(self, number: int, tokens: int, label: str) -> HostError:
        """Return, to be raised, the error for `tokens` of object `number` that a task cannot give or take; `label` is
        the task's, "" if it has none."""
        return HostError(f"task {label or len(self)}: {tokens} tokens of object {number} are not possible")

    def label(self, task: int) -> str:
        """Return the label of a task; for one without, its unit's name and its number."""
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
    values.frombytes(added.tobytes())


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
    """Return how many integers of at least 0 lie in one or more of the ranges (first, one after the last)."""
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
        """Yield the ranges (first, one after the last) of low to high - 1 that are not in the set, in order."""
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
    """Return the accesses by space, each in their order. Raises HostError for an access of no bytes, at a negative
    address, or by a task beyond `tasks`, the number of tasks."""
    accesses_by_space: dict[str, list[Access]] = {}
    for access in accesses:
        if access.size <= 0 or access.address < 0 or not 0 <= access.task < tasks:
            raise HostError(f"access of {access.size} bytes at {access.address} by task {access.task} is not possible")
        accesses_by_space.setdefault(access.space, []).append(access)
    return accesses_by_space
