"""Changes that the modelled schedule of an epoch of a single input suggests: other numbers of cores, and the cycles by
which data is needed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.pack import pack_on_chip
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import channel_name, stream_in_channel
from buda_emu.performance.timing.transfers.rates import speed

Ints = NDArray[np.int64]
LIGHT = 6_000
"""Cycles within which a core may read an operand of which it reads more than before. No measurement of the figure is
recorded."""
LEAST_GAIN = 100.0
"""Cycles that a change of an epoch is expected to save, at least, before it is modelled. With 0, small GPT takes 0.24 %
more cycles for a single input."""


class _Tasks:
    """The modelled schedule of an epoch and the tasks of each op.

    `makespan` computes the end of the epoch from `durations`, the cycles of each task; `work_tasks` has the numbers of
    the tasks in which each op works, by name; `arriving` has for each op the operands that arrive with each input:
    number, tasks, and cycles for the bytes of a core."""

    def __init__(self, table: CandidateTable, report: EpochReport) -> None:
        timing = report.timing
        self.table = table
        self.makespan = timing.run.schedule.makespans()
        self.durations: Ints = timing.run.schedule.durations
        numbers = {name: number for number, name in enumerate(timing.run.timing.units)}
        self.work_tasks = {
            op_timing.op: np.flatnonzero(timing.run.timing.unit == numbers[op_timing.op]) for op_timing in timing.ops
        }
        self.arriving: dict[str, list[tuple[int, range, int]]] = {}
        rates = speed(table.target.chip, {}).rates()
        for edge, path, tasks in zip(report.edges, report.paths, timing.run.ways, strict=True):
            if edge.operand >= 0 and not edge.once:
                if path.gathers:
                    rate = rates.gather
                else:
                    rate = rates.stream
                self.arriving.setdefault(edge.target, []).append((edge.operand, tasks, ceil(edge.core_bytes / rate)))

    def with_choice(self, durations: Ints, name: str, old: Choice, new: Choice) -> Ints | None:
        """Return a copy of the durations (cycles of each task) with the op `name` divided as `new` instead of `old`.
        None where a core would read more of an operand than before and take more than `LIGHT` cycles for it, as other
        transfers would wait on links and ports."""
        changed = durations.copy()
        op_tasks = self.work_tasks[name]
        changed[op_tasks] = np.maximum(np.round(changed[op_tasks] * (new.math / old.math)).astype(np.int64), 1)
        op = self.table.tiles.ops[name]
        tiles = self.table.tiles
        for operand, tasks, cycles in self.arriving.get(name, ()):
            if operand < len(op.uses):
                growth = tiles_read(tiles, op, new.blocks, operand) / tiles_read(tiles, op, old.blocks, operand)
                if growth > 1 and cycles * growth > LIGHT:
                    return None
                least = ceil(cycles * growth / len(tasks))
                changed[tasks.start : tasks.stop] = np.maximum(changed[tasks.start : tasks.stop], least)
        return changed


def resize_ops(
    table: CandidateTable, decisions: Mapping[str, PlacementDecision], report: EpochReport
) -> dict[str, PlacementDecision]:
    """Return the decisions of an epoch of a single input, packed again with other numbers of cores for the ops that
    gain most by it. In each step that op is changed whose change shortens the modelled schedule most, beside the
    loading of its kernels, until none saves `LEAST_GAIN` cycles. Empty where no op gains, or where the changed ops find
    no room."""
    tasks = _Tasks(table, report)
    chosen = {name: decision.choice for name, decision in decisions.items()}
    _, load_per_kernel = epoch_load(table.target)
    room = prod(table.target.arch.grid)
    durations = tasks.durations
    best = float(report.timing.run.timing.makespan)
    while True:
        free = room - sum(choice.cores for choice in chosen.values())
        best_step: _Resizing | None = None
        for name, new in _other_sizes(table, chosen, free):
            changed = tasks.with_choice(durations, name, chosen[name], new)
            if changed is None:
                continue
            done = float(tasks.makespan(changed))
            gain = best - done - load_per_kernel * (new.cores - chosen[name].cores)
            if gain > (LEAST_GAIN if best_step is None else best_step.gain):
                best_step = _Resizing(gain, name, new, changed, done)
        if best_step is None:
            break
        durations = best_step.durations
        best = best_step.makespan
        chosen[best_step.name] = best_step.choice
    if all(decisions[name].choice is choice for name, choice in chosen.items()):
        return {}
    first = next(iter(decisions.values()))
    grid_transpose = any(decision.grid_transpose for decision in decisions.values())
    names = sorted(chosen, key=table.index.__getitem__)
    numbers = [table.index[name] for name in names]
    shapes = [[chosen[name]] for name in names]
    return pack_on_chip(table, numbers, shapes, first.epoch, first.chip, grid_transpose=grid_transpose) or {}


class _Resizing(NamedTuple):
    """Another choice for the op `name`: the cycles that it gains, loading included, and the durations of all tasks and
    the end of the epoch to which it leads."""

    gain: float
    name: str
    choice: Choice
    durations: Ints
    makespan: float


def _other_sizes(table: CandidateTable, chosen: Mapping[str, Choice], free: int) -> Iterator[tuple[str, Choice]]:
    """Yield the names of ops, each with a choice that has another number of cores, at most `free` more, and the same
    constants in L1."""
    for name, old in chosen.items():
        for new in table.best[table.index[name]]:
            added_cores = new.cores - old.cores
            if 0 != added_cores <= free and new.held == old.held:
                yield name, new


def set_deadlines(decisions: Mapping[str, PlacementDecision], report: EpochReport) -> dict[str, PlacementDecision]:
    """Return the decisions of an epoch with `begin_by` set, the cycle by which an op that holds data in L1 has to begin
    for the epoch to take no longer than if all such data were there at once. Other ops keep their decisions.

    All times are maxima of sums of durations. One run in which an op begins last therefore tells how long the tasks
    take that follow its beginning."""
    schedule = report.timing.run.schedule
    timing = report.timing.run.timing
    makespan = schedule.makespans()
    readers = _ops_by_loading_unit(report)
    reader = np.array([readers.get(unit, "") for unit in timing.units])[timing.unit]
    at_once = schedule.durations
    at_once[reader != ""] = 0
    shortest = makespan(at_once)
    timed = dict(decisions)
    for name in dict.fromkeys(readers.values()):
        late = at_once.copy()
        late[reader == name] = shortest
        timed[name] = replace(decisions[name], begin_by=float(2 * shortest - makespan(late)))
    return timed


def _ops_by_loading_unit(report: EpochReport) -> dict[str, str]:
    """Return, by the name of each unit that reads a DRAM channel before the first input, the op whose cores hold the
    data."""
    readers: dict[str, str] = {}
    for edge in report.edges:
        if edge.once and edge.memory == "dram":
            for number in edge.memory_bytes:
                readers[stream_in_channel(channel_name(number, edge.chip), edge.name)] = edge.target
    return readers
