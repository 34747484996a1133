"""From netlist ops to their blocks, cores, epochs, chips, queues and addresses (docs/placing.md)."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from buda_emu.compiler.lower.tiles import TileGraph
from buda_emu.compiler.place.candidates import first_choice
from buda_emu.compiler.place.core_grid import CoreGrid
from buda_emu.compiler.place.decision import PlacementDecision, placed
from buda_emu.compiler.place.memory import MemoryFullError
from buda_emu.compiler.place.placement import Placed, Placement, Queue
from buda_emu.compiler.place.stacked import stacked
from buda_emu.compiler.place.streamed import streamed
from buda_emu.compiler.search.across import across
from buda_emu.compiler.search.ahead import ahead
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.cuts import FULL, STEP, cuts
from buda_emu.compiler.search.evaluate import Evaluated, judged
from buda_emu.compiler.search.forms import Forms, likely
from buda_emu.compiler.search.improve import Known, Start, improved
from buda_emu.compiler.search.links import overfull
from buda_emu.compiler.search.pack import in_epochs, pack
from buda_emu.compiler.search.report import limits
from buda_emu.compiler.search.single import spots_of_one
from buda_emu.compiler.target import ONE_BY_ONE, Objective, Target
from buda_emu.compiler.work import Trial
from buda_emu.errors import HostError, UnsupportedError

SHARES = (0.8, 0.88, 1.0)
"""Other shares of a chip's cores that rectangles are taken to cover: high effort tries them with every form of a graph,
default effort with the best form of the best graph, on one chip, where there are epochs to cut."""
TRAINING = (0.5, 0.65, 0.8, FULL)
STEPS = (0.05, 0.5)
"""The same of a training, whose epochs are many and wait for single inputs; and how much later each op of a chain is
taken to begin, beside what an inference takes."""
PIPES = (4, 2, 1)
"""For an operand from another chip, at most, where links have no room for more."""
SLICES = (2, 4)
"""Of the rows of a single input; more are tried where fewer are of use."""
ROWS = 2
"""Slices of a single input that are put below each other: with more, ops wait longer for each other."""
WORTH = (2_000.0, 20_000.0)
"""Cycles for which a constant has to keep DRAM busy for its product to be shared out over chips: what takes longer is
gained, what is put together again is lost by it."""


@dataclass(frozen=True, slots=True)
class _Found:
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
        best: Evaluated,
        line: CandidateTable | None = None,
        spots: Mapping[str, PlacementDecision] | None = None,
    ) -> "_Found":
        """With what the timing model says."""
        chips = sum(best.run.programs().values()) / (best.placement.inputs * best.placement.rounds)
        bound = max(limits(best).math, best.host)
        return _Found(aim, best.placement, best.cycles, best.host, chips, bound, line, spots)


def place(tiles: TileGraph, target: Target, aim: Objective = ONE_BY_ONE, *, entries: int = 2) -> Placement:
    """Blocks, cores, epochs, queues and addresses of a graph; queues have room for `entries` rounds of inputs. Raises
    UnsupportedError for what does not fit."""
    return place_best([tiles], target, aim, entries=entries)[1]


def place_best(
    graphs: Sequence[TileGraph], target: Target, aim: Objective, *, entries: int = 2
) -> tuple[int, Placement]:  # fmt: skip
    """Of several graphs of one model the quickest: its number and its placement. High effort tries all that the default
    does, too, so that it is never worse. Raises as `place`."""
    aim.work.running = True
    try:
        number, best = _with_effort(graphs, target, aim, entries)
    finally:
        aim.work.running = False
        if aim.work.crew is not None:
            aim.work.crew.close()
    placement = best.placement
    placement.given, placement.ids, placement.work = graphs[number], aim.ids, aim.work
    placement.cluster = aim.cluster
    return number, placement


def _with_effort(graphs: Sequence[TileGraph], target: Target, aim: Objective, entries: int) -> "tuple[int, _Found]":
    """The number of the quickest graph, after all efforts."""
    first = "default" if aim.effort == "high" else aim.effort
    number, best = _best_of(graphs, target, replace(aim, effort=first), entries)
    if aim.effort == "high":
        aim.work.at_bound = best.chips > 0 and best.cycles <= best.bound
        if not (aim.work.at_bound or aim.work.spent()):
            more = _best_of(graphs, target, aim, entries)
            number, best = min((number, best), more, key=lambda item: _cycles(item[1]))
    return number, best


def _best_of(graphs: Sequence[TileGraph], target: Target, aim: Objective, entries: int) -> "tuple[int, _Found]":
    """The number of the graph that one effort finds quickest."""
    found = [
        (number, _searched(graphs[number], target, aim, entries, forms))
        for number, forms in likely(graphs, target, aim)
    ]
    number, best = min(found, key=lambda item: _cycles(item[1]))
    refined = _refined(best, entries)
    try:
        return number, _over_links([refined])
    except _LinksFullError:
        return number, best


def _searched(tiles: TileGraph, target: Target, aim: Objective, entries: int, forms: Forms | None) -> _Found:
    """A graph by itself."""
    if aim.chips > 1 and target.arch.eth_cores == 0:
        raise HostError(f"compile: chips of {target.title} are not connected: one only")
    if tiles.states:  # what an input leaves in a ram the next one reads
        if aim.chips > 1:
            raise HostError("compile: what keeps states from input to input (training, caches) takes one chip")
        aim = replace(aim, microbatch=1)
        return _step(tiles, target, aim, entries, forms) if tiles.trains else _place(tiles, target, entries, forms, aim)
    return _quickest(tiles, target, aim, entries, forms)


def _copies_have_names(tiles: TileGraph, aim: Objective) -> bool:
    """Whether no input or output is called as the copy of another queue on some chip would be: net2pipe takes the one
    for the other (NETLIST 1.7). Names of all other queues are chosen."""
    own = {item.name for queues in (tiles.inputs, tiles.outputs) for item in queues.values()}
    return own.isdisjoint(f"{name}.{chip}" for name in own | {*tiles.constants} for chip in aim.ids or range(aim.chips))


def _quickest(tiles: TileGraph, target: Target, aim: Objective, entries: int, forms: Forms | None) -> _Found:
    """Of the ways to use several chips the one that serves the objective best; products are shared out over them where
    that is what one input takes the shortest time with, or where nothing else has room for the model. Where links have
    no room for any of them, one chip."""
    cut = partial(_place, tiles, target, entries, forms)
    if aim.chips == 1:
        return _in_memory(cut, aim)
    shared = partial(_shared_out, tiles, target, entries)
    ways = [(cut, aim)]
    if aim.effort != "low" and aim.objective == "throughput" and _copies_have_names(tiles, aim):
        ways.insert(0, (cut, replace(aim, chips=1, copies=aim.chips)))
    if aim.effort != "low" and aim.objective == "latency":
        ways.append((shared, aim))
    found: list[_Found] = []
    refused: list[UnsupportedError] = []
    for way, own in ways:
        try:
            found.append(_in_memory(way, own))
        except UnsupportedError as error:
            refused.append(error)
            continue
        if aim.objective == "throughput" and found[-1].cycles <= found[-1].host:  # as quick as the host link, or first
            break
    if found:
        return min(found, key=_cycles)
    for way, own in ((shared, aim), (cut, replace(aim, chips=1))):
        with suppress(UnsupportedError):
            return _in_memory(way, own)
    raise refused[-1]


def _step(tiles: TileGraph, target: Target, aim: Objective, entries: int, forms: Forms | None) -> _Found:
    """A training: its microbatches one after the other, or all of them in one round, if that takes less time and no
    input reads what the one before it wrote: gradients are only added up."""
    if aim.effort == "low" or aim.step == 1:
        return _place(tiles, target, entries, forms, aim)
    first = _place(tiles, target, entries, forms, replace(aim, effort="low"))
    first = _Found.of(aim, judged(first.placement))
    writers = {tiles.ops[store.op].program for store in tiles.stores.values() if not store.accumulate}
    if not any(map(tiles.flows, writers)):
        with suppress(MemoryFullError):
            together = replace(aim, microbatch=aim.step)
            return min(first, _place(tiles, target, 1, forms, together), key=_cycles)
    return min(first, _place(tiles, target, entries, forms, aim), key=_cycles)


def _in_memory(way: Callable[[Objective], _Found], aim: Objective) -> _Found:
    """With rounds of as many inputs as memory has room for. Raises MemoryFullError."""
    while True:
        try:
            return way(aim)
        except MemoryFullError:
            if aim.microbatch == 1 or aim.firm:
                raise
            aim = replace(aim, microbatch=aim.microbatch // 2)


def _place(tiles: TileGraph, target: Target, entries: int, forms: Forms | None, aim: Objective) -> _Found:
    """On one chip, or cut over all of them."""
    first = placed(tiles, target, first_spots(tiles, target, aim.chips), aim, entries)
    if aim.effort == "low":
        return _over_links([_Found(aim, first)])
    forms = forms.on(aim.chips) if forms is not None else Forms.of(tiles, target, aim.chips)
    if aim.objective == "cores":
        searched = placed(tiles, target, searched_spots(forms.plain, aim, FULL), aim, entries)
        return _over_links([_Found(aim, one) for one in sorted((searched, first), key=_cores)])
    if tiles.trains:
        return _Found.of(aim, _trained(forms.likely(aim), aim, entries, judged(first)))
    shares = (FULL, *SHARES) if aim.effort == "high" else (FULL,)
    tried: list[_Found] = []
    for line in forms.likely(aim):
        for start, known in _starts(line, aim, shares, entries):
            if not tried or not aim.work.spent():
                tried.append(_improved(line, start, known))
    kept = min(tried, key=_cycles)
    best = _over_links(sorted([*tried, _Found.of(aim, judged(first))], key=_cycles))
    return replace(best, line=kept.line)


class _LinksFullError(UnsupportedError):
    """More goes from chip to chip than Ethernet links have room for."""


def _over_links(found: Sequence[_Found]) -> _Found:
    """The first whose pipes between chips find room on the links. Raises _LinksFullError with what is said of the
    first."""
    reasons = [""]
    for one in found:
        if one.placement.stages == 1 or not (why := overfull(one.placement, one.aim)):
            return one
        reasons.append(why)
    raise _LinksFullError(f"compile: {reasons[1]}")


def _trained(lines: Sequence[CandidateTable], aim: Objective, entries: int, first: Evaluated) -> Evaluated:
    """Several expectations as they are packed, one after the other; only the best is wired and corrected. Never worse
    than `first`."""
    tried: dict[tuple[int, float, float], tuple[Evaluated, dict[str, PlacementDecision]]] = {}

    def make(number: int, spots: Mapping[str, PlacementDecision]) -> Placement:
        return placed(lines[number].tiles, lines[number].target, spots, aim, entries)

    def packed(number: int, full: float, step: float) -> None:
        if tried and aim.work.spent():
            return
        spots = searched_spots(lines[number], aim, full, step)
        with suppress(MemoryFullError):  # more epochs have more between them
            tried[number, full, step] = _told(aim, make(number, spots)), spots

    def quickest() -> tuple[int, float, float]:
        return min(tried, key=lambda key: tried[key][0].cycles)

    for number in range(len(lines)):
        for full in TRAINING:
            packed(number, full, STEP)
    if not tried:
        return first
    number, full, _ = quickest()
    for step in STEPS:
        packed(number, full, step)
    number, *_ = key = quickest()
    best, spots = min(tried[key], (first, {}), key=lambda item: item[0].cycles)[0], tried[key][1]
    for effort in ("training", "high") if aim.effort == "high" else ("training",):
        start = Start(spots, aim, effort, entries)
        (known,) = ahead(lines[number], [start], aim)
        spots = improved(lines[number], start, known)
        best = min(_told(aim, make(number, spots)), best, key=lambda item: item.cycles)
    return best


def _shared_out(tiles: TileGraph, target: Target, entries: int, aim: Objective) -> _Found:
    """With products shared out over chips: more or fewer of them, whichever is expected to be quicker. Raises
    UnsupportedError where there is none to share out."""
    graphs = [across(tiles, target, aim.chips, cycles) for cycles in WORTH]
    lines = [
        CandidateTable.of(graph, target)
        for n, graph in enumerate(graphs)
        if graph is not tiles and n == _first(graphs, n)
    ]
    if not lines:
        raise UnsupportedError("compile: no product by a constant whose columns chips could share")
    if aim.effort == "high":
        with suppress(_LinksFullError):
            return _over_links(sorted((_tried(line, aim, FULL, entries) for line in lines), key=_cycles))
    lines.sort(key=lambda item: cuts(item, aim, FULL)[1])
    for most in (0, *PIPES):
        own = lines[0].narrowed(most) if most else lines[0]
        with suppress(_LinksFullError):
            first = _over_links([_Found(aim, placed(own.tiles, target, searched_spots(own, aim, FULL), aim, entries))])
            return first if aim.effort == "low" else _over_links([_tried(own, aim, FULL, entries)])
    raise UnsupportedError("compile: links have no room for what chips that share a product send to each other")


def _first(graphs: Sequence[TileGraph], number: int) -> int:
    """The first graph of the same ops."""
    return next(n for n, graph in enumerate(graphs) if graph.ops.keys() == graphs[number].ops.keys())


def _refined(best: _Found, entries: int) -> _Found:
    """With what is tried with the best form of the best graph only, where it is of use: of a single input slices along
    t, the other shares of a chip that rectangles may be taken to cover, and more moves and corrections from there."""
    aim, searched = best.aim, best.line
    if searched is None:
        return best
    if aim.microbatch == 1 and aim.chips == 1 and not (searched.assigned or searched.tiles.trains or aim.work.spent()):
        best = min(best, _one_by_one(searched, aim, entries), key=_cycles)
        rows = _with_rows(searched)
        best = best if rows is None else min(best, _one_by_one(rows, aim, entries), key=_cycles)
    for count in SLICES if aim.microbatch == 1 and not aim.work.spent() else ():
        found = _quicker(best, _in_slices(searched, count), FULL, entries)
        if found is best:
            break
        best = found
    again = aim.effort == "default" or best.line is not searched
    line = best.line
    if line is not None and aim.chips == 1 and again and not _is_enough(best):
        with closing(_starts(line, aim, SHARES, entries)) as starts:
            for start, known in starts:
                with suppress(UnsupportedError):
                    best = min(best, _improved(line, start, known), key=_cycles)
                if _is_enough(best):
                    break
    if best.line is not None and best.spots is not None and best.cycles > best.host and not aim.work.spent():
        last = Start(dict(best.spots), aim, "high", entries)
        best = min(best, _improved(best.line, last), key=_cycles)
    return best


def _is_enough(best: _Found) -> bool:
    """Whether there are no epochs to cut otherwise, or nothing more can be gained, or may be tried."""
    return best.placement.epochs == 1 or best.cycles <= best.host or best.aim.work.spent()


def _starts(
    line: CandidateTable, aim: Objective, shares: Sequence[float], entries: int
) -> Generator[tuple[Start, Known], None, None]:
    """A form of a graph, where rectangles are expected to cover such shares of a chip, and what workers found ahead."""
    made: list[Start] = []

    def starts() -> Iterator[Start]:
        for full in shares:
            made.append(Start(searched_spots(line, aim, full), aim, "default", entries))
            yield made[-1]

    with closing(ahead(line, starts(), aim)) as found:
        for number, known in enumerate(found):
            yield made[number], known


def _one_by_one(line: CandidateTable, aim: Objective, entries: int) -> _Found:
    """With epochs for a single input, by the longest way through their ops."""
    return _improved(line, Start(spots_of_one(line, FULL), aim, "default", entries))


def _with_rows(line: CandidateTable) -> CandidateTable | None:
    """The form with slices of ops of many slices below each other, so that more cores share what is done row by row;
    None where there are none."""
    cut = stacked(line.tiles, ROWS)
    try:
        return None if cut is line.tiles else CandidateTable.of(cut, line.target, line)
    except UnsupportedError:
        return None


def _quicker(best: _Found, line: CandidateTable | None, full: float, entries: int) -> _Found:
    """The best, or what another form or share comes to, where memory has room for it and it is quicker."""
    if line is None:
        return best
    try:
        return min(best, _tried(line, best.aim, full, entries), key=_cycles)
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


def _tried(line: CandidateTable, aim: Objective, full: float, entries: int) -> _Found:
    """A form of a graph, where rectangles are expected to cover such a share of a chip."""
    return _improved(line, Start(searched_spots(line, aim, full), aim, "default", entries))


def _improved(line: CandidateTable, start: Start, known: Known | None = None) -> _Found:
    if known is None:
        (known,) = ahead(line, [start], start.aim)
    found = improved(line, start, known)
    return _Found.of(start.aim, _told(start.aim, start.make(line, found)), line, found)


def _told(aim: Objective, placement: Placement) -> Evaluated:
    """What the timing model says of a whole placement, as part of the work."""
    aim.work.modelled += len(placement.ops)
    found = judged(placement)
    aim.work.trials.append(Trial(aim.effort, found.cycles))
    return found


def _cycles(found: _Found) -> tuple[float, float]:
    """Of one input; where the host link takes longer, of the chips."""
    return found.cycles, found.chips


def first_placement(found: Placement) -> Placement | None:
    """The first legal choice for the same graph, chips and microbatch; None where memory has no room for it."""
    tiles = found.given or found.tiles
    microbatch = 1 if tiles.states else found.microbatch
    aim = Objective("low", chips=found.stages, microbatch=microbatch, copies=found.copies, step=found.step)
    try:
        return placed(tiles, found.target, first_spots(tiles, found.target, found.stages), aim, max(2, found.step))
    except UnsupportedError:
        return None


def _cores(placement: Placement) -> int:
    """Of all ops."""
    return sum(prod(placed.blocks.grid) for placed in placement.ops.values())


def searched_spots(
    line: CandidateTable, aim: Objective, full: float, step: float = STEP
) -> dict[str, PlacementDecision]:
    """Epochs by the dynamic program, each packed at its best pace."""
    ends, _ = cuts(line, aim, full, step)
    return in_epochs(line, ends, lambda start, stop, epoch: pack(line, start, stop, epoch, aim.chips))


def first_spots(tiles: TileGraph, target: Target, chips: int) -> dict[str, PlacementDecision]:
    """First fit in order: the next chip, then the next epoch, where an op finds no room (FRONTEND 5)."""
    rows, columns = target.arch.grid
    room, epoch, chip = CoreGrid(rows, columns), 0, 0
    spots: dict[str, PlacementDecision] = {}
    program = next((op.program for op in tiles.ops.values()), "")
    for op in tiles.ops.values():
        if op.program != program:  # programs share no epoch (FRONTEND 5)
            room, epoch, chip, program = CoreGrid(rows, columns), epoch + 1, 0, op.program
        choice = first_choice(target, tiles, op)
        at = room.take(choice.blocks.grid)
        if at is None:
            room = CoreGrid(rows, columns)
            epoch, chip = (epoch, chip + 1) if chip + 1 < chips else (epoch + 1, 0)
            at = room.take(choice.blocks.grid)
            if at is None:
                raise UnsupportedError(f"{op.name}: {choice.blocks.grid} cores, {target.title} has {rows}x{columns}")
        spots[op.name] = PlacementDecision(choice, epoch, chip, at)
    return spots


__all__: Sequence[str] = ["Placed", "Placement", "Queue", "place", "place_best"]
