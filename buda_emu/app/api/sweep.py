"""One netlist modelled under many conditions: the product of speeds, chips and parameters."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

from buda_emu.app.api.perf import parse_grid, parse_rows, perf
from buda_emu.emulator.image.opened import is_image, netlist_of
from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.transfers.rates import WHAT_IF
from buda_emu.spec.boards import agreed_arch
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import in_order, spread_with_caller

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
            **self.settings,
            "cycles": self.cycles,
            "seconds": self.seconds,
            "cycles_per_input": self.cycles_per_input,
            "inputs_per_second": self.inputs_per_second,
            "bottleneck": self.bottleneck,
            "problem": self.problem,
        }


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
                f"--sweep {word}: {name!r} is not one of {', '.join(AXES)}, nor a parameter ($p_loop_count){hint}"
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
    """The product, the last axis first. Raises HostError for more than MOST_POINTS and for a speed that is "
    "not a number."""
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
    dask: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
) -> list[Point]:
    """Model the netlist of `path` at every point of `axes` (name -> values as text), on so many processes, or on
    the Dask cluster whose scheduler is at `dask`.

    The result is in the order of the product and does not depend on `workers`. A point that cannot be modelled says
    why in `problem`. `board`: of all points. Raises what loading the netlist does, and HostError for an axis that does
    not exist.
    """
    points = points_of(axes)
    arch = agreed_arch(board, arch)
    if board and "board" in axes:
        raise HostError("--sweep board: a board is given, too; leave out one of the two")
    netlist = netlist_of(path, arch)
    elsewhere = dask is not None or is_image(path)
    about = _About(netlist if elsewhere else path, arch, board, tuple(programs), dict(parameters or {}))
    job = Job("buda_emu.app.api.sweep:modeller", about)
    found: list[Point] = []
    with closing(in_order(spread_with_caller(job, points, Workers(min(workers, len(points)), dask)))) as results:
        for point in results:
            found.append(point)
            progress(len(found), len(points))
    return found


@dataclass(frozen=True, slots=True)
class _About:
    """`netlist`: with the path of one on this machine a process has it sooner, from the cache, than as an object."""

    netlist: Netlist | str
    arch: str | None
    board: str | None
    programs: tuple[str, ...]
    parameters: dict[str, str]


def modeller(about: _About) -> Callable[[Mapping[str, str]], Point]:
    """The work of a sweep: models one point."""
    netlist = netlist_of(about.netlist, about.arch) if isinstance(about.netlist, str) else about.netlist
    return partial(_model, netlist, about)


def _model(netlist: Netlist, job: _About, settings: Mapping[str, str]) -> Point:
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
        return Point(
            settings=settings,
            cycles=None,
            seconds=None,
            cycles_per_input=None,
            inputs_per_second=None,
            problem=str(error).splitlines()[0],
        )
    slowest = max(found.epochs, key=lambda epoch: epoch.pace, default=None)
    return Point(
        settings=settings,
        cycles=found.cycles,
        seconds=found.seconds,
        cycles_per_input=slowest.pace if slowest else None,
        inputs_per_second=found.inputs_per_second or None,
        bottleneck=slowest.bottleneck.name if slowest else "",
    )
