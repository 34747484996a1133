"""The order of tasks in every run of a schedule, whatever the durations: the order of waits.

Task a comes before b if b cannot start before a has ended: one unit does both in order, or b waits for tokens that are
not there without those of a, or a chain of such tasks leads from a to b. A schedule that is safe in this order is safe
with any durations.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
_MOST_PAIRS = 2_000_000  # so that a list of races does not fill memory


class Order:
    """The order of waits of one schedule, as returned by `happens_before`."""

    def __init__(self, tasks: int, rank: Ints, before_first: Ints, before: Ints) -> None:
        self.tasks = tasks
        self._rank = rank  # of tasks, then of nodes that stand for whole objects
        self._before_first = before_first  # these two by rank
        self._before = before

    def before(self, first: int, second: int) -> bool:
        """Return whether task `first` has always ended when task `second` starts."""
        return bool(self.before_each(np.array([first], np.int64), np.array([second], np.int64))[0])

    def before_each(self, first: Ints, second: Ints) -> Flags:
        """Return for each pair of tasks, given as two arrays [pairs], whether the first has always ended when the
        second starts: bool[pairs]. Many pairs take hardly longer than one. Raises HostError for a number that is not a
        task."""
        for tasks in (first, second):
            if tasks.size and not 0 <= int(tasks.min()) <= int(tasks.max()) < self.tasks:
                raise HostError(f"the schedule has tasks 0 to {self.tasks - 1}")
        earlier, later = (np.ascontiguousarray(self._rank[tasks]) for tasks in (first, second))
        answer = np.zeros(len(first), np.bool_)
        for start, rows in self._blocks():
            ask_before(rows, start, earlier, later, answer)
        return answer

    def find_races(self, space: Ints, low: Ints, high: Ints, task: Ints, writes: Flags) -> Ints:
        """Return the pairs of accesses that touch common bytes in no fixed order, at least one of them writing:
        int64[pairs, 2], indices of accesses.

        Access i is a space, bytes `low` to `high` - 1, its task and whether it writes; accesses must be sorted by space
        and first byte. Raises UnsupportedError for more than two million pairs.
        """
        ranks = np.ascontiguousarray(self._rank[task])
        blocks: list[Ints] = []
        count = 0
        for start, rows in self._blocks():
            pairs = np.empty((4096, 2), np.int64)
            count_here = racing_accesses(space, low, high, ranks, writes, rows, start, pairs)
            count += count_here
            if count > _MOST_PAIRS:
                raise UnsupportedError(f"more than {_MOST_PAIRS} pairs of accesses race: no list of them is made")
            if count_here > len(pairs):
                pairs = np.empty((count_here, 2), np.int64)
                racing_accesses(space, low, high, ranks, writes, rows, start, pairs)
            blocks.append(pairs[:count_here])
        return np.concatenate([np.empty((0, 2), np.int64), *blocks])

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield (rank of the first node, rows) for blocks of nodes; `rows` has for every node of the schedule a bit for
        each node of the block, set if the former comes after the latter."""
        nodes = len(self._rank)
        for start in range(0, nodes, _BLOCK):
            rows = np.zeros((nodes, -(-min(_BLOCK, nodes - start) // 64)), np.uint64)
            fill_before(self._before_first, self._before, start, rows)
            yield start, rows


def happens_before(schedule: Schedule, in_order: Collection[int] | None = None) -> Order:
    """Return which tasks have always ended before others start, whatever the durations. Units of `in_order` (default:
    all) do their tasks one after the other; tasks of other units only start in order, and a start alone orders nothing.

    A wait orders a task after every task without whose tokens there would never be enough. If an object has more tokens
    than a wait needs, the wait may be served by different tasks, and only the certain part is ordered. Raises
    ProgramError, kind "deadlock", if tasks come before themselves.
    """
    tasks = len(schedule)
    if in_order is None:
        chains = frozenset(range(len(schedule.units)))
    else:
        chains = frozenset(in_order)
    edges = [*_unit_edges(schedule, chains), *_object_edges(schedule, chains)]
    nodes = max(tasks, 1 + max(chain.from_iterable(edges), default=0))
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
        raise ProgramError(_describe_cycle(schedule, followers, missing), kind="deadlock")
    rank = np.empty(nodes, np.int64)
    rank[ready] = np.arange(nodes)
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    first = rank[pairs[:, 0]]
    second = rank[pairs[:, 1]]
    by_second = np.lexsort((first, second))
    before_first = np.searchsorted(second[by_second], np.arange(nodes + 1)).astype(np.int64)
    return Order(tasks, rank, before_first, np.ascontiguousarray(first[by_second]))


def _unit_edges(schedule: Schedule, chains: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of tasks that follow each other on a unit of `chains`, whose tasks are done one after the other."""
    last: dict[int, int] = {}
    for task in range(len(schedule)):
        unit = schedule.unit_of(task)
        if unit in chains:
            if unit in last:
                yield last[unit], task
            last[unit] = task


class _Signals:
    """The tasks that give tokens of one object, by chains of tasks that run one after the other."""

    def __init__(self, initial: int) -> None:
        self.total = initial
        self.given: dict[int, list[tuple[int, int]]] = {}  # by chain: (task, tokens so far)

    def add(self, chain: int, task: int, tokens: int) -> None:
        """Append a task that gives tokens to its chain of tasks that run one after the other."""
        self.total += tokens
        signals = self.given.setdefault(chain, [])
        signals.append((task, tokens + (signals[-1][1] if signals else 0)))

    def required_tasks(self, tokens: int) -> Iterator[int]:
        """Yield, for each chain, the last task without which there would be fewer than `tokens` tokens in all; nothing
        for a chain that can be spared."""
        spare = self.total - tokens
        for signals in self.given.values():
            # without a task its followers give nothing either: all but what came before it
            least = signals[-1][1] - spare  # needed while less than that was given before
            if least > 0:
                number = bisect_right(signals, least - 1, key=lambda signal: signal[1])
            else:
                number = -1
            if number >= 0:
                yield signals[min(number, len(signals) - 1)][0]


def _signals_of_objects(schedule: Schedule, chains: Collection[int]) -> list[_Signals]:
    """Return, for each object, the tasks that give it tokens. Tasks of a unit of `chains` are one chain, in order; any
    other task is a chain by itself."""
    signals = [_Signals(schedule.tokens_at_first(number)) for number in range(len(schedule.objects))]
    for task in range(len(schedule)):
        unit = schedule.unit_of(task)
        if unit in chains:
            chain = unit
        else:
            chain = -1 - task
        for number, tokens in schedule.signals_of(task):
            if tokens:
                signals[number].add(chain, task, tokens)
    return signals


def _object_edges(schedule: Schedule, chains: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield edges (earlier, later) from tasks that give tokens to tasks that need them. Tasks of a unit of `chains` are
    done one after the other. Tasks that wait for all tokens of an object do so through one additional node for the
    object."""
    tasks = len(schedule)
    signals = _signals_of_objects(schedule, chains)
    tokens_taken: dict[tuple[int, int], int] = {}  # by unit and object: those before in the unit have taken theirs
    object_nodes: dict[int, int] = {}  # node of an object, by the object
    for task in range(tasks):
        unit = schedule.unit_of(task)
        for wait in schedule.waits_of(task):
            object_signals = signals[wait.object]
            tokens = wait.tokens
            if wait.takes:
                tokens = tokens_taken.get((unit, wait.object), 0) + wait.tokens
                tokens_taken[unit, wait.object] = tokens
            if not wait.tokens:
                continue
            if tokens >= object_signals.total:
                yield object_nodes.setdefault(wait.object, tasks + len(object_nodes)), task
            else:
                yield from ((signalling_task, task) for signalling_task in object_signals.required_tasks(tokens))
    for number, node in object_nodes.items():
        yield from ((signals_of_chain[-1][0], node) for signals_of_chain in signals[number].given.values())


def _describe_cycle(schedule: Schedule, followers: Sequence[Sequence[int]], missing: Sequence[int]) -> str:
    """Return the message about one cycle among the nodes with a positive count of missing predecessors (`missing`)."""
    left = {node for node, count in enumerate(missing) if count}
    before: dict[int, int] = {}
    for node in left:
        before |= {other: node for other in followers[node] if other in left}
    node = min(before)
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        node = before[node]
    names = [schedule.label(entry) for entry in list(seen)[seen[node] :] if entry < len(schedule)]
    shown = names[:8] + (["..."] if len(names) > 8 else [])
    return f"deadlock: tasks wait for each other in a circle: {' after '.join([*shown, names[0]])}"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A hazard of memory. "race": tasks `first` < `second`, which nothing orders, touch common bytes, and one of them
    writes. "unwritten": task `second` reads bytes that nothing wrote; then `first` is -1. `address` is the first such
    byte, `size` their number."""

    kind: Literal["race", "unwritten"]
    first: int
    second: int
    space: str
    address: int
    size: int


def order_conflicts(order: Order, accesses: Iterable[Access]) -> list[Hazard]:
    """Return the races that can happen in some run: one for each pair of tasks and space, sorted by tasks and space; []
    if every order is safe.

    Takes the time of a sort, and a test of each pair of accesses that share bytes and of which one writes. Raises
    HostError for an access that is impossible, UnsupportedError for more than two million races.
    """
    spaces = sorted(by_space(accesses, order.tasks).items())
    rows: list[tuple[int, int, int, int, bool]] = []
    for number, (_, space_accesses) in enumerate(spaces):
        for access in space_accesses:
            rows += [(number, low, high, access.task, access.writes) for low, high in access.pieces()]
    if not rows:
        return []
    rows.sort()
    table = np.array(rows, np.int64)
    columns = [np.ascontiguousarray(table[:, column]) for column in range(4)]
    pairs = order.find_races(columns[0], columns[1], columns[2], columns[3], table[:, 4].astype(np.bool_))
    meetings: dict[tuple[int, int, int], ByteSet] = {}
    lowest: dict[tuple[int, int, int], int] = {}
    indices: list[list[int]] = pairs.tolist()
    for first_index, second_index in indices:
        space, low, high, task, _ = rows[first_index]
        _, low2, high2, task2, _ = rows[second_index]
        key = (min(task, task2), max(task, task2), space)
        begin = max(low, low2)
        meetings.setdefault(key, ByteSet()).add(begin, min(high, high2))
        lowest[key] = min(begin, lowest.get(key, begin))
    hazards = [
        Hazard(kind="race", first=key[0], second=key[1], space=spaces[key[2]][0], address=lowest[key], size=len(common))
        for key, common in meetings.items()
    ]
    return sorted(hazards, key=lambda hazard: (hazard.first, hazard.second, hazard.space))


def unwritten_reads(
    accesses: Iterable[Access], sequence: Sequence[int] | Ints, written: Iterable[tuple[str, int, int]] = ()
) -> list[Hazard]:
    """Return reads of bytes that no earlier task wrote, one for each access, in order.

    `sequence` has all tasks in the order in which they take effect (`np.lexsort((numbers, timing.start))`); a task
    reads before it writes. `written` has (space, address, size) of bytes that hold data from the start. Raises
    HostError for an access that is impossible.
    """
    place = {int(task): number for number, task in enumerate(sequence)}
    initial_bytes: dict[str, ByteSet] = {}
    for space, address, size in written:
        initial_bytes.setdefault(space, ByteSet()).add(address, address + size)
    spaces: Mapping[str, list[Access]] = by_space(accesses, len(place))
    hazards: list[tuple[int, int, Hazard]] = []
    for space, space_accesses in spaces.items():
        written_bytes = initial_bytes.get(space, ByteSet())
        in_effect = sorted(
            enumerate(space_accesses), key=lambda entry: (place[entry[1].task], entry[1].writes, entry[0])
        )
        for number, access in in_effect:
            gaps = _apply_access(access, written_bytes)
            if gaps:
                size = sum(high - low for low, high in gaps)
                hazard = Hazard(
                    kind="unwritten", first=-1, second=access.task, space=space, address=gaps[0][0], size=size
                )
                hazards.append((place[access.task], number, hazard))
    return [hazard for _, _, hazard in sorted(hazards, key=lambda entry: entry[:2])]


def _apply_access(access: Access, written_bytes: ByteSet) -> list[tuple[int, int]]:
    """Add the bytes that an access writes to `written_bytes`, and return []; for a read, return the ranges (first byte,
    end) of it that nothing has written."""
    ranges = access.pieces()
    if not access.writes:
        return list(chain.from_iterable(written_bytes.missing(low, high) for low, high in ranges))
    for low, high in ranges:
        written_bytes.add(low, high)
    return []
