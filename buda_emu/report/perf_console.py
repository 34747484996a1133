"""Modelled cycles as lines for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from buda_emu.netlist import nodes
from buda_emu.netlist.model import Netlist
from buda_emu.report.text import number, percent, plural, table
from buda_emu.timing.checks import CheckResult
from buda_emu.timing.critical import chain_sentence, critical_steps
from buda_emu.timing.figures import op_figures
from buda_emu.timing.result import EpochReport, PerfRun


def perf_lines(netlist: Netlist, run: PerfRun) -> Iterator[str]:
    """A table of epochs, then of the ops of each."""
    yield f"{run.netlist}: {run.arch}, {run.clock:g} MHz, modelled"
    yield ""
    yield _epochs(run)
    yield ""
    for program, cycles in run.programs().items():
        yield f"program {program}: {cycles:.0f} cycles, {1e3 * run.seconds(cycles):.3g} ms{_host(run, program, cycles)}"
    yield from _memory(run)
    for epoch in run.epochs:
        yield ""
        yield f"{epoch.program}: {' + '.join(epoch.graphs)}: {epoch.bottleneck.sentence}"
        yield chain_sentence(critical_steps(epoch.timing))
        yield _ops(netlist, run, epoch)


def _host(run: PerfRun, program: str, cycles: float) -> str:
    host = run.host_seconds()[program]
    if not host:
        return ""
    bounds = "which bounds it" if host > run.seconds(cycles) else "which can go on meanwhile"
    return f"; the host link takes {1e3 * host:.3g} ms to push and pop, {bounds}"


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


def _memory(run: PerfRun) -> Iterator[str]:
    """The fullest core and the fullest channel."""
    if run.l1:
        op = max(run.l1, key=lambda name: run.l1[name])
        yield f"L1: at most {run.l1[op] >> 10} of {run.l1_capacity >> 10} KiB, by op {op}"
    if run.dram:
        use = max(run.dram, key=lambda item: item.share)
        size = f"{use.used / 2**20:.1f} of {use.capacity >> 20} MiB"
        yield f"DRAM: at most {size} ({percent(use.share)}), in channel {use.channel} of chip {use.chip}"


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


def expectation_lines(sections: Mapping[str, nodes.Node], results: Sequence[CheckResult]) -> Iterator[str]:
    """The section as it would have to be for the modelled figures to hold; what cannot be modelled is left as it is."""
    section = sections.get("performance-check")
    if section is None:
        return
    observed = {(item.config, item.bound.metric): item.observed for item in results}
    yield "performance-check:"
    for config, _, value in section.items() if isinstance(section, nodes.Mapping) else ():
        yield f"  {config}:"
        for key, _, node in value.items() if isinstance(value, nodes.Mapping) else ():
            modelled = observed.get((config, key))
            if modelled is None or not isinstance(node, nodes.Mapping):
                yield f"    {key}: {_written(node)}"
                continue
            fields = {name: _written(item) for name, _, item in node.items()}
            for name in fields.keys() & {"expected", "min_bound"}:
                fields[name] = f"{modelled:.6g}"
            yield f"    {key}: {{{', '.join(f'{name}: {text}' for name, text in fields.items())}}}"


def _written(node: nodes.Node) -> str:
    if isinstance(node, nodes.Scalar):
        return node.text
    if isinstance(node, nodes.Sequence):
        return f"[{', '.join(_written(item) for item in node.items)}]"
    return f"{{{', '.join(f'{name}: {_written(item)}' for name, _, item in node.items())}}}"


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
