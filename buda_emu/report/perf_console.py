"""Modelled cycles as lines for a terminal."""

from collections.abc import Iterator, Sequence

from buda_emu.netlist.model import Netlist
from buda_emu.report.text import number, plural, table
from buda_emu.timing.checks import CheckResult
from buda_emu.timing.figures import op_figures
from buda_emu.timing.result import EpochReport, PerfRun


def perf_lines(netlist: Netlist, run: PerfRun) -> Iterator[str]:
    """A table of epochs, then of the ops of each."""
    yield f"{run.netlist}: {run.arch}, {run.clock:g} MHz, modelled"
    yield ""
    yield _epochs(run)
    for epoch in run.epochs:
        yield ""
        yield f"{epoch.program}: {' + '.join(epoch.graphs)}: {epoch.bottleneck.sentence}"
        yield _ops(netlist, run, epoch)


def _epochs(run: PerfRun) -> str:
    return table(
        ("program", "graph", "runs", "inputs", "cycles per input", "inputs per second", "first input", "bottleneck"),
        (
            (
                epoch.program, " + ".join(epoch.graphs), str(epoch.runs), str(epoch.timing.inputs), f"{epoch.pace:.0f}",
                number(1 / run.seconds(epoch.pace)), str(epoch.timing.first_input), epoch.bottleneck.name,
            )
            for epoch in run.epochs
        ),
        right=(2, 3, 4, 5, 6),
    )  # fmt: skip


def _ops(netlist: Netlist, run: PerfRun, epoch: EpochReport) -> str:
    headers = ("op", "type", "cores", "cycles", "math %", "waits for input", "waits for room", "provenance")
    return table(
        headers,
        (
            (
                item.op, item.type, str(item.cores), f"{cost:.0f}", f"{100 * item.math / max(epoch.pace, 1.0):.1f}",
                f"{item.waiting_for_input:.0f}", f"{item.waiting_for_room:.0f}", item.provenance,
            )
            for item, cost in zip(
                op_figures(netlist, run, epoch), (op.cost.cycles for op in epoch.timing.ops), strict=True
            )
        ),
        right=(2, 3, 4, 5, 6),
    )  # fmt: skip


def check_lines(results: Sequence[CheckResult]) -> Iterator[str]:
    """`performance-check`: expected, modelled, verdict."""
    if not results:
        return
    yield "performance-check"
    yield table(
        ("config", "graph", "target", "metric", "expected", "modelled", "verdict"),
        (
            (
                item.config, item.graph or "-", item.target or "-", item.bound.metric, str(item.bound),
                number(item.observed, 6), "passed" if item.passed else "FAILED",
            )
            for item in results
        ),
        right=(5,),
    )  # fmt: skip
    missed = sum(not item.passed for item in results)
    yield f"{plural(missed, 'figure')} missed" if missed else "every figure holds"
