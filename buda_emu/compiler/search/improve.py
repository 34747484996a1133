"""Improves each epoch beyond what the estimates can see: the whole timing model is evaluated, and its bottlenecks are
changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.decision import OneEpoch, PlacementDecision, placed
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import STEP, CandidateTable, likeness
from buda_emu.compiler.search.evaluate import Evaluated, judged
from buda_emu.compiler.search.moves.connected import connected, ways
from buda_emu.compiler.search.moves.resized import resized
from buda_emu.compiler.search.moves.wires_of_one import TimedWires, WiresOfOne
from buda_emu.compiler.search.moves.wiring import PATIENCE, Wires, annealed, rewired, rewired_turning
from buda_emu.compiler.search.one_epoch import epoch_of
from buda_emu.compiler.search.pack import pack, widened
from buda_emu.compiler.target import Objective
from buda_emu.compiler.work import Work
from buda_emu.timing.transfers.rates import speed

Spots = dict[str, PlacementDecision]
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
"""The share of its pace at which an epoch is worth being packed with ops that stand turned by a quarter."""
CONNECTED = 3
"""How often grids are limited to those that streams are enough for: what was packed again may lack others."""
RESIZED = 3
"""How often the ops of an epoch of a single input are given other numbers of cores."""
ANNEALED = 1000
"""Moves for each op of an epoch of a single input, at last, where it is timed for each move."""
ENOUGH = 0.8
"""Of what a link carries while the busiest op works: where the fullest one carries no more, no op is moved."""
WAITING = 1.15
"""An epoch so much slower than all that works in it waits for room in buffers."""


@dataclass(slots=True)
class Start:
    """Where epochs are improved from: the spots of the ops of a form of a graph, by the budget of that name."""

    spots: Spots
    aim: Objective
    budget: str
    entries: int
    _first: Placement | None = field(default=None, init=False, repr=False, compare=False)

    def is_like(self, other: "Start") -> bool:
        """Whether the same comes of both, with whatever effort they are asked for."""
        own = replace(self.aim, effort=other.aim.effort)
        return (own, self.budget, self.entries, self.spots) == (other.aim, other.budget, other.entries, other.spots)

    def make(
        self, line: CandidateTable, spots: Mapping[str, PlacementDecision], only: OneEpoch | None = None
    ) -> Placement:
        """Of such spots. Raises MemoryFullError."""
        return placed(line.tiles, line.target, spots, self.aim, self.entries, only)

    def placement(self, line: CandidateTable) -> Placement:
        """Of its own spots, made once in each process. Raises MemoryFullError."""
        if self._first is None:
            self._first = self.make(line, self.spots)
        return self._first


def improved(line: CandidateTable, start: Start, known: Known) -> Spots:
    """The spots with each epoch packed and wired again, as far as there is work left to be done; epochs that are alike
    are changed alike. `known`: what was found elsewhere for this start, as it would be found here."""
    work, spots = start.aim.work, start.spots
    better: dict[int, list[PlacementDecision]] = {}
    found: Spots = {}
    for epoch, (first, names) in enumerate(epochs_alike(line, start)):
        if first == epoch:
            work.at(epoch, start.placement(line).epochs)
            if work.spent():
                better[epoch] = [spots[name] for name in names]
            elif (elsewhere := known(epoch)) is not None and work.has_room(elsewhere[1]):
                better[epoch] = elsewhere[0]
                work.modelled += elsewhere[1]
            else:
                better[epoch] = of_epoch(line, start, work, names)
        for name, spot in zip(names, better[first], strict=True):
            own = next(item for item in line.found[line.index[name]] if item.blocks == spot.choice.blocks)
            found[name] = replace(spot, epoch=epoch, choice=own)
    return found


def NOTHING_KNOWN(_epoch: int) -> Improved | None:  # noqa: N802
    """Of a start whose epochs nobody else improves."""


def epochs_alike(line: CandidateTable, start: Start) -> list[tuple[int, list[str]]]:
    """Of each epoch the first that is like it, and its own ops. Raises MemoryFullError."""
    placement, spots = start.placement(line), start.spots
    firsts: dict[object, int] = {}
    found: list[tuple[int, list[str]]] = []
    for epoch in range(placement.epochs):
        names = [op.name for op in line.ops if spots[op.name].epoch == epoch]
        found.append((firsts.setdefault(_alike(placement.tiles, names, spots), epoch), names))
    return found


def of_epoch(line: CandidateTable, start: Start, work: Work, names: list[str]) -> list[PlacementDecision]:
    """What becomes of the ops of one epoch; `work` counts what is modelled for it."""
    only = OneEpoch(start.placement(line), start.spots[names[0]].epoch)
    one = _Epoch(line, partial(start.make, line), start.aim.chips, only, BUDGETS[start.budget], work)
    found = one.improved(start.spots)
    return [found[name] for name in names]


def _alike(tiles: TileGraph, names: list[str], spots: Spots) -> object:
    """Equal for epochs of the same ops, divided and placed in the same way."""
    place = {name: number for number, name in enumerate(names)}
    return tuple(
        (
            likeness(tiles, tiles.ops[name], held=True), spots[name].choice.blocks, spots[name].chip, spots[name].at,
            spots[name].turned,
            tuple(place.get(use.source, -1) for use in tiles.ops[name].uses),
        )
        for name in names
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Epoch:
    line: CandidateTable
    make: Make
    chips: int
    only: OneEpoch
    budget: Budget
    work: Work

    @property
    def epoch(self) -> int:
        """Its number."""
        return self.only.epoch

    def improved(self, spots: Spots) -> Spots:
        """Its ops' spots. In each round they are wired, and packed again with the estimates that the model corrects."""
        placement = self.only.base
        mine = {name: spot for name, spot in spots.items() if spot.epoch == self.epoch}
        part = epoch_of(placement, self.epoch)
        best, told = self._wired(mine, part, self._judged(part))
        first = min(self.line.index[name] for name in mine)
        turned, _ = pack(self.line, first, first + len(mine), self.epoch, self.chips, turned=True)
        if len(turned) == len(mine) and _pace(turned) < QUICKER * _pace(mine):
            best, told = self._tried(spots, turned, best, told)
        turns = any(spot.turned for spot in best.values())
        if placement.microbatch == 1:
            best, told = self._tried(spots, widened(self.line, best), best, told)
        line, factors, step = self.line, dict[str, float](), STEP
        for _ in range(1 if self.budget.timed and placement.microbatch == 1 else self.budget.rounds):
            if self.work.spent():
                break
            timing = told.run.epochs[0].timing
            if timing.pace > WAITING * max(busy.cycles for _, busy in timing.busy()):
                step *= 2
            for item in timing.ops:
                said = item.cost.cycles / max(best[item.op].choice.math, 1.0)
                factors[item.op] = max(factors.get(item.op, 1.0), said)
            line = self.line.corrected(factors, step, range(first, first + len(mine)))
            packed, end = pack(line, first, first + len(mine), self.epoch, self.chips, turned=turns)
            if end < first + len(mine):
                break
            if placement.microbatch == 1:
                packed = widened(line, packed)
            part = epoch_of(self.make({**spots, **packed}, self.only), self.epoch)
            found, now = self._wired(packed, part, self._judged(part))
            if _cycles(now) < _cycles(told):
                best, told = found, now
            elif step == STEP:
                break
        if placement.microbatch == 1 and self.budget.timed:
            best, told = self._resized(spots, line, best, told)
            if not self.work.spent():
                best, told = self._annealed(spots, best, told)
        return self._connected(spots, line, best, told)

    def _resized(self, spots: Spots, line: CandidateTable, best: Spots, told: Evaluated) -> tuple[Spots, Evaluated]:
        """With more cores for what a single input waits for, and fewer for what it does not, as long as that is
        quicker."""
        for _ in range(RESIZED):
            wished = {} if self.work.spent() else resized(line, best, told.run.epochs[0])
            found, now = self._tried(spots, wished, best, told) if wished else (best, told)
            if now is told:
                break
            best, told = found, now
        return best, told

    def _connected(self, spots: Spots, line: CandidateTable, best: Spots, told: Evaluated) -> Spots:
        """With other grids where operands go through DRAM for lack of streams, if the model says that it is quicker."""
        first = min(self.line.index[name] for name in best)
        before = best
        for way in ways(self.make({**spots, **best}, self.only), best):
            own, mine = line, before
            for _ in range(CONNECTED):
                if self.work.spent():
                    return best
                limited = connected(own, self.make({**spots, **mine}, self.only), mine, way)
                if limited is None:
                    break
                own, why = limited
                packed = packed_either_way(own, range(first, first + len(mine)), self.epoch, self.chips)
                if len(packed) < len(mine):
                    break
                mine = {name: replace(spot, why=why.get(name, mine[name].why)) for name, spot in packed.items()}
                best, told = self._tried(spots, mine, best, told)
        return best

    def _tried(self, spots: Spots, mine: Spots, best: Spots, told: Evaluated) -> tuple[Spots, Evaluated]:
        """Other spots of its ops, if the model says that these are quicker than the best ones."""
        part = epoch_of(self.make({**spots, **mine}, self.only), self.epoch)
        found, now = self._wired(mine, part, self._judged(part))
        return (found, now) if _cycles(now) < _cycles(told) else (best, told)

    def _wired(self, spots: Spots, part: Placement, before: Evaluated) -> tuple[Spots, Evaluated]:
        """With its ops moved, if the model says that it gets quicker by it."""
        report = before.run.epochs[0]
        chip = part.target.chip
        busiest = max(item.cost.cycles for item in report.timing.ops)
        alone = part.waits_for_one
        wires: Wires | WiresOfOne
        if not alone:
            wires = Wires.of(before.netlist, report.edges, report.paths, chip)
        elif self.budget.timed:
            wires = TimedWires(before.netlist, report, chip)
        else:
            wires = WiresOfOne(before.netlist, report.edges, chip)
        tries = (2 * self.budget.moves, 3 * PATIENCE) if alone else (self.budget.moves, PATIENCE)
        moved = dict(spots)
        for number in sorted({spot.chip for spot in spots.values()}):
            own = {name: spot for name, spot in moved.items() if spot.chip == number}
            enough = 0.0 if alone else busiest * speed(chip, {}).rates().link * ENOUGH
            moved |= rewired(own, wires, part.target.arch.grid, enough, *tries, regions=isinstance(wires, TimedWires))
        best, told = self._if_quicker(spots, moved, part, before)
        return (best, told) if alone else self._turned(best, part, told)

    def _turned(self, spots: Spots, part: Placement, before: Evaluated) -> tuple[Spots, Evaluated]:
        """With ops turned by a quarter where a link sets the pace, if the model says that it gets quicker by it."""
        report, moved = before.run.epochs[0], dict(spots)
        if report.bottleneck.kind != "link":
            return spots, before
        wires = Wires.of(before.netlist, report.edges, report.paths, part.target.chip)
        busiest = max(item.cost.cycles for item in report.timing.ops)
        enough = busiest * speed(part.target.chip, {}).rates().link * ENOUGH
        for number in sorted({spot.chip for spot in spots.values()}):
            own = {name: spot for name, spot in moved.items() if spot.chip == number}
            moved |= rewired_turning(own, wires, part.target.arch.grid, enough, self.budget.moves)
        return self._if_quicker(spots, moved, part, before)

    def _annealed(self, spots: Spots, best: Spots, told: Evaluated) -> tuple[Spots, Evaluated]:
        """The best spots of an epoch of a single input with their ops moved in the long search."""
        report, part = told.run.epochs[0], epoch_of(self.make({**spots, **best}, self.only), self.epoch)
        wires = TimedWires(told.netlist, report, part.target.chip)
        moved = dict(best)
        for number in sorted({spot.chip for spot in best.values()}):
            own = {name: spot for name, spot in moved.items() if spot.chip == number}
            moved |= annealed(own, wires, part.target.arch.grid, ANNEALED * len(own))
        return self._if_quicker(best, moved, part, told)

    def _if_quicker(self, spots: Spots, moved: Spots, part: Placement, before: Evaluated) -> tuple[Spots, Evaluated]:
        """The spots with ops moved, if the model says that it gets quicker by it."""
        if all(moved[name] == spot for name, spot in spots.items()):
            return spots, before
        ops = {name: replace(placed, at=moved[name].at, turned=moved[name].turned) for name, placed in part.ops.items()}
        after = self._judged(replace(part, ops=ops))
        return (moved, after) if _cycles(after) < _cycles(before) else (spots, before)

    def _judged(self, part: Placement) -> Evaluated:
        self.work.modelled += len(part.ops)
        return judged(part)


def packed_either_way(line: CandidateTable, ops: range, epoch: int, chips: int) -> Spots:
    """As many ops as find room; turned by a quarter where that is quicker, or more find room so."""
    plain, turned = (pack(line, ops.start, ops.stop, epoch, chips, turned=turned)[0] for turned in (False, True))
    if len(turned) == len(plain) == len(ops):
        return turned if _pace(turned) < QUICKER * _pace(plain) else plain
    return turned if len(turned) > len(plain) else plain


def _pace(spots: Spots) -> float:
    """The slowest estimate."""
    return max(spot.choice.cycles for spot in spots.values())


def _cycles(found: Evaluated) -> float:
    """Of a round of inputs of the only epoch, with loading it."""
    report = found.run.epochs[0]
    return report.timing.total + report.load.cycles
