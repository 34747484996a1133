"""Serialise a function into the design document's structures for a runtime: kernel data, kernels, invocations, tasks
(VPUX 6, Serialisation)."""

from collections.abc import Mapping
from typing import Final, Literal, TypedDict

from buda_emu.foreign.vpux.execute.invocation import make_invocations
from buda_emu.foreign.vpux.model import Function, VpuxFile
from buda_emu.foreign.vpux.program import Program, callee, entry_point, is_cache_op
from buda_emu.foreign.vpux.rules import check_function
from buda_emu.foreign.vpux.rules.names import runtime_symbol
from buda_emu.foreign.vpux.rules.tasks import stack_sizes
from buda_emu.support.checker.render import render
from buda_emu.support.errors import VpuxError

_RUNTIMES: Final[tuple[tuple[str, Literal["shave", "tile"]], ...]] = (
    ("VPURT.SW.Runtime", "shave"),
    ("VPURT.Graph", "tile"),
)
ALIGNMENT: Final = 64
"""Bytes that each piece of kernel data is aligned to."""


class Blob(TypedDict):
    """A place in the kernel data."""

    data: int
    offset: int
    size: int


class KernelData(TypedDict):
    """A piece of the kernel data, in hexadecimal digits."""

    name: str
    position: int
    size: int
    bytes: str


class Kernel(TypedDict):
    """A kernel with its code."""

    function: str
    entry: str
    text: Blob
    entry_point: int


class Invocation(TypedDict):
    """A call of a kernel with its arguments."""

    kernel: int
    arguments: Blob
    data: None
    tile: int


class KernelTask(TypedDict):
    """A task, and the barriers that it waits for and updates."""

    invocation: int
    task: int
    waits: list[int]
    updates: list[int]


class Runtime(TypedDict):
    """The management kernel and the bytes of its stacks."""

    kernel: int | None
    stacks: list[int]
    per: Literal["shave", "tile"]


class Serialized(TypedDict):
    """A function in the structures for a runtime."""

    kernel_data: list[KernelData]
    kernels: list[Kernel]
    invocations: list[Invocation]
    tasks: list[KernelTask]
    runtime: Runtime | None


def serialize(
    document: VpuxFile,
    function: str | None = None,
    split: int | None = None,
    code: Mapping[str, bytes] | None = None,
    arch: str = "37XX",
) -> Serialized:
    """Return a function's kernels, invocations, tasks and runtime as plain data for JSON; blobs are hex digits.

    `code` is the machine code of kernels by function name or entry point; that of others is empty. Raises VpuxError for
    a document that is refused, HostError where the function is not found.
    """
    chosen = document.function(function, split)
    errors = [finding for finding in check_function(chosen, arch) if finding.severity == "error"]
    if errors:
        raise VpuxError(render(errors), errors)
    return _Serializer(Program(chosen, arch), code or {}).result()


class _Serializer:
    """Collects the kernel data of one program and the tables that refer to it."""

    def __init__(self, program: Program, code: Mapping[str, bytes]) -> None:
        self._program = program
        self._data: list[KernelData] = []
        self._position = 0
        self._kernels: list[Kernel] = []
        self._numbers: dict[Function, int] = {}
        for declaration in kernel_functions(program.function):
            entry = entry_point(declaration)
            text = code.get(declaration.name, code.get(entry, b""))
            self._numbers[declaration] = len(self._kernels)
            reference = self._add_blob(f"{declaration.name}.text", text)
            self._kernels.append({"function": declaration.name, "entry": entry, "text": reference, "entry_point": 0})

    def _add_blob(self, name: str, data: bytes) -> Blob:
        """Add a blob of kernel data under a name and return the reference to it."""
        self._data.append({"name": name, "position": self._position, "size": len(data), "bytes": data.hex()})
        self._position += -(-len(data) // ALIGNMENT) * ALIGNMENT
        return {"data": len(self._data) - 1, "offset": 0, "size": len(data)}

    def result(self) -> Serialized:
        """Return kernel data, kernels, invocations, tasks and runtime as plain data."""
        program = self._program
        calls: list[Invocation] = []
        tasks: list[KernelTask] = []
        for task in program.tasks:
            if task.op.name != "VPUIP.SW.Kernel":
                continue
            declaration = callee(program.function, task.op)
            if declaration is None or is_cache_op(declaration):
                continue
            for number, call in enumerate(make_invocations(program, task.op)):
                tasks.append(
                    {
                        "invocation": len(calls),
                        "task": task.index,
                        "waits": list(task.waits),
                        "updates": list(task.updates),
                    }
                )
                calls.append(
                    {
                        "kernel": self._numbers[declaration],
                        "arguments": self._add_blob(f"task{task.index}.args{number}", call.data),
                        "data": None,
                        "tile": task.op.integer("tile", 0),
                    }
                )
        return {
            "kernel_data": self._data,
            "kernels": self._kernels,
            "invocations": calls,
            "tasks": tasks,
            "runtime": self._runtime_entry(),
        }

    def _runtime_entry(self) -> Runtime | None:
        """Return the management kernel and its stacks, one for each SHAVE today, one for each tile in the old dialect;
        None where the modules name none."""
        for name, per in _RUNTIMES:
            for _, op in self._program.function.module_ops(name):
                symbol = runtime_symbol(op.attributes)
                if symbol is None:
                    declaration = None
                else:
                    declaration = self._program.function.kernel(symbol)
                if declaration is None:
                    kernel = None
                else:
                    kernel = self._numbers.get(declaration)
                return {"kernel": kernel, "stacks": list(stack_sizes(op)), "per": per}
        return None


def kernel_functions(function: Function) -> list[Function]:
    """Return the declarations of modules @VPU.SW, those of the nearest module first, then those further outside."""
    declarations: list[Function] = []
    for module in reversed(function.modules):
        for inner in module.modules:
            if inner.name == "VPU.SW":
                declarations += inner.functions
    return declarations
