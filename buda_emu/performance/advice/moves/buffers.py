"""Moves of buffers: more macroblocks in an op's output buffer, other DRAM channels for queues, and the allocation of
the DRAM that these need."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from buda_emu.netlist.model import Buffer, Queue
from buda_emu.netlist.sizes import align_up, buffer_bytes
from buda_emu.performance.advice.edits import Edit, Proposal
from buda_emu.performance.advice.evaluate import Variant
from buda_emu.performance.advice.moves.move import Move, Situation
from buda_emu.performance.timing.transfers.flows import channel_name, channel_of
from buda_emu.spec.archs import DRAM_RESERVED
from buda_emu.support.checker.text import plural

_MOST: Final = 64  # macroblocks of an output buffer, at most


def _propose_buffers(situation: Situation) -> Iterator[Proposal]:
    """Propose to double the output buffer of an op that waits for room in it: the target, or an end of the transfer
    that is the target."""
    if situation.target.kind == "memory":
        return
    edge = situation.edge
    if situation.target.kind == "op":
        names = [situation.target.name]
    elif edge is not None:
        names = [edge.source, edge.target]
    else:
        names = []
    waits = {
        op_timing.op: op_timing.waiting_for_room / situation.report.timing.run.inputs
        for op_timing in situation.report.timing.ops
    }
    for name in names:
        op = situation.ops.get(name)
        if op is None or not waits.get(name) or op.has("Ethernet"):
            continue
        count = 2 * max(op.buf_size_mb, 1)
        if count <= _MOST:
            sentence = f"{name} with {plural(count, 'macroblock')} in its output buffer instead of {op.buf_size_mb}"
            yield Proposal(
                "buffer", name, sentence, (Edit("op", name, ("buf_size_mb",), count),), gain=waits[name] / 10
            )


MORE_BUFFERS: Final = Move(
    "buffer", "buf_size_mb", "an op that waits for room in its output buffer", lossy=False, proposals=_propose_buffers
)


_ALIGNMENT = 64  # bytes: a multiple of what each architecture asks for


class Channels:
    """Allocates DRAM of one chip after the last queue of each channel."""

    def __init__(self, variant: Variant, chip: int, count: int) -> None:
        self._end = dict.fromkeys(range(count), DRAM_RESERVED)
        netlist = variant.netlist
        self._netlist = netlist
        self._ops = netlist.ops
        ends: dict[int, int] = {}
        for queue in netlist.queues.values():
            if queue.loc.lower() != "dram" or queue.target_device != chip:
                continue
            size = buffer_bytes(queue, netlist, self._ops)
            for buffer in queue.buffers:
                ends[buffer.channel] = max(ends.get(buffer.channel, 0), buffer.address + size)
        self._end.update(ends)

    def place(self, queue: Queue, channel: int) -> Buffer:
        """Allocate one buffer of a queue in a channel after all earlier ones, and return its channel and address."""
        address = align_up(self._end[channel], _ALIGNMENT)
        self._end[channel] = address + buffer_bytes(queue, self._netlist, self._ops)
        return Buffer(channel, address)


def may_move(variant: Variant, queue: Queue) -> bool:
    """Return whether a queue's buffers can lie elsewhere: they are in DRAM, and no other queue shares their bytes.

    Queues that share bytes see each other's values: a ram that an op writes and one that the next run reads, as in
    caches of transformers (NETLIST 1.10).
    """
    if queue.loc.lower() != "dram" or not queue.buffers or queue.alias:
        return False
    others = [
        other
        for other in variant.netlist.queues.values()
        if other is not queue and other.target_device == queue.target_device and other.loc.lower() == "dram"
    ]
    return not any(other.alias == queue.name for other in others) and not _shares_bytes(variant, queue, others)


def _shares_bytes(variant: Variant, queue: Queue, others: Iterable[Queue]) -> bool:
    """Return whether a buffer of the queue overlaps one of the other queues, which are in DRAM of the same chip."""
    netlist = variant.netlist
    ranges = _byte_ranges(queue, buffer_bytes(queue, netlist, netlist.ops))
    for other in others:
        if ranges.keys().isdisjoint(buffer.channel for buffer in other.buffers):
            continue
        if _overlap(ranges, _byte_ranges(other, buffer_bytes(other, netlist, netlist.ops))):
            return True
    return False


def _overlap(ranges: Mapping[int, list[tuple[int, int]]], others: Mapping[int, list[tuple[int, int]]]) -> bool:
    """Return whether two queues have bytes in common. Each is a map from channel to the (first byte, end) of its
    buffers."""
    for channel, other_ranges in others.items():
        for start, end in ranges.get(channel, ()):
            if any(start < other_end and other_start < end for other_start, other_end in other_ranges):
                return True
    return False


def _byte_ranges(queue: Queue, size: int) -> dict[int, list[tuple[int, int]]]:
    """Return for each channel the (first byte, end) of the queue's buffers there, each of `size` bytes."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for buffer in queue.buffers:
        ranges.setdefault(buffer.channel, []).append((buffer.address, buffer.address + size))
    return ranges


