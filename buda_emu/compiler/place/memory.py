"""Addresses of queues: which DRAM channel each buffer goes to, and at which byte of that channel or of the host's
memory it lies."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import NamedTuple

from buda_emu.compiler.place.channels import (
    ChannelLoad,
    Due,
    Phase,
    PhaseUse,
    QueueUses,
    Transfer,
    balance_channels,
    channels_in_time,
)
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.placement import Placement, Queue
from buda_emu.compiler.target import Target
from buda_emu.spec.archs import DRAM_RESERVED
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import UnsupportedError

HOST_WINDOW = 0x20000000  # bytes of the host's memory for the outputs of a model, at most
MIB = 1 << 20  # bytes
FULLNESS_STEPS = 16
"""Parts of a channel's capacity that are compared: a channel is fuller than another if its bytes fill more of these
parts (docs/compile/placing.md, "Where queues lie"). Where bytes are compared exactly, small MobileNet takes 0.2 % more
cycles."""
MOST_NAMED_QUEUES = 6
"""Number of queues that the error of a full memory names, the largest first."""
Life = tuple[int, int] | None
"""The first and the last epoch that use a queue, or None for a queue that exists all the time."""


class MemoryFullError(UnsupportedError):
    """The queues of a round of inputs do not fit in DRAM, or the outputs do not fit in the host's memory."""


