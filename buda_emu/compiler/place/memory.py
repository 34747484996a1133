"""Addresses of queues: in the DRAM channels that move least, and in the host's memory."""

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
SHARES = 16
"""Parts of a channel's capacity that are compared: a channel is fuller than another if its bytes fill more of these
parts (docs/compile/placing.md, "Where queues lie"). Where bytes are compared exactly, small MobileNet takes 0.2 % more
cycles."""
LARGEST = 6
"""Number of queues that a refusal names."""
Life = tuple[int, int] | None
"""The first and the last epoch that use a queue, or None for a queue that exists all the time."""


class MemoryFullError(UnsupportedError):
    """The queues of a round of inputs do not fit in memory."""


def buffer_bytes(target: Target, queue: Queue) -> int:
    """Return the bytes of one buffer of a queue with all its entries."""
    align = target.arch.alignment
    blocks = queue.blocks
    tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
    tilized = queue.layout == "tilized" and queue.role != "output"
    size = tiles * tile_bytes(queue.df, 32, 32, align, header=tilized) * queue.entries + align
    return -(-size // align) * align


class Allocation(NamedTuple):
    """A range of bytes of a channel, and the epochs that use it."""

    start: int
    end: int
    life: tuple[int, int]


@dataclass(slots=True)
class Channel:
    """The memory of a DRAM channel: first the queues that are there all the time, above them those that a program
    allocates, which share bytes where no epoch uses both (NETLIST 3.6, V154).

    Room is reserved before addresses are given: `static` bytes, and `live` ones by epoch, `most` in any.
    Addresses: `end` of the static queues, and what is `taken` above, in order.
    """

    capacity: int
    static: int = DRAM_RESERVED
    live: dict[int, int] = field(default_factory=dict[int, int])
    most: int = 0
    end: int = DRAM_RESERVED
    taken: list[Allocation] = field(default_factory=list[Allocation])

    def reserved_bytes(self, life: Life = None) -> int:
        """Return the reserved bytes, the most in any of the epochs of `life`; None stands for all the time."""
        if life is None:
            return self.static + self.most
        return self.static + max((self.live.get(epoch, 0) for epoch in range(life[0], life[1] + 1)), default=0)

    def reserve(self, size: int, life: Life) -> None:
        """Count bytes that will be given an address later; `life`: the first and last epoch that uses them, None for
        all the time."""
        if life is None:
            self.static += size
        else:
            for epoch in range(life[0], life[1] + 1):
                self.live[epoch] = self.live.get(epoch, 0) + size
                self.most = max(self.most, self.live[epoch])

    def allocate(self, size: int, life: Life) -> int | None:
        """Allocate bytes at the lowest address that is free in all epochs of `life` (None: always), and return it; None
        where there is no room."""
        if life is None:
            at = max((allocation.end for allocation in self.taken), default=self.end)
        else:
            at = self.end
            (first, last) = life
            for start, end, (begun, done) in self.taken:
                if begun <= last and first <= done:  # an epoch uses both
                    if at + size <= start:
                        break
                    at = max(at, end)
        if at + size > self.capacity:
            return None
        self.keep(at, size, life)
        return at

    def keep(self, at: int, size: int, life: Life) -> None:
        """Mark the bytes at an address as used by a queue in the epochs of `life`, None for all the time."""
        if life is None:
            self.end = max(self.end, at + size)
        else:
            insort(self.taken, Allocation(at, at + size, life))


class Memory:
    """The DRAM of all chips, and the host's memory.

    A buffer goes to the channel that moves least in the phases in which its queue moves something, and of equal ones to
    the first that is no fuller. Outputs of a single chip go to the host."""

    def __init__(self, target: Target, *, balances: bool = True) -> None:
        """Make empty memories. `balances`: whether buffers are moved once all epochs are known."""
        self._target = target
        self._balances = balances
        self._channels: dict[int, list[Channel]] = {}
        self._moved: dict[tuple[int, Phase], list[float]] = {}
        self._host = 0

    @staticmethod
    def of(placement: Placement) -> "Memory":
        """Return the DRAM as the queues of a placement fill it."""
        memory = Memory(placement.target)
        for queue in placement.queues.values():
            size = buffer_bytes(placement.target, queue)
            if queue.loc != "dram" or queue.alias:
                continue
            for number, address in queue.addresses:
                channel = memory._chip_channels(queue.chip)[number]
                channel.reserve(size, queue.life)
                channel.keep(address, size, queue.life)
        return memory

    def add(
        self,
        placement: Placement,
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]] | None = None,
        channels: Mapping[str, list[int]] | None = None,
    ) -> None:
        """Give the queues of a placement their addresses; the first ones choose their channels first.

        `moved` are the bytes that each queue moves for one input in each phase, `due` the deadlines where epochs take a
        single input. Queues listed in `channels` stay in these; what they move in a phase without a deadline is
        ignored. Raises MemoryFullError."""
        queues = [placement.queues[name] for name in moved]
        if due:
            chosen = self._channels_in_time(queues, moved, due, channels or {})
        else:
            chosen = self._least_busy(queues, moved, channels or {})
        static = [queue for queue in queues if queue.life is None]
        allocated = [queue for queue in queues if queue.life is not None]
        allocated.sort(key=lambda queue: -buffer_bytes(self._target, queue))  # what is large finds no gap later
        for queue in (*static, *allocated):
            places = tuple(self._place(queue, number, queues) for number in chosen[queue.name])
            placement.queues[queue.name] = replace(queue, addresses=places)

    def _chip_channels(self, chip: int) -> list[Channel]:
        """Return the channels of a chip."""
        arch = self._target.arch
        if chip not in self._channels:
            self._channels[chip] = [Channel(arch.dram_channel_bytes) for _ in range(arch.dram_channels)]
        return self._channels[chip]

    def _busy(self, chip: int, phase: Phase) -> list[float]:
        """Return the bytes that each channel of a chip moves for one input in a phase."""
        return self._moved.setdefault((chip, phase), [0.0] * self._target.arch.dram_channels)

    def _least_busy(
        self, queues: Sequence[Queue], moved: Mapping[str, Mapping[Phase, float]], fixed: Mapping[str, list[int]]
    ) -> dict[str, list[int]]:
        """Return the channel of each buffer of each queue: the one that moves least. `moved`: the bytes of each queue
        in each phase. Queues in `fixed` keep their channels, and are counted first."""
        for queue in queues:
            for number in fixed.get(queue.name, ()):
                self._chip_channels(queue.chip)[number].reserve(buffer_bytes(self._target, queue), queue.life)
                for phase, total in moved[queue.name].items():
                    self._busy(queue.chip, phase)[number] += total / len(fixed[queue.name])
        return {
            queue.name: fixed.get(queue.name) or self._choose_channels(queue, moved[queue.name], queues)
            for queue in queues
        }

    def _choose_channels(self, queue: Queue, moved: Mapping[Phase, float], queues: Iterable[Queue]) -> list[int]:
        """Return the channel of each buffer of a queue: the one that moves least, in the busiest of the phases in which
        the queue moves anything (`moved`). `queues`: all that are placed, for the error."""
        buffers = prod(queue.blocks.grid)
        if queue.loc == "host":
            return [0] * buffers
        busy = [(self._busy(queue.chip, phase), total / buffers) for phase, total in moved.items()]
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
        """Reserve `size` bytes for one buffer and return its channel: of those that have room the one with the least
        weight, of equal ones the first that is no fuller. Raises MemoryFullError, which lists the largest of
        `queues`."""
        channels = self._chip_channels(queue.chip)
        life = queue.life
        room = [
            (weights[number], channel.reserved_bytes() * SHARES // channel.capacity, number)
            for number, channel in enumerate(channels)
            if channel.reserved_bytes(life) + size <= channel.capacity
        ]
        if not room:
            raise self._memory_full_error(queue, queues)
        *_, number = min(room)
        channels[number].reserve(size, life)
        return number

    def _channels_in_time(
        self,
        queues: Sequence[Queue],
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]],
        fixed: Mapping[str, list[int]],
    ) -> dict[str, list[int]]:
        """Return the channel of each buffer of each queue by the deadlines `due`. Queues in `fixed` keep their
        channels; the others get those of `channels_in_time` for the first phase that moves them (`moved`)."""
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
                    self._reserve_channel_first(queue, number, queues) for number in chosen[queue.name]
                ]
        return chosen

    def _reserve_channel_first(self, queue: Queue, first: int, queues: Iterable[Queue]) -> int:
        """Reserve one buffer in the channel `first`, or in another one if it has no room. Raises MemoryFullError, which
        lists the largest of `queues`."""
        weights = [float(number != first) for number in range(self._target.arch.dram_channels)]
        return self._reserve_channel(queue, buffer_bytes(self._target, queue), queues, weights)

    def _place(self, queue: Queue, number: int, queues: Iterable[Queue]) -> tuple[int, int]:
        """Return the channel and the address of one buffer: in channel `number`, or in another one where the free
        memory of that channel is too scattered. Raises MemoryFullError."""
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
        """Build the error that lists the queues which take the room."""
        arch = self._target.arch
        chip_queues = [
            other_queue for other_queue in queues if other_queue.chip == queue.chip and other_queue.loc == "dram"
        ]
        room = (arch.dram_channel_bytes - DRAM_RESERVED) * arch.dram_channels // MIB
        lines = [f"compile: {queue.name}: the DRAM of one {arch.name} is full ({room} MiB for queues). They take:"]
        lines += _by_role(self._target, chip_queues)
        lines.append("a smaller microbatch, a narrower format or more chips take less of one chip's DRAM")
        return MemoryFullError("\n  ".join(lines))


