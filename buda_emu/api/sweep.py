"""One netlist modelled under many conditions: the product of speeds, chips and parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from buda_emu.api.perf import parse_grid, parse_rows, perf
from buda_emu.checker.suggest import near
from buda_emu.errors import BudaError, HostError
from buda_emu.image.opened import netlist_of
from buda_emu.netlist.model import Netlist
from buda_emu.spec.boards import agreed_arch
from buda_emu.timing.transfers.rates import WHAT_IF

MOST_POINTS: Final = 100_000
AXES: Final = (*WHAT_IF, "board", "grid", "harvest")
"""What can be swept, beside parameters of programs (names that begin with $)."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of every axis. `problem`: why it cannot be modelled, such as ops that the chip does not hold."""

    settings: Mapping[str, str]
    cycles: float | None  # of all programs
    seconds: float | None
    cycles_per_input: float | None  # of the slowest epoch
    inputs_per_second: float | None
    bottleneck: str = ""
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """As a plain dict, a column for each axis."""
        return {
            **self.settings, "cycles": self.cycles, "seconds": self.seconds, "cycles_per_input": self.cycles_per_input,
            "inputs_per_second": self.inputs_per_second, "bottleneck": self.bottleneck, "problem": self.problem,
        }  # fmt: skip


def parse_axes(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`NAME=a,b,c` each. Raises HostError for an unknown or repeated name, and for one without values."""
    axes: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, _, text = word.partition("=")
        separator = ";" if name == "harvest" else ","
        values = tuple(filter(None, (item.strip() for item in text.split(separator))))
        if name not in AXES and not name.startswith("$"):
            hint = f" ({meant})" if (meant := near(name, AXES)) else ""
            raise HostError(
                f"--sweep {word}: {name!r} is none of {', '.join(AXES)}, nor a parameter ($p_loop_count){hint}"
            )
        if not values:
            raise HostError(f"--sweep {word}: expected NAME=a,b,c (harvest: sets of rows, NAME=2;2,7)")
        if name in axes:
            raise HostError(f"--sweep {word}: {name} is swept twice")
        axes[name] = values
    return axes


def _require_number(name: str, value: str) -> None:
    try:
        float(value)
    except ValueError:
        raise HostError(f"--sweep {name}: {value!r} is not a number") from None


def points_of(axes: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """The product, the last axis first. Raises HostError for more than MOST_POINTS, and a speed that is no number."""
    for name in WHAT_IF:
        for value in axes.get(name, ()):
            _require_number(name, value)
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_POINTS:
        raise HostError(f"the sweep has {count} points, the most is {MOST_POINTS}")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def sweep(
    path: str,
    axes: Mapping[str, Sequence[str]],
    *,
    arch: str | None = None,
    board: str | None = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
) -> list[Point]:
    """Model the netlist of `path` at every point of `axes` (name -> values as text), on so many processes.

    The result is in the order of the product and does not depend on `workers`. A point that cannot be modelled says
    why in `problem`. `board`: of all points. Raises what loading the netlist does, and HostError for an axis that does
    not exist.
    """
    points = points_of(axes)
    arch = agreed_arch(board, arch)
    if board and "board" in axes:
        raise HostError("--sweep board: a board is given, too; leave out one of the two")
    job = _Job(path, arch, board, tuple(programs), dict(parameters or {}))
    workers = min(workers, len(points))
    if workers <= 1:
        netlist = netlist_of(path, arch)
        found: list[Point] = []
        for settings in points:
            found.append(_model(netlist, job, settings))
            progress(len(found), len(points))
        return found
    return _on_processes(job, points, workers, progress)


@dataclass(frozen=True, slots=True)
class _Job:
    path: str
    arch: str | None
    board: str | None
    programs: tuple[str, ...]
    parameters: dict[str, str]


def _on_processes(
    job: _Job, points: Sequence[dict[str, str]], workers: int, progress: Callable[[int, int], None]
) -> list[Point]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    netlist_of(job.path, job.arch)  # a netlist that is wrong is said once, by this process
    context = multiprocessing.get_context("spawn")
    found: list[Point] = []
    with ProcessPoolExecutor(workers, context, _begin, (job,)) as pool:
        try:
            for point in pool.map(_in_worker, points, chunksize=max(1, len(points) // (8 * workers))):
                found.append(point)
                progress(len(found), len(points))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return found


_STATE: Final[dict[str, Any]] = {}
"""Of a worker process: its job and netlist."""


def _begin(job: _Job) -> None:
    _STATE.update(job=job, netlist=netlist_of(job.path, job.arch))


def _in_worker(settings: dict[str, str]) -> Point:
    return _model(_STATE["netlist"], _STATE["job"], settings)


def _model(netlist: Netlist, job: _Job, settings: Mapping[str, str]) -> Point:
    try:
        found = perf(
            netlist,
            programs=job.programs,
            board=settings.get("board", job.board),
            parameters={**job.parameters, **{name: text for name, text in settings.items() if name.startswith("$")}},
            what_if={name: float(text) for name, text in settings.items() if name in WHAT_IF},
            grid=parse_grid(settings["grid"]) if "grid" in settings else None,
            harvest=parse_rows(settings.get("harvest", "")),
        )
    except BudaError as error:
        return Point(settings, None, None, None, None, problem=str(error).splitlines()[0])
    slowest = max(found.epochs, key=lambda epoch: epoch.pace, default=None)
    return Point(
        settings, found.cycles, found.seconds, slowest.pace if slowest else None,
        found.inputs_per_second or None, slowest.bottleneck.name if slowest else "",
    )  # fmt: skip
