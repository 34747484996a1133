"""Another DRAM channel for a queue: streams of a channel share it, so a full one slows everybody who reads from it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from buda_emu.advice.edits import Edit, Proposal
from buda_emu.advice.moves.memory import Channels, may_move
from buda_emu.advice.moves.move import Move, Situation
from buda_emu.netlist.model import Queue
from buda_emu.timing.flows import CHANNEL

_QUEUES: Final = 8  # of a channel that are tried, the largest streams first


def _proposals(here: Situation) -> Iterator[Proposal]:
    if here.target.kind != "memory":
        return
    channel = _channel(here.target.name)
    if channel is None:
        return
    loads = _loads(here)
    netlist, chip = here.variant.netlist, here.evaluator.chip
    queues = [(size[channel], name) for name, size in loads.items() if size.get(channel)]
    total = [sum(size.get(number, 0.0) for size in loads.values()) for number in range(chip.dram_channels)]
    for size, name in sorted(queues, key=lambda item: (-item[0], item[1]))[:_QUEUES]:
        queue = netlist.queues[name]
        least = min(range(chip.dram_channels), key=lambda number: (total[number], number))
        if least == channel or total[least] + size >= total[channel] or not may_move(here.variant, queue):
            continue
        moved = _moved(here, queue, channel, least)
        sentence = f"{name} in {CHANNEL} {least} instead of {channel}"
        gain = total[channel] - max(total[least] + size, total[channel] - size)
        yield Proposal("channel", name, sentence, (Edit("queue", name, ("dram",), moved),), gain=gain)


def _channel(name: str) -> int | None:
    word = name.partition(":")[0].removeprefix(f"{CHANNEL} ")
    return int(word) if word.isdecimal() else None


def _loads(here: Situation) -> dict[str, dict[int, float]]:
    """Queue -> channel -> bytes of an input that it moves there; what is loaded once counts, too."""
    found: dict[str, dict[int, float]] = {}
    for edge in here.report.edges:
        if edge.memory != "dram":
            continue
        own = found.setdefault(edge.source if edge.operand >= 0 else edge.target, {})
        for channel, size in edge.memory_bytes.items():
            own[channel] = own.get(channel, 0.0) + size
    return found


def _moved(here: Situation, queue: Queue, channel: int, other: int) -> tuple[object, ...]:
    room = Channels(here.variant, queue.target_device, here.evaluator.chip.dram_channels)
    return tuple(room.place(queue, other) if buffer.channel == channel else replace(buffer) for buffer in queue.buffers)


MOVE: Final = Move(
    "channel", "dram of a queue", "a DRAM channel that moves more bytes than another one",
    lossy=False, proposals=_proposals,
)  # fmt: skip
