"""How an epoch runs: ops as stages of a pipeline, buffers between them, memory channels that they share.

All cores of an op work alike, so an op is one unit. It computes an input in *parts*: its t slices, cut further where
there are few. A transfer brings each part of an input into a double buffer of the consumer as soon as the producer has
made what it is cut from; the producer's output buffer (buf_size_mb macroblocks) is free again when every consumer has
taken its transfer. The streams of a memory channel share it, as do those of a NoC link: each input of each of them
takes as long as it needs for one input of all. So nothing ever competes for a turn, and every time is a maximum of sums
of durations: no duration that shrinks and no buffer that grows can make an epoch slower. What is not modelled:
docs/timing/perf.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS, Cost, EpochTiming
from buda_emu.performance.timing.epoch.tasks import EpochTasks, paces
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.performance.timing.transfers.rates import Rates
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import ProgramError

FIRST_INPUTS: Final = 12  # that are run in full before a steady state is looked for
MOST_INPUTS: Final = 96
_MOST_BUFFERS: Final = 1024
_STEADY: Final = 0.002  # by which two stretches of later inputs may differ


def epoch_timing(
    netlist: Netlist,
    temporal: TemporalGraph,
    edges: Sequence[tuple[Flow, Path]],
    costs: Mapping[str, Cost],
    rates: Rates,
) -> EpochTiming:
    """Model an epoch; inputs beyond those that show the steady state are extrapolated."""
    ops = [op for name in temporal.graphs for op in netlist.graphs[name].ops]
    count = max(netlist.graphs[temporal.graphs[0]].input_count, 1)

    def with_inputs(inputs: int) -> EpochTiming:
        return _with_inputs(ops, edges, costs, rates, inputs).result(temporal, count, with_inputs)

    modelled = min(count, FIRST_INPUTS)
    while True:
        model = _with_inputs(ops, edges, costs, rates, modelled)
        if modelled == count or _is_steady(model.ends) or modelled >= MOST_INPUTS:
            return model.result(temporal, count, with_inputs)
        modelled = min(count, 2 * modelled)


def _with_inputs(
    ops: Sequence[Op], edges: Sequence[tuple[Flow, Path]], costs: Mapping[str, Cost], rates: Rates, inputs: int
) -> EpochTasks:
    """So many inputs of an epoch, run. Raises ProgramError where no input buffers are large enough."""
    buffers = INPUT_BUFFERS
    while True:
        model = EpochTasks(ops=ops, edges=edges, costs=costs, rates=rates, inputs=inputs, buffers=buffers)
        try:
            model.run()
        except ProgramError:  # branches of different length that meet again: the parts are coarser than tiles
            if buffers > _MOST_BUFFERS:
                raise
            buffers *= 2
        else:
            return model


def _is_steady(ends: Sequence[int]) -> bool:
    early, late = paces(ends)
    return abs(early - late) <= _STEADY * max(late, 1.0)


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
        start = begins[first]
        end = ends[first + count - 1]
        return sum(other.first_start <= start and other.last_end >= end for other in timing.ops)

    def worth(first: int) -> tuple[bool, int, int]:
        at_pace = False
        if first > 0:
            at_pace = abs((ends[first + count - 1] - ends[first - 1]) / count - timing.pace) <= _AT_PACE * timing.pace
        return at_pace, working(first), first

    first = max(range(timing.modelled - count + 1), key=worth)
    return Steady(
        op=item.op,
        first=first,
        last=first + count - 1,
        start=begins[first],
        end=ends[first + count - 1],
        working=working(first),
    )


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
