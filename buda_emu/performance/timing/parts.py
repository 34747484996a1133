"""The parts of an epoch's cycles by the family whose error they share, and the intervals of a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from buda_emu.performance.timing.epoch.critical import CriticalStep, path_steps
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.transfers.flows import CHANNEL
from buda_emu.performance.timing.uncertainty import IN_GRAPHS, Interval, Part, interval_of

LOADING: Final = "loading of epochs"
CHANNELS: Final = "DRAM channels"
TRANSFERS: Final = "transfers between cores"
CROSSINGS: Final = "links between chips"
HOST: Final = "host link"


def epoch_parts(run: PerfRun, epoch: EpochReport) -> tuple[Part, ...]:
    """Return the parts of one run of an epoch: its loading, the steps of its critical path, and the error of a
    graph."""
    parts = [Part("loading", f"{run.arch} {LOADING}", epoch.load.cycles), *_inner_parts(run, epoch)]
    return tuple(parts)


def _inner_parts(run: PerfRun, epoch: EpochReport) -> Iterator[Part]:
    """Yield the parts of a run of an epoch without its loading."""
    crossing = {edge.name for edge in epoch.edges if edge.crosses}
    errors = {op.op: op.cost.errors for op in epoch.timing.ops}
    for step in path_steps(epoch.timing):
        if step.kind == "op":
            yield from _op_parts(step, errors[step.name])
        else:
            yield Part(step.name, f"{run.arch} {_transfer_topic(step, crossing)}", step.cycles)
    yield Part("graph", IN_GRAPHS, epoch.timing.total)


def _op_parts(step: CriticalStep, errors: Sequence[tuple[str, float]]) -> Iterator[Part]:
    """Yield the parts of an op's step: those of a fused op may have several families."""
    total = sum(cycles for _, cycles in errors)
    for family, cycles in errors:
        yield Part(f"op {step.name}", family, step.cycles * cycles / total)


def _transfer_topic(step: CriticalStep, crossing: set[str]) -> str:
    """Return the topic of a step that moves data."""
    if step.name.startswith(CHANNEL):
        return CHANNELS
    if step.kind == "memory":
        return HOST
    return CROSSINGS if step.name in crossing else TRANSFERS


def run_interval(run: PerfRun, epoch: EpochReport) -> Interval:
    """Return the interval of the cycles of one run of an epoch, with its loading."""
    return interval_of(epoch_parts(run, epoch))


def pace_interval(run: PerfRun, epoch: EpochReport) -> Interval:
    """Return the interval of the cycles from one input to the next, or those of the only input: as wide, relative to
    the figure, as that of the whole epoch without its loading."""
    inside = interval_of(_inner_parts(run, epoch))
    return inside.scaled(epoch.pace / max(epoch.timing.total, 1.0))


def program_intervals(run: PerfRun) -> Mapping[str, Interval]:
    """Return the interval of the cycles of each program."""
    parts: dict[str, list[Part]] = {}
    setup: dict[str, float] = {}
    for epoch in run.epochs:
        ours = parts.setdefault(epoch.program, [])
        ours += [replace(part, cycles=epoch.runs * part.cycles) for part in epoch_parts(run, epoch)]
        setup[epoch.program] = setup.get(epoch.program, 0.0) + epoch.runs * run.setup
    intervals = {program: interval_of(ours) for program, ours in parts.items()}
    return {
        program: Interval(interval.low + setup[program], interval.high + setup[program])
        for program, interval in intervals.items()
    }
