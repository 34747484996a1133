"""A schedule at several rates, buffers and meshes: each point is a model."""

from collections.abc import Callable, Iterator, Sequence
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
    """One choice. `buffersize` and `mesh` are None for those of the schedule; `total` is None where it is infeasible,
    and `problem` says where first."""

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
    """Every combination: mesh, then buffer, NoC, frequency, and bandwidth quickest.

    A buffer of a schedule with addresses is feasible when it holds every snapshot; one without is allocated. Raises
    HostError for a mesh that has no place for every core, and as `allocate` where a schedule without addresses is not
    allocated at all.
    """
    job = Job("buda_emu.foreign.gemini.sweep:timer", ir.to_json())
    choices = product(mesh, buffersize, noc_bytes, freq_ghz, dram_gibps)
    yield from in_order(spread_with_caller(job, choices, workers or Workers()))


def timer(document: dict[str, Any]) -> Callable[[Choice], Point]:
    """The work of a sweep over a schedule: times one choice. What mesh and buffer make of the schedule is kept."""
    from buda_emu.foreign.gemini.time.schedule import simulate

    ir = load(document)
    made: dict[tuple[tuple[int, int] | None, int | None], tuple[IR | None, str]] = {}

    def timed(choice: Choice) -> Point:
        xy, size, wide, ghz, gibps = choice
        if (xy, size) not in made:
            made[xy, size] = _fitted(ir if xy is None else on_mesh(ir, *xy), size)
        chosen, problem = made[xy, size]
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

    return timed


def _fitted(ir: IR, size: int | None) -> tuple[IR | None, str]:
    """The schedule in a buffer of that size, or None and the first snapshot that it does not hold."""
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


def on_mesh(ir: IR, xlen: int, ylen: int) -> IR:
    """The same schedule on another mesh: the core at n = y * xlen + x stays number n. Raises HostError when a
    core has no place there."""
    numbers = {core: y * ir.xlen + x for core in ir.cores for x, y in (ir.position(core),)}
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
    _rename(moved, keys)
    return load({**moved, "xlen": xlen, "ylen": ylen})


def _rename(content: dict[str, Any], keys: dict[int, int]) -> None:
    """`id` of every destination and source of dialect B."""
    places: list[dict[str, Any]] = [to for out in content["-1"]["out"] for to in out["destination"]]
    for key in (name for name in content if name.isdecimal()):
        for work in content[key]:
            places += [to for piece in work["ofmap"] for to in piece["destination"]]
            places += [source for tensor in work["buffer"] for source in tensor.get("source") or ()]
    for place in places:
        place["id"] = keys.get(place["id"], place["id"])
