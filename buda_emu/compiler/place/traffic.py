"""What DRAM moves for a queue."""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from buda_emu.compiler.lower.tiles import Use
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import shape_behind
from buda_emu.compiler.place.placement import Placed, Placement, Queue

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


def bytes_read(found: Placement, placed: Placed, use: Use) -> float:
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
    producer, tensor = found.ops.get(queue.input), _tensor(queue)
    for placed in readers.get(tensor, ()):
        elsewhere = queue.role == "constant" and found.source(tensor, placed) != queue.name
        same_epoch = producer is not None and placed.epoch == producer.epoch
        by_dram = (placed.op.name, tensor) in found.detours
        if not (elsewhere or (same_epoch and not by_dram) or (queue.role == "fork" and not same_epoch)):
            yield placed
