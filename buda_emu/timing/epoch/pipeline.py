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
from typing import Final

from buda_emu.errors import ProgramError
from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.timing.epoch.result import INPUT_BUFFERS, Cost, EpochTiming
from buda_emu.timing.epoch.tasks import EpochTasks, paces
from buda_emu.timing.transfers.flows import Flow
from buda_emu.timing.transfers.noc import Path
from buda_emu.timing.transfers.rates import Rates

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
        model = EpochTasks(ops, edges, costs, rates, inputs, buffers)
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
