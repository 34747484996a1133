"""Two schedules of one network compared, and a timeline beside a reference trace of its schedule."""

from collections.abc import Sequence
from dataclasses import dataclass

from buda_emu.foreign.gemini.figures import LayerTime, Peak, RunFigures, run_figures
from buda_emu.foreign.gemini.model import IR, WeightStore, Workload
from buda_emu.foreign.gemini.statistics import LayerBytes, statistics
from buda_emu.foreign.gemini.time.assembler import COMPUTE, read_assembler
from buda_emu.foreign.gemini.time.schedule import simulate, simulate_at
from buda_emu.foreign.gemini.time.timing import Rates, Span, Timeline
from buda_emu.support.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A layer in both: None where a schedule does not compute it."""

    layer: str
    cycles: tuple[int | None, int | None]
    waited: tuple[int | None, int | None]
    moved: tuple[int | None, int | None]
    """Bytes between DRAM, other cores and this layer."""

    @property
    def differs(self) -> bool:
        """Something is not the same."""
        return any(a != b for a, b in (self.cycles, self.waited, self.moved))


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What is loaded for a layer (`what`: weight, or the layer whose output it is) and how many workloads before its
    first reader its room opens, in each schedule."""

    layer: str
    what: str
    ahead: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of both, layers in the order of the first, then those of the second alone."""

    totals: tuple[int, int]
    dram_bytes: tuple[int, int]
    noc_bytes: tuple[int, int]
    peaks: tuple[Peak | None, Peak | None]
    layers: tuple[LayerChange, ...]
    prefetches: tuple[Prefetch, ...]
    models: tuple[str, ...]


def compare(first: IR, second: IR, rates: Rates) -> Comparison:
    """Both at the same rates."""
    sides = [_side(ir, rates) for ir in (first, second)]
    (a, a_times, a_bytes), (b, b_times, b_bytes) = sides
    names = dict.fromkeys([*a_times, *b_times])
    layers = tuple(_change(name, (a_times, b_times), (a_bytes, b_bytes)) for name in names)
    ahead = [_ahead(ir) for ir in (first, second)]
    keys = dict.fromkeys([*ahead[0], *ahead[1]])
    moved = [Prefetch(*key, (ahead[0].get(key, ()), ahead[1].get(key, ()))) for key in keys]
    return Comparison(
        totals=(a.total, b.total),
        dram_bytes=(a.dram.loaded + a.dram.stored, b.dram.loaded + b.dram.stored),
        noc_bytes=(a.noc_bytes, b.noc_bytes),
        peaks=(a.peak, b.peak),
        layers=layers,
        prefetches=tuple(item for item in moved if item.ahead[0] != item.ahead[1]),
        models=tuple(dict.fromkeys([*a.models, *b.models])),
    )


def _side(ir: IR, rates: Rates) -> tuple[RunFigures, dict[str, LayerTime], dict[str, LayerBytes]]:
    timeline: Timeline = simulate_at(ir, rates)
    figures = run_figures(ir, timeline)
    order = dict.fromkeys(work.layer_name for work in ir.workloads())
    times = {item.layer: item for item in figures.layers}
    moved = {item.layer: item for item in statistics(ir).by_layer}
    return figures, {name: times[name] for name in order}, moved


def _change(name: str, times: Sequence[dict[str, LayerTime]], moved: Sequence[dict[str, LayerBytes]]) -> LayerChange:
    def both(values: Sequence[int | None]) -> tuple[int | None, int | None]:
        return values[0], values[1]

    own = [side.get(name) for side in times]
    bytes_of = [side.get(name) for side in moved]
    return LayerChange(
        name,
        both([item and item.cycles for item in own]),
        both([item and item.waited for item in own]),
        both([item and item.loaded + item.weights + item.stored + item.sent for item in bytes_of]),
    )


def _ahead(ir: IR) -> dict[tuple[str, str], tuple[int, ...]]:
    """Of what DRAM feeds: workloads between the first snapshot that shows it and its reader, for each tensor (A)."""
    found: dict[tuple[str, str], list[int]] = {}
    for works in ir.cores.values() if ir.form.addressed else ():
        opened: dict[int, int] = {}
        for work in works:
            for item in (*work.buffer, *work.wl0):
                loaded = item.source == "DDR" if isinstance(item, WeightStore) else item.from_dram
                for number in item.transfer_id if loaded else ():
                    opened.setdefault(number, work.index)
            for number, name in _read(work):
                if number in opened:
                    key = (work.layer_name, name)
                    found.setdefault(key, []).append(work.index - opened.pop(number))
    return {key: tuple(values) for key, values in found.items()}


def _read(work: Workload) -> list[tuple[int, str]]:
    names = {source.transfer_id: source.layer_name for tensor in work.buffer for source in tensor.source}
    read = [(number, names.get(number) or "operand") for item in work.ifmap for number in item.transfer_id]
    return read + [(number, "weight") for number in (work.weight.transfer_id if work.weight else ())]


@dataclass(frozen=True, slots=True)
class WorkloadDifference:
    """Start and end of a workload here and in the trace."""

    workload_id: int
    layer: str
    start: int
    end: int
    trace_start: int
    trace_end: int


@dataclass(frozen=True, slots=True)
class TraceDifferences:
    """`instructions` of the trace, and how many start when it says: `exact_starts` with the trace's own
    durations in our
    queues, `equal_durations` of the predicted ones but for ct_* (both None without an assembler file)."""

    total: int
    trace_total: int
    instructions: int
    exact_starts: int | None
    equal_durations: int | None
    compared_durations: int | None
    workloads: tuple[WorkloadDifference, ...]

    @property
    def share(self) -> float:
        """By which the total is longer (below 0: shorter) than the trace's."""
        return self.total / max(self.trace_total, 1) - 1


def trace_differences(ir: IR, timeline: Timeline, asm: str | None, trace: str) -> TraceDifferences:
    """Compare. Raises ScheduleError for a trace that cannot be read or is of another assembler file."""
    lines = read_assembler(trace)
    spans = [Span(*item.span) for item in lines if item.span is not None]
    if len(spans) != len(lines):
        raise ScheduleError(f"{trace}: instructions without a time: this is not a trace")
    exact = equal = compared = None
    if asm is not None:
        ours = simulate(ir, asm=asm, durations=trace).instructions
        exact = sum(a.start == b.start for a, b in zip(ours, spans, strict=True))
        pairs = [(a, b) for item, a, b in zip(lines, timeline.instructions, spans, strict=True) if item.prefix != "ct"]
        compared = len(pairs)
        equal = sum(a.end - a.start == b.end - b.start for a, b in pairs)
    works: dict[int, Span] = {}
    for item, span in zip(lines, spans, strict=True):
        if item.name in COMPUTE:
            before = works.get(item.wkl, span)
            works[item.wkl] = Span(min(before.start, span.start), max(before.end, span.end))
    rows: list[WorkloadDifference] = []
    for work in ir.workloads():
        own = timeline.workloads.get((work.core, work.workload_id))
        other = works.get(work.workload_id)
        if own is not None and other is not None:
            rows.append(WorkloadDifference(work.workload_id, work.layer_name, *own, *other))
    total = max((span.end for span in spans), default=0)
    return TraceDifferences(
        total=timeline.total,
        trace_total=total,
        instructions=len(lines),
        exact_starts=exact,
        equal_durations=equal,
        compared_durations=compared,
        workloads=tuple(rows),
    )
