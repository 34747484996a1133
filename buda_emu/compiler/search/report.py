"""The report on a placement: inputs per second compared with the first legal choice and the limits, and for each epoch
what sets the pace and why no further move helps.
"""

from dataclasses import dataclass, replace
from math import prod

from buda_emu.compiler.lower.tiles import TileOp
from buda_emu.compiler.place.candidates import choices
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.search.evaluate import Evaluated, judged
from buda_emu.performance.timing.result import EpochReport
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural


@dataclass(frozen=True, slots=True)
class Limits:
    """Cycles of one input that nothing could undercut: if all cores always did math, or always worked as the cost model
    has it; if DRAM, or the host link, always moved bytes."""

    math: float
    cores: float
    dram: float
    host: float


def limits(found: Evaluated) -> Limits:
    """Return the limits of a placement on all its chips. DRAM moves as much as in this placement, with the data that
    stays in L1 loaded once for a round."""
    placement = found.placement
    run = found.run
    chips = placement.chips
    cores = prod(placement.target.arch.grid) * chips
    work = math = moved = 0.0
    for epoch in run.epochs:
        for item in epoch.timing.ops:
            count = prod(placement.ops[item.op].blocks.grid)
            work += item.cost.cycles * count
            math += item.cost.math * count
        inputs = max(epoch.timing.inputs, 1)
        moved += sum(
            sum(edge.memory_bytes.values()) / (inputs if edge.once else 1)
            for edge in epoch.edges
            if edge.memory == "dram"
        )
    return Limits(math / cores, work / cores, moved / (speeds(placement.target.chip).dram * chips), found.host)


def epoch_rows(found: Evaluated) -> list[list[str]]:
    """Return a row for each epoch: graph, ops, cores, cycles of one input and how many of them load the epoch, share of
    all, what sets the pace, and why no move helps."""
    total = sum(epoch.runs * epoch.cycles for epoch in found.run.epochs)
    inputs = found.placement.microbatch * found.placement.rounds
    rows: list[list[str]] = []
    for epoch in found.run.epochs:
        ops = [found.placement.ops[item.op] for item in epoch.timing.ops]
        cores = sum(prod(placed.blocks.grid) for placed in ops)
        cycles = epoch.runs * epoch.cycles
        loading = epoch.runs * epoch.load.cycles
        share = f"{100 * cycles / total:.0f} %"
        why = _why(found.placement, epoch)
        figures = [ops[0].epoch, len(ops), cores, round(cycles / inputs), round(loading / inputs)]
        rows.append([*map(str, figures), share, epoch.bottleneck.name, why])
    return rows


DETOURS = 12
"""Most operands through DRAM that are listed."""
BESIDE_LONG = "it waits there for a longer branch, for which the reader's L1 has no room"
HEADERS = ["epoch", "ops", "cores", "cycles an input", "of them loading", "share", "limited by", "because"]


def _why(placement: Placement, epoch: EpochReport) -> str:
    """Return why nothing that the search changes makes the epoch quicker."""
    limit = epoch.bottleneck
    if limit.kind == "op":
        return _why_op(placement, placement.ops[limit.name])
    pace = f"{100 * limit.share:.0f} % of the pace"
    if limit.kind == "memory":
        return f"its transfers take {pace}"
    if limit.kind in ("link", "transfer"):
        return f"{pace}; no op that was moved or exchanged took load from it"
    return f"ops wait for each other: first and last input, and branches that meet again; {pace}"


def _why_op(placement: Placement, placed: Placed) -> str:
    """Return why the op that limits an epoch has no more cores."""
    own = choices(placement.target, placement.tiles, _as_searched(placement, placed.op))
    used = prod(placed.blocks.grid)
    more = sorted({choice.cores for choice in own if choice.cores > used})
    if not more:
        return f"its largest grid, {plural(used, 'core')}"
    return f"{plural(used, 'core')}; its next grid takes {more[0]}, which no pace of this epoch had room for"


def _as_searched(placement: Placement, op: TileOp) -> TileOp:
    """Return the op with the sources that the graph knows, without the queues in DRAM that `operand_room` put
    between."""
    queues = placement.queues
    return replace(
        op,
        uses=[
            replace(use, source=queues[use.source].input)
            if use.source in queues and queues[use.source].role == "fork"
            else use
            for use in op.uses
        ],
    )


