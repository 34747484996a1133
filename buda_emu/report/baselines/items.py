"""The items that `check`, `test` and `perf` contribute to a baseline."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from buda_emu.report.baselines.verdict import Item

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic
    from buda_emu.timing.checks import BoundResult
    from buda_emu.timing.result import PerfRun
    from buda_emu.verify.result import CaseResult


def finding(diagnostic: "Diagnostic") -> str:
    """How a finding is known: rule and words, not its line, which moves."""
    return f"{diagnostic.severity} {diagnostic.rule}: {diagnostic.message}"


def check_items(diagnostics: "Sequence[Diagnostic]") -> list[Item]:
    """Errors and warnings, equal ones counted."""
    counts = Counter(finding(item) for item in diagnostics if item.severity != "note")
    return [Item(what, float(count)) for what, count in counts.items()]


def test_items(case: "CaseResult") -> list[Item]:
    """Outputs and figures that do not hold; of a netlist that gave none, what became of it."""
    if case.status in ("passed", "skipped"):
        return []
    found = [
        Item(f"output {item.queue}", 1 - (item.pcc if item.pcc is not None else item.match))
        for item in case.failed_outputs
    ]
    for item in case.performance:
        if not item.passed:
            found.append(Item(_check_name(item.config, item.graph, item.target, item.metric)))
    return found or [Item(case.status)]


def perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> list[Item]:
    """Cycles for an input of every epoch, and figures of performance-check that are missed."""
    return list(_perf_items(run, checks))


def _perf_items(run: "PerfRun", checks: "Sequence[BoundResult]") -> Iterator[Item]:
    for epoch in run.epochs:
        yield Item(f"{epoch.program}: {' + '.join(epoch.graphs)}", epoch.pace, fails=False)
    for item in checks:
        if not item.passed:
            yield Item(_check_name(item.config, item.graph, item.target, item.bound.metric))


def _check_name(config: str, graph: str, target: str, metric: str) -> str:
    return "performance-check " + " ".join(filter(None, (config, graph, target, metric)))
