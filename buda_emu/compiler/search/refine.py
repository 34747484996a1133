"""Refinement that is tried only with the best form of the best graph."""

from collections.abc import Mapping
from contextlib import closing, suppress
from math import inf

from buda_emu.compiler.place.decision import PlacementDecision, placed
from buda_emu.compiler.place.stacked import stacked
from buda_emu.compiler.place.streamed import streamed
from buda_emu.compiler.search.best_epochs import by_rank, combined, quicker_epochs
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL
from buda_emu.compiler.search.improve import Start
from buda_emu.compiler.search.single_input import SingleInput
from buda_emu.compiler.search.trials import SHARES, Found, cycles_of, starts_of, told, try_form, try_start
from buda_emu.compiler.target import Objective
from buda_emu.errors import UnsupportedError

REFINED = 2
"""Of the epochs that are found for a single input those that are refined: of each program as many."""
ROUNDS = 6
"""Of more moves and corrections, at most."""
GAIN = 0.0005
"""The share of an input's cycles that a round has to gain so that another one is tried."""
SLICES = (2, 4)
"""Of the rows of a single input; more are tried where fewer are of use."""
ROWS = 2
"""Slices of a single input that are put below each other: with more, ops wait longer for each other."""


def refined(best: Found, entries: int) -> Found:
    """With what is tried with the best form of the best graph only, where it is of use: of a single input slices along
    t, the other shares of a chip that rectangles may be taken to cover, and more moves and corrections from there, and
    from epochs that were found for a single input, which may gain more by them."""
    objective, searched = best.objective, best.table
    if searched is None:
        return best
    refined_one: Found | None = None
    if (
        objective.microbatch == 1
        and objective.chips == 1
        and not (searched.assigned or searched.tiles.trains or objective.work.spent())
    ):
        forms = searched, _with_rows(searched)
        single = [found for form in forms if form is not None for found in _one_by_one(form, objective, entries)]
        ended = [_to_the_end(found, entries, 1) for found in by_rank(single, entries, REFINED)]
        refined_one = _to_the_end(combined([*single, *ended], entries), entries)
        best = min(best, refined_one, key=cycles_of)
    for count in SLICES if objective.microbatch == 1 and not objective.work.spent() else ():
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
    """With more moves and corrections from there, of each epoch the best; and again for those that gain by it, as far
    as there is work left to be done."""
    only: frozenset[int] | None = None
    for _ in range(rounds):
        table, decisions = found.table, found.decisions
        if table is None or decisions is None or found.objective.work.spent():
            break
        after = try_start(table, Start(dict(decisions), found.objective, "high", entries, only))
        before, found = found, combined([found, after], entries)
        only = quicker_epochs(before, found)
        if found.cycles > before.cycles * (1 - GAIN):
            break
    return found


def _is_enough(best: Found) -> bool:
    """Whether there are no epochs to cut otherwise, or nothing more can be gained, or may be tried."""
    return best.placement.epochs == 1 or best.cycles <= best.host or best.objective.work.spent()


def decisions_of_one(table: CandidateTable, objective: Objective, entries: int) -> list[dict[str, PlacementDecision]]:
    """Of all ops, in epochs for a single input, by the longest way through their ops; those of layers alike first."""

    def cycles(decisions: Mapping[str, PlacementDecision]) -> float:
        try:
            return told(objective, placed(table.tiles, table.target, decisions, objective, entries)).cycles
        except UnsupportedError:
            return inf

    single = SingleInput.of(table, FULL)
    return [*single.decisions_by_layers(cycles), single.decisions()]


def _one_by_one(table: CandidateTable, objective: Objective, entries: int) -> list[Found]:
    """With epochs for a single input."""
    made = decisions_of_one(table, objective, entries)
    return [try_start(table, Start(item, objective, "default", entries)) for item in made]


def _with_rows(table: CandidateTable) -> CandidateTable | None:
    """The form with slices of ops of many slices below each other, so that more cores share what is done row by row;
    None where there are none."""
    cut = stacked(table.tiles, ROWS)
    try:
        return None if cut is table.tiles else CandidateTable.of(cut, table.target, table)
    except UnsupportedError:
        return None


def _quicker(best: Found, table: CandidateTable | None, full: float, entries: int) -> Found:
    """The best, or what another form or share comes to, where memory has room for it and it is quicker."""
    if table is None:
        return best
    try:
        return min(best, try_form(table, best.objective, full, entries), key=cycles_of)
    except UnsupportedError:
        return best


def _in_slices(table: CandidateTable, count: int) -> CandidateTable | None:
    """The form with its ops in slices of their rows along t, which follow each other through the ops of an epoch; None
    where nothing can be cut."""
    cut = streamed(table.tiles, table.target, count)
    try:
        return None if cut is table.tiles else CandidateTable.of(cut, table.target)
    except UnsupportedError:
        return None
