"""Run a function: check it, order its tasks, move and compute, look for races (VPUX 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.elements import find_arch
from buda_emu.foreign.vpux.execute import layers
from buda_emu.foreign.vpux.execute.invocation import execute, make_invocations
from buda_emu.foreign.vpux.execute.memory import (
    MOST_BYTES,
    Memory,
    Watch,
    load_values,
    make_stimulus,
    pack_narrow,
    regions_of,
    store_values,
)
from buda_emu.foreign.vpux.kernels import KERNELS, Kernel
from buda_emu.foreign.vpux.model import Op, Opaque, VpuxFile
from buda_emu.foreign.vpux.program import Buffer, Program, Task, callee, entry_point, is_cache_op
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.rules import check_document, check_function
from buda_emu.foreign.vpux.schedule import Duration, Scheduled, make_schedule, one_step
from buda_emu.foreign.vpux.support import find_unsupported
from buda_emu.performance.timeline import Hazard, order_conflicts
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, ProgramError, UnsupportedError, VpuxError
from buda_emu.support.unmasked import refuse_masked_arrays


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task: its unit, the name of its op, its barriers by index, when it started and ended, and its line."""

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
        """Time from start to end, in the schedule's unit."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class BarrierResult:
    """A barrier: name, number (None: virtual), counts of the tasks that produce and consume it, and when its last
    producer ended."""

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
        outputs: Sequence[tuple[Buffer, NDArray[Any]]],
        races: Sequence[Hazard],
        watch: Watch,
        arguments: Mapping[int, list[bytes]],
    ) -> None:
        self.scheduled = scheduled
        self.outputs = [array for _, array in outputs]
        """Logical arrays; bf16 and 8-bit floats as raw unsigned integers."""
        self._output_buffers = [buffer for buffer, _ in outputs]
        self.arguments = dict(sorted(arguments.items()))
        """Packed argument buffers of each kernel task, one for each of its runs."""
        self.watch = watch
        """Memory, and what tasks touched."""
        self.races = [*races, *watch.unwritten]
        """Pairs of tasks that race, then reads of bytes that nothing wrote: `Hazard` of the timeline."""

    @cached_property
    def tasks(self) -> list[TaskResult]:
        """The tasks in program order."""
        program = self.scheduled.program
        timing = self.scheduled.timing
        return [
            TaskResult(
                index=task.index,
                unit=task.unit,
                op=task.op.name,
                waits=task.waits,
                updates=task.updates,
                start=int(timing.start[task.index]),
                end=int(timing.end[task.index]),
                line=program.function.document.line(task.op.offset),
            )
            for task in program.tasks
        ]

    @cached_property
    def barriers(self) -> list[BarrierResult]:
        """The barriers in program order."""
        return [
            BarrierResult(
                name=barrier.name,
                id=barrier.number,
                producers=len(barrier.producers),
                consumers=len(barrier.consumers),
                completed=self.scheduled.end_of_producers(number),
            )
            for number, barrier in enumerate(self.scheduled.program.barriers)
        ]

    @cached_property
    def unwritten_outputs(self) -> dict[int, int]:
        """The bytes that no task wrote, by the number of the output; only outputs that have some."""
        missing = {
            number: self.watch.count_unwritten(regions_of(buffer)[0])
            for number, buffer in enumerate(self._output_buffers)
        }
        return {number: count for number, count in missing.items() if count}

    def is_empty(self, output: int) -> bool:
        """Return whether no task wrote any byte of the output of that number."""
        return self.unwritten_outputs.get(output, 0) >= self.outputs[output].nbytes

    @property
    def makespan(self) -> int:
        """The time at which the last task ended."""
        return self.scheduled.timing.makespan

    def raw(self, name: str) -> bytes:
        """Return the bytes that a buffer holds at the end, in memory order without gaps, by the name of its value
        (`%in`).

        Raises HostError where no buffer has that name.
        """
        program = self.scheduled.program
        value = program.names.get(name)
        if value is None or not program.buffers[value].type.is_laid_out:
            hint = near(name, program.names)
            raise HostError(f"no buffer is named {name}{f', {hint}' if hint else ''}")
        return self.watch.memory.read(regions_of(program.buffers[value])[0]).tobytes()


Array = NDArray[Any]


def run(
    document: VpuxFile,
    function: str | None = None,
    split: int | None = None,
    inputs: Mapping[int, Array] | None = None,
    arch: str = "37XX",
    kernels: Mapping[str, Kernel] | None = None,
    duration: Duration = one_step,
    digests: bool = False,
    memory_limit: int = MOST_BYTES,
) -> RunResult:
    """Run one function of a document on an architecture (37XX, 40XX).

    `inputs` are logical arrays by number of argument; an input that is absent holds a fixed stimulus. `kernels` are
    further kernels by entry point, or replacements of the emulator's. `duration` returns how long a task takes: one
    step by default. With `digests` the bytes of each access are recorded as a digest, for `compare`. `memory_limit` is
    the number of bytes that the function's buffers may take in all; kernels take up to some ten times of an operand
    besides.

    Raises VpuxError for a document that is refused, UnsupportedError (`what` names it) for what is not emulated,
    ProgramError for a deadlock (`rule` X040) or a fault (X045, X046, limits), HostError for wrong arguments.
    """
    limits = find_arch(arch)
    _require_readable(document, split, arch)
    chosen = document.function(function, split)
    diagnostics = [entry for entry in check_function(chosen, arch) if entry.severity == "error"]
    if diagnostics:
        raise VpuxError(render(diagnostics), diagnostics)
    table = {**KERNELS, **(kernels or {})}
    program = Program(chosen, limits)
    require_support(program, table)
    return _Run(program, table, duration, digests, memory_limit).run(inputs or {})


def _require_readable(document: VpuxFile, split: int | None, arch: str) -> None:
    """Raise VpuxError, with the findings of unreadable splits, if these leave no function to run: of all splits, or of
    number `split`."""
    unreadable = {part.number for part in document.splits if part.error is not None and split in (None, part.number)}
    if not unreadable or any(split in (None, candidate.split) for candidate in document.functions):
        return
    findings = [finding for finding in check_document(document, arch) if finding.split in unreadable]
    raise VpuxError(render(findings), findings)


def require_support(program: Program, kernels: Mapping[str, Kernel]) -> None:
    """Raise UnsupportedError for the first feature, in program order, that is not emulated."""
    raw = {name for name, kernel in kernels.items() if kernel.moves_raw}
    for feature, op in find_unsupported(program, kernels, raw):
        function = program.function
        if op is None:
            place = function.place
        else:
            place = function.document.place(op.offset)
        location = f"{function.document.path}:{place.line}:{place.column}"
        raise UnsupportedError(f"{location}: not emulated: {feature}", feature)


class _Run:
    """One run of one function."""

    def __init__(
        self, program: Program, kernels: Mapping[str, Kernel], duration: Duration, digests: bool, limit: int
    ) -> None:
        self._program = program
        self._kernels = kernels
        self._scheduled = make_schedule(program, duration)
        self._watch = Watch(Memory(self._touched_extents(limit), limit), digests=digests)
        self._arguments: dict[int, list[bytes]] = {}

    def run(self, inputs: Mapping[int, Array]) -> RunResult:
        """Fill constants and inputs, execute all tasks in the order in which they take effect, and return outputs and
        races."""
        program = self._program
        watch = self._watch
        self._fill_constants_and_inputs(inputs)
        for task in self._scheduled.sequence:
            watch.task = task
            self._execute_task(program.tasks[task])
        watch.task = -1
        races = self._find_races()
        outputs = [(buffer, load_values(watch.memory, buffer)) for buffer in self._result_buffers()]
        return RunResult(
            scheduled=self._scheduled, outputs=outputs, races=races, watch=watch, arguments=self._arguments
        )

    def _find_races(self) -> list[Hazard]:
        """Return the races. Accesses are first compared as extents that include gaps between elements; only tasks that
        meet there are compared byte by byte."""
        order = self._scheduled.order()
        near = order_conflicts(order, self._watch.extents())
        tasks = {task for hazard in near for task in (hazard.first, hazard.second)}
        if tasks:
            return order_conflicts(order, self._watch.accesses(tasks))
        return []

    def _result_buffers(self) -> Iterator[Buffer]:
        """Yield the buffers of the results: the values that the function returns, or else its arguments for
        outputs."""
        program = self._program
        if program.returned:
            for use in program.returned:
                if use.value in program.buffers:
                    yield program.buffers[use.value]
        else:
            yield from (program.buffers[value] for value in program.outputs)

    def _touched_extents(self, limit: int) -> Iterator[tuple[str, int, int]]:
        """Yield space, first byte and end of everything that the function may touch."""
        program = self._program
        buffers = list(program.buffers.values())
        for op in program.ops:
            if op.known and OPS[op.name].role in ("dma", "kernel", "sequential"):
                operands = [program.buffer(use) for use in op.uses()]
                buffers += [buffer for buffer in operands if buffer is not None]
            if isinstance(op.attributes.get("dma_descriptor"), Opaque):
                yield from self._descriptor_extents(op)
        for buffer in buffers:
            if buffer.type.is_laid_out:
                yield from _buffer_extents(buffer, limit)

    def _descriptor_extents(self, op: Op) -> Iterator[tuple[str, int, int]]:
        """Yield space, first byte and end of everything that a DMA with a descriptor touches."""
        source, target = layers.operands(self._program, op)
        if source is None or target is None:
            return
        read, written = layers.descriptor_regions(op, source, target)
        for part in read:
            yield (part.space, *part.extent)
        for part in written:
            for space in target.spaces:
                yield (space, *part.extent)

    def _fill_constants_and_inputs(self, inputs: Mapping[int, Array]) -> None:
        """Fill constants and inputs; an input that is absent gets a fixed stimulus. Raises HostError for an input
        that the function does not have."""
        program = self._program
        memory = self._watch.memory
        for op in program.ops_of("const.Declare"):
            if op.results and op.results[0] in program.buffers:
                store_values(memory, program.buffers[op.results[0]], layers.logical_values(op))
        wrong = set(inputs) - set(range(len(program.inputs)))
        if wrong:
            raise HostError(f"@{program.function.name} has inputs 0 to {len(program.inputs) - 1}, not {min(wrong)}")
        for number, value in enumerate(program.inputs):
            buffer = program.buffers.get(value)
            if buffer is None or not buffer.type.is_laid_out:
                continue
            array = inputs.get(number)
            if array is None:
                values = make_stimulus(program.function.name, number, buffer.type)
            else:
                values = _convert_input(array, buffer)
            store_values(memory, buffer, values)

    def _execute_task(self, task: Task) -> None:
        """Execute a task. Raises ProgramError, with task and line, where it fails."""
        op = task.op
        try:
            if op.name == "VPUIP.SW.Kernel":
                self._run_kernel(task)
            elif OPS[op.name].role == "dma":
                layers.move(self._watch, self._program, op)
            else:
                layers.compute(self._watch, self._program, op)
        except MemoryError:
            raise ProgramError(f"task {task.index} ({op.name}): not enough memory", kind="limit") from None
        except ProgramError as error:
            line = self._program.function.document.line(op.offset)
            error.within(f"{error.rule + ': ' if error.rule else ''}task {task.index} ({op.name}, line {line})")
            raise

    def _run_kernel(self, task: Task) -> None:
        """Run each invocation of the kernel that a task calls; a cache operation does nothing."""
        declaration = callee(self._program.function, task.op)
        if declaration is None or is_cache_op(declaration):
            return
        kernel = self._kernels[entry_point(declaration)]
        calls = make_invocations(self._program, task.op)
        self._arguments[task.index] = [call.data for call in calls]
        for call in calls:
            execute(self._watch, kernel, call)


def _buffer_extents(buffer: Buffer, limit: int) -> Iterator[tuple[str, int, int]]:
    """Yield space, first byte and end of the regions of a buffer. Raises ProgramError for one of more than `limit`
    bytes."""
    for region in regions_of(buffer):
        if region.size > limit:
            raise ProgramError(f"{buffer.name} has more than {limit >> 20} MiB", kind="limit")
        yield (region.space, *region.extent)


def _convert_input(array: Array, buffer: Buffer) -> Array:
    """Return an input in the buffer's type. Raises HostError for another shape, or numbers of another kind."""
    of = buffer.type
    element_type = of.element
    assert element_type is not None
    refuse_masked_arrays(array, f"input {buffer.name}")
    values = np.asarray(array)
    if of.bits % 8 and values.shape == of.shape and values.dtype.kind in "iub":
        return pack_narrow(values, of)
    if of.bits % 8:
        shape = (of.compact_bytes,)
    else:
        shape = of.shape
    kind = np.dtype(element_type.numpy)
    if values.shape != shape:
        raise HostError(f"input {buffer.name} has shape {list(of.shape or ())}, not {list(values.shape)}")
    if not _is_convertible(values.dtype, kind):
        raise HostError(f"input {buffer.name} holds {kind}, not {values.dtype}")
    with np.errstate(over="ignore"):
        return values.astype(kind)


def _is_convertible(before: np.dtype[Any], after: np.dtype[Any]) -> bool:
    """Return whether numbers of one type may become those of another: floats from any numbers, integers from integers
    and truth values."""
    if before == after:
        return True
    if after.kind == "f":
        return before.kind in "fiu"
    return after.kind in "iu" and before.kind in "iub"
