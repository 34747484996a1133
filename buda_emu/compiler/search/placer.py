"""Places a graph, from netlist ops to their blocks, cores, epochs, chips, queues and addresses: a beam over the forms
of the graph and the partitions of each into epochs (docs/compile/placing.md, "Three algorithms")."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, product
from math import prod

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.decision import PlacementDecision, build_placement
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.candidate_table import STEP, CandidateTable
from buda_emu.compiler.search.cuts import FULL, cut_epochs
from buda_emu.compiler.search.evaluate import EpochCache, Figures, evaluate_figures
from buda_emu.compiler.search.forms import Forms, likely_graphs
from buda_emu.compiler.search.improve import Start
from buda_emu.compiler.search.refine import refine_result
from buda_emu.compiler.search.speculative import SideBySide
from buda_emu.compiler.search.starts import first_decisions, searched_decisions
from buda_emu.compiler.search.tensor_parallel import share_products
from buda_emu.compiler.search.trials import (
    MORE_SHARES,
    SHARES,
    SearchContext,
    SearchResult,
    comparable_cycles,
    improve_with_workers,
    model_placement,
    starts_for_later,
    starts_with_results,
    try_form,
    try_start,
)
from buda_emu.compiler.search_parts import Part
from buda_emu.compiler.target import ONE_BY_ONE, Objective, Target
from buda_emu.performance.routing.pipes.build import build
from buda_emu.performance.routing.pipes.epoch import epochs
from buda_emu.support.errors import HostError, UnsupportedError

_LINK_RULES = ("V362", "V363", "V364")


def link_refusal(placement: Placement, objective: Objective) -> str:
    """Return why the links between chips have no room for the pipes of a placement, in words, or "" where they have.
    Chips that no cluster's file describes are taken to stand in a row."""
    if placement.stages == 1:
        return ""
    with_ids = replace(placement, ids=objective.ids, cluster=objective.cluster)
    for epoch in epochs(netlist_of(with_ids, "placement"), with_ids.links):
        if len({op.target_device for op in epoch.ops.values()}) == 1:
            continue
        try:
            refusals = build(epoch).refusals
        except UnsupportedError as error:
            return str(error)
        for refusal in refusals:
            if refusal.rule in _LINK_RULES:
                return f"op {refusal.op}: {refusal.what}"
    return ""


TRAINING = (0.5, 0.65, 0.8, FULL)
"""Shares of a chip's cores that rectangles are expected to cover, tried for a training, whose epochs are many and wait
for single inputs. What those other than `FULL` gain is measured as "training shares" (docs/compile/placing.md, "What
each part gains")."""
STEPS = (0.05, 0.5)
"""Steps that are tried for a training beside that of an inference (`candidate_table.STEP`). What they gain is measured
as "training steps" (docs/compile/placing.md, "What each part gains")."""
PIPES = (4, 2, 1)
"""Most pipes of an operand from another chip, tried in turn where links have no room for more (docs/compile/placing.md,
"Links between chips")."""
WORTH = (2_000.0, 20_000.0)
"""Cycles for which a constant has to keep DRAM busy for its product to be shared by several chips; the dynamic program
chooses between the two (docs/compile/placing.md, "Products shared out"). With less, putting the parts together again
costs more than the sharing gains."""


def place(tiles: TileGraph, target: Target, objective: Objective = ONE_BY_ONE, *, entries: int = 2) -> Placement:
    """Return the placement of a graph: a division, cores, an epoch and a chip for each op, and queues with addresses.
    `entries`: the rounds of inputs for which queues of inputs and outputs have room. Raises UnsupportedError where the
    graph does not fit, HostError as `_search_graph`."""
    return place_best([tiles], target, objective, entries=entries)[1]


def place_best(
    graphs: Sequence[TileGraph], target: Target, objective: Objective, *, entries: int = 2
) -> tuple[int, Placement]:
    """Search placements of several graphs of one model, and return the number of the quickest graph and its placement.
    High effort tries all that default effort does, too, so that it is never worse. `entries` and errors are those of
    `place`."""
    record = objective.record
    cache = EpochCache()
    workers = SideBySide(record.pool, cache) if record.pool is not None else None
    record.running = True
    try:
        number, best = _search_all_efforts(graphs, target, objective, SearchContext(entries, cache, workers=workers))
    finally:
        record.running = False
        if workers is not None:
            workers.close()
    placement = best.placement
    placement.given = graphs[number]
    placement.ids = objective.ids
    placement.record = objective.record
    placement.cluster = objective.cluster
    return number, placement


