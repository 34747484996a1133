"""A program on the timeline: units that work in order, counted barriers, numbers that are used again (VPUX 4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from buda_emu.foreign.vpux.program import Program, Task, read_uses, written_uses
from buda_emu.performance.timeline import Order, Schedule, Timing, Wait, happens_before
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, ProgramError

Duration = Callable[[Task], int]


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """When every task is done. `barriers[i]` is the timeline's object of barrier i."""

    program: Program
    schedule: Schedule
    timing: Timing
    barriers: tuple[int, ...]

    @property
    def sequence(self) -> list[int]:
        """Tasks in the order in which they take effect: by start time, then by number."""
        starts: list[int] = self.timing.start.tolist()
        return sorted(range(len(starts)), key=lambda task: (starts[task], task))

    def order(self) -> Order:
        """What orders tasks: DMA queues and SEQ, barriers, successive uses of a physical barrier (VPUX 4)."""
        units = self.timing.units  # a tile has two SHAVEs: its queue orders starts only
        return happens_before(self.schedule, [n for n, unit in enumerate(units) if not unit.startswith("SHAVE_ACT")])

    def completed(self, barrier: int) -> int:
        """When the last producer of a barrier ended; -1 without any."""
        producers = self.program.barriers[barrier].producers
        return max((int(self.timing.end[task]) for task in producers), default=-1)


def uses_again(program: Program) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each physical number: the tasks of one use, and those of the next. Uses without tasks are passed over."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    last: dict[int, tuple[int, ...]] = {}
    for barrier in program.barriers:
        users = tuple(sorted({*barrier.producers, *barrier.consumers}))
        if barrier.number is None or not users:
            continue
        if barrier.number in last:
            found.append((last[barrier.number], users))
        last[barrier.number] = users
    return found


def one_step(_: Task) -> int:
    """The duration of every task, unless a model says otherwise."""
    return 1


def schedule(program: Program, duration: Duration = one_step) -> Scheduled:
    """When everything is done. Raises ProgramError (X040) when tasks are left that wait for ever."""
    timeline = Schedule()
    units: dict[str, int] = {}
    for task in program.tasks:
        if task.unit not in units:
            units[task.unit] = timeline.unit(task.unit)
    barriers = tuple(timeline.object(f"barrier {barrier.name}") for barrier in program.barriers)
    waits: list[list[Wait]] = [[] for _ in program.tasks]
    signals: list[list[tuple[int, int]]] = [[] for _ in program.tasks]
    for number, barrier in enumerate(program.barriers):
        for task in barrier.consumers:
            waits[task].append(Wait(barriers[number], len(barrier.producers), takes=False))
        for task in barrier.producers:
            signals[task].append((barriers[number], 1))
    for count, (before, after) in enumerate(uses_again(program)):
        number = _number(program, after[0], before)
        ended = timeline.object(f"tasks of the previous use of barrier number {number} (reuse {count})")
        for task in before:
            signals[task].append((ended, 1))
        for task in after:
            waits[task].append(Wait(ended, len(before), takes=False))
    for task in program.tasks:
        line = program.function.document.line(task.op.offset)
        label = f"task {task.index} ({task.op.name} on {task.unit}, line {line})"
        timeline.task(units[task.unit], duration(task), waits[task.index], signals[task.index], label)
    try:
        timing = timeline.run()
    except ProgramError as error:
        raise ProgramError(f"X040: {error.problem}", kind="deadlock", rule="X040") from None
    return Scheduled(program, timeline, timing, barriers)


def _number(program: Program, task: int, before: Sequence[int]) -> int | None:
    """The number of the barrier that both tasks use."""
    mine = {program.barriers[n].number for n in (*program.tasks[task].waits, *program.tasks[task].updates)}
    theirs = {program.barriers[n].number for n in (*program.tasks[before[0]].waits, *program.tasks[before[0]].updates)}
    return next(iter(mine & theirs), None)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Cycles that a task takes, by assumption.

    A transfer takes `dma_start` and one cycle for each `dma_bytes`; a kernel takes `kernel_start` and one cycle for
    each `kernel_bytes` that it reads and writes; anything else takes one cycle.
    """

    dma_start: int = 500
    dma_bytes: int = 32
    kernel_start: int = 2000
    kernel_bytes: int = 8

    @classmethod
    def from_text(cls, text: str) -> "CostModel":
        """From `dma_bytes=64,kernel_start=1000`; what is not named keeps its value. Raises HostError."""
        known = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for item in filter(None, text.split(",")):
            name, _, value = item.partition("=")
            if name not in known:
                raise HostError(f"the model has no parameter {name!r}: {', '.join(known)}. {near(name, known)}".strip())
            if not value.isdecimal() or (name.endswith("bytes") and not int(value)) or len(value) > 12:
                raise HostError(
                    f"{name} is an integer number of {'bytes' if name.endswith('bytes') else 'cycles'}: {item}"
                )
            values[name] = int(value)
        return replace(cls(), **values)

    @property
    def parameters(self) -> Mapping[str, int]:
        """By name, for print."""
        return {field.name: int(getattr(self, field.name)) for field in fields(self)}

    def duration(self, task: Task) -> int:
        """Cycles of a task."""
        uses = [*read_uses(task.op), *written_uses(task.op)]
        sizes = [use.type.compact_bytes for use in uses if use.type is not None and use.type.is_buffer]
        if task.unit.startswith("DMA"):
            return self.dma_start + -(-max(sizes, default=0) // self.dma_bytes)
        if task.unit.startswith("SHAVE"):
            return self.kernel_start + -(-sum(sizes) // self.kernel_bytes)
        return 1
