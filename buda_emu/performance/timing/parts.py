"""Intervals of modelled cycles, in which silicon lies with a probability of 90 %.

The cycles of an epoch are cut into parts along its critical path: each op, transfer and loading is a `Part` with the
family whose error it has. `interval_of` adds up their errors, which cancel partly between families.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from buda_emu.performance.timing.epoch.critical import CriticalStep, path_steps
from buda_emu.performance.timing.epoch.result import Cost
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.transfers.flows import CHANNEL
from buda_emu.performance.timing.uncertainty import IN_GRAPHS, LOADING_UNIT, Interval, Part, interval_of

LOADING: Final = "loading of epochs"
CHANNELS: Final = "DRAM channels"
TRANSFERS: Final = "transfers between cores"
CROSSINGS: Final = "links between chips"
HOST: Final = "host link"


@dataclass(frozen=True, slots=True)
class EpochIntervals:
    """The intervals of one epoch: `run` of the cycles of one run, with loading; `pace` of the cycles from one input to
    the next, or of the only input. `parts` are those that the run's cycles consist of."""

    parts: tuple[Part, ...]
    run: Interval
    pace: Interval


def epoch_intervals(run: PerfRun, epoch: EpochReport) -> EpochIntervals:
    """Return the intervals of one epoch. That of the pace is as wide, relative to its cycles, as that of a run without
    its loading."""
    loading = Part(LOADING_UNIT, f"{run.arch} {LOADING}", epoch.load.cycles)
    inside = tuple(_inner_parts(run, epoch))
    share = epoch.pace / max(epoch.timing.total, 1.0)
    return EpochIntervals((loading, *inside), interval_of((loading, *inside)), interval_of(inside).times(share))


def run_intervals(run: PerfRun) -> tuple[EpochIntervals, ...]:
    """Return the intervals of all epochs of a run."""
    return tuple(epoch_intervals(run, epoch) for epoch in run.epochs)


def program_intervals(run: PerfRun, epochs: Sequence[EpochIntervals]) -> dict[str, Interval]:
    """Return the interval of the cycles of each program, by name; `epochs` are what `run_intervals` returned."""
    parts: dict[str, list[Part]] = {}
    setup: dict[str, float] = {}
    for epoch, intervals in zip(run.epochs, epochs, strict=True):
        of_program = parts.setdefault(epoch.program, [])
        of_program += [replace(part, cycles=epoch.runs * part.cycles) for part in intervals.parts]
        setup[epoch.program] = setup.get(epoch.program, 0.0) + epoch.runs * run.setup
    return {program: interval_of(of_program).plus(setup[program]) for program, of_program in parts.items()}


def total_interval(run: PerfRun, epochs: Sequence[EpochIntervals]) -> Interval:
    """Return the interval of the cycles of all programs together; `epochs` are what `run_intervals` returned."""
    parts: list[Part] = []
    setup = 0.0
    for epoch, intervals in zip(run.epochs, epochs, strict=True):
        parts += [replace(part, cycles=epoch.runs * part.cycles) for part in intervals.parts]
        setup += epoch.runs * run.setup
    return interval_of(parts).plus(setup)


def cost_interval(cost: Cost) -> Interval:
    """Return the interval of the cycles that an op takes for one input on silicon."""
    return interval_of(Part("op", family, cycles) for family, cycles in cost.errors)


def _inner_parts(run: PerfRun, epoch: EpochReport) -> Iterator[Part]:
    """Yield the parts of one run of an epoch without its loading: the steps of its critical path, and one that adds the
    error of what the model of a graph leaves out."""
    crossing = {edge.name for edge in epoch.edges if edge.crosses}
    errors = {op.op: op.cost.errors for op in epoch.timing.ops}
    for step in path_steps(epoch.timing):
        if step.kind == "op":
            yield from _op_parts(step, errors[step.name])
        else:
            yield Part(step.name, f"{run.arch} {_transfer_topic(step, crossing)}", step.cycles)
    yield Part("graph", IN_GRAPHS, epoch.timing.total)


def _op_parts(step: CriticalStep, errors: Sequence[tuple[str, float]]) -> Iterator[Part]:
    """Yield the parts of an op's step on the critical path, its cycles shared out in the ratio of `errors`: the family
    and cycles of each sub-op, as the errors of a fused op may be of several families."""
    total = sum(cycles for _, cycles in errors)
    for family, cycles in errors:
        yield Part(f"op {step.name}", family, step.cycles * cycles / total)


def _transfer_topic(step: CriticalStep, crossing: set[str]) -> str:
    """Return what a step that moves data uses, which names its family of errors: DRAM channels, the host link, links
    between chips (for the edges named in `crossing`), or the NoC."""
    if step.name.startswith(CHANNEL):
        return CHANNELS
    if step.kind == "memory":
        return HOST
    if step.name in crossing:
        return CROSSINGS
    return TRANSFERS
