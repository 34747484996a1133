"""Timelines, statistics and differences of Gemini schedules as plain text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from buda_emu.foreign.gemini.statistics import ACCESSES
from buda_emu.report.terminal.text import number, percent, table, whole
from buda_emu.support.checker.text import plural

if TYPE_CHECKING:
    from buda_emu.foreign.gemini.compare import Comparison, TraceDifferences
    from buda_emu.foreign.gemini.figures import RunFigures
    from buda_emu.foreign.gemini.model import IR
    from buda_emu.foreign.gemini.statistics import Statistics

_LAYERS = 10
_WORKLOADS = 10


def run_lines(ir: "IR", figures: "RunFigures") -> Iterator[str]:
    """Of `gemini run`."""
    yield f"{figures.total:,} cycles for {plural(len(ir.workloads()), 'workload')} on {plural(len(ir.cores), 'core')}"
    for text in figures.models:
        yield f"model: {text}"
    yield ""
    waits = list(figures.cores[0].waits) if figures.cores else []
    heads = ("core", "compute", *(f"wait: {name}" for name in waits), "after", "of the total")
    rows = [
        (
            str(item.core),
            f"{item.compute:,}",
            *(f"{item.waits[name]:,}" for name in waits),
            f"{item.rest:,}",
            percent(item.compute / max(figures.total, 1)),
        )
        for item in figures.cores
    ]
    yield table(heads, rows, range(1, len(heads)))
    dram = figures.dram
    yield ""
    yield (
        f"DRAM: {plural(dram.items, 'transfer')}, {dram.loaded:,} bytes loaded, {dram.stored:,} stored, busy "
        f"{percent(dram.utilisation)} of the time"
    )
    if len(ir.cores) > 1:
        yield f"NoC: {figures.noc_bytes:,} bytes over links"
    if figures.peak is not None:
        top = ir.buffersize or 1
        yield (
            f"L2: {figures.peak.bytes:,} of {top:,} bytes ({percent(min(figures.peak.bytes / top, 1))}) at most, core "
            f"{figures.peak.core} workload {figures.peak.workload_id} ({figures.peak.layer})"
        )
    else:
        yield "L2: not checkable: no addresses"
    if figures.races is not None:
        count = len(figures.races)
        yield f"L2 accesses: {plural(count, 'race')}" if count else "L2 accesses: every pair is kept apart by waits"
        yield from (f"  {text}" for text in figures.races[:_LAYERS])
    yield ""
    layers = [
        (item.layer, f"{item.workloads:,}", f"{item.cycles:,}", f"{item.waited:,}") for item in figures.layers[:_LAYERS]
    ]
    yield table(("slowest layers", "workloads", "cycles", "waited before"), layers, (1, 2, 3))


def difference_lines(found: "TraceDifferences") -> Iterator[str]:
    """Of `gemini run --trace`."""
    yield f"reference trace: {found.trace_total:,} cycles, here {found.total:,} ({100 * found.share:+.3f} %)"
    if found.exact_starts is not None and found.compared_durations is not None:
        yield f"  with the trace's durations {found.exact_starts} of {found.instructions} instructions start as there"
        yield f"  {found.equal_durations} of {found.compared_durations} predicted durations are equal (without ct_*)"
    rows = sorted(found.workloads, key=lambda item: -abs(item.start - item.trace_start))[:_WORKLOADS]
    shown = [
        (
            str(item.workload_id),
            item.layer,
            f"{item.start:,}",
            f"{item.trace_start:,}",
            f"{item.start - item.trace_start:+,}",
            f"{item.end - item.start - item.trace_end + item.trace_start:+,}",
        )
        for item in rows
    ]
    if shown:
        heads = ("workload", "layer", "start", "trace", "difference", "of the duration")
        yield table(heads, shown, (0, 2, 3, 4, 5))


def statistics_lines(found: "Statistics", energy: "Mapping[str, float] | None") -> Iterator[str]:
    """Of `gemini stats`."""
    yield (
        f"dialect {found.dialect}: {plural(found.cores, 'core')}, {plural(found.workloads, 'workload')} of "
        f"{plural(found.layers, 'layer')}, {plural(found.transfers, 'transfer')}, {found.dram_in:,} into DRAM, "
        f"{found.dram_out:,} out of it"
    )
    moved = found.bytes
    yield (
        f"bytes: {moved['load']:,} of feature maps loaded, {moved['weight']:,} of weights, {moved['store']:,} stored, "
        f"{moved['noc']:,} between cores"
    )
    yield ""
    heads = ("layer", "workloads", "loaded", "weights", "stored", "sent", "MACs", "reuse")
    rows = [
        (
            item.layer,
            *map(whole, (item.workloads, item.loaded, item.weights, item.stored, item.sent, item.macs)),
            number(item.reuse),
        )
        for item in found.by_layer
    ]
    yield table(heads, rows, range(1, 8))
    if found.links:
        yield ""
        links = [(f"{a[0]},{a[1]} > {b[0]},{b[1]}", whole(size)) for (a, b), size in found.links.items()]
        yield table(("link (x,y)", "bytes"), links, (1,))
    yield ""
    spent = energy or {}
    counted: Sequence[tuple[str, ...]] = [
        (name, whole(count), number(spent.get(name)), ACCESSES[name]) for name, count in found.accesses.items()
    ]
    yield table(("access", "count", "energy", "what is counted"), counted, (1, 2), prose=(3,))
    if energy is not None:
        kinds = f"{len(energy) - 1} of {len(found.accesses)} kinds of accesses"
        yield f"energy of {kinds}: {number(energy['total'], 6)} in the unit of the table"


def comparison_lines(found: "Comparison") -> Iterator[str]:
    """Of `gemini diff`."""
    for text in found.models:
        yield f"model: {text}"
    peaks = tuple(None if item is None else item.bytes for item in found.peaks)
    rows = [
        (name, *_pair(pair))
        for name, pair in (
            ("cycles", found.totals),
            ("bytes to and from DRAM", found.dram_bytes),
            ("bytes over links", found.noc_bytes),
            ("most bytes in L2", (peaks[0], peaks[1])),
        )
    ]
    yield table(("", "first", "second", "change"), rows, (1, 2, 3))
    changed = [item for item in found.layers if item.differs]
    yield ""
    if not changed:
        yield f"all {len(found.layers)} layers take the same time and move the same bytes"
    else:
        heads = ("layer", "cycles", "", "change", "waited", "", "change", "bytes", "", "change")
        shown = sorted(changed, key=lambda item: -abs((item.cycles[1] or 0) - (item.cycles[0] or 0)))
        yield table(
            heads,
            [(item.layer, *_pair(item.cycles), *_pair(item.waited), *_pair(item.moved)) for item in shown],
            range(1, 10),
        )
    if found.prefetches:
        yield ""
        yield table(
            ("prefetch moved: of layer", "what", "workloads ahead", "now"),
            [
                (item.layer, item.what, *(", ".join(map(str, side)) or "-" for side in item.ahead))
                for item in found.prefetches
            ],
        )


def _pair(values: "tuple[int | None, int | None]") -> tuple[str, str, str]:
    first, second = values
    change = "" if first is None or second is None else f"{second - first:+,}"
    return *("-" if value is None else whole(value) for value in values), change  # type: ignore[return-value]