def report(found: Evaluated, first: Placement | None) -> str:
    """Return the text of the report. `first` is the first legal choice, where there is one."""
    run = found.run
    limit = limits(found)

    def line(what: str, cycles: float) -> list[str]:
        """Return the table row of one figure."""
        least = max(cycles, 1e-9)
        return [what, f"{cycles:.0f}", f"{run.clock * 1e6 / least:.1f}", f"{least / found.cycles:.2f}"]

    rows = [
        line("this placement", found.cycles),
        *([line("first legal choice", judged(first).cycles)] if first is not None else []),
        line("limit: work of all cores", limit.cores),
        line("limit: math alone", limit.math),
        line("limit: DRAM bytes", limit.dram),
        line("limit: host link", limit.host),
    ]
    placement = found.placement
    of = "step" if placement.step > 1 else "round"
    head = (
        f"{placement_words(placement)}; a {of} of {placement.inputs * placement.rounds} inputs takes "
        f"{sum(run.programs().values()):.0f} cycles"
    )
    figures = table(["", "cycles an input", "inputs a second", "of this placement's cycles"], rows)
    searched = [f"Searched: {placement.work.words()}."] if placement.work.words() else []
    epochs = table(HEADERS, epoch_rows(found))
    return "\n\n".join(
        [head, figures, *searched, epochs, *grids_text(placement), *detours_text(placement), *formats_text(placement)]
    )


def grids_text(placement: Placement) -> list[str]:
    """Return the paragraph on ops whose grid was chosen so that the router finds streams for all readers of a result;
    empty where there are none."""
    known = [(name, placed) for name, placed in placement.ops.items() if placed.why]
    if not known:
        return []
    lines = [
        f"  {name}: {placed.blocks.grid[0]} x {placed.blocks.grid[1]} cores; by the pace alone {placed.why}"
        for name, placed in known[:DETOURS]
    ]
    more = [f"  ... and {len(known) - DETOURS} more"] if len(known) > DETOURS else []
    what = plural(len(known), "op has", "ops have")
    why = "grid chosen by streams, so that no operand has to go through DRAM, which is quicker according to the model:"
    return ["\n".join([f"{what} a {why}", *lines, *more])]


def detours_text(placement: Placement) -> list[str]:
    """Return the paragraph on operands that go through DRAM although an op of the same epoch makes them; empty where
    there are none."""
    routed = [(reader, source, detour.why) for (reader, source), detour in placement.detours.items()]
    known = routed + [
        (name, placement.queues[use.source].input, BESIDE_LONG)
        for name, placed in placement.ops.items()
        for use in placed.op.uses
        if use.source in placement.queues and placement.queues[use.source].role == "fork"
    ]
    if not known:
        return []
    lines = [f"  {reader} reads {source}: {why}" for reader, source, why in known[:DETOURS]]
    more = [f"  ... and {len(known) - DETOURS} more"] if len(known) > DETOURS else []
    what = plural(len(known), "operand goes", "operands go")
    return ["\n".join([f"{what} through DRAM within an epoch instead of from core to core:", *lines, *more])]


def formats_text(placement: Placement) -> list[str]:
    """Return the paragraph on ops that do not have the block format which was asked for; empty where there are none."""
    known = [
        f"{name}: {placement.target.of(placed.op.precision).activation_df} instead of {placed.op.avoids}"
        for name, placed in placement.ops.items()
        if placed.op.avoids
    ]
    if not known:
        return []
    lines = [f"  {line}" for line in known[:DETOURS]]
    more = [f"  ... and {len(known) - DETOURS} more"] if len(known) > DETOURS else []
    what = plural(len(known), "op has", "ops have")
    why = "16 bits for each number, as the padding of its tiles may take the exponent that sixteen numbers share:"
    return ["\n".join([f"{what} {why}", *lines, *more])]


def placement_words(placement: Placement) -> str:
    """Return the size of a placement in words, such as `388 ops in 24 epochs on 1 chip`."""
    chips = plural(placement.chips, "chip")
    each = ", each with all of them and its share of the inputs" if placement.copies > 1 else ""
    return f"{plural(len(placement.ops), 'op')} in {plural(placement.epochs, 'epoch')} on {chips}{each}"
