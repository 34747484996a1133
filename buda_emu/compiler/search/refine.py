"""The end of the beam: what is tried only with the best form of the best graph, and the best epochs of all results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import NamedTuple

from buda_emu.compiler.place.decision import PlacementDecision, build_placement
from buda_emu.compiler.search.candidate_table import CandidateTable, sequence_key
from buda_emu.compiler.search.cuts import FULL
from buda_emu.compiler.search.improve import Start, copy_decisions
from buda_emu.compiler.search.schedule_changes import LEAST_GAIN
from buda_emu.compiler.search.single_input import SingleInput
from buda_emu.compiler.search.trials import (
    SHARES,
    SearchContext,
    SearchResult,
    comparable_cycles,
    model_placement,
    starts_with_results,
    try_start,
)
from buda_emu.compiler.search_parts import Part
from buda_emu.compiler.target import Objective
from buda_emu.support.errors import UnsupportedError

Decisions = Mapping[str, PlacementDecision]


class _Change(NamedTuple):
    """Other decisions for the ops from number `start` up to `stop`, without it, with their epochs counted from 0, and
    the cycles of a round that these are expected to save (`gain`)."""

    start: int
    stop: int
    decisions: Decisions
    gain: float


def combine_epochs(results: Sequence[SearchResult], context: SearchContext) -> SearchResult:
    """Return a result that is at least as quick as the best of these: epochs that are quicker in another result of the
    same form are taken from it, and of epochs with like ops all get the decisions of the quickest, each where the model
    finds the whole quicker. Called with the results of several starts, and with those before and after a round of
    refinement."""
    best, *others = sorted(results, key=comparable_cycles)
    table = best.table
    if table is None or best.decisions is None:
        return best
    without = best.objective.without
    for other in others:
        if other.table is not table or other.decisions is None:
            continue
        changes = [*_changes_from_other(table, best, other)]
        if changes and Part.RECOMBINATION not in without:
            best = _apply_changes(table, best, changes, context, Part.RECOMBINATION)
    changes = [*_changes_from_alike(table, best)]
    if changes and Part.LIKE_EPOCHS in without:
        return best
    return _apply_changes(table, best, changes, context, Part.LIKE_EPOCHS)


def rank_epochs(results: Sequence[SearchResult], context: SearchContext, count: int) -> list[SearchResult]:
    """Return up to `count` results of the same form as the best one, put together program by program: the first has the
    best decisions for each program, the second the next best ones of each program for which some end epochs elsewhere,
    and so on. They are modelled, which counts as work."""
    best = min(results, key=comparable_cycles)
    table = best.table
    if table is None or best.decisions is None:
        return [best]
    same_form = [result for result in results if result.table is table and result.decisions is not None]
    ranks: list[dict[int, _Change]] = []
    for start, stop in _program_ranges(table):
        ranked = _rank_program(table, same_form, start, stop)[:count]
        ranks += [{} for _ in ranked[len(ranks) :]]
        for rank, change in zip(ranks, ranked, strict=False):
            rank[start] = change
    first = ranks[0]
    evaluated = [
        _evaluate_decisions(table, best, _merge_changes(table, {}, {**first, **rank}), context) for rank in ranks
    ]
    return [result for result in evaluated if result is not None] or [best]


def _rank_program(table: CandidateTable, results: Sequence[SearchResult], start: int, stop: int) -> list[_Change]:
    """Return what each result decides for the ops `start` up to `stop`, those of one program, the quickest first. Of
    results whose epochs end at the same ops only the quickest is there."""
    by_ends: dict[frozenset[int], _Change] = {}
    for result in sorted(results, key=lambda result: _sum_between(_epoch_cycles(table, result), start, stop)):
        ends = frozenset(end for end in _epoch_cycles(table, result) if start < end <= stop)
        by_ends.setdefault(ends, _change_of_range(table, result.decisions or {}, start, stop))
    return [*by_ends.values()]


def _program_ranges(table: CandidateTable) -> Iterator[tuple[int, int]]:
    """Yield for each program the number of its first op and that of the op after its last one."""
    start = 0
    while start < len(table.ops):
        yield start, int(table.program_ends[start])
        start = int(table.program_ends[start])


def _changes_from_other(table: CandidateTable, best: SearchResult, other: SearchResult) -> Iterator[_Change]:
    """Yield the decisions of another placement between ends of epochs that both have, wherever they save more than
    `LEAST_GAIN` cycles."""
    best_cycles = _epoch_cycles(table, best)
    other_cycles = _epoch_cycles(table, other)
    for start, stop in pairwise(sorted({0, *best_cycles} & {0, *other_cycles})):
        gain = _sum_between(best_cycles, start, stop) - _sum_between(other_cycles, start, stop)
        if gain > LEAST_GAIN:
            yield _change_of_range(table, other.decisions or {}, start, stop, gain)


def _changes_from_alike(table: CandidateTable, best: SearchResult) -> Iterator[_Change]:
    """Yield, for each epoch that takes over `LEAST_GAIN` cycles more than the quickest one of like ops, the decisions
    of that one, if they differ."""
    cycles = _epoch_cycles(table, best)
    decisions = best.decisions or {}
    for group in _group_alike(table, cycles):
        first, last = min(group, key=lambda ends: cycles[ends[1]])
        quickest = [decisions[op.name] for op in table.ops[first:last]]
        for start, stop in group:
            gain = cycles[stop] - cycles[last]
            if gain <= LEAST_GAIN:
                continue
            copies = copy_decisions(table, [op.name for op in table.ops[start:stop]], quickest, 0) or {}
            if any(decisions[name].differs_in_place(decision) for name, decision in copies.items()):
                yield _change_of_range(table, copies, start, stop, gain)


def _group_alike(table: CandidateTable, ends: Iterable[int]) -> list[list[tuple[int, int]]]:
    """Return groups of epochs whose ops cost the same and read each other in the same way, each epoch as the number of
    its first op and that of the op after its last one. `ends` are the numbers of the ops after each epoch,
    ascending."""
    groups: dict[object, list[tuple[int, int]]] = {}
    for start, stop in pairwise([0, *ends]):
        groups.setdefault(sequence_key(table.tiles, table.ops[start:stop]), []).append((start, stop))
    return [*groups.values()]


def _change_of_range(table: CandidateTable, decisions: Decisions, start: int, stop: int, gain: float = 0.0) -> _Change:
    """Return a change that gives the ops from `start` up to `stop`, without it, these decisions, with their epochs
    numbered from 0. `gain` is the number of cycles that this is expected to save."""
    changed = {op.name: decisions[op.name] for op in table.ops[start:stop]}
    epochs = sorted({decision.epoch for decision in changed.values()})
    for name, decision in changed.items():
        changed[name] = replace(decision, epoch=epochs.index(decision.epoch))
    return _Change(start, stop, changed, gain)


def _apply_changes(
    table: CandidateTable, best: SearchResult, changes: Sequence[_Change], context: SearchContext, part: str
) -> SearchResult:
    """Return the best result with all of the changes if they make it quicker together, else with those that do one
    after the other, the greatest gain first; `best` where none does. `part`: the part of the search that is recorded as
    having gained if so."""
    order = sorted(changes, key=lambda change: (-change.gain, change.start))
    if not order:
        return best
    result = _try_changes(table, best, order, context)
    if result is best and len(order) > 1:
        for change in order:
            result = _try_changes(table, result, [change], context)
    if result is not best:
        best.objective.record.gained.add(part)
    return result


def _try_changes(
    table: CandidateTable, best: SearchResult, changes: Sequence[_Change], context: SearchContext
) -> SearchResult:
    """Model `best` with all of the changes and return the quicker of both results; `best` where the changes do not fit
    or the bound of work is reached."""
    if best.objective.record.stop_modelling():
        return best
    merged = _merge_changes(table, best.decisions or {}, {change.start: change for change in changes})
    result = _evaluate_decisions(table, best, merged, context)
    if result is None:
        return best
    return min(best, result, key=comparable_cycles)


def _evaluate_decisions(
    table: CandidateTable, best: SearchResult, decisions: Decisions, context: SearchContext
) -> SearchResult | None:
    """Return the result of other decisions for the form of the result `best`; None where they do not fit. They are
    modelled, which counts as work."""
    try:
        placement = build_placement(table.tiles, table.target, decisions, best.objective, context.entries)
    except UnsupportedError:
        return None
    return SearchResult.of(best.objective, model_placement(context, best.objective, placement), table, decisions)


def _merge_changes(
    table: CandidateTable, decisions: Decisions, changes: Mapping[int, _Change]
) -> dict[str, PlacementDecision]:
    """Return the decisions of all ops, with epochs numbered anew: those of the changes, which are listed by the number
    of their first op, and `decisions` for ops in none of them."""
    merged: dict[str, PlacementDecision] = {}
    before: tuple[int, int] | None = None
    epoch = -1
    change = None
    for number, op in enumerate(table.ops):
        if change is None or number >= change.stop:
            change = changes.get(number)
        if change is None:
            decision = decisions[op.name]
            place = -1, decision.epoch
        else:
            decision = change.decisions[op.name]
            place = change.start, decision.epoch
        epoch = epoch + (place != before)
        before = place
        merged[op.name] = replace(decision, epoch=epoch)
    return merged


def quicker_epochs(before: SearchResult, after: SearchResult) -> frozenset[int]:
    """Return the numbers of the epochs of `after` that take less time than in `before`, or that have no epoch of the
    same ops there: all of them where the two results are of different forms."""
    if after.table is None or after.table is not before.table:
        return frozenset(range(len(after.epochs)))
    old, new = (
        {ends: cycles[ends[1]] for ends in pairwise([0, *cycles])}
        for cycles in (_epoch_cycles(after.table, result) for result in (before, after))
    )
    return frozenset(number for number, ends in enumerate(new) if new[ends] < old.get(ends, inf))


def _epoch_cycles(table: CandidateTable, result: SearchResult) -> dict[int, float]:
    """Return the cycles of a round of each epoch of a result, with loading it, by the number of the op that follows the
    epoch, ascending."""
    decisions = result.decisions or {}
    stops = {decisions[op.name].epoch: number + 1 for number, op in enumerate(table.ops)}
    return {stops[epoch]: cycles for epoch, cycles in enumerate(result.epochs)}


def _sum_between(cycles: Mapping[int, float], start: int, stop: int) -> float:
    """Return the cycles of all epochs that lie between the ops `start` and `stop`; `cycles` has them by the op that
    follows each epoch."""
    return sum(epoch_cycles for end, epoch_cycles in cycles.items() if start < end <= stop)


REFINED = 2
"""Number of starts found for a single input that are refined: the best one, and one with the next best decisions of
each program whose epochs end elsewhere (docs/compile/placing.md, "The search", step 9). What the second one gains is
measured as "next start" ("What each part gains")."""
LEAST_SHARE_GAINED = 0.0005
"""Share of an input's cycles that a round has to gain for another one to be tried. No measurement of the figure is
recorded."""


def refine_result(best: SearchResult, context: SearchContext) -> SearchResult:
    """Return a result that is at least as quick as `best`, the best one of an effort, by what is too costly to try with
    every form. Called once per effort.

    For a single input on one chip: epochs of its own. On one chip and at default effort: other shares of the cores that
    rectangles cover. Then more moves and corrections, unless the host link is the limit."""
    objective = best.objective
    searched = best.table
    if searched is None:
        return best
    refined_one: SearchResult | None = None
    without = objective.without
    alone = objective.microbatch == 1 and objective.chips == 1 and not (searched.assigned or searched.tiles.trains)
    if alone and Part.SINGLE_INPUT not in without and not objective.record.stop_modelling():
        refined_one = _refine_single_input(searched, objective, context)
        best = min(best, refined_one, key=comparable_cycles)
    if objective.chips == 1 and objective.effort == "default":
        best = _try_shares(best, context)
    if best.cycles > best.host and best is not refined_one and Part.REFINEMENT not in without:
        best = _refine_repeatedly(best, context)
    return best


def _refine_single_input(table: CandidateTable, objective: Objective, context: SearchContext) -> SearchResult:
    """Return the best result of starts with epochs that are cut for a single input, after the best of them are refined
    and their epochs combined."""
    results = _try_single_input(table, objective, context)
    without = objective.without
    if Part.REFINEMENT in without:
        return combine_epochs(results, context)
    ranked = rank_epochs(results, context, REFINED)
    if len(ranked) > 1 and Part.NEXT_START in without:
        ranked = ranked[:1]
    ended = [_refine_repeatedly(candidate, context, once=True) for candidate in ranked]
    return _refine_repeatedly(combine_epochs([*results, *ended], context), context)


def _try_shares(best: SearchResult, context: SearchContext) -> SearchResult:
    """Try starts with other shares of a chip that rectangles are expected to cover, and return the quickest of their
    results and `best`. No more are tried when the result is at a limit or the work is used up; shares that do not fit
    are left out."""
    table = best.table
    if table is None or _is_enough(best):
        return best
    shares = [share for share, part in SHARES.items() if part not in best.objective.without]
    with closing(starts_with_results(table, best.objective, shares, context)) as starts:
        for share, (start, known_result) in zip(shares, starts, strict=False):
            with suppress(UnsupportedError):
                tried = try_start(context, table, start, known_result)
                best = _take_quicker(best, tried, SHARES[share])
            if _is_enough(best):
                break
    return best


def _take_quicker(best: SearchResult, other: SearchResult, part: str) -> SearchResult:
    """Return the quicker of two results. If it is `other`, record that `part` of the search, which found it, gained."""
    if comparable_cycles(other) < comparable_cycles(best):
        best.objective.record.gained.add(part)
        return other
    return best


def _refine_repeatedly(result: SearchResult, context: SearchContext, *, once: bool = False) -> SearchResult:
    """Return a result that is at least as quick, after more moves and corrections for each epoch; repeated for the
    epochs that gained, until a round gains less than `LEAST_SHARE_GAINED` or the bound of work is reached, or not at
    all if it is to be done `once`."""
    only: frozenset[int] | None = None
    is_repeated = False
    while True:
        table = result.table
        decisions = result.decisions
        if table is None or decisions is None or result.objective.record.stop_modelling():
            break
        if is_repeated and Part.MORE_ROUNDS in result.objective.without:
            break
        after = try_start(
            context,
            table,
            Start(
                decisions=dict(decisions), objective=result.objective, budget="high", entries=context.entries, only=only
            ),
        )
        before = result
        result = combine_epochs([result, after], context)
        if is_repeated and result is not before:
            result.objective.record.gained.add(Part.MORE_ROUNDS)
        only = quicker_epochs(before, result)
        if once or result.cycles > before.cycles * (1 - LEAST_SHARE_GAINED):
            break
        is_repeated = True
    return result


def _is_enough(best: SearchResult) -> bool:
    """Return whether trying other shares is pointless: the result is one epoch, the host link is its limit, or the
    bound of work is reached."""
    return best.placement.epochs == 1 or best.cycles <= best.host or best.objective.record.stop_modelling()


def single_input_decisions(
    table: CandidateTable, objective: Objective, context: SearchContext
) -> list[dict[str, PlacementDecision]]:
    """Return several decisions of all ops, in epochs for a single input that end where the longest path through their
    ops suggests: first those with ends at the same place of every layer, then those with ends anywhere. Placements are
    modelled to choose these places, and counted as work."""

    def cycles(decisions: Mapping[str, PlacementDecision]) -> float:
        """Return the modelled cycles of decisions, infinity where they do not fit."""
        try:
            return model_placement(
                context, objective, build_placement(table.tiles, table.target, decisions, objective, context.entries)
            ).cycles
        except UnsupportedError:
            return inf

    single = SingleInput.of(table, FULL)
    by_layers = single.decisions_by_layers(cycles, objective.without)
    return [*by_layers, single.decisions()]


def _try_single_input(table: CandidateTable, objective: Objective, context: SearchContext) -> list[SearchResult]:
    """Improve the epochs of each start that is cut for a single input, and return the results."""
    starts = single_input_decisions(table, objective, context)
    return [try_start(context, table, Start(decisions, objective, "default", context.entries)) for decisions in starts]
