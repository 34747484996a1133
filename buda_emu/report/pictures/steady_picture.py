"""The steady state of a modelled epoch as a picture of lanes, for the page; of one with few inputs all of it."""

from collections.abc import Iterator

import numpy as np

from buda_emu.report.pictures.epoch_picture import loading_name, loading_slices
from buda_emu.timeline import Timing
from buda_emu.timeline.picture import Lane, Slice, Stretch, TimelinePicture
from buda_emu.timing.epoch.result import EpochTiming
from buda_emu.timing.epoch.steady import steady
from buda_emu.timing.result import EpochReport


def steady_picture(epoch: EpochReport, timing: EpochTiming) -> TimelinePicture:
    """What limits the epoch first, then what is on its critical path, the longest first, then its ops in document
    order: a lane for each unit, which bears its name. `timing`: of the epoch, as many inputs as fill its pipeline."""
    result = timing.timing
    stretch = steady(timing, epoch.bottleneck.name)
    begin, end = 0, result.makespan
    if stretch is not None and stretch.last - stretch.first + 1 < timing.modelled:
        begin, end = stretch.start, stretch.end
    chain = result.critical_path(timing.last_task) if timing.last_task >= 0 else []
    chain = [task for task in chain if result.end[task] > begin and result.start[task] < end]
    limit = [name for name in result.units if name.partition(": ")[0] == epoch.bottleneck.name]
    if not limit and stretch is not None:  # a NoC link, or nothing: the busiest op
        limit = [stretch.op]
    names = list(dict.fromkeys([*limit, *_longest(result, chain), *(op.op for op in timing.ops)]))
    slices = dict(_slices(timing, names, begin, end))
    number = {task: place for place, task in enumerate(slices)}
    lanes, drawn = [Lane(name) for name in names], list(slices.values())
    whole = begin == 0 and end == result.makespan
    if whole:
        lanes, drawn = _after_loading(epoch, lanes, drawn, len(limit))
    return TimelinePicture(
        "",
        lanes,
        drawn,
        chain=[number[task] for task in chain],
        stretches=() if whole else [Stretch(begin, end, "steady state")],
    )


def _after_loading(
    epoch: EpochReport, lanes: list[Lane], drawn: list[Slice], above: int
) -> tuple[list[Lane], list[Slice]]:
    """The same, begun when the epoch is loaded, which has lanes of its own below those `above`."""
    loads, after = epoch.load.chips, round(epoch.load.cycles)
    moved = [
        item._replace(
            lane=item.lane + len(loads) * (item.lane >= above), start=item.start + after, end=item.end + after
        )
        for item in drawn
    ]
    own = [Lane(loading_name(load)) for load in loads]
    return [*lanes[:above], *own, *lanes[above:]], [*moved, *loading_slices(loads, 0, above)]


def _longest(result: Timing, tasks: list[int]) -> list[str]:
    """Units by what they work in these tasks."""
    held: dict[str, int] = {}
    for task in tasks:
        unit = result.units[int(result.unit[task])]
        held[unit] = held.get(unit, 0) + int(result.end[task]) - int(result.start[task])
    return sorted(held, key=lambda unit: -held[unit])


def _slices(timing: EpochTiming, names: list[str], begin: int, end: int) -> Iterator[tuple[int, Slice]]:
    """Tasks of these units between two moments."""
    result = timing.timing
    ops = {op.op for op in timing.ops}
    for lane, unit in enumerate(names):
        tasks: list[int] = np.flatnonzero(result.unit == result.units.index(unit)).tolist()
        each = max(len(tasks) // timing.modelled, 1)
        other = "memory" if ": " in unit else "transfers"
        for place, task in enumerate(tasks):
            start, stop = int(result.start[task]), int(result.end[task])
            if stop <= begin or start >= end:
                continue
            entry, part = divmod(place, each)
            kind = ("even inputs", "odd inputs")[entry % 2] if unit in ops else other
            yield task, Slice(lane, max(start, begin), min(stop, end), f"input {entry}", kind, {"part": part})
