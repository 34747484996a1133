"""One trial of the search: the epochs of a form of a graph are improved from a starting point, and the timing model
evaluates the result.
"""

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.evaluate import Figures, figures
from buda_emu.compiler.search.improve import Known, Spots, Start, improved
from buda_emu.compiler.search.speculative import Later, ahead
from buda_emu.compiler.search.starts import searched_spots
from buda_emu.compiler.target import Objective
from buda_emu.compiler.work import Trial
from buda_emu.errors import UnsupportedError

SHARES = (0.8, 0.88, 1.0)
"""Other shares of a chip's cores that rectangles are taken to cover: high effort tries them with every form of a graph,
default effort with the best form of the best graph, on one chip, where there are epochs to cut."""
MORE_SHARES = (0.65, 0.7, 0.75, 0.84, 0.91)
"""Those that high effort tries with every form beside these."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a graph came to: a placement, the cycles of one input, those of the host link, those of the chips alone, and
    those that no placement undercuts (the math of all cores, the host link); the best `line` that was searched, the
    `spots` of the placement on it; `aim` in rounds that memory has room for."""

    aim: Objective
    placement: Placement
    cycles: float = 0.0
    host: float = 0.0
    chips: float = 0.0
    bound: float = 0.0
    line: CandidateTable | None = None
    spots: Mapping[str, PlacementDecision] | None = None

    @staticmethod
    def of(
        aim: Objective,
        best: Figures,
        line: CandidateTable | None = None,
        spots: Mapping[str, PlacementDecision] | None = None,
    ) -> "Found":
        """With what the timing model says."""
        return Found(aim, best.placement, best.cycles, best.host, best.chips, best.bound, line, spots)


def cycles_of(found: Found) -> tuple[float, float]:
    """Of one input; where the host link takes longer, of the chips."""
    return found.cycles, found.chips


def told(aim: Objective, placement: Placement) -> Figures:
    """What the timing model says of a whole placement, as part of the work."""
    aim.work.modelled += len(placement.ops)
    found = figures(placement, aim.work.epochs)
    aim.work.trials.append(Trial(aim.effort, found.cycles))
    return found


def try_form(line: CandidateTable, aim: Objective, full: float, entries: int) -> Found:
    """A form of a graph, where rectangles are expected to cover such a share of a chip."""
    return try_start(line, Start(searched_spots(line, aim, full), aim, "default", entries))


def try_start(line: CandidateTable, start: Start, known: Known | None = None) -> Found:
    """What a start comes to; `known`: what workers do of it. One that was tried before, with any effort, came to the
    same."""
    work = start.aim.work
    before = tried(line, start)
    if before is not None:
        work.trials.append(Trial(start.aim.effort, before.cycles))
        return replace(before, aim=start.aim)
    if known is None:
        spots = improved_with_workers(line, start)
    else:
        spots = improved(line, start, known)
    found = Found.of(start.aim, told(start.aim, start.make(line, spots)), line, spots)
    work.tried.append((start, found))
    return found


def improved_with_workers(line: CandidateTable, start: Start) -> Spots:
    """As `improved`, of one start by itself."""
    with closing(ahead(line, [start], start.aim)) as known:
        return improved(line, start, next(known))


def tried(line: CandidateTable, start: Start) -> Found | None:
    """What a start came to that was tried before."""
    earlier: list[tuple[Start, Found]] = start.aim.work.tried
    return next((found for other, found in earlier if found.line is line and other.is_like(start)), None)


def try_later(line: CandidateTable, aim: Objective, shares: Sequence[float], entries: int) -> Later:
    """Starts of a form of a graph that are going to be tried, for workers that have nothing else to do."""
    for full in shares:
        with suppress(UnsupportedError):
            start = Start(searched_spots(line, aim, full), aim, "default", entries)
            if tried(line, start) is None:
                aim.work.begun.append((line, full, start))
                yield line, start


def _begun(line: CandidateTable, aim: Objective, full: float, entries: int) -> Start:
    """A start, made now or before."""
    for number, (known, share, start) in enumerate(aim.work.begun):
        if known is line and share == full and (replace(start.aim, effort=aim.effort), start.entries) == (aim, entries):
            del aim.work.begun[number]
            start.aim = aim
            return start
    return Start(searched_spots(line, aim, full), aim, "default", entries)


def starts_of(
    line: CandidateTable, aim: Objective, shares: Sequence[float], entries: int
) -> Generator[tuple[Start, Known], None, None]:
    """A form of a graph, where rectangles are expected to cover such shares of a chip, and what workers do of it."""
    made: deque[Start] = deque()

    def each() -> Iterator[Start | None]:
        for full in shares:
            made.append(_begun(line, aim, full, entries))
            yield made[-1] if tried(line, made[-1]) is None else None

    with closing(ahead(line, each(), aim)) as found:
        for known in found:
            yield made.popleft(), known  # which holds its placement: not longer than it is improved
