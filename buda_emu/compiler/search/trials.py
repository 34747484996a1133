"""One trial of the search: the epochs of a form of a graph are improved from a starting point, and the timing model
evaluates the result.
"""

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL
from buda_emu.compiler.search.evaluate import EpochCache, Figures, evaluate_figures
from buda_emu.compiler.search.improve import Decisions, KnownResult, Start, improve_epochs
from buda_emu.compiler.search.speculative import Later, SideBySide, improve_ahead
from buda_emu.compiler.search.starts import searched_decisions
from buda_emu.compiler.search_parts import Part
from buda_emu.compiler.search_record import Trial
from buda_emu.compiler.target import Objective
from buda_emu.support.errors import UnsupportedError

SHARES = {0.8: Part.SHARE_80, 0.88: Part.SHARE_88, 1.0: Part.SHARE_100}
"""Other shares of a chip's cores that rectangles are expected to cover. High effort tries them with every form of a
graph; default effort with the best form of the best graph, on one chip, where there are epochs to cut
(docs/compile/placing.md, "The search", step 4)."""
MORE_SHARES = (0.65, 0.7, 0.75, 0.84, 0.91)
"""Shares that high effort tries with every form beside these. On BERT-base (wormhole_b0, Float16_b, HiFi3) the five
save 4.3 % of the cycles (docs/compile/placing.md)."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: a placement with its modelled cycles.

    `cycles`, `host`, `chips`, `bound` and `epochs` are those of `Figures`, 0 and empty for a placement that was not
    modelled. `decisions` are those of the placement on `table`, None for the first legal one; `table` is then the best
    one that was searched, None if nothing was. `objective` has as many inputs in a round as memory has room for."""

    objective: Objective
    placement: Placement
    cycles: float = 0.0
    host: float = 0.0
    chips: float = 0.0
    bound: float = 0.0
    epochs: tuple[float, ...] = ()
    table: CandidateTable | None = None
    decisions: Mapping[str, PlacementDecision] | None = None

    @staticmethod
    def of(
        objective: Objective,
        best: Figures,
        table: CandidateTable | None = None,
        decisions: Mapping[str, PlacementDecision] | None = None,
    ) -> "SearchResult":
        """Return the result of a placement with the figures of the timing model, and the table and decisions that it
        follows from, if it was searched."""
        figures = best.placement, best.cycles, best.host, best.chips, best.bound, best.epochs
        return SearchResult(objective, *figures, table, decisions)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The state that the searches of a compilation share.

    `entries`: the rounds of inputs for which queues have room; `epochs`: the results for single epochs, so that
    identical layers are modelled once; `tried`: the results of starts, used again by an effort that tries the same
    ones; `begun`: starts that workers have begun before they are tried, each with its table and its share of a chip;
    `workers`: what shares the search with other processes, None where there are none."""

    entries: int = 2
    epochs: EpochCache = field(default_factory=EpochCache)
    tried: list[tuple[Start, SearchResult]] = field(default_factory=list[tuple[Start, SearchResult]])
    begun: list[tuple[CandidateTable, float, Start]] = field(default_factory=list[tuple[CandidateTable, float, Start]])
    workers: SideBySide | None = None


def comparable_cycles(result: SearchResult) -> tuple[float, float]:
    """Return the cycles of one input and those of the chips alone, to compare results: where the host link limits both,
    the chips decide."""
    return result.cycles, result.chips


def model_placement(context: SearchContext, objective: Objective, placement: Placement) -> Figures:
    """Return the modelled figures of a whole placement. Its ops are counted as modelled, and the trial is added to the
    objective's record."""
    objective.record.modelled += len(placement.ops)
    modelled = evaluate_figures(placement, context.epochs.figures)
    objective.record.trials.append(Trial(objective.effort, modelled.cycles))
    return modelled


