"""DRAM channels of queues: the bytes that DRAM moves for each, and for epochs of a single input when each transfer is
due and channels that suit both."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import Use as TileUse
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import op_cycles, shape_after_tms, speeds, transfer_cycles
from buda_emu.compiler.place.placement import PlacedOp, Placement, Queue
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

Number = TypeVar("Number", float, NDArray[np.float64])
"""A number, or an array with one for each price of a core (`search/single_input.py`)."""
Readers = dict[str, list[PlacedOp]]
"""The ops that read each tensor, by its name, in order."""


class Phase(NamedTuple):
    """The time at which DRAM moves bytes of an epoch: while the epoch loads what stays in L1, before its first input
    (`once`), or with each of its inputs."""

    epoch: int
    once: bool = False


def traffic_by_phase(placement: Placement, queue: Queue, readers: Readers) -> dict[Phase, float]:
    """Return the bytes that DRAM moves of a queue for one input in each phase, as `buda-emu perf` counts them: what an
    epoch writes, and what each reader takes. A broadcast is made on the way to the cores and adds nothing; what stays
    in L1 is loaded once, so the inputs of a round share its bytes. Empty for a queue in the host's memory. `readers`:
    the ops that read each tensor."""
    if queue.loc != "dram":
        return {}
    moved: dict[Phase, float] = {}
    producer = placement.ops.get(queue.input)
    if producer is not None:
        moved[Phase(producer.epoch)] = float(prod(producer.op.shape) * _bytes_per_tile(placement))
    tensor = _tensor_name(queue)
    for placed in queue_readers(placement, queue, readers):
        phase = Phase(placed.epoch, tensor in placed.held)
        if phase.once:
            inputs = placement.count(placed.op.program)
        else:
            inputs = 1
        for use in placed.op.uses:
            if use.source == tensor:
                moved[phase] = moved.get(phase, 0.0) + bytes_read(placement, placed, use) / inputs
    return moved


def bytes_read(placement: Placement, placed: PlacedOp, use: TileUse) -> float:
    """Return the bytes that DRAM moves with each input for the operand `use` of an op that reads it there: no more than
    the tensor has, and of an embedding's table only the picked rows."""
    if placed.op.has("row-wise index"):
        behind = placed.op.shape
    else:
        behind = shape_after_tms(placement.tiles, use)
    return float(min(prod(behind), prod(placement.tiles.shape_of(use.source))) * _bytes_per_tile(placement))


def _bytes_per_tile(placement: Placement) -> int:
    """Return the bytes of a tile with its header in the format of activations."""
    return size_of_tile(placement.target.activation_df, placement.target.arch.alignment)


def _tensor_name(queue: Queue) -> str:
    """Return the name of the tensor that a queue holds: of its constant, of the op that fills it, or else its own
    name."""
    if queue.tensor:
        return queue.tensor
    if queue.role in ("between", "fork"):
        return queue.input
    return queue.name


def queue_readers(placement: Placement, queue: Queue, readers: Readers) -> Iterator[PlacedOp]:
    """Yield the ops that take a tensor out of this queue. Left out are those that read another queue of the same
    constant, those of the producer's epoch, which have it from the producer's cores unless it is detoured for them, and
    of a queue beside a long branch those of other epochs."""
    producer = placement.ops.get(queue.input)
    tensor = _tensor_name(queue)
    for placed in readers.get(tensor, ()):
        elsewhere = queue.role == "constant" and placement.source(tensor, placed) != queue.name
        same_epoch = producer is not None and placed.epoch == producer.epoch
        by_dram = (placed.op.name, tensor) in placement.detours
        if not (elsewhere or (same_epoch and not by_dram) or (queue.role == "fork" and not same_epoch)):
            yield placed


HOP = 1_200.0
"""Cycles between the end of a part and the start of its reader, beside the bytes: latencies of the NoC and the first
tiles. No measurement of the figure is recorded."""


