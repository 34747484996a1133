"""Draw a run as lanes over time with the CMX slices below them, for traces and pages."""

from typing import Final

from buda_emu.foreign.vpux.execute.run import RunResult
from buda_emu.foreign.vpux.pressure import barrier_pressure
from buda_emu.performance.timeline import Access, Occupancy, live_ranges, occupancy
from buda_emu.performance.timeline.picture import Counter, Memory, TimelinePicture
from buda_emu.performance.timeline.picture import picture as timeline_picture

_SHOWN_WHOLE: Final = 8  # a slice is, from this part of it on
Details = dict[str, str | int | float]


def run_picture(result: RunResult, durations: str) -> TimelinePicture:
    """Return the picture of a run: units, tasks, waits for barriers, barriers in use, and the content of each slice of
    CMX.

    `durations` describes the unit of time. A buffer lives from its write to the last read before the next write.
    """
    scheduled = result.scheduled
    program = scheduled.program
    pressure = barrier_pressure(result)
    names = {index: f"{barrier.name}" for index, barrier in enumerate(result.barriers)}

    def details(number: int) -> Details:
        task = result.tasks[number]
        return {
            "line": task.line,
            "waits for": " ".join(names[n] for n in task.waits) or "-",
            "updates": " ".join(names[n] for n in task.updates) or "-",
        }

    def name(access: Access) -> str:
        use = program.operand_at(
            program.tasks[access.task].op, access.space, access.address, access.address + access.size
        )
        return f"{access.address:#x}" if use is None else f"{use.name} ({access.address:#x})"

    in_cmx = [access for access in result.watch.extents() if access.space.startswith("CMX")]
    held = occupancy(live_ranges(scheduled.timing, in_cmx, name))
    races = sum(index.kind == "race" for index in result.races)
    return timeline_picture(
        scheduled.schedule,
        scheduled.timing,
        f"@{program.function.name} of {program.function.document.path}",
        category=lambda task: program.tasks[task].op.name,
        details=details,
        group=lambda unit: scheduled.timing.units[unit].partition(":")[0],
        memories=[_memory(held[space], program.arch.slice_bytes) for space in sorted(held)],
        counters=[
            Counter(
                name=f"barriers in use (of {pressure.limit})",
                unit="barriers",
                times=[time for time, _ in pressure.changes],
                values=[count for _, count in pressure.changes],
                group="barriers",
            )
        ],
        time_unit="steps" if durations.startswith("one step") else "cycles",
        notes=[f"Durations: {durations}."],
        about={"architecture": program.arch.name, "tasks": len(result.tasks), "races": races},
    )


def _memory(held: Occupancy, size: int) -> Memory:
    """Return a slice of CMX, drawn as a whole unless less than an eighth of it is used."""
    memory = Memory.of(held)
    if memory.span * _SHOWN_WHOLE > size:
        return Memory.of(held, size)
    return memory
