"""Compare two versions of a function on the same inputs, such as before and after a pass: the first difference and its
causes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.execute.memory import Event, make_stimulus, regions_of
from buda_emu.foreign.vpux.execute.run import RunResult, run
from buda_emu.foreign.vpux.kernels import Kernel
from buda_emu.foreign.vpux.model import VpuxFile
from buda_emu.foreign.vpux.program import Buffer, Program
from buda_emu.foreign.vpux.schedule import Duration, one_step
from buda_emu.performance.timeline import Hazard
from buda_emu.support.checker.text import plural


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in words, with its place in the second document: task, buffer and line (None, "" and 0 where there
    is none)."""

    text: str
    task: int | None = None
    buffer: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The first byte, in memory order, in which an output differs, and how many bytes do. Both bytes are -1 where the
    outputs differ in size or number."""

    output: int
    byte: int
    first: int
    second: int
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `compare`. `causes` come before their effects."""

    first: RunResult
    second: RunResult
    output: OutputDifference | None
    causes: tuple[Difference, ...]
    new_races: tuple[Hazard, ...]
    barriers: tuple[Difference, ...]

    @property
    def empty_outputs(self) -> tuple[int, ...]:
        """The outputs that no task writes in either version: their equality says nothing."""
        common = range(min(len(self.first.outputs), len(self.second.outputs)))
        return tuple(number for number in common if self.first.is_empty(number) and self.second.is_empty(number))

    @property
    def is_vacuous(self) -> bool:
        """True when no output was compared: there is none, or none that a task writes."""
        return self.output is None and len(self.empty_outputs) == len(self.second.outputs)

    @property
    def is_equal(self) -> bool:
        """True when outputs were compared and are equal, and there are no new races."""
        return self.output is None and not self.is_vacuous and not self.new_races


def compare(
    document: VpuxFile,
    other: VpuxFile,
    function: str | None = None,
    split: int | None = None,
    other_function: str | None = None,
    other_split: int | None = None,
    inputs: Mapping[int, NDArray[Any]] | None = None,
    arch: str = "37XX",
    kernels: Mapping[str, Kernel] | None = None,
    duration: Duration = one_step,
) -> Comparison:
    """Run a function of two documents on the same inputs. Raises for either what `run` raises.

    Inputs that are not given hold the stimulus of the first function in both.
    """
    first = run(document, function, split, inputs, arch, kernels, duration, digests=True)
    same_inputs = _complete_inputs(first, inputs or {})
    if other_function is not None:
        name = other_function
    else:
        name = first.scheduled.program.function.name
    second = run(other, name, other_split, same_inputs, arch, kernels, duration, digests=True)
    output = _compare_outputs(first, second)
    causes = [*_find_moves(first, second), *_find_first_access(first, second)]
    if output is not None:
        causes += _find_writer(second, output)
    return Comparison(
        first=first,
        second=second,
        output=output,
        causes=tuple(causes),
        new_races=_find_new_races(first, second),
        barriers=tuple(_compare_barriers(first, second)),
    )


def _complete_inputs(first: RunResult, inputs: Mapping[int, NDArray[Any]]) -> dict[int, NDArray[Any]]:
    """Return the inputs of both runs: those given, and the first function's stimulus for all others."""
    program = first.scheduled.program
    arrays = dict(inputs)
    for number, value in enumerate(program.inputs):
        if number not in arrays and value.type is not None and value.type.is_laid_out:
            arrays[number] = make_stimulus(program.function.name, number, value.type)
    return arrays


def _compare_outputs(first: RunResult, second: RunResult) -> OutputDifference | None:
    """Return the first byte in which the outputs of two runs differ, or the first size or number that does; None
    where they are equal."""
    for number, (before, after) in enumerate(zip(first.outputs, second.outputs, strict=False)):
        left, right = (np.frombuffer(np.ascontiguousarray(output).tobytes(), np.uint8) for output in (before, after))
        if len(left) != len(right):
            return OutputDifference(
                output=number, byte=min(len(left), len(right)), first=-1, second=-1, count=abs(len(left) - len(right))
            )
        wrong = np.flatnonzero(left != right)
        if len(wrong):
            at = int(wrong[0])
            return OutputDifference(
                output=number, byte=at, first=int(left[at]), second=int(right[at]), count=len(wrong)
            )
    if len(first.outputs) != len(second.outputs):
        return OutputDifference(
            output=min(len(first.outputs), len(second.outputs)), byte=0, first=-1, second=-1, count=0
        )
    return None


def _find_moves(first: RunResult, second: RunResult) -> list[Difference]:
    """Return a difference for each buffer of the same name that lies elsewhere."""
    before = first.scheduled.program
    after = second.scheduled.program
    differences: list[Difference] = []
    for name, value in after.names.items():
        if name not in before.names:
            continue
        old = before.buffers[before.names[name]]
        new = after.buffers[value]
        if (old.spaces, old.address) != (new.spaces, new.address):
            line = after.line_of(value)
            places = [f"{buffer.spaces[0]} byte {buffer.address}" for buffer in (new, old)]
            differences.append(
                Difference(f"buffer {name} (line {line}) lies at {places[0]}, not at {places[1]}", None, name, line)
            )
    return differences