class Due(NamedTuple):
    """The deadline of one transfer between DRAM and a core.

    `cycle`: how many cycles the transfer may take so that nothing waits for it. For data that is read they count from
    the beginning of the epoch, or of its loading; for data that is written (`written`) from the time at which all of it
    is made. It is made in `parts` parts, the first of them `since` cycles before the last."""

    cycle: float
    parts: int = 1
    since: float = 0.0
    written: bool = False

    def limit(self, late: float) -> float:
        """Return the cycles that the channel may take for the transfer so that it is at most `late` cycles late: one
        part from the time at which the last is made, and all parts from the time at which the first is. `Due.late` is
        the inverse."""
        return min(self.parts * (self.cycle + late), self.cycle + self.since + late)

    def late(self, cycles: float) -> float:
        """Return how many cycles late the transfer is if its channel takes `cycles` cycles for all of it; negative
        where it is early."""
        return max(cycles / self.parts - self.cycle, cycles - self.since - self.cycle)


@dataclass(slots=True)
class _OpTimes:
    """The times of an op in cycles of its epoch.

    `part_cycles`: how long one of its `parts` parts takes with the operands read for it; `later_cycles`: how much later
    than the first part the others are done at least; `first` and `done`: when its first part and all of it are done;
    `begin_by` and `last_by`: by when it has to begin its first and its last part."""

    part_cycles: float
    later_cycles: float
    parts: int
    first: float = 0.0
    done: float = 0.0
    begin_by: float = float("inf")
    last_by: float = float("inf")


def _schedule_forwards(placement: Placement, placed_ops: Mapping[str, PlacedOp]) -> dict[str, _OpTimes]:
    """Return the times of each op, in cycles from the beginning of its epoch, when every op begins as soon as the ops
    that it reads allow; `begin_by` and `last_by` are not set yet. The ops have to be in an order in which producers
    come first."""
    ops: dict[str, _OpTimes] = {}
    dram = speeds(placement.target.chip).dram
    for name, placed in placed_ops.items():
        op = placed.op
        blocks = placed.blocks
        target = placement.target.of(placed.op.precision)
        held = placed.held | frozenset(use.source for use in op.uses if use.source not in placement.tiles.ops)
        moved = transfer_cycles(target, placement.tiles, op, blocks, held)
        parts = parts_of_blocks(blocks.t, blocks.mblock)
        math = op_cycles(target, op, blocks)
        streamed = sum(bytes_read(placement, placed, use) for use in op.uses if use.source in held - placed.held) / dram
        times = ops[name] = _OpTimes((math + moved) / parts, max(math, moved, streamed) * (1 - 1 / parts), parts)
        begin = ready = 0.0
        for producer in _producers(placement, ops, placed):
            wait = (producer.done - producer.first) * share_to_wait_for(times.parts, producer.parts, max)
            begin = max(begin, producer.first + wait + HOP)
            ready = max(ready, producer.done + HOP)
        times.first, times.done = first_and_last(begin, ready, times.part_cycles, times.later_cycles, max)
    return ops


def _set_deadlines(
    placement: Placement, placed_ops: Mapping[str, PlacedOp], ops: Mapping[str, _OpTimes], ends: Mapping[int, float]
) -> None:
    """Set in `ops` the cycles by which each op has to begin its first and its last part so that its epoch ends no later
    than `ends` says, going from the last op to the first."""
    done_by = {name: ends[placed.epoch] for name, placed in placed_ops.items()}
    first_by = dict(done_by)
    for name, placed in reversed([*placed_ops.items()]):
        times = ops[name]
        times.last_by = done_by[name] - times.part_cycles
        times.begin_by = min(first_by[name], done_by[name] - times.later_cycles) - times.part_cycles
        for use in placed.op.uses:
            producer = ops.get(use.source)
            if producer is not None and placement.ops[use.source].epoch == placed.epoch:
                done_by[use.source] = min(done_by[use.source], times.last_by - HOP)
                wait = (producer.done - producer.first) * share_to_wait_for(times.parts, producer.parts, max)
                first_by[use.source] = min(first_by[use.source], times.begin_by - HOP - wait)


