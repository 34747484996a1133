"""Schemas of the JSON that `buda-emu vpux` prints."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from buda_emu.foreign.vpux.execute.run import BarrierResult, TaskResult
from buda_emu.performance.timeline import Hazard
from buda_emu.report.machine_readable.schema import Row, Rows, document

_BYTES = Row(data=int, offset=int, size=int)  # of a blob


def _run() -> Any:
    """Return the schema of what `vpux run --json` writes."""
    return document(
        "Results of buda-emu vpux run --json",
        document=str,
        function=str,
        split=int,
        arch=str,
        durations=str,
        makespan=int,
        tasks=Rows(TaskResult, duration=int),
        barriers=list[BarrierResult],
        barriers_in_use=Row(limit=int, most=int, changes=list[tuple[int, int]]),
        races=Rows(Hazard, first=int | None),  # null: nobody wrote the bytes
        outputs=Rows(dtype=str, shape=list[int]),
    )


def _args() -> Any:
    """Return the schema of what `vpux args --json` prints."""
    tensors = Rows(
        address=int,
        static=bool,
        num_dims=int,
        dims_address=int,
        strides_address=int,
        dtype=str,
        order=int,
        location=int | None,
        dims=list[int] | None,
        strides=list[int] | None,
    )
    call = Rows(
        task=int, run=int, kernel=str, bytes_of_a_tensor=int, hex=str, tensors=tensors, scalars=list[int | float]
    )
    return document("Results of buda-emu vpux args --json", arguments=call)


def _serialize() -> Any:
    """Return the schema of what `vpux serialize` prints."""
    runtime = Row(kernel=int | None, stacks=list[int], per=Literal["shave", "tile"])
    return document(
        "Results of buda-emu vpux serialize",
        kernel_data=Rows(name=str, position=int, size=int, bytes=str),
        kernels=Rows(function=str, entry=str, text=_BYTES, entry_point=int),
        invocations=Rows(kernel=int, arguments=_BYTES, data=None, tile=int),
        tasks=Rows(invocation=int, task=int, waits=list[int], updates=list[int]),
        runtime=(runtime, None),
    )


def _layout() -> Any:
    """Return the schema of what `vpux layout --json` prints."""
    return document(
        "Results of buda-emu vpux layout --json",
        optional=("address_bits",),
        order=str,
        permutation=list[int],
        code=str,
        kernel_code=str,
        affine_map=str,
        mem_shape=list[int],
        mem_strides=list[int],
        strides=list[int],
        alloc_bits=int,
        address_bits=int,
    )


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "vpux run": _run, "vpux args": _args, "vpux serialize": _serialize, "vpux layout": _layout,
}  # fmt: skip
"""The schema of each verb's JSON."""