_QUEUES: Final = 8  # of a channel that are tried alone, the largest streams first
_BUFFERS: Final = 64  # that are moved together at most
_ENOUGH: Final = 0.02  # of the fullest channel: what is less is not worth another buffer


@dataclass(frozen=True, slots=True)
class _Loads:
    """Bytes that each buffer, and each channel of one chip, transfers for one input."""

    buffers: Mapping[tuple[str, int], float]  # queue, place of the buffer in its list
    channels: tuple[float, ...]


def _propose_channels(situation: Situation) -> Iterator[Proposal]:
    """Propose, for a DRAM channel that is the target, to put queues into other channels: many until all carry about as
    much, or a single one."""
    if situation.target.kind == "memory":
        place = channel_of(situation.target.name)
    else:
        place = None
    if place is None or place[0] >= situation.evaluator.chip.dram_channels:
        return
    channel, chip = place
    loads = _dram_loads(situation, chip)
    yield from _propose_balanced_channels(situation, loads, chip)
    yield from _propose_single_queues(situation, loads, channel, chip)


def _propose_single_queues(situation: Situation, loads: _Loads, channel: int, chip: int) -> Iterator[Proposal]:
    """Propose for each of the queues with the largest streams in `channel` to put its buffers into the emptiest channel
    of the same chip, if that then carries less than `channel` does now."""
    netlist = situation.variant.netlist
    total = loads.channels
    sizes: dict[str, float] = {}
    for (name, number), size in loads.buffers.items():
        if netlist.queues[name].buffers[number].channel == channel:
            sizes[name] = sizes.get(name, 0.0) + size
    least = min(range(len(total)), key=lambda number: (total[number], number))
    for name, size in sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))[:_QUEUES]:
        queue = netlist.queues[name]
        if least == channel or total[least] + size >= total[channel] or not may_move(situation.variant, queue):
            continue
        moves = {(name, number): least for number, buffer in enumerate(queue.buffers) if buffer.channel == channel}
        sentence = f"{name} in {channel_name(least, chip)} instead of {channel}"
        gain = total[channel] - max(total[least] + size, total[channel] - size)
        yield Proposal("channel", name, sentence, tuple(_queue_moves_to_edits(situation, moves, chip)), gain=gain)


def _propose_balanced_channels(situation: Situation, loads: _Loads, chip: int) -> Iterator[Proposal]:
    """Propose to move buffers out of the fullest channels into the emptiest ones until all carry about as much: first
    only queues that no other epoch touches, then any."""
    seen: set[tuple[Edit, ...]] = set()
    for this_epoch_only in (True, False):
        moves, after = _balance_channels(situation, loads, this_epoch_only)
        edits = tuple(_queue_moves_to_edits(situation, moves, chip))
        names = list(dict.fromkeys(edit.name for edit in edits))
        if len(names) < 2 or edits in seen:  # a single one is proposed alone
            continue
        seen.add(edits)
        if len(names) == 2:
            remainder = "one more queue"
        else:
            remainder = f"{len(names) - 1} more queues"
        sentence = f"{names[0]} and {remainder} in other DRAM channels: all carry about as much"
        yield Proposal("channel", names[0], sentence, edits, gain=max(loads.channels) - max(after))


