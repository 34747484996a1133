"""Timelines, statistics and differences of schedules as plain text, and a timeline as a picture: lanes for DRAM, cores
and their sends, or for the units of an assembler file, and the tensors in each core's L2."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from buda_emu.foreign.gemini.figures import model_notes
from buda_emu.foreign.gemini.index import Life
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.sizes import region_of
from buda_emu.foreign.gemini.statistics import ACCESSES
from buda_emu.foreign.gemini.time.timing import Timeline
from buda_emu.performance.timeline import Live, Ring
from buda_emu.performance.timeline.picture import Detail, Memory, TimelinePicture, picture
from buda_emu.report.terminal.text import number, percent, table, whole
from buda_emu.support.checker.text import list_first, plural

if TYPE_CHECKING:
    from buda_emu.foreign.gemini.compare import Comparison, TraceDifferences
    from buda_emu.foreign.gemini.figures import RunFigures
    from buda_emu.foreign.gemini.statistics import Statistics

_LAYERS = 10  # rows of a table; the JSON has all
_WORKLOADS = 10  # rows of a table; the JSON has all
_OTHER_LAYERS = 3  # names in a message
TaskFacts: TypeAlias = Mapping[int, tuple[str, Mapping[str, Detail]]]
"""Category and details of each task, by its number."""


def run_lines(ir: IR, figures: "RunFigures") -> Iterator[str]:
    """Yield the lines that `gemini run` prints: cores, DRAM, NoC, L2, races and the slowest layers."""
    yield f"{figures.total:,} cycles for {plural(len(ir.workloads()), 'workload')} on {plural(len(ir.cores), 'core')}"
    for text in figures.models:
        yield f"model: {text}"
    yield ""
    yield _table_of_cores(figures)
    dram = figures.dram
    yield ""
    yield (
        f"DRAM: {plural(dram.items, 'transfer')}, {dram.loaded:,} bytes loaded, {dram.stored:,} stored, busy "
        f"{percent(dram.utilisation)} of the time"
    )
    if len(ir.cores) > 1:
        yield f"NoC: {figures.noc_bytes:,} bytes over links"
    yield _describe_peak(ir, figures)
    if figures.races is not None:
        count = len(figures.races)
        yield f"L2 accesses: {plural(count, 'race')}" if count else "L2 accesses: every pair is kept apart by waits"
        yield from (f"  {text}" for text in figures.races[:_LAYERS])
    yield ""
    layers = [
        (row.layer, f"{row.workloads:,}", f"{row.cycles:,}", f"{row.waited:,}") for row in figures.layers[:_LAYERS]
    ]
    yield table(("slowest layers", "workloads", "cycles", "waited before"), layers, (1, 2, 3))


def _table_of_cores(figures: "RunFigures") -> str:
    """Return the table of the cores: the cycles in which each computes, waits, and has nothing left to do."""
    waits: list[str] = []
    if figures.cores:
        waits = list(figures.cores[0].waits)
    heads = ("core", "compute", *(f"wait: {name}" for name in waits), "after", "of the total")
    rows = [
        (
            str(row.core),
            f"{row.compute:,}",
            *(f"{row.waits[name]:,}" for name in waits),
            f"{row.rest:,}",
            percent(row.compute / max(figures.total, 1)),
        )
        for row in figures.cores
    ]
    return table(heads, rows, range(1, len(heads)))


def _describe_peak(ir: IR, figures: "RunFigures") -> str:
    """Return the line about the fullest L2, which a schedule without addresses does not have."""
    peak = figures.peak
    if peak is None:
        return "L2: not checkable: no addresses"
    top = ir.buffersize or 1
    return (
        f"L2: {peak.bytes:,} of {top:,} bytes ({percent(min(peak.bytes / top, 1))}) at most, core {peak.core} workload "
        f"{peak.workload_id} ({peak.layer})"
    )


def difference_lines(differences: "TraceDifferences") -> Iterator[str]:
    """Yield the lines that `gemini run --trace` prints about the differences from the trace."""
    share = f"{100 * differences.share:+.3f} %"
    yield f"reference trace: {differences.trace_total:,} cycles, here {differences.total:,} ({share})"
    if differences.exact_starts is not None and differences.compared_durations is not None:
        exact = f"{differences.exact_starts} of {differences.instructions}"
        equal = f"{differences.equal_durations} of {differences.compared_durations}"
        yield f"  with the trace's durations {exact} instructions start as there"
        yield f"  {equal} predicted durations are equal (without ct_*)"
    rows = sorted(differences.workloads, key=lambda row: -abs(row.start - row.trace_start))[:_WORKLOADS]
    shown = [
        (
            str(row.workload_id),
            row.layer,
            f"{row.start:,}",
            f"{row.trace_start:,}",
            f"{row.start - row.trace_start:+,}",
            f"{row.end - row.start - row.trace_end + row.trace_start:+,}",
        )
        for row in rows
    ]
    if not shown:
        yield "  DOUBTFUL: no workload of the schedule is in the trace, so only the totals were compared"
    if shown:
        heads = ("workload", "layer", "start", "trace", "difference", "of the duration")
        yield table(heads, shown, (0, 2, 3, 4, 5))


def statistics_lines(counts: "Statistics", energy: "Mapping[str, float] | None") -> Iterator[str]:
    """Yield the lines that `gemini stats` prints; `energy` is None without an energy table."""
    yield (
        f"dialect {counts.dialect}: {plural(counts.cores, 'core')}, {plural(counts.workloads, 'workload')} of "
        f"{plural(counts.layers, 'layer')}, {plural(counts.transfers, 'transfer')}, {counts.dram_in:,} into DRAM, "
        f"{counts.dram_out:,} out of it"
    )
    moved = counts.bytes
    yield (
        f"bytes: {moved['load']:,} of feature maps loaded, {moved['weight']:,} of weights, {moved['store']:,} stored, "
        f"{moved['noc']:,} between cores"
    )
    yield ""
    heads = ("layer", "workloads", "loaded", "weights", "stored", "sent", "MACs", "reuse")
    rows = [
        (
            row.layer,
            *map(whole, (row.workloads, row.loaded, row.weights, row.stored, row.sent, row.macs)),
            number(row.reuse),
        )
        for row in counts.by_layer
    ]
    yield table(heads, rows, range(1, 8))
    if counts.links:
        yield ""
        links = [(f"{a[0]},{a[1]} > {b[0]},{b[1]}", whole(size)) for (a, b), size in counts.links.items()]
        yield table(("link (x,y)", "bytes"), links, (1,))
    yield ""
    spent = energy or {}
    counted: Sequence[tuple[str, ...]] = [
        (name, whole(count), number(spent.get(name)), ACCESSES[name]) for name, count in counts.accesses.items()
    ]
    yield table(("access", "count", "energy", "what is counted"), counted, (1, 2), prose=(3,))
    if energy is not None:
        kinds = f"{len(energy) - 1} of {len(counts.accesses)} kinds of accesses"
        yield f"energy of {kinds}: {number(energy['total'], 6)} in the unit of the table"


def comparison_lines(comparison: "Comparison") -> Iterator[str]:
    """Yield the lines that `gemini diff` prints about two schedules."""
    for text in comparison.models:
        yield f"model: {text}"
    if comparison.other_layers:
        layers = f"{len(comparison.other_layers)} of {plural(len(comparison.layers), 'layer')}"
        yield (
            f"note: schedules of different networks, or of different parts of one: {layers} are only in one of them, "
            f"or have another shape: {list_first(comparison.other_layers, _OTHER_LAYERS)}"
        )
    peaks = tuple(None if row is None else row.bytes for row in comparison.peaks)
    rows = [
        (name, *_pair_cells(pair))
        for name, pair in (
            ("cycles", comparison.totals),
            ("bytes to and from DRAM", comparison.dram_bytes),
            ("bytes over links", comparison.noc_bytes),
            ("most bytes in L2", (peaks[0], peaks[1])),
        )
    ]
    yield table(("", "first", "second", "change"), rows, (1, 2, 3))
    yield ""
    yield _layer_changes(comparison)
    if comparison.prefetches:
        yield ""
        yield table(
            ("prefetch moved: of layer", "what", "workloads ahead", "now"),
            [
                (row.layer, row.what, *(", ".join(map(str, side)) or "-" for side in row.ahead))
                for row in comparison.prefetches
            ],
        )


def _layer_changes(comparison: "Comparison") -> str:
    """Return the table of the layers that differ, those whose cycles change most first; a sentence if none does."""
    changed = [row for row in comparison.layers if row.differs]
    if not changed:
        return f"all {len(comparison.layers)} layers take the same time and move the same bytes"
    heads = ("layer", "cycles", "", "change", "waited", "", "change", "bytes", "", "change")
    shown = sorted(changed, key=lambda row: -abs((row.cycles[1] or 0) - (row.cycles[0] or 0)))
    rows = [(row.layer, *_pair_cells(row.cycles), *_pair_cells(row.waited), *_pair_cells(row.moved)) for row in shown]
    return table(heads, rows, range(1, 10))


def _pair_cells(pair: "tuple[int | None, int | None]") -> tuple[str, str, str]:
    """Return the cells of a figure of two schedules and of its change: "-" for a schedule that does not have it."""
    first, second = pair
    if first is None or second is None:
        change = ""
    else:
        change = f"{second - first:+,}"
    return *("-" if value is None else whole(value) for value in pair), change  # type: ignore[return-value]


def timeline_picture(ir: IR, timeline: Timeline, title: str) -> TimelinePicture:
    """Return the picture of a simulated timeline, with times in cycles. Parts without a reference are named in its
    notes."""
    if timeline.mode == "assembler":
        facts = _unit_facts(timeline)
    else:
        facts = _task_facts(ir, timeline)
    if timeline.mode == "assembler" or not ir.form.addressed:
        lives = []
    else:
        lives = _tensor_lives(ir, timeline)
    notes = [f"A model: {text}." for text in model_notes(ir, timeline)]
    if not ir.form.addressed:
        notes.append("L2 is not drawn: not checkable, no addresses.")
    return picture(
        timeline.schedule,
        timeline.timing,
        title,
        category=lambda task: facts[task][0],
        details=lambda task: facts[task][1],
        group=lambda unit: _lane_group(timeline.timing.units[unit]),
        memories=[
            Memory(space, [live for live in lives if live.space == space], ir.buffersize or 0)
            for space in dict.fromkeys(live.space for live in lives)
        ],
        per_microsecond=timeline.rates.freq_ghz * 1000,
        notes=notes,
        about={"cycles": timeline.total, "workloads": len(ir.workloads()), "cores": len(ir.cores)},
    )


def _task_facts(ir: IR, timeline: Timeline) -> TaskFacts:
    """Return category and details of each task of a simulated schedule."""
    facts: dict[int, tuple[str, Mapping[str, Detail]]] = {}
    for transfer, task in zip(timeline.dram, timeline.item_tasks, strict=True):
        facts[task] = transfer.kind, {"bytes": transfer.bytes, "transfer": transfer.transfer_id, "core": transfer.core}
    for piece, task in zip(timeline.noc, timeline.send_tasks, strict=True):
        facts[task] = (
            "send",
            {"bytes": piece.bytes, "transfer": piece.transfer_id, "to": ", ".join(map(str, piece.cores))},
        )
    for work in ir.workloads():
        details = {
            "layer": work.layer_name,
            "workload": work.workload_id,
            "box": str(work.box),
            "tiles": len(work.tiles),
        }
        for task in timeline.tasks_of[work.core, work.index]:
            facts[task] = work.layer_type or "other", details
    return facts


def _unit_facts(timeline: Timeline) -> TaskFacts:
    """Return the unit of each task of an assembler file as its category."""
    units: list[int] = timeline.timing.unit.tolist()
    return {task: (timeline.timing.units[unit], {}) for task, unit in enumerate(units)}


def _lane_group(unit: str) -> str:
    """Return the title of the group under which the lane of a unit is drawn: cores, NoC, DRAM or units."""
    if unit.startswith("core "):
        return "cores"
    if unit.startswith("send "):
        return "NoC"
    return "DRAM" if unit == "DRAM" else "units"


def _tensor_lives(ir: IR, timeline: Timeline) -> list[Live]:
    """Return the lives of the tensors in L2. A tensor lives from the end of the workload before the first snapshot with
    it, when its room becomes free, to the end of the last workload whose snapshot has it, or of its store if later."""
    index = timeline.index
    plan = timeline.plan
    if index is None or plan is None:
        return []
    stored = {
        (transfer.core, transfer.tensor_id): span.end
        for transfer, span in zip(plan.queue, timeline.dram, strict=True)
        if transfer.kind == "store"
    }
    lives: list[Live] = []
    for key, life in index.lives.items():
        works = ir.cores[life.core]
        region = region_of(works[life.at[0]].regions or (), life.first.address)
        if region is None or not 0 < life.first.size <= region[1] - region[0]:
            continue
        before = life.at[0] - 1
        if before >= 0:
            start = timeline.workloads[life.core, works[before].workload_id].end
        else:
            start = 0
        end = max(timeline.workloads[life.core, works[life.at[-1]].workload_id].end, stored.get(key, 0))
        space = f"L2 of core {life.core}"
        lives.append(
            Live(
                space=space,
                address=life.first.address,
                size=life.first.size,
                start=start,
                end=end,
                name=_tensor_title(life),
                ring=Ring(*region),
            )
        )
    return lives


def _tensor_title(life: Life) -> str:
    """Return the name of a tensor in the picture: its number, type, and the layers that produce it."""
    tensor = life.first
    producers = sorted({source.layer_name for source in tensor.source if source.layer_name})
    owner = tensor.layer_name or ", ".join(producers)
    return f"tensor {life.tensor_id}: {tensor.type} {owner}".rstrip()
