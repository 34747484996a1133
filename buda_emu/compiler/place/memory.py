"""Addresses of queues: in the DRAM channels that move least, in the host's memory."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

from buda_emu.compiler.place.channels import Due, Moved, Phase, Queued, Shared, Use, channels_in_time, evened
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.placement import Placement, Queue
from buda_emu.compiler.target import Target
from buda_emu.spec.archs import DRAM_RESERVED
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import UnsupportedError

HOST_WINDOW = 0x20000000
MIB = 1 << 20
SHARES = 16
"""Of a channel's capacity: a channel whose bytes fill more of them is fuller than another."""
LARGEST = 6
"""Queues that a refusal names."""
Life = tuple[int, int] | None
"""The first and the last epoch that use a queue; None: it is there all the time."""


class MemoryFullError(UnsupportedError):
    """Queues of so many inputs do not fit."""


def buffer_bytes(target: Target, queue: Queue) -> int:
    """Of one of the buffers of a queue, all its entries."""
    align = target.arch.alignment
    blocks = queue.blocks
    tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
    tilized = queue.layout == "tilized" and queue.role != "output"
    size = tiles * tile_bytes(queue.df, 32, 32, align, header=tilized) * queue.entries + align
    return -(-size // align) * align


class Taken(NamedTuple):
    """Bytes of a channel, and the epochs that use them."""

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
    taken: list[Taken] = field(default_factory=list[Taken])

    def used(self, life: Life = None) -> int:
        """Bytes reserved, at most in any of these epochs."""
        if life is None:
            return self.static + self.most
        return self.static + max((self.live.get(epoch, 0) for epoch in range(life[0], life[1] + 1)), default=0)

    def reserve(self, size: int, life: Life) -> None:
        """Count bytes that will be given an address."""
        if life is None:
            self.static += size
        else:
            for epoch in range(life[0], life[1] + 1):
                self.live[epoch] = self.live.get(epoch, 0) + size
                self.most = max(self.most, self.live[epoch])

    def give(self, size: int, life: Life) -> int | None:
        """An address, the lowest; None where there is none."""
        if life is None:
            at = max((one.end for one in self.taken), default=self.end)
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
        """Bytes that a queue has."""
        if life is None:
            self.end = max(self.end, at + size)
        else:
            insort(self.taken, Taken(at, at + size, life))


class Memory:
    """A buffer goes to the channel that moves least while its queue moves something; of equal ones, to the first
    that is no fuller. Outputs of a single chip go to the host."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._channels: dict[int, list[Channel]] = {}
        self._moved: dict[tuple[int, Phase], list[float]] = {}
        self._host = 0

    @staticmethod
    def of(found: Placement) -> "Memory":
        """The DRAM as the queues of a placement fill it."""
        memory = Memory(found.target)
        for queue in found.queues.values():
            size = buffer_bytes(found.target, queue)
            for number, address in queue.addresses if queue.loc == "dram" and not queue.alias else ():
                channel = memory._of(queue.chip)[number]
                channel.reserve(size, queue.life)
                channel.keep(address, size, queue.life)
        return memory

    def add(
        self,
        found: Placement,
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]] | None = None,
        channels: Mapping[str, list[int]] | None = None,
    ) -> None:
        """Give queues of a placement their addresses; the first choose their channels first. `moved`: bytes that each
        moves for one input in each phase; `due`: when, where epochs take a single input. Queues that have `channels`
        keep them; what they move when nothing is due is not looked at. Raises MemoryFullError when memory is full."""
        queues = [found.queues[name] for name in moved]
        chosen = (
            self._in_time(queues, moved, due, channels or {})
            if due
            else self._least_busy(queues, moved, channels or {})
        )
        static = [queue for queue in queues if queue.life is None]
        allocated = [queue for queue in queues if queue.life is not None]
        allocated.sort(key=lambda queue: -buffer_bytes(self._target, queue))  # what is large finds no gap later
        for queue in (*static, *allocated):
            places = tuple(self._place(queue, number, queues) for number in chosen[queue.name])
            found.queues[queue.name] = replace(queue, addresses=places)

    def _of(self, chip: int) -> list[Channel]:
        """The channels of a chip."""
        arch = self._target.arch
        if chip not in self._channels:
            self._channels[chip] = [Channel(arch.dram_channel_bytes) for _ in range(arch.dram_channels)]
        return self._channels[chip]

    def _busy(self, chip: int, phase: Phase) -> list[float]:
        """Bytes that each channel of a chip moves for one input."""
        return self._moved.setdefault((chip, phase), [0.0] * self._target.arch.dram_channels)

    def _least_busy(
        self, queues: Sequence[Queue], moved: Mapping[str, Mapping[Phase, float]], known: Mapping[str, list[int]]
    ) -> dict[str, list[int]]:
        """The channel of each buffer of each queue, those first that are `known`."""
        for queue in queues:
            for number in known.get(queue.name, ()):
                self._of(queue.chip)[number].reserve(buffer_bytes(self._target, queue), queue.life)
                for phase, total in moved[queue.name].items():
                    self._busy(queue.chip, phase)[number] += total / len(known[queue.name])
        return {queue.name: known.get(queue.name) or self._chosen(queue, moved[queue.name], queues) for queue in queues}

    def _chosen(self, queue: Queue, moved: Mapping[Phase, float], queues: Iterable[Queue]) -> list[int]:
        """The channel of each buffer: that which moves least in all phases in which it moves anything."""
        buffers = prod(queue.blocks.grid)
        if queue.loc == "host":
            return [0] * buffers
        busy = [(self._busy(queue.chip, phase), total / buffers) for phase, total in moved.items()]
        weights = [max(own) for own in zip(*(own for own, _ in busy), strict=True)] or [
            0.0
        ] * self._target.arch.dram_channels
        size = buffer_bytes(self._target, queue)
        chosen: list[int] = []
        for _ in range(buffers):
            number = self._reserved(queue, size, queues, weights)
            for own, share in busy:
                own[number] += share
                weights[number] = max(weights[number], own[number])
            chosen.append(number)
        return chosen

    def _reserved(self, queue: Queue, size: int, queues: Iterable[Queue], weights: Sequence[float]) -> int:
        """The channel of one buffer of so many bytes, of those that have room the one of the least weight, of equal
        ones the first that is no fuller. Raises MemoryFullError."""
        channels = self._of(queue.chip)
        life = queue.life
        room = [
            (weights[number], one.used() * SHARES // one.capacity, number)
            for number, one in enumerate(channels)
            if one.used(life) + size <= one.capacity
        ]
        if not room:
            raise self._full(queue, queues)
        *_, number = min(room)
        channels[number].reserve(size, life)
        return number

    def _in_time(
        self,
        queues: Sequence[Queue],
        moved: Mapping[str, Mapping[Phase, float]],
        due: Mapping[str, Mapping[Phase, Due]],
        known: Mapping[str, list[int]],
    ) -> dict[str, list[int]]:
        """The channel of each buffer of each queue, where it is not `known`, as `channels_in_time` says for the first
        phase that moves it."""
        channels = self._target.arch.dram_channels
        rate = speeds(self._target.chip).dram / channels
        shared: dict[tuple[int, Phase], list[Shared]] = {}
        chosen: dict[str, list[int]] = {}
        groups: dict[tuple[Phase, int], list[Queue]] = {}
        for queue in queues:
            if queue.loc == "host" or not moved[queue.name]:
                chosen[queue.name] = self._chosen(queue, {}, queues)
            else:
                first = min(moved[queue.name], key=lambda phase: (phase.epoch, not phase.once))
                groups.setdefault((first, queue.chip), []).append(queue)
        for phase, chip in sorted(groups, key=lambda key: (key[0].epoch, not key[0].once, key[1])):
            own = groups[phase, chip]
            given = [queue for queue in own if queue.name not in known]
            items = [
                Moved(
                    due[queue.name][phase],
                    moved[queue.name][phase] / rate / prod(queue.blocks.grid),
                    prod(queue.blocks.grid),
                )
                for queue in given
            ]
            used = shared.setdefault((chip, phase), [Shared()] * channels)
            wished = iter(channels_in_time(tuple(items), tuple(used)) if given else ())
            for queue in own:
                chosen[queue.name] = known.get(queue.name) or [*next(wished)]
                for other, when in due[queue.name].items():
                    row = shared.setdefault((chip, other), [Shared()] * channels)
                    for number in chosen[queue.name]:
                        cycles = moved[queue.name][other] / rate / len(chosen[queue.name])
                        row[number] = row[number].also(when, cycles)
        later = [
            queue for group in groups.values() for queue in group if not any(phase.once for phase in due[queue.name])
        ]
        numbers: dict[tuple[int, Phase], int] = {}
        queued = [
            Queued(
                tuple(
                    Use(
                        numbers.setdefault((queue.chip, phase), len(numbers)),
                        moved[queue.name][phase] / rate / len(chosen[queue.name]),
                        when,
                    )
                    for phase, when in due[queue.name].items()
                ),
                tuple(chosen[queue.name]),
                queue.name in known,
            )
            for queue in later
        ]
        moved_to = evened(tuple(queued), channels)
        chosen |= {queue.name: [*own] for queue, own in zip(later, moved_to, strict=True)}
        for group in groups.values():
            for queue in group:
                if queue.name not in known:
                    size = buffer_bytes(self._target, queue)
                    chosen[queue.name] = [
                        self._reserved(queue, size, queues, [float(n != one) for n in range(channels)])
                        for one in chosen[queue.name]
                    ]
        return chosen

    def _place(self, queue: Queue, number: int, queues: Iterable[Queue]) -> tuple[int, int]:
        """Of one buffer: in the channel chosen, or where that is too scattered, in another."""
        size = buffer_bytes(self._target, queue)
        if queue.loc == "host":
            at = self._host
            self._host = self._host + size
            if self._host > HOST_WINDOW:
                raise MemoryFullError(f"compile: outputs of more than {HOST_WINDOW // MIB} MiB")
            return 0, at
        channels = self._of(queue.chip)
        at = channels[number].give(size, queue.life)
        if at is not None:
            return number, at
        for other in sorted(range(len(channels)), key=lambda n: channels[n].used(queue.life)):
            at = channels[other].give(size, queue.life)
            if at is not None:
                return other, at
        raise self._full(queue, queues)

    def _full(self, queue: Queue, queues: Iterable[Queue]) -> MemoryFullError:
        """What takes the room."""
        arch = self._target.arch
        mine = [one for one in queues if one.chip == queue.chip and one.loc == "dram"]
        room = (arch.dram_channel_bytes - DRAM_RESERVED) * arch.dram_channels // MIB
        lines = [f"compile: {queue.name}: the DRAM of one {arch.name} is full ({room} MiB for queues). They take:"]
        lines += _by_role(self._target, mine)
        lines.append("a smaller microbatch, a narrower format or more chips take less of one chip's DRAM")
        return MemoryFullError("\n  ".join(lines))


_ROLES = {
    "input": "inputs", "output": "outputs", "constant": "constants", "state": "states",
    "between": "between epochs", "fork": "beside long branches",
}  # fmt: skip


def _by_role(target: Target, queues: Sequence[Queue]) -> Iterator[str]:
    """Bytes of all queues of each role, then the largest queues."""
    sizes = {queue.name: buffer_bytes(target, queue) * prod(queue.blocks.grid) for queue in queues}
    for role, what in _ROLES.items():
        total = [sizes[queue.name] for queue in queues if queue.role == role]
        if total:
            shared = ", not all at one time" if any(one.life for one in queues if one.role == role) else ""
            yield f"{what}: {sum(total) / MIB:.1f} MiB in {plural(len(total), 'queue')}{shared}"
    for queue in sorted(queues, key=lambda queue: -sizes[queue.name])[:LARGEST]:
        epochs = f", epochs {queue.life[0]} to {queue.life[1]}" if queue.life else ""
        yield f"{queue.name}: {sizes[queue.name] / MIB:.1f} MiB, {plural(queue.entries, 'entry')}{epochs}"
