"""Figures of a timeline: where each core's time goes, how busy DRAM is, which layers take longest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buda_emu.foreign.gemini.index import Index, holding, read_tensor
from buda_emu.foreign.gemini.model import IR, Tensor, Workload
from buda_emu.foreign.gemini.rings import region_of
from buda_emu.foreign.gemini.time.timing import WAIT_KINDS, Timeline
from buda_emu.performance.timeline import Access, Hazard, Ring, happens_before, idle, order_conflicts, time_by_category
from buda_emu.performance.timeline.schedule import BUSY, END
from buda_emu.performance.timeline.tasks import union_length


@dataclass(frozen=True, slots=True)
class L2Access:
    """An access of the timeline, and the tensor that is touched."""

    access: Access
    tensor_id: int


def l2_accesses(timeline: Timeline) -> list[L2Access]:
    """Of a timeline from a schedule with addresses; none of others. Tensors are touched as wholes."""
    index = timeline.index
    plan = timeline.plan
    if index is None or plan is None or not index.ir.form.addressed:
        return []
    found: list[L2Access] = []
    for item, task in zip(plan.queue, timeline.item_tasks, strict=True):
        if item.tensor_id is not None:
            tensor = index.lives[item.core, item.tensor_id].first
            work = index.ir.cores[item.core][item.gate]
            found += _one(task, work, tensor, writes=item.kind != "store")
    for work in index.ir.workloads():
        for task in timeline.tasks_of[work.core, work.index]:
            for tensor, writes in _of_workload(index, work):
                found += _one(task, work, tensor, writes=writes)
    for send, task in zip(plan.sends, timeline.send_tasks, strict=True):
        for core, at in send.shown.items():
            work = index.ir.cores[core][at]
            for tensor, _source in holding(work, send.transfer_id):
                found += _one(task, work, tensor, writes=True)
    return found


def _of_workload(index: Index, work: Workload) -> Iterator[tuple[Tensor, bool]]:
    """Tensors that it touches, and whether it writes them."""
    for operand in work.ifmap:
        tensor = read_tensor(work, operand)
        if tensor is not None:
            yield tensor, False
    ids = set(work.weight.transfer_id) if work.weight else set[int]()
    rooms = {index.stored_in.get(piece.transfer_id) for piece in work.ofmap}
    made = {piece.transfer_id for piece in work.ofmap}
    for tensor in work.buffer:
        if tensor.type == "weight" and ids & set(tensor.transfer_id):
            yield tensor, False
        elif (tensor.type == "ofmap" and (work.core, tensor.tensor_id) in rooms) or (
            tensor.type == "ifmap" and made & {source.transfer_id for source in tensor.source}
        ):
            yield tensor, True


def _one(task: int, work: Workload, tensor: Tensor, *, writes: bool) -> Sequence[L2Access]:
    region = region_of(work.regions or (), tensor.address)
    if region is None or not 0 < tensor.size <= region[1] - region[0]:
        return ()  # G040 and G047 tell
    access = Access(
        task=task,
        space=f"L2 of core {work.core}",
        address=tensor.address,
        size=tensor.size,
        writes=writes,
        ring=Ring(*region),
    )
    return (L2Access(access, tensor.tensor_id),)


def l2_races(timeline: Timeline) -> list[Hazard]:
    """Pairs of tasks that touch common bytes of L2, one of them writing, and that no chain of waits orders: in some run
    they could meet. Pieces that are written into one tensor are not told of: they are disjoint (G036)."""
    accesses = l2_accesses(timeline)
    order = happens_before(timeline.schedule)
    by_task: dict[tuple[int, str], list[L2Access]] = {}
    for item in accesses:
        by_task.setdefault((item.access.task, item.access.space), []).append(item)
    return [
        hazard
        for hazard in order_conflicts(order, [item.access for item in accesses])
        if any(_meet(a, b) for a in by_task[hazard.first, hazard.space] for b in by_task[hazard.second, hazard.space])
    ]


def _meet(first: L2Access, second: L2Access) -> bool:
    """They share bytes, one writes, and they are not two pieces of one tensor."""
    if not (first.access.writes or second.access.writes):
        return False
    if first.tensor_id == second.tensor_id and first.access.writes and second.access.writes:
        return False
    return any(max(a, c) < min(b, d) for a, b in first.access.pieces() for c, d in second.access.pieces())


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
        total=timeline.total,
        cores=cores,
        layers=_layers(ir, timeline, waited),
        dram=_dram(timeline),
        peak=fullest(ir),
        noc_bytes=sum(timeline.links.values()),
        races=_races(ir, timeline),
        models=models(ir, timeline),
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
        busy = union_length([span for key, span in timeline.workloads.items() if key[0] == core])
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
    start = timeline.timing.start
    end = timeline.timing.end
    return sum(int(end[task] - start[task]) for task in timeline.tasks_of[work.core, work.index])


def _dram(timeline: Timeline) -> DramUse:
    busy = sum(item.end - item.start for item in timeline.dram)
    stored = sum(item.bytes for item in timeline.dram if item.kind == "store")
    loaded = sum(item.bytes for item in timeline.dram) - stored
    return DramUse(
        items=len(timeline.dram), busy=busy, loaded=loaded, stored=stored, utilisation=busy / max(timeline.total, 1)
    )