@dataclass(slots=True)
class _TimedChannels:
    """The channels that the queues of epochs of a single input get by the time at which their data is due.

    `moved`, `due` and `fixed` are those of `Memory.add`; `chosen` receives the channels of each queue; `loads` are
    those of the channels of each chip in each phase."""

    target: Target
    moved: Mapping[str, Mapping[Phase, float]]
    due: Mapping[str, Mapping[Phase, Due]]
    fixed: Mapping[str, list[int]]
    chosen: dict[str, list[int]]
    loads: dict[tuple[int, Phase], list[ChannelLoad]] = field(
        default_factory=dict[tuple[int, Phase], list[ChannelLoad]]
    )

    def _cycles(self, queue: Queue, phase: Phase, buffers: int) -> float:
        """Return the cycles for which one of the `buffers` of a queue keeps its channel busy in a phase."""
        rate = speeds(self.target.chip).dram / self.target.arch.dram_channels
        return self.moved[queue.name][phase] / rate / buffers

    def _loads(self, chip: int, phase: Phase) -> list[ChannelLoad]:
        """Return the loads of the channels of a chip in a phase."""
        return self.loads.setdefault((chip, phase), [ChannelLoad()] * self.target.arch.dram_channels)

    def choose(self, queues: Sequence[Queue], phase: Phase, chip: int) -> None:
        """Choose the channels of the queues of a chip that a phase is the first to use."""
        transfers: list[Transfer] = []
        for queue in queues:
            if queue.name not in self.fixed:
                buffers = prod(queue.blocks.grid)
                due = self.due[queue.name][phase]
                transfers.append(Transfer(due, self._cycles(queue, phase, buffers), buffers))
        free_channels: Iterator[tuple[int, ...]] = iter(())
        if transfers:
            free_channels = iter(channels_in_time(tuple(transfers), tuple(self._loads(chip, phase))))
        for queue in queues:
            numbers = self.fixed.get(queue.name) or [*next(free_channels)]
            self.chosen[queue.name] = numbers
            for other, due in self.due[queue.name].items():
                loads = self._loads(chip, other)
                cycles = self._cycles(queue, other, len(numbers))
                for number in numbers:
                    loads[number] = loads[number].also(due, cycles)

    def balance(self, queues: Sequence[Queue]) -> None:
        """Move and exchange the buffers of queues so that all phases together wait less."""
        numbers: dict[tuple[int, Phase], int] = {}
        uses: list[QueueUses] = []
        for queue in queues:
            channels = self.chosen[queue.name]
            phase_uses = tuple(
                PhaseUse(
                    phase=numbers.setdefault((queue.chip, phase), len(numbers)),
                    cycles=self._cycles(queue, phase, len(channels)),
                    due=due,
                )
                for phase, due in self.due[queue.name].items()
            )
            uses.append(QueueUses(phase_uses, tuple(channels), queue.name in self.fixed))
        balanced = balance_channels(tuple(uses), self.target.arch.dram_channels)
        for queue, channels in zip(queues, balanced, strict=True):
            self.chosen[queue.name] = [*channels]


_ROLES = {
    "input": "inputs", "output": "outputs", "constant": "constants", "state": "states",
    "between": "between epochs", "fork": "beside long branches",
}  # fmt: skip


def _by_role(target: Target, queues: Sequence[Queue]) -> Iterator[str]:
    """Yield a line with the bytes of all queues of each role, then one for each of the largest queues, for the
    error."""
    sizes = {queue.name: buffer_bytes(target, queue) * prod(queue.blocks.grid) for queue in queues}
    for role, label in _ROLES.items():
        total = [sizes[queue.name] for queue in queues if queue.role == role]
        if total:
            shared = ""
            if any(other_queue.life for other_queue in queues if other_queue.role == role):
                shared = ", not all at one time"
            yield f"{label}: {sum(total) / MIB:.1f} MiB in {plural(len(total), 'queue')}{shared}"
    for queue in sorted(queues, key=lambda queue: -sizes[queue.name])[:LARGEST]:
        if queue.life:
            epochs = f", epochs {queue.life[0]} to {queue.life[1]}"
        else:
            epochs = ""
        yield f"{queue.name}: {sizes[queue.name] / MIB:.1f} MiB, {plural(queue.entries, 'entry')}{epochs}"
