"""Compares `performance-check` with modelled figures (PERF 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import Bound, PerformanceCheck
from buda_emu.performance.timing.figures import OpFigures, op_figures
from buda_emu.performance.timing.result import EpochReport, PerfRun


@dataclass(frozen=True, slots=True)
class BoundResult:
    """One metric of one configuration. `observed` None: there is nothing to hold it against, which fails (PERF 4)."""

    config: str
    program: str
    graph: str
    target: str  # an op and input, "" for figures of an epoch or the run
    bound: Bound
    observed: float | None

    @property
    def passed(self) -> bool:
        """PERF 4: the pass rule of the bound."""
        return not self.bound.stated or (self.observed is not None and self.bound.holds(self.observed))


def evaluate(netlist: Netlist, run: PerfRun, checks: Sequence[PerformanceCheck]) -> list[BoundResult]:
    """Every metric of every configuration, in the order of the section.

    Only the first configuration that names an epoch is applied to it; one that names no modelled epoch is not
    evaluated, as on the device. Figures of the whole run stand apart from epochs.
    """
    found: list[BoundResult] = []
    taken: set[tuple[str, str]] = set()
    for check in checks:
        found += [
            BoundResult(
                config=check.name, program="", graph="", target="", bound=bound, observed=_samples_per_second(run)
            )
            for bound in check.of("run")
        ]
        for epoch in run.epochs:
            for graph in epoch.graphs:
                if (graph, epoch.program) == (check.graph, check.program) and (graph, epoch.program) not in taken:
                    taken.add((graph, epoch.program))
                    found += _of_epoch(netlist, run, epoch, graph, check)
    return found


def _of_epoch(
    netlist: Netlist, run: PerfRun, epoch: EpochReport, graph: str, check: PerformanceCheck
) -> Iterator[BoundResult]:
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
    targets = _targets(netlist, graph, check)
    by_op = {item.op: item for item in op_figures(netlist, run, epoch)}
    for op in targets:
        for number in check.target_inputs:
            for bound in check.of("core"):
                observed = _of_core(by_op.get(op), bound.metric, number)
                yield BoundResult(
                    config=check.name,
                    program=check.program,
                    graph=graph,
                    target=f"{op}, input {number}",
                    bound=bound,
                    observed=observed,
                )


def _targets(netlist: Netlist, graph: str, check: PerformanceCheck) -> list[str]:
    """Ops whose name ends with a target's (PERF 4); those on a target core, by logical place."""
    ops = netlist.graphs[graph].ops
    named = [op.name for op in ops if any(op.name.endswith(name) for name in check.target_ops)]
    return list(dict.fromkeys(named))


def _of_core(figures: OpFigures | None, metric: str, number: int) -> float | None:
    """Figures of one input: the first, or a later one; all later inputs are alike in the steady state."""
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
    """Inputs over the time of all but the last epoch of the program (PERF 3 global-events); one program only."""
    if len({epoch.program for epoch in run.epochs}) != 1 or len(run.epochs) < 2:
        return None
    inputs = sum(epoch.runs * epoch.timing.inputs for epoch in run.epochs[:1])
    cycles = sum(epoch.runs * epoch.timing.last_pack for epoch in run.epochs[:-1])
    return inputs / run.seconds(cycles) if cycles else None
