"""Compares `performance-check` with modelled figures (PERF 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import METRICS, Bound, PerformanceCheck
from buda_emu.performance.timing.figures import OpFigures, op_figures
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.checker.text import quote


@dataclass(frozen=True, slots=True)
class BoundResult:
    """Result of one bound of a `performance-check`. `observed` is None if the model has no such figure; the bound then
    fails (PERF 4)."""

    config: str
    program: str
    graph: str
    target: str  # an op and input, "" for figures of an epoch or the run
    bound: Bound
    observed: float | None

    @property
    def passed(self) -> bool:
        """Return whether the bound is not stated, or the observed figure keeps it (PERF 4)."""
        return not self.bound.stated or (self.observed is not None and self.bound.holds(self.observed))


def evaluate(netlist: Netlist, run: PerfRun, checks: Sequence[PerformanceCheck]) -> list[BoundResult]:
    """Return a result for every bound of every configuration, compared with the modelled figures, in the order of the
    section.

    If several configurations name the same epoch, only the first one applies to it. A configuration that names no
    modelled epoch is not evaluated, as on the device. Bounds of the whole run come before those of epochs.
    """
    results: list[BoundResult] = []
    checked_graphs: set[tuple[str, str]] = set()
    for check in checks:
        results += [
            BoundResult(
                config=check.name, program="", graph="", target="", bound=bound, observed=_samples_per_second(run)
            )
            for bound in check.of("run")
        ]
        for epoch in run.epochs:
            for graph in epoch.graphs:
                if (graph, epoch.program) == (check.graph, check.program) and (
                    graph,
                    epoch.program,
                ) not in checked_graphs:
                    checked_graphs.add((graph, epoch.program))
                    results += _check_epoch(netlist, run, epoch, graph, check)
    return results


def check_doubts(
    netlist: Netlist, run: PerfRun, checks: Sequence[PerformanceCheck], results: Sequence[BoundResult]
) -> Iterator[str]:
    """Yield a text for each configuration for which `results` has no result, or none of some metric: then nothing was
    compared, whatever the verdict."""
    compared = {(result.config, result.bound.metric) for result in results}
    for check in checks:
        unchecked = [bound for bound in check.bounds if (check.name, bound.metric) not in compared]
        if not check.bounds:
            yield f"performance-check: {check.name} checks nothing: it has no metric"
        elif unchecked:
            missing = "checks nothing"
            if len(unchecked) < len(check.bounds):
                missing = f"does not check {', '.join(bound.metric for bound in unchecked)}"
            yield f"performance-check: {check.name} {missing}: {_reason_without_check(netlist, run, check, unchecked)}"


def _reason_without_check(netlist: Netlist, run: PerfRun, check: PerformanceCheck, unchecked: Sequence[Bound]) -> str:
    """Return why `unchecked` bounds of a configuration have no result: there is no such program, graph or target op, or
    an earlier configuration checks the epoch."""
    if check.program not in netlist.programs:
        return f"there is no program {quote(check.program)}{hint_in_parentheses(check.program, netlist.programs)}"
    if check.graph not in netlist.graphs:
        return f"there is no graph {quote(check.graph)}{hint_in_parentheses(check.graph, netlist.graphs)}"
    if not any(epoch.program == check.program and check.graph in epoch.graphs for epoch in run.epochs):
        return f"program {quote(check.program)} does not run graph {quote(check.graph)}"
    only_of_cores = all(METRICS[bound.metric][0] == "core" for bound in unchecked)
    if only_of_cores and not _target_ops(netlist, check.graph, check):
        return f"target-ops names no op of graph {quote(check.graph)}"
    return "an earlier configuration checks the same epoch"


def _check_epoch(
    netlist: Netlist, run: PerfRun, epoch: EpochReport, graph: str, check: PerformanceCheck
) -> Iterator[BoundResult]:
    """Yield the results of a configuration for one graph of an epoch: first for bounds of the epoch, then for those of
    each target op and target input."""
    figures = {"cycles-per-tensor": epoch.timing.cycles_per_input, "tensors-per-second": None}
    if epoch.timing.cycles_per_input:
        figures["tensors-per-second"] = 1 / run.seconds(epoch.timing.cycles_per_input)
    for bound in check.of("epoch"):
        yield BoundResult(
            config=check.name,
            program=check.program,
            graph=graph,
            target="",
            bound=bound,
            observed=figures[bound.metric],
        )
    targets = _target_ops(netlist, graph, check)
    by_op = {entry.op: entry for entry in op_figures(netlist, run, epoch)}
    for op in targets:
        for number in check.target_inputs:
            for bound in check.of("core"):
                observed = _core_figure(by_op.get(op), bound.metric, number)
                yield BoundResult(
                    config=check.name,
                    program=check.program,
                    graph=graph,
                    target=f"{op}, input {number}",
                    bound=bound,
                    observed=observed,
                )


def _target_ops(netlist: Netlist, graph: str, check: PerformanceCheck) -> list[str]:
    """Return the names of the graph's ops that end with a name in the configuration's target-ops (PERF 4), each
    once."""
    ops = netlist.graphs[graph].ops
    named = [op.name for op in ops if any(op.name.endswith(name) for name in check.target_ops)]
    return list(dict.fromkeys(named))


def _core_figure(figures: OpFigures | None, metric: str, number: int) -> float | None:
    """Return the figure `metric` of an op for input `number`, counted from the end if negative; None if the op or the
    input does not exist, or the figure does not. Utilization and cycles are those of the first input or, for any other,
    of the last one that is modelled; other figures are of the whole epoch."""
    if figures is None or not -figures.inputs <= number < figures.inputs:
        return None
    first = number in (0, -figures.inputs)
    values: Mapping[str, float | None] = {
        "math-utilization": figures.utilisation_first if first else figures.utilisation_last,
        "execution-cycles": figures.cycles_first if first else figures.cycles_last,
        "average-math-utilization": figures.average_utilisation,
        "total-runtime": figures.total_runtime,
        "input0-bw": figures.input_bandwidth[0] if figures.input_bandwidth else None,
        "output-bw": figures.output_bandwidth,
    }
    return values[metric]


def _samples_per_second(run: PerfRun) -> float | None:
    """Return inputs per second over the time of all epochs but the last (PERF 3, global-events); None unless the run
    has one program with two epochs or more, or if they take no time."""
    if len({epoch.program for epoch in run.epochs}) != 1 or len(run.epochs) < 2:
        return None
    inputs = sum(epoch.runs * epoch.timing.inputs for epoch in run.epochs[:1])
    cycles = sum(epoch.runs * epoch.timing.last_pack for epoch in run.epochs[:-1])
    if cycles:
        return inputs / run.seconds(cycles)
    return None
