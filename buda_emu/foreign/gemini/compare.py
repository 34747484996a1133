"""Compare two schedules of one network, and a timeline with a reference trace of its schedule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from buda_emu.foreign.gemini.boxes import Box, hull
from buda_emu.foreign.gemini.figures import LayerTime, Peak, RunFigures, run_figures
from buda_emu.foreign.gemini.model import IR, Tensor, WeightStore, Workload
from buda_emu.foreign.gemini.stages import TRACE
from buda_emu.foreign.gemini.statistics import LayerBytes, statistics
from buda_emu.foreign.gemini.time.assembler import Instruction, read_assembler, workload_spans
from buda_emu.foreign.gemini.time.schedule import simulate, simulate_at
from buda_emu.foreign.gemini.time.timing import Rates, Span, Timeline
from buda_emu.support.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class LayerChange:
    """Cycles, waiting and moved bytes of a layer in both schedules; None on the side of a schedule that does not
    compute it."""

    layer: str
    cycles: tuple[int | None, int | None]
    waited: tuple[int | None, int | None]
    moved: tuple[int | None, int | None]
    """Bytes between DRAM, other cores and this layer."""

    @property
    def differs(self) -> bool:
        """True when cycles, waiting or moved bytes differ."""
        return any(a != b for a, b in (self.cycles, self.waited, self.moved))


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A tensor that DRAM feeds (`what` is "weight" or the layer that makes it), and for each schedule how many
    workloads before its first reader its room opens."""

    layer: str
    what: str
    ahead: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of two schedules, first and second. Layers stand in the order of the first schedule, followed by
    those that only the second has."""

    totals: tuple[int, int]
    dram_bytes: tuple[int, int]
    noc_bytes: tuple[int, int]
    peaks: tuple[Peak | None, Peak | None]
    layers: tuple[LayerChange, ...]
    prefetches: tuple[Prefetch, ...]
    models: tuple[str, ...]
    other_layers: tuple[str, ...] = ()
    """Layers that only one schedule computes, or that have another shape in each: then the schedules are of different
    networks, or of different parts of one."""


def compare(first: IR, second: IR, rates: Rates) -> Comparison:
    """Compare two schedules at the same rates."""
    sides = [_measure_schedule(ir, rates) for ir in (first, second)]
    (a, a_times, a_bytes), (b, b_times, b_bytes) = sides
    names = dict.fromkeys([*a_times, *b_times])
    layers = tuple(_compare_layer(name, (a_times, b_times), (a_bytes, b_bytes)) for name in names)
    ahead = [_prefetch_distances(ir) for ir in (first, second)]
    keys = dict.fromkeys([*ahead[0], *ahead[1]])
    moved = [Prefetch(*key, (ahead[0].get(key, ()), ahead[1].get(key, ()))) for key in keys]
    return Comparison(
        totals=(a.total, b.total),
        dram_bytes=(a.dram.loaded + a.dram.stored, b.dram.loaded + b.dram.stored),
        noc_bytes=(a.noc_bytes, b.noc_bytes),
        peaks=(a.peak, b.peak),
        layers=layers,
        prefetches=tuple(prefetch for prefetch in moved if prefetch.ahead[0] != prefetch.ahead[1]),
        models=tuple(dict.fromkeys([*a.models, *b.models])),
        other_layers=tuple(_other_layers(first, second)),
    )


def _other_layers(first: IR, second: IR) -> Iterator[str]:
    """Yield the layers that only one schedule computes, or with another shape; batches may differ."""
    left = _layer_shapes(first)
    right = _layer_shapes(second)
    for name in dict.fromkeys([*left, *right]):
        if left.get(name) != right.get(name):
            yield name


def _layer_shapes(ir: IR) -> dict[str, tuple[int, ...]]:
    """Return what the workloads of each layer compute together, C H W, in the order of the schedule."""
    boxes: dict[str, list[Box]] = {}
    for work in ir.workloads():
        boxes.setdefault(work.layer_name, []).append(work.box)
    return {name: hull(parts).shape[1:] for name, parts in boxes.items()}


def _measure_schedule(ir: IR, rates: Rates) -> tuple[RunFigures, dict[str, LayerTime], dict[str, LayerBytes]]:
    """Time a schedule and return its figures, its layers' times in the order of the schedule, and its layers' bytes."""
    timeline: Timeline = simulate_at(ir, rates)
    figures = run_figures(ir, timeline)
    order = dict.fromkeys(work.layer_name for work in ir.workloads())
    times = {row.layer: row for row in figures.layers}
    moved = {row.layer: row for row in statistics(ir).by_layer}
    return figures, {name: times[name] for name in order}, moved


def _compare_layer(
    name: str, times: Sequence[dict[str, LayerTime]], moved: Sequence[dict[str, LayerBytes]]
) -> LayerChange:
    """Return the figures of layer `name` in both schedules. `times` and `moved` hold those of each schedule by
    layer."""

    def both(values: Sequence[int | None]) -> tuple[int | None, int | None]:
        """Return the values of the first and of the second schedule as a pair."""
        return values[0], values[1]

    layer_times = [side.get(name) for side in times]
    layer_bytes = [side.get(name) for side in moved]
    return LayerChange(
        name,
        both([row and row.cycles for row in layer_times]),
        both([row and row.waited for row in layer_times]),
        both([row and row.loaded + row.weights + row.stored + row.sent for row in layer_bytes]),
    )


def _is_loaded(entry: Tensor | WeightStore) -> bool:
    """Return whether an entry of a snapshot came from DRAM."""
    if isinstance(entry, WeightStore):
        return entry.source == "DDR"
    return entry.from_dram


def _prefetch_distances(ir: IR) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return, by reading layer and source, how many workloads lie between the first snapshot that shows a loaded tensor
    and its reader (dialect A). Dialect B gives none."""
    distances: dict[tuple[str, str], list[int]] = {}
    for works in ir.cores.values() if ir.form.addressed else ():
        opened: dict[int, int] = {}
        for work in works:
            for entry in (*work.buffer, *work.wl0):
                if _is_loaded(entry):
                    for number in entry.transfer_id:
                        opened.setdefault(number, work.index)
            for number, name in _list_operand_sources(work):
                if number in opened:
                    key = (work.layer_name, name)
                    distances.setdefault(key, []).append(work.index - opened.pop(number))
    return {key: tuple(values) for key, values in distances.items()}


