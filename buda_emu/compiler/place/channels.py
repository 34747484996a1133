"""DRAM channels of queues for an epoch of a single input: what DRAM moves, when each transfer is due, and channels
that suit both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeVar

from buda_emu.compiler.lower.tiles import Use as TileUse
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import op_cycles, shape_behind, speeds, transfer_cycles
from buda_emu.compiler.place.placement import Placed, Placement, Queue
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

Readers = dict[str, list[Placed]]
"""The ops that read each tensor, in order."""


class Phase(NamedTuple):
    """When a channel moves bytes: while an epoch loads what stays in L1 (`once`), or with its inputs."""

    epoch: int
    once: bool = False


def traffic(found: Placement, queue: Queue, readers: Readers) -> dict[Phase, float]:
    """Bytes of one input in each phase, as `buda-emu perf` counts them: a broadcast is made on the way, and what stays
    in L1 is loaded once for all inputs of a round."""
    if queue.loc != "dram":
        return {}
    moved: dict[Phase, float] = {}
    producer = found.ops.get(queue.input)
    if producer is not None:
        moved[Phase(producer.epoch)] = float(prod(producer.op.shape) * _tile(found))
    tensor = _tensor(queue)
    for placed in readers_of(found, queue, readers):
        phase = Phase(placed.epoch, tensor in placed.held)
        inputs = found.count(placed.op.program) if phase.once else 1
        for use in placed.op.uses:
            if use.source == tensor:
                moved[phase] = moved.get(phase, 0.0) + bytes_read(found, placed, use) / inputs
    return moved


def bytes_read(found: Placement, placed: Placed, use: TileUse) -> float:
    """What DRAM moves for an operand of an op that reads it there."""
    behind = placed.op.shape if placed.op.has("row-wise index") else shape_behind(found.tiles, use)
    return float(min(prod(behind), prod(found.tiles.shape_of(use.source))) * _tile(found))


def _tile(found: Placement) -> int:
    return size_of_tile(found.target.activation_df, found.target.arch.alignment)


def _tensor(queue: Queue) -> str:
    return queue.tensor or (queue.input if queue.role in ("between", "fork") else queue.name)


def readers_of(found: Placement, queue: Queue, readers: Readers) -> Iterator[Placed]:
    """The ops that take what a queue holds out of it: not those that have it from another queue, or from the op
    itself."""
    producer = found.ops.get(queue.input)
    tensor = _tensor(queue)
    for placed in readers.get(tensor, ()):
        elsewhere = queue.role == "constant" and found.source(tensor, placed) != queue.name
        same_epoch = producer is not None and placed.epoch == producer.epoch
        by_dram = (placed.op.name, tensor) in found.detours
        if not (elsewhere or (same_epoch and not by_dram) or (queue.role == "fork" and not same_epoch)):
            yield placed


HOP = 1_200.0
"""Cycles between the end of a part and the start of its reader, beside the bytes: latencies of the NoC."""


class Due(NamedTuple):
    """The last cycle of an epoch at which nothing waits yet, counted for what is written from when all of it is made;
    in how many parts that is, the first of which is made `since` cycles before the last."""

    cycle: float
    parts: int = 1
    since: float = 0.0
    written: bool = False

    def limit(self, late: float) -> float:
        """Cycles that its channel may take so that nothing is later than that: a part after it is made, and all of them
        after the first one is."""
        return min(self.parts * (self.cycle + late), self.cycle + self.since + late)

    def late(self, cycles: float) -> float:
        """How late it is where its channel takes so many cycles."""
        return max(cycles / self.parts - self.cycle, cycles - self.since - self.cycle)


@dataclass(slots=True)
class _Op:
    """Of an op: cycles of one part with what it reads on its way, and of the others, which come while it works; in how
    many parts; when its first part and when all of it is done; and by when it has to begin its first and its last one.
    """

    one: float
    others: float
    parts: int
    first: float = 0.0
    done: float = 0.0
    begin_by: float = float("inf")
    last_by: float = float("inf")


def _forwards(found: Placement, wanted: Mapping[str, Placed]) -> dict[str, _Op]:
    """When each op is done, in cycles from the beginning of its epoch."""
    ops: dict[str, _Op] = {}
    dram = speeds(found.target.chip).dram
    for name, placed in wanted.items():
        op = placed.op
        blocks = placed.blocks
        target = found.target.of(placed.op.precision)
        held = placed.held | frozenset(use.source for use in op.uses if use.source not in found.tiles.ops)
        moved = transfer_cycles(target, found.tiles, op, blocks, held)
        parts = parts_of_blocks(blocks.t, blocks.mblock)
        math = op_cycles(target, op, blocks)
        streamed = sum(bytes_read(found, placed, use) for use in op.uses if use.source in held - placed.held) / dram
        own = ops[name] = _Op((math + moved) / parts, max(math, moved, streamed) * (1 - 1 / parts), parts)
        begin = ready = 0.0
        for other in _makers(found, ops, placed):
            begin = max(begin, other.first + (other.done - other.first) * _behind(own, other) + HOP)
            ready = max(ready, other.done + HOP)
        own.first = begin + own.one
        own.done = max(own.first + own.others, ready + own.one)
    return ops


def _backwards(
    found: Placement, wanted: Mapping[str, Placed], ops: Mapping[str, _Op], ends: Mapping[int, float]
) -> None:
    """By when each op has to begin, where its epoch is to end when it does."""
    done_by = {name: ends[placed.epoch] for name, placed in wanted.items()}
    first_by = dict(done_by)
    for name, placed in reversed([*wanted.items()]):
        own = ops[name]
        own.last_by = done_by[name] - own.one
        own.begin_by = min(first_by[name], done_by[name] - own.others) - own.one
        for use in placed.op.uses:
            other = ops.get(use.source)
            if other is not None and found.ops[use.source].epoch == placed.epoch:
                done_by[use.source] = min(done_by[use.source], own.last_by - HOP)
                wait = (other.done - other.first) * _behind(own, other)
                first_by[use.source] = min(first_by[use.source], own.begin_by - HOP - wait)


def _makers(found: Placement, ops: Mapping[str, _Op], placed: Placed) -> Iterator[_Op]:
    """The ops of the same epoch that an op reads."""
    for use in placed.op.uses:
        if use.source in ops and found.ops[use.source].epoch == placed.epoch:
            yield ops[use.source]


def share_to_wait_for(parts: Any, source_parts: Any, maximum: Callable[[Any, float], Any]) -> Any:
    """Return the share of what an op takes after its first part that has to be done before the first part of its reader
    can begin: (1/p - 1/q) / (1 - 1/q), where the reader has p parts and the op q. `maximum` is `max`, or that of
    arrays."""
    return maximum(1 / parts - 1 / source_parts, 0.0) / maximum(1 - 1 / source_parts, 0.5)


def _behind(own: _Op, other: _Op) -> float:
    """Return the share of another op's further parts that an op which reads it waits for."""
    return share_to_wait_for(own.parts, other.parts, max)


