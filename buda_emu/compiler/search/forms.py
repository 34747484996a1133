"""The forms that a graph may be searched in, and which of several graphs of one model are worth a search."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.decision import placed
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL, cuts
from buda_emu.compiler.search.fracture import fractured
from buda_emu.compiler.search.starts import first_decisions
from buda_emu.compiler.target import Objective, Target

FRACTURES = (1.0, 0.3)
"""A picker is cut where it takes more than such a share of the work of all ops, spread over all cores."""
ROOMY = 1.0
"""Inputs that are on the way in each op of a chain, where epochs are long."""
NEAR = 1.25
"""Default effort leaves out what is expected to take so much longer than the best."""
SEARCHES = 3
"""Forms of all graphs of a model that default effort searches at most."""


@dataclass(frozen=True)
class Forms:
    """A graph, and what it becomes with slow pickers cut into fewer and more parts; those that are equal once. All are
    made when they are first asked for, and kept from effort to effort. `chosen`: the numbers of the forms to search,
    where they compete with other graphs' forms."""

    tiles: TileGraph
    target: Target
    chosen: tuple[int, ...] = ()
    _made: dict[int, tuple[CandidateTable, ...]] = field(default_factory=dict[int, tuple[CandidateTable, ...]])
    _first: list[tuple[Objective, int, Placement]] = field(default_factory=list[tuple[Objective, int, Placement]])

    def first(self, objective: Objective, entries: int) -> Placement:
        """The first legal choice, on as many chips. Raises UnsupportedError where there is none."""
        objective = replace(objective, effort="low")
        for known, count, placement in self._first:
            if (known, count) == (objective, entries):
                return placement
        made = placed(
            self.tiles, self.target, first_decisions(self.tiles, self.target, objective.chips), objective, entries
        )
        self._first.append((objective, entries, made))
        return made

    @property
    def plain(self) -> CandidateTable:
        """The graph as it is. Raises UnsupportedError for an op that fits no grid."""
        if 0 not in self._made:
            self._made[0] = (CandidateTable.of(self.tiles, self.target),)
        return self._made[0][0]

    def cut(self, chips: int) -> tuple[CandidateTable, ...]:
        """For so many chips in a pipeline; on several each also with the deeper buffers that longer chains need. Raises
        UnsupportedError for an op that fits no grid."""
        if chips not in self._made:
            plain = self.plain
            found: dict[tuple[str, ...], CandidateTable] = {}
            for share in FRACTURES:
                made = fractured(plain, chips, share)
                key = tuple(made.ops)
                if key not in found:
                    found[key] = plain if made is plain.tiles else CandidateTable.of(made, self.target, plain)
            tables = found.values()
            deeper = ((table, table.corrected({}, ROOMY)) if chips > 1 else (table,) for table in tables)
            self._made[chips] = tuple(table for pair in deeper for table in pair)
        return self._made[chips]

    def likely(self, objective: Objective) -> Sequence[CandidateTable]:
        """Those to search."""
        tables = self.cut(objective.chips)
        if objective.effort == "high" or objective.chips > 1 or len(tables) == 1:
            return tables
        return [tables[number] for number in self.chosen or near(self.cycles(objective))]

    def cycles(self, objective: Objective) -> list[float]:
        """Of one input with each form, as the dynamic program over epochs estimates it; at least what the host link
        needs."""
        return [
            max(cuts(table, objective, FULL)[1] / objective.microbatch, self._host)
            for table in self.cut(objective.chips)
        ]

    @property
    def _host(self) -> float:
        """Cycles of the host link for inputs and outputs."""
        tiles, target = self.tiles, self.target
        shapes = [queue.shape for queue in tiles.inputs.values()]
        shapes += [tiles.ops[output.op].shape for output in tiles.outputs.values()]
        size = size_of_tile(target.activation_df, target.arch.alignment)
        return sum(map(prod, shapes)) * size / speeds(target.chip).host


def near(times: Sequence[float]) -> list[int]:
    """The numbers of those that are not much longer than the shortest, from that on; a few of them."""
    order = sorted(range(len(times)), key=lambda number: times[number])
    return [number for number in order[:SEARCHES] if times[number] <= NEAR * min(times)]


def likely(graphs: Sequence[Forms], objective: Objective) -> list[tuple[int, Forms]]:
    """The numbers of the graphs of one model that are worth a search, with their forms; on several chips that which is
    expected to be quickest. Raises UnsupportedError for an op that fits no grid."""
    if len(graphs) == 1 or objective.effort == "low" or objective.objective == "cores":
        return [(0, graphs[0])]
    each = [(n, k, time) for n, forms in enumerate(graphs) for k, time in enumerate(forms.cycles(objective))]
    if objective.chips > 1:
        best = min(each, key=lambda item: item[2])[0]
        return [(best, graphs[best])]
    chosen: dict[int, list[int]] = {}
    for number in near([time for _, _, time in each]):
        chosen.setdefault(each[number][0], []).append(each[number][1])
    return [(n, replace(graphs[n], chosen=tuple(numbers))) for n, numbers in chosen.items()]


__all__: Sequence[str] = ["Forms", "likely"]
