"""Models a netlist under many conditions: the product of speeds, chips and parameters."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
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
MOST_DETAILED: Final = 40
"""Points of a sweep whose ops a page compares with those of the first one."""
AXES: Final = (*WHAT_IF, "board", "grid", "harvest")
"""The names of axes; parameters of programs, whose names begin with $, are axes, too."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a sweep: one value of every axis, as text by name in `settings`, and the figures of the model there.

    `cycles` and `seconds` are those of all programs, `cycles_per_input`, `inputs_per_second` and `bottleneck` those of
    the slowest epoch. `problem` says why a point has no figures, such as ops that the chip does not hold.
    """

    settings: Mapping[str, str]
    cycles: float | None
    seconds: float | None
    cycles_per_input: float | None
    inputs_per_second: float | None
    bottleneck: str = ""
    problem: str = ""
    figures: Mapping[str, Any] | None = field(default=None, repr=False)
    """All figures, as `perf --json` writes them, of a point for which `sweep` was asked for them."""

    def row(self) -> dict[str, Any]:
        """Return the point as a plain dict, with a column for each axis and each figure."""
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
    """Parse axes that are written `NAME=a,b,c`, and return the values of each by name. Values of `harvest` are sets of
    rows, separated by semicolons: `harvest=2;2,7`. Raises HostError for an unknown or repeated name, and for an axis
    without values."""
    axes: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, _, text = word.partition("=")
        separator = ";" if name == "harvest" else ","
        values = tuple(filter(None, (value.strip() for value in text.split(separator))))
        _require_axis(name, word)
        if not values:
            raise HostError(f"--sweep {word}: expected NAME=a,b,c (harvest: sets of rows, NAME=2;2,7)")
        if name in axes:
            raise HostError(f"--sweep {word}: {name} is swept twice")
        axes[name] = values
    return axes


def _require_axis(name: str, word: str) -> None:
    """Raise HostError for a name that is no axis; `word` is the argument that the message shows."""
    if name not in AXES and not name.startswith("$"):
        suggestion = near(name, AXES)
        hint = f" ({suggestion})" if suggestion else ""
        raise HostError(
            f"--sweep {word}: {name!r} is not one of {', '.join(AXES)}, nor a parameter ($p_loop_count){hint}"
        )


def _require_number(name: str, value: str) -> None:
    try:
        float(value)
    except ValueError:
        raise HostError(f"--sweep {name}: {value!r} is not a number") from None


def points_of(axes: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return every combination of values of the axes; the last axis changes fastest. Raises HostError for an axis that
    does not exist, a speed that is not a number, and more than MOST_POINTS combinations."""
    for name in axes:
        _require_axis(name, name)
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
    detailed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
) -> list[Point]:
    """Model a netlist at every combination of the values of `axes` (values as text, by name).

    `workers` processes, or the Dask cluster whose scheduler is at `dask`, share the points. The result is in the order
    of `points_of` and does not depend on the workers. A point that cannot be modelled says why in `problem`. The first
    `detailed` points have all `figures`. `board` is the board of all points. Raises the errors of loading the netlist
    and of `points_of`, and HostError for a board that is also an axis.
    """
    points = points_of(axes)
    arch = agreed_arch(board, arch)
    if board and "board" in axes:
        raise HostError("--sweep board: a board is given, too; leave out one of the two")
    netlist = netlist_of(path, arch)
    needs_object = dask is not None or is_image(path)
    about = _About(
        netlist=netlist if needs_object else path,
        arch=arch,
        board=board,
        programs=tuple(programs),
        parameters=dict(parameters or {}),
    )
    job = Job("buda_emu.app.api.sweep:modeller", about)
    modelled: list[Point] = []
    tasks: list[_Task] = [(settings, number < detailed) for number, settings in enumerate(points)]
    with closing(in_order(spread_with_caller(job, tasks, Workers(min(workers, len(points)), dask)))) as results:
        for point in results:
            modelled.append(point)
            progress(len(modelled), len(points))
    return modelled


@dataclass(frozen=True, slots=True)
class _About:
    """The conditions that all points share. `netlist` is the path of a netlist file on this machine, which a process
    reads from the cache sooner than it would unpack the object; else the object."""

    netlist: Netlist | str
    arch: str | None
    board: str | None
    programs: tuple[str, ...]
    parameters: dict[str, str]


_Task = tuple[Mapping[str, str], bool]
"""The settings of a point, and whether it has all figures."""


def modeller(about: _About) -> Callable[[_Task], Point]:
    """Return the function that models one point in a process of its own."""
    netlist = about.netlist
    if isinstance(netlist, str):
        netlist = netlist_of(netlist, about.arch)
    return partial(_model_point, netlist, about)


def _model_point(netlist: Netlist, about: _About, task: _Task) -> Point:
    settings, is_detailed = task
    parameters = {name: text for name, text in settings.items() if name.startswith("$")}
    try:
        result = perf(
            netlist,
            programs=about.programs,
            board=settings.get("board", about.board),
            parameters={**about.parameters, **parameters},
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
    slowest = max(result.epochs, key=lambda epoch: epoch.pace, default=None)
    return Point(
        settings=settings,
        cycles=result.cycles,
        seconds=result.seconds,
        cycles_per_input=slowest.pace if slowest else None,
        inputs_per_second=result.inputs_per_second or None,
        bottleneck=slowest.bottleneck.name if slowest else "",
        figures=result.to_json() if is_detailed else None,
    )
