"""DRAM channels for an epoch of a single input: data that is due first lies in channels that move little else.

All that a channel moves in a phase shares it, so that all of it is there at one time. A channel may take as long as the
first due of what it moves allows, and some cycles more. Found are the fewest such cycles with which there is room for
all, filled in the order in which things are due; and with these, the least that the fullest channel moves.

What several epochs use suits one of them by then. Its buffers are moved and exchanged until all epochs together wait
less by no such change (`evened`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from buda_emu.compiler.place.due import Due

STEPS = 20
"""Halvings of the cycles that an epoch waits for its memory."""

LEAST = 50.0
"""Cycles that moving a buffer has to save."""

_Key = TypeVar("_Key")
Channels = tuple[tuple[int, ...], ...]
"""Of each item, the channel of each of its buffers."""


class Moved(NamedTuple):
    """What a queue moves: when it is due, the cycles that one of its buffers keeps a channel busy, its buffers."""

    due: Due
    cycles: float
    buffers: int


class Shared(NamedTuple):
    """A channel as it is used already: cycles, and when what it moves is due."""

    cycles: float = 0.0
    dues: frozenset[Due] = frozenset()

    def limit(self, late: float) -> float:
        """As `Due.limit` of the first of them."""
        return min((due.limit(late) for due in self.dues), default=float("inf"))

    def also(self, due: Due, cycles: float) -> "Shared":
        """With one more buffer."""
        return Shared(self.cycles + cycles, self.dues | {due})


@lru_cache(4096)
def channels_in_time(items: tuple[Moved, ...], used: tuple[Shared, ...]) -> Channels:
    """The channel of each buffer of each item."""
    total = sum(item.cycles * item.buffers for item in items) + sum(channel.cycles for channel in used)
    dues = [item.due.cycle for item in items]
    known: dict[tuple[float, float], Channels] = {}

    def fits(late: float, most: float) -> bool:
        found = _filled(items, used, late, most)
        if found is not None:
            known[late, most] = found
        return found is not None

    late = _least(-max(dues) - 1.0, total - min(dues) + 1.0, lambda cycles: fits(cycles, total))
    most = _least(0.0, total, lambda cycles: fits(late, cycles))
    return known[late, most] if fits(late, most) else _filled(items, used, float("inf"), total) or ()


def _least(low: float, high: float, suits: Callable[[float], bool]) -> float:
    """The least figure that suits, nearly; the highest where no other does."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if suits(middle) else (middle, high)
    return high


def _filled(items: Sequence[Moved], used: Sequence[Shared], late: float, most: float) -> Channels | None:
    """The channels, with nothing later than so many cycles and no channel at work longer than `most`; None where that
    is not possible."""
    cycles = [channel.cycles for channel in used]
    limits = [min(most, channel.limit(late)) for channel in used]
    order = sorted(range(len(used)), key=lambda n: (limits[n], n))
    found: list[tuple[int, ...]] = [()] * len(items)
    for number in sorted(range(len(items)), key=lambda n: (items[n].due.limit(late), n)):
        item = items[number]
        limit, chosen = item.due.limit(late), list[int]()
        for _ in range(item.buffers):
            channel = next((n for n in order if cycles[n] + item.cycles <= min(limits[n], limit)), None)
            if channel is None:
                return None
            cycles[channel] += item.cycles
            limits[channel] = min(limits[channel], limit)
            chosen.append(channel)
        found[number] = tuple(chosen)
    return tuple(found)


class Use(NamedTuple):
    """Of a queue in a phase, by number: cycles that one of its buffers keeps a channel busy, and when it is due."""

    phase: int
    cycles: float
    due: Due


class Queued(NamedTuple):
    """What a queue does in each phase, and the channels of its buffers; `fixed` ones stay where they are."""

    uses: tuple[Use, ...]
    channels: tuple[int, ...]
    fixed: bool = False


@lru_cache(1024)
def evened(queues: tuple[Queued, ...], channels: int) -> Channels:
    """The channels of the buffers of queues that may be used in several phases, with buffers moved and exchanged as
    long as all phases together wait less for what they read and write."""
    state = _Evened(queues, channels)
    waiting = [*range(len(state.phases))]
    while waiting:
        phase = waiting.pop(0)
        touched = state.improve(phase)
        waiting += [number for number in sorted(touched) if number not in waiting]
    return tuple(tuple(own) for own in state.places)