def buffer_bytes(target: Target, queue: Queue) -> int:
    """Return the bytes of DRAM or host memory that one buffer of a queue takes with all its entries, rounded up to the
    alignment."""
    align = target.arch.alignment
    blocks = queue.blocks
    tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
    tilized = queue.layout == "tilized" and queue.role != "output"
    size = tiles * tile_bytes(queue.df, 32, 32, align, header=tilized) * queue.entries + align
    return -(-size // align) * align


class Allocation(NamedTuple):
    """A range of bytes of a channel, `start` to before `end`, and the first and the last epoch (`life`) that use it."""

    start: int
    end: int
    life: tuple[int, int]


@dataclass(slots=True)
class Channel:
    """The memory of a DRAM channel: at the bottom the queues that are there all the time, above them those that a
    program allocates, which share bytes where no epoch uses both (NETLIST 3.6, V154).

    Room is reserved for all queues before any gets an address. Reserved are `static` bytes for all the time and `live`
    bytes by epoch, at most `most_live` in one epoch. Of addresses it knows `static_end`, the end of the static queues,
    and the `allocations` above, by address."""

    capacity: int
    static: int = DRAM_RESERVED
    live: dict[int, int] = field(default_factory=dict[int, int])
    most_live: int = 0
    static_end: int = DRAM_RESERVED
    allocations: list[Allocation] = field(default_factory=list[Allocation])

    def reserved_bytes(self, life: Life = None) -> int:
        """Return the bytes that are reserved in the fullest of the epochs of `life`, or with None in the fullest of all
        epochs. What is there all the time counts, too."""
        if life is None:
            return self.static + self.most_live
        return self.static + max((self.live.get(epoch, 0) for epoch in range(life[0], life[1] + 1)), default=0)

    def reserve(self, size: int, life: Life) -> None:
        """Count `size` bytes that get an address later; `life`: the first and the last epoch that use them, None for
        all the time."""
        if life is None:
            self.static += size
        else:
            for epoch in range(life[0], life[1] + 1):
                self.live[epoch] = self.live.get(epoch, 0) + size
                self.most_live = max(self.most_live, self.live[epoch])

    def allocate(self, size: int, life: Life) -> int | None:
        """Use `size` bytes for the epochs of `life` and return their address, the lowest that is free in all of these;
        with None, for all the time, the lowest above everything that is used. Return None, with nothing changed, where
        the channel has no room there."""
        if life is None:
            at = max((allocation.end for allocation in self.allocations), default=self.static_end)
        else:
            at = self.static_end
            (first, last) = life
            for start, end, (begun, done) in self.allocations:
                if begun <= last and first <= done:  # an epoch uses both
                    if at + size <= start:
                        break
                    at = max(at, end)
        if at + size > self.capacity:
            return None
        self.occupy(at, size, life)
        return at

    def occupy(self, at: int, size: int, life: Life) -> None:
        """Mark the bytes at an address as used by a queue in the epochs of `life`, None for all the time."""
        if life is None:
            self.static_end = max(self.static_end, at + size)
        else:
            insort(self.allocations, Allocation(at, at + size, life))


class Memory:
    """The DRAM of all chips, and the host's memory, to which queues with `loc` "host" go.

    Without deadlines a buffer goes to the channel that moves least in the phases in which its queue moves something,
    and of equal ones to the first that is no fuller than the others; with deadlines to the channel that
    `channels_in_time` chooses."""

    def __init__(self, target: Target, *, balances: bool = True) -> None:
        """Make empty memories. `balances`: whether buffers are moved between channels once all epochs are known
        (`balance_channels`)."""
        self._target = target
        self._balances = balances
        self._channels: dict[int, list[Channel]] = {}
        self._moved: dict[tuple[int, Phase], list[float]] = {}
        self._host = 0

    @staticmethod
    def of(placement: Placement) -> "Memory":
        """Return the memory with the DRAM used as the queues of a placement use it, so that further queues can be
        added. Host memory counts as empty."""
        memory = Memory(placement.target)
        for queue in placement.queues.values():
            size = buffer_bytes(placement.target, queue)
            if queue.loc != "dram" or queue.alias:
                continue
            for number, address in queue.addresses:
                channel = memory._chip_channels(queue.chip)[number]
                channel.reserve(size, queue.life)
                channel.occupy(address, size, queue.life)
        return memory

    def add(
        self,
        placement: Placement,
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]] | None = None,
        channels: Mapping[str, list[int]] | None = None,
    ) -> None:
        """Give the queues that `moved` lists their addresses, in the placement itself; the first of them choose their
        channels first.

        `moved`: the bytes that each queue moves for one input in each phase; `due`: the deadlines of these transfers
        where epochs take a single input, else None or empty; `channels`: the channels, one for each buffer, in which
        some queues have to stay. With deadlines, what such a queue moves in a phase without one is not counted. Raises
        MemoryFullError."""
        queues = [placement.queues[name] for name in moved]
        if due:
            chosen = self._choose_in_time(queues, moved, due, channels or {})
        else:
            chosen = self._choose_least_busy(queues, moved, channels or {})
        # Static queues lie at the bottom of a channel, so they get their addresses before those that share bytes above.
        static = [queue for queue in queues if queue.life is None]
        allocated = [queue for queue in queues if queue.life is not None]
        allocated.sort(key=lambda queue: -buffer_bytes(self._target, queue))  # while gaps are large
        for queue in (*static, *allocated):
            places = tuple(self._allocate_buffer(queue, number, queues) for number in chosen[queue.name])
            placement.queues[queue.name] = replace(queue, addresses=places)

    def _chip_channels(self, chip: int) -> list[Channel]:
        """Return the channels of a chip, which are empty when they are first asked for."""
        arch = self._target.arch
        if chip not in self._channels:
            self._channels[chip] = [Channel(arch.dram_channel_bytes) for _ in range(arch.dram_channels)]
        return self._channels[chip]

    def _bytes_by_channel(self, chip: int, phase: Phase) -> list[float]:
        """Return the bytes that each channel of a chip moves for one input in a phase. Callers add to this list in
        place."""
        return self._moved.setdefault((chip, phase), [0.0] * self._target.arch.dram_channels)

    def _choose_least_busy(
        self, queues: Sequence[Queue], moved: Mapping[str, Mapping[Phase, float]], fixed: Mapping[str, list[int]]
    ) -> dict[str, list[int]]:
        """Choose the channel of each buffer of each queue, the one that moves least, reserve its room, and return the
        channels by queue. `moved`: the bytes of each queue in each phase. Queues in `fixed` stay in their channels
        there, and are counted before any other chooses. Raises MemoryFullError."""
        for queue in queues:
            for number in fixed.get(queue.name, ()):
                self._chip_channels(queue.chip)[number].reserve(buffer_bytes(self._target, queue), queue.life)
                for phase, total in moved[queue.name].items():
                    self._bytes_by_channel(queue.chip, phase)[number] += total / len(fixed[queue.name])
        return {
            queue.name: fixed.get(queue.name) or self._choose_channels(queue, moved[queue.name], queues)
            for queue in queues
        }

    def _choose_channels(self, queue: Queue, moved: Mapping[Phase, float], queues: Iterable[Queue]) -> list[int]:
        """Choose the channel of each buffer of a queue, reserve its room, count its traffic, and return the channels:
        each time the channel that moves least in its busiest phase of those in which the queue moves anything
        (`moved`). A queue in the host's memory gets 0 for each buffer. `queues`: all that are placed, for the error.
        Raises MemoryFullError."""
        buffers = prod(queue.blocks.grid)
        if queue.loc == "host":
            return [0] * buffers
        busy = [(self._bytes_by_channel(queue.chip, phase), total / buffers) for phase, total in moved.items()]
        weights = [max(phase_bytes) for phase_bytes in zip(*(phase_bytes for phase_bytes, _ in busy), strict=True)] or [
            0.0
        ] * self._target.arch.dram_channels
        size = buffer_bytes(self._target, queue)
        chosen: list[int] = []
        for _ in range(buffers):
            number = self._reserve_channel(queue, size, queues, weights)
            for phase_bytes, share in busy:
                phase_bytes[number] += share
                weights[number] = max(weights[number], phase_bytes[number])
            chosen.append(number)
        return chosen

    def _reserve_channel(self, queue: Queue, size: int, queues: Iterable[Queue], weights: Sequence[float]) -> int:
        """Reserve `size` bytes for one buffer of a queue and return the channel: of those that have room the one with
        the least weight (`weights`, one for each channel), of equal ones the first that is no fuller. Raises
        MemoryFullError, which lists the largest of `queues`."""
        channels = self._chip_channels(queue.chip)
        life = queue.life
        room = [
            (weights[number], channel.reserved_bytes() * FULLNESS_STEPS // channel.capacity, number)
            for number, channel in enumerate(channels)
            if channel.reserved_bytes(life) + size <= channel.capacity
        ]
        if not room:
            raise self._memory_full_error(queue, queues)
        *_, number = min(room)
        channels[number].reserve(size, life)
        return number

    def _choose_in_time(
        self,
        queues: Sequence[Queue],
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]],
        fixed: Mapping[str, list[int]],
    ) -> dict[str, list[int]]:
        """Choose the channel of each buffer of each queue by its deadlines `due`, reserve its room, and return the
        channels by queue. Queues in `fixed` stay in their channels there; any other gets those that `channels_in_time`
        chooses for the first phase in which it moves anything (`moved`), and may be moved again by `balance_channels`.
        Raises MemoryFullError."""
        chosen: dict[str, list[int]] = {}
        groups: dict[tuple[Phase, int], list[Queue]] = {}
        for queue in queues:
            if queue.loc == "host" or not moved[queue.name]:
                chosen[queue.name] = self._choose_channels(queue, {}, queues)
            else:
                first = min(moved[queue.name], key=lambda phase: (phase.epoch, not phase.once))
                groups.setdefault((first, queue.chip), []).append(queue)
        timed = _TimedChannels(self._target, moved, due, fixed, chosen)
        for phase, chip in sorted(groups, key=lambda key: (key[0].epoch, not key[0].once, key[1])):
            timed.choose(groups[phase, chip], phase, chip)
        timed_queues = [*chain.from_iterable(groups.values())]
        if self._balances:
            timed.balance([queue for queue in timed_queues if not any(phase.once for phase in due[queue.name])])
        for queue in timed_queues:
            if queue.name not in fixed:
                chosen[queue.name] = [
                    self._reserve_preferred_channel(queue, number, queues) for number in chosen[queue.name]
                ]
        return chosen

    def _reserve_preferred_channel(self, queue: Queue, first: int, queues: Iterable[Queue]) -> int:
        """Reserve room for one buffer of a queue in channel `first`, or if that is full in the least full one, and
        return the channel. Raises MemoryFullError, which lists the largest of `queues`."""
        weights = [float(number != first) for number in range(self._target.arch.dram_channels)]
        return self._reserve_channel(queue, buffer_bytes(self._target, queue), queues, weights)

    def _allocate_buffer(self, queue: Queue, number: int, queues: Iterable[Queue]) -> tuple[int, int]:
        """Allocate one buffer of a queue and return its channel and address: in channel `number`, or in the emptiest
        channel that has a gap for it where the free memory of `number` is too scattered. A queue in the host's memory
        follows the last one there, in channel 0. Raises MemoryFullError."""
        size = buffer_bytes(self._target, queue)
        if queue.loc == "host":
            at = self._host
            self._host = self._host + size
            if self._host > HOST_WINDOW:
                raise MemoryFullError(f"compile: outputs of more than {HOST_WINDOW // MIB} MiB")
            return 0, at
        channels = self._chip_channels(queue.chip)
        at = channels[number].allocate(size, queue.life)
        if at is not None:
            return number, at
        for other in sorted(range(len(channels)), key=lambda n: channels[n].reserved_bytes(queue.life)):
            at = channels[other].allocate(size, queue.life)
            if at is not None:
                return other, at
        raise self._memory_full_error(queue, queues)

    def _memory_full_error(self, queue: Queue, queues: Iterable[Queue]) -> MemoryFullError:
        """Build the error for a queue that found no room, which lists the bytes of all DRAM queues of its chip by role
        and the largest of them; the caller raises it."""
        arch = self._target.arch
        chip_queues = [
            other_queue for other_queue in queues if other_queue.chip == queue.chip and other_queue.loc == "dram"
        ]
        room = (arch.dram_channel_bytes - DRAM_RESERVED) * arch.dram_channels // MIB
        lines = [f"compile: {queue.name}: the DRAM of one {arch.name} is full ({room} MiB for queues). They take:"]
        lines += _queue_size_lines(self._target, chip_queues)
        lines.append("a smaller microbatch, a narrower format or more chips take less of one chip's DRAM")
        return MemoryFullError("\n  ".join(lines))


