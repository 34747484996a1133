"""Other DRAM channels for queues: the streams of a channel share it, so a full channel slows down all its readers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from buda_emu.advice.edits import Edit, Proposal
from buda_emu.advice.moves.memory import Channels, may_move
from buda_emu.advice.moves.move import Move, Situation
from buda_emu.netlist.model import Queue
from buda_emu.timing.transfers.flows import channel_name, channel_of

_QUEUES: Final = 8  # of a channel that are tried alone, the largest streams first
_BUFFERS: Final = 64  # that are moved together at most
_ENOUGH: Final = 0.02  # of the fullest channel: what is less is not worth another buffer


@dataclass(frozen=True, slots=True)
class _Loads:
    """Bytes of an input: of each buffer that moves some, and of each channel of one chip."""

    buffers: Mapping[tuple[str, int], float]  # queue, place of the buffer in its list
    channels: tuple[float, ...]


def _proposals(here: Situation) -> Iterator[Proposal]:
    place = channel_of(here.target.name) if here.target.kind == "memory" else None
    if place is None or place[0] >= here.evaluator.chip.dram_channels:
        return
    channel, chip = place
    loads = _loads(here, chip)
    yield from _together(here, loads, chip)
    yield from _alone(here, loads, channel, chip)


def _alone(here: Situation, loads: _Loads, channel: int, chip: int) -> Iterator[Proposal]:
    """What a queue has in this channel, in the emptiest one."""
    netlist, total = here.variant.netlist, loads.channels
    sizes: dict[str, float] = {}
    for (name, number), size in loads.buffers.items():
        if netlist.queues[name].buffers[number].channel == channel:
            sizes[name] = sizes.get(name, 0.0) + size
    least = min(range(len(total)), key=lambda number: (total[number], number))
    for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:_QUEUES]:
        queue = netlist.queues[name]
        if least == channel or total[least] + size >= total[channel] or not may_move(here.variant, queue):
            continue
        moves = {(name, number): least for number, buffer in enumerate(queue.buffers) if buffer.channel == channel}
        sentence = f"{name} in {channel_name(least, chip)} instead of {channel}"
        gain = total[channel] - max(total[least] + size, total[channel] - size)
        yield Proposal("channel", name, sentence, tuple(_edits(here, moves, chip)), gain=gain)


def _together(here: Situation, loads: _Loads, chip: int) -> Iterator[Proposal]:
    """Buffers out of the fullest channels into the emptiest ones until all carry about as much: of queues that no
    other epoch touches, or of all."""
    seen: set[tuple[Edit, ...]] = set()
    for own in (True, False):
        moves, after = _balanced(here, loads, own)
        edits = tuple(_edits(here, moves, chip))
        names = list(dict.fromkeys(edit.name for edit in edits))
        if len(names) < 2 or edits in seen:  # a single one is proposed alone
            continue
        seen.add(edits)
        more = "one more queue" if len(names) == 2 else f"{len(names) - 1} more queues"
        sentence = f"{names[0]} and {more} in other DRAM channels: all carry about as much"
        yield Proposal("channel", names[0], sentence, edits, gain=max(loads.channels) - max(after))


def _balanced(here: Situation, loads: _Loads, own: bool) -> tuple[dict[tuple[str, int], int], list[float]]:
    """Buffers with their new channels, and what the channels carry then. `own`: of queues of this epoch alone."""
    netlist = here.variant.netlist
    at = {key: netlist.queues[key[0]].buffers[key[1]].channel for key in loads.buffers}
    free = {
        name
        for name in dict.fromkeys(name for name, _ in loads.buffers)
        if may_move(here.variant, netlist.queues[name]) and not (own and len(here.evaluator.epochs_of(name)) > 1)
    }
    total, moves = list(loads.channels), dict[tuple[str, int], int]()
    for _ in range(_BUFFERS):
        best: tuple[float, tuple[str, int], int] | None = None
        full = max(range(len(total)), key=lambda number: (total[number], -number))
        least = min(range(len(total)), key=lambda number: (total[number], number))
        for key, size in loads.buffers.items():
            if key[0] in free and at[key] == full:
                after = max(total[full] - size, total[least] + size)
                if best is None or after < best[0]:
                    best = after, key, least
        if best is None or best[0] > total[full] * (1 - _ENOUGH):
            break
        _, key, least = best
        total[full] -= loads.buffers[key]
        total[least] += loads.buffers[key]
        at[key] = moves[key] = least
    return moves, total


def _loads(here: Situation, chip: int) -> _Loads:
    """What every buffer moves for an input; what is loaded once counts, too."""
    buffers: dict[tuple[str, int], float] = {}
    channels = [0.0] * here.evaluator.chip.dram_channels
    for edge in here.report.edges:
        if edge.memory != "dram" or edge.chip != chip:
            continue
        name = edge.source if edge.operand >= 0 else edge.target
        own = here.variant.netlist.queues[name].buffers
        size = sum(edge.memory_bytes.values()) / max(len(own), 1)
        for number, buffer in enumerate(own):
            buffers[name, number] = buffers.get((name, number), 0.0) + size
            if buffer.channel < len(channels):
                channels[buffer.channel] += size
    return _Loads(buffers, tuple(channels))


def _edits(here: Situation, moves: Mapping[tuple[str, int], int], chip: int) -> Iterator[Edit]:
    """The lists of the queues, whose buffers get room after all others of their new channels."""
    room = Channels(here.variant, chip, here.evaluator.chip.dram_channels)
    for name in dict.fromkeys(name for name, _ in moves):
        queue: Queue = here.variant.netlist.queues[name]
        buffers = tuple(
            room.place(queue, moves[name, number])
            if moves.get((name, number), buffer.channel) != buffer.channel
            else replace(buffer)
            for number, buffer in enumerate(queue.buffers)
        )
        if buffers != queue.buffers:
            yield Edit("queue", name, ("dram",), buffers)


MOVE: Final = Move(
    "channel", "dram of queues", "a DRAM channel, of any chip, that moves more bytes than another one of its chip",
    lossy=False, proposals=_proposals,
)  # fmt: skip
