"""Refinement that is tried only with the best form of the best graph."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import NamedTuple

from buda_emu.compiler.place.decision import PlacementDecision, placed
from buda_emu.compiler.place.rows import stacked, streamed
from buda_emu.compiler.search.candidate_table import CandidateTable, alike
from buda_emu.compiler.search.cuts import FULL
from buda_emu.compiler.search.improve import Start, as_like_ops
from buda_emu.compiler.search.single_input import SingleInput
from buda_emu.compiler.search.trials import SHARES, Found, cycles_of, starts_of, told, try_form, try_start
from buda_emu.compiler.target import Objective
from buda_emu.support.errors import UnsupportedError

Decisions = Mapping[str, PlacementDecision]
LEAST_GAIN_IN_CYCLES = 100.0
"""Cycles that a change is expected to save, at least, before it is modelled."""


class _Change(NamedTuple):
    """Other decisions for the ops `start` to `stop`, with their epochs counted from 0, and the cycles that these may
    save."""

    start: int
    stop: int
    decisions: Decisions
    gain: float


def combined(found: Sequence[Found], entries: int) -> Found:
    """Return the best result, or a quicker one that combines the best epochs of all results with the same form."""
    best, *others = sorted(found, key=cycles_of)
    table = best.table
    if table is None or best.decisions is None:
        return best
    for other in others:
        if other.table is table and other.decisions is not None:
            best = _changed(table, best, [*_of_other(table, best, other)], entries)
    return _changed(table, best, [*_of_alike(table, best)], entries)


def by_rank(found: Sequence[Found], entries: int, count: int) -> list[Found]:
    """Return up to `count` results of the same form as the best one: the best of each program together, then the next
    best of each whose epochs end elsewhere, and so on."""
    best = min(found, key=cycles_of)
    table = best.table
    if table is None or best.decisions is None:
        return [best]
    same_form = [item for item in found if item.table is table and item.decisions is not None]
    ranks: list[dict[int, _Change]] = []
    for start, stop in _programs(table):
        elsewhere: dict[frozenset[int], _Change] = {}
        for item in sorted(same_form, key=lambda item: _within(_cycles(table, item), start, stop)):
            ends = frozenset(end for end in _cycles(table, item) if start < end <= stop)
            elsewhere.setdefault(ends, _change(table, item.decisions or {}, start, stop))
        own = [*elsewhere.values()][:count]
        ranks += [{} for _ in own[len(ranks) :]]
        for rank, change in zip(ranks, own, strict=False):
            rank[start] = change
    first = ranks[0]
    made = [_made(table, best, _with(table, {}, {**first, **rank}), entries) for rank in ranks]
    return [item for item in made if item is not None] or [best]


def _programs(table: CandidateTable) -> Iterator[tuple[int, int]]:
    """Yield the first op of each program, and the op after its last one."""
    start = 0
    while start < len(table.ops):
        yield start, int(table.stops[start])
        start = int(table.stops[start])


def _of_other(table: CandidateTable, best: Found, other: Found) -> Iterator[_Change]:
    """Yield the quicker parts of another placement, between ends of epochs that both have."""
    mine = _cycles(table, best)
    theirs = _cycles(table, other)
    for start, stop in pairwise(sorted({0, *mine} & {0, *theirs})):
        gain = _within(mine, start, stop) - _within(theirs, start, stop)
        if gain > LEAST_GAIN_IN_CYCLES:
            yield _change(table, other.decisions or {}, start, stop, gain)


def _of_alike(table: CandidateTable, best: Found) -> Iterator[_Change]:
    """Yield for epochs of like ops the decisions of the quickest one, where they differ."""
    cycles = _cycles(table, best)
    decisions = best.decisions or {}
    groups: dict[object, list[tuple[int, int]]] = {}
    for start, stop in pairwise([0, *cycles]):
        groups.setdefault(alike(table.tiles, table.ops[start:stop]), []).append((start, stop))
    for group in groups.values():
        first, last = min(group, key=lambda ends: cycles[ends[1]])
        quickest = [decisions[op.name] for op in table.ops[first:last]]
        for start, stop in group:
            gain = cycles[stop] - cycles[last]
            if gain > LEAST_GAIN_IN_CYCLES:
                own = as_like_ops(table, [op.name for op in table.ops[start:stop]], quickest, 0) or {}
                if any(decisions[name].placed_otherwise(item) for name, item in own.items()):
                    yield _change(table, own, start, stop, gain)


def _change(table: CandidateTable, decisions: Decisions, start: int, stop: int, gain: float = 0.0) -> _Change:
    """Return the change that takes over decisions for the ops `start` to `stop`."""
    own = {op.name: decisions[op.name] for op in table.ops[start:stop]}
    order = {epoch: number for number, epoch in enumerate(sorted({item.epoch for item in own.values()}))}
    return _Change(start, stop, {name: replace(item, epoch=order[item.epoch]) for name, item in own.items()}, gain)


def _changed(table: CandidateTable, best: Found, changes: Sequence[_Change], entries: int) -> Found:
    """Return the result with the changes that make it quicker: all of them, else one after the other, the greatest gain
    first."""
    order = sorted(changes, key=lambda change: (-change.gain, change.start))
    found = _tried(table, best, order, entries) if order else best
    if found is best and len(order) > 1:
        for change in order:
            found = _tried(table, found, [change], entries)
    return found


def _tried(table: CandidateTable, best: Found, changes: Sequence[_Change], entries: int) -> Found:
    """Return the result with all of the changes, if that is quicker and memory has room for it."""
    if best.objective.work.stop_modelling():
        return best
    found = _made(table, best, _with(table, best.decisions or {}, {item.start: item for item in changes}), entries)
    return best if found is None else min(best, found, key=cycles_of)


def _made(table: CandidateTable, best: Found, decisions: Decisions, entries: int) -> Found | None:
    """Evaluate other decisions; None where memory has no room for them."""
    try:
        placement = placed(table.tiles, table.target, decisions, best.objective, entries)
    except UnsupportedError:
        return None
    return Found.of(best.objective, told(best.objective, placement), table, decisions)


def _with(table: CandidateTable, decisions: Decisions, changes: Mapping[int, _Change]) -> dict[str, PlacementDecision]:
    """Return the decisions with changes, which are listed by their first op; epochs are numbered anew."""
    found: dict[str, PlacementDecision] = {}
    before: tuple[int, int] | None = None
    epoch = -1
    change = None
    for number, op in enumerate(table.ops):
        if change is None or number >= change.stop:
            change = changes.get(number)
        own = (change.decisions if change is not None else decisions)[op.name]
        now = -1 if change is None else change.start, own.epoch
        epoch = epoch + (now != before)
        before = now
        found[op.name] = replace(own, epoch=epoch)
    return found


def quicker_epochs(before: Found, after: Found) -> frozenset[int]:
    """Return the epochs of `after` that take less time than before, or begin or end elsewhere."""
    if after.table is None or after.table is not before.table:
        return frozenset(range(len(after.epochs)))
    old, new = (
        {ends: each[ends[1]] for ends in pairwise([0, *each])}
        for each in (_cycles(after.table, item) for item in (before, after))
    )
    return frozenset(number for number, ends in enumerate(new) if new[ends] < old.get(ends, inf))


def _cycles(table: CandidateTable, found: Found) -> dict[int, float]:
    """Return the cycles of each epoch with loading it, by the op after the epoch, in order."""
    decisions = found.decisions or {}
    stops = {decisions[op.name].epoch: number + 1 for number, op in enumerate(table.ops)}
    return {stops[epoch]: cycles for epoch, cycles in enumerate(found.epochs)}


def _within(cycles: Mapping[int, float], start: int, stop: int) -> float:
    """Return the cycles of all epochs between two ends."""
    return sum(each for end, each in cycles.items() if start < end <= stop)


REFINED = 2
"""Number of the epochs found for a single input that are refined, for each program."""
ROUNDS = 6
"""Most rounds of moves and corrections."""
LEAST_SHARE_GAINED = 0.0005
"""Share of an input's cycles that a round has to gain for another one to be tried."""
SLICES = (2, 4)
"""Numbers of slices of the rows of a single input; the larger number is tried where the smaller one helps."""
ROWS = 2
"""Slices of a single input that are put below each other; with more, ops wait longer for each other."""


