"""Modelled cycles as one HTML file that needs nothing else."""

from collections.abc import Sequence
from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.report.grid_svg import grid_svg
from buda_emu.report.html import page, table
from buda_emu.report.perf_charts import limits_chart, roofline_chart, timeline_chart
from buda_emu.report.svg import clean
from buda_emu.report.text import number, plural
from buda_emu.timing.checks import CheckResult
from buda_emu.timing.figures import OpFigures, op_figures
from buda_emu.timing.rates import STREAM
from buda_emu.timing.result import EpochReport, PerfRun

MOST_EPOCHS: Final = 24
"""Epochs with charts in the page; the tables have all."""


def perf_page(netlist: Netlist, run: PerfRun, checks: Sequence[CheckResult], command: str) -> str:
    """The page: checks, epochs, then charts and ops of each, the slowest first."""
    title = f"buda-emu perf: {run.netlist}"
    slowest = sorted(run.epochs, key=lambda epoch: -epoch.timing.total * epoch.runs)[:MOST_EPOCHS]
    left_out = len(run.epochs) - len(slowest)
    note = f"{plural(left_out, 'epoch')} without charts here: perf.json has every figure." if left_out else ""
    body = "\n".join([
        f"<h1>{clean(title)}</h1>",
        f'<p class="soft">buda-emu {clean(run.version)}, {run.arch}, {run.clock:g} MHz, modelled</p>',
        f"<pre>{clean(command)}</pre>", _checks(checks), _epochs(run),
        f'<p class="soft">{clean(note)}</p>' if note else "",
        *(_epoch(netlist, run, epoch, index) for index, epoch in enumerate(slowest)),
    ])  # fmt: skip
    return page(title, body)


def _checks(checks: Sequence[CheckResult]) -> str:
    if not checks:
        return ""
    rows = (
        (
            clean(item.config), clean(item.graph or "-"), clean(item.target or "-"), item.bound.metric,
            clean(str(item.bound)), number(item.observed, 6),
            f'<span class="{"passed" if item.passed else "failed"}">{"passed" if item.passed else "failed"}</span>',
        )
        for item in checks
    )  # fmt: skip
    headers = ("config", "graph", "target", "metric", "expected", "modelled", "verdict")
    return f"<section><h2>performance-check</h2>{table(headers, rows, right=(5,))}</section>"


def _epochs(run: PerfRun) -> str:
    rows = (
        (
            clean(epoch.program), clean(" + ".join(epoch.graphs)), str(epoch.runs), str(epoch.timing.inputs),
            f"{epoch.pace:.0f}", number(1 / run.seconds(epoch.pace)), str(epoch.timing.first_input),
            clean(epoch.bottleneck.sentence),
        )
        for epoch in run.epochs
    )  # fmt: skip
    headers = ("program", "graph", "runs", "inputs", "cycles per input", "inputs per second", "first input", "why")
    return f"<section><h2>Epochs</h2>{table(headers, rows, right=(2, 3, 4, 5, 6), words=7)}</section>"


def _epoch(netlist: Netlist, run: PerfRun, epoch: EpochReport, index: int) -> str:
    ops = list(op_figures(netlist, run, epoch))
    bytes_of: dict[str, float] = dict(epoch.output_bytes)
    for edge in epoch.edges:
        if edge.operand >= 0 and not edge.once:
            bytes_of[edge.target] = bytes_of.get(edge.target, 0.0) + edge.core_bytes
    heat = {item.op: min(item.active / epoch.timing.modelled / max(epoch.pace, 1.0), 1.0) for item in epoch.timing.ops}
    notes = {op.op: f"{100 * heat[op.op]:.0f} % of the time between two inputs; {op.provenance}" for op in ops}
    temporal = next(item.id for item in netlist.temporal_graphs if item.graphs == epoch.graphs)
    picture = grid_svg(netlist, epochs=[temporal], heat=heat, notes=notes, mark=f"-perf{index}", red="busy")
    parts = [
        f"<p>{clean(epoch.bottleneck.sentence)}.</p>",
        f'<h2>What limits it</h2><div class="wide tall">{limits_chart(epoch)}</div>',
        f'<h2>Timeline of the last inputs, in cycles</h2><div class="wide tall">{timeline_chart(epoch)}</div>',
        f'<h2>Ops on the core grid, redder the busier</h2><div class="wide tall">{picture}</div>',
        f'<h2>Roofline</h2><div class="wide">{roofline_chart(ops, bytes_of, STREAM)}</div>',
        f"<details><summary>Ops</summary>{_ops(epoch, ops)}</details>",
    ]
    is_open = " open" if index == 0 else ""
    name = clean(f"{epoch.program}: {' + '.join(epoch.graphs)}")
    return f'<details class="case"{is_open}><summary>{name}</summary>{"".join(parts)}</details>'


def _ops(epoch: EpochReport, ops: Sequence[OpFigures]) -> str:
    rows = (
        (
            clean(op.op), op.type, str(op.cores), f"{item.cost.cycles:.0f}",
            f"{100 * op.math / max(epoch.pace, 1.0):.1f}",
            f"{op.waiting_for_input:.0f}", f"{op.waiting_for_room:.0f}", clean(op.provenance),
        )
        for op, item in zip(ops, epoch.timing.ops, strict=True)
    )  # fmt: skip
    headers = ("op", "type", "cores", "cycles", "math %", "waits for input", "waits for room", "provenance")
    return table(headers, rows, right=(2, 3, 4, 5, 6))
