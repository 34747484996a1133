"""Improves each epoch beyond the reach of the estimates: the whole timing model evaluates it, and its bottlenecks are
changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.decision import OneEpoch, PlacementDecision, build_placement
from buda_emu.compiler.place.placement import Placement, Queue
from buda_emu.compiler.search.candidate_table import CandidateTable, sequence_key
from buda_emu.compiler.search.evaluate import EpochCache, EpochEvaluation, FinalPlaces
from buda_emu.compiler.search.pack import pack, widen_ops
from buda_emu.compiler.search.schedule_changes import resize_ops, set_deadlines
from buda_emu.compiler.search.wiring import (
    PATIENCE,
    KindsOfMoves,
    MovedOps,
    MoveLimits,
    TimedWires,
    Wires,
    WiresOfOne,
    anneal,
    grid_orders,
    limit_to_streams,
    rewire,
)
from buda_emu.compiler.search_parts import Part, Parts
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import Objective
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import Device


def isolate_epoch(placement: Placement, epoch: int) -> Placement:
    """Return a placement of the ops of one epoch alone, with the queues that they read and write. The host fills those
    that other epochs or an earlier input would fill, but its link is not counted."""
    ops = {name: replace(placed, epoch=0) for name, placed in placement.ops.items() if placed.epoch == epoch}
    stores = {name: store for name, store in placement.tiles.stores.items() if store.op in ops}
    part = replace(placement, ops=ops, queues={}, epochs=1, step=1, tiles=replace(placement.tiles, stores=stores))
    read = set[str]()
    for placed in ops.values():
        read.update(part.source(use.source, placed) for use in placed.op.uses)
    read |= {queue.alias for name, queue in placement.queues.items() if name in read and queue.alias}
    for name, queue in placement.queues.items():
        if queue.input in ops:
            part.queues[name] = queue
        elif name in read:
            part.queues[name] = _fill_by_host(queue)
    return part


def _fill_by_host(queue: Queue) -> Queue:
    """Return a queue between epochs, or of a state, as one that the host fills; any other queue as it is."""
    if queue.role == "between":
        return replace(queue, input="HOST", role="input", life=None)
    if queue.role == "state":
        return replace(queue, input="HOST", life=None)
    return queue


Decisions = dict[str, PlacementDecision]
Mover = Callable[[Decisions], MovedOps]
"""A function that moves ops of one chip, given their decisions by name."""
Make = Callable[[Mapping[str, PlacementDecision], OneEpoch | None], Placement]
ImprovedEpoch = tuple[list[PlacementDecision], int, set[str]]
"""The decisions of the ops of an epoch, the number of ops that were modelled for them, and the parts that gained."""
KnownResult = Callable[[int], ImprovedEpoch | None]
"""A function that returns what has been found for an epoch elsewhere (`speculative.py`), or None."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The work for each epoch: how many `moves` of ops are tried, and in how many `rounds` its estimates are corrected.
    With `timed`, each move of an epoch of a single input is judged by the end of the epoch, ops get other numbers of
    cores and data other DRAM channels, and ops are annealed."""

    moves: int
    rounds: int
    timed: bool = False


BUDGETS = {"default": Budget(600, 2), "high": Budget(1500, 3, timed=True), "training": Budget(200, 1)}
"""The budget of each effort (docs/compile/placing.md, "The search", steps 6, 8 and 11)."""
PASSES = 3
"""Most passes that limit grids to those with enough streams, that give the ops of a single input other numbers of
cores, and that move what they hold in L1 to other DRAM channels: each changes what the next one starts from
(docs/compile/placing.md, "The search", steps 10 and 11). No measurement of the figure is recorded."""
ANNEALED = 1000
"""Moves for each op of an epoch of a single input in the last search, which times the epoch for each move. They save
1.5 % of the cycles of a GPT-2 step (docs/compile/placing.md, "The search", step 11)."""
ENOUGH = 0.8
"""Share of the bytes that a link can carry while the busiest op works. No op is moved where the fullest link carries no
more. With 1, a small BERT takes 0.29 % more cycles, and a CTC net of a convolution and two BiGRU layers 0.24 %."""


@dataclass(slots=True)
class Start:
    """A starting point for improving epochs: the decisions of all ops of a form of a graph, by name; `budget`, a key of
    `BUDGETS`; `entries`, the rounds of inputs for which queues of inputs and outputs have room; and `only`, the numbers
    of the epochs to improve, None for all."""

    decisions: Decisions
    objective: Objective
    budget: str
    entries: int
    only: frozenset[int] | None = None
    _first: Placement | None = field(default=None, init=False, repr=False, compare=False)

    def is_like(self, other: "Start") -> bool:
        """Return whether another start leads to the same result: all is equal but the effort that either was made
        for."""
        own_objective = replace(self.objective, effort=other.objective.effort)
        return (own_objective, self.budget, self.entries, self.only, self.decisions) == (
            other.objective,
            other.budget,
            other.entries,
            other.only,
            other.decisions,
        )

    def improves(self, epoch: int) -> bool:
        """Return whether the epoch of this number is to be improved: one of `only`, or any where that is None."""
        return self.only is None or epoch in self.only

    def make(
        self, table: CandidateTable, decisions: Mapping[str, PlacementDecision], only: OneEpoch | None = None
    ) -> Placement:
        """Build the placement of `decisions` for this start's objective, or with `only` the part of it that a trial of
        one epoch needs. Raises MemoryFullError."""
        return build_placement(table.tiles, table.target, decisions, self.objective, self.entries, only)

    def placement(self, table: CandidateTable) -> Placement:
        """Return the placement of the start's own decisions, built once in each process. Raises MemoryFullError."""
        if self._first is None:
            self._first = self.make(table, self.decisions)
        return self._first