def _find_first_access(first: RunResult, second: RunResult) -> list[Difference]:
    """Return the first task that reads or writes other bytes than before. Nothing is returned where the two functions
    have other tasks."""
    if [task.op for task in first.tasks] != [task.op for task in second.tasks]:
        return []
    left = _group_by_task(first)
    right = _group_by_task(second)
    for task in second.scheduled.sequence:
        for before, after in zip(left.get(task, ()), right.get(task, ()), strict=False):
            if before.writes == after.writes and before.digest != after.digest:
                word = "writes" if after.writes else "reads"
                return [_describe_access(second, task, after, f"{word} other bytes than before")]
    return []


def _group_by_task(result: RunResult) -> dict[int, list[Event]]:
    """Return the accesses of a run by task."""
    events: dict[int, list[Event]] = {}
    for event in result.watch.events:
        events.setdefault(event.task, []).append(event)
    return events


def _find_writer(second: RunResult, output: OutputDifference) -> list[Difference]:
    """Return the last task that wrote the differing byte of an output."""
    buffer = _output_buffer(second.scheduled.program, output.output)
    if buffer is None or output.first < 0 or not buffer.type.is_laid_out or buffer.type.bits % 8:
        return []
    region = regions_of(buffer)[0]
    order = buffer.type.order
    assert order is not None
    at, within = divmod(output.byte, region.element)
    index = np.unravel_index(at, buffer.type.shape or ())
    place = region.address + within
    for dim, stride in zip(order.perm, region.strides, strict=True):
        place += int(index[dim]) * stride
    for event in reversed(second.watch.events):
        if event.writes and event.region.space == region.space:
            starts, stops = event.region.stretches()
            if bool(((starts <= place) & (place < stops)).any()):
                return [
                    _describe_access(
                        second, event.task, event, f"wrote byte {output.byte} of output {output.output} last"
                    )
                ]
    return [Difference(f"nothing wrote byte {output.byte} of output {output.output}")]


def _output_buffer(program: Program, number: int) -> Buffer | None:
    """Return the buffer of an output: a result that the function returns, or an output argument where it returns none;
    None for a number that the function does not have."""
    if program.returned:
        if number < len(program.returned):
            return program.buffer(program.returned[number])
    elif number < len(program.outputs):
        return program.buffers[program.outputs[number]]
    return None


def _describe_access(result: RunResult, task: int, event: Event, text: str) -> Difference:
    """Return a difference about an access of a task: `text`, with the task, and the operand that was touched."""
    program = result.scheduled.program
    name, line = find_operand(program, task, event.region.space, *event.region.extent)
    task_line = result.tasks[task].line
    location = f" in {name} (line {line})" if name else ""
    return Difference(
        f"task {task} ({result.tasks[task].op}, line {task_line}) {text}{location}", task, name, task_line
    )


def find_operand(program: Program, task: int, space: str, low: int, high: int) -> tuple[str, int]:
    """Return name and defining line of the task's operand that lies in bytes `low` to `high` - 1 of a space; "" and
    0 where none does."""
    use = program.operand_at(program.tasks[task].op, space, low, high)
    if use is None or use.value is None:
        return "", 0
    return use.name, program.line_of(use.value)


def _find_new_races(first: RunResult, second: RunResult) -> tuple[Hazard, ...]:
    """Return the races of the second run for which the first has none of the same kind in exactly the same bytes; the
    tasks may differ."""
    old_races = {(race.kind, race.space, race.address, race.size) for race in first.races}
    return tuple(race for race in second.races if (race.kind, race.space, race.address, race.size) not in old_races)


def _compare_barriers(first: RunResult, second: RunResult) -> list[Difference]:
    """Return a difference for each barrier that is new, gone, or has other producers, consumers or another number."""
    before, after = (
        {barrier_result.name: barrier_result for barrier_result in result.barriers} for result in (first, second)
    )
    differences = [Difference(f"barrier {name} is gone") for name in before if name not in after]
    document = second.scheduled.program.function.document
    for barrier in second.scheduled.program.barriers:
        line = document.line(barrier.op.offset)
        old = before.get(barrier.name)
        new = after[barrier.name]
        if old is None:
            differences.append(Difference(f"barrier {barrier.name} (line {line}) is new", None, barrier.name, line))
        elif (old.producers, old.consumers, old.id) != (new.producers, new.consumers, new.id):
            users = f"{plural(new.producers, 'producer')} and {plural(new.consumers, 'consumer')}"
            text = f"barrier {barrier.name} (line {line}) has {users}, not {old.producers} and {old.consumers}"
            if old.id != new.id:
                text += f"; its number is {new.id}, not {old.id}"
            differences.append(Difference(text, None, barrier.name, line))
    return differences