def _producers(placement: Placement, ops: Mapping[str, _OpTimes], placed: PlacedOp) -> Iterator[_OpTimes]:
    """Yield the times of the ops of the same epoch that an op reads, once for each operand."""
    for use in placed.op.uses:
        if use.source in ops and placement.ops[use.source].epoch == placed.epoch:
            yield ops[use.source]


def share_to_wait_for(parts: Number, source_parts: Number, maximum: Callable[[Number, float], Number]) -> Number:
    """Return the share of the time between a producer's first and last part that has to pass before its reader can
    begin its first part: (1/p - 1/q) / (1 - 1/q), where the reader has p parts and the producer q; 0 where the reader
    has more. `maximum` is `max`, or that of arrays."""
    # 1 - 1/q is at least 0.5 from two parts on; with one part, the 0.5 only keeps a zero from being divided by zero.
    return maximum(1 / parts - 1 / source_parts, 0.0) / maximum(1 - 1 / source_parts, 0.5)


def first_and_last(
    begin: Number, ready: Number, part: Number, later: Number, maximum: Callable[[Number, Number], Number]
) -> tuple[Number, Number]:
    """Return when the first part of an op's result is done, and when the last one is, as the timing model has it: the
    first part begins at `begin`, the last one when all operands are `ready`. A part takes `part` cycles, and all after
    the first one take `later` cycles. `maximum` is `max`, or that of arrays."""
    first = begin + part
    return first, maximum(first + later, ready + part)


def deadlines_by_queue(placement: Placement, readers: Readers, epoch: int | None = None) -> dict[str, dict[Phase, Due]]:
    """Return the deadline of each queue in each phase in which DRAM moves it, the earliest where several ops read it.
    They follow from estimates of the ops' times, so that the epoch ends as early as its longest path allows. With
    `epoch`, only that epoch's deadlines are there, and other queues have none. `readers`: the ops that read each
    tensor."""
    placed_ops = {name: placed for name, placed in placement.ops.items() if epoch in (None, placed.epoch)}
    ops = _schedule_forwards(placement, placed_ops)
    ends: dict[int, float] = {}
    for name, placed in placed_ops.items():
        ends[placed.epoch] = max(ends.get(placed.epoch, 0.0), ops[name].done)
    _set_deadlines(placement, placed_ops, ops, ends)
    deadlines: dict[str, dict[Phase, Due]] = {}
    for name, queue in placement.queues.items():
        phase_dues = deadlines[name] = {}
        for phase, due in _phase_deadlines(placement, queue, readers, ops, ends):
            # Tuples compare by `cycle` first: the deadline of the first reader that waits counts for all.
            phase_dues[phase] = min(phase_dues.get(phase, due), due)
    return deadlines


def _phase_deadlines(
    placement: Placement, queue: Queue, readers: Readers, ops: Mapping[str, _OpTimes], ends: Mapping[int, float]
) -> Iterator[tuple[Phase, Due]]:
    """Yield the phases in which DRAM moves a queue, each with a deadline there: one for the op that fills it, and one
    for each reader. `ops`: the times of the ops that count; `ends`: the cycle in which each epoch ends."""
    times = ops.get(queue.input)
    if times is not None:
        epoch = placement.ops[queue.input].epoch
        yield Phase(epoch), Due(ends[epoch] - times.done, times.parts, times.done - times.first, True)
    for placed in queue_readers(placement, queue, readers):
        once = (queue.tensor or queue.name) in placed.held
        times = ops.get(placed.op.name)
        if times is not None:
            cycle = times.last_by
            if once:
                if placed.begin_by is None:
                    cycle = times.begin_by
                else:
                    cycle = placed.begin_by
            yield Phase(placed.epoch, once), Due(cycle)


BISECTIONS = 20
"""Halvings of a range of cycles in `_bisect_least`: of a million cycles, one is left."""

LEAST_GAIN = 50.0
"""Cycles that moving or exchanging buffers has to save, so that no time goes into gains that change nothing. No
measurement chose the figure."""