def refined(best: Found, entries: int) -> Found:
    """Return the result after the refinements that are tried with the best form of the best graph only.

    For a single input these are slices along t, and epochs that are found for a single input; for all, the other shares
    of a chip that rectangles may cover, and more moves and corrections from there."""
    objective = best.objective
    searched = best.table
    if searched is None:
        return best
    refined_one: Found | None = None
    if (
        objective.microbatch == 1
        and objective.chips == 1
        and not (searched.assigned or searched.tiles.trains or objective.work.stop_modelling())
    ):
        forms = searched, _with_rows(searched)
        single = [found for form in forms if form is not None for found in _one_by_one(form, objective, entries)]
        ended = [_to_the_end(found, entries, 1) for found in by_rank(single, entries, REFINED)]
        refined_one = _to_the_end(combined([*single, *ended], entries), entries)
        best = min(best, refined_one, key=cycles_of)
    for count in SLICES if objective.microbatch == 1 and not objective.work.stop_modelling() else ():
        found = _quicker(best, _in_slices(searched, count), FULL, entries)
        if found is best:
            break
        best = found
    again = objective.effort == "default" or best.table is not searched
    table = best.table
    if table is not None and objective.chips == 1 and again and not _is_enough(best):
        with closing(starts_of(table, objective, SHARES, entries)) as made:
            for start, known in made:
                with suppress(UnsupportedError):
                    best = min(best, try_start(table, start, known), key=cycles_of)
                if _is_enough(best):
                    break
    if best.cycles > best.host and best is not refined_one:
        best = _to_the_end(best, entries)
    return best


