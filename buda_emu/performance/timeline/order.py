"""What comes before what in every run of a schedule, whatever its tasks take: the order of waits.

Task a comes before b when b cannot start before a has ended: both are done in order by one unit, or b waits for tokens
that are not there without those of a, or there is a chain of such tasks. A schedule that is safe in this order is safe
with any durations; `memory.conflicts` looks at the times of one run.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.timeline import ask_before, fill_before, racing_accesses
from buda_emu.performance.timeline.schedule import Schedule
from buda_emu.performance.timeline.tasks import Access, ByteSet, by_space
from buda_emu.support.errors import HostError, ProgramError, UnsupportedError

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_BLOCK = 16_384  # tasks whose followers are known at a time
_MOST_PAIRS = 2_000_000


class Order:
    """The order of waits of one schedule; made by `happens_before`."""

    def __init__(self, tasks: int, rank: Ints, before_first: Ints, before: Ints) -> None:
        self.tasks = tasks
        self._rank = rank  # of tasks, then of nodes that stand for whole objects
        self._before_first = before_first  # these two by rank
        self._before = before

    def before(self, first: int, second: int) -> bool:
        """Whether task `first` has always ended when task `second` starts."""
        return bool(self.before_each(np.array([first], np.int64), np.array([second], np.int64))[0])

    def before_each(self, first: Ints, second: Ints) -> Flags:
        """The same for pairs of tasks, [pairs] each; many at once are as quick as one. Raises HostError."""
        for tasks in (first, second):
            if tasks.size and not 0 <= int(tasks.min()) <= int(tasks.max()) < self.tasks:
                raise HostError(f"the schedule has tasks 0 to {self.tasks - 1}")
        earlier, later = (np.ascontiguousarray(self._rank[tasks]) for tasks in (first, second))
        answer = np.zeros(len(first), np.bool_)
        for start, rows in self._blocks():
            ask_before(rows, start, earlier, later, answer)
        return answer

    def unordered(self, space: Ints, low: Ints, high: Ints, task: Ints, writes: Flags) -> Ints:
        """[pairs, 2] accesses, sorted by space and first byte, that touch common bytes unordered, one of them writing.

        Raises UnsupportedError for more than two million.
        """
        ranks = np.ascontiguousarray(self._rank[task])
        found: list[Ints] = []
        count = 0
        for start, rows in self._blocks():
            pairs = np.empty((4096, 2), np.int64)
            have = racing_accesses(space, low, high, ranks, writes, rows, start, pairs)
            count += have
            if count > _MOST_PAIRS:
                raise UnsupportedError(f"more than {_MOST_PAIRS} pairs of accesses race: no list of them is made")
            if have > len(pairs):
                pairs = np.empty((have, 2), np.int64)
                racing_accesses(space, low, high, ranks, writes, rows, start, pairs)
            found.append(pairs[:have])
        return np.concatenate([np.empty((0, 2), np.int64), *found])

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """For a block of tasks at a time: the rank of its first, and the bits of who comes after them."""
        nodes = len(self._rank)
        for start in range(0, nodes, _BLOCK):
            rows = np.zeros((nodes, -(-min(_BLOCK, nodes - start) // 64)), np.uint64)
            fill_before(self._before_first, self._before, start, rows)
            yield start, rows


def happens_before(schedule: Schedule, in_order: Collection[int] | None = None) -> Order:
    """The order of waits. `in_order`: units whose tasks come one before the other (default: all); tasks of other units
    only start in order, and a start orders nothing.

    A wait orders a task after those without whose tokens there would never be enough. Where an object has more tokens
    than a wait needs, so that it is not certain whose are taken, it orders only what is certain. Raises ProgramError,
    kind "deadlock", when tasks come before themselves.
    """
    tasks = len(schedule)
    chains = frozenset(range(len(schedule.units))) if in_order is None else frozenset(in_order)
    edges = [*_unit_edges(schedule, chains), *_object_edges(schedule, chains)]
    nodes = max(tasks, 1 + max((node for edge in edges for node in edge), default=0))
    followers: list[list[int]] = [[] for _ in range(nodes)]
    missing = [0] * nodes
    for first, second in edges:
        followers[first].append(second)
        missing[second] += 1
    ready = [node for node in range(nodes) if not missing[node]]
    for node in ready:  # grows
        for other in followers[node]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    if len(ready) < nodes:
        raise ProgramError(_circle(schedule, followers, missing), kind="deadlock")
    rank = np.empty(nodes, np.int64)
    rank[ready] = np.arange(nodes)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    first = rank[pairs[:, 0]]
    second = rank[pairs[:, 1]]
    by_second = np.lexsort((first, second))
    before_first = np.searchsorted(second[by_second], np.arange(nodes + 1)).astype(np.int64)
    return Order(tasks, rank, before_first, np.ascontiguousarray(first[by_second]))


def _unit_edges(schedule: Schedule, chains: Collection[int]) -> Iterator[tuple[int, int]]:
    last: dict[int, int] = {}
    for task in range(len(schedule)):
        unit = schedule.unit_of(task)
        if unit in chains:
            if unit in last:
                yield last[unit], task
            last[unit] = task


class _Signals:
    """Who gives tokens of one object, by chains of tasks that come one before the other."""

    def __init__(self, initial: int) -> None:
        self.total = initial
        self.given: dict[int, list[tuple[int, int]]] = {}  # by chain: (task, tokens so far)

    def add(self, chain: int, task: int, tokens: int) -> None:
        self.total += tokens
        own = self.given.setdefault(chain, [])
        own.append((task, tokens + (own[-1][1] if own else 0)))

    def needed(self, tokens: int) -> Iterator[int]:
        """The last task of each chain without which there would be fewer tokens."""
        spare = self.total - tokens
        for own in self.given.values():
            # without a task its followers give nothing either: all but what came before it
            least = own[-1][1] - spare  # needed while less than that was given before
            number = bisect_right(own, least - 1, key=lambda item: item[1]) if least > 0 else -1
            if number >= 0:
                yield own[min(number, len(own) - 1)][0]


def _object_edges(schedule: Schedule, chains: Collection[int]) -> Iterator[tuple[int, int]]:
    """From tasks that give to tasks that wait. Who waits for all tokens does so through a node of the object."""
    tasks = len(schedule)
    signals = [_Signals(schedule.tokens_at_first(number)) for number in range(len(schedule.objects))]
    for task in range(tasks):
        unit = schedule.unit_of(task)
        for number, tokens in schedule.signals_of(task):
            if tokens:
                signals[number].add(unit if unit in chains else -1 - task, task, tokens)
    taken: dict[tuple[int, int], int] = {}  # by unit and object: those before in the unit have taken theirs
    whole: dict[int, int] = {}  # node of an object, by the object
    for task in range(tasks):
        unit = schedule.unit_of(task)
        for wait in schedule.waits_of(task):
            own = signals[wait.object]
            tokens = wait.tokens
            if wait.takes:
                tokens = taken.get((unit, wait.object), 0) + wait.tokens
                taken[unit, wait.object] = tokens
            if not wait.tokens:
                continue
            if tokens >= own.total:
                yield whole.setdefault(wait.object, tasks + len(whole)), task
            else:
                yield from ((giver, task) for giver in own.needed(tokens))
    for number, node in whole.items():
        yield from ((given[-1][0], node) for given in signals[number].given.values())


def _circle(schedule: Schedule, followers: Sequence[Sequence[int]], missing: Sequence[int]) -> str:
    """A circle among the nodes that are left, in words."""
    left = {node for node, count in enumerate(missing) if count}
    before = {other: node for node in left for other in followers[node] if other in left}
    node = min(before)
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        node = before[node]
    names = [schedule.label(item) for item in list(seen)[seen[node] :] if item < len(schedule)]
    shown = names[:8] + (["..."] if len(names) > 8 else [])
    return f"deadlock: tasks wait for each other in a circle: {' after '.join([*shown, names[0]])}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A "race": tasks `first` < `second`, which nothing orders, touch common bytes, and one of them writes. Or a read
    of "unwritten" bytes by task `second`; then `first` is -1. `address` is the first such byte, `size` their number.
    """

    kind: Literal["race", "unwritten"]
    first: int
    second: int
    space: str
    address: int
    size: int