_Key = TypeVar("_Key")
Channels = tuple[tuple[int, ...], ...]
"""For each queue, the channel of each of its buffers."""


class Transfer(NamedTuple):
    """A queue's transfer in one phase: its deadline, the cycles for which one of its buffers keeps a channel busy, and
    the number of its buffers."""

    due: Due
    cycles: float
    buffers: int


class ChannelLoad(NamedTuple):
    """The load of a channel in one phase: the cycles that it is busy, and the deadlines of its transfers."""

    cycles: float = 0.0
    dues: frozenset[Due] = frozenset()

    def limit(self, late: float) -> float:
        """Return the cycles that the channel may be busy so that none of its transfers is more than `late` cycles late;
        infinity where it has none."""
        return min((due.limit(late) for due in self.dues), default=float("inf"))

    def with_buffer(self, due: Due, cycles: float) -> "ChannelLoad":
        """Return the load with one more buffer, which keeps the channel busy for `cycles` cycles and has the deadline
        `due`."""
        return ChannelLoad(self.cycles + cycles, self.dues | {due})


@lru_cache(4096)
def channels_in_time(transfers: tuple[Transfer, ...], used: tuple[ChannelLoad, ...]) -> Channels:
    """Return the channel of each buffer of each transfer, so that the latest one is as little late as possible and then
    the busiest channel has as little to do as possible, as far as first fit finds that. `used`: the load that each
    channel has already. Results are cached, as a search asks again and again for equal epochs."""
    total = sum(transfer.cycles * transfer.buffers for transfer in transfers) + sum(channel.cycles for channel in used)
    due_cycles = [transfer.due.cycle for transfer in transfers]
    solutions: dict[tuple[float, float], Channels] = {}

    def fits(late: float, busiest: float) -> bool:
        """Return whether first fit finds channels with which no transfer is more than `late` cycles late and no channel
        works more than `busiest` cycles, and keep them in `solutions`."""
        channels = _fill_channels(transfers, used, late, busiest)
        if channels is not None:
            solutions[late, busiest] = channels
        return channels is not None

    late = _bisect_least(-max(due_cycles) - 1.0, total - min(due_cycles) + 1.0, lambda cycles: fits(cycles, total))
    busiest = _bisect_least(0.0, total, lambda cycles: fits(late, cycles))
    if fits(late, busiest):
        return solutions[late, busiest]
    # Not even the upper bounds, which the bisections take as they are, had to hold: anything goes then.
    return _fill_channels(transfers, used, float("inf"), total) or ()


