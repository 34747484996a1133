"""The forms that a graph may be searched in, and which of several graphs of one model are worth a search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.blocks import size_of_tile
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL, cuts
from buda_emu.compiler.search.fracture import fractured
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
    """`plain` and what it becomes with slow pickers cut into fewer and more parts (`cut`); those that are equal once.
    `chips` in a pipeline; `chosen`: the numbers of the forms to search, where they compete with other graphs' forms."""

    plain: CandidateTable
    chips: int
    chosen: tuple[int, ...] = ()

    @staticmethod
    def of(tiles: TileGraph, target: Target, chips: int) -> "Forms":
        """Raises UnsupportedError for an op that fits no grid."""
        return Forms(CandidateTable.of(tiles, target), chips)

    def on(self, chips: int) -> "Forms":
        """The same for so many chips in a pipeline."""
        return self if chips == self.chips else Forms(self.plain, chips)

    @cached_property
    def cut(self) -> tuple[CandidateTable, ...]:
        """Raises UnsupportedError for an op that fits no grid."""
        found: dict[tuple[str, ...], CandidateTable] = {}
        for share in FRACTURES:
            made = fractured(self.plain, self.chips, share)
            key = tuple(made.ops)
            if key not in found:
                found[key] = (
                    self.plain if made is self.plain.tiles else CandidateTable.of(made, self.plain.target, self.plain)
                )
        return tuple(found.values())

    def likely(self, aim: Objective) -> list[CandidateTable]:
        """Those to search; on several chips each also with the deeper buffers that longer chains need."""
        if aim.chips > 1:
            return [item for line in self.cut for item in (line, line.corrected({}, ROOMY))]
        if aim.effort == "high" or len(self.cut) == 1:
            return list(self.cut)
        return [self.cut[number] for number in self.chosen or near(self.cycles(aim))]

    def cycles(self, aim: Objective) -> list[float]:
        """Of one input with each form, as the dynamic program over epochs estimates it; at least what the host link
        needs."""
        return [max(cuts(line, aim, FULL)[1] / aim.microbatch, self._host) for line in self.cut]

    @cached_property
    def _host(self) -> float:
        """Cycles of the host link for inputs and outputs."""
        tiles, target = self.plain.tiles, self.plain.target
        shapes = [queue.shape for queue in tiles.inputs.values()]
        shapes += [tiles.ops[output.op].shape for output in tiles.outputs.values()]
        size = size_of_tile(target.activation_df, target.arch.alignment)
        return sum(map(prod, shapes)) * size / speeds(target.chip).host


def near(times: Sequence[float]) -> list[int]:
    """The numbers of those that are not much longer than the shortest, from that on; a few of them."""
    order = sorted(range(len(times)), key=lambda number: times[number])
    return [number for number in order[:SEARCHES] if times[number] <= NEAR * min(times)]


def likely(graphs: Sequence[TileGraph], target: Target, aim: Objective) -> list[tuple[int, Forms | None]]:
    """The numbers of the graphs of one model that are worth a search, with their forms; on several chips that which is
    expected to be quickest. Raises UnsupportedError for an op that fits no grid."""
    if len(graphs) == 1 or aim.effort == "low" or aim.objective == "cores":
        return [(0, None)]
    found = [Forms.of(tiles, target, aim.chips) for tiles in graphs]
    each = [(n, k, time) for n, forms in enumerate(found) for k, time in enumerate(forms.cycles(aim))]
    if aim.chips > 1:
        best = min(each, key=lambda item: item[2])[0]
        return [(best, found[best])]
    chosen: dict[int, list[int]] = {}
    for number in near([time for _, _, time in each]):
        chosen.setdefault(each[number][0], []).append(each[number][1])
    return [(n, replace(found[n], chosen=tuple(numbers))) for n, numbers in chosen.items()]


__all__: Sequence[str] = ["Forms", "likely"]