def order_conflicts(order: Order, accesses: Iterable[Access]) -> list[Hazard]:
    """Races of every run: one for each pair of tasks and space, sorted by tasks and space.

    Takes the time of a sort, and a look at each pair of accesses that share bytes and of which one writes. Raises
    HostError for an access that is impossible, UnsupportedError for more than two million pairs that race.
    """
    spaces = sorted(by_space(accesses, order.tasks).items())
    rows = [
        (number, low, high, access.task, access.writes)
        for number, (_, own) in enumerate(spaces)
        for access in own
        for low, high in access.pieces()
    ]
    if not rows:
        return []
    rows.sort()
    table = np.array(rows, np.int64)
    columns = [np.ascontiguousarray(table[:, column]) for column in range(4)]
    pairs = order.unordered(columns[0], columns[1], columns[2], columns[3], table[:, 4].astype(np.bool_))
    meetings: dict[tuple[int, int, int], ByteSet] = {}
    lowest: dict[tuple[int, int, int], int] = {}
    indices: list[list[int]] = pairs.tolist()
    for one, other in indices:
        space, low, high, task, _ = rows[one]
        _, low2, high2, task2, _ = rows[other]
        key = (min(task, task2), max(task, task2), space)
        begin = max(low, low2)
        meetings.setdefault(key, ByteSet()).add(begin, min(high, high2))
        lowest[key] = min(begin, lowest.get(key, begin))
    found = [Hazard("race", *key[:2], spaces[key[2]][0], lowest[key], len(common)) for key, common in meetings.items()]
    return sorted(found, key=lambda item: (item.first, item.second, item.space))


def unwritten_reads(
    accesses: Iterable[Access], sequence: Sequence[int] | Ints, written: Iterable[tuple[str, int, int]] = ()
) -> list[Hazard]:
    """Reads of bytes that no task wrote before, one for each access, in order. `sequence`: all tasks in the order in
    which they take effect (`np.lexsort((numbers, timing.start))`); a task reads, then writes. `written`: (space,
    address, size) that hold data from the start. Raises HostError for an access that is impossible."""
    place = {int(task): number for number, task in enumerate(sequence)}
    known: dict[str, ByteSet] = {}
    for space, address, size in written:
        known.setdefault(space, ByteSet()).add(address, address + size)
    spaces: Mapping[str, list[Access]] = by_space(accesses, len(place))
    found: list[tuple[int, int, Hazard]] = []
    for space, own in spaces.items():
        have = known.get(space, ByteSet())
        for number, access in sorted(enumerate(own), key=lambda item: (place[item[1].task], item[1].writes, item[0])):
            ranges = access.pieces()
            if access.writes:
                for low, high in ranges:
                    have.add(low, high)
                continue
            gaps = [gap for low, high in ranges for gap in have.missing(low, high)]
            if gaps:
                size = sum(high - low for low, high in gaps)
                hazard = Hazard(
                    kind="unwritten", first=-1, second=access.task, space=space, address=gaps[0][0], size=size
                )
                found.append((place[access.task], number, hazard))
    return [hazard for _, _, hazard in sorted(found, key=lambda item: item[:2])]
