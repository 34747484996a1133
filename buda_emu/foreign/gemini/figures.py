"""Figures of a timeline: the time of each core by activity, the load of DRAM, the layers that take longest, and races
in L2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buda_emu.foreign.gemini.index import Index, find_read_tensor, tensors_holding
from buda_emu.foreign.gemini.model import IR, Tensor, Workload
from buda_emu.foreign.gemini.sizes import region_of
from buda_emu.foreign.gemini.time.plan import Send
from buda_emu.foreign.gemini.time.timing import WAIT_KINDS, Timeline
from buda_emu.performance.timeline import Access, Hazard, Ring, happens_before, idle, order_conflicts, time_by_category
from buda_emu.performance.timeline.schedule import BUSY, END
from buda_emu.performance.timeline.tasks import union_length


@dataclass(frozen=True, slots=True)
class L2Access:
    """An access of the timeline, with the tensor that it touches."""

    access: Access
    tensor_id: int


def l2_accesses(timeline: Timeline) -> list[L2Access]:
    """Return every access to L2 in a timeline of a schedule with addresses, and none for other timelines. An access
    touches the whole tensor."""
    index = timeline.index
    plan = timeline.plan
    if index is None or plan is None or not index.ir.form.addressed:
        return []
    accesses: list[L2Access] = []
    for transfer, task in zip(plan.queue, timeline.item_tasks, strict=True):
        if transfer.tensor_id is not None:
            tensor = index.lives[transfer.core, transfer.tensor_id].first
            work = index.ir.cores[transfer.core][transfer.gate]
            accesses += _access_to(task, work, tensor, writes=transfer.kind != "store")
    for work in index.ir.workloads():
        touched = list(_tensors_of_workload(index, work))
        for task in timeline.tasks_of[work.core, work.index]:
            for tensor, writes in touched:
                accesses += _access_to(task, work, tensor, writes=writes)
    for send, task in zip(plan.sends, timeline.send_tasks, strict=True):
        accesses += _accesses_of_send(index, send, task)
    return accesses


def _accesses_of_send(index: Index, send: Send, task: int) -> list[L2Access]:
    """Return the accesses of a piece that arrives in the L2 of each destination core."""
    accesses: list[L2Access] = []
    for core, at in send.shown.items():
        work = index.ir.cores[core][at]
        for tensor, _source in tensors_holding(work, send.transfer_id):
            accesses += _access_to(task, work, tensor, writes=True)
    return accesses


def _tensors_of_workload(index: Index, work: Workload) -> Iterator[tuple[Tensor, bool]]:
    """Yield the tensors that a workload touches, each with whether the workload writes it."""
    for operand in work.ifmap:
        tensor = find_read_tensor(work, operand)
        if tensor is not None:
            yield tensor, False
    if work.weight:
        weight_ids = set(work.weight.transfer_id)
    else:
        weight_ids = set[int]()
    for tensor in work.buffer:
        if tensor.type == "weight" and weight_ids & set(tensor.transfer_id):
            yield tensor, False
        elif _holds_result(index, work, tensor):
            yield tensor, True


def _holds_result(index: Index, work: Workload, tensor: Tensor) -> bool:
    """Return whether the workload writes a piece of its result to the tensor."""
    produced_ids = {piece.transfer_id for piece in work.ofmap}
    if tensor.type == "ofmap":
        return (work.core, tensor.tensor_id) in {index.room_of_output.get(number) for number in produced_ids}
    return tensor.type == "ifmap" and any(source.transfer_id in produced_ids for source in tensor.source)


def _access_to(task: int, work: Workload, tensor: Tensor, *, writes: bool) -> Sequence[L2Access]:
    """Return the access of a task to a tensor in the L2 of the workload's core; none where the tensor is in no ring
    region, which G040 and G047 report."""
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
    """Return the pairs of tasks that touch common bytes of L2, at least one writing, without a chain of waits that
    orders them. Two writes to one tensor are no race, since its pieces are disjoint (G036)."""
    accesses = l2_accesses(timeline)
    order = happens_before(timeline.schedule)
    by_task: dict[tuple[int, str], list[L2Access]] = {}
    for entry in accesses:
        by_task.setdefault((entry.access.task, entry.access.space), []).append(entry)
    return [
        hazard
        for hazard in order_conflicts(order, [entry.access for entry in accesses])
        if any(
            _is_conflict(a, b)
            for a in by_task[hazard.first, hazard.space]
            for b in by_task[hazard.second, hazard.space]
        )
    ]


def _is_conflict(first: L2Access, second: L2Access) -> bool:
    """Return whether two accesses share bytes, one of them writes, and they are not two writes to one tensor."""
    if not (first.access.writes or second.access.writes):
        return False
    if first.tensor_id == second.tensor_id and first.access.writes and second.access.writes:
        return False
    return any(max(a, c) < min(b, d) for a, b in first.access.pieces() for c, d in second.access.pieces())


@dataclass(frozen=True, slots=True)
class CoreTime:
    """Cycles of one core, which add up to the total. `waits` gives the cycles by what the core waited for, `rest` those
    after its last workload."""

    core: int
    compute: int
    waits: dict[str, int]
    rest: int


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Cycles that a layer's workloads take and that they wait, summed over all cores."""

    layer: str
    workloads: int
    cycles: int
    waited: int


@dataclass(frozen=True, slots=True)
class DramUse:
    """Use of the one DRAM queue: transfers, busy cycles, bytes loaded and stored, and the busy share of the total."""

    items: int
    busy: int
    loaded: int
    stored: int
    utilisation: float


