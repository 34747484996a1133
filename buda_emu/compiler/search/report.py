"""The report on a placement: inputs per second compared with the first legal choice and the limits, and for each epoch
what sets the pace and why no further move helps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.search.evaluate import Evaluation, evaluate
from buda_emu.compiler.search.explanation import explanation, next_larger_grid
from buda_emu.performance.timing.result import EpochReport
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural


@dataclass(frozen=True, slots=True)
class Limits:
    """Cycles of one input that nothing could undercut: with all cores at all times busy with `math`, or with the work
    of the ops as the cost model has it (`cores`); with all bytes at the full rate of `dram`, or of the `host` link."""

    math: float
    cores: float
    dram: float
    host: float


def limits(evaluation: Evaluation) -> Limits:
    """Return the limits of a placement on all its chips. DRAM moves as much as in this placement, with the data that
    stays in L1 loaded once for a round."""
    placement = evaluation.placement
    run = evaluation.run
    chips = placement.chips
    cores = prod(placement.target.arch.grid) * chips
    work = 0.0
    math = 0.0
    moved = 0.0
    for epoch in run.epochs:
        for op_timing in epoch.timing.ops:
            count = prod(placement.ops[op_timing.op].blocks.grid)
            work += op_timing.cost.cycles * count
            math += op_timing.cost.math * count
        inputs = max(epoch.timing.inputs, 1)
        moved += sum(
            sum(edge.memory_bytes.values()) / (inputs if edge.once else 1)
            for edge in epoch.edges
            if edge.memory == "dram"
        )
    return Limits(math / cores, work / cores, moved / (speeds(placement.target.chip).dram * chips), evaluation.host)


def epoch_rows(evaluation: Evaluation) -> list[list[str]]:
    """Return the report's row for each epoch, under `HEADERS`: its number, ops and cores, its cycles for one input and
    how many of them load it, its share of all cycles, what sets its pace, and why nothing that the search changes makes
    it quicker."""
    total = sum(epoch.runs * epoch.cycles for epoch in evaluation.run.epochs)
    inputs = evaluation.placement.microbatch * evaluation.placement.rounds
    rows: list[list[str]] = []
    for epoch in evaluation.run.epochs:
        ops = [evaluation.placement.ops[op_timing.op] for op_timing in epoch.timing.ops]
        cores = sum(prod(placed.blocks.grid) for placed in ops)
        cycles = epoch.runs * epoch.cycles
        loading = epoch.runs * epoch.load.cycles
        share = f"{100 * cycles / total:.0f} %"
        why = _why_not_quicker(evaluation.placement, epoch)
        figures = [ops[0].epoch, len(ops), cores, round(cycles / inputs), round(loading / inputs)]
        rows.append([*map(str, figures), share, epoch.bottleneck.name, why])
    return rows


MOST_LISTED = 12
"""Most ops or operands that a paragraph lists."""
BESIDE_LONG = "it waits there for a longer branch, for which the reader's L1 has no room"
HEADERS = ["epoch", "ops", "cores", "cycles an input", "of them loading", "share", "limited by", "because"]


def _why_not_quicker(placement: Placement, epoch: EpochReport) -> str:
    """Return the table's words for why nothing that the search changes makes the epoch quicker, by the kind of its
    bottleneck."""
    limit = epoch.bottleneck
    if limit.kind == "op":
        return _why_op(placement, placement.ops[limit.name])
    pace = f"{100 * limit.share:.0f} % of the pace"
    if limit.kind == "memory":
        return f"its transfers take {pace}"
    if limit.kind in ("link", "transfer"):
        return f"{pace}; no op that was moved or exchanged took load from it"
    return f"ops wait for each other: first and last input, and branches that meet again; {pace}"


def _why_op(placement: Placement, placed: PlacedOp) -> str:
    """Return the table's words for why the op that limits an epoch has no more cores."""
    cores = plural(prod(placed.blocks.grid), "core")
    larger = next_larger_grid(placement, placed)
    if larger is None:
        return f"its largest grid, {cores}"
    if not placement.record.trials:
        return f"{cores}; its next grid takes {larger}, and nothing was searched"
    return f"{cores}; its next grid takes {larger}, which no pace of this epoch had room for"


