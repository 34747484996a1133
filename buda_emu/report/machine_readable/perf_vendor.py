"""Modelled cycles under the vendor's names (PERF 3), so that scripts for its reports read ours."""

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from buda_emu.netlist.model import Netlist
from buda_emu.spec.devices import Device
from buda_emu.timing.figures import OpFigures, op_figures
from buda_emu.timing.result import EpochReport, PerfRun

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
    """perf_info_all_epochs.csv: a line for each epoch; per-input figures are integers."""
    rows = [
        {
            "program-name": epoch.program,
            "graph-name": graph,
            "aiclk": int(run.clock),
            "device-id": chip,
            "input-count": epoch.timing.inputs,
            "first-to-last-inputs": _inputs(epoch),
            "num-cycles-per-tensor-all-inputs": _whole(epoch.timing.cycles_per_input),
            "num-tensors-per-second-all-inputs": _whole(_per_second(run, epoch)),
            "num-cycles-all-inputs": _whole(epoch.timing.last_pack),
            "largest-wait-for-epoch-binary": _whole(epoch.load.cycles),
        }
        for epoch in run.epochs
        for graph, chip in zip(epoch.graphs, epoch.graph_chips, strict=True)
    ]
    return _csv(EPOCH_COLUMNS, rows)


def runtime_table_csv(netlist: Netlist, run: PerfRun) -> str:
    """runtime_table.csv of every epoch, one line for the first core of each op: its cores are modelled alike."""
    rows: list[dict[str, Any]] = []
    for epoch in run.epochs:
        for item in op_figures(netlist, run, epoch):
            bandwidths = [*item.input_bandwidth, None, None]
            rows.append(
                {
                    "core-label": _label(run.chip, item),
                    "device_id": item.chip,
                    "aiclk": int(run.clock),
                    "first-and-last-inputs": _inputs(epoch),
                    "total-runtime": _whole(item.total_runtime),
                    "active-math-cycles-single-input": _whole(item.math),
                    "math-utilization-over-all-inputs": _two(item.average_utilisation),
                    "math-utilization-last-input-recorded": _two(item.utilisation_last),
                    "runtime-last-input-recorded": _whole(item.cycles_last),
                    "num-cycles-per-tensor": _two(item.cycles_per_input),
                    "num-tensors-per-second": _two(_per_second(run, epoch)),
                    "input0-bw": _two(bandwidths[0]),
                    "input1-bw": _two(bandwidths[1]),
                    "output-bw": _two(item.output_bandwidth),
                }
            )
    return _csv(RUNTIME_COLUMNS, rows)


def op_perf_table(netlist: Netlist, run: PerfRun) -> dict[str, Any]:
    """op_perf_table.json of every epoch, by program and graph."""
    found: dict[str, Any] = {}
    for number, epoch in enumerate(run.epochs):
        ops: dict[str, Any] = {
            item.op: {
                "first-input-recorded": 0,
                "last-input-recorded": item.inputs - 1,
                "num-cores": item.cores,
                "runtime-across-cores": item.total_runtime,
                "math-utilization-across-cores": item.average_utilisation,
                "model-num-cycles": cost,
                "provenance": item.provenance,
            }
            for item, cost in zip(
                op_figures(netlist, run, epoch), (op.cost.cycles for op in epoch.timing.ops), strict=True
            )
        }
        ops["epoch-information"] = {"epoch-global-id": number, "AICLK": run.clock}
        found.setdefault(epoch.program, {})[" + ".join(epoch.graphs)] = ops
    return found


def _label(chip: Device, item: OpFigures) -> str:
    """<x>-<y>-<op>: the physical place of the op's first core on an unharvested chip (PERF 1)."""
    place = chip.label(*item.place) if len(item.place) == 2 else "eth"
    return f"{place}-{item.op}"


def _inputs(epoch: EpochReport) -> str:
    return f"0->{epoch.timing.inputs - 1}"


def _per_second(run: PerfRun, epoch: EpochReport) -> float | None:
    pace = epoch.timing.cycles_per_input
    return 1 / run.seconds(pace) if pace else None


def _whole(value: float | None) -> str:
    return _NOTHING if value is None else str(int(value))


def _two(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.2f}"


def _csv(columns: Sequence[str], rows: list[dict[str, Any]]) -> str:
    stream = StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()