def _list_operand_sources(work: Workload) -> list[tuple[int, str]]:
    """Return the transfer ids that a workload reads, each with the layer that makes it; "operand" where no tensor
    tells the layer, "weight" for a weight."""
    names: dict[int, str | None] = {}
    for tensor in work.buffer:
        names.update((source.transfer_id, source.layer_name) for source in tensor.source)
    operands = [(number, names.get(number) or "operand") for number in work.operand_ids]
    return operands + [(number, "weight") for number in (work.weight.transfer_id if work.weight else ())]


@dataclass(frozen=True, slots=True)
class WorkloadDifference:
    """Start and end cycle of a workload in the simulation and in the reference trace."""

    workload_id: int
    layer: str
    start: int
    end: int
    trace_start: int
    trace_end: int


@dataclass(frozen=True, slots=True)
class TraceDifferences:
    """Differences between a timeline and a trace of `instructions` instructions.

    With an assembler file, `exact_starts` counts the instructions that start as in the trace when our queues use the
    trace's own durations, and `equal_durations` the equal predicted durations among `compared_durations`, which leave
    out ct_*. All three are None without an assembler file.
    """

    total: int
    trace_total: int
    instructions: int
    exact_starts: int | None
    equal_durations: int | None
    compared_durations: int | None
    workloads: tuple[WorkloadDifference, ...]

    @property
    def share(self) -> float:
        """The fraction of the trace's total by which the simulated total is longer; negative where it is shorter."""
        return self.total / max(self.trace_total, 1) - 1


def trace_differences(ir: IR, timeline: Timeline, asm: str | None, trace: str) -> TraceDifferences:
    """Compare a timeline with a reference trace. Raises ScheduleError for a trace that cannot be read or that belongs
    to another assembler file."""
    lines = read_assembler(trace, TRACE)
    spans = [Span(*line.span) for line in lines if line.span is not None]
    if len(spans) != len(lines):
        raise ScheduleError(f"{trace}: instructions without a time: this is not a trace")
    exact = equal = compared = None
    if asm is not None:
        replayed = simulate(ir, asm=asm, durations=trace).instructions
        exact = sum(a.start == b.start for a, b in zip(replayed, spans, strict=True))
        compared, equal = _count_equal_durations(lines, timeline.instructions, spans)
    return TraceDifferences(
        total=timeline.total,
        trace_total=max((span.end for span in spans), default=0),
        instructions=len(lines),
        exact_starts=exact,
        equal_durations=equal,
        compared_durations=compared,
        workloads=tuple(_workload_differences(ir, timeline, workload_spans(lines, spans))),
    )


def _count_equal_durations(
    lines: Sequence[Instruction], simulated: Sequence[Span], traced: Sequence[Span]
) -> tuple[int, int]:
    """Return how many durations were compared, and how many of them are equal. Those of ct_* are left out."""
    compared = 0
    equal = 0
    for line, a, b in zip(lines, simulated, traced, strict=True):
        if line.prefix != "ct":
            compared += 1
            equal += a.end - a.start == b.end - b.start
    return compared, equal


def _workload_differences(ir: IR, timeline: Timeline, traced: Mapping[int, Span]) -> Iterator[WorkloadDifference]:
    """Yield the workloads that both the timeline and the trace have."""
    for work in ir.workloads():
        simulated = timeline.workloads.get((work.core, work.workload_id))
        reference = traced.get(work.workload_id)
        if simulated is not None and reference is not None:
            yield WorkloadDifference(
                workload_id=work.workload_id,
                layer=work.layer_name,
                start=simulated.start,
                end=simulated.end,
                trace_start=reference.start,
                trace_end=reference.end,
            )
