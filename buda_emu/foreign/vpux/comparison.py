"""Two versions of a function on the same inputs, such as before and after a pass: where they first differ, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.execute.memory import Event, regions, stimulus
from buda_emu.foreign.vpux.execute.run import RunResult, run
from buda_emu.foreign.vpux.kernels import Kernel
from buda_emu.foreign.vpux.model import Document
from buda_emu.foreign.vpux.program import Program
from buda_emu.foreign.vpux.schedule import Duration, one_step
from buda_emu.performance.timeline import Hazard


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence, and where in the second document: task, buffer and line (None and 0 where there is none)."""

    text: str
    task: int | None = None
    buffer: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The first byte, in memory order, in which an output differs, and how many bytes do."""

    output: int
    byte: int
    first: int
    second: int
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found. `causes` come before their effects."""

    first: RunResult
    second: RunResult
    output: OutputDifference | None
    causes: tuple[Difference, ...]
    new_races: tuple[Hazard, ...]
    barriers: tuple[Difference, ...]

    @property
    def is_equal(self) -> bool:
        """Are outputs equal, and are there no new races?"""
        return self.output is None and not self.new_races


def compare(
    document: Document,
    other: Document,
    function: str | None = None,
    split: int | None = None,
    other_function: str | None = None,
    other_split: int | None = None,
    inputs: Mapping[int, NDArray[Any]] | None = None,
    arch: str = "37XX",
    kernels: Mapping[str, Kernel] | None = None,
    duration: Duration = one_step,
) -> Comparison:
    """Run a function of two documents on the same inputs. Raises as `run` does, for either.

    Inputs that are not given hold the stimulus of the first function in both.
    """
    first = run(document, function, split, inputs, arch, kernels, duration, digests=True)
    given = _same_inputs(first, inputs or {})
    name = other_function if other_function is not None else first.scheduled.program.function.name
    second = run(other, name, other_split, given, arch, kernels, duration, digests=True)
    output = _outputs(first, second)
    causes = [*_moved(first, second), *_first_access(first, second)]
    if output is not None:
        causes += _writer(second, output)
    return Comparison(
        first=first,
        second=second,
        output=output,
        causes=tuple(causes),
        new_races=_new_races(first, second),
        barriers=tuple(_barriers(first, second)),
    )


def _same_inputs(first: RunResult, inputs: Mapping[int, NDArray[Any]]) -> dict[int, NDArray[Any]]:
    program = first.scheduled.program
    found = dict(inputs)
    for number, value in enumerate(program.inputs):
        if number not in found and value.type is not None and value.type.is_laid_out:
            found[number] = stimulus(program.function.name, number, value.type)
    return found


def _outputs(first: RunResult, second: RunResult) -> OutputDifference | None:
    for number, (one, two) in enumerate(zip(first.outputs, second.outputs, strict=False)):
        left, right = (np.frombuffer(np.ascontiguousarray(item).tobytes(), np.uint8) for item in (one, two))
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


def _moved(first: RunResult, second: RunResult) -> list[Difference]:
    """Buffers of the same name that lie elsewhere."""
    before = first.scheduled.program
    after = second.scheduled.program
    found: list[Difference] = []
    for name, value in after.names.items():
        if name not in before.names:
            continue
        old = before.buffers[before.names[name]]
        new = after.buffers[value]
        if (old.spaces, old.address) != (new.spaces, new.address):
            line = after.line_of(value)
            places = [f"{item.spaces[0]} byte {item.address}" for item in (new, old)]
            found.append(
                Difference(f"buffer {name} (line {line}) lies at {places[0]}, not at {places[1]}", None, name, line)
            )
    return found


def _first_access(first: RunResult, second: RunResult) -> list[Difference]:
    """The first task, of equal lists of tasks, that reads or writes other bytes."""
    if [task.op for task in first.tasks] != [task.op for task in second.tasks]:
        return []
    left = _by_task(first)
    right = _by_task(second)
    for task in second.scheduled.sequence:
        for one, two in zip(left.get(task, ()), right.get(task, ()), strict=False):
            if one.writes == two.writes and one.digest != two.digest:
                word = "writes" if two.writes else "reads"
                return [_at(second, task, two, f"{word} other bytes than before")]
    return []


def _by_task(result: RunResult) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in result.watch.events:
        found.setdefault(event.task, []).append(event)
    return found


def _writer(second: RunResult, output: OutputDifference) -> list[Difference]:
    """The last task that wrote the differing byte of an output."""
    program = second.scheduled.program
    if program.returned:
        buffer = program.buffer(program.returned[output.output]) if output.output < len(program.returned) else None
    else:
        buffer = program.buffers[program.outputs[output.output]] if output.output < len(program.outputs) else None
    if buffer is None or output.first < 0 or not buffer.type.is_laid_out or buffer.type.bits % 8:
        return []
    region = regions(buffer)[0]
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
                return [_at(second, event.task, event, f"wrote byte {output.byte} of output {output.output} last")]
    return [Difference(f"nothing wrote byte {output.byte} of output {output.output}")]


def _at(result: RunResult, task: int, event: Event, text: str) -> Difference:
    program = result.scheduled.program
    name, line = operand_name(program, task, event.region.space, *event.region.extent)
    own = result.tasks[task].line
    where = f" in {name} (line {line})" if name else ""
    return Difference(f"task {task} ({result.tasks[task].op}, line {own}) {text}{where}", task, name, own)


def operand_name(program: Program, task: int, space: str, low: int, high: int) -> tuple[str, int]:
    """The operand of a task that lies in these bytes, and the line that defines it; "" where none does."""
    use = program.operand_at(program.tasks[task].op, space, low, high)
    if use is None or use.value is None:
        return "", 0
    return use.name, program.line_of(use.value)


def _new_races(first: RunResult, second: RunResult) -> tuple[Hazard, ...]:
    known = {(item.kind, item.space, item.address, item.size) for item in first.races}
    return tuple(item for item in second.races if (item.kind, item.space, item.address, item.size) not in known)


def _barriers(first: RunResult, second: RunResult) -> list[Difference]:
    """Barriers that are new, gone, or have other producers or consumers."""
    before, after = ({item.name: item for item in result.barriers} for result in (first, second))
    found = [Difference(f"barrier {name} is gone") for name in before if name not in after]
    document = second.scheduled.program.function.document
    for barrier in second.scheduled.program.barriers:
        line = document.line(barrier.op.offset)
        old = before.get(barrier.name)
        new = after[barrier.name]
        if old is None:
            found.append(Difference(f"barrier {barrier.name} (line {line}) is new", None, barrier.name, line))
        elif (old.producers, old.consumers, old.id) != (new.producers, new.consumers, new.id):
            text = (
                f"barrier {barrier.name} (line {line}) has {new.producers} producers and {new.consumers} consumers, "
                f"not {old.producers} and {old.consumers}"
            )
            if old.id != new.id:
                text += f"; its number is {new.id}, not {old.id}"
            found.append(Difference(text, None, barrier.name, line))
    return found
