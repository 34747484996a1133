"""One case: its search as it is, and without each of its parts."""

import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import torch

import buda_emu as be
from buda_emu.compiler import pipeline
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.evaluate import evaluate_figures
from buda_emu.compiler.search.placer import place_best
from buda_emu.compiler.search_parts import TRACKED
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import Objective, Target

from .cases import Case
from .table import TOGETHER

Row = dict[str, Any]


class Asked(frozenset[str]):
    """An empty set of parts that are left out, which notes the parts that a search asks for: a search that does not ask
    for a part is the same without it."""

    parts: set[str]

    def __contains__(self, part: object) -> bool:
        """Note the part; none is left out."""
        if isinstance(part, str):
            self.parts.add(part)
        return False


@dataclass(frozen=True)
class _Search:
    """The arguments of a search, so that it can run again without some parts."""

    graphs: Sequence[TileGraph]
    target: Target
    objective: Objective
    entries: int

    def run(self, without: frozenset[str]) -> Row:
        """Search again from nothing without some parts; return the cycles of one input, the processor seconds, and how
        many ops were modelled for it."""
        objective = replace(self.objective, record=SearchRecord.begin(self.objective.effort), without=without)
        begin = time.process_time()
        _, placement = place_best(self.graphs, self.target, objective, entries=self.entries)
        seconds = time.process_time() - begin
        cycles = evaluate_figures(placement, {}).cycles
        return {
            "cycles": cycles,
            "seconds": round(seconds, 3),
            "modelled": objective.record.modelled,
            "cut": objective.record.cut,
            "epochs": placement.epochs,
        }


@contextmanager
def _searches(asked: Asked) -> Generator[list[_Search]]:
    """Record the searches of a compilation and, in `asked`, the parts that they ask for. Searches of low effort, which
    choose what is searched, do not count."""
    searches: list[_Search] = []

    def record(
        graphs: Sequence[TileGraph], target: Target, objective: Objective, *, entries: int = 2
    ) -> tuple[int, Placement]:
        if objective.effort != "low":
            searches.append(_Search(graphs, target, objective, entries))
            objective = replace(objective, without=asked)
        return place_best(graphs, target, objective, entries=entries)

    with patch.object(pipeline, "place_best", record):
        yield searches


def rows(case: Case, parts: Sequence[str], *, with_base: bool) -> Iterator[Row]:
    """Yield a row for each of the parts, and first, `with_base`, one with the name "" for the search as it is. That
    runs once before it is timed, as it leaves costs of ops in caches. Nothing is searched without a part for which the
    search did not ask, or which gained nothing in it: the result would be the same. A part may be several, with a plus
    between them."""
    asked = Asked()
    asked.parts = set()
    with torch.no_grad(), warnings.catch_warnings(), _searches(asked) as searches:
        warnings.simplefilter("ignore")
        case()
    search = searches[-1]
    record = search.objective.record
    changed = asked.parts
    if not record.cut:
        changed = changed - (TRACKED - record.gained)
    if with_base:
        yield {"part": "", **search.run(frozenset())}
    for part in parts:
        without = frozenset(part.split(TOGETHER))
        if without.isdisjoint(changed):
            yield {"part": part, "asked": False}
            continue
        try:
            yield {"part": part, **search.run(without), "asked": True}
        except be.BudaError as error:
            yield {"part": part, "problem": str(error).splitlines()[0], "asked": True}
