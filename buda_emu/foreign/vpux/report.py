"""Report a run: its text and JSON, its lanes over time with the CMX slices below them, for traces and pages, and the
barriers in use at each time, for comparison with what the architecture has (VPUX 4)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from buda_emu.foreign.vpux.comparison import Comparison, find_operand
from buda_emu.foreign.vpux.execute.run import RunResult
from buda_emu.foreign.vpux.schedule import Scheduled
from buda_emu.performance.timeline import Access, Hazard, Occupancy, live_ranges, occupancy
from buda_emu.performance.timeline.picture import Counter, Memory, TimelinePicture
from buda_emu.performance.timeline.picture import picture as timeline_picture
from buda_emu.report.terminal.text import shape, table
from buda_emu.support.checker.text import plural


@dataclass(frozen=True, slots=True)
class Pressure:
    """Barriers in use over time: from `changes[i][0]` on, `changes[i][1]` are; `limit` may be at one time."""

    changes: tuple[tuple[int, int], ...]
    limit: int

    @property
    def most(self) -> int:
        """The largest number of barriers in use at one time."""
        return max((count for _, count in self.changes), default=0)


def barrier_pressure(result: RunResult) -> Pressure:
    """Count the barriers in use. A barrier is in use from the start of the first task that updates or awaits it to the
    end of the last one."""
    program = result.scheduled.program
    deltas: dict[int, int] = {}
    for barrier in program.barriers:
        users = {*barrier.producers, *barrier.consumers}
        if users:
            start = min(result.tasks[n].start for n in users)
            end = max(result.tasks[n].end for n in users)
            deltas[start] = deltas.get(start, 0) + 1
            deltas[end] = deltas.get(end, 0) - 1
    changes: list[tuple[int, int]] = []
    count = 0
    for time in sorted(deltas):
        count += deltas[time]
        changes.append((time, count))
    tiles: set[str] = set()
    for buffer in program.buffers.values():
        tiles.update(space for space in buffer.spaces if space.startswith("CMX"))
    tiles |= {task.unit for task in program.tasks if task.unit.startswith("SHAVE_ACT")}
    numbers = {name.rpartition(":")[2].removeprefix("CMX") for name in tiles}
    return Pressure(tuple(changes), program.arch.available_barriers(len(numbers)))


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
        """Return the line and the barriers of a task by its number."""
        task = result.tasks[number]
        return {
            "line": task.line,
            "waits for": " ".join(names[n] for n in task.waits) or "-",
            "updates": " ".join(names[n] for n in task.updates) or "-",
        }

    in_cmx = [access for access in result.watch.extents() if access.space.startswith("CMX")]
    held = occupancy(live_ranges(scheduled.timing, in_cmx, partial(_name_access, scheduled)))
    races = sum(index.kind == "race" for index in result.races)
    return timeline_picture(
        scheduled.schedule,
        scheduled.timing,
        f"@{program.function.name} of {program.function.document.path}",
        category=lambda task: program.tasks[task].op.name,
        details=details,
        group=lambda unit: scheduled.timing.units[unit].partition(":")[0],
        memories=[_drawn_slice(held[space], program.arch.slice_bytes) for space in sorted(held)],
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


def _name_access(scheduled: Scheduled, access: Access) -> str:
    """Return the name of the operand that an access touches, with its address; the address alone where there is
    none."""
    program = scheduled.program
    use = program.operand_at(program.tasks[access.task].op, access.space, access.address, access.address + access.size)
    if use is None:
        return f"{access.address:#x}"
    return f"{use.name} ({access.address:#x})"


def _drawn_slice(held: Occupancy, size: int) -> Memory:
    """Return a slice of CMX, drawn as a whole unless less than an eighth of it is used."""
    memory = Memory.of(held)
    if memory.span * _SHOWN_WHOLE > size:
        return Memory.of(held, size)
    return memory


MOST_ROWS = 60
"""Rows of a table; the JSON has all."""
_CHART_WIDTH = 60  # characters, so that a row with its name fits a line
_LEVELS = " .:-=+*#%@"


def run_lines(result: RunResult, model: str) -> Iterator[str]:
    """Yield everything that `run` prints; `model` describes the durations."""
    yield task_table(result)
    yield f"{plural(len(result.tasks), 'task')}, makespan {result.makespan:,} ({model})"
    if result.barriers:
        yield ""
        yield barrier_table(result)
        yield from pressure_lines(result)
    if result.races:
        yield ""
        yield from race_lines(result, result.races)
    yield ""
    for number, output in enumerate(result.outputs):
        yield f"output {number}: {output.dtype} {shape(output.shape) or 'scalar'}"
        yield from _unwritten_lines(result, number)


def _unwritten_lines(result: RunResult, number: int) -> Iterator[str]:
    """Yield a warning for an output of which no task wrote all bytes."""
    count = result.unwritten_outputs.get(number)
    if count is None:
        return
    size = result.outputs[number].nbytes
    if count < size:
        yield f"  warning: no task writes {count:,} of its {size:,} bytes: they hold what the run began with"
    else:
        yield "  warning: no task writes it: it holds what the run began with"


def task_table(result: RunResult) -> str:
    """Return the table of tasks: executor, start and duration, as the profiling parser of the NPU plugin lists them,
    with barriers and line."""
    names = [barrier.name for barrier in result.barriers]
    rows = [
        (
            str(task.index),
            task.op,
            task.unit,
            f"{task.start:,}",
            f"{task.duration:,}",
            " ".join(names[n] for n in task.waits) or "-",
            " ".join(names[n] for n in task.updates) or "-",
            str(task.line),
        )
        for task in result.tasks[:MOST_ROWS]
    ]
    text = table(
        ("task", "op", "executor", "start", "duration", "waits for", "updates", "line"),
        rows,
        right=(0, 3, 4, 7),
        prose=(5, 6),
    )
    return _note_omission(text, len(result.tasks))


def barrier_table(result: RunResult) -> str:
    """Return the table of barriers: name, number, producers, consumers and completion, `-` without a producer."""
    rows = [
        (
            barrier.name,
            "-" if barrier.id is None else str(barrier.id),
            str(barrier.producers),
            str(barrier.consumers),
            str(barrier.completed) if barrier.producers else "-",
        )
        for barrier in result.barriers[:MOST_ROWS]
    ]
    text = table(("barrier", "number", "producers", "consumers", "completed"), rows, right=(1, 2, 3, 4))
    return _note_omission(text, len(result.barriers))


def _note_omission(text: str, count: int) -> str:
    """Return a table's text with a line about the rows that it leaves out; `count` is the number of all rows."""
    if count <= MOST_ROWS:
        return text
    return f"{text}\n... and {count - MOST_ROWS} more (--json FILE has all)"


