"""The cycles of a netlist in one call, as an object that holds every figure: `be.perf`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from buda_emu.app.api.shown import html_table
from buda_emu.emulator.image.opened import Opened, open_file
from buda_emu.emulator.inputs.entries import check_parameters, default_parameters, select_programs
from buda_emu.emulator.inputs.of_image import image_args
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import read_performance_checks, read_test_config
from buda_emu.performance.timing.checks import BoundResult, evaluate
from buda_emu.performance.timing.figures import op_figures
from buda_emu.performance.timing.model import model_netlist
from buda_emu.performance.timing.op.cost import Model
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.report.machine_readable.perf_json import perf_json
from buda_emu.spec.boards import agreed_arch
from buda_emu.spec.boards import board as board_named
from buda_emu.spec.devices import Device, device
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.inputs.host_parts import HostTime


@dataclass(frozen=True)
class Perf:
    """Modelled cycles of a netlist's programs. `run` and `checks` hold everything, the other names the usual of it."""

    netlist: Netlist = field(repr=False)
    run: PerfRun
    checks: tuple[BoundResult, ...]
    on_host: "tuple[HostTime, ...]" = ()
    """What the host computes between programs, of an image with host parts: measured on this machine, and in none of
    the modelled figures."""

    @property
    def epochs(self) -> tuple[EpochReport, ...]:
        """In the order of their first run."""
        return self.run.epochs

    @property
    def cycles(self) -> float:
        """Of all programs, one after the other, in cycles of the AI clock."""
        return sum(self.run.programs().values())

    @property
    def seconds(self) -> float:
        """What `cycles` take at the chip's clock."""
        return self.run.seconds(self.cycles)

    @property
    def inputs_per_second(self) -> float:
        """Of the slowest epoch, in its steady state; 0 without epochs."""
        pace = max((epoch.pace for epoch in self.epochs), default=0.0)
        return 1 / self.run.seconds(pace) if pace else 0.0

    @property
    def passed(self) -> bool:
        """Whether every figure of `performance-check` holds; True where there is none."""
        return all(item.passed for item in self.checks)

    @cached_property
    def epoch_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each epoch (`pandas.DataFrame(perf.epoch_rows)`), cycles of the AI clock."""
        return [
            {
                "program": epoch.program,
                "graphs": " + ".join(epoch.graphs),
                "runs": epoch.runs,
                "inputs": epoch.timing.inputs,
                "cycles_per_input": epoch.pace,
                "inputs_per_second": 1 / self.run.seconds(epoch.pace) if epoch.pace else None,
                "first_input_cycles": epoch.timing.first_input,
                "total_cycles": epoch.timing.total,
                "load_cycles": epoch.load.cycles,
                "load_share": epoch.load_share,
                "bottleneck_kind": epoch.bottleneck.kind,
                "bottleneck": epoch.bottleneck.name,
                "bottleneck_share": epoch.bottleneck.share,
            }
            for epoch in self.epochs
        ]

    @cached_property
    def op_rows(self) -> list[dict[str, Any]]:
        """A plain dict for each op of each epoch, cycles of one input on each of its cores."""
        return list(self._op_rows())

    def _op_rows(self) -> Iterator[dict[str, Any]]:
        for epoch in self.epochs:
            for timing, item in zip(epoch.timing.ops, op_figures(self.netlist, self.run, epoch), strict=True):
                yield {
                    "program": epoch.program,
                    "graphs": " + ".join(epoch.graphs),
                    "op": item.op,
                    "type": item.type,
                    "chip": item.chip,
                    "cores": item.cores,
                    "cycles": timing.cost.cycles,
                    "math_cycles": item.math,
                    "share_of_pace": timing.cost.cycles / max(epoch.pace, 1.0),
                    "waiting_for_input": item.waiting_for_input,
                    "waiting_for_room": item.waiting_for_room,
                    "provenance": item.provenance,
                }

    def to_json(self) -> dict[str, Any]:
        """Everything, as `buda-emu perf --json` writes it, with its `schema_version`."""
        return {
            **perf_json(self.netlist, self.run, self.checks),
            "host_parts": [{"step": item.step, "seconds": item.seconds} for item in self.on_host],
        }

    def __repr__(self) -> str:
        slowest = max(self.epochs, key=lambda epoch: epoch.pace, default=None)
        held = f", {slowest.bottleneck.sentence}" if slowest else ""
        epochs = plural(len(self.epochs), "epoch")
        return f"<Perf of {self.run.netlist} on {self.run.chip.title}: {self.cycles:,.0f} cycles, {epochs}{held}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], self.epoch_rows)


def perf(
    source: str | PathLike[str] | Netlist,
    *,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    arch: str | None = None,
    board: str | None = None,
    what_if: Mapping[str, float] | None = None,
    grid: tuple[int, int] | None = None,
    harvest: Sequence[int] = (),
    model: Model = "fitted",
    progress: Callable[[str], None] = lambda _: None,
) -> Perf:
    """Model the cycles of `programs` (default: all, in file order) of a netlist, or the path of one or of a device
    image.

    `parameters` ("$name": value) replace the harness's defaults; `what_if` changes speeds
    (`timing.transfers.rates.WHAT_IF`: clock in MHz, dram_gbps, ...); `board` takes the chips of a board
    (`spec.boards.BOARDS`: n150, n300, ...), their clock and the cores that are left; `grid` (rows, columns) and
    `harvest` (physical rows) take a smaller chip; `model` is of the ops, "fitted" to measurements or the "vendor"'s
    formulas. No values are computed.
    Raises NetlistError, HostError (no such program, parameter, speed; ops that the chip does not hold), ProgramError
    as the run would, UnsupportedError.
    """
    arch = agreed_arch(board, arch)
    opened = Opened(source) if isinstance(source, Netlist) else open_file(source, arch, allow_pickle=True)
    netlist = opened.netlist
    if arch is not None and netlist.arch_name != arch:
        raise HostError(f"the netlist was loaded for {netlist.arch_name}: load it with arch={arch!r}")
    bodies = select_programs(netlist, programs)
    config = read_test_config(netlist.path, netlist.sections)
    args = {**image_args(opened.image), **config.args}
    values = {**default_parameters(bodies, args), **check_parameters(bodies, parameters or {})}
    run = model_netlist(
        netlist,
        bodies,
        values,
        what_if=what_if,
        model=model,
        chip=chip_of(netlist.arch_name, grid, harvest, board),
        version=__version__,
        progress=progress,
    )
    checks = evaluate(netlist, run, read_performance_checks(netlist.path, netlist.sections))
    return Perf(netlist, run, tuple(checks), _on_host(opened.image, progress))


def _on_host(image: "DeviceImage | None", progress: Callable[[str], None]) -> "tuple[HostTime, ...]":
    """What the host's parts of an image take here; of all of them nothing, where a package is missing."""
    if image is None or image.plan is None:
        return ()
    from buda_emu.emulator.inputs.host_parts import HostParts, HostTime

    progress("the host's parts")
    try:
        return tuple(HostParts(image).time_steps(seed=0))
    except HostError as error:
        return tuple(HostTime(step.title, None, str(error)) for step in image.plan.on_host)


def chip_of(
    arch: str, grid: tuple[int, int] | None = None, harvest: Sequence[int] = (), board: str | None = None
) -> Device:
    """The chip of an architecture, or of a board, without some physical rows, or with so many rows and columns of
    cores.

    Raises HostError for rows that it does not have or a grid that is not possible, and for a board of another
    architecture.
    """
    agreed_arch(board, arch)
    found = board_named(board).chip if board else device(arch)
    try:
        found = found.harvested(list(harvest)) if harvest else found
        return found.with_grid(*grid) if grid else found
    except ValueError as error:
        raise HostError(f"{arch}: {error}") from None


def parse_grid(text: str) -> tuple[int, int]:
    """`8x8`. Raises HostError."""
    rows, _, columns = text.partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise HostError(f"grid {text!r}: --grid is rows x columns such as 8x8")
    return int(rows), int(columns)


def parse_rows(text: str) -> list[int]:
    """`2,7`; none of an empty text. Raises HostError."""
    rows = [item.strip() for item in text.split(",")] if text else []
    if not all(row.isdecimal() for row in rows):
        raise HostError(f"harvest {text!r}: --harvest takes physical rows such as 2,7")
    return [int(row) for row in rows]
