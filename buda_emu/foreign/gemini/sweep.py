"""Time a schedule at several rates, buffer sizes and meshes. Every point is a model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from buda_emu.foreign.gemini.document import load
from buda_emu.foreign.gemini.model import IR
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import in_order, spread_with_caller

Choice = tuple[tuple[int, int] | None, int | None, float, float, float]
"""Mesh, buffer, bytes of the NoC, frequency and bandwidth of a point."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a sweep. `buffersize` and `mesh` are None for those of the schedule itself; `total` is None where
    the point is infeasible, and `problem` says where it fails first."""

    dram_gibps: float
    freq_ghz: float
    noc_bytes: float
    buffersize: int | None
    mesh: tuple[int, int] | None
    total: int | None
    milliseconds: float | None
    problem: str


def sweep(
    ir: IR,
    *,
    dram_gibps: Sequence[float] = (16,),
    freq_ghz: Sequence[float] = (1,),
    noc_bytes: Sequence[float] = (32,),
    buffersize: Sequence[int | None] = (None,),
    mesh: Sequence[tuple[int, int] | None] = (None,),
    workers: Workers | None = None,
) -> Iterator[Point]:
    """Yield a point for every combination, mesh slowest, then buffer, NoC, frequency, and bandwidth fastest.

    A buffer of a schedule with addresses is feasible when it holds every snapshot; a schedule without addresses is
    allocated in it. Raises HostError for a mesh that has no place for every core, and what `allocate` raises for a
    schedule that cannot be allocated in any buffer.
    """
    job = Job("buda_emu.foreign.gemini.sweep:timer", ir.to_json())
    choices = product(mesh, buffersize, noc_bytes, freq_ghz, dram_gibps)
    yield from in_order(spread_with_caller(job, choices, workers or Workers()))


def timer(document: dict[str, Any]) -> Callable[[Choice], Point]:
    """Return a function that times one choice of a sweep; `document` is the JSON object of the schedule. It keeps
    the schedule that each mesh and buffer led to."""
    from buda_emu.foreign.gemini.time.schedule import simulate

    ir = load(document)
    fitted_schedules: dict[tuple[tuple[int, int] | None, int | None], tuple[IR | None, str]] = {}

    def time_choice(choice: Choice) -> Point:
        """Return the point of a choice: its cycles, or the reason why it is not feasible."""
        xy, size, wide, ghz, gibps = choice
        if (xy, size) not in fitted_schedules:
            fitted_schedules[xy, size] = _fit_into_buffer(ir if xy is None else move_to_mesh(ir, *xy), size)
        chosen, problem = fitted_schedules[xy, size]
        if chosen is None:
            return Point(
                dram_gibps=gibps,
                freq_ghz=ghz,
                noc_bytes=wide,
                buffersize=size,
                mesh=xy,
                total=None,
                milliseconds=None,
                problem=problem,
            )
        try:
            total = simulate(chosen, dram_gibps=gibps, freq_ghz=ghz, noc_bytes_per_cycle=wide).total
        except ProgramError as error:
            return Point(
                dram_gibps=gibps,
                freq_ghz=ghz,
                noc_bytes=wide,
                buffersize=size,
                mesh=xy,
                total=None,
                milliseconds=None,
                problem=error.problem.splitlines()[0],
            )
        return Point(
            dram_gibps=gibps,
            freq_ghz=ghz,
            noc_bytes=wide,
            buffersize=size,
            mesh=xy,
            total=total,
            milliseconds=total / (ghz * 1e6),
            problem="",
        )

    return time_choice


def _fit_into_buffer(ir: IR, size: int | None) -> tuple[IR | None, str]:
    """Return the schedule in a buffer of that size, or None and a message about the first snapshot that does not
    fit."""
    if size is None:
        return ir, ""
    if not ir.form.addressed:
        from buda_emu.foreign.gemini.allocation import allocate

        try:
            return allocate(ir, size), ""
        except ProgramError as error:
            return None, error.problem
    for work in ir.workloads():
        held = sum(tensor.size for tensor in work.buffer)
        if held > size:
            return None, f"{work} needs {held} bytes"
    return ir, ""


def move_to_mesh(ir: IR, xlen: int, ylen: int) -> IR:
    """Return the schedule on another mesh, where the core of number n = y * xlen + x keeps its number. Raises HostError
    when a core has no place there."""
    numbers: dict[int, int] = {}
    for core in ir.cores:
        x, y = ir.position(core)
        numbers[core] = y * ir.xlen + x
    if max(numbers.values(), default=0) >= xlen * ylen:
        raise HostError(f"a mesh of {xlen} x {ylen} has no place for core number {max(numbers.values())}")
    if not ir.form.columns_of_dram:
        return replace(ir, xlen=xlen, ylen=ylen, document={**ir.document, "xlen": xlen, "ylen": ylen})
    keys = {core: n // xlen * (xlen + 2) + n % xlen + 1 for core, n in numbers.items()}
    content = ir.to_json()
    moved: dict[str, Any] = {key: value for key, value in content.items() if not key.isdecimal()}
    for entry in content["-1"]["in"]:
        entry["core_id"] = keys[entry["core_id"]]
    for core, key in keys.items():
        moved[str(key)] = content[str(core)]
    _renumber_cores(moved, keys)
    return load({**moved, "xlen": xlen, "ylen": ylen})


def _renumber_cores(content: dict[str, Any], keys: dict[int, int]) -> None:
    """Replace the core's key, `id`, in every destination and source of a schedule of dialect B, `content`, by the
    new key that `keys` has for it."""
    for out in content["-1"]["out"]:
        _renumber(out["destination"], keys)
    for key in (name for name in content if name.isdecimal()):
        for work in content[key]:
            for piece in work["ofmap"]:
                _renumber(piece["destination"], keys)
            for tensor in work["buffer"]:
                _renumber(tensor.get("source") or (), keys)


def _renumber(records: Iterable[dict[str, Any]], keys: dict[int, int]) -> None:
    """Replace the core's key, `id`, of each record by the new key that `keys` has for it."""
    for record in records:
        record["id"] = keys.get(record["id"], record["id"])
