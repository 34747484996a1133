"""Models a netlist under many conditions: the product of speeds, chips and parameters."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from os import fspath
from typing import Any, Final, Unpack, cast

from buda_emu.app.api.perf import PerfOptions, parse_grid, parse_rows, perf
from buda_emu.arithmetic.jit.kernel import announce
from buda_emu.arithmetic.jit.reporting import with_sent_kernels
from buda_emu.emulator.image.opened import holds_model, is_image, netlist_of
from buda_emu.emulator.inputs.entries import select_programs
from buda_emu.emulator.options import SharedWork, parameter_texts, require_parameter_value
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import declared_name, parameter_names, with_declared_names
from buda_emu.performance.timing.transfers.rates import WHAT_IF, require_figure
from buda_emu.report.sweep import point_row
from buda_emu.spec.boards import agreed_arch
from buda_emu.spec.boards import board as board_named
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import BudaError, DocumentError, HostError
from buda_emu.support.files import is_model
from buda_emu.support.options import document_path, with_options
from buda_emu.support.progress import SendKernel, do_nothing
from buda_emu.support.workers.job import Job, workers_of
from buda_emu.support.workers.spread import in_order, spread_with_caller

MOST_POINTS: Final = 100_000  # each takes a timing: more would take hours, and memory for their results
MOST_DETAILED: Final = 40
"""Points of a sweep whose ops a page compares with those of the first one."""
AXES: Final = (*WHAT_IF, "board", "grid", "harvest")
"""The names of axes; parameters of programs are axes, too."""
_NO_LISTS: Final[tuple[type[Any], ...]] = (bytes, bytearray, memoryview, Mapping, set, frozenset)
"""Collections whose members are no values, or have no order."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a sweep: one value of every axis, as text by name in `settings`, and the figures of the model there.

    `cycles` and `seconds` are those of all programs on the chips; the cycles lie between `cycles_low` and `cycles_high`
    on silicon with a probability of 90 %. `cycles_per_input`, `inputs_per_second` and `bottleneck` are those of the
    slowest epoch in its steady state, without loading, other epochs and the host link. The `overall` figures are those
    of the whole run of `inputs` inputs: all epochs with their loading, or the host link (`host_seconds`) where that
    takes longer. `problem` says why a point has no figures, such as ops that the chip does not hold.
    """

    settings: Mapping[str, str]
    cycles: float | None
    seconds: float | None
    cycles_per_input: float | None
    inputs_per_second: float | None
    bottleneck: str = ""
    problem: str = ""
    cycles_low: float | None = None
    cycles_high: float | None = None
    figures: Mapping[str, Any] | None = field(default=None, repr=False)
    """All figures, as `perf --json` writes them, of a point for which `sweep` was asked for them."""
    inputs: int | None = None
    host_seconds: float | None = None
    overall_seconds: float | None = None
    overall_cycles_per_input: float | None = None
    overall_inputs_per_second: float | None = None
    load_cycles: float | None = None
    """Cycles of all programs in which epochs are loaded; they are part of `cycles`."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{name} {text}" for name, text in self.settings.items()) or "as it is"
        if self.cycles is None:
            return f"<Point {settings}: {self.problem}>"
        return f"<Point {settings}: {self.cycles:,.0f} cycles>"

    @staticmethod
    def without_figures(settings: Mapping[str, str], error: BudaError) -> "Point":
        """Return a point that cannot be modelled, with the first line of the reason."""
        return Point(
            settings=settings,
            cycles=None,
            seconds=None,
            cycles_per_input=None,
            inputs_per_second=None,
            problem=str(error).splitlines()[0],
        )

    def row(self) -> dict[str, Any]:
        """Return the point as a plain dict, with a column for each axis and each figure."""
        return point_row(self)


