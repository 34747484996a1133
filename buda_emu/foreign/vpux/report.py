"""A VPUX run as console tables: tasks, barriers and their pressure, races, outputs; and two runs beside each other."""

from collections.abc import Iterable, Iterator

from buda_emu.foreign.vpux.comparison import Comparison, operand_name
from buda_emu.foreign.vpux.execute.run import RunResult
from buda_emu.foreign.vpux.pressure import barrier_pressure
from buda_emu.performance.timeline import Hazard
from buda_emu.report.terminal.text import shape, table
from buda_emu.support.checker.text import plural

MOST_ROWS = 60
"""Rows of a table; the JSON has all."""
_CHART_WIDTH = 60
_LEVELS = " .:-=+*#%@"


def run_lines(result: RunResult, model: str) -> Iterator[str]:
    """Everything that `run` prints; `model` says what durations are."""
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


def task_table(result: RunResult) -> str:
    """Task, executor, start and duration, as the profiling parser of the NPU plugin lists them; barriers, line."""
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
    return _with_rest(text, len(result.tasks))


def barrier_table(result: RunResult) -> str:
    """Name, number, producers, consumers, completion."""
    rows = [
        (
            item.name,
            "-" if item.id is None else str(item.id),
            str(item.producers),
            str(item.consumers),
            str(item.completed),
        )
        for item in result.barriers[:MOST_ROWS]
    ]
    text = table(("barrier", "number", "producers", "consumers", "completed"), rows, right=(1, 2, 3, 4))
    return _with_rest(text, len(result.barriers))


def _with_rest(text: str, count: int) -> str:
    return text if count <= MOST_ROWS else f"{text}\n... and {count - MOST_ROWS} more (--json FILE has all)"


def pressure_lines(result: RunResult) -> Iterator[str]:
    """Barriers in use at one time against the limit, and a chart over time."""
    pressure = barrier_pressure(result)
    over = ", more than there are" if pressure.most > pressure.limit else ""
    arch = result.scheduled.program.arch.name
    yield f"barriers in use: at most {pressure.most} of {pressure.limit} on {arch}{over}"
    if result.makespan > 1:
        yield f"  over time |{_chart(pressure.changes, result.makespan, pressure.limit)}|"


def _chart(changes: Iterable[tuple[int, int]], makespan: int, limit: int) -> str:
    width = min(_CHART_WIDTH, makespan)
    most = [0] * width
    count = 0
    last = 0
    for time, following in [*changes, (makespan, 0)]:
        for column in range(last * width // makespan, -(-time * width // makespan)):
            most[min(column, width - 1)] = max(most[min(column, width - 1)], count)
        count = following
        last = time
    scale = len(_LEVELS) - 1
    return "".join(_LEVELS[min(scale, -(-level * scale // max(limit, 1)))] for level in most)


def race_lines(result: RunResult, races: Iterable[Hazard]) -> Iterator[str]:
    """A line for each race and each read of unwritten bytes."""
    items = list(races)
    for item in items[:MOST_ROWS]:
        where = f"{plural(item.size, 'byte')} of {item.space} from {item.address} on"
        if item.kind == "race":
            one, two = (_task(result, number, item) for number in (item.first, item.second))
            yield f"warning[X041]: {one} and {two} touch {where}, and nothing orders them"
        else:
            yield f"warning[X042]: {_task(result, item.second, item)} reads {where}, which nothing wrote"
    if len(items) > MOST_ROWS:
        yield f"... and {len(items) - MOST_ROWS} more"


def _task(result: RunResult, number: int, item: Hazard) -> str:
    task = result.tasks[number]
    name, line = operand_name(result.scheduled.program, number, item.space, item.address, item.address + item.size)
    buffer = f", {name} of line {line}" if name else ""
    return f"task {number} ({task.op}, line {task.line}{buffer})"


def comparison_lines(found: Comparison) -> Iterator[str]:
    """What differs between two versions of a function."""
    output = found.output
    if output is None:
        yield f"outputs are equal ({plural(len(found.second.outputs), 'array')})"
    elif output.first < 0:
        yield f"output {output.output} has another size or is missing"
    else:
        yield (
            f"output {output.output} differs first at byte {output.byte}: {output.second:#04x}, not "
            f"{output.first:#04x}; {plural(output.count, 'byte')} in all"
        )
    for item in found.causes:
        yield f"  {item.text}"
    if found.new_races:
        yield "new:"
        yield from (f"  {line}" for line in race_lines(found.second, found.new_races))
    for item in found.barriers:
        yield f"  {item.text}"
    spans = found.first.makespan, found.second.makespan
    yield f"makespan {spans[1]:,}, before {spans[0]:,}" if spans[0] != spans[1] else f"makespan {spans[0]:,} in both"