@dataclass(slots=True)
class _TimedChannels:
    """Chooses channels for the queues of epochs of a single input by the time at which their data is due.

    `moved`, `due` and `fixed` are those of `Memory.add`, with `fixed` for its `channels`; `chosen` receives the
    channels of each queue; `loads`: the load of each channel of a chip in a phase, with the transfers of all queues
    whose channels were chosen."""

    target: Target
    moved: Mapping[str, Mapping[Phase, float]]
    due: Mapping[str, Mapping[Phase, Due]]
    fixed: Mapping[str, list[int]]
    chosen: dict[str, list[int]]
    loads: dict[tuple[int, Phase], list[ChannelLoad]] = field(
        default_factory=dict[tuple[int, Phase], list[ChannelLoad]]
    )

    def _busy_cycles(self, queue: Queue, phase: Phase, buffers: int) -> float:
        """Return the cycles for which one buffer of a queue with this number of `buffers` keeps its channel busy in a
        phase."""
        rate = speeds(self.target.chip).dram / self.target.arch.dram_channels
        return self.moved[queue.name][phase] / rate / buffers

    def _channel_loads(self, chip: int, phase: Phase) -> list[ChannelLoad]:
        """Return the load of each channel of a chip in a phase. Callers replace the loads in this list."""
        return self.loads.setdefault((chip, phase), [ChannelLoad()] * self.target.arch.dram_channels)

    def choose(self, queues: Sequence[Queue], phase: Phase, chip: int) -> None:
        """Choose the channels of the queues of one chip that move something in this phase and in none before, and add
        their transfers to the loads of all phases that have a deadline for them."""
        transfers: list[Transfer] = []
        for queue in queues:
            if queue.name not in self.fixed:
                buffers = prod(queue.blocks.grid)
                due = self.due[queue.name][phase]
                transfers.append(Transfer(due, self._busy_cycles(queue, phase, buffers), buffers))
        free_channels: Iterator[tuple[int, ...]] = iter(())
        if transfers:
            free_channels = iter(channels_in_time(tuple(transfers), tuple(self._channel_loads(chip, phase))))
        for queue in queues:
            numbers = self.fixed.get(queue.name) or [*next(free_channels)]
            self.chosen[queue.name] = numbers
            for other, due in self.due[queue.name].items():
                loads = self._channel_loads(chip, other)
                cycles = self._busy_cycles(queue, other, len(numbers))
                for number in numbers:
                    loads[number] = loads[number].with_buffer(due, cycles)

    def balance(self, queues: Sequence[Queue]) -> None:
        """Move and exchange buffers of these queues between channels as long as all phases together wait less for
        them."""
        numbers: dict[tuple[int, Phase], int] = {}
        uses: list[QueueUses] = []
        for queue in queues:
            channels = self.chosen[queue.name]
            phase_uses = tuple(
                PhaseUse(
                    phase=numbers.setdefault((queue.chip, phase), len(numbers)),
                    cycles=self._busy_cycles(queue, phase, len(channels)),
                    due=due,
                )
                for phase, due in self.due[queue.name].items()
            )
            uses.append(QueueUses(phase_uses, tuple(channels), queue.name in self.fixed))
        balanced = balance_channels(tuple(uses), self.target.arch.dram_channels)
        for queue, channels in zip(queues, balanced, strict=True):
            self.chosen[queue.name] = [*channels]