def pressure_lines(result: RunResult) -> Iterator[str]:
    """Yield the barriers in use at one time against the limit, and a chart over time."""
    pressure = barrier_pressure(result)
    if pressure.most > pressure.limit:
        over = ", more than there are"
    else:
        over = ""
    arch = result.scheduled.program.arch.name
    yield f"barriers in use: at most {pressure.most} of {pressure.limit} on {arch}{over}"
    if result.makespan > 1:
        yield f"  over time |{_chart(pressure.changes, result.makespan, pressure.limit)}|"


def _chart(changes: Iterable[tuple[int, int]], makespan: int, limit: int) -> str:
    """Return a line of characters that shows the most barriers in use in each slice of time, against the limit.
    `changes` are time and number of barriers from then on."""
    width = min(_CHART_WIDTH, makespan)
    peaks = [0] * width
    count = 0
    last = 0
    for time, following in [*changes, (makespan, 0)]:
        for column in range(last * width // makespan, -(-time * width // makespan)):
            peaks[min(column, width - 1)] = max(peaks[min(column, width - 1)], count)
        count = following
        last = time
    scale = len(_LEVELS) - 1
    return "".join(_LEVELS[min(scale, -(-level * scale // max(limit, 1)))] for level in peaks)


def race_lines(result: RunResult, races: Iterable[Hazard]) -> Iterator[str]:
    """Yield a line for each race and each read of unwritten bytes."""
    items = list(races)
    for race in items[:MOST_ROWS]:
        extent = f"{plural(race.size, 'byte')} of {race.space} from {race.address} on"
        if race.kind == "race":
            first, second = (_describe_task(result, number, race) for number in (race.first, race.second))
            yield f"warning[X041]: {first} and {second} touch {extent}, and nothing orders them"
        else:
            yield f"warning[X042]: {_describe_task(result, race.second, race)} reads {extent}, which nothing wrote"
    if len(items) > MOST_ROWS:
        yield f"... and {len(items) - MOST_ROWS} more"


def _describe_task(result: RunResult, number: int, race: Hazard) -> str:
    """Return the task of that number in words, with its line and the operand that lies in the race's bytes."""
    task = result.tasks[number]
    name, line = find_operand(result.scheduled.program, number, race.space, race.address, race.address + race.size)
    buffer = f", {name} of line {line}" if name else ""
    return f"task {number} ({task.op}, line {task.line}{buffer})"


def _doubt_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the outputs that say less than "equal" seems to: no task wrote them, or not all of them."""
    if not comparison.second.outputs:
        yield "  the functions have no outputs"
    for number in range(len(comparison.second.outputs)):
        if number in comparison.empty_outputs:
            yield f"  no task writes output {number}, in neither version: it holds what both runs began with"
        elif number in comparison.second.unwritten_outputs:
            count = comparison.second.unwritten_outputs[number]
            yield f"  no task writes {plural(count, 'byte')} of output {number}"


def _output_line(comparison: Comparison) -> str:
    """Return whether the outputs of both runs are equal, and else where they first differ."""
    output = comparison.output
    if comparison.is_vacuous:
        return "DOUBTFUL: nothing was compared"
    if output is None:
        return f"outputs are equal ({plural(len(comparison.second.outputs), 'array')})"
    if output.first < 0:
        return f"output {output.output} has another size or is missing"
    return (
        f"output {output.output} differs first at byte {output.byte}: {output.second:#04x}, not "
        f"{output.first:#04x}; {plural(output.count, 'byte')} in all"
    )


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what `vpux run --compare` prints of the runs of two versions of a function: outputs, causes of a
    difference, new races, barriers and makespans."""
    yield _output_line(comparison)
    yield from _doubt_lines(comparison)
    for difference in comparison.causes:
        yield f"  {difference.text}"
    if comparison.new_races:
        yield "new:"
        yield from (f"  {line}" for line in race_lines(comparison.second, comparison.new_races))
    common_races = [race for race in comparison.second.races if race not in comparison.new_races]
    if common_races:
        yield "in both:"
        yield from (f"  {line}" for line in race_lines(comparison.second, common_races))
    for difference in comparison.barriers:
        yield f"  {difference.text}"
    spans = comparison.first.makespan, comparison.second.makespan
    yield f"makespan {spans[1]:,}, before {spans[0]:,}" if spans[0] != spans[1] else f"makespan {spans[0]:,} in both"
