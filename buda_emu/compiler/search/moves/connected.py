"""Grids that allow results to go from core to core, if the grids chosen for the pace would make the router go through
DRAM.

A core gives each of its readers' cores a stream of its own (`place/routable.py`), so few cores cannot feed many. More
cores of the producer share the readers out; fewer cores of a reader need fewer pipes. Which of them is quicker, and
whether any is quicker than DRAM, the timing model says (`improve.py`).
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.place.routed import Routing
from buda_emu.compiler.search.candidate_table import CandidateTable

SINGLE = 4
"""Producers that are tried alone: all together may need more cores than there are."""


@dataclass(frozen=True, slots=True)
class Way:
    """Whose grids are changed first, the producers' or the `readers`'; those of the others where none of these is of
    use. `only` of what one op gives, "" of all."""

    readers: bool = False
    only: str = ""


def ways(found: Placement, names: Container[str]) -> list[Way]:
    """What to try where some of these ops read through DRAM for lack of streams."""
    sources = list(dict.fromkeys(source for _, source in _crowded(found, names)))
    if not sources:
        return []
    alone = [Way(only=source) for source in sources[:SINGLE]] if len(sources) > 1 else []
    return [Way(), Way(readers=True), *alone]


def _crowded(found: Placement, names: Container[str]) -> list[tuple[str, str]]:
    """Reader and source of what goes through DRAM for lack of streams."""
    return [edge for edge, detour in found.detours.items() if edge[0] in names and detour.kind == "streams"]


def connected(
    table: CandidateTable, found: Placement, names: Container[str], way: Way
) -> tuple[CandidateTable, dict[str, str]] | None:
    """The line with only such divisions of some ops as their cores have streams for, and why, for each of these;
    `names` of the ops that are asked about. None where nothing goes through DRAM for lack of streams, or nothing else
    is possible."""
    routing = Routing.of(found)
    tables, bests, why = list(table.found), list(table.best), dict[str, str]()
    for reader, source in _crowded(found, names):
        if way.only not in ("", source):
            continue
        for name in (reader, source) if way.readers else (source, reader):
            own = [choice for choice in table.found[table.index[name]] if _connects(routing, source, name, choice)]
            if own:
                number = table.index[name]
                tables[number] = own
                bests[number] = [choice for choice in table.best[number] if choice in own] or own
                why[name] = found.detours[reader, source].why
                break
    return (replace(table, found=tables, best=bests), why) if why else None


def _connects(routing: Routing, source: str, name: str, choice: Choice) -> bool:
    """Whether all readers of a source had their pipes, if one op were divided so."""
    placed: Placed = routing.found.ops[name]
    held = placed.held if "table" in placed.op.attrs else choice.held
    return routing.would_connect(source, {name: replace(placed, blocks=choice.blocks, held=held)})


__all__: Sequence[str] = ["connected", "ways"]