def improve_epochs(table: CandidateTable, start: Start, known_result: KnownResult, cache: EpochCache) -> Decisions:
    """Return the decisions of all ops after each epoch of a start was packed again and its ops were moved, as far as
    the model finds that quicker and the bound of work allows. Identical epochs are improved once and changed in the
    same way. Raises MemoryFullError.

    `cache` has what earlier epochs took, and receives what is found here. `known_result` returns the result of a worker
    for an epoch of this start, which equals the one that would be computed here."""
    record = start.objective.record
    decisions = start.decisions
    better: dict[int, list[PlacementDecision]] = {}
    result: Decisions = {}
    for epoch, (first, names) in enumerate(match_epochs(table, start)):
        if first == epoch:
            record.report_epoch(epoch, start.placement(table).epochs)
            if record.stop_modelling() or not start.improves(epoch):
                better[epoch] = [decisions[name] for name in names]
            elif (elsewhere := known_result(epoch)) is not None and record.has_room(elsewhere[1]):
                better[epoch] = elsewhere[0]
                record.modelled += elsewhere[1]
                record.gained |= elsewhere[2]
            else:
                better[epoch] = improve_epoch(table, start, record, names, cache)
        result |= copy_decisions(table, names, better[first], epoch) or {name: decisions[name] for name in names}
    return result


def no_result(_epoch: int) -> ImprovedEpoch | None:
    """Return None: no worker improves epochs of this start."""


def copy_decisions(
    table: CandidateTable, names: Sequence[str], like: Sequence[PlacementDecision], epoch: int
) -> Decisions | None:
    """Return for each op in `names` the decision of the op at the same place of `like`, with its own constants and in
    epoch `epoch`. None where an op has no choice with those blocks, as one that writes a cache or picks by another
    table."""
    copies: Decisions = {}
    for name, decision in zip(names, like, strict=True):
        choices = table.corrected[table.index[name]]
        counterpart = next((choice for choice in choices if choice.blocks == decision.choice.blocks), None)
        if counterpart is None:
            return None
        copies[name] = replace(decision, epoch=epoch, choice=counterpart)
    return copies


def match_epochs(table: CandidateTable, start: Start) -> list[tuple[int, list[str]]]:
    """Return for each epoch of the start the number of the first epoch that is identical to it, itself included, and
    the names of its ops. Raises MemoryFullError."""
    placement = start.placement(table)
    decisions = start.decisions
    names_by_epoch: list[list[str]] = [[] for _ in range(placement.epochs)]
    for op in table.ops:
        names_by_epoch[decisions[op.name].epoch].append(op.name)
    firsts: dict[object, int] = {}
    groups: list[tuple[int, list[str]]] = []
    for names in names_by_epoch:
        epoch = len(groups)
        groups.append((firsts.setdefault(_epoch_key(placement.tiles, names, decisions), epoch), names))
    return groups