def _search_all_efforts(
    graphs: Sequence[TileGraph], target: Target, objective: Objective, context: SearchContext
) -> tuple[int, SearchResult]:
    """Return the number of the quickest graph, and its result. An objective of high effort is searched with default
    effort first; high effort follows unless the result is as quick as a limit that no placement undercuts, or the bound
    of work is used up."""
    forms = [Forms(tiles, target, objective.without) for tiles in graphs]
    first = objective
    if objective.effort == "high":
        first = replace(objective, effort="default")
    number, best = _search_graphs(forms, first, context)
    if objective.effort == "high":
        objective.record.bound_by = _limit_words(best)
        if not (objective.record.at_bound or objective.record.stop_modelling()):
            second_result = _search_graphs(forms, objective, context)
            number, best = min((number, best), second_result, key=lambda numbered: comparable_cycles(numbered[1]))
    return number, best


def _limit_words(best: SearchResult) -> str:
    """Return in words the limit that the best placement has reached and that no placement undercuts, "the host link" or
    "the math of all cores"; "" if it has reached none or was not modelled."""
    if best.chips <= 0 or best.cycles > best.bound:
        return ""
    if best.host >= best.bound:
        return "the host link"
    return "the math of all cores"


def _search_graphs(graphs: Sequence[Forms], objective: Objective, context: SearchContext) -> tuple[int, SearchResult]:
    """Search those of the graphs that are expected to be quick, refine the best result, and return the number of its
    graph and the result. Where the refined result overloads links between chips, the unrefined one is returned."""
    results = [(number, _search_graph(forms, objective, context)) for number, forms in likely_graphs(graphs, objective)]
    number, best = min(results, key=lambda numbered: comparable_cycles(numbered[1]))
    try:
        return number, _first_within_links([refine_result(best, context)])
    except _LinksFullError:
        return number, best


def _search_graph(forms: Forms, objective: Objective, context: SearchContext) -> SearchResult:
    """Return the best result for one graph. A graph with states, which one input leaves to the next, is searched one
    input at a time. Raises UnsupportedError where the graph does not fit, and HostError where several chips are asked
    for but are not connected or the graph has states."""
    if objective.chips > 1 and forms.target.arch.eth_cores == 0:
        raise HostError(f"compile: chips of {forms.target.title} are not connected: one only")
    if forms.tiles.states:  # what an input leaves in a ram the next one reads
        if objective.chips > 1:
            raise HostError("compile: what keeps states from input to input (training, caches) takes one chip")
        objective = replace(objective, microbatch=1)
        if forms.tiles.trains:
            return _search_training(forms, objective, context)
        return _search_pipeline(forms, context, objective)
    return _search_uses_of_chips(forms, objective, context)


def _copy_names_are_free(tiles: TileGraph, objective: Objective) -> bool:
    """Return whether the model can run as copies on several chips: no input or output already has the name `queue.chip`
    that a queue's copy on a chip would get, which net2pipe would mistake for the copy (NETLIST 1.7). The names of all
    other queues are chosen by the compiler."""
    names = {queue.name for queue in chain(tiles.inputs.values(), tiles.outputs.values())}
    chips = objective.ids or range(objective.chips)
    return names.isdisjoint(f"{name}.{chip}" for name, chip in product(names | {*tiles.constants}, chips))


def _search_uses_of_chips(forms: Forms, objective: Objective, context: SearchContext) -> SearchResult:
    """Return the best result over the ways to use the chips: a copy of the model on each, a pipeline over them, and
    products shared out over them. Copies are tried for throughput and shared products for latency, neither at low
    effort.

    If none of these has room in memory or on links, shared products and then a single chip are tried. Raises
    UnsupportedError where nothing fits."""
    cut = partial(_search_pipeline, forms, context)
    if objective.chips == 1:
        return _halve_until_fits(cut, objective)
    tiles = forms.tiles
    shared = partial(_share_products, tiles, forms.target, context)
    searches = [(cut, objective)]
    if objective.effort != "low" and objective.objective == "throughput" and _copy_names_are_free(tiles, objective):
        searches.insert(0, (cut, replace(objective, chips=1, copies=objective.chips)))
    if objective.effort != "low" and objective.objective == "latency":
        searches.append((shared, objective))
    results: list[SearchResult] = []
    refused: list[UnsupportedError] = []
    for search, search_objective in searches:
        try:
            result = _halve_until_fits(search, search_objective)
        except UnsupportedError as error:
            refused.append(error)
            continue
        results.append(result)
        if objective.objective == "throughput" and result.cycles <= result.host:  # as quick as the host link, or first
            break
    if results:
        return min(results, key=comparable_cycles)
    for search, search_objective in ((shared, objective), (cut, replace(objective, chips=1))):
        with suppress(UnsupportedError):
            return _halve_until_fits(search, search_objective)
    raise refused[-1]


