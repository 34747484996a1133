"""What a run gives: outputs, when tasks were done, barriers, races, argument buffers, bytes of buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from buda_emu.checker.suggest import near
from buda_emu.errors import HostError
from buda_emu.timeline import Hazard
from buda_emu.vpux.execute.memory import Watch, regions
from buda_emu.vpux.schedule import Scheduled


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task: unit, name of its op, barriers by index, when it started and ended, its line."""

    index: int
    unit: str
    op: str
    waits: tuple[int, ...]
    updates: tuple[int, ...]
    start: int
    end: int
    line: int

    @property
    def duration(self) -> int:
        """In the schedule's unit of time."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class BarrierResult:
    """A barrier: name, number (None: virtual), how many tasks produce and consume it, when its last producer ended."""

    name: str
    id: int | None
    producers: int
    consumers: int
    completed: int


class RunResult:
    """The result of `vpux.run`. Times are steps, one for each task, unless a model of durations was given."""

    def __init__(
        self,
        scheduled: Scheduled,
        outputs: Sequence[NDArray[Any]],
        found: Sequence[Hazard],
        watch: Watch,
        arguments: Mapping[int, list[bytes]],
    ) -> None:
        self.scheduled = scheduled
        self.outputs = list(outputs)
        """Logical arrays; bf16 and 8-bit floats as raw unsigned integers."""
        self.arguments = dict(sorted(arguments.items()))
        """Packed argument buffers of each kernel task, one for each of its runs."""
        self.watch = watch
        """Memory, and what tasks touched."""
        self.races = [*found, *watch.unwritten]
        """Pairs of tasks that race, then reads of bytes that nothing wrote: `Hazard` of the timeline."""

    @cached_property
    def tasks(self) -> list[TaskResult]:
        """In program order."""
        program, timing = self.scheduled.program, self.scheduled.timing
        return [
            TaskResult(
                task.index,
                task.unit,
                task.op.name,
                task.waits,
                task.updates,
                int(timing.start[task.index]),
                int(timing.end[task.index]),
                program.function.document.line(task.op.offset),
            )
            for task in program.tasks
        ]

    @cached_property
    def barriers(self) -> list[BarrierResult]:
        """In program order."""
        return [
            BarrierResult(
                barrier.name,
                barrier.number,
                len(barrier.producers),
                len(barrier.consumers),
                self.scheduled.completed(number),
            )
            for number, barrier in enumerate(self.scheduled.program.barriers)
        ]

    @property
    def makespan(self) -> int:
        """When the last task ended."""
        return self.scheduled.timing.makespan

    def raw(self, name: str) -> bytes:
        """The bytes of a buffer at the end, in memory order without gaps, by the name of its value (`%in`).

        Raises HostError where no buffer has that name.
        """
        program = self.scheduled.program
        value = program.names.get(name)
        if value is None or not program.buffers[value].type.is_laid_out:
            hint = near(name, program.names)
            raise HostError(f"no buffer is named {name}{f', {hint}' if hint else ''}")
        return self.watch.memory.read(regions(program.buffers[value])[0]).tobytes()
