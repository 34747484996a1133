"""Put a program on the timeline: units that work in order, counted barriers, barrier numbers that are reused (VPUX
4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from buda_emu.foreign.vpux.program import Program, Task, read_uses, written_uses
from buda_emu.performance.timeline import Order, Schedule, Timing, Wait, happens_before
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, ProgramError

Duration = Callable[[Task], int]


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A program with the times of all tasks. `barriers[i]` is the timeline's object of barrier i."""

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
        """Return the order of tasks that DMA queues and SEQ, barriers, and successive uses of a physical barrier
        guarantee (VPUX 4)."""
        units = self.timing.units  # a tile has two SHAVEs: its queue orders starts only
        return happens_before(self.schedule, [n for n, unit in enumerate(units) if not unit.startswith("SHAVE_ACT")])

    def end_of_producers(self, barrier: int) -> int:
        """Return when the last producer of a barrier ended; -1 without any."""
        producers = self.program.barriers[barrier].producers
        return max((int(self.timing.end[task]) for task in producers), default=-1)


def find_reuses(program: Program) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return, for each two successive uses of a physical barrier number, the tasks of the earlier and of the later
    use. Uses without tasks are passed over."""
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    last: dict[int, tuple[int, ...]] = {}
    for barrier in program.barriers:
        users = tuple(sorted({*barrier.producers, *barrier.consumers}))
        if barrier.number is None or not users:
            continue
        if barrier.number in last:
            pairs.append((last[barrier.number], users))
        last[barrier.number] = users
    return pairs


def one_step(_: Task) -> int:
    """Return one step, the duration of every task unless a model gives another."""
    return 1


def make_schedule(program: Program, duration: Duration = one_step) -> Scheduled:
    """Simulate a program, each task taking what `duration` returns, and return its times. Raises ProgramError
    (X040) when tasks are left that wait for ever."""
    timeline = Schedule()
    units: dict[str, int] = {}
    for task in program.tasks:
        if task.unit not in units:
            units[task.unit] = timeline.unit(task.unit)
    barriers = tuple(timeline.object(f"barrier {barrier.name}") for barrier in program.barriers)
    waits: list[list[Wait]] = [[] for _ in program.tasks]
    signals: list[list[tuple[int, int]]] = [[] for _ in program.tasks]

    def connect(counter: int, producers: Sequence[int], consumers: Sequence[int]) -> None:
        """Let the consumers wait until each producer has signalled the timeline's object."""
        for task in consumers:
            waits[task].append(Wait(counter, len(producers), takes=False))
        for task in producers:
            signals[task].append((counter, 1))

    for number, barrier in enumerate(program.barriers):
        connect(barriers[number], barrier.producers, barrier.consumers)
    for count, (before, after) in enumerate(find_reuses(program)):
        number = _find_reused_number(program, after[0], before)
        ended = timeline.object(f"tasks of the previous use of barrier number {number} (reuse {count})")
        connect(ended, before, after)
    for task in program.tasks:
        line = program.function.document.line(task.op.offset)
        label = f"task {task.index} ({task.op.name} on {task.unit}, line {line})"
        timeline.task(units[task.unit], duration(task), waits[task.index], signals[task.index], label)
    try:
        timing = timeline.run()
    except ProgramError as error:
        raise ProgramError(f"X040: {error.problem}", kind="deadlock", rule="X040") from None
    return Scheduled(program, timeline, timing, barriers)


def _find_reused_number(program: Program, task: int, before: Sequence[int]) -> int | None:
    """Return the number of the physical barrier that a task shares with the first of the tasks `before`; None for
    none."""
    first_numbers = {program.barriers[n].number for n in (*program.tasks[task].waits, *program.tasks[task].updates)}
    second_numbers = {
        program.barriers[n].number for n in (*program.tasks[before[0]].waits, *program.tasks[before[0]].updates)
    }
    return next(iter(first_numbers & second_numbers), None)


@dataclass(frozen=True, slots=True)
class CostModel:
    """A model of the cycles that a task takes, by assumption.

    A transfer takes `dma_start` and one cycle for each `dma_bytes`; a kernel takes `kernel_start` and one cycle for
    each `kernel_bytes` that it reads and writes; anything else takes one cycle.
    """

    dma_start: int = 500
    dma_bytes: int = 32
    kernel_start: int = 2000
    kernel_bytes: int = 8

    @classmethod
    def from_text(cls, text: str) -> "CostModel":
        """Make a model from `dma_bytes=64,kernel_start=1000`; parameters that are not named keep their values. Raises
        HostError for unknown names and impossible values."""
        names = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for setting in filter(None, text.split(",")):
            name, _, value = setting.partition("=")
            if name not in names:
                raise HostError(f"the model has no parameter {name!r}: {', '.join(names)}. {near(name, names)}".strip())
            if not value.isdecimal() or (name.endswith("bytes") and not int(value)) or len(value) > 12:
                raise HostError(
                    f"{name} is an integer number of {'bytes' if name.endswith('bytes') else 'cycles'}: {setting}"
                )
            values[name] = int(value)
        return replace(cls(), **values)

    @property
    def parameters(self) -> Mapping[str, int]:
        """The parameters by name, for printing."""
        return {field.name: int(getattr(self, field.name)) for field in fields(self)}

    def duration(self, task: Task) -> int:
        """Return the cycles that a task takes by the model: a transfer, a kernel, or anything else."""
        uses = [*read_uses(task.op), *written_uses(task.op)]
        sizes = [use.type.compact_bytes for use in uses if use.type is not None and use.type.is_buffer]
        if task.unit.startswith("DMA"):
            return self.dma_start + -(-max(sizes, default=0) // self.dma_bytes)
        if task.unit.startswith("SHAVE"):
            return self.kernel_start + -(-sum(sizes) // self.kernel_bytes)
        return 1