_ROLE_LABELS = {
    "input": "inputs", "output": "outputs", "constant": "constants", "state": "states",
    "between": "between epochs", "fork": "beside long branches",
}  # fmt: skip


def _queue_size_lines(target: Target, queues: Sequence[Queue]) -> Iterator[str]:
    """Yield the lines of the error of a full memory: the bytes of all queues of each role, then those of each of the
    largest queues."""
    sizes = {queue.name: buffer_bytes(target, queue) * prod(queue.blocks.grid) for queue in queues}
    for role, label in _ROLE_LABELS.items():
        total = [sizes[queue.name] for queue in queues if queue.role == role]
        if total:
            shared = ""
            if any(other_queue.life for other_queue in queues if other_queue.role == role):
                shared = ", not all at one time"
            yield f"{label}: {sum(total) / MIB:.1f} MiB in {plural(len(total), 'queue')}{shared}"
    for queue in sorted(queues, key=lambda queue: -sizes[queue.name])[:MOST_NAMED_QUEUES]:
        if queue.life:
            epochs = f", epochs {queue.life[0]} to {queue.life[1]}"
        else:
            epochs = ""
        yield f"{queue.name}: {sizes[queue.name] / MIB:.1f} MiB, {plural(queue.entries, 'entry')}{epochs}"
