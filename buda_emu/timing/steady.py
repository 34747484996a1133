"""Where an epoch runs as it goes on running: a stretch of some whole inputs of the op that limits it, away from its
beginning, when the pipeline fills, and its end, when it runs empty."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from buda_emu.timing.epoch import EpochTiming

INPUTS: Final = 4
_AT_PACE: Final = 0.02  # by which a stretch may differ from the pace


@dataclass(frozen=True, slots=True)
class Steady:
    """Inputs `first` to `last` of `op`, which it works on from `start` to `end`."""

    op: str
    first: int
    last: int
    start: int
    end: int


def steady(timing: EpochTiming, op: str = "", inputs: int = INPUTS) -> Steady | None:
    """The stretch of so many inputs of an op (by default the busiest) which is at the epoch's pace and in which most
    ops are at work, the latest of these. All inputs where there are no more; None without ops."""
    if not timing.ops:
        return None
    item = next((item for item in timing.ops if item.op == op), None) or max(timing.ops, key=lambda item: item.active)
    begins, ends = input_times(timing, item.op)
    count = min(inputs, timing.modelled)

    def worth(first: int) -> tuple[bool, int, int]:
        start, end = begins[first], ends[first + count - 1]
        if first == 0:
            at_pace = False
        else:
            at_pace = abs((end - ends[first - 1]) / count - timing.pace) <= _AT_PACE * timing.pace
        return at_pace, sum(other.first_start <= start and other.last_end >= end for other in timing.ops), first

    first = max(range(timing.modelled - count + 1), key=worth)
    return Steady(item.op, first, first + count - 1, begins[first], ends[first + count - 1])


def input_times(timing: EpochTiming, op: str) -> tuple[list[int], list[int]]:
    """When an op begins and ends with each modelled input."""
    result = timing.timing
    tasks = np.flatnonzero(result.unit == result.units.index(op)).reshape(timing.modelled, -1)
    return result.start[tasks[:, 0]].tolist(), result.end[tasks[:, -1]].tolist()
