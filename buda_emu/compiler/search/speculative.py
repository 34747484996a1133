"""Epochs that workers improve before the search asks for them. The search takes their results as if it had found them
itself, in its own order and within its own bound of work, so its result is the same for any number of workers.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.improve import Known, Start, epochs_alike, of_epoch
from buda_emu.compiler.target import Objective
from buda_emu.compiler.work import Work
from buda_emu.workers.job import Job

JOB: Final = Job("buda_emu.compiler.search.speculative:worker")


def ahead(line: CandidateTable, starts: Iterable[Start | None], aim: Objective) -> Generator[Known, None, None]:
    """What workers find for each start, in their order; nothing without workers, or where there is none."""
    crew = aim.work.crew
    if crew is None:
        for _ in starts:
            yield {}
        return
    form = crew.share(_without_values(line))
    counts: list[int] = []
    where: list[tuple[int, int]] = []

    def items() -> Iterator[Any]:
        for number, start in enumerate(starts):
            if start is None:
                counts.append(0)
                continue
            own = replace(start, aim=replace(start.aim, work=Work()))
            try:
                alike = epochs_alike(line, start)
            except MemoryFullError:  # the search will find it, too
                alike = []
            token = crew.share(own)
            todo = [(epoch, names) for epoch, (first, names) in enumerate(alike) if first == epoch]
            counts.append(len(todo))
            for epoch, names in todo:
                where.append((number, epoch))
                yield form, token, names

    found: dict[int, dict[int, tuple[list[PlacementDecision], int]]] = {}
    told = 0
    with closing(crew.spread(items())) as results:
        for place, result in results:
            number, epoch = where[place]
            found.setdefault(number, {})[epoch] = result
            while told < len(counts) - 1 and len(found.get(told, {})) == counts[told]:
                crew.send_ahead()
                yield found.pop(told, {})
                told += 1
    while told < len(counts):
        yield found.pop(told, {})
        told += 1


class _Shape:
    """In place of the values of a constant, which the search of epochs does not look at."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _without_values(line: CandidateTable) -> CandidateTable:
    bare: Any = {name: replace(item, values=_Shape(item.values.shape)) for name, item in line.tiles.constants.items()}  # type: ignore[arg-type]
    return replace(line, tiles=replace(line.tiles, constants=bare))


def worker(_about: None) -> Callable[[tuple[CandidateTable, Start, list[str]]], tuple[list[PlacementDecision], int]]:
    """The work of `JOB`: what becomes of the ops of an epoch, and the ops that were modelled for it."""

    def improve(item: tuple[CandidateTable, Start, list[str]]) -> tuple[list[PlacementDecision], int]:
        line, start, names = item
        work = Work()
        return of_epoch(line, start, work, names), work.modelled

    return improve