def improve_epoch(
    table: CandidateTable, start: Start, record: SearchRecord, names: list[str], cache: EpochCache
) -> list[PlacementDecision]:
    """Return the improved decisions of the ops of one epoch, in the order of `names`. The ops that are modelled for it
    are counted in `record`, also those whose figures are in the `cache`."""
    only = OneEpoch.of(table.tiles, start.placement(table), start.decisions[names[0]].epoch)
    epoch = _Epoch(
        table=table,
        make=partial(start.make, table),
        chips=start.objective.chips,
        only=only,
        budget=BUDGETS[start.budget],
        record=record,
        without=start.objective.without,
        cache=cache,
    )
    epoch_decisions = epoch.improve(start.decisions)
    return [epoch_decisions[name] for name in names]


def _epoch_key(tiles: TileGraph, names: list[str], decisions: Decisions) -> object:
    """Return a key that is equal for epochs of ops that cost the same, read each other in the same way, and have the
    same blocks, chips and cores."""
    epoch_decisions = [decisions[name] for name in names]
    places = tuple(
        (decision.choice.blocks, decision.chip, decision.at, decision.grid_transpose) for decision in epoch_decisions
    )
    return sequence_key(tiles, [tiles.ops[name] for name in names]), places


@dataclass(frozen=True, slots=True)
class _Epoch:
    """One epoch that is being improved: `make` builds placements, `only` is the base of trials that change this epoch
    alone; `chips`: how many the epoch may use; `without`: the parts of the search that are left out."""

    table: CandidateTable
    make: Make
    chips: int
    only: OneEpoch
    budget: Budget
    record: SearchRecord
    without: Parts
    cache: EpochCache

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        return self.only.epoch

    def improve(self, decisions: Decisions) -> Decisions:
        """Return the improved decisions of the ops of the epoch, by name. `decisions` are those of all ops. The steps
        follow each other, each from the best decisions so far: moves, transposed grids, wider ops, corrected estimates,
        steps by the modelled schedule, and grids with enough streams."""
        placement = self.only.base
        epoch_decisions = {name: decision for name, decision in decisions.items() if decision.epoch == self.epoch}
        part = isolate_epoch(placement, self.epoch)
        best, best_evaluation = self._shorten_wires(epoch_decisions, part, self._evaluate(part))
        first = min(self.table.index[name] for name in epoch_decisions)
        ops = range(first, first + len(epoch_decisions))
        transposed, _ = pack(self.table, ops.start, ops.stop, self.epoch, self.chips, grid_transpose=True)
        is_quicker = len(transposed) == len(ops) and _pace(transposed) < _pace(epoch_decisions)
        if is_quicker and Part.TRANSPOSED_PACKING not in self.without:
            best, best_evaluation = self._try_decisions(
                decisions, transposed, best, best_evaluation, Part.TRANSPOSED_PACKING
            )
        grid_transpose = any(decision.grid_transpose for decision in best.values())
        if placement.microbatch == 1 and Part.WIDER_OPS not in self.without:
            best, best_evaluation = self._try_decisions(decisions, widen_ops(self.table, best), best, best_evaluation)
        table, best, best_evaluation = self._pack_with_corrections(
            decisions, ops, best, best_evaluation, grid_transpose=grid_transpose
        )
        if placement.microbatch == 1 and self.budget.timed:
            best, best_evaluation = self._resize(decisions, table, best, best_evaluation)
            best, best_evaluation = self._retime(decisions, best, best_evaluation)
            if not self.record.stop_modelling() and Part.ANNEALING not in self.without:
                best, best_evaluation = self._anneal(decisions, best, best_evaluation)
                best, best_evaluation = self._retime(decisions, best, best_evaluation)
        return self._avoid_stream_detours(decisions, table, best, best_evaluation)

    def _pack_with_corrections(
        self,
        decisions: Decisions,
        ops: range,
        best: Decisions,
        best_evaluation: EpochEvaluation,
        *,
        grid_transpose: bool,
    ) -> tuple[CandidateTable, Decisions, EpochEvaluation]:
        """Pack the epoch again with estimates that the model corrects, and move its ops, for as many rounds as the
        budget has and each is quicker than the last. An op's estimate is multiplied by what the model says that it
        takes longer. Returns the table with the last estimates, and the best decisions with their evaluation. `ops`:
        the numbers of the epoch's ops."""
        single = self.only.base.microbatch == 1
        table = self.table
        factors = dict[str, float]()
        for _ in range(1 if self.budget.timed and single else self.budget.rounds):
            if self.record.stop_modelling() or Part.CORRECTION in self.without:
                break
            for name, cycles in best_evaluation.op_cycles.items():
                factor = cycles / max(best[name].choice.math, 1.0)
                factors[name] = max(factors.get(name, 1.0), factor)
            table = self.table.correct_estimates(factors, within=ops)
            packed, end = pack(table, ops.start, ops.stop, self.epoch, self.chips, grid_transpose=grid_transpose)
            if end < ops.stop:
                break
            if single and Part.WIDER_OPS not in self.without:
                packed = widen_ops(table, packed)
            part = self._isolate(decisions, packed)
            wired, evaluation = self._shorten_wires(packed, part, self._evaluate(part))
            if evaluation.cycles < best_evaluation.cycles:
                best = wired
                best_evaluation = evaluation
                self.record.gained.add(Part.CORRECTION)
            else:
                break
        return table, best, best_evaluation

    def _resize(
        self, decisions: Decisions, table: CandidateTable, best: Decisions, best_evaluation: EpochEvaluation
    ) -> tuple[Decisions, EpochEvaluation]:
        """Return the best decisions with more cores for ops that a single input waits for and fewer for others, as long
        as the model finds that quicker, and their evaluation."""
        for _ in range(PASSES):
            if self.record.stop_modelling():
                break
            wished = resize_ops(table, best, best_evaluation.report)
            if not wished or Part.RESIZING in self.without:
                break
            attempt, evaluation = self._try_decisions(decisions, wished, best, best_evaluation, Part.RESIZING)
            if evaluation is best_evaluation:
                break
            best = attempt
            best_evaluation = evaluation
        return best, best_evaluation

    def _retime(
        self, decisions: Decisions, best: Decisions, best_evaluation: EpochEvaluation
    ) -> tuple[Decisions, EpochEvaluation]:
        """Return the best decisions with deadlines from the modelled schedule, after which data that stays in L1 lies
        in other DRAM channels so as to be there in time, as long as the model finds that quicker, and their
        evaluation."""
        for _ in range(PASSES):
            if self.record.stop_modelling() or Part.DEADLINES in self.without:
                break
            retimed = set_deadlines(best, best_evaluation.report)
            evaluation = self._evaluate(self._isolate(decisions, retimed))
            if evaluation.cycles >= best_evaluation.cycles:
                break
            best = retimed
            best_evaluation = evaluation
            self.record.gained.add(Part.DEADLINES)
        return best, best_evaluation

    def _avoid_stream_detours(
        self, decisions: Decisions, table: CandidateTable, best: Decisions, best_evaluation: EpochEvaluation
    ) -> Decisions:
        """Return the decisions that the model finds quickest: `best`, or grids with which operands go from core to core
        that now go through DRAM for lack of streams. Each of the orders in which grids can be changed is tried."""
        first = min(self.table.index[name] for name in best)
        before = best
        orders = grid_orders(best_evaluation.placement, best, self.without)
        if not orders or Part.STREAMS in self.without:
            return best
        for order in orders:
            limited_table = table
            attempt = before
            for _ in range(PASSES):
                if self.record.stop_modelling():
                    return best
                limited = limit_to_streams(
                    limited_table, self.make({**decisions, **attempt}, self.only), attempt, order
                )
                if limited is None:
                    break
                limited_table, why = limited
                packed = pack_either_way(limited_table, range(first, first + len(attempt)), self.epoch, self.chips)
                if len(packed) < len(attempt):
                    break
                attempt = {
                    name: replace(decision, why=why.get(name, attempt[name].why)) for name, decision in packed.items()
                }
                parts = Part.STREAMS, *order.parts
                best, best_evaluation = self._try_decisions(decisions, attempt, best, best_evaluation, *parts)
        return best

    def _try_decisions(
        self, decisions: Decisions, candidate: Decisions, best: Decisions, best_evaluation: EpochEvaluation, *parts: str
    ) -> tuple[Decisions, EpochEvaluation]:
        """Move the ops of `candidate`, other decisions for the epoch's ops, so that wires are short, and return the
        decisions with their evaluation if the model finds them quicker than the best ones, else the best ones with
        theirs. `parts`: the parts of the search that are recorded as having gained if so. `decisions` are those of all
        ops."""
        part = self._isolate(decisions, candidate)
        wired, evaluation = self._shorten_wires(candidate, part, self._evaluate(part))
        if evaluation.cycles < best_evaluation.cycles:
            self.record.gained.update(parts)
            return wired, evaluation
        return best, best_evaluation

    def _shorten_wires(
        self, decisions: Decisions, part: Placement, before: EpochEvaluation
    ) -> tuple[Decisions, EpochEvaluation]:
        """Search for places with short wires and, in an epoch of rounds, for grids to transpose, and return the changed
        decisions if the model finds them quicker than `before`, the evaluation of the placement `part`, which follows
        from `decisions`; else `decisions`. Either with its evaluation."""
        if Part.WIRES in self.without:
            return decisions, before
        chip = part.target.chip
        alone = part.waits_for_one
        timed = alone and self.budget.timed
        kinds = self._kinds_of_moves(regions=timed)
        grid = part.target.arch.grid
        if alone:
            limits = MoveLimits(2 * self.budget.moves, patience=3 * PATIENCE)
        else:
            limits = MoveLimits(self.budget.moves, _link_limit(before, chip))

        def mover() -> Mover:
            """Return a function that moves the ops of a chip, judged by the wires of the epoch."""
            wires: Wires | WiresOfOne
            if timed:
                wires = TimedWires(before.netlist, before.report, chip)
            elif alone:
                wires = WiresOfOne(before.netlist, before.edges, chip)
            else:
                wires = Wires(before.netlist, before.edges, chip)
            return partial(rewire, wires=wires, grid=grid, limits=limits, kinds=kinds)

        moved = self._move_ops(decisions, before, (Part.WIRES, alone, timed), limits.tries, mover)
        best, evaluation = self._keep_if_quicker(decisions, moved, part, before, Part.WIRES)
        if alone:
            return best, evaluation
        return self._turn_grids(best, part, evaluation)

    def _turn_grids(
        self, decisions: Decisions, part: Placement, before: EpochEvaluation
    ) -> tuple[Decisions, EpochEvaluation]:
        """Search for places and transposed grids where a link limits the epoch, and return the changed decisions if the
        model finds them quicker than `before`, the evaluation of the placement `part`; else the present ones. Either
        with its evaluation."""
        if before.bottleneck != "link" or Part.TURNS in self.without:
            return decisions, before
        chip = part.target.chip
        limits = MoveLimits(self.budget.moves, _link_limit(before, chip))
        kinds = replace(self._kinds_of_moves(regions=False), turns=True)

        def mover() -> Mover:
            """Return a function that moves the ops of a chip and transposes their grids."""
            wires = Wires(before.netlist, before.edges, chip)
            return partial(rewire, wires=wires, grid=part.target.arch.grid, limits=limits, kinds=kinds)

        moved = self._move_ops(decisions, before, (Part.TURNS,), limits.tries, mover)
        return self._keep_if_quicker(decisions, moved, part, before, Part.TURNS)

    def _anneal(
        self, decisions: Decisions, best: Decisions, best_evaluation: EpochEvaluation
    ) -> tuple[Decisions, EpochEvaluation]:
        """Anneal the places of the ops of an epoch of a single input, and return the moved decisions with their
        evaluation if the model finds them quicker, else the best ones with theirs."""
        part = self._isolate(decisions, best)
        chip = part.target.chip
        grid = part.target.arch.grid
        kinds = self._kinds_of_moves(regions=True)
        tries = ANNEALED * len(best)

        def mover() -> Mover:
            """Return a function that anneals the ops of a chip."""
            wires = TimedWires(best_evaluation.netlist, best_evaluation.report, chip)
            return lambda chip_decisions: anneal(chip_decisions, wires, grid, ANNEALED * len(chip_decisions), kinds)

        moved = self._move_ops(best, best_evaluation, (Part.ANNEALING,), tries, mover)
        return self._keep_if_quicker(best, moved, part, best_evaluation, Part.ANNEALING)

    def _move_ops(
        self,
        decisions: Decisions,
        before: EpochEvaluation,
        search: tuple[object, ...],
        limit: int,
        mover: Callable[[], Mover],
    ) -> Decisions:
        """Return the decisions with the places after a search for each chip in turn. Equal searches for equal epochs
        end at the same places, so they are made once and looked up in the cache.

        `before`: the evaluation of the decisions; `search`: what kind of search it is, as a key; `limit`: how many
        moves it tries at most; `mover`: returns the function that searches, called only if there is no earlier
        search."""
        key = search, before.key, tuple(before.op_cycles)
        final = self.cache.moved.get(key)
        if final is None or not final.holds(limit):
            final = self.cache.moved[key] = _move_chip_by_chip(decisions, limit, mover())
        return {
            name: replace(decision, at=final.places[name][0], grid_transpose=final.places[name][1])
            for name, decision in decisions.items()
        }

    def _kinds_of_moves(self, *, regions: bool) -> KindsOfMoves:
        """Return the kinds of moves that are drawn: exchanges of whole `regions` only if they are asked for, and none
        that the objective leaves out."""
        return KindsOfMoves(
            exchanges=Part.EXCHANGES not in self.without, regions=regions and Part.REGIONS not in self.without
        )

    def _keep_if_quicker(
        self, decisions: Decisions, moved: Decisions, part: Placement, before: EpochEvaluation, search_part: str
    ) -> tuple[Decisions, EpochEvaluation]:
        """Return `moved`, the decisions after a search for places, if the model finds them quicker than `before`, the
        evaluation of the placement `part`; else `decisions`. Either with its evaluation. `search_part`: the part of the
        search that is recorded as having gained if so."""
        if all(moved[name] == decision for name, decision in decisions.items()):
            return decisions, before
        ops = {
            name: replace(placed, at=moved[name].at, grid_transpose=moved[name].grid_transpose)
            for name, placed in part.ops.items()
        }
        after = self._evaluate(replace(part, ops=ops))
        if after.cycles < before.cycles:
            self.record.gained.add(search_part)
            return moved, after
        return decisions, before

    def _isolate(self, decisions: Decisions, epoch_decisions: Decisions) -> Placement:
        """Return the placement of the epoch alone that follows from `epoch_decisions` for its ops and `decisions` for
        all others."""
        return isolate_epoch(self.make({**decisions, **epoch_decisions}, self.only), self.epoch)

    def _evaluate(self, part: Placement) -> EpochEvaluation:
        """Evaluate a placement of the epoch, and count its ops as modelled."""
        self.record.modelled += len(part.ops)
        return EpochEvaluation(part, self.cache)


