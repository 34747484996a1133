"""The forms that a graph may be searched in, and which of several graphs of one model are worth a search."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from buda_emu.compiler.lower.picker import PickTable, WorkDivision
from buda_emu.compiler.lower.tiles import RELU, TileGraph, TileOp, Use, over, select_attributes
from buda_emu.compiler.passes.folding import rounds
from buda_emu.compiler.place.blocks import replace_table, size_of_tile
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.decision import build_placement
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.place.rows import Slices, drop_unread_constants, gather_picker
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL, cut_epochs
from buda_emu.compiler.search.starts import first_decisions
from buda_emu.compiler.search_parts import EVERYTHING, Part, Parts
from buda_emu.compiler.target import Objective, Target


def fracture_pickers(table: CandidateTable, chips: int, share: float) -> TileGraph:
    """Return the table's graph with slow convolutions as sums of several convolutions: those whose pickers take longer
    than `share` of the work of all ops, spread over the cores of `chips` chips. Each picker is cut into as few as are
    quick enough. The same object when there is none."""
    limit = _most_picker_cycles(table, chips, share)
    tiles = table.tiles
    for op, op_choices in zip(table.ops, table.best, strict=True):
        quickest = min(choice.cycles for choice in op_choices)
        if quickest <= limit:
            continue
        product = _product_of_taps(tiles, op)
        if product is None:
            continue
        taps = _count_taps(product)
        count = next((n for n in range(2, taps + 1) if taps % n == 0 and quickest / n <= limit), taps)
        tiles = _fracture(tiles, op, product, count)
    return tiles


def _most_picker_cycles(table: CandidateTable, chips: int, share: float) -> float:
    """Return the cycles that a picker may take before it is changed: `share` of the work of all ops, spread over the
    cores of all chips."""
    cores = prod(table.target.arch.grid) * chips
    return share * sum(min(choice.cycles * choice.cores for choice in op_choices) for op_choices in table.best) / cores


def spread_pickers(table: CandidateTable, tiles: TileGraph, share: float) -> TileGraph:
    """Return `tiles`, a form of the table's graph, with the slices of slow pickers below each other: of those that take
    longer than `share` of the work of all ops, spread over the cores of one chip. The same object when there is none.

    Rows of cores share the rows of a slice. A picker whose slices are one tile high, as the last one of an image of few
    channels, has one row of cores; with its slices below each other it has as many as there are slices."""
    limit = _most_picker_cycles(table, 1, share)
    quickest = {
        op.name: min(choice.cycles for choice in op_choices)
        for op, op_choices in zip(table.ops, table.best, strict=True)
    }
    graph = replace(tiles, ops={}, constants=dict(tiles.constants))
    arranged: dict[str, Slices] = {}
    for op in tiles.ops.values():
        new_op = op
        if any(use.source in arranged for use in op.uses):
            uses = [arranged[use.source].reader_use(use) if use.source in arranged else use for use in op.uses]
            new_op = replace(op, uses=uses)
        slow = "table" in op.attrs and op.name not in tiles.shown and quickest.get(op.name, 0.0) > limit
        gathered = (
            gather_picker(graph.constants, table.target, new_op, quickest[op.name] / max(limit, 1.0)) if slow else None
        )
        if gathered is not None:
            new_op, arranged[op.name] = gathered
        graph.ops[op.name] = new_op
    if not arranged:
        return tiles
    drop_unread_constants(graph)
    graph.places = {name: place for name, place in tiles.places.items() if place[0] not in arranged}
    return graph


def _product_of_taps(tiles: TileGraph, op: TileOp) -> TileOp | None:
    """Return the product that makes a convolution of a picker, if it can be a sum of several: the picker's only reader,
    which multiplies its taps side by side (hstack) by a constant. None where there is no such product."""
    if "table" not in op.attrs or op.shape[0] < 2:
        return None
    readers = [other for other in tiles.ops.values() if any(use.source == op.name for use in other.uses)]
    if len(readers) != 1 or not readers[0].has("inner dimension") or readers[0].attrs.get("identity"):
        return None
    product = readers[0]
    left = product.uses[0]
    side_by_side = (("hstack", op.shape[0] // product.shape[0]),)
    takes_taps = (left.source, left.tms) == (op.name, side_by_side) and _count_taps(product) > 1
    return product if takes_taps and _can_become_sum(tiles, product) else None


def _can_become_sum(tiles: TileGraph, product: TileOp) -> bool:
    """Return whether a product may be a sum of several: its second factor is one slice of a constant, and nothing but a
    bias and a ReLU is applied to the result."""
    factor = product.uses[1]
    constant = tiles.constants.get(factor.source)
    if constant is None or constant.values.shape[0] != 1 or factor.tms != over((product.shape[0], 1, 1)):
        return False
    return not (product.attrs.get("sfpu_op") or product.attrs.get("dequant"))  # these are of the whole sum


def _count_taps(product: TileOp) -> int:
    """Return the number of taps of a convolution: the slices of the picker's result that the product, which reads them
    side by side (hstack), multiplies as one."""
    return int(product.uses[0].tms[0][-1])


def _fracture(tiles: TileGraph, op: TileOp, product: TileOp, count: int) -> TileGraph:
    """Return the graph with a convolution, the picker `op` and its `product`, as a sum of `count` convolutions, each of
    an equal share of the taps. The last addition takes the name and the activation of the product."""
    every = _count_taps(product)
    taps = every // count
    table: PickTable = op.attrs["table"]
    weights = tiles.constants[product.uses[1].source]
    constants = dict(tiles.constants)
    height = taps * 32
    if product.type != "depthwise":  # which has a row of diagonals for each tap (OPS 6.3)
        height *= op.shape[2]
    new_ops: list[TileOp] = []
    used_names = {*tiles.ops, *constants, *tiles.inputs, *tiles.states}
    stems = (f"{op.name}.taps", f"{product.name}.part", f"{product.name}.sum")
    pick, part, total = (_unused_stem(used_names, stem) for stem in stems)
    before_end = select_attributes(product.attrs, product.attrs.keys() - {*RELU})
    terms = product.uses[2:]
    without_bias = select_attributes(before_end, before_end.keys() - {"bias"})
    first_terms = terms
    last_terms: list[Use] = []
    if any(rounds(constants[use.source].values) for use in terms):
        first_terms = []
        last_terms = terms
        before_end = without_bias
    sums = count - 1 + len(last_terms)

    def add(number: int, term: Use) -> TileOp:
        """Return addition `number` from 1 of the sum: the sum so far plus `term`. The last one takes the name and the
        activation of the product."""
        if number > 1:
            before = f"{total}.{number - 1}"
        else:
            before = f"{part}.0"
        addition = replace(product, type="add", uses=[Use(before), term], inner=0)
        if number < sums:
            return replace(addition, name=f"{total}.{number}", attrs={})
        return replace(addition, attrs=select_attributes(product.attrs, RELU))

    if taps > 1:
        side_by_side = (("hstack", taps),)
    else:
        side_by_side = ()
    for number in range(count):
        part_table = table.part(number * taps, taps, every)
        new_ops.append(
            replace_table(constants, replace(op, name=f"{pick}.{number}"), part_table, WorkDivision(op.attrs["rows"]))
        )
        name = f"{part}.{number}.weights"
        constants[name] = replace(weights, name=name, values=weights.values[:, number * height : (number + 1) * height])
        uses = [Use(f"{pick}.{number}", side_by_side), Use(name, product.uses[1].tms)]
        part_op = replace(product, name=f"{part}.{number}", uses=uses, attrs=without_bias, inner=product.inner // count)
        if number == 0:
            new_ops.append(replace(part_op, uses=[*uses, *first_terms], attrs=before_end))
        else:
            new_ops += (part_op, add(number, Use(part_op.name)))
    new_ops += [add(sums, term) for term in last_terms]
    return replace(tiles, ops=_with_replacement(tiles.ops, op, product, new_ops), constants=constants)


def _with_replacement(
    ops: Mapping[str, TileOp], picker: TileOp, product: TileOp, new_ops: Sequence[TileOp]
) -> dict[str, TileOp]:
    """Return the ops of a graph, by name and in their order, with `new_ops` in the place of a product and without its
    picker."""
    replaced: dict[str, TileOp] = {}
    for op in ops.values():
        if op.name == product.name:
            replaced |= {new_op.name: new_op for new_op in new_ops}
        elif op.name != picker.name:
            replaced[op.name] = op
    return replaced


def _unused_stem(used_names: set[str], stem: str) -> str:
    """Return the stem, with underscores after it until no used name begins with it and a dot, so that numbers can
    follow the dot."""
    while any(name.startswith(f"{stem}.") for name in used_names):
        stem += "_"
    return stem


FRACTURES = (1.0, 0.3)
"""Shares of the work of all ops, spread over all cores, that a picker may take in the two forms of a graph: pickers
that take longer are cut (docs/compile/placing.md, "The search", step 3). What the lower share gains is measured as
"pickers cut finer" ("What each part gains")."""
NEAR = 1.25
"""Factor by which the expected cycles of a form may exceed those of the best for default effort to search it
(docs/compile/placing.md, "The search", step 3). No measurement of the figure is recorded."""
SEARCHES = 3
"""Most forms, over all graphs of a model, that default effort searches. No measurement of the figure is recorded."""


@dataclass(frozen=True)
class Forms:
    """A graph, and the different forms that it takes when slow pickers are cut into fewer or more parts.

    Forms are built when they are first needed and cached over all efforts. `chosen` are the numbers of the forms to
    search, where those of several graphs were compared, empty where they were not; `without`: parts of the search that
    are left out."""

    tiles: TileGraph
    target: Target
    without: Parts = EVERYTHING
    chosen: tuple[int, ...] = ()
    _made: dict[int, tuple[CandidateTable, ...]] = field(default_factory=dict[int, tuple[CandidateTable, ...]])
    _first: list[tuple[Objective, int, Placement]] = field(default_factory=list[tuple[Objective, int, Placement]])

    def first_placement(self, objective: Objective, entries: int) -> Placement:
        """Return the first legal placement on as many chips as the objective has, with queues of inputs and outputs for
        `entries` rounds. Raises UnsupportedError where there is none."""
        objective = replace(objective, effort="low")
        for earlier_objective, count, placement in self._first:
            if (earlier_objective, count) == (objective, entries):
                return placement
        first_placement = build_placement(
            self.tiles, self.target, first_decisions(self.tiles, self.target, objective.chips), objective, entries
        )
        self._first.append((objective, entries, first_placement))
        return first_placement

    @property
    def plain(self) -> CandidateTable:
        """The table of the graph without cut pickers. Raises UnsupportedError for an op that fits no grid."""
        if 0 not in self._made:
            self._made[0] = (CandidateTable.of(self.tiles, self.target),)
        return self._made[0][0]

    def tables(self, chips: int) -> tuple[CandidateTable, ...]:
        """Return the tables of all forms of the graph for a pipeline of `chips` chips, the graph's own among them.
        Raises UnsupportedError for an op that fits no grid."""
        if chips not in self._made:
            plain = self.plain
            forms_by_ops: dict[object, CandidateTable] = {}
            for graph in self._graphs(plain, chips):
                key = tuple((op.name, op.shape) for op in graph.ops.values())
                if graph is plain.tiles:
                    forms_by_ops.setdefault(key, plain)
                elif key not in forms_by_ops:
                    forms_by_ops[key] = CandidateTable.of(graph, self.target, plain)
            self._made[chips] = tuple(forms_by_ops.values())
        return self._made[chips]

    def _graphs(self, plain: CandidateTable, chips: int) -> Iterator[TileGraph]:
        """Yield the forms of the graph, equal ones several times: with slow pickers cut into few parts and into more
        and, on one chip, each of these with the slices of the slow pickers that are left below each other, too."""
        fractured = [(fracture_pickers(plain, chips, share), share) for share in FRACTURES]
        if any(graph is not plain.tiles for graph, _ in fractured):
            if Part.CUT_PICKERS in self.without:
                fractured = [(plain.tiles, share) for share in FRACTURES]
            elif Part.FINER_CUT in self.without:
                fractured = fractured[:1]
        for graph, _ in fractured:
            yield graph
        if chips == 1 and not self.tiles.trains:
            for graph, share in fractured:
                spread = spread_pickers(plain, graph, share)
                if spread is not graph and Part.SPREAD_PICKERS not in self.without:
                    yield spread

    def likely_tables(self, objective: Objective) -> Sequence[CandidateTable]:
        """Return the forms that the search tries: all of them at effort "high" and for several chips, else those that
        were chosen or whose estimate is nearly the best."""
        tables = self.tables(objective.chips)
        if objective.effort == "high" or objective.chips > 1 or len(tables) == 1:
            return tables
        return [tables[number] for number in self.chosen or nearly_best(self.cycles(objective), objective)]

    def cycles(self, objective: Objective) -> list[float]:
        """Return for each form the cycles of one input as the dynamic program over epochs estimates them, but no fewer
        than the host link needs."""
        return [
            max(cut_epochs(table, objective, FULL)[1] / objective.microbatch, self._host_cycles)
            for table in self.tables(objective.chips)
        ]

    @property
    def _host_cycles(self) -> float:
        """The cycles for which one input and its outputs occupy the host link."""
        tiles = self.tiles
        target = self.target
        shapes = [queue.shape for queue in tiles.inputs.values()]
        shapes += [tiles.ops[output.op].shape for output in tiles.outputs.values()]
        size = size_of_tile(target.activation_df, target.arch.alignment)
        return sum(map(prod, shapes)) * size / speeds(target.chip).host


def nearly_best(times: Sequence[float], objective: Objective) -> list[int]:
    """Return the numbers of the shortest of these times, shortest first: up to `SEARCHES` of them, none longer than
    `NEAR` times the shortest."""
    order = sorted(range(len(times)), key=lambda number: times[number])
    near = [number for number in order[:SEARCHES] if times[number] <= NEAR * min(times)]
    if len(near) > 1 and Part.OTHER_FORMS in objective.without:
        return near[:1]
    return near


def likely_graphs(graphs: Sequence[Forms], objective: Objective) -> list[tuple[int, Forms]]:
    """Return the graphs of one model that are worth a search, each with its number and the numbers of the forms to try
    in `chosen`. On several chips that is only the graph that is expected to be quickest; at effort "low", or where few
    cores are the objective, the first one. Raises UnsupportedError for an op that fits no grid."""
    if len(graphs) == 1 or objective.effort == "low" or objective.objective == "cores":
        return [(0, graphs[0])]
    expectations: list[tuple[int, int, float]] = []
    for n, forms in enumerate(graphs):
        expectations += [(n, k, time) for k, time in enumerate(forms.cycles(objective))]
    if objective.chips > 1:
        best = min(expectations, key=lambda expectation: expectation[2])[0]
        return [(best, graphs[best])]
    chosen: dict[int, list[int]] = {}
    for number in nearly_best([time for _, _, time in expectations], objective):
        chosen.setdefault(expectations[number][0], []).append(expectations[number][1])
    return [(n, replace(graphs[n], chosen=tuple(numbers))) for n, numbers in chosen.items()]
