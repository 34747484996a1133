"""Why a placement is as it is: three sentences, on the choice, on the epochs and on what takes the cycles, and a
picture of the epochs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.place.candidates import choices
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.search.evaluate import Evaluation
from buda_emu.netlist.fields import LOW_EFFORT, LOW_EFFORT_LOSS
from buda_emu.performance.timing.result import EpochReport
from buda_emu.support.checker.text import plural

BAR: Final = 40
"""Columns of the picture: wide enough for epochs of 3 % of the cycles, narrow enough for 80 columns with the text."""
DRAWN: Final = 16
"""Most epochs that the picture shows, the longest ones; the others share its last line."""

_BOUNDS: Final = {
    "memory": "transfers with memory",
    "link": "a link",
    "transfer": "a transfer",
    "latency": "the latency of a single input",
    "buffers": "ops that wait for each other",
}
"""Words for what bounds an epoch, by the kind of its `Bottleneck`, ops apart."""
LOADING: Final = "loading epochs"
LEAST_SHARE: Final = 0.005
"""Smallest share of the cycles that the sentence names: less would be printed as 0 %."""


class EpochCost(NamedTuple):
    """The cycles that an epoch takes of a whole step or round, `loading` of them before its first op begins, and in
    words what bounds it."""

    name: str
    cycles: float
    loading: float
    bound: str


def explanation(evaluation: Evaluation, first_cycles: float | None) -> list[str]:
    """Return three sentences and a picture that say why a placement is as it is: which of the placements it is, why
    its ops are cut into these epochs, and what bounds them. `first_cycles` are the cycles that an input takes in the
    first legal placement, None where there is none."""
    costs = epoch_costs(evaluation)
    sentences = [
        _choice_sentence(evaluation, first_cycles),
        _partition_sentence(evaluation.placement, costs),
        _bound_sentence(evaluation, costs),
    ]
    return [" ".join(sentences), "\n".join(draw_epochs(costs))]


def epoch_costs(evaluation: Evaluation) -> list[EpochCost]:
    """Return the cost of each epoch, in the order in which they run."""
    costs: list[EpochCost] = []
    for report in evaluation.run.epochs:
        name = evaluation.placement.ops[report.timing.ops[0].op].epoch
        cycles = report.runs * report.cycles
        loading = report.runs * report.load.cycles
        costs.append(EpochCost(str(name), cycles, loading, bound_words(evaluation.placement, report)))
    return costs


def bound_words(placement: Placement, report: EpochReport) -> str:
    """Return in words what bounds an epoch, the same words for all epochs that are bound alike."""
    kind = report.bottleneck.kind
    if kind != "op":
        return _BOUNDS[kind]
    if next_larger_grid(placement, placement.ops[report.bottleneck.name]) is None:
        return "an op on its largest grid"
    if not placement.record.trials:
        return "an op that could have a larger grid"
    return "an op whose next grid finds no room"


def next_larger_grid(placement: Placement, placed: PlacedOp) -> int | None:
    """Return the cores of the smallest grid that is larger than that of an op, None if the op has its largest one."""
    op = _without_fork_queues(placement, placed.op)
    used = prod(placed.blocks.grid)
    larger = [choice.cores for choice in choices(placement.target, placement.tiles, op) if choice.cores > used]
    return min(larger, default=None)


def _without_fork_queues(placement: Placement, op: TileOp) -> TileOp:
    """Return the op with its operands as the graph has them, where the placement reads them from queues in DRAM that
    `place/operand_room.py` put between (role "fork")."""
    queues = placement.queues
    uses = list(op.uses)
    for number, use in enumerate(uses):
        if use.source in queues and queues[use.source].role == "fork":
            uses[number] = replace(use, source=queues[use.source].input)
    return replace(op, uses=uses)


def _choice_sentence(evaluation: Evaluation, first_cycles: float | None) -> str:
    """Return the sentence on how many placements were tried and how this one compares with the first legal one, or why
    nothing was searched. `first_cycles` are the cycles of one input in the first legal placement, None where there is
    none."""
    record = evaluation.placement.record
    if record.effort == LOW_EFFORT:
        return f"Nothing was searched, as effort is low: each op has its first legal division; {LOW_EFFORT_LOSS}."
    if not record.trials:
        return "This placement was not searched."
    count = len(record.trials)
    if count == 1:
        sentence = "This is the only placement that was tried"
    else:
        sentence = f"Of {count} placements (forms of the graph, each cut into epochs), this one takes the fewest cycles"
    if first_cycles is None or evaluation.cycles <= 0:
        return f"{sentence}."
    return f"{sentence}: the first legal one takes {first_cycles / evaluation.cycles:.2f} times the cycles."


def _partition_sentence(placement: Placement, costs: Sequence[EpochCost]) -> str:
    """Return the sentence on why the ops are cut into these epochs, with the shares of loading and of the longest
    epoch; for a single epoch, how many cores it takes."""
    grid = prod(placement.target.arch.grid)
    if len(costs) == 1:
        cores = sum(prod(placed.blocks.grid) for placed in placement.ops.values())
        room = grid * placement.chips // max(placement.copies, 1)
        return (
            f"All ops share one epoch, on {cores} of {room} cores, so that no result goes through DRAM between epochs."
        )
    total = sum(cost.cycles for cost in costs)
    loading = sum(cost.loading for cost in costs)
    longest = max(costs, key=lambda cost: cost.cycles)
    reason = ""
    if placement.record.trials:
        reason = ": fewer would leave each op fewer cores, and more would load more often"
    return (
        f"The ops are cut into {len(costs)} epochs{reason}; loading takes {100 * loading / total:.0f} % of the cycles, "
        f"and the longest epoch, {longest.name}, {100 * longest.cycles / total:.0f} %."
    )


def _bound_sentence(evaluation: Evaluation, costs: Sequence[EpochCost]) -> str:
    """Return the sentence on what takes the cycles, with the share of each: loading epochs, and what bounds epochs once
    they are loaded, without shares below `LEAST_SHARE`; or that the host link bounds the whole."""
    if evaluation.host >= evaluation.cycles:
        return "The host link bounds the whole: it takes as long as the chips, or longer."
    total = sum(cost.cycles for cost in costs)
    shares: dict[str, float] = {}
    for cost in costs:
        shares[LOADING] = shares.get(LOADING, 0.0) + cost.loading / total
        shares[cost.bound] = shares.get(cost.bound, 0.0) + (cost.cycles - cost.loading) / total
    ranked = sorted(shares.items(), key=lambda entry: (-entry[1], entry[0]))
    words = ", ".join(f"{bound} for {100 * share:.0f} %" for bound, share in ranked if share >= LEAST_SHARE)
    return f"What takes the cycles: {words}."


def draw_epochs(costs: Sequence[EpochCost]) -> Iterator[str]:
    """Yield the lines of a picture: for each of the `DRAWN` longest epochs, in the order in which they run, a bar, `.`
    where it loads and `#` where it computes, its share of the cycles, and what bounds it; and a line for all others, if
    any."""
    total = sum(cost.cycles for cost in costs)
    longest = sorted(range(len(costs)), key=lambda place: (-costs[place].cycles, place))[:DRAWN]
    width = max(len(costs[place].name) for place in longest)
    scale = BAR / max(cost.cycles for cost in costs)
    for place in sorted(longest):
        cost = costs[place]
        columns = max(round(cost.cycles * scale), 1)
        loading = min(round(cost.loading * scale), columns)
        bar = "." * loading + "#" * (columns - loading)
        yield f"epoch {cost.name:<{width}}  {bar:<{BAR}}  {100 * cost.cycles / total:3.0f} %  {cost.bound}"
    others = [cost for place, cost in enumerate(costs) if place not in longest]
    if others:
        share = 100 * sum(cost.cycles for cost in others) / total
        yield f"{plural(len(others), 'shorter epoch')} {share:.0f} %"
