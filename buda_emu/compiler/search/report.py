"""What placing came to: inputs per second beside the first legal choice and the limits, and epoch by epoch what sets
the pace and why no move helps any more."""

from dataclasses import dataclass
from math import prod

from buda_emu.checker.text import plural
from buda_emu.compiler.place.candidates import choices
from buda_emu.compiler.place.cost import speeds
from buda_emu.compiler.place.placement import Placed, Placement
from buda_emu.compiler.search.judge import Judged, judged
from buda_emu.timing.result import EpochReport


@dataclass(frozen=True, slots=True)
class Limits:
    """Cycles of one input that nothing could undercut: if all cores always did math, or always worked as the cost model
    has it; if DRAM, or the host link, always moved bytes."""

    math: float
    cores: float
    dram: float
    host: float


def limits(found: Judged) -> Limits:
    """Of a placement on all its chips; of DRAM as much as this placement moves, what stays in L1 once for a round."""
    placement, run = found.placement, found.run
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
            for edge in epoch.edges if edge.memory == "dram"
        )  # fmt: skip
    return Limits(math / cores, work / cores, moved / (speeds(placement.target.arch.name).dram * chips), found.host)


def epoch_rows(found: Judged) -> list[list[str]]:
    """Graph, ops, cores, cycles of one input, share of all, what sets the pace, why no move helps."""
    total = sum(epoch.runs * epoch.timing.total for epoch in found.run.epochs)
    inputs = found.placement.microbatch * found.placement.rounds
    rows: list[list[str]] = []
    for epoch in found.run.epochs:
        ops = [found.placement.ops[item.op] for item in epoch.timing.ops]
        cores = sum(prod(placed.blocks.grid) for placed in ops)
        cycles = epoch.runs * epoch.timing.total
        each, share = cycles / inputs, f"{100 * cycles / total:.0f} %"
        why = _why(found.placement, epoch)
        figures = [ops[0].epoch, len(ops), cores, round(each)]
        rows.append([*map(str, figures), share, epoch.bottleneck.name, why])
    return rows


DETOURS = 12
"""Operands by DRAM that are listed."""
HEADERS = ["epoch", "ops", "cores", "cycles", "share", "limited by", "because"]


def _why(placement: Placement, epoch: EpochReport) -> str:
    """Why nothing that the search changes makes the epoch quicker."""
    limit = epoch.bottleneck
    if limit.kind == "op":
        return _why_op(placement, placement.ops[limit.name])
    pace = f"{100 * limit.share:.0f} % of the pace"
    if limit.kind == "memory":
        return f"what it has to move takes {pace}"
    if limit.kind in ("link", "transfer"):
        return f"{pace}; no op that was moved or exchanged took load from it"
    return f"ops wait for each other: first and last input, and branches that meet again; {pace}"


def _why_op(placement: Placement, placed: Placed) -> str:
    own = choices(placement.target, placement.tiles, placed.op)
    used = prod(placed.blocks.grid)
    more = sorted({choice.cores for choice in own if choice.cores > used})
    if not more:
        return f"its largest grid, {used} cores"
    return f"{used} cores; its next grid takes {more[0]}, which no pace of this epoch had room for"


def report(found: Judged, first: Placement | None) -> str:
    """The text. `first`: the first legal choice, where there is one."""
    from buda_emu.report.terminal.text import table

    run, limit = found.run, limits(found)

    def line(what: str, cycles: float) -> list[str]:
        least = max(cycles, 1e-9)
        return [what, f"{cycles:.0f}", f"{run.clock * 1e6 / least:.1f}", f"{found.cycles / least:.2f}"]

    rows = [
        line("this placement", found.cycles),
        *([line("first legal choice", judged(first).cycles)] if first is not None else []),
        line("limit: work of all cores", limit.cores), line("limit: math alone", limit.math),
        line("limit: DRAM bytes", limit.dram), line("limit: host link", limit.host),
    ]  # fmt: skip
    placement = found.placement
    of = "step" if placement.step > 1 else "round"
    head = (
        f"{placement_words(placement)}; a {of} of {placement.inputs * placement.rounds} inputs takes "
        f"{sum(run.programs().values()):.0f} cycles"
    )
    figures = table(["", "cycles an input", "inputs a second", "times"], rows)
    searched = [f"Searched: {placement.work.words()}."] if placement.work.words() else []
    return "\n\n".join([head, figures, *searched, table(HEADERS, epoch_rows(found)), *detours_text(placement)])


def detours_text(placement: Placement) -> list[str]:
    """What takes the way by DRAM within its epoch, and why; nothing where that is none."""
    count = len(placement.detours)
    if not count:
        return []
    known = list(placement.detours.items())[:DETOURS]
    lines = [f"  {reader} reads {source}: {detour.why}" for (reader, source), detour in known]
    more = [f"  ... and {count - DETOURS} more"] if count > DETOURS else []
    what = "1 operand takes" if count == 1 else f"{count} operands take"
    return ["\n".join([f"{what} the way by DRAM within an epoch, as the chip's router has no other:", *lines, *more])]


def placement_words(placement: Placement) -> str:
    """`388 ops in 24 epochs on 1 chip`."""
    chips = plural(placement.chips, 'chip')
    each = ", each with all of them and its share of the inputs" if placement.copies > 1 else ""
    return f"{plural(len(placement.ops), 'op')} in {plural(placement.epochs, 'epoch')} on {chips}{each}"
