"""Modelled cycles as one JSON object with its schema and reader, and as tables under the vendor's names (PERF 3)."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, cast

from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.checks import BoundResult
from buda_emu.performance.timing.figures import OpFigures, op_figures
from buda_emu.performance.timing.parts import EpochIntervals, program_intervals, run_intervals
from buda_emu.performance.timing.result import ChannelUse, EpochReport, PerfRun
from buda_emu.performance.timing.sensitivity import Sensitivity
from buda_emu.performance.timing.uncertainty import Interval
from buda_emu.report.machine_readable.schema import columns_document
from buda_emu.report.terminal.epoch_columns import EPOCHS, EpochRow
from buda_emu.spec.devices import Device
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError
from buda_emu.support.strict_json import read_object
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.emulator.inputs.host_parts import HostTime

_NEEDED = ("netlist", "arch", "clock_mhz", "epochs", "program_cycles")


@dataclass(frozen=True)
class Modelled:
    """The result of modelling a netlist: the run, the checks of performance-check, what each resource would bring
    where that was asked for, the steps of the host, and why the checks show less than they seem to."""

    netlist: Netlist
    run: PerfRun
    checks: Sequence[BoundResult]
    sensitivity: Sensitivity | None = None
    on_host: "Sequence[HostTime]" = ()
    doubts: Sequence[str] = ()

    @cached_property
    def intervals(self) -> tuple[EpochIntervals, ...]:
        """The intervals of each epoch."""
        return run_intervals(self.run)

    def epochs(self) -> list[EpochRow]:
        """Return a record of each modelled epoch, from which its columns are made."""
        return [EpochRow(self.netlist, self.run, report) for report in self.run.epochs]


_CHECKS: Final = Columns[BoundResult](BoundResult, Column("passed", bool, lambda check: check.passed))
_HOST_STEPS: Final = Columns["HostTime"](
    Column("step", str, lambda step: step.step), Column("seconds", float, lambda step: step.seconds)
)
MODELLED: Final = Columns[Modelled](
    Column("netlist", str, lambda modelled: modelled.run.netlist),
    Column("arch", str, lambda modelled: modelled.run.arch),
    Column("board", str, lambda modelled: modelled.run.chip.board),
    Column("grid", tuple[int, int], lambda modelled: modelled.run.chip.grid),
    Column("effort", str, lambda modelled: modelled.netlist.effort),
    Column("clock_mhz", float, lambda modelled: modelled.run.clock),
    Column("version", str, lambda modelled: modelled.run.version),
    Column("parameters", dict[str, str], lambda modelled: modelled.run.parameters),
    Column("what_if", dict[str, float], lambda modelled: modelled.run.what_if),
    Column("epochs", [EPOCHS], Modelled.epochs),
    Column("program_cycles", dict[str, float], lambda modelled: modelled.run.programs()),
    Column(
        "program_intervals",
        dict[str, Interval],
        lambda modelled: program_intervals(modelled.run, modelled.intervals),
    ),
    Column("program_load_cycles", dict[str, float], lambda modelled: modelled.run.program_loads()),
    Column("program_host_seconds", dict[str, float], lambda modelled: modelled.run.host_seconds()),
    Column("inputs", int, lambda modelled: modelled.run.inputs),
    Column("overall_seconds", float, lambda modelled: modelled.run.overall_seconds),
    Column("overall_cycles_per_input", float | None, lambda modelled: modelled.run.overall_cycles_per_input),
    Column("overall_inputs_per_second", float | None, lambda modelled: modelled.run.overall_inputs_per_second),
    Column("dram", list[ChannelUse], lambda modelled: modelled.run.dram),
    Column("l1_bytes", dict[str, int], lambda modelled: modelled.run.l1),
    Column("l1_capacity", int, lambda modelled: modelled.run.l1_capacity),
    Column("performance_check", [_CHECKS], lambda modelled: modelled.checks),
    Column("sensitivity", Sensitivity | None, lambda modelled: modelled.sensitivity),
    Column("host_parts", [_HOST_STEPS], lambda modelled: modelled.on_host),
    Column("doubts", list[str], lambda modelled: list(modelled.doubts)),
)
"""All figures of `perf --json`. Cycles are of the AI clock; `cost_cycles` of an op is one input on each core. The
`overall` figures are those of the whole run, with all epochs, their loading and the host link; `cycles_per_input` of an
epoch is from one input to the next in that epoch alone."""


def read_perf_json(text: str, path: str) -> dict[str, Any]:
    """Parse the JSON of `perf --json`, which `path` names in errors, and check the parts that a comparison needs.
    Raises HostError for a text of another form or schema version."""
    content = read_object(text.encode("utf-8", "replace"), path, _WHAT, _FIX)
    if any(key not in content for key in _NEEDED):
        raise HostError(f"{path}: not {_WHAT}")
    version = content.get("schema_version")
    if version != RESULT_VERSION:
        raise HostError(f"{path}: schema version {version}, this version reads {RESULT_VERSION}: write it again")
    wrong = _wrong_place(content, _FORM, "")
    if wrong is not None:
        raise HostError(f"{path}: not {_WHAT}: {wrong}: {_FIX}")
    return content


_WHAT: Final = "a file that `buda-emu perf --json` wrote"
_FIX: Final = "write it again"
_NUMBER: Final = "a number"
_TEXT: Final = "text"
_UNITS: Final = [{"name": _TEXT, "cycles": _NUMBER}]
_FORM: Final[Mapping[str, Any]] = {
    "netlist": _TEXT,
    "arch": _TEXT,
    "clock_mhz": _NUMBER,
    "what_if": {},
    "parameters": {},
    "program_cycles": {"*": _NUMBER},
    "epochs": [
        {
            "program": _TEXT,
            "graphs": [_TEXT],
            "cycles_per_input": (_NUMBER,),
            "first_input_cycles": _NUMBER,
            "bottleneck": {"kind": _TEXT, "name": _TEXT},
            "ops": [{"op": _TEXT, "cost_cycles": _NUMBER}],
            "memory": _UNITS,
            "noc_links": _UNITS,
            "transfers": _UNITS,
        }
    ],
}
"""The form that a comparison needs: an object has at least these keys ("*": any keys), a list has elements of that
form, and a tuple holds the form of a value that may be null."""


def _wrong_place(value: Any, form: Any, place: str) -> str | None:
    """Return what is wrong at the first place where a value does not have a form (see `_FORM`), such as "epochs[0].ops
    is not a list"; None if all is right. `place` is the value's own place."""
    if isinstance(form, tuple):
        if value is None:
            return None
        return _wrong_place(value, form[0], place)
    if not _has_form(value, form):
        return f"{place or 'the document'} is not {_form_name(form)}"
    if isinstance(form, str):
        return None
    return next(filter(None, (_wrong_place(*inner) for inner in _inner_places(value, form, place))), None)


