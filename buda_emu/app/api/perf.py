"""`be.perf`: models the cycles of a netlist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from buda_emu.app.api.shown import html_table
from buda_emu.app.api.sources import compiled_of, open_source
from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.emulator.inputs.entries import check_parameters, default_parameters, select_programs
from buda_emu.emulator.inputs.of_image import image_args
from buda_emu.emulator.options import Chip, Programs
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import read_performance_checks, read_test_config
from buda_emu.netlist.test_names import section_doubts
from buda_emu.performance.timing.checks import BoundResult, check_doubts, evaluate
from buda_emu.performance.timing.model import model_netlist
from buda_emu.performance.timing.op.cost import Model
from buda_emu.performance.timing.parts import EpochIntervals, program_intervals, run_intervals, total_interval
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.sensitivity import Sensitivity
from buda_emu.performance.timing.sensitivity import sensitivity as model_sensitivity
from buda_emu.performance.timing.uncertainty import Interval
from buda_emu.report.machine_readable.perf_json import MODELLED, Modelled
from buda_emu.report.terminal.epoch_columns import EPOCHS, OPS, EpochRow, op_rows
from buda_emu.spec.boards import agreed_arch
from buda_emu.spec.boards import board as board_named
from buda_emu.spec.devices import Device, device
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.options import with_options
from buda_emu.support.progress import Activity, Report
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.app.api.sources import Source
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.inputs.host_parts import HostTime


@dataclass(frozen=True)
class Perf:
    """Modelled cycles of a netlist's programs. `run` and `checks` hold all figures; the other attributes are the
    figures that most callers need."""

    netlist: Netlist = field(repr=False)
    run: PerfRun
    checks: tuple[BoundResult, ...]
    sensitivity: Sensitivity | None = None
    """The gain that each resource of the chip would bring if it were twice as fast, if that was asked for."""
    on_host: "tuple[HostTime, ...]" = ()
    """Seconds of the host's steps between the programs of an image with host parts. They are measured on this machine,
    and no modelled figure includes them."""
    doubts: tuple[str, ...] = ()
    """Why `passed` says less than it seems: configurations of `performance-check` that check nothing, and sections
    whose names look misspelt."""

    @property
    def epochs(self) -> tuple[EpochReport, ...]:
        """The modelled epochs, in the order of their first run."""
        return self.run.epochs

    @property
    def cycles(self) -> float:
        """AI clock cycles of all programs, one after the other."""
        return sum(self.run.programs().values())

    @cached_property
    def epoch_intervals(self) -> tuple[EpochIntervals, ...]:
        """The intervals of each epoch, parallel to `epochs`: silicon lies in them with a probability of 90 %."""
        return run_intervals(self.run)

    @property
    def program_intervals(self) -> dict[str, Interval]:
        """The interval of the cycles of each program."""
        return program_intervals(self.run, self.epoch_intervals)

    @property
    def interval(self) -> Interval:
        """The interval of `cycles`."""
        return total_interval(self.run, self.epoch_intervals)

    @property
    def seconds(self) -> float:
        """Seconds of `cycles` at the chip's clock."""
        return self.run.seconds(self.cycles)

    @property
    def inputs(self) -> int:
        """The inputs of the whole run: as many as the epoch that takes most, all its runs and copies counted."""
        return self.run.inputs

    @property
    def overall_seconds(self) -> float:
        """Seconds of the whole run: all epochs with their loading, or the host link where that takes longer."""
        return self.run.overall_seconds

    @property
    def overall_inputs_per_second(self) -> float:
        """`inputs` over `overall_seconds`, the pace that a user sees; 0 without epochs."""
        return self.run.overall_inputs_per_second or 0.0

    @property
    def overall_cycles_per_input(self) -> float:
        """Cycles of the AI clock in `overall_seconds` over `inputs`; 0 without epochs."""
        return self.run.overall_cycles_per_input or 0.0

    @property
    def inputs_per_second(self) -> float:
        """Inputs per second of the slowest epoch in its steady state, without loading, other epochs and the host link
        (`overall_inputs_per_second` counts these); 0 without epochs."""
        pace = max((epoch.pace for epoch in self.epochs), default=0.0)
        if not pace:
            return 0.0
        return 1 / self.run.seconds(pace)

    @property
    def passed(self) -> bool:
        """True if every bound of the netlist's `performance-check` holds, or if it has none."""
        return all(check.passed for check in self.checks)

    @cached_property
    def epoch_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each epoch (`pandas.DataFrame(perf.epoch_rows)`), cycles of the AI clock."""
        return [EPOCHS.row(EpochRow(self.netlist, self.run, epoch)) for epoch in self.epochs]

    @cached_property
    def op_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op of each epoch, cycles of one input on each of its cores."""
        epochs = (EpochRow(self.netlist, self.run, epoch) for epoch in self.epochs)
        return [OPS.row(op) for epoch in epochs for op in op_rows(epoch)]

    def to_json(self) -> dict[str, Any]:
        """Return all figures as `buda-emu perf --json` writes them, with `schema_version`."""
        modelled = Modelled(
            netlist=self.netlist,
            run=self.run,
            checks=self.checks,
            doubts=self.doubts,
            sensitivity=self.sensitivity,
            on_host=self.on_host,
        )
        return MODELLED.document(modelled)

    def __repr__(self) -> str:
        slowest = max(self.epochs, key=lambda epoch: epoch.pace, default=None)
        bottleneck = f", {slowest.bottleneck.sentence}" if slowest else ""
        epochs = plural(len(self.epochs), "epoch")
        return f"<Perf of {self.run.netlist} on {self.run.chip.title}: {self.cycles:,.0f} cycles, {epochs}{bottleneck}>"

    def _repr_html_(self) -> str:
        """Return the table of epochs that a notebook shows."""
        return html_table(repr(self)[1:-1], self.epoch_rows)


