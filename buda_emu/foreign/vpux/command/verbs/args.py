"""`buda-emu vpux args`: show the argument buffers of kernels, packed and decoded."""

import argparse
from collections.abc import Iterator
from typing import Any, TypedDict

from buda_emu.app.cli.output import say, say_json
from buda_emu.foreign.vpux import load
from buda_emu.foreign.vpux.arguments import UnpackedTensor, unpack
from buda_emu.foreign.vpux.execute.invocation import make_invocations
from buda_emu.foreign.vpux.program import Program, callee, entry_point
from buda_emu.foreign.vpux.rules import check_document, check_function
from buda_emu.support.checker.render import render
from buda_emu.support.errors import HostError, VpuxError


def main(args: argparse.Namespace) -> int:
    """Print the argument buffers that kernels are called with. Exit code 2 for a document that is refused, or a
    task without a kernel."""
    document = load(args.file)
    if document.functions:
        unreadable = []
    else:
        unreadable = check_document(document, args.arch)
    if unreadable:
        function = None
    else:
        function = document.function(args.function, args.split)
    if function is None:
        findings = unreadable
    else:
        findings = check_function(function, args.arch)
    errors = [buffer for buffer in findings if buffer.severity == "error"]
    if errors or function is None:
        raise VpuxError(render(errors), errors)
    buffers = list(_decode_buffers(function, args))
    if not buffers:
        raise HostError(_explain_no_buffer(Program(function, args.arch), args.task))
    if args.json:
        say_json({"arguments": buffers})
        return 0
    for buffer in buffers:
        say(f"task {buffer['task']} ({buffer['kernel']}), run {buffer['run']}: {len(buffer['hex']) // 2} bytes")
        for number, tensor in enumerate(buffer["tensors"]):
            say(
                f"  tensor {number}: {tensor['dtype']} at {tensor['address']:#010x}, dims {tensor['dims']}, strides "
                f"{tensor['strides']} bits (both innermost first), order {tensor['order']:#x}"
            )
        say(f"  scalars: {buffer['scalars']}")
        for start in range(0, len(buffer["hex"]), 64):
            say(f"  {start // 2:04x}  {buffer['hex'][start : start + 64]}")
    return 0


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