def report(evaluation: Evaluation, first: Placement | None) -> str:
    """Return the text of the report on a placement. `first`: the first legal placement of the same graph, which is
    modelled here for comparison; None where there is none."""
    run = evaluation.run
    limit = limits(evaluation)

    def line(label: str, cycles: float) -> list[str]:
        """Return the row of a number of cycles for one input: the label, the cycles, the inputs per second, and the
        ratio to the cycles of this placement."""
        least = max(cycles, 1e-9)
        return [label, f"{cycles:.0f}", f"{run.clock * 1e6 / least:.1f}", f"{least / evaluation.cycles:.2f}"]

    first_cycles = None if first is None else evaluate(first).cycles
    rows = [line("this placement", evaluation.cycles)]
    if first_cycles is not None:
        rows.append(line("first legal choice", first_cycles))
    rows += [
        line("limit: work of all cores", limit.cores),
        line("limit: math alone", limit.math),
        line("limit: DRAM bytes", limit.dram),
        line("limit: host link", limit.host),
    ]
    placement = evaluation.placement
    if placement.step > 1:
        of = "step"
    else:
        of = "round"
    head = (
        f"{placement_words(placement)}; a {of} of {placement.inputs * placement.rounds} inputs takes "
        f"{sum(run.programs().values()):.0f} cycles"
    )
    figures = table(["", "cycles an input", "inputs a second", "of this placement's cycles"], rows)
    paragraphs = [head, *explanation(evaluation, first_cycles), figures]
    if placement.record.summary():
        paragraphs.append(f"Searched: {placement.record.summary()}.")
    paragraphs.append(table(HEADERS, epoch_rows(evaluation)))
    paragraphs += [*grids_text(placement), *detours_text(placement), *formats_text(placement)]
    return "\n\n".join(paragraphs)


def _list_first(lines: Sequence[str]) -> list[str]:
    """Return up to `MOST_LISTED` lines, indented, and a line with the number of those that are left out, if any."""
    listed = [f"  {line}" for line in lines[:MOST_LISTED]]
    if len(lines) > MOST_LISTED:
        listed.append(f"  ... and {len(lines) - MOST_LISTED} more")
    return listed


def grids_text(placement: Placement) -> list[str]:
    """Return, as a list, the paragraph on ops whose grid was chosen so that cores have streams for all readers of a
    result; empty where there are none."""
    lines = [
        f"{name}: {placed.blocks.grid[0]} x {placed.blocks.grid[1]} cores; by the pace alone {placed.why}"
        for name, placed in placement.ops.items()
        if placed.why
    ]
    if not lines:
        return []
    count = plural(len(lines), "op has", "ops have")
    why = "grid chosen by streams, so that no operand has to go through DRAM, which is quicker according to the model:"
    return ["\n".join([f"{count} a {why}", *_list_first(lines)])]


def detours_text(placement: Placement) -> list[str]:
    """Return, as a list, the paragraph on operands that go through DRAM although an op of the same epoch makes them;
    empty where there are none."""
    lines = [f"{reader} reads {source}: {detour.why}" for (reader, source), detour in placement.detours.items()]
    for name, placed in placement.ops.items():
        for use in placed.op.uses:
            queue = placement.queues.get(use.source)
            if queue is not None and queue.role == "fork":
                lines.append(f"{name} reads {queue.input}: {BESIDE_LONG}")
    if not lines:
        return []
    count = plural(len(lines), "operand goes", "operands go")
    return ["\n".join([f"{count} through DRAM within an epoch instead of from core to core:", *_list_first(lines)])]


def formats_text(placement: Placement) -> list[str]:
    """Return, as a list, the paragraph on ops that have a format of 16 bits instead of the block format that was asked
    for; empty where there are none."""
    lines = [
        f"{name}: {placement.target.of(placed.op.precision).activation_df} instead of {placed.op.avoids}"
        for name, placed in placement.ops.items()
        if placed.op.avoids
    ]
    if not lines:
        return []
    count = plural(len(lines), "op has", "ops have")
    why = "16 bits for each number, as the padding of its tiles may take the exponent that sixteen numbers share:"
    return ["\n".join([f"{count} {why}", *_list_first(lines)])]


def placement_words(placement: Placement) -> str:
    """Return the size of a placement in words, such as `388 ops in 24 epochs on 1 chip`."""
    chips = plural(placement.chips, "chip")
    if placement.copies > 1:
        shares = ", each with all of them and its share of the inputs"
    else:
        shares = ""
    return f"{plural(len(placement.ops), 'op')} in {plural(placement.epochs, 'epoch')} on {chips}{shares}"
