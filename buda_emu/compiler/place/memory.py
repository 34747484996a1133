"""Addresses of queues: in the DRAM channels that move least, in the host's memory."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from buda_emu.compiler.place.cost import DRAM_BASE
from buda_emu.compiler.place.placement import Placement, Queue
from buda_emu.compiler.place.traffic import Phase
from buda_emu.compiler.target import Target
from buda_emu.errors import UnsupportedError
from buda_emu.spec.formats import tile_bytes

HOST_WINDOW = 0x20000000


class MemoryFullError(UnsupportedError):
    """Queues of so many inputs do not fit."""


def buffer_bytes(target: Target, queue: Queue) -> int:
    """Of one of the buffers of a queue, all its entries."""
    align, blocks = target.arch.alignment, queue.blocks
    tiles = blocks.t * prod(blocks.mblock) * prod(blocks.ublock)
    tilized = queue.layout == "tilized" and queue.role != "output"
    size = tiles * tile_bytes(queue.df, 32, 32, align, header=tilized) * queue.entries + align
    return -(-size // align) * align


class Memory:
    """A buffer goes to the channel that moves least while its queue moves something; of equal ones, to that with the
    fewest bytes. Outputs of a single chip go to the host."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._next: dict[int, list[int]] = {}
        self._moved: dict[tuple[int, Phase], list[float]] = {}
        self._host = 0

    @staticmethod
    def behind(found: Placement) -> "Memory":
        """The DRAM behind all queues of a placement."""
        memory = Memory(found.target)
        for queue in found.queues.values():
            used, size = memory._used(queue.chip), buffer_bytes(found.target, queue)
            for channel, address in queue.addresses if queue.loc == "dram" else ():
                used[channel] = max(used[channel], address + size)
        return memory

    def _used(self, chip: int) -> list[int]:
        """Where each channel of a chip is free."""
        return self._next.setdefault(chip, [DRAM_BASE] * self._target.arch.dram_channels)

    def _busy(self, chip: int, phase: Phase) -> list[float]:
        """Bytes that each channel of a chip moves for one input."""
        return self._moved.setdefault((chip, phase), [0.0] * self._target.arch.dram_channels)

    def add(self, found: Placement, queue: Queue, moved: Mapping[Phase, float] | None = None) -> None:
        """Give a queue its addresses. `moved`: bytes that it moves for one input in each phase. Raises MemoryFullError
        when memory is full."""
        buffers = prod(queue.blocks.grid)
        each = {phase: size / buffers for phase, size in (moved or {}).items()}
        places = [self._place(queue, each) for _ in range(buffers)]
        found.queues[queue.name] = replace(queue, addresses=tuple(places))

    def _place(self, queue: Queue, moved: Mapping[Phase, float]) -> tuple[int, int]:
        """Of one buffer."""
        size = buffer_bytes(self._target, queue)
        if queue.loc == "host":
            at, self._host = self._host, self._host + size
            if self._host > HOST_WINDOW:
                raise MemoryFullError(f"compile: outputs of more than {HOST_WINDOW >> 20} MiB")
            return 0, at
        used = self._used(queue.chip)
        busy = {phase: self._busy(queue.chip, phase) for phase in moved}
        room = [n for n, at in enumerate(used) if at + size <= self._target.arch.dram_channel_bytes]
        if not room:
            raise MemoryFullError(f"compile: {queue.name}: the DRAM of one {self._target.arch.name} is full")
        channel = min(room, key=lambda n: (max((own[n] for own in busy.values()), default=0.0), used[n], n))
        for phase, own in busy.items():
            own[channel] += moved[phase]
        at = used[channel]
        used[channel] = at + size
        return channel, at
