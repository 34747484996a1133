"""Draw a timeline for traces and pages: lanes for DRAM, cores and their sends, or for the units of an assembler file;
and the tensors in each core's L2."""

from collections.abc import Mapping

from buda_emu.foreign.gemini.figures import model_notes
from buda_emu.foreign.gemini.index import Life
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.sizes import region_of
from buda_emu.foreign.gemini.time.timing import Timeline
from buda_emu.performance.timeline import Live, Ring
from buda_emu.performance.timeline.picture import Detail, Memory, TimelinePicture, picture


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
        group=lambda unit: _group(timeline.timing.units[unit]),
        memories=[
            Memory(space, [live for live in lives if live.space == space], ir.buffersize or 0)
            for space in dict.fromkeys(live.space for live in lives)
        ],
        per_microsecond=timeline.rates.freq_ghz * 1000,
        notes=notes,
        about={"cycles": timeline.total, "workloads": len(ir.workloads()), "cores": len(ir.cores)},
    )


Facts = Mapping[int, tuple[str, Mapping[str, Detail]]]


def _task_facts(ir: IR, timeline: Timeline) -> Facts:
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


def _unit_facts(timeline: Timeline) -> Facts:
    """Return the unit of each task of an assembler file as its category."""
    units: list[int] = timeline.timing.unit.tolist()
    return {task: (timeline.timing.units[unit], {}) for task, unit in enumerate(units)}


def _group(unit: str) -> str:
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
                name=_name(life),
                ring=Ring(*region),
            )
        )
    return lives


def _name(life: Life) -> str:
    """Return the name of a tensor in the picture: its number, type, and the layers that produce it."""
    tensor = life.first
    producers = sorted({source.layer_name for source in tensor.source if source.layer_name})
    owner = tensor.layer_name or ", ".join(producers)
    return f"tensor {life.tensor_id}: {tensor.type} {owner}".rstrip()