def _search_training(forms: Forms, objective: Objective, context: SearchContext) -> SearchResult:
    """Return the best result for a training. Its microbatches run one after the other or, if that is quicker and no
    forward pass writes a state that the next input reads, all in one round. At low effort, and for a step of one
    microbatch, only the former is tried."""
    if objective.effort == "low" or objective.step == 1:
        return _search_pipeline(forms, context, objective)
    tiles = forms.tiles
    first = _search_pipeline(forms, context, replace(objective, effort="low"))
    first = SearchResult.of(objective, evaluate_figures(first.placement, context.epochs.figures))
    in_rams = [store.op for name, store in tiles.stores.items() if not store.accumulate or tiles.states[name].zeros]
    writers = {tiles.ops[name].program for name in in_rams}
    if not any(map(tiles.flows, writers)):
        with suppress(MemoryFullError):
            together = replace(objective, microbatch=objective.step)
            return min(first, _search_pipeline(forms, replace(context, entries=1), together), key=comparable_cycles)
    return min(first, _search_pipeline(forms, context, objective), key=comparable_cycles)


def _halve_until_fits(search: Callable[[Objective], SearchResult], objective: Objective) -> SearchResult:
    """Call `search` with the objective and return its result; each time memory has no room, call it again with half as
    many inputs in a round. Raises MemoryFullError where a single input does not fit, or where the objective's round is
    `firm`."""
    while True:
        try:
            return search(objective)
        except MemoryFullError:
            if objective.microbatch == 1 or objective.firm:
                raise
            objective = replace(objective, microbatch=objective.microbatch // 2)


def _search_pipeline(forms: Forms, context: SearchContext, objective: Objective) -> SearchResult:
    """Return the best result for a graph on one chip, or cut into a pipeline over all chips of the objective. At low
    effort that is the first legal placement, and where few cores are the objective, the placement with the fewest;
    neither is modelled. Raises _LinksFullError where links between chips have no room."""
    tiles = forms.tiles
    target = forms.target
    first = forms.first_placement(objective, context.entries)
    if objective.effort == "low":
        return _first_within_links([SearchResult(objective, first)])
    if objective.objective == "cores":
        searched = build_placement(
            tiles, target, searched_decisions(forms.plain, objective, FULL), objective, context.entries
        )
        candidates = sorted((searched, first), key=_core_count)
        return _first_within_links([SearchResult(objective, candidate) for candidate in candidates])
    if tiles.trains:
        tables = forms.likely_tables(objective)
        first_figures = evaluate_figures(first, context.epochs.figures)
        return SearchResult.of(objective, _training_figures(tables, objective, context, first_figures))
    if objective.effort == "default" and objective.record.effort == "high":
        _announce_high_effort(forms, objective, context)
    tried = _try_forms(forms, objective, context)
    best_tried = min(tried, key=comparable_cycles)
    tried.append(SearchResult.of(objective, evaluate_figures(first, context.epochs.figures)))
    best = _first_within_links(sorted(tried, key=comparable_cycles))
    if best.table is None:  # the first legal placement: refinement tries the best form that was searched
        return replace(best, table=best_tried.table)
    return best


def _announce_high_effort(forms: Forms, objective: Objective, context: SearchContext) -> None:
    """Give workers the starts that high effort will try after default effort, so that idle workers begin them. Does
    nothing without workers."""
    if context.workers is not None:
        tables = forms.likely_tables(replace(objective, effort="high"))
        context.workers.later = chain(
            *(starts_for_later(table, objective, (*SHARES, *MORE_SHARES), context) for table in tables)
        )


def _try_forms(forms: Forms, objective: Objective, context: SearchContext) -> list[SearchResult]:
    """Try each likely form of a graph with each share of a chip that rectangles may cover, as many as the effort asks
    for, until the bound of work is reached. Returns the results, at least one."""
    shares = [FULL]
    if objective.effort == "high":
        shares += [*SHARES, *MORE_SHARES]
    tried: list[SearchResult] = []
    for table in forms.likely_tables(objective):
        for start, known_result in starts_with_results(table, objective, shares, context):
            if not tried or not objective.record.stop_modelling():
                tried.append(try_start(context, table, start, known_result))
    return tried


class _LinksFullError(UnsupportedError):
    """Ethernet links have no room for the pipes between the chips of a placement."""


def _first_within_links(results: Sequence[SearchResult]) -> SearchResult:
    """Return the first result whose pipes between chips find room on the links. Raises _LinksFullError with the reason
    for the first result."""
    reasons = [""]
    for result in results:
        if result.placement.stages == 1 or not (why := link_refusal(result.placement, result.objective)):
            return result
        reasons.append(why)
    raise _LinksFullError(f"compile: {reasons[1]}")


def _training_figures(
    tables: Sequence[CandidateTable], objective: Objective, context: SearchContext, first: Figures
) -> Figures:
    """Return the best modelled figures for a training, never worse than `first`, those of the first legal placement.
    Each table is packed with several expectations, and only the best packing has its ops moved and its estimates
    corrected."""
    tried: dict[tuple[int, float, float], tuple[Figures, dict[str, PlacementDecision]]] = {}

    def make(number: int, decisions: Mapping[str, PlacementDecision]) -> Placement:
        """Build the placement of decisions on table `number`. Raises MemoryFullError."""
        return build_placement(tables[number].tiles, tables[number].target, decisions, objective, context.entries)

    def try_packing(number: int, full: float, step: float) -> None:
        """Pack table `number` for the share `full` of cores that rectangles are expected to cover and the delay `step`
        of each op of a chain, model the placement, and add both to `tried`. Nothing is added where memory has no room,
        or where the work is used up and something was tried."""
        if tried and objective.record.stop_modelling():
            return
        decisions = searched_decisions(tables[number], objective, full, step)
        with suppress(MemoryFullError):  # more epochs have more between them
            tried[number, full, step] = model_placement(context, objective, make(number, decisions)), decisions

    def quickest() -> tuple[int, float, float]:
        """Return the table's number, share and step of the quickest packing in `tried`."""
        return min(tried, key=lambda key: tried[key][0].cycles)

    without = objective.without
    for number in range(len(tables)):
        for full in (FULL,) if Part.TRAINING_SHARES in without else TRAINING:
            try_packing(number, full, STEP)
    if not tried:
        return first
    number, full, _ = quickest()
    for step in () if Part.TRAINING_STEPS in without else STEPS:
        try_packing(number, full, step)
    number, *_ = key = quickest()
    best = min(tried[key], (first, {}), key=lambda attempt: attempt[0].cycles)[0]
    decisions = tried[key][1]
    for effort in ("training", "high") if objective.effort == "high" else ("training",):
        start = Start(decisions, objective, effort, context.entries)
        decisions = improve_with_workers(context, tables[number], start)
        best = min(
            model_placement(context, objective, make(number, decisions)), best, key=lambda attempt: attempt.cycles
        )
    return best


def _share_products(tiles: TileGraph, target: Target, context: SearchContext, objective: Objective) -> SearchResult:
    """Return the best result with products shared out over the chips, cut once for each limit of `WORTH`. High effort
    tries these graphs as they are, if links have room. Otherwise only the one that is expected to be quicker is tried,
    with fewer and fewer pipes between chips until links have room. Raises UnsupportedError where no product can be
    shared out, or links have no room."""
    graphs = [share_products(tiles, target, objective.chips, cycles) for cycles in WORTH]
    tables = [
        CandidateTable.of(graph, target)
        for n, graph in enumerate(graphs)
        if graph is not tiles and n == _first_with_same_ops(graphs, n)
    ]
    if not tables:
        raise UnsupportedError("compile: no product by a constant whose columns chips could share")
    if objective.effort == "high":
        with suppress(_LinksFullError):
            results = [try_form(table, objective, context) for table in tables]
            return _first_within_links(sorted(results, key=comparable_cycles))
    tables.sort(key=lambda form: cut_epochs(form, objective, FULL)[1])
    for max_pipes in (0, *PIPES):
        if max_pipes:
            limited = tables[0].limit_pipes(max_pipes)
        else:
            limited = tables[0]
        with suppress(_LinksFullError):
            decisions = searched_decisions(limited, objective, FULL)
            placement = build_placement(limited.tiles, target, decisions, objective, context.entries)
            first = _first_within_links([SearchResult(objective, placement)])
            if objective.effort == "low":
                return first
            return _first_within_links([try_form(limited, objective, context)])
    raise UnsupportedError("compile: links have no room for what chips that share a product send to each other")


def _first_with_same_ops(graphs: Sequence[TileGraph], number: int) -> int:
    """Return the number of the first graph whose ops have the same names as those of graph `number`, to search equal
    graphs once."""
    return next(n for n, graph in enumerate(graphs) if graph.ops.keys() == graphs[number].ops.keys())


def first_placement(placement: Placement) -> Placement | None:
    """Return the first legal placement for the same graph, chips, copies and microbatch as those of a placement, to
    compare the two; None where it does not fit."""
    tiles = placement.given or placement.tiles
    if tiles.states:
        microbatch = 1
    else:
        microbatch = placement.microbatch
    objective = Objective(
        "low", chips=placement.stages, microbatch=microbatch, copies=placement.copies, step=placement.step
    )
    try:
        return build_placement(
            tiles,
            placement.target,
            first_decisions(tiles, placement.target, placement.stages),
            objective,
            max(2, placement.step),
        )
    except UnsupportedError:
        return None


def _core_count(placement: Placement) -> int:
    """Return the sum of the cores of all ops over all epochs."""
    return sum(prod(placed.blocks.grid) for placed in placement.ops.values())
