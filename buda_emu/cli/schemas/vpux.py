"""What `buda-emu vpux` prints as JSON, as schemas."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict


class Array(TypedDict):
    """An array that is described, not written."""

    dtype: str
    shape: list[int]


class Race(TypedDict):
    """Bytes that two tasks touch in no order, or that nobody wrote (`first` null)."""

    kind: str
    first: int | None
    second: int
    space: str
    address: int
    size: int


class BarriersInUse(TypedDict):
    """From a time on, so many."""

    limit: int
    most: int
    changes: list[tuple[int, int]]


class DecodedTensor(TypedDict):
    """As a kernel reads it, dimensions innermost first."""

    address: int
    static: bool
    num_dims: int
    dims_address: int
    strides_address: int
    dtype: str
    order: int
    location: int | None
    dims: list[int] | None
    strides: list[int] | None


class Argument(TypedDict):
    """A kernel's argument buffer for one run of it."""

    task: int
    run: int
    kernel: str
    bytes_of_a_tensor: int
    hex: str
    tensors: list[DecodedTensor]
    scalars: list[int | float]


class Blob(TypedDict):
    """A piece of kernel data, as hex digits."""

    name: str
    position: int
    size: int
    bytes: str


class Reference(TypedDict):
    """Bytes of a blob."""

    data: int
    offset: int
    size: int


class Kernel(TypedDict):
    """A function and its machine code."""

    function: str
    entry: str
    text: Reference
    entry_point: int


class Invocation(TypedDict):
    """A call of a kernel."""

    kernel: int
    arguments: Reference
    data: None
    tile: int


class KernelTask(TypedDict):
    """A task and the barriers that it waits for and updates."""

    invocation: int
    task: int
    waits: list[int]
    updates: list[int]


class Runtime(TypedDict):
    """The management kernel and its stacks."""

    kernel: int | None
    stacks: list[int]
    per: Literal["shave", "tile"]


class TaskTime(TypedDict):
    """When a task ran."""

    index: int
    unit: str
    op: str
    waits: list[int]
    updates: list[int]
    start: int
    end: int
    line: int
    duration: int


def _vpux_run() -> Any:
    from buda_emu.report.machine_readable.schema import document
    from buda_emu.vpux.execute.result import BarrierResult

    own = {
        "document": str, "function": str, "split": int, "arch": str, "durations": str, "makespan": int,
        "tasks": list[TaskTime], "barriers": list[BarrierResult], "barriers_in_use": BarriersInUse,
        "races": list[Race], "outputs": list[Array],
    }  # fmt: skip
    return document("Results of buda-emu vpux run --json", own)


def _vpux_args() -> Any:
    from buda_emu.report.machine_readable.schema import document

    return document("Results of buda-emu vpux args --json", {"arguments": list[Argument]})


def _vpux_serialize() -> Any:
    from buda_emu.report.machine_readable.schema import document

    own = {
        "kernel_data": list[Blob], "kernels": list[Kernel], "invocations": list[Invocation], "tasks": list[KernelTask],
        "runtime": Runtime | None,
    }  # fmt: skip
    return document("Results of buda-emu vpux serialize", own)


def _vpux_layout() -> Any:
    from buda_emu.report.machine_readable.schema import document

    own = {
        "order": str, "permutation": list[int], "code": str, "kernel_code": str, "affine_map": str,
        "mem_shape": list[int], "mem_strides": list[int], "strides": list[int], "alloc_bits": int, "address_bits": int,
    }  # fmt: skip
    return document("Results of buda-emu vpux layout --json", own, optional=("address_bits",))


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "vpux run": _vpux_run,
    "vpux args": _vpux_args,
    "vpux serialize": _vpux_serialize,
    "vpux layout": _vpux_layout,
}
"""By verb."""