class _Phase:
    """Of each channel the cycles that it is busy, what it moves, by when that is due, and for how long the epoch waits
    for what it reads there, and for what it writes."""

    def __init__(self, channels: int) -> None:
        self.cycles = [0.0] * channels
        self.whole: list[dict[float, int]] = [{} for _ in range(channels)]  # read in one part, by when that is due
        self.parts: list[dict[Due, int]] = [{} for _ in range(channels)]  # and all else
        self.read = [0.0] * channels
        self.written = [0.0] * channels

    def add(self, channel: int, use: Use, count: int) -> None:
        """Buffers of a queue, or fewer of them."""
        due, cycles = use.due, self.cycles[channel] + count * use.cycles
        whole, parts = self.whole[channel], self.parts[channel]
        if due.parts == 1 and not due.written:
            _count(whole, due.cycle, count)
        else:
            _count(parts, due, count)
        read, written = cycles - min(whole) if whole else 0.0, 0.0
        for other in parts:
            late = other.late(cycles)
            if other.written:
                written = max(written, late)
            else:
                read = max(read, late)
        self.cycles[channel], self.read[channel], self.written[channel] = cycles, max(read, 0.0), written

    def late(self) -> float:
        """Cycles that the epoch waits for what it reads, and then for what it writes."""
        return max(self.read) + max(self.written)

    def slowest(self) -> list[int]:
        """The channels that make it wait."""
        own = (self.read, self.written)
        return sorted({lates.index(max(lates)) for lates in own if max(lates) > 0})


def _count(counts: dict[_Key, int], key: _Key, count: int) -> None:
    counts[key] = counts.get(key, 0) + count
    if not counts[key]:
        del counts[key]


class _Evened:
    """Where buffers are while they are moved: `places` of each queue."""

    def __init__(self, queues: Sequence[Queued], channels: int) -> None:
        self.channels = channels
        self.places = [list(queue.channels) for queue in queues]
        self.phases = [_Phase(channels) for _ in range(1 + max((u.phase for q in queues for u in q.uses), default=-1))]
        self.uses = [{use.phase: use for use in queue.uses} for queue in queues]
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.phases]
        for number, queue in enumerate(queues):
            for use in queue.uses:
                for place, channel in enumerate(queue.channels):
                    self.phases[use.phase].add(channel, use, 1)
                    if not queue.fixed:
                        self.users[use.phase].append((number, place))
        self.late = [phase.late() for phase in self.phases]

    def improve(self, phase: int) -> set[int]:
        """Move what makes a phase wait; the phases that wait otherwise afterwards, none where nothing is gained."""
        for channel in self.phases[phase].slowest():
            here = [user for user in self.users[phase] if self._at(user) == channel and self._relieves(phase, user)]
            for user in here:
                for to in range(self.channels):
                    if to != channel and (touched := self._moved(phase, [(user, to)])):
                        return touched
            for user in here:
                most = self.uses[user[0]][phase].cycles
                for other in self.users[phase]:
                    at = self._at(other)
                    if at == channel or self.uses[other[0]][phase].cycles >= most:
                        continue
                    if touched := self._moved(phase, [(user, at), (other, channel)]):
                        return touched
        return set()

    def _relieves(self, phase: int, user: tuple[int, int]) -> bool:
        """Whether the phase would wait less without a buffer."""
        channel, use = self._at(user), self.uses[user[0]][phase]
        self.phases[phase].add(channel, use, -1)
        late = self.phases[phase].late()
        self.phases[phase].add(channel, use, 1)
        return self.late[phase] - late >= LEAST

    def _at(self, user: tuple[int, int]) -> int:
        return self.places[user[0]][user[1]]

    def _moved(self, first: int, change: Sequence[tuple[tuple[int, int], int]]) -> set[int]:
        """The phases that a change touches, if the `first` and all of them together wait less by it; else nothing is
        moved."""
        before = [(user, self._at(user)) for user, _ in change]
        touched = {phase for (number, _), _ in change for phase in self.uses[number]}
        done = list[int]()
        gain = 0.0
        for phase in (first, *sorted(touched - {first})):
            done.append(phase)
            self._put(phase, change, before)
            gain += self.late[phase] - self.phases[phase].late()
            if phase == first and gain < LEAST:
                break
        if gain < LEAST:
            for phase in done:
                self._put(phase, before, change)
            return set()
        for user, channel in change:
            self.places[user[0]][user[1]] = channel
        for phase in touched:
            self.late[phase] = self.phases[phase].late()
        return touched

    def _put(
        self,
        phase: int,
        change: Sequence[tuple[tuple[int, int], int]],
        before: Sequence[tuple[tuple[int, int], int]],
    ) -> None:
        """What is counted in a phase."""
        for (user, channel), (_, old) in zip(change, before, strict=True):
            use = self.uses[user[0]].get(phase)
            if use is not None:
                self.phases[phase].add(old, use, -1)
                self.phases[phase].add(channel, use, 1)