def _to_the_end(found: Found, entries: int, rounds: int = ROUNDS) -> Found:
    """Apply more moves and corrections to each epoch and combine the best ones; repeat this for the epochs that gain,
    within the bound of work."""
    only: frozenset[int] | None = None
    for _ in range(rounds):
        table = found.table
        decisions = found.decisions
        if table is None or decisions is None or found.objective.work.stop_modelling():
            break
        after = try_start(
            table,
            Start(decisions=dict(decisions), objective=found.objective, budget="high", entries=entries, only=only),
        )
        before = found
        found = combined([found, after], entries)
        only = quicker_epochs(before, found)
        if found.cycles > before.cycles * (1 - LEAST_SHARE_GAINED):
            break
    return found


def _is_enough(best: Found) -> bool:
    """Return whether there are no other cuts of epochs, nothing more can be gained, or the work is used up."""
    return best.placement.epochs == 1 or best.cycles <= best.host or best.objective.work.stop_modelling()


def decisions_of_one(table: CandidateTable, objective: Objective, entries: int) -> list[dict[str, PlacementDecision]]:
    """Return decisions of all ops in epochs for a single input, by the longest path through their ops; epochs of like
    layers come first."""

    def cycles(decisions: Mapping[str, PlacementDecision]) -> float:
        """Return the modelled cycles of decisions, infinity where they do not fit."""
        try:
            return told(objective, placed(table.tiles, table.target, decisions, objective, entries)).cycles
        except UnsupportedError:
            return inf

    single = SingleInput.of(table, FULL)
    return [*single.decisions_by_layers(cycles), single.decisions()]


def _one_by_one(table: CandidateTable, objective: Objective, entries: int) -> list[Found]:
    """Try epochs for a single input."""
    made = decisions_of_one(table, objective, entries)
    return [try_start(table, Start(item, objective, "default", entries)) for item in made]


def _with_rows(table: CandidateTable) -> CandidateTable | None:
    """Return the form with slices of ops below each other, so that more cores share row-by-row work; None where there
    are none."""
    cut = stacked(table.tiles, ROWS)
    try:
        return None if cut is table.tiles else CandidateTable.of(cut, table.target, table)
    except UnsupportedError:
        return None


def _quicker(best: Found, table: CandidateTable | None, full: float, entries: int) -> Found:
    """Return the best result, or that of another form if memory has room for it and it is quicker."""
    if table is None:
        return best
    try:
        return min(best, try_form(table, best.objective, full, entries), key=cycles_of)
    except UnsupportedError:
        return best


def _in_slices(table: CandidateTable, count: int) -> CandidateTable | None:
    """Return the form with its ops in slices of their rows along t, which follow each other through the ops of an
    epoch; None where nothing can be cut."""
    cut = streamed(table.tiles, table.target, count)
    try:
        return None if cut is table.tiles else CandidateTable.of(cut, table.target)
    except UnsupportedError:
        return None
