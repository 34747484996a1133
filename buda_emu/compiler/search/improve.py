"""Improves each epoch beyond what the estimates can see: the whole timing model is evaluated, and its bottlenecks are
changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.memory_watch import Work
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.decision import OneEpoch, PlacementDecision, placed
from buda_emu.compiler.place.placement import Placement, Queue
from buda_emu.compiler.search.candidate_table import STEP, CandidateTable, alike
from buda_emu.compiler.search.cuts import epoch_load
from buda_emu.compiler.search.evaluate import Evaluated, judged
from buda_emu.compiler.search.pack import on_chip, pack, widened
from buda_emu.compiler.search.wiring import (
    PATIENCE,
    TimedWires,
    Wires,
    WiresOfOne,
    annealed,
    connected,
    rewired,
    rewired_turning,
    ways,
)
from buda_emu.compiler.target import Objective
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import channel_name, stream_in_channel
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import Device

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
        self.makespan = timing.run.schedule.makespans()
        self.durations: Ints = timing.run.schedule.durations
        numbers = {name: number for number, name in enumerate(timing.run.timing.units)}
        self.own = {item.op: np.flatnonzero(timing.run.timing.unit == numbers[item.op]) for item in timing.ops}
        self.arriving: dict[str, list[tuple[int, range, int]]] = {}
        rates = speed(table.target.chip, {}).rates()
        for edge, path, tasks in zip(report.edges, report.paths, timing.run.ways, strict=True):
            if edge.operand >= 0 and not edge.once:
                rate = rates.gather if path.gathers else rates.stream
                self.arriving.setdefault(edge.target, []).append((edge.operand, tasks, ceil(edge.core_bytes / rate)))

    def with_choice(self, durations: Ints, name: str, old: Choice, new: Choice) -> Ints | None:
        """Durations with an op divided otherwise; None where a core would read much more than it did, which others
        would wait for on links and ports."""
        made = durations.copy()
        own = self.own[name]
        made[own] = np.maximum(np.round(made[own] * (new.math / old.math)).astype(np.int64), 1)
        op = self.table.tiles.ops[name]
        tiles = self.table.tiles
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
    tasks = _Tasks(table, report)
    chosen = {name: decision.choice for name, decision in decisions.items()}
    _, each = epoch_load(table.target)
    room = prod(table.target.arch.grid)
    durations = tasks.durations
    best = float(report.timing.run.timing.makespan)
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
    numbers = [table.index[name] for name in names]
    shapes = [[chosen[name]] for name in names]
    return on_chip(table, numbers, shapes, first.epoch, first.chip, grid_transpose=grid_transpose) or {}


def due_as_timed(decisions: Mapping[str, PlacementDecision], report: EpochReport) -> dict[str, PlacementDecision]:
    """The decisions with the cycle by which each op that keeps something in L1 has to begin. All times are maxima of
    sums of durations, so that one run in which an op begins last says what follows its beginning."""
    schedule = report.timing.run.schedule
    timing = report.timing.run.timing
    makespan = schedule.makespans()
    readers = _readers(report)
    reader = np.array([readers.get(unit, "") for unit in timing.units])[timing.unit]
    at_once = schedule.durations
    at_once[reader != ""] = 0
    shortest = makespan(at_once)
    found = dict(decisions)
    for name in dict.fromkeys(readers.values()):
        late = at_once.copy()
        late[reader == name] = shortest
        found[name] = replace(decisions[name], begin_by=float(2 * shortest - makespan(late)))
    return found


def _readers(report: EpochReport) -> dict[str, str]:
    """Of each unit that takes something out of a channel of DRAM before the first input, the op that keeps it."""
    return {
        stream_in_channel(channel_name(number, edge.chip), edge.name): edge.target
        for edge in report.edges
        if edge.once and edge.memory == "dram"
        for number in edge.memory_bytes
    }


def epoch_of(placement: Placement, epoch: int) -> Placement:
    """The ops of an epoch; queues that other epochs fill are filled by the host, without its link."""
    ops = {name: replace(placed, epoch=0) for name, placed in placement.ops.items() if placed.epoch == epoch}
    stores = {name: store for name, store in placement.tiles.stores.items() if store.op in ops}
    found = replace(placement, ops=ops, queues={}, epochs=1, step=1, tiles=replace(placement.tiles, stores=stores))
    read = {found.source(use.source, placed) for placed in ops.values() for use in placed.op.uses}
    read |= {queue.alias for name, queue in placement.queues.items() if name in read and queue.alias}

    def own(queue: Queue) -> Queue:
        if queue.input in ops or queue.role not in ("between", "state"):
            return queue
        return replace(queue, input="HOST", role="input" if queue.role == "between" else queue.role, life=None)

    found.queues = {name: own(queue) for name, queue in placement.queues.items() if name in read or queue.input in ops}
    return found


Decisions = dict[str, PlacementDecision]
Make = Callable[[Mapping[str, PlacementDecision], OneEpoch | None], Placement]
Improved = tuple[list[PlacementDecision], int]
"""What became of the ops of an epoch, and the ops that were modelled for it."""
Known = Callable[[int], Improved | None]
"""Of an epoch what has been found for it elsewhere (`speculative.py`); None where nothing has."""


@dataclass(frozen=True, slots=True)
class Budget:
    """For each epoch: moves of ops that are tried, and how often its estimates are corrected; `timed`: of a single
    input each move is judged by when the epoch is done, and ops are given other numbers of cores."""

    moves: int
    rounds: int
    timed: bool = False


BUDGETS = {"default": Budget(600, 2), "high": Budget(1500, 3, timed=True), "training": Budget(200, 1)}
QUICKER = 0.95
"""The share of its pace at which an epoch is worth being packed with transposed grids."""
CONNECTED = 3
"""How often grids are limited to those that streams are enough for: what was packed again may lack others."""
RESIZED = 3
"""How often the ops of an epoch of a single input are given other numbers of cores."""
IN_TIME = 3
"""How often what its ops keep in L1 is put into other channels."""
ANNEALED = 1000
"""Moves for each op of an epoch of a single input, at last, where it is timed for each move."""
ENOUGH = 0.8
"""Of what a link carries while the busiest op works: where the fullest one carries no more, no op is moved."""
WAITING = 1.15
"""An epoch so much slower than all that works in it waits for room in buffers."""


@dataclass(slots=True)
class Start:
    """Where epochs are improved from: the decisions of the ops of a form of a graph, by the budget of that name; `only`
    some of the epochs, where that is said."""

    decisions: Decisions
    objective: Objective
    budget: str
    entries: int
    only: frozenset[int] | None = None
    _first: Placement | None = field(default=None, init=False, repr=False, compare=False)

    def is_like(self, other: "Start") -> bool:
        """Whether the same comes of both, with whatever effort they are asked for."""
        own = replace(self.objective, effort=other.objective.effort)
        return (own, self.budget, self.entries, self.only, self.decisions) == (
            other.objective,
            other.budget,
            other.entries,
            other.only,
            other.decisions,
        )

    def improves(self, epoch: int) -> bool:
        """Whether an epoch is to be improved."""
        return self.only is None or epoch in self.only

    def make(
        self, table: CandidateTable, decisions: Mapping[str, PlacementDecision], only: OneEpoch | None = None
    ) -> Placement:
        """Of such decisions. Raises MemoryFullError."""
        return placed(table.tiles, table.target, decisions, self.objective, self.entries, only)

    def placement(self, table: CandidateTable) -> Placement:
        """Of its own decisions, made once in each process. Raises MemoryFullError."""
        if self._first is None:
            self._first = self.make(table, self.decisions)
        return self._first


def improved(table: CandidateTable, start: Start, known: Known) -> Decisions:
    """The decisions with each epoch packed and wired again, as far as there is work left to be done; identical epochs
    are changed in the same way. `known`: what was found elsewhere for this start, as it would be found here."""
    work = start.objective.work
    decisions = start.decisions
    better: dict[int, list[PlacementDecision]] = {}
    found: Decisions = {}
    for epoch, (first, names) in enumerate(epochs_alike(table, start)):
        if first == epoch:
            work.at(epoch, start.placement(table).epochs)
            if work.stop_modelling() or not start.improves(epoch):
                better[epoch] = [decisions[name] for name in names]
            elif (elsewhere := known(epoch)) is not None and work.has_room(elsewhere[1]):
                better[epoch] = elsewhere[0]
                work.modelled += elsewhere[1]
            else:
                better[epoch] = of_epoch(table, start, work, names)
        found |= as_like_ops(table, names, better[first], epoch) or {name: decisions[name] for name in names}
    return found


def nothing_known(_epoch: int) -> Improved | None:
    """Of a start whose epochs nobody else improves."""


def as_like_ops(
    table: CandidateTable, names: Sequence[str], like: Sequence[PlacementDecision], epoch: int
) -> Decisions | None:
    """For ops the decisions of like ones, with their own constants and in an epoch; None where one has no such
    division, as one that writes a cache, or picks by another table."""
    found: Decisions = {}
    for name, decision in zip(names, like, strict=True):
        choices = table.found[table.index[name]]
        own = next((item for item in choices if item.blocks == decision.choice.blocks), None)
        if own is None:
            return None
        found[name] = replace(decision, epoch=epoch, choice=own)
    return found


def epochs_alike(table: CandidateTable, start: Start) -> list[tuple[int, list[str]]]:
    """Of each epoch the first that is like it, and its own ops. Raises MemoryFullError."""
    placement = start.placement(table)
    decisions = start.decisions
    firsts: dict[object, int] = {}
    found: list[tuple[int, list[str]]] = []
    for epoch in range(placement.epochs):
        names = [op.name for op in table.ops if decisions[op.name].epoch == epoch]
        found.append((firsts.setdefault(_alike(placement.tiles, names, decisions), epoch), names))
    return found


def of_epoch(table: CandidateTable, start: Start, work: Work, names: list[str]) -> list[PlacementDecision]:
    """What becomes of the ops of one epoch; `work` counts what is modelled for it."""
    only = OneEpoch(start.placement(table), start.decisions[names[0]].epoch)
    one = _Epoch(table, partial(start.make, table), start.objective.chips, only, BUDGETS[start.budget], work)
    found = one.improved(start.decisions)
    return [found[name] for name in names]


def _alike(tiles: TileGraph, names: list[str], decisions: Decisions) -> object:
    """Equal for epochs of the same ops, divided and placed in the same way."""
    own = [decisions[name] for name in names]
    where = tuple((item.choice.blocks, item.chip, item.at, item.grid_transpose) for item in own)
    return alike(tiles, [tiles.ops[name] for name in names]), where


@dataclass(frozen=True, slots=True)
class _Epoch:
    table: CandidateTable
    make: Make
    chips: int
    only: OneEpoch
    budget: Budget
    work: Work

    @property
    def epoch(self) -> int:
        """Its number."""
        return self.only.epoch

    def improved(self, decisions: Decisions) -> Decisions:
        """The decisions of its ops. In each round they are wired, and packed again with estimates that the model
        corrects."""
        placement = self.only.base
        mine = {name: decision for name, decision in decisions.items() if decision.epoch == self.epoch}
        part = epoch_of(placement, self.epoch)
        best, told = self._wired(mine, part, self._judged(part))
        first = min(self.table.index[name] for name in mine)
        transposed, _ = pack(self.table, first, first + len(mine), self.epoch, self.chips, grid_transpose=True)
        if len(transposed) == len(mine) and _pace(transposed) < QUICKER * _pace(mine):
            best, told = self._tried(decisions, transposed, best, told)
        turns = any(decision.grid_transpose for decision in best.values())
        if placement.microbatch == 1:
            best, told = self._tried(decisions, widened(self.table, best), best, told)
        table = self.table
        factors = dict[str, float]()
        step = STEP
        for _ in range(1 if self.budget.timed and placement.microbatch == 1 else self.budget.rounds):
            if self.work.stop_modelling():
                break
            timing = told.run.epochs[0].timing
            if timing.pace > WAITING * max(busy.cycles for _, busy in timing.busy()):
                step *= 2
            for item in timing.ops:
                said = item.cost.cycles / max(best[item.op].choice.math, 1.0)
                factors[item.op] = max(factors.get(item.op, 1.0), said)
            table = self.table.corrected(factors, step, range(first, first + len(mine)))
            packed, end = pack(table, first, first + len(mine), self.epoch, self.chips, grid_transpose=turns)
            if end < first + len(mine):
                break
            if placement.microbatch == 1:
                packed = widened(table, packed)
            part = self._part(decisions, packed)
            found, now = self._wired(packed, part, self._judged(part))
            if _cycles(now) < _cycles(told):
                best = found
                told = now
            elif step == STEP:
                break
        if placement.microbatch == 1 and self.budget.timed:
            best, told = self._resized(decisions, table, best, told)
            best, told = self._in_time(decisions, best, told)
            if not self.work.stop_modelling():
                best, told = self._annealed(decisions, best, told)
                best, told = self._in_time(decisions, best, told)
        return self._connected(decisions, table, best, told)

    def _resized(
        self, decisions: Decisions, table: CandidateTable, best: Decisions, told: Evaluated
    ) -> tuple[Decisions, Evaluated]:
        """With more cores for what a single input waits for, and fewer for what it does not, as long as that is
        quicker."""
        for _ in range(RESIZED):
            wished = {} if self.work.stop_modelling() else resized(table, best, told.run.epochs[0])
            found, now = self._tried(decisions, wished, best, told) if wished else (best, told)
            if now is told:
                break
            best = found
            told = now
        return best, told

    def _in_time(self, decisions: Decisions, best: Decisions, told: Evaluated) -> tuple[Decisions, Evaluated]:
        """With what is kept in L1 in other channels, so that it is there when the model says that it is needed."""
        for _ in range(IN_TIME):
            if self.work.stop_modelling():
                break
            mine = due_as_timed(best, told.run.epochs[0])
            now = self._judged(self._part(decisions, mine))
            if _cycles(now) >= _cycles(told):
                break
            best = mine
            told = now
        return best, told

    def _connected(self, decisions: Decisions, table: CandidateTable, best: Decisions, told: Evaluated) -> Decisions:
        """With other grids where operands go through DRAM for lack of streams, if the model says that it is quicker."""
        first = min(self.table.index[name] for name in best)
        before = best
        for way in ways(self.make({**decisions, **best}, self.only), best):
            own = table
            mine = before
            for _ in range(CONNECTED):
                if self.work.stop_modelling():
                    return best
                limited = connected(own, self.make({**decisions, **mine}, self.only), mine, way)
                if limited is None:
                    break
                own, why = limited
                packed = packed_either_way(own, range(first, first + len(mine)), self.epoch, self.chips)
                if len(packed) < len(mine):
                    break
                mine = {name: replace(decision, why=why.get(name, mine[name].why)) for name, decision in packed.items()}
                best, told = self._tried(decisions, mine, best, told)
        return best

    def _tried(
        self, decisions: Decisions, mine: Decisions, best: Decisions, told: Evaluated
    ) -> tuple[Decisions, Evaluated]:
        """Other decisions of its ops, if the model says that these are quicker than the best ones."""
        part = self._part(decisions, mine)
        found, now = self._wired(mine, part, self._judged(part))
        return (found, now) if _cycles(now) < _cycles(told) else (best, told)

    def _wired(self, decisions: Decisions, part: Placement, before: Evaluated) -> tuple[Decisions, Evaluated]:
        """With its ops moved, if the model says that it gets quicker by it."""
        report = before.run.epochs[0]
        chip = part.target.chip
        alone = part.waits_for_one
        wires: Wires | WiresOfOne
        if not alone:
            wires = Wires.of(before.netlist, report.edges, report.paths, chip)
        elif self.budget.timed:
            wires = TimedWires(before.netlist, report, chip)
        else:
            wires = WiresOfOne(before.netlist, report.edges, chip)
        tries = (2 * self.budget.moves, 3 * PATIENCE) if alone else (self.budget.moves, PATIENCE)
        enough = 0.0 if alone else _enough(report, chip)
        regions = isinstance(wires, TimedWires)
        grid = part.target.arch.grid
        moved = _chip_by_chip(decisions, lambda own: rewired(own, wires, grid, enough, *tries, regions=regions))
        best, told = self._if_quicker(decisions, moved, part, before)
        return (best, told) if alone else self._transposed(best, part, told)

    def _transposed(self, decisions: Decisions, part: Placement, before: Evaluated) -> tuple[Decisions, Evaluated]:
        """With transposed grids of ops where a link limits the epoch, if the model says that this is faster."""
        report = before.run.epochs[0]
        grid = part.target.arch.grid
        if report.bottleneck.kind != "link":
            return decisions, before
        wires = Wires.of(before.netlist, report.edges, report.paths, part.target.chip)
        enough = _enough(report, part.target.chip)
        moved = _chip_by_chip(decisions, lambda own: rewired_turning(own, wires, grid, enough, self.budget.moves))
        return self._if_quicker(decisions, moved, part, before)

    def _annealed(self, decisions: Decisions, best: Decisions, told: Evaluated) -> tuple[Decisions, Evaluated]:
        """The best decisions of an epoch of a single input with their ops moved in the long search."""
        report = told.run.epochs[0]
        part = self._part(decisions, best)
        wires = TimedWires(told.netlist, report, part.target.chip)
        grid = part.target.arch.grid
        moved = _chip_by_chip(best, lambda own: annealed(own, wires, grid, ANNEALED * len(own)))
        return self._if_quicker(best, moved, part, told)

    def _if_quicker(
        self, decisions: Decisions, moved: Decisions, part: Placement, before: Evaluated
    ) -> tuple[Decisions, Evaluated]:
        """The decisions with ops moved, if the model says that it gets quicker by it."""
        if all(moved[name] == decision for name, decision in decisions.items()):
            return decisions, before
        ops = {
            name: replace(placed, at=moved[name].at, grid_transpose=moved[name].grid_transpose)
            for name, placed in part.ops.items()
        }
        after = self._judged(replace(part, ops=ops))
        return (moved, after) if _cycles(after) < _cycles(before) else (decisions, before)

    def _part(self, decisions: Decisions, mine: Decisions) -> Placement:
        """The epoch alone, with such decisions of its ops among all."""
        return epoch_of(self.make({**decisions, **mine}, self.only), self.epoch)

    def _judged(self, part: Placement) -> Evaluated:
        self.work.modelled += len(part.ops)
        return judged(part)


def _enough(report: EpochReport, chip: Device) -> float:
    """Bytes of the fullest link up to which no op is moved."""
    busiest = max(item.cost.cycles for item in report.timing.ops)
    return busiest * speed(chip, {}).rates().link * ENOUGH


def _chip_by_chip(decisions: Decisions, moved: Callable[[Decisions], Decisions]) -> Decisions:
    """With the ops of each chip moved, one chip after the other."""
    found = dict(decisions)
    for number in sorted({decision.chip for decision in decisions.values()}):
        found |= moved({name: decision for name, decision in found.items() if decision.chip == number})
    return found


def packed_either_way(table: CandidateTable, ops: range, epoch: int, chips: int) -> Decisions:
    """As many ops as find room; with transposed grids if that is faster or has room for more of them."""
    plain, transposed = (
        pack(table, ops.start, ops.stop, epoch, chips, grid_transpose=grid_transpose)[0]
        for grid_transpose in (False, True)
    )
    if len(transposed) == len(plain) == len(ops):
        return transposed if _pace(transposed) < QUICKER * _pace(plain) else plain
    return transposed if len(transposed) > len(plain) else plain


def _pace(decisions: Decisions) -> float:
    """The slowest estimate."""
    return max(decision.choice.cycles for decision in decisions.values())


def _cycles(found: Evaluated) -> float:
    """Of a round of inputs of the only epoch, with loading it."""
    report = found.run.epochs[0]
    return report.timing.total + report.load.cycles
