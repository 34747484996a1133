"""Results of a fault campaign as text."""

from collections.abc import Iterator, Sequence

from buda_emu.report.terminal.text import number, percent, table
from buda_emu.support.checker.text import plural
from buda_emu.testing.injection.fault import Fault
from buda_emu.testing.injection.result import OUTCOME_TEXTS, Campaign, Effect, Guarded, Share, column

SHOWN = ("kind", "place", "op or queue", "field")
"""Tables that are printed; the output files have more."""


def headers(campaign: Campaign) -> tuple[str, ...]:
    """Return the headings of the columns of `row` after the first one, which is the name of the table."""
    return ("faults", *campaign.outcomes(), "failing", "95 % interval")


def campaign_lines(campaign: Campaign, top: int) -> Iterator[str]:
    """Yield a summary of a campaign, and tables of its worst places and bits with at most `top` rows; 0 shows all."""
    total = campaign.total()
    low, high = map(percent, total.interval)
    yield f"{campaign.netlist}: {campaign.arch}, precision {campaign.precision}, seed {campaign.seed}"
    share = percent(total.share)
    if campaign.strata:
        share += ", weighted by the strata"
    yield (
        f"{plural(total.faults, 'fault')}, {plural(total.failures, 'failure')}: "
        f"{share}, with 95 % confidence {low} to {high}"
    )
    if campaign.left_out:
        yield f"nothing to hit here: {', '.join(campaign.left_out)}"
    for name in SHOWN:
        rows = campaign.table(name)
        if len(rows) > 1 or name == "kind":
            yield from _count_lines(campaign, name, rows, top)
    if campaign.costs:
        yield ""
        yield table(PROTECTION, map(guarded_row, campaign.protection()), right=tuple(range(1, len(PROTECTION))))
    if campaign.bit_hours:
        yield ""
        yield f"one run holds {campaign.bit_hours:.3g} bit-hours of DRAM and L1 by the timing model"


def _count_lines(campaign: Campaign, name: str, rows: Sequence[Share], top: int) -> Iterator[str]:
    """Yield the table of counts called `name` with at most `top` rows (0: all), and a line on those left out."""
    shown = rows[: top or None]
    columns = headers(campaign)
    yield ""
    yield table((name, *columns), (row(campaign, share) for share in shown), right=tuple(range(1, len(columns))))
    if len(shown) < len(rows):
        yield f"{len(rows) - len(shown)} more; --top 0 shows all"


def row(campaign: Campaign, share: Share) -> tuple[str, ...]:
    """Return the cells of a share of the faults: its name, its number of faults, how many have each outcome, and the
    part that fails with its interval."""
    low, high = share.interval
    counts = (str(share.counts[column(outcome)]) for outcome in campaign.outcomes())
    return (share.name, str(share.faults), *counts, percent(share.share), f"{percent(low)} to {percent(high)}")


PROTECTION = ("protection", "failing", "with it", "corrected", "detected", "bits more", "of all", "time more")


def guarded_row(guarded: Guarded) -> tuple[str, ...]:
    """Return the cells of a protection under the headings `PROTECTION`, for a table of a terminal or page: how many
    faults fail without and with it, what it corrects and detects, and its cost in bits and time.
    """
    counts = (str(guarded.counts.get(name, 0)) for name in ("corrected", "detected"))
    time = "not modelled"
    if guarded.cost.time is not None:
        time = percent(guarded.cost.time - 1)
    return (
        guarded.name,
        str(guarded.before),
        str(guarded.failures),
        *counts,
        f"{guarded.cost.bits:,}",
        percent(guarded.cost.share),
        time,
    )


def effect_lines(effect: Effect) -> Iterator[str]:
    """Yield the description of one fault and of its effect."""
    fault = effect.fault
    properties = [fault.op_type]
    if fault.df:
        properties.append(fault.df)
    if fault.operand >= 0:
        properties.append(f"seen as operand {fault.operand}")
    place = f" in {fault.place} of" if fault.place else ":"
    yield f"fault {fault.number}: {fault.kind}{place} {fault.where} ({', '.join(properties)})"
    yield f"  {site_text(effect.fault)}"
    yield f"  {effect.outcome}: {effect.error or OUTCOME_TEXTS[effect.outcome]}"
    if effect.tiles:
        error = "infinite"
        if effect.max_error is not None:
            error = number(effect.max_error)
        yield (
            f"  {plural(effect.tiles, 'output tile')} differ, worst in {effect.output}: PCC {effect.pcc:.6f}, largest "
            f"error {error} of the usual size, {percent(effect.top1)} of rows keep their largest element"
        )
    if effect.ratio != 1.0:
        yield f"  the run takes {effect.ratio:.3f} times as long by the timing model"
    for name, left in effect.after.items():
        yield f"  with {name}: {left}"


def site_text(fault: Fault) -> str:
    """Return text on what a fault hits, such as tile, datum and bit of a value, and how it changes that."""
    if fault.kind == "clock":
        return f"{fault.how} of what it is from execute {fault.entry} on"
    if fault.kind == "link":
        return f"{fault.how} of what it is"
    if fault.kind == "pointer":
        return f"bit {fault.bits[0]} of its pointer {fault.how} flips after {plural(fault.entry, 'input')} of the run"
    if fault.kind == "entry" and fault.how == "lost":
        return f"entry {fault.tile} of those it holds is lost after {plural(fault.entry, 'input')} of the run"
    return ", ".join(_datum_parts(fault))


def _datum_parts(fault: Fault) -> Iterator[str]:
    """Yield the place of a fault in a value, from the largest part to the bits, and how it changes them."""
    if fault.entry >= 0:
        yield f"value {fault.entry} of {fault.where}"
    if fault.core is not None:
        yield f"core {fault.core[0]}, {fault.core[1]} of its grid"
    if fault.tile >= 0:
        yield f"tile {fault.tile}"
    if fault.exponent:
        yield f"shared exponent of group {fault.datum}"
    elif fault.datum >= 0:
        yield f"datum {fault.datum} (row {fault.datum // 32}, column {fault.datum % 32})"
    if fault.step >= 0:
        yield f"instruction {fault.step} of the vector unit"
    if fault.bits:
        yield f"bit {', '.join(map(str, fault.bits))} ({fault.bit_name})"
    if fault.how:
        yield fault.how
