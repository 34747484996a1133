"""Sizes of the ops of an epoch of a single input, and when each of them has to begin."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.pack import on_chip
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import channel_name, through
from buda_emu.performance.timing.transfers.rates import speed

Ints = NDArray[np.int64]
STEPS = 24
"""Ops that are divided otherwise, at most."""
LIGHT = 6_000
"""Cycles in which a core may read an operand of which it reads more than before."""
GAIN = 100.0
"""Cycles that a change has to save."""


class _Tasks:
    """The schedule of an epoch, and the tasks of each op: its own, and those in which its operands arrive."""

    def __init__(self, table: CandidateTable, report: EpochReport) -> None:
        timing = report.timing
        self.table = table
        self.makespan = timing.schedule.makespans()
        self.durations: Ints = timing.schedule.durations
        numbers = {name: number for number, name in enumerate(timing.timing.units)}
        self.own = {item.op: np.flatnonzero(timing.timing.unit == numbers[item.op]) for item in timing.ops}
        self.arriving: dict[str, list[tuple[int, range, int]]] = {}
        rates = speed(table.target.chip, {}).rates()
        for edge, path, tasks in zip(report.edges, report.paths, timing.ways, strict=True):
            if edge.operand >= 0 and not edge.once:
                rate = rates.gather if path.gathers else rates.stream
                self.arriving.setdefault(edge.target, []).append((edge.operand, tasks, ceil(edge.core_bytes / rate)))

    def with_choice(self, durations: Ints, name: str, old: Choice, new: Choice) -> Ints | None:
        """Durations with an op divided otherwise; None where a core would read much more than it did, which others
        would wait for on links and ports."""
        made = durations.copy()
        own = self.own[name]
        made[own] = np.maximum(np.round(made[own] * (new.math / old.math)).astype(np.int64), 1)
        op, tiles = self.table.tiles.ops[name], self.table.tiles
        for operand, tasks, cycles in self.arriving.get(name, ()):
            if operand < len(op.uses):
                more = tiles_read(tiles, op, new.blocks, operand) / tiles_read(tiles, op, old.blocks, operand)
                if more > 1 and cycles * more > LIGHT:
                    return None
                least = ceil(cycles * more / len(tasks))
                made[tasks.start : tasks.stop] = np.maximum(made[tasks.start : tasks.stop], least)
        return made


def resized(
    table: CandidateTable, decisions: Mapping[str, PlacementDecision], report: EpochReport
) -> dict[str, PlacementDecision]:
    """The decisions with other divisions of the ops that gain most by it, one after the other; nothing where none does,
    or where they find no room."""
    tasks, chosen = _Tasks(table, report), {name: decision.choice for name, decision in decisions.items()}
    _, each = epoch_load(table.target)
    room = prod(table.target.arch.grid)
    durations, best = tasks.durations, float(report.timing.timing.makespan)
    for _ in range(STEPS):
        free = room - sum(choice.cores for choice in chosen.values())
        found: tuple[float, str, Choice, Ints, float] | None = None
        for name, old in chosen.items():
            for new in table.best[table.index[name]]:
                more = new.cores - old.cores
                if not 0 != more <= free or new.held != old.held:
                    continue
                made = tasks.with_choice(durations, name, old, new)
                if made is None:
                    continue
                done = float(tasks.makespan(made))
                gain = best - done - each * more
                if gain > GAIN and (found is None or gain > found[0]):
                    found = gain, name, new, made, done
        if found is None:
            break
        _, name, new, durations, best = found
        chosen[name] = new
    if all(decisions[name].choice is choice for name, choice in chosen.items()):
        return {}
    first = next(iter(decisions.values()))
    grid_transpose = any(decision.grid_transpose for decision in decisions.values())
    names = sorted(chosen, key=table.index.__getitem__)
    numbers, shapes = [table.index[name] for name in names], [[chosen[name]] for name in names]
    return on_chip(table, numbers, shapes, first.epoch, first.chip, grid_transpose=grid_transpose) or {}


def due_as_timed(decisions: Mapping[str, PlacementDecision], report: EpochReport) -> dict[str, PlacementDecision]:
    """The decisions with the cycle by which each op that keeps something in L1 has to begin. All times are maxima of
    sums of durations, so that one run in which an op begins last says what follows its beginning."""
    schedule, timing = report.timing.schedule, report.timing.timing
    makespan, readers = schedule.makespans(), _readers(report)
    reader = np.array([readers.get(unit, "") for unit in timing.units])[timing.unit]
    at_once = schedule.durations
    at_once[reader != ""] = 0
    shortest, found = makespan(at_once), dict(decisions)
    for name in dict.fromkeys(readers.values()):
        late = at_once.copy()
        late[reader == name] = shortest
        found[name] = replace(decisions[name], begin_by=float(2 * shortest - makespan(late)))
    return found


def _readers(report: EpochReport) -> dict[str, str]:
    """Of each unit that takes something out of a channel of DRAM before the first input, the op that keeps it."""
    return {
        through(channel_name(number, edge.chip), edge.name): edge.target
        for edge in report.edges
        if edge.once and edge.memory == "dram"
        for number in edge.memory_bytes
    }
