"""Verbs of `buda-emu vpux` that run a function, show the arguments of its kernels (`args`), and print all of it as JSON
(`serialize`)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, cast

import numpy as np

from buda_emu.app.cli.output import say, say_json, say_lines, write_json, write_output, write_picture
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.inputs.numpy_files import read_npy
from buda_emu.emulator.options import Memory
from buda_emu.foreign.vpux import load
from buda_emu.foreign.vpux.arguments import UnpackedTensor, unpack
from buda_emu.foreign.vpux.comparison import Comparison, compare
from buda_emu.foreign.vpux.execute.invocation import make_invocations
from buda_emu.foreign.vpux.execute.run import BarrierResult, RunResult, TaskResult, run
from buda_emu.foreign.vpux.model import Function, VpuxDiagnostic
from buda_emu.foreign.vpux.program import Program, callee, entry_point
from buda_emu.foreign.vpux.report import (
    Pressure,
    barrier_pressure,
    comparison_lines,
    race_lines,
    run_lines,
    run_picture,
)
from buda_emu.foreign.vpux.rules import check_document, check_function
from buda_emu.foreign.vpux.schedule import CostModel, one_step
from buda_emu.foreign.vpux.serialized import serialize
from buda_emu.performance.timeline import Hazard
from buda_emu.support.checker.render import render
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import Exit, HostError, VpuxError
from buda_emu.support.files import read_whole
from buda_emu.support.version import RESULT_VERSION


def run_verb(args: argparse.Namespace) -> int:
    """Run a function, or compare two. Exit code 0; 1 when --compare finds a difference, or nothing to compare; 2
    refused; 3 not emulated; 4 deadlock or fault."""
    if args.model is None:
        model = None
    else:
        model = CostModel.from_text(args.model)
    if model is None:
        duration = one_step
    else:
        duration = model.duration
    if model is None:
        words = "one step for each task, no durations"
    else:
        words = f"modelled, assumed: {_parameters_text(model)}"
    document = load(args.file)
    inputs = _read_inputs(args.input)
    if args.compare is not None:
        comparison = compare(
            document,
            load(args.compare),
            args.function,
            args.split,
            args.compare_function,
            args.compare_split,
            inputs,
            args.arch,
            duration=duration,
        )
        return _show_comparison(args, comparison, words)
    result = run(
        document,
        args.function,
        args.split,
        inputs,
        args.arch,
        duration=duration,
        **cast("dict[str, Any]", read_options(args, Memory)),  # the parser has a default
    )
    if not args.quiet and len(document.functions) > 1 and args.function is None and args.split is None:
        function = result.scheduled.program.function
        count = len(document.functions)
        say(f"@{function.name} of split {function.split}, one of {count} functions; --function and --split choose\n")
    _show(args, result, words)
    _write_files(args, result, words)
    return 0


def _parameters_text(model: Any) -> str:
    """Return the parameters of a cost model as text."""
    return ", ".join(f"{name} {value}" for name, value in model.parameters.items())


def _read_inputs(words: list[str]) -> dict[int, Any]:
    """Read the arrays of `--input N=FILE.npy`, by number of argument. Raises HostError for another text."""
    arrays: dict[int, Any] = {}
    for word in words:
        number, _, name = word.partition("=")
        if not number.isdecimal() or not name:
            raise HostError(f"--input {word}: expected N=FILE.npy")
        arrays[int(number)] = read_npy(Path(name))
    return arrays


def _show(args: argparse.Namespace, result: RunResult, words: str) -> None:
    """Print the report of a run, or its races alone with --quiet. `words` describe the durations."""
    say_lines(race_lines(result, result.races) if args.quiet else run_lines(result, words))


def _show_comparison(args: argparse.Namespace, comparison: Comparison, words: str) -> int:
    """Print a comparison, write the files of the second run, and return the exit code. `words` describe the
    durations."""
    say_lines(comparison_lines(comparison))
    _write_files(args, comparison.second, words)
    if comparison.is_equal:
        return Exit.OK
    return Exit.DIFFERS


def _write_files(args: argparse.Namespace, result: RunResult, words: str) -> None:
    """Write outputs, JSON and trace of a run where the command asks for them. `words` describe the durations."""
    if args.out is not None:
        arrays: dict[str, Any] = {f"out{number}": array for number, array in enumerate(result.outputs)}
        write_output(args.out, lambda stream: np.savez(stream, **arrays))
    if args.json is not None:
        write_json(args.json, RUN.document((result, words)))
    if args.trace is not None:
        write_picture(args.trace, run_picture(result, words))


def _first_task(race: Hazard) -> int | None:
    """Return the task that comes first in a race, None where nobody wrote the bytes."""
    return None if race.first < 0 else race.first


_TASK: Final = Columns[TaskResult](TaskResult, Column("duration", int, lambda task: task.duration))
_PRESSURE: Final = Columns[Pressure](
    Column("limit", int, lambda pressure: pressure.limit),
    Column("most", int, lambda pressure: pressure.most),
    Column("changes", list[tuple[int, int]], lambda pressure: pressure.changes),
)
_OUTPUT: Final = Columns[np.ndarray[Any, Any]](
    Column("dtype", str, lambda array: str(array.dtype)), Column("shape", list[int], lambda array: array.shape)
)
RUN: Final = Columns[tuple[RunResult, str]](
    Column("document", str, lambda run: run[0].scheduled.program.function.document.path),
    Column("function", str, lambda run: run[0].scheduled.program.function.name),
    Column("split", int, lambda run: run[0].scheduled.program.function.split),
    Column("arch", str, lambda run: run[0].scheduled.program.arch.name),
    Column("durations", str, lambda run: run[1]),
    Column("makespan", int, lambda run: run[0].makespan),
    Column("tasks", [_TASK], lambda run: run[0].tasks),
    Column("barriers", list[BarrierResult], lambda run: run[0].barriers),
    Column("barriers_in_use", _PRESSURE, lambda run: barrier_pressure(run[0])),
    Column("races", [Columns[Hazard](Hazard, Column("first", int | None, _first_task))], lambda run: run[0].races),
    Column("outputs", [_OUTPUT], lambda run: run[0].outputs),
    Column("unwritten_outputs", dict[int, int], lambda run: run[0].unwritten_outputs),
)
"""The JSON of `vpux run --json`: a run, and words for the durations of its tasks."""


def args_verb(args: argparse.Namespace) -> int:
    """Print the argument buffers that kernels are called with. Exit code 2 for a document that is refused, or a
    task without a kernel."""
    function = _function_without_errors(args)
    buffers = list(_decode_buffers(function, args))
    if not buffers:
        raise HostError(_explain_no_buffer(Program(function, args.arch), args.task))
    if args.json:
        say_json({"arguments": buffers})
        return 0
    for buffer in buffers:
        _print_buffer(buffer)
    return 0


def _function_without_errors(args: argparse.Namespace) -> Function:
    """Load the document and return the chosen function. Raises VpuxError with the errors of the function, or with those
    of a document of which no function can be read."""
    document = load(args.file)
    findings: Sequence[VpuxDiagnostic] = ()
    if not document.functions:
        findings = check_document(document, args.arch)
    if findings:
        errors = [finding for finding in findings if finding.severity == "error"]
        raise VpuxError(render(errors), errors)
    function = document.function(args.function, args.split)
    errors = [finding for finding in check_function(function, args.arch) if finding.severity == "error"]
    if errors:
        raise VpuxError(render(errors), errors)
    return function


def _print_buffer(buffer: "ArgumentBuffer") -> None:
    """Print an argument buffer: its tensors, its scalars, and its bytes, 32 on a line."""
    say(f"task {buffer['task']} ({buffer['kernel']}), run {buffer['run']}: {len(buffer['hex']) // 2} bytes")
    for number, tensor in enumerate(buffer["tensors"]):
        say(
            f"  tensor {number}: {tensor['dtype']} at {tensor['address']:#010x}, dims {tensor['dims']}, strides "
            f"{tensor['strides']} bits (both innermost first), order {tensor['order']:#x}"
        )
    say(f"  scalars: {buffer['scalars']}")
    for start in range(0, len(buffer["hex"]), 64):
        say(f"  {start // 2:04x}  {buffer['hex'][start : start + 64]}")


class ArgumentBuffer(TypedDict):
    """An argument buffer that a task calls its kernel with, packed and decoded."""

    task: int
    run: int
    kernel: str
    bytes_of_a_tensor: int
    hex: str
    tensors: list[UnpackedTensor]
    scalars: list[int | float]


def _explain_no_buffer(program: Program, task: int | None) -> str:
    """Return the message for a task that calls no kernel, or that does not exist, and for a function without such
    tasks."""
    calling = [str(other.index) for other in program.tasks if other.op.name == "VPUIP.SW.Kernel"]
    if not calling:
        return "no task calls a kernel"
    callers = f"tasks that call one: {', '.join(calling)}"
    if task is not None and all(other.index != task for other in program.tasks):
        return f"there is no task {task}: there are {len(program.tasks)}, counted from 0; {callers}"
    return f"task {task} calls no kernel; {callers}"


def _decode_buffers(function: Any, args: argparse.Namespace) -> Iterator[ArgumentBuffer]:
    """Yield the JSON rows of the argument buffers of a function's kernel tasks, or of the one that the command
    names."""
    program = Program(function, args.arch)
    for task in program.tasks:
        if task.op.name != "VPUIP.SW.Kernel" or args.task not in (None, task.index):
            continue
        declaration = callee(function, task.op)
        for number, call in enumerate(make_invocations(program, task.op)):
            decoded = unpack(call.data, len(call.tensors), call.scalar_types, call.abi)
            if declaration is None:
                kernel = ""
            else:
                kernel = entry_point(declaration)
            yield {
                "task": task.index,
                "run": number,
                "kernel": kernel,
                "bytes_of_a_tensor": call.abi,
                "hex": call.data.hex(),
                "tensors": decoded["tensors"],
                "scalars": decoded["scalars"],
            }


def serialize_verb(args: argparse.Namespace) -> int:
    """Print a function's kernels, invocations, tasks and runtime as JSON, or write them to a file. Exit code 0; a
    refused document is raised."""
    code: dict[str, bytes] = {}
    for word in args.code:
        name, _, file = word.partition("=")
        if not name or not file:
            raise HostError(f"--code {word}: expected KERNEL=FILE")
        code[name] = read_whole(file)
    content = serialize(load(args.file), args.function, args.split, code, args.arch)
    if args.out is not None:
        write_json(args.out, {"schema_version": RESULT_VERSION, **content})
    else:
        say_json(content)
    return 0