class PerfOptions(Programs, Chip, total=False):
    """The options of `perf` that other functions have, too."""


@with_options
def perf(
    source: "Source",
    *,
    what_if: Mapping[str, float] | None = None,
    grid: tuple[int, int] | None = None,
    harvest: Sequence[int] = (),
    model: Model = "fitted",
    sensitivity: bool = False,
    progress: Report | None = None,
    **options: Unpack[PerfOptions],
) -> Perf:
    """Model the cycles of a netlist without computing any values.

    `source` is a netlist, an image, a compiled or loaded model, or the path of a netlist or image; `programs` are run
    in this order (default: all, in file order). `parameters` ("$name": value) replace the harness's defaults. `what_if`
    changes speeds (`timing.transfers.rates.WHAT_IF`: clock in MHz, dram_gbps, ...). `board` (`spec.boards.BOARDS`:
    n150, n300, ...) gives the chips of a board, with its clock and the cores that it leaves in use; `grid` (rows,
    columns) and `harvest` (physical rows) give a smaller chip; without them it is the chip that a compiled model was
    compiled for, else the architecture's. `model` chooses the cycles of ops: "fitted" to measurements, or the
    "vendor"'s formulas. With `sensitivity` the result says what each resource would bring if it were twice, and cost if
    it were half as fast. Raises NetlistError, HostError (no such program, parameter, speed; ops that the chip does not
    hold), ProgramError as the run would, UnsupportedError.
    """
    board = options.get("board")
    opened = open_source(source, options.get("arch"), board, function="perf", allow_pickle=True)
    netlist = opened.netlist
    chip = None
    if not (board or grid or harvest):
        chip = chip_of_source(source)
    bodies = select_programs(netlist, options.get("programs", ()))
    config = read_test_config(netlist.path, netlist.sections)
    args = {**image_args(opened.image), **config.args}
    values = {**default_parameters(bodies, args), **check_parameters(bodies, options.get("parameters") or {})}
    with reported_work(progress) as report:
        run = model_netlist(
            netlist,
            bodies,
            values,
            what_if=what_if,
            model=model,
            chip=chip or chip_of(netlist.arch_name, grid, harvest, board),
            version=__version__,
            progress=report,
        )
        if opened.image is not None and opened.image.model is not None:
            run = replace(run, padding=opened.image.model.padding_shares)
        configurations = read_performance_checks(netlist.path, netlist.sections)
        checks = evaluate(netlist, run, configurations)
        study = None
        if sensitivity:
            study = model_sensitivity(netlist, run, model, report)
        return Perf(
            netlist=netlist,
            run=run,
            checks=tuple(checks),
            doubts=(
                *section_doubts(netlist.diagnostics),
                *check_doubts(netlist, run, configurations, checks),
            ),
            sensitivity=study,
            on_host=_measure_host_steps(opened.image, report),
        )


def _measure_host_steps(image: "DeviceImage | None", report: Report) -> "tuple[HostTime, ...]":
    """Run the host's steps of an image once on random inputs, and return the seconds of each on this machine; () for a
    netlist and for an image without such steps. If they cannot run, as when a package is missing, every step has None
    for seconds, and the reason."""
    if image is None or image.plan is None:
        return ()
    from buda_emu.emulator.inputs.host_parts import HostParts, HostTime

    report(Activity("the host's parts", "programs"))
    try:
        return tuple(HostParts(image).time_steps(seed=0))
    except HostError as error:
        return tuple(HostTime(step.title, None, str(error)) for step in image.plan.on_host)


def chip_of_source(source: "Source") -> Device | None:
    """Return the chip that a compiled model was compiled for, None for any other source."""
    compiled = compiled_of(source)
    return compiled.chip if compiled is not None else None


def chip_of(
    arch: str, grid: tuple[int, int] | None = None, harvest: Sequence[int] = (), board: str | None = None
) -> Device:
    """Return the chip of an architecture or of a board, without the physical rows of `harvest`, and cut to a `grid` of
    (rows, columns) of cores.

    Raises HostError for rows that the chip does not have, a grid that is not possible, and a board of another
    architecture.
    """
    agreed_arch(board, arch)
    if board:
        chip = board_named(board).chip
    else:
        chip = device(arch)
    try:
        if harvest:
            chip = chip.harvested(list(harvest))
        if grid:
            chip = chip.with_grid(*grid)
    except ValueError as error:
        raise HostError(f"{arch}: {error}") from None
    return chip


def parse_grid(text: str) -> tuple[int, int]:
    """Parse rows and columns of cores, such as `8x8`. Raises HostError."""
    rows, _, columns = text.partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise HostError(f"grid {text!r}: --grid is rows x columns such as 8x8")
    return int(rows), int(columns)


def parse_rows(text: str) -> list[int]:
    """Parse numbers of physical rows, such as `2,7`; an empty text has none. Raises HostError."""
    if not text:
        return []
    rows = [word.strip() for word in text.split(",")]
    if not all(row.isdecimal() for row in rows):
        raise HostError(f"harvest {text!r}: --harvest takes physical rows such as 2,7")
    return [int(row) for row in rows]