def parse_axes(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse axes that are written `NAME=a,b,c`, and return the values of each by name. Values of `harvest` are sets of
    rows, separated by semicolons: `harvest=2;2,7`. Raises HostError for a repeated name and an axis without values;
    names are checked by `sweep`, which knows the parameters."""
    axes: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, _, text = word.partition("=")
        separator = ";" if name == "harvest" else ","
        values = tuple(filter(None, (value.strip() for value in text.split(separator))))
        if not values:
            raise HostError(f"--sweep {word}: expected NAME=a,b,c (harvest: sets of rows, NAME=2;2,7)")
        if name in axes:
            raise HostError(f"--sweep {word}: {name} is swept twice")
        axes[name] = values
    return axes


def _require_axes(names: Iterable[str], parameters: Collection[str] | None) -> None:
    """Raise HostError for a name that is no axis, and for two names of one parameter. `parameters` are those of the
    programs, whose $ may be left out; None: those of a model, which are told from the axes by their $ until it is
    compiled."""
    swept: set[str] = set()
    for name in names:
        if name in AXES:
            continue
        full_name = declared_name(name, parameters or ())
        if parameters is None:
            is_parameter = name.startswith("$")
            listing = "of a model, written with its $"
        else:
            is_parameter = full_name in parameters
            listing = f"of the programs ({', '.join(parameters) or 'they take none'})"
        if not is_parameter:
            hint = hint_in_parentheses(name, (*AXES, *(parameters or ())))
            raise HostError(
                f"--sweep {name}: {name!r} is not one of {', '.join(AXES)}, nor a parameter {listing}{hint}"
            )
        if full_name in swept:
            raise HostError(f"--sweep {name}: {full_name} is swept twice, with and without $")
        swept.add(full_name)


def _value_texts(name: str, values: object) -> tuple[str, ...]:
    """Return the values of an axis as texts. Raises HostError for an axis without values, for values without an order,
    and for a value that is wrong whatever the netlist is."""
    title = type(values).__name__
    if isinstance(values, _NO_LISTS):
        raise HostError(f"--sweep {name}: expected a value or a list of values, not {title}")
    members: Iterable[object] = (values,)
    if isinstance(values, Iterable) and not isinstance(values, str):
        members = cast("Iterable[object]", values)
    texts = tuple(_value_text(name, value) for value in members)
    if not texts:
        raise HostError(f"--sweep {name}: no value is given")
    return texts


def _value_text(name: str, value: object) -> str:
    """Return a value of the axis `name` as a text. Raises HostError for one that no netlist could have, such as a speed
    that is not a number."""
    read = _READERS.get(name)
    if read is not None:
        text = str(value)
        read(text)
        return text
    if not isinstance(value, str):
        return parameter_texts({name: value})[name]
    try:
        require_parameter_value(value)
    except HostError as error:
        raise HostError(f"--sweep {name}: {error}") from None
    return value


def _require_speed(name: str, value: str) -> None:
    """Raise HostError if a value of the swept speed `name` is not a number that a chip can have."""
    try:
        figure = float(value)
    except ValueError:
        raise HostError(f"--sweep {name}: {value!r} is not a number") from None
    require_figure(name, figure)


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "board": board_named,
    "grid": parse_grid,
    "harvest": parse_rows,
    **{name: partial(_require_speed, name) for name in WHAT_IF},
}
"""Functions that raise HostError for a value which is wrong whatever the netlist is, by the name of the axis."""


def points_of(axes: Mapping[str, object], parameters: Collection[str] | None = ()) -> list[dict[str, str]]:
    """Return every combination of values of the axes, texts or numbers; the last axis changes fastest. `parameters` are
    those of the programs, which are axes, too, with or without their $; None: those of a model that is not compiled
    yet. Raises HostError for an axis that does not exist, a value that is wrong whatever the netlist is (a board that
    does not exist, a speed that is not a number), and more than MOST_POINTS combinations."""
    _require_axes(axes, parameters)
    texts = {name: _value_texts(name, values) for name, values in axes.items()}
    count = 1
    for values in texts.values():
        count *= len(values)
    if count > MOST_POINTS:
        raise HostError(f"the sweep has {count} points, the most is {MOST_POINTS}")
    return [dict(zip(texts, values, strict=True)) for values in product(*texts.values())]


class SweepOptions(PerfOptions, SharedWork, total=False):
    """The options of `sweep` that other functions have, too."""


@with_options
def sweep(
    path: str,
    axes: Mapping[str, object],
    *,
    detailed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
    **options: Unpack[SweepOptions],
) -> list[Point]:
    """Model a netlist at every combination of the values of `axes` (texts or numbers, several or one, by name). The
    path of a model (.onnx, .pt2) is compiled for each board first, with the default options: cores of a netlist have
    their places. So is the model in an image that `compile` wrote, with the options of the image, if boards are swept.

    `workers` processes, or the Dask cluster whose scheduler is at `dask`, share the points. The result is in the order
    of `points_of` and does not depend on the workers. A point that cannot be modelled says why in `problem`. The first
    `detailed` points have all `figures`. `board` is the board of all points. Raises the errors of loading the netlist
    and of `points_of`, and HostError for a board that is also an axis.
    """
    path = fspath(document_path(path, "sweep"))
    board = options.get("board")
    arch = agreed_arch(board, options.get("arch"))
    workers = workers_of(options)
    if board and "board" in axes:
        raise HostError("--sweep board: a board is given, too; leave out one of the two")
    programs = tuple(options.get("programs", ()))
    parameters = dict(options.get("parameters") or {})
    about = SweepConditions(netlist=path, arch=arch, board=board, programs=programs, parameters=parameters)
    is_compiled = True
    if is_model(path):
        if not (board or "board" in axes):
            raise HostError(f"{path} is a model: it is placed for each board of --sweep board=n150,n300")
        points = points_of(axes, None)
    else:
        netlist = netlist_of(path, arch)
        bodies = select_programs(netlist, programs)
        with_declared_names(bodies, parameters)
        points = points_of(axes, parameter_names(bodies))
        if not ("board" in axes and holds_model(path)):
            is_compiled = False
            about = replace(about, netlist=_netlist_to_send(path, netlist, arch, points, workers.dask))
    if is_compiled:
        job = Job("buda_emu.app.api.sweep_boards:modeller", about, reports=True)
    else:
        job = Job("buda_emu.app.api.sweep:modeller", about, reports=True)
    modelled: list[Point] = []
    pool = replace(workers, count=min(workers.count, len(points)))
    tasks: list[PointTask] = [(settings, number < detailed) for number, settings in enumerate(points)]
    arriving = spread_with_caller(job, tasks, pool, on_report=lambda _, kernel: announce(*kernel))
    with closing(in_order(arriving)) as results:
        for point in results:
            modelled.append(point)
            progress(len(modelled), len(points))
    return modelled


def _netlist_to_send(
    path: str, netlist: Netlist, arch: str | None, points: Iterable[Mapping[str, str]], scheduler: str | None
) -> "SweptNetlist":
    """Return what workers model: the netlist itself if it is that of an image; for a Dask cluster, whose machines do
    not have the file, the netlist of each board; else the path. `scheduler` is that of the cluster, None without."""
    if is_image(path):
        return netlist
    if scheduler is None:
        return path
    boards = dict.fromkeys(point["board"] for point in points if "board" in point)
    return _netlists_of_boards(path, netlist, arch, boards)


def _netlists_of_boards(
    path: str, netlist: Netlist, arch: str | None, boards: Iterable[str]
) -> Mapping[str | None, Netlist]:
    """Return a netlist file as it is for the chips of each board, by their architecture, for machines that do not have
    the file; `netlist` is what it is for `arch`. Boards that it cannot be for are left out."""
    netlists: dict[str | None, Netlist] = {arch: netlist}
    for board in boards:
        with suppress(BudaError):
            board_arch = agreed_arch(board, arch)
            if board_arch not in netlists:
                netlists[board_arch] = netlist_of(path, board_arch)
    return netlists


SweptNetlist = Netlist | str | Mapping[str | None, Netlist]
"""The netlist of a sweep. The path of a file on this machine, which a process reads from the cache sooner than it would
unpack an object, or the path of a model; a netlist as it is for each architecture; or one netlist."""


@dataclass(frozen=True, slots=True)
class SweepConditions:
    """The conditions that all points share."""

    netlist: SweptNetlist
    arch: str | None
    board: str | None
    programs: tuple[str, ...]
    parameters: dict[str, str]


PointTask = tuple[Mapping[str, str], bool]
"""The settings of a point, and whether it has all figures."""


def modeller(about: SweepConditions, report: SendKernel = do_nothing) -> Callable[[PointTask], Point]:
    """Return the function that models one point in a worker process. It reads the netlist's file once for each board.
    `report` gets the kernels that are compiled meanwhile, for the other processes."""
    return modeller_by_board(about, partial(_netlist_for, about), report)


def modeller_by_board(
    about: SweepConditions, netlist_for: Callable[[str], Netlist | BudaError], report: SendKernel
) -> Callable[[PointTask], Point]:
    """Return the function that models one point on the netlist of its board, which `netlist_for` makes once for each
    board in a process; where it gives an error, the point has that instead of figures. `report` gets the kernels that
    are compiled meanwhile."""
    netlists: dict[str, Netlist | BudaError] = {}

    def model(task: PointTask) -> Point:
        """Model one point of the sweep."""
        settings, _ = task
        board = settings.get("board", about.board) or ""
        if board not in netlists:
            netlists[board] = netlist_for(board)
        netlist = netlists[board]
        if isinstance(netlist, BudaError):
            return Point.without_figures(settings, netlist)
        return model_point(netlist, about, task)

    return with_sent_kernels(model, report)


def _netlist_for(about: SweepConditions, board: str) -> Netlist | BudaError:
    """Return the netlist for the chips of a board ("" for none), or the error that says why there is none."""
    if isinstance(about.netlist, Netlist):
        return about.netlist
    try:
        arch = agreed_arch(board, about.arch)
        if isinstance(about.netlist, str):
            return netlist_of(about.netlist, arch)
    except DocumentError as error:
        return HostError(f"{board} has chips of {board_named(board).arch}: {error.diagnostics[0].message}")
    except BudaError as error:
        return error
    if arch not in about.netlist:
        return HostError(f"{board} has chips of {arch}, which the netlist is not for")
    return about.netlist[arch]


def model_point(netlist: Netlist, about: SweepConditions, task: PointTask) -> Point:
    """Model a netlist at one point and return the figures, or a point whose `problem` says why it has none."""
    settings, is_detailed = task
    swept = {name: text for name, text in settings.items() if name not in AXES}
    try:
        programs = select_programs(netlist, about.programs)
        parameters = {**with_declared_names(programs, about.parameters), **with_declared_names(programs, swept)}
        result = perf(
            netlist,
            programs=about.programs,
            board=settings.get("board", about.board),
            parameters=parameters,
            what_if={name: float(text) for name, text in settings.items() if name in WHAT_IF},
            grid=parse_grid(settings["grid"]) if "grid" in settings else None,
            harvest=parse_rows(settings.get("harvest", "")),
        )
    except BudaError as error:
        return Point.without_figures(settings, error)
    slowest = max(result.epochs, key=lambda epoch: epoch.pace, default=None)
    interval = result.interval
    return Point(
        settings=settings,
        cycles=result.cycles,
        seconds=result.seconds,
        cycles_per_input=slowest.pace if slowest else None,
        inputs_per_second=result.inputs_per_second or None,
        bottleneck=slowest.bottleneck.name if slowest else "",
        cycles_low=interval.low,
        cycles_high=interval.high,
        figures=result.to_json() if is_detailed else None,
        inputs=result.inputs,
        host_seconds=sum(result.run.host_seconds().values()),
        overall_seconds=result.overall_seconds,
        overall_cycles_per_input=result.run.overall_cycles_per_input,
        overall_inputs_per_second=result.run.overall_inputs_per_second,
        load_cycles=sum(result.run.program_loads().values()),
    )
