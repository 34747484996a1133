"""The pipeline of an epoch: ops as stages, buffers between them, and memory channels that they share.

All cores of an op do the same work, so an op is one unit. It computes an input in *parts*: its t slices, cut further if
there are few. A transfer brings each part of an input into a double buffer of the consumer as soon as the producer has
computed the tiles of that part; the producer's output buffer (buf_size_mb macroblocks) is free again when every
consumer has taken its transfer. The streams of a memory channel share it, as do those of a NoC link: each input of each
of them takes as long as the channel needs for one input of all. So nothing ever competes for a turn, and every time is
a maximum of sums of durations: no duration that shrinks and no buffer that grows can make an epoch slower. What is not
modelled: docs/timing/perf.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS, Cost, EpochTiming
from buda_emu.performance.timing.epoch.tasks import FALLS_BEHIND, EpochTasks, paces
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.performance.timing.transfers.rates import Rates
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import ProgramError

FIRST_INPUTS: Final = 12  # that are run in full before a steady state is looked for
MOST_INPUTS: Final = 96  # that are modelled where the pace does not become steady: FIRST_INPUTS, doubled three times
_MOST_BUFFERS: Final = 1024  # to which input buffers are doubled until branches that meet again do not deadlock
_STEADY: Final = 0.002  # by which two stretches of later inputs may differ


def epoch_timing(
    netlist: Netlist,
    temporal: TemporalGraph,
    edges: Sequence[tuple[Flow, Path]],
    costs: Mapping[str, Cost],
    rates: Rates,
) -> EpochTiming:
    """Return the timing of an epoch. `edges` has the transfers with their ways over the chip, `costs` the cost of each
    op by name. Inputs beyond those that reach the steady state are extrapolated. Raises ProgramError if no size of
    buffers is free of deadlocks."""
    ops = list(chain.from_iterable(netlist.graphs[name].ops for name in temporal.graphs))
    count = max(netlist.graphs[temporal.graphs[0]].input_count, 1)

    def with_inputs(inputs: int) -> EpochTiming:
        """Return the epoch's timing with so many inputs modelled."""
        return _run_inputs(ops, edges, costs, rates, inputs).result(temporal, count, with_inputs)

    modelled = min(count, FIRST_INPUTS)
    while True:
        model = _run_inputs(ops, edges, costs, rates, modelled)
        if modelled == count or _is_steady(model) or modelled >= MOST_INPUTS:
            return model.result(temporal, count, with_inputs)
        modelled = min(count, 2 * modelled)


def _run_inputs(
    ops: Sequence[Op], edges: Sequence[tuple[Flow, Path]], costs: Mapping[str, Cost], rates: Rates, inputs: int
) -> EpochTasks:
    """Return an epoch's tasks with their times for a number of inputs. Input buffers are doubled until the schedule
    does not deadlock; raises ProgramError if no size is large enough."""
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


def _is_steady(model: EpochTasks) -> bool:
    """Return whether the third and the last quarter of the modelled inputs have the same pace, and this pace can last:
    whether no unit needs longer for an input, which a buffer only hides while it has room."""
    early, late = paces(model.ends)
    lasts = model.busiest() <= late * (1 + FALLS_BEHIND)
    return lasts and abs(early - late) <= _STEADY * max(late, 1.0)


INPUTS: Final = 4  # of a stretch that `steady` looks for
_AT_PACE: Final = 0.02  # by which a stretch may differ from the pace


@dataclass(frozen=True, slots=True)
class Steady:
    """A stretch of an epoch: inputs `first` to `last` of `op`, on which it works from `start` to `end`. `working`
    counts the ops, `op` included, that are at work on some input during the whole stretch."""

    op: str
    first: int
    last: int
    start: int
    end: int
    working: int


def extend_until_full(timing: EpochTiming, op: str = "", most_tasks: int | None = None) -> EpochTiming:
    """Return the epoch's timing with enough inputs modelled that all its ops work at once while `op` (by default the
    busiest) works at the pace, or with as many as the epoch, MOST_INPUTS or `most_tasks` (tasks of the schedule) allow.
    The timing itself if it has enough."""
    limit = min(timing.inputs, MOST_INPUTS)
    if most_tasks is not None:
        limit = min(limit, most_tasks * timing.run.inputs // max(len(timing.run.timing.start), 1))
    while timing.run.inputs < limit:
        stretch = steady(timing, op)
        if stretch is None or stretch.working == len(timing.ops):
            break
        timing = timing.again(min(2 * timing.run.inputs, limit))
    return timing


def steady(timing: EpochTiming, op: str = "", inputs: int = INPUTS) -> Steady | None:
    """Return a stretch of `inputs` inputs of an op (by default, or for an unknown name, the busiest op) that runs at
    the epoch's pace and in which most ops are at work; of several the latest one. An epoch with fewer inputs is one
    stretch; None if it has no ops."""
    if not timing.ops:
        return None
    op_timing = next((op_timing for op_timing in timing.ops if op_timing.op == op), None) or max(
        timing.ops, key=lambda op_timing: op_timing.active
    )
    begins, ends = input_times(timing, op_timing.op)
    count = min(inputs, timing.run.inputs)

    def working(first_input: int) -> int:
        """Return how many ops work during the whole stretch that begins with an input."""
        start = begins[first_input]
        end = ends[first_input + count - 1]
        return sum(other.first_start <= start and other.last_end >= end for other in timing.ops)

    def worth(first_input: int) -> tuple[bool, int, int]:
        """Return the key by which stretches are compared, from the input that each begins with: at the pace, ops at
        work, later."""
        at_pace = False
        if first_input > 0:
            at_pace = (
                abs((ends[first_input + count - 1] - ends[first_input - 1]) / count - timing.pace)
                <= _AT_PACE * timing.pace
            )
        return at_pace, working(first_input), first_input

    first = max(range(timing.run.inputs - count + 1), key=worth)
    return Steady(
        op=op_timing.op,
        first=first,
        last=first + count - 1,
        start=begins[first],
        end=ends[first + count - 1],
        working=working(first),
    )


def describe_fill(timing: EpochTiming, stretch: Steady) -> str:
    """Return in words how many ops work during a stretch: `all 12 ops at work`, `3 of 12 ops at work`."""
    if stretch.working == len(timing.ops):
        if stretch.working > 1:
            return f"all {plural(stretch.working, 'op')} at work"
        return "its op at work"
    return f"{stretch.working} of {len(timing.ops)} ops at work"


def input_times(timing: EpochTiming, op: str) -> tuple[list[int], list[int]]:
    """Return two lists over the modelled inputs: the cycles at which an op begins each of them, and those at which it
    ends it. Raises ValueError for an op that is not in the epoch."""
    result = timing.run.timing
    tasks = np.flatnonzero(result.unit == result.units.index(op)).reshape(timing.run.inputs, -1)
    return result.start[tasks[:, 0]].tolist(), result.end[tasks[:, -1]].tolist()
