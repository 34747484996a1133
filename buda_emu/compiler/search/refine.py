"""Refinement that is tried only with the best form of the best graph."""

from contextlib import closing, suppress

from buda_emu.compiler.place.stacked import stacked
from buda_emu.compiler.place.streamed import streamed
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL
from buda_emu.compiler.search.improve import Start
from buda_emu.compiler.search.single_input import spots_of_one
from buda_emu.compiler.search.trials import SHARES, Found, cycles_of, starts_of, try_form, try_start
from buda_emu.compiler.target import Objective
from buda_emu.errors import UnsupportedError

SLICES = (2, 4)
"""Of the rows of a single input; more are tried where fewer are of use."""
ROWS = 2
"""Slices of a single input that are put below each other: with more, ops wait longer for each other."""


def refined(best: Found, entries: int) -> Found:
    """With what is tried with the best form of the best graph only, where it is of use: of a single input slices along
    t, the other shares of a chip that rectangles may be taken to cover, and more moves and corrections from there, and
    from epochs that were found for a single input, which may gain more by them."""
    aim, searched = best.aim, best.line
    if searched is None:
        return best
    single: list[Found] = []
    if aim.microbatch == 1 and aim.chips == 1 and not (searched.assigned or searched.tiles.trains or aim.work.spent()):
        forms = searched, _with_rows(searched)
        single = [_one_by_one(form, aim, entries) for form in forms if form is not None]
        best = min(best, *single, key=cycles_of)
    for count in SLICES if aim.microbatch == 1 and not aim.work.spent() else ():
        found = _quicker(best, _in_slices(searched, count), FULL, entries)
        if found is best:
            break
        best = found
    again = aim.effort == "default" or best.line is not searched
    line = best.line
    if line is not None and aim.chips == 1 and again and not _is_enough(best):
        with closing(starts_of(line, aim, SHARES, entries)) as made:
            for start, known in made:
                with suppress(UnsupportedError):
                    best = min(best, try_start(line, start, known), key=cycles_of)
                if _is_enough(best):
                    break
    for found in (best, *(item for item in single if item is not best)):
        if found.line is not None and found.spots is not None and best.cycles > best.host and not aim.work.spent():
            last = Start(dict(found.spots), aim, "high", entries)
            best = min(best, try_start(found.line, last), key=cycles_of)
    return best


def _is_enough(best: Found) -> bool:
    """Whether there are no epochs to cut otherwise, or nothing more can be gained, or may be tried."""
    return best.placement.epochs == 1 or best.cycles <= best.host or best.aim.work.spent()


def _one_by_one(line: CandidateTable, aim: Objective, entries: int) -> Found:
    """With epochs for a single input, by the longest way through their ops."""
    return try_start(line, Start(spots_of_one(line, FULL), aim, "default", entries))


def _with_rows(line: CandidateTable) -> CandidateTable | None:
    """The form with slices of ops of many slices below each other, so that more cores share what is done row by row;
    None where there are none."""
    cut = stacked(line.tiles, ROWS)
    try:
        return None if cut is line.tiles else CandidateTable.of(cut, line.target, line)
    except UnsupportedError:
        return None


def _quicker(best: Found, line: CandidateTable | None, full: float, entries: int) -> Found:
    """The best, or what another form or share comes to, where memory has room for it and it is quicker."""
    if line is None:
        return best
    try:
        return min(best, try_form(line, best.aim, full, entries), key=cycles_of)
    except UnsupportedError:
        return best


def _in_slices(line: CandidateTable, count: int) -> CandidateTable | None:
    """The form with its ops in slices of their rows along t, which follow each other through the ops of an epoch; None
    where nothing can be cut."""
    cut = streamed(line.tiles, line.target, count)
    try:
        return None if cut is line.tiles else CandidateTable.of(cut, line.target)
    except UnsupportedError:
        return None