def _link_limit(evaluation: EpochEvaluation, chip: Device) -> float:
    """Return the bytes over the fullest link up to which no op is moved: `ENOUGH` of what a link carries while the
    busiest op works on one input."""
    return max(evaluation.op_cycles.values()) * speed(chip, {}).rates().link * ENOUGH


def _move_chip_by_chip(decisions: Decisions, limit: int, move: Mover) -> FinalPlaces:
    """Return where the ops stand after `move`, a search of at most `limit` moves, was called for each chip in turn, and
    how many moves the longest of these searches tried."""
    result = dict(decisions)
    tried = 0
    for number in sorted({decision.chip for decision in decisions.values()}):
        moved = move({name: decision for name, decision in result.items() if decision.chip == number})
        result |= moved.decisions
        tried = max(tried, moved.tried)
    places = {name: (decision.at, decision.grid_transpose) for name, decision in result.items()}
    return FinalPlaces(places, tried, limit)


def pack_either_way(table: CandidateTable, ops: range, epoch: int, chips: int) -> Decisions:
    """Pack as many of `ops`, in order, as find room in one epoch, and return their decisions, fewer than there are ops
    where not all do. Grids may be transposed if that finds room for more ops, or for all of them at a quicker pace."""
    plain, transposed = (
        pack(table, ops.start, ops.stop, epoch, chips, grid_transpose=grid_transpose)[0]
        for grid_transpose in (False, True)
    )
    if len(transposed) > len(plain):
        return transposed
    if len(transposed) == len(plain) == len(ops) and _pace(transposed) < _pace(plain):
        return transposed
    return plain


def _pace(decisions: Decisions) -> float:
    """Return the estimated cycles of the slowest op for one input, which sets the pace of an epoch."""
    return max(decision.choice.cycles for decision in decisions.values())