def dues(found: Placement, readers: Readers, epoch: int | None = None) -> dict[str, dict[Phase, Due]]:
    """Of each queue and phase in which DRAM moves it; with `epoch`, in that one."""
    wanted = {name: placed for name, placed in found.ops.items() if epoch in (None, placed.epoch)}
    ops = _forwards(found, wanted)
    ends: dict[int, float] = {}
    for name, placed in wanted.items():
        ends[placed.epoch] = max(ends.get(placed.epoch, 0.0), ops[name].done)
    _backwards(found, wanted, ops, ends)
    made: dict[str, dict[Phase, Due]] = {}
    for name, queue in found.queues.items():
        own = made[name] = {}
        for phase, due in _of(found, queue, readers, ops, ends):
            own[phase] = min(own.get(phase, due), due)
    return made


def _of(
    found: Placement, queue: Queue, readers: Readers, ops: Mapping[str, _Op], ends: Mapping[int, float]
) -> Iterator[tuple[Phase, Due]]:
    own = ops.get(queue.input)
    if own is not None:
        epoch = found.ops[queue.input].epoch
        yield Phase(epoch), Due(ends[epoch] - own.done, own.parts, own.done - own.first, True)
    for placed in readers_of(found, queue, readers):
        once = (queue.tensor or queue.name) in placed.held
        own = ops.get(placed.op.name)
        if own is not None:
            begin_by = own.begin_by if placed.begin_by is None else placed.begin_by
            yield Phase(placed.epoch, once), Due(begin_by if once else own.last_by)


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
        limit = item.due.limit(late)
        chosen = list[int]()
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
        due = use.due
        cycles = self.cycles[channel] + count * use.cycles
        whole = self.whole[channel]
        parts = self.parts[channel]
        if due.parts == 1 and not due.written:
            _count(whole, due.cycle, count)
        else:
            _count(parts, due, count)
        read = cycles - min(whole) if whole else 0.0
        written = 0.0
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
        channel = self._at(user)
        use = self.uses[user[0]][phase]
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
