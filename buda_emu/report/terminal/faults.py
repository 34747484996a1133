"""A campaign of faults as text."""

from collections.abc import Iterator

from buda_emu.checker.text import plural
from buda_emu.injection.result import OUTCOME_TEXTS, OUTCOMES, Campaign, Effect, Share
from buda_emu.report.terminal.text import number, percent, table

HEADERS = ("", "faults", "masked", "tolerable", "corrupt", "not finite", "stopped", "failing", "95 % interval")
SHOWN = ("kind", "place", "op or queue", "field")
"""Tables that are printed; the others are in the files."""


def campaign_lines(found: Campaign, top: int) -> Iterator[str]:
    """A line on the whole, and tables of the worst `top` (0: all) places and bits."""
    total = found.total()
    low, high = map(percent, total.interval)
    yield f"{found.netlist}: {found.arch}, precision {found.precision}, seed {found.seed}"
    yield (
        f"{plural(total.faults, 'fault')}, {plural(total.failures, 'failure')}: {percent(total.share)}, with 95 % "
        f"certainty {low} to {high}"
    )
    for name in SHOWN:
        rows = found.table(name)
        if len(rows) > 1 or name == "kind":
            shown = rows[:top] if top else rows
            yield ""
            yield table((name, *HEADERS[1:]), map(row, shown), right=tuple(range(1, 9)))
            if len(shown) < len(rows):
                yield f"{len(rows) - len(shown)} more; --top 0 shows all"
    if found.bit_hours:
        yield ""
        yield f"one run holds {found.bit_hours:.3g} bit-hours of DRAM and L1 by the timing model"


def row(share: Share) -> tuple[str, ...]:
    """Of a table of counts."""
    low, high = share.interval
    counts = (str(share.counts[outcome.replace(" ", "_")]) for outcome in OUTCOMES)
    return (share.name, str(share.faults), *counts, percent(share.share), f"{percent(low)} to {percent(high)}")


def effect_lines(effect: Effect) -> Iterator[str]:
    """What one fault is, and what it did."""
    fault = effect.fault
    hit = f"tile {fault.tile}, " if fault.tile >= 0 else ""
    if fault.exponent:
        hit += f"shared exponent of group {fault.datum}, "
    elif fault.datum >= 0:
        hit += f"datum {fault.datum} (row {fault.datum // 32}, column {fault.datum % 32}), "
    bits = f"bit {', '.join(map(str, fault.bits))} ({fault.bit_name})" if fault.bits else fault.how
    core = f"core {fault.core[0]}, {fault.core[1]} of its grid, " if fault.core is not None else ""
    seen = f", seen as operand {fault.operand}" if fault.operand >= 0 else ""
    yield f"fault {fault.number}: {fault.kind} in {fault.place} of {fault.where} ({fault.op_type}, {fault.df}{seen})"
    yield f"  {core}{hit}{bits}{f', {fault.how}' if fault.bits and fault.how else ''}"
    yield f"  {effect.outcome}: {effect.error or OUTCOME_TEXTS[effect.outcome]}"
    if effect.tiles:
        error = "infinite" if effect.max_error is None else number(effect.max_error)
        yield (
            f"  {plural(effect.tiles, 'output tile')} differ, worst in {effect.output}: PCC {effect.pcc:.6f}, largest "
            f"error {error} of the usual size"
        )
