"""How late each DRAM transfer may be in an epoch of a single input.

The ops of an epoch are followed along their edges as if nothing had to come out of memory but what is read with the
input, at the rate of all channels: forwards for when each is done, and backwards for when it has to be done so that the
epoch takes no longer. What is loaded once is due when its reader has to begin, what is read with the input when its
reader has to begin its last part; what is written has from when it is made to the end of the epoch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from buda_emu.compiler.place.cost import op_cycles, speeds, transfer_cycles
from buda_emu.compiler.place.placement import Placed, Placement, Queue
from buda_emu.compiler.place.traffic import Phase, Readers, bytes_read, readers_of
from buda_emu.timing.epoch.parts import parts_of_blocks

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
        op, blocks, target = placed.op, placed.blocks, found.target.of(placed.op.precision)
        held = placed.held | frozenset(use.source for use in op.uses if use.source not in found.tiles.ops)
        moved = transfer_cycles(target, found.tiles, op, blocks, held)
        parts, math = parts_of_blocks(blocks.t, blocks.mblock), op_cycles(target, op, blocks)
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


def _behind(own: _Op, other: _Op) -> float:
    """The share of what another op takes after its first part that has to be done before the first part of an op that
    reads it can begin."""
    return max(1 / own.parts - 1 / other.parts, 0.0) / max(1 - 1 / other.parts, 0.5)


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