@dataclass(frozen=True, slots=True)
class Peak:
    """The fullest snapshot of L2, in bytes (dialect A)."""

    bytes: int
    core: int
    workload_id: int
    layer: str


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of one run. `models` says in words which parts have no reference; `races` lists the tasks that could
    meet in L2, None where there are no addresses."""

    total: int
    cores: tuple[CoreTime, ...]
    layers: tuple[LayerTime, ...]
    dram: DramUse
    peak: Peak | None
    noc_bytes: int
    races: tuple[str, ...] | None
    models: tuple[str, ...]


def run_figures(ir: IR, timeline: Timeline) -> RunFigures:
    """Return the figures of a timeline, simulated from the schedule alone or from an assembler file. The latter gives
    compute and rest of the cores, but no waits."""
    cores, waited = _core_times(ir, timeline)
    return RunFigures(
        total=timeline.total,
        cores=cores,
        layers=_layer_times(ir, timeline, waited),
        dram=_dram_use(timeline),
        peak=find_fullest_snapshot(ir),
        noc_bytes=sum(timeline.links.values()),
        races=_race_lines(ir, timeline),
        models=model_notes(ir, timeline),
    )


def _race_lines(ir: IR, timeline: Timeline) -> tuple[str, ...] | None:
    """Return a line for each race in L2; None for a schedule without addresses and for the times of an assembler
    file."""
    if not ir.form.addressed or timeline.mode == "assembler":
        return None
    name = timeline.schedule.label
    return tuple(
        f"{race.space}: {name(race.first)} and {name(race.second)} share {race.size} bytes from {race.address} on"
        for race in l2_races(timeline)
    )


def model_notes(ir: IR, timeline: Timeline) -> tuple[str, ...]:
    """Return sentences on the parts of a timeline that have no reference (facts GEMINI 1, 5)."""
    notes: list[str] = []
    if not ir.form.addressed:
        notes.append("dialect B has no reference: every time is a model")
    elif len(ir.cores) > 1:
        notes.append("schedules of several cores have no reference: pieces between cores are a model")
    if not timeline.rates.fitted:
        rates = timeline.rates
        notes.append(
            f"transfers are fitted at 16 GiB/s and 1 GHz: at {rates.dram_gibps:g} GiB/s and {rates.freq_ghz:g} "
            f"GHz they "
            "are a model"
        )
    return tuple(notes)


def find_fullest_snapshot(ir: IR) -> Peak | None:
    """Return the snapshot with most bytes, the first of equal ones; None for a schedule without addresses."""
    best: Peak | None = None
    for work in ir.workloads() if ir.form.addressed else ():
        held = sum(tensor.size for tensor in work.buffer)
        if best is None or held > best.bytes:
            best = Peak(held, work.core, work.workload_id, work.layer_name)
    return best


def _core_times(ir: IR, timeline: Timeline) -> tuple[tuple[CoreTime, ...], dict[tuple[int, int], int]]:
    """Return the times of all cores, and how long each workload was waited for, by core and position."""
    if timeline.mode == "assembler":
        core = next(iter(ir.cores), 0)
        busy = union_length([span for key, span in timeline.workloads.items() if key[0] == core])
        return (CoreTime(core, busy, {}, timeline.total - busy),), {}
    timing = timeline.timing
    categories = dict(enumerate(timeline.kinds))
    units = dict(zip(timing.units, time_by_category(timing, categories), strict=True))
    core_times: list[CoreTime] = []
    for core in ir.cores:
        times = units[f"core {core}"]
        waits = {str(kind): times.get(kind, 0) for kind in WAIT_KINDS}
        core_times.append(CoreTime(core, times[BUSY], waits, times.get(END, 0)))
    step_of = {task: step for step, tasks in timeline.tasks_of.items() for task in tasks}
    waited: dict[tuple[int, int], int] = {}
    for gap in idle(timing, categories):
        if gap.task in step_of:
            step = step_of[gap.task]
            waited[step] = waited.get(step, 0) + gap.end - gap.start
    return tuple(core_times), waited


def _layer_times(ir: IR, timeline: Timeline, waited: dict[tuple[int, int], int]) -> tuple[LayerTime, ...]:
    """Return the times of all layers, the slowest first. `waited` are the cycles that each workload was waited for,
    by core and position."""
    works: dict[str, list[Workload]] = {}
    for work in ir.workloads():
        works.setdefault(work.layer_name, []).append(work)
    rows: list[LayerTime] = []
    for name, items in works.items():
        gaps = sum(waited.get((work.core, work.index), 0) for work in items)
        cycles = sum(_busy_cycles(timeline, work) for work in items)
        rows.append(LayerTime(name, len(items), cycles, gaps))
    return tuple(sorted(rows, key=lambda row: (-row.cycles - row.waited, row.layer)))


def _busy_cycles(timeline: Timeline, work: Workload) -> int:
    """Return the cycles of a workload without the waiting between its tasks."""
    if timeline.mode == "assembler":
        span = timeline.workloads.get((work.core, work.workload_id))
        if span is not None:
            return span.end - span.start
        return 0
    start = timeline.timing.start
    end = timeline.timing.end
    return sum(int(end[task] - start[task]) for task in timeline.tasks_of[work.core, work.index])


def _dram_use(timeline: Timeline) -> DramUse:
    """Return the use of the DRAM queue in a timeline."""
    busy = sum(span.end - span.start for span in timeline.dram)
    stored = sum(span.bytes for span in timeline.dram if span.kind == "store")
    loaded = sum(span.bytes for span in timeline.dram) - stored
    return DramUse(
        items=len(timeline.dram), busy=busy, loaded=loaded, stored=stored, utilisation=busy / max(timeline.total, 1)
    )
