"""Figures of a timeline: where each core's time goes, how busy DRAM is, which layers take longest."""

from dataclasses import dataclass

from buda_emu.gemini.accesses import l2_races
from buda_emu.gemini.model import IR, Workload
from buda_emu.gemini.time.timing import WAIT_KINDS, Timeline
from buda_emu.timeline import idle, time_by_category
from buda_emu.timeline.ranges import covered
from buda_emu.timeline.waits import BUSY, END


@dataclass(frozen=True, slots=True)
class CoreTime:
    """Cycles of a core: they add up to the total. `rest`: after its last workload. `waits`: by what it waited for."""

    core: int
    compute: int
    waits: dict[str, int]
    rest: int


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Cycles that a layer's workloads take and wait for, over all cores, and the bytes that it makes DRAM move."""

    layer: str
    workloads: int
    cycles: int
    waited: int


@dataclass(frozen=True, slots=True)
class DramUse:
    """Of the one DRAM queue."""

    items: int
    busy: int
    loaded: int
    stored: int
    utilisation: float


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest snapshot of L2 (A)."""

    bytes: int
    core: int
    workload_id: int
    layer: str


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Of one run. `models`: what of it has no reference, in words; `races`: tasks that could meet in L2, None where no
    addresses tell."""

    total: int
    cores: tuple[CoreTime, ...]
    layers: tuple[LayerTime, ...]
    dram: DramUse
    peak: Peak | None
    noc_bytes: int
    races: tuple[str, ...] | None
    models: tuple[str, ...]


def run_figures(ir: IR, timeline: Timeline) -> RunFigures:
    """Of a timeline from the schedule alone, or of an assembler file (then cores tell compute and rest only)."""
    cores, waited = _cores(ir, timeline)
    return RunFigures(
        timeline.total,
        cores,
        _layers(ir, timeline, waited),
        _dram(timeline),
        fullest(ir),
        sum(timeline.links.values()),
        _races(ir, timeline),
        models(ir, timeline),
    )


def _races(ir: IR, timeline: Timeline) -> tuple[str, ...] | None:
    if not ir.form.addressed or timeline.mode == "assembler":
        return None
    name = timeline.schedule.label
    return tuple(
        f"{item.space}: {name(item.first)} and {name(item.second)} share {item.size} bytes from {item.address} on"
        for item in l2_races(timeline)
    )


def models(ir: IR, timeline: Timeline) -> tuple[str, ...]:
    """What of a timeline has no reference (facts GEMINI 1, 5)."""
    found: list[str] = []
    if not ir.form.addressed:
        found.append("dialect B has no reference: every time is a model")
    elif len(ir.cores) > 1:
        found.append("schedules of several cores have no reference: pieces between cores are a model")
    if not timeline.rates.fitted:
        rates = timeline.rates
        found.append(
            f"transfers are fitted at 16 GiB/s and 1 GHz: at {rates.dram_gibps:g} GiB/s and {rates.freq_ghz:g} "
            f"GHz they "
            "are a model"
        )
    return tuple(found)


def fullest(ir: IR) -> Peak | None:
    """The snapshot with most bytes; of equal ones the first. None without addresses."""
    best: Peak | None = None
    for work in ir.workloads() if ir.form.addressed else ():
        held = sum(tensor.size for tensor in work.buffer)
        if best is None or held > best.bytes:
            best = Peak(held, work.core, work.workload_id, work.layer_name)
    return best


def _cores(ir: IR, timeline: Timeline) -> tuple[tuple[CoreTime, ...], dict[tuple[int, int], int]]:
    """And how long each workload was waited for, by core and position."""
    if timeline.mode == "assembler":
        core = next(iter(ir.cores), 0)
        busy = covered([span for key, span in timeline.workloads.items() if key[0] == core])
        return (CoreTime(core, busy, {}, timeline.total - busy),), {}
    timing = timeline.timing
    categories = dict(enumerate(timeline.kinds))
    units = dict(zip(timing.units, time_by_category(timing, categories), strict=True))
    found: list[CoreTime] = []
    for core in ir.cores:
        times = units[f"core {core}"]
        waits = {str(kind): times.get(kind, 0) for kind in WAIT_KINDS}
        found.append(CoreTime(core, times[BUSY], waits, times.get(END, 0)))
    step_of = {task: step for step, tasks in timeline.tasks_of.items() for task in tasks}
    waited: dict[tuple[int, int], int] = {}
    for gap in idle(timing, categories):
        if gap.task in step_of:
            step = step_of[gap.task]
            waited[step] = waited.get(step, 0) + gap.end - gap.start
    return tuple(found), waited


def _layers(ir: IR, timeline: Timeline, waited: dict[tuple[int, int], int]) -> tuple[LayerTime, ...]:
    works: dict[str, list[Workload]] = {}
    for work in ir.workloads():
        works.setdefault(work.layer_name, []).append(work)
    found: list[LayerTime] = []
    for name, items in works.items():
        gaps = sum(waited.get((item.core, item.index), 0) for item in items)
        cycles = sum(_worked(timeline, item) for item in items)
        found.append(LayerTime(name, len(items), cycles, gaps))
    return tuple(sorted(found, key=lambda item: (-item.cycles - item.waited, item.layer)))


def _worked(timeline: Timeline, work: Workload) -> int:
    """Cycles of a workload without what it waits for in between."""
    if timeline.mode == "assembler":
        span = timeline.workloads.get((work.core, work.workload_id))
        return span.end - span.start if span is not None else 0
    start, end = timeline.timing.start, timeline.timing.end
    return sum(int(end[task] - start[task]) for task in timeline.tasks_of[work.core, work.index])


def _dram(timeline: Timeline) -> DramUse:
    busy = sum(item.end - item.start for item in timeline.dram)
    stored = sum(item.bytes for item in timeline.dram if item.kind == "store")
    loaded = sum(item.bytes for item in timeline.dram) - stored
    return DramUse(len(timeline.dram), busy, loaded, stored, busy / max(timeline.total, 1))