def _balance_channels(
    situation: Situation, loads: _Loads, this_epoch_only: bool
) -> tuple[dict[tuple[str, int], int], list[float]]:
    """Return the channel to which each buffer (queue, number) moves so that all channels carry about as much, and the
    bytes for each input that each channel carries then. With `this_epoch_only`, only queues that no other epoch touches
    move."""
    netlist = situation.variant.netlist
    at = {key: netlist.queues[key[0]].buffers[key[1]].channel for key in loads.buffers}
    free = _free_queues(situation, loads, this_epoch_only)
    total = list(loads.channels)
    moves = dict[tuple[str, int], int]()
    for _ in range(_BUFFERS):
        full = max(range(len(total)), key=lambda number: (total[number], -number))
        least = min(range(len(total)), key=lambda number: (total[number], number))
        movable = [key for key in loads.buffers if key[0] in free and at[key] == full]
        loads_after = [max(total[full] - loads.buffers[key], total[least] + loads.buffers[key]) for key in movable]
        if not movable or min(loads_after) > total[full] * (1 - _ENOUGH):
            break
        key = movable[loads_after.index(min(loads_after))]
        total[full] -= loads.buffers[key]
        total[least] += loads.buffers[key]
        at[key] = moves[key] = least
    return moves, total


def _free_queues(situation: Situation, loads: _Loads, this_epoch_only: bool) -> set[str]:
    """Return the names of the queues in `loads` whose buffers may move; with `this_epoch_only` only those that no other
    epoch touches."""
    queues = situation.variant.netlist.queues
    names = {name for name, _ in loads.buffers}
    free = {name for name in names if may_move(situation.variant, queues[name])}
    if this_epoch_only:
        free = {name for name in free if len(situation.evaluator.epochs_of(name)) <= 1}
    return free


def _dram_loads(situation: Situation, chip: int) -> _Loads:
    """Return the bytes for one input of every buffer in DRAM of a chip and of every channel. Buffers that are read only
    once, when the epoch is loaded, count as if read for each input."""
    buffers: dict[tuple[str, int], float] = {}
    channels = [0.0] * situation.evaluator.chip.dram_channels
    for edge in situation.report.edges:
        if edge.memory != "dram" or edge.chip != chip:
            continue
        if edge.operand >= 0:
            name = edge.source
        else:
            name = edge.target
        buffers_of_queue = situation.variant.netlist.queues[name].buffers
        size = sum(edge.memory_bytes.values()) / max(len(buffers_of_queue), 1)
        for number, buffer in enumerate(buffers_of_queue):
            buffers[name, number] = buffers.get((name, number), 0.0) + size
            if buffer.channel < len(channels):
                channels[buffer.channel] += size
    return _Loads(buffers, tuple(channels))


def _queue_moves_to_edits(situation: Situation, moves: Mapping[tuple[str, int], int], chip: int) -> Iterator[Edit]:
    """Yield the edits of the queues' buffer lists. `moves` has the new channel of each buffer (queue, number); new
    buffers are allocated behind all others of their channels."""
    room = Channels(situation.variant, chip, situation.evaluator.chip.dram_channels)
    for name in dict.fromkeys(name for name, _ in moves):
        queue: Queue = situation.variant.netlist.queues[name]
        buffers = tuple(
            room.place(queue, moves[name, number])
            if moves.get((name, number), buffer.channel) != buffer.channel
            else replace(buffer)
            for number, buffer in enumerate(queue.buffers)
        )
        if buffers != queue.buffers:
            yield Edit("queue", name, ("dram",), buffers)


OTHER_CHANNELS: Final = Move(
    "channel", "dram of queues", "a DRAM channel, of any chip, that moves more bytes than another one of its chip",
    lossy=False, proposals=_propose_channels,
)  # fmt: skip