def _bisect_least(low: float, high: float, suits: Callable[[float], bool]) -> float:
    """Return the least number between `low` and `high` that `suits`, to within what `BISECTIONS` halvings leave;
    `high`, which is not tested, where no lower one suits."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if suits(middle):
            high = middle
        else:
            low = middle
    return high


def _fill_channels(
    transfers: Sequence[Transfer], used: Sequence[ChannelLoad], late: float, busiest: float
) -> Channels | None:
    """Return the channel of each buffer of each transfer so that nothing is more than `late` cycles late and no channel
    is at work for more than `busiest` cycles, with the loads `used` counted; None where first fit finds none. The
    transfers with the earliest deadlines choose first, and the channels with the tightest limits are filled first."""
    cycles = [channel.cycles for channel in used]
    limits = [min(busiest, channel.limit(late)) for channel in used]
    order = sorted(range(len(used)), key=lambda n: (limits[n], n))
    chosen_channels: list[tuple[int, ...]] = [()] * len(transfers)
    for number in sorted(range(len(transfers)), key=lambda n: (transfers[n].due.limit(late), n)):
        transfer = transfers[number]
        limit = transfer.due.limit(late)
        chosen = list[int]()
        for _ in range(transfer.buffers):
            channel = next((n for n in order if cycles[n] + transfer.cycles <= min(limits[n], limit)), None)
            if channel is None:
                return None
            cycles[channel] += transfer.cycles
            limits[channel] = min(limits[channel], limit)
            chosen.append(channel)
        chosen_channels[number] = tuple(chosen)
    return tuple(chosen_channels)


class PhaseUse(NamedTuple):
    """A queue's transfer in a phase, which is given by a number: the cycles for which one of its buffers keeps a
    channel busy, and its deadline."""

    phase: int
    cycles: float
    due: Due


class QueueUses(NamedTuple):
    """The transfers of a queue in all phases, and the channel of each of its buffers; the buffers of a `fixed` queue
    stay where they are."""

    uses: tuple[PhaseUse, ...]
    channels: tuple[int, ...]
    fixed: bool = False


@lru_cache(1024)
def balance_channels(queues: tuple[QueueUses, ...], channels: int) -> Channels:
    """Return the channels of the buffers of all queues after a local search: buffers are moved and exchanged as long as
    all phases together wait at least `LEAST_GAIN` cycles less for their reads and writes. For queues that several
    epochs use, whose first channels suit one epoch only. `channels`: how many there are."""
    state = _Balancer(queues, channels)
    waiting = [*range(len(state.phases))]
    while waiting:
        phase = waiting.pop(0)
        touched = state.improve(phase)
        waiting += [number for number in sorted(touched) if number not in waiting]
    return tuple(tuple(places) for places in state.places)


class _PhaseLoad:
    """The load of each channel in a phase: the cycles that it is busy, how many buffers it moves by their deadline, and
    how late its reads and its writes are."""

    def __init__(self, channels: int) -> None:
        self.cycles = [0.0] * channels
        self.whole: list[dict[float, int]] = [{} for _ in range(channels)]  # read in one part, by when that is due
        self.parts: list[dict[Due, int]] = [{} for _ in range(channels)]  # and all else
        self.read = [0.0] * channels
        self.written = [0.0] * channels

    def add(self, channel: int, use: PhaseUse, count: int) -> None:
        """Add `count` buffers of a queue to a channel, or remove them if it is negative."""
        due = use.due
        cycles = self.cycles[channel] + count * use.cycles
        read_whole = self.whole[channel]
        parts = self.parts[channel]
        if due.parts == 1 and not due.written:
            _change_count(read_whole, due.cycle, count)
        else:
            _change_count(parts, due, count)
        if read_whole:
            read = cycles - min(read_whole)
        else:
            read = 0.0
        written = 0.0
        for other in parts:
            late = other.late(cycles)
            if other.written:
                written = max(written, late)
            else:
                read = max(read, late)
        self.cycles[channel], self.read[channel], self.written[channel] = cycles, max(read, 0.0), written

    def wait(self) -> float:
        """Return the cycles that the epoch waits: for its latest read and then for its latest write."""
        return max(self.read) + max(self.written)

    def slowest(self) -> list[int]:
        """Return the channel with the latest read and the one with the latest write, each once; none where nothing is
        late."""
        waits = (self.read, self.written)
        return sorted({lates.index(max(lates)) for lates in waits if max(lates) > 0})


def _change_count(counts: dict[_Key, int], key: _Key, count: int) -> None:
    """Add `count` to the count of a key, and drop the key when it reaches zero."""
    counts[key] = counts.get(key, 0) + count
    if not counts[key]:
        del counts[key]


BufferId = tuple[int, int]
"""A buffer, by the number of its queue and its own number in that."""
Change = Sequence[tuple[BufferId, int]]
"""Buffers, each with the channel that it moves to."""


class _Balancer:
    """The state of the local search of `balance_channels`. `places`: the channel of each buffer of each queue;
    `phases`: the loads of each phase; `movable`: the buffers of each phase whose queue is not fixed; `waits`: the
    cycles that each phase waits."""

    def __init__(self, queues: Sequence[QueueUses], channels: int) -> None:
        self.channels = channels
        self.places = [list(queue.channels) for queue in queues]
        self.uses = [{use.phase: use for use in queue.uses} for queue in queues]
        phases = set[int]().union(*self.uses)
        self.phases = [_PhaseLoad(channels) for _ in range(1 + max(phases, default=-1))]
        self.movable: list[list[BufferId]] = [[] for _ in self.phases]
        for number, queue in enumerate(queues):
            for use, (place, channel) in product(queue.uses, enumerate(queue.channels)):
                self.phases[use.phase].add(channel, use, 1)
                if not queue.fixed:
                    self.movable[use.phase].append((number, place))
        self.waits = [phase.wait() for phase in self.phases]

    def improve(self, phase: int) -> set[int]:
        """Make the first move or exchange found that relieves a channel for which the phase waits, and return the
        numbers of the phases that the moved queues use; an empty set, with nothing changed, where none gains
        `LEAST_GAIN` cycles."""
        for channel in self.phases[phase].slowest():
            users_there = [
                user for user in self.movable[phase] if self._at(user) == channel and self._relieves(phase, user)
            ]
            for change in chain(self._moves(channel, users_there), self._exchanges(phase, channel, users_there)):
                touched = self._try_change(phase, change)
                if touched:
                    return touched
        return set()

    def _moves(self, channel: int, users: Sequence[BufferId]) -> Iterator[Change]:
        """Yield all moves of one of the buffers `users` from `channel`, where they are, to another channel."""
        for user in users:
            for to in range(self.channels):
                if to != channel:
                    yield [(user, to)]

    def _exchanges(self, phase: int, channel: int, users: Sequence[BufferId]) -> Iterator[Change]:
        """Yield all exchanges of one of the buffers `users` of `channel` for a buffer of another channel that keeps it
        busy for fewer cycles in this phase."""
        for user in users:
            cycles = self.uses[user[0]][phase].cycles
            for other in self.movable[phase]:
                at = self._at(other)
                if at != channel and self.uses[other[0]][phase].cycles < cycles:
                    yield [(user, at), (other, channel)]

    def _relieves(self, phase: int, user: BufferId) -> bool:
        """Return whether the phase would wait at least `LEAST_GAIN` cycles less if the buffer `user` were not in its
        channel. The loads are as before afterwards."""
        channel = self._at(user)
        use = self.uses[user[0]][phase]
        self.phases[phase].add(channel, use, -1)
        wait = self.phases[phase].wait()
        self.phases[phase].add(channel, use, 1)
        return self.waits[phase] - wait >= LEAST_GAIN

    def _at(self, user: BufferId) -> int:
        """Return the channel in which the buffer `user` is."""
        return self.places[user[0]][user[1]]

    def _try_change(self, first: int, change: Change) -> set[int]:
        """Move buffers (`change`: each with its new channel) if that saves at least `LEAST_GAIN` cycles both in the
        phase `first` and in all phases that use them together, and return the numbers of these phases; otherwise change
        nothing and return an empty set."""
        before = [(user, self._at(user)) for user, _ in change]
        touched = set[int]().union(*(self.uses[number] for (number, _), _ in change))
        done = list[int]()
        gain = 0.0
        # The phase that waits comes first: most changes gain nothing there, and the others are not looked at then.
        for phase in (first, *sorted(touched - {first})):
            done.append(phase)
            self._move_in_phase(phase, change, before)
            gain += self.waits[phase] - self.phases[phase].wait()
            if phase == first and gain < LEAST_GAIN:
                break
        if gain < LEAST_GAIN:
            for phase in done:
                self._move_in_phase(phase, before, change)
            return set()
        for user, channel in change:
            self.places[user[0]][user[1]] = channel
        for phase in touched:
            self.waits[phase] = self.phases[phase].wait()
        return touched

    def _move_in_phase(
        self,
        phase: int,
        change: Change,
        before: Change,
    ) -> None:
        """Move buffers in the loads of one phase, from their channels in `before` to those in `change`; buffers that
        the phase does not use are passed over."""
        for (user, channel), (_, old) in zip(change, before, strict=True):
            use = self.uses[user[0]].get(phase)
            if use is not None:
                self.phases[phase].add(old, use, -1)
                self.phases[phase].add(channel, use, 1)