def _has_form(value: Any, form: Any) -> bool:
    """Return whether a value is of the kind that a form of `_FORM` asks for (number, text, list or object); what is in
    it is not looked at."""
    if form == _NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if form == _TEXT:
        return isinstance(value, str)
    return isinstance(value, list if isinstance(form, list) else dict)


def _form_name(form: Any) -> str:
    """Return the name of a form of `_FORM` for a message, such as "a list"."""
    if isinstance(form, str):
        return form
    return "a list" if isinstance(form, list) else "an object"


def _inner_places(value: Any, form: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield each value directly in a list or object, with the form that it should have and its place."""
    if isinstance(form, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield inner, form[0], f"{place}[{number}]"
        return
    for key, inner_form in cast("Mapping[str, Any]", form).items():
        names = list(value) if key == "*" else [key]
        for name in names:
            yield value.get(name), inner_form, f"{place}.{name}".removeprefix(".")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of `perf --json`."""
    return columns_document("Results of buda-emu perf", MODELLED)


_NOTHING = "N/A"
EPOCH_COLUMNS = (
    "program-name", "graph-name", "aiclk", "device-id", "input-count", "first-to-last-inputs",
    "num-cycles-per-tensor-all-inputs", "num-tensors-per-second-all-inputs", "num-cycles-all-inputs",
    "largest-wait-for-epoch-binary",
)  # fmt: skip
RUNTIME_COLUMNS = (
    "core-label", "device_id", "aiclk", "first-and-last-inputs", "total-runtime", "active-math-cycles-single-input",
    "math-utilization-over-all-inputs", "math-utilization-last-input-recorded", "runtime-last-input-recorded",
    "num-cycles-per-tensor", "num-tensors-per-second", "input0-bw", "input1-bw", "output-bw",
)  # fmt: skip


def perf_info_all_epochs_csv(run: PerfRun) -> str:
    """Return the content of the vendor's perf_info_all_epochs.csv: a line for each graph of each epoch; per-input
    figures are integers."""
    rows: list[dict[str, Any]] = []
    for epoch in run.epochs:
        for graph, chip in zip(epoch.graphs, epoch.graph_chips, strict=True):
            rows.append(
                {
                    "program-name": epoch.program,
                    "graph-name": graph,
                    "aiclk": int(run.clock),
                    "device-id": chip,
                    "input-count": epoch.timing.inputs,
                    "first-to-last-inputs": _input_range(epoch),
                    "num-cycles-per-tensor-all-inputs": _integer_text(epoch.timing.cycles_per_input),
                    "num-tensors-per-second-all-inputs": _integer_text(_per_second(run, epoch)),
                    "num-cycles-all-inputs": _integer_text(epoch.timing.last_pack),
                    "largest-wait-for-epoch-binary": _integer_text(epoch.load.cycles),
                }
            )
    return _csv_text(EPOCH_COLUMNS, rows)


def runtime_table_csv(netlist: Netlist, run: PerfRun) -> str:
    """Return the content of the vendor's runtime_table.csv for all epochs: a line for the first core of each op, since
    the cores of an op are modelled alike."""
    rows: list[dict[str, Any]] = []
    for epoch in run.epochs:
        for figures in op_figures(netlist, run, epoch):
            bandwidths = [*figures.input_bandwidth, None, None]
            rows.append(
                {
                    "core-label": _core_label(run.chip, figures),
                    "device_id": figures.chip,
                    "aiclk": int(run.clock),
                    "first-and-last-inputs": _input_range(epoch),
                    "total-runtime": _integer_text(figures.total_runtime),
                    "active-math-cycles-single-input": _integer_text(figures.math),
                    "math-utilization-over-all-inputs": _two_decimals(figures.average_utilisation),
                    "math-utilization-last-input-recorded": _two_decimals(figures.utilisation_last),
                    "runtime-last-input-recorded": _integer_text(figures.cycles_last),
                    "num-cycles-per-tensor": _two_decimals(figures.cycles_per_input),
                    "num-tensors-per-second": _two_decimals(_per_second(run, epoch)),
                    "input0-bw": _two_decimals(bandwidths[0]),
                    "input1-bw": _two_decimals(bandwidths[1]),
                    "output-bw": _two_decimals(figures.output_bandwidth),
                }
            )
    return _csv_text(RUNTIME_COLUMNS, rows)


def op_perf_table(netlist: Netlist, run: PerfRun) -> dict[str, Any]:
    """Return the content of the vendor's op_perf_table.json for all epochs, by program and graphs."""
    tables: dict[str, Any] = {}
    for number, epoch in enumerate(run.epochs):
        ops: dict[str, Any] = {}
        for figures, timing in zip(op_figures(netlist, run, epoch), epoch.timing.ops, strict=True):
            ops[figures.op] = {
                "first-input-recorded": 0,
                "last-input-recorded": figures.inputs - 1,
                "num-cores": figures.cores,
                "runtime-across-cores": figures.total_runtime,
                "math-utilization-across-cores": figures.average_utilisation,
                "model-num-cycles": timing.cost.cycles,
                "provenance": figures.provenance,
            }
        ops["epoch-information"] = {"epoch-global-id": number, "AICLK": run.clock}
        tables.setdefault(epoch.program, {})[" + ".join(epoch.graphs)] = ops
    return tables


def _core_label(chip: Device, figures: OpFigures) -> str:
    """Return <x>-<y>-<op>: the physical place of the op's first core on an unharvested chip (PERF 1)."""
    place = chip.label(*figures.place) if len(figures.place) == 2 else "eth"
    return f"{place}-{figures.op}"


def _input_range(epoch: EpochReport) -> str:
    """Return the first and the last input of an epoch as the vendor's tables write them, such as `0->63`."""
    return f"0->{epoch.timing.inputs - 1}"


def _per_second(run: PerfRun, epoch: EpochReport) -> float | None:
    """Return the inputs per second of an epoch; None if it runs fewer than two."""
    pace = epoch.timing.cycles_per_input
    return 1 / run.seconds(pace) if pace else None


def _integer_text(value: float | None) -> str:
    """Return a figure without its fraction, "N/A" for None."""
    return _NOTHING if value is None else str(int(value))


def _two_decimals(value: float | None) -> str:
    """Return a figure with two decimals, "N/A" for None."""
    return _NOTHING if value is None else f"{value:.2f}"


def _csv_text(columns: Sequence[str], rows: list[dict[str, Any]]) -> str:
    """Return rows as CSV with a header; the cells of a row are by the name of their column."""
    stream = StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()