def try_form(table: CandidateTable, objective: Objective, context: SearchContext) -> SearchResult:
    """Try a form of a graph with the share `FULL` of a chip that rectangles are expected to cover, and return its
    result. Raises UnsupportedError, MemoryFullError included, where it does not fit."""
    start = Start(searched_decisions(table, objective, FULL), objective, "default", context.entries)
    return try_start(context, table, start)


def try_start(
    context: SearchContext, table: CandidateTable, start: Start, known_result: KnownResult | None = None
) -> SearchResult:
    """Improve the epochs of a start, model the placement and return the result, which is also added to `context.tried`.
    A start that was tried before, with any effort, has the same result as then. `known_result` returns what workers
    found for its epochs; with None workers are asked for them here. Raises MemoryFullError."""
    record = start.objective.record
    before = earlier_result(context, table, start)
    if before is not None:
        record.trials.append(Trial(start.objective.effort, before.cycles))
        return replace(before, objective=start.objective)
    if known_result is None:
        decisions = improve_with_workers(context, table, start)
    else:
        decisions = improve_epochs(table, start, known_result, context.epochs)
    result = SearchResult.of(
        start.objective, model_placement(context, start.objective, start.make(table, decisions)), table, decisions
    )
    context.tried.append((start, result))
    return result


def improve_with_workers(context: SearchContext, table: CandidateTable, start: Start) -> Decisions:
    """Return the decisions of a start with improved epochs, as `improve_epochs` does, with the help of workers if the
    search has any."""
    with closing(improve_ahead(table, [start], context.workers)) as known_results:
        return improve_epochs(table, start, next(known_results), context.epochs)


def earlier_result(context: SearchContext, table: CandidateTable, start: Start) -> SearchResult | None:
    """Return the result of an equal start of the same table that was tried before, whatever the effort was; None if
    there is none."""
    return next((result for other, result in context.tried if result.table is table and other.is_like(start)), None)


def starts_for_later(
    table: CandidateTable, objective: Objective, shares: Sequence[float], context: SearchContext
) -> Later:
    """Yield starts of a form of a graph that are going to be tried, for workers that have nothing else to do: one for
    each of the shares of a chip that rectangles may cover, except those already tried and those that do not fit. Each
    is added to `context.begun`."""
    for full in shares:
        with suppress(UnsupportedError):
            start = Start(searched_decisions(table, objective, full), objective, "default", context.entries)
            if earlier_result(context, table, start) is None:
                context.begun.append((table, full, start))
                yield table, start


def _begun_or_new_start(table: CandidateTable, objective: Objective, full: float, context: SearchContext) -> Start:
    """Remove a start that workers have begun from `context.begun` and return it with this objective; if there is none
    for the table and the share `full` of a chip that rectangles are expected to cover, return a new start. Raises
    UnsupportedError for an op that has no room."""
    for number, (begun_table, share, start) in enumerate(context.begun):
        if (
            begun_table is table
            and share == full
            and (replace(start.objective, effort=objective.effort), start.entries) == (objective, context.entries)
        ):
            del context.begun[number]
            start.objective = objective
            return start
    return Start(searched_decisions(table, objective, full), objective, "default", context.entries)


def starts_with_results(
    table: CandidateTable, objective: Objective, shares: Sequence[float], context: SearchContext
) -> Generator[tuple[Start, KnownResult], None, None]:
    """Yield a start of a form of a graph for each share of a chip that rectangles may cover, with the function that
    returns the results of workers for its epochs; the function returns None where workers have none. Close the
    generator to withdraw the starts that are not tried."""
    starts: deque[Start] = deque()

    def starts_to_improve() -> Iterator[Start | None]:
        """Yield for each share the start that workers should improve, None if its result is known, and append it to
        `starts` either way."""
        for full in shares:
            starts.append(_begun_or_new_start(table, objective, full, context))
            yield starts[-1] if earlier_result(context, table, starts[-1]) is None else None

    with closing(improve_ahead(table, starts_to_improve(), context.workers)) as known_results:
        for known_result in known_results:
            yield starts.popleft(), known_result  # which holds its placement: not longer than it is improved
