"""The steady state of an epoch: an interval of some complete inputs of the op that limits it, away from the beginning,
when the pipeline fills, and from the end, when it drains.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from buda_emu.checker.text import plural
from buda_emu.timing.epoch.pipeline import MOST_INPUTS
from buda_emu.timing.epoch.result import EpochTiming

INPUTS: Final = 4
_AT_PACE: Final = 0.02  # by which a stretch may differ from the pace


@dataclass(frozen=True, slots=True)
class Steady:
    """Inputs `first` to `last` of `op`, which it works on from `start` to `end`; `working`: ops that are at work on
    inputs all that time, the limiting one among them."""

    op: str
    first: int
    last: int
    start: int
    end: int
    working: int


def filled(timing: EpochTiming, op: str = "", most_tasks: int | None = None) -> EpochTiming:
    """The epoch with as many inputs modelled as it takes until all its ops are at work at once; with all of them,
    MOST_INPUTS, or as many as `most_tasks` allow, where they are not by then."""
    most = min(timing.inputs, MOST_INPUTS)
    if most_tasks is not None:
        most = min(most, most_tasks * timing.modelled // max(len(timing.timing.start), 1))
    while timing.modelled < most:
        stretch = steady(timing, op)
        if stretch is None or stretch.working == len(timing.ops):
            break
        timing = timing.again(min(2 * timing.modelled, most))
    return timing


def steady(timing: EpochTiming, op: str = "", inputs: int = INPUTS) -> Steady | None:
    """The stretch of so many inputs of an op (by default the busiest) which is at the epoch's pace and in which most
    ops are at work, the latest of these. All inputs where there are no more; None without ops."""
    if not timing.ops:
        return None
    item = next((item for item in timing.ops if item.op == op), None) or max(timing.ops, key=lambda item: item.active)
    begins, ends = input_times(timing, item.op)
    count = min(inputs, timing.modelled)

    def working(first: int) -> int:
        start, end = begins[first], ends[first + count - 1]
        return sum(other.first_start <= start and other.last_end >= end for other in timing.ops)

    def worth(first: int) -> tuple[bool, int, int]:
        at_pace = False
        if first > 0:
            at_pace = abs((ends[first + count - 1] - ends[first - 1]) / count - timing.pace) <= _AT_PACE * timing.pace
        return at_pace, working(first), first

    first = max(range(timing.modelled - count + 1), key=worth)
    return Steady(item.op, first, first + count - 1, begins[first], ends[first + count - 1], working(first))


def at_work(timing: EpochTiming, stretch: Steady) -> str:
    """How far the pipeline is filled in a stretch: `all 12 ops at work`."""
    if stretch.working == len(timing.ops):
        return f"all {plural(stretch.working, 'op')} at work" if stretch.working > 1 else "its op at work"
    return f"{stretch.working} of {len(timing.ops)} ops at work"


def input_times(timing: EpochTiming, op: str) -> tuple[list[int], list[int]]:
    """When an op begins and ends with each modelled input."""
    result = timing.timing
    tasks = np.flatnonzero(result.unit == result.units.index(op)).reshape(timing.modelled, -1)
    return result.start[tasks[:, 0]].tolist(), result.end[tasks[:, -1]].tolist()
