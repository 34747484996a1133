"""The `performance-check` section: figures that a run on the chip is expected to reach (NETLIST 6, PERF 4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from buda_emu.checker.checks import TooManyFindingsError
from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.render import render
from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.errors import NetlistError
from buda_emu.netlist import nodes
from buda_emu.netlist.scalars import parse_float, parse_int
from buda_emu.netlist.testing.fields import SectionReader

DEFAULT_RTOL: Final = 0.01

METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "cycles-per-tensor": ("epoch", "cycles from one tensor to the next, the first left out"),
    "tensors-per-second": ("epoch", "tensors in a second, the first left out"),
    "math-utilization": ("core", "per cent of an input's time that the math unit works"),
    "execution-cycles": ("core", "cycles of an input, first unpack to last pack"),
    "average-math-utilization": ("core", "per cent of all inputs' time that the math unit works"),
    "total-runtime": ("core", "cycles of all inputs, first unpack to last pack"),
    "input0-bw": ("core", "bytes that input 0 takes in a nanosecond"),
    "output-bw": ("core", "bytes that the output gives in a nanosecond"),
    "backend-samples-per-second": ("run", "samples in a second over the whole run"),
}
"""Metric -> what it is of, and what it says."""
_KEYS: Final = ("graph-name", "program-name", "target-cores", "target-ops", "target-inputs", "test-group", "test-name")


@dataclass(frozen=True, slots=True)
class Bound:
    """What one metric is compared with: `expected` within `rtol`, or at least `min_bound`. An `expected` of 0 states
    nothing: the vendor's harness puts a figure from elsewhere in its place (NETLIST 6)."""

    metric: str
    expected: float | None = None
    rtol: float = DEFAULT_RTOL
    min_bound: float | None = None

    @property
    def stated(self) -> bool:
        """Whether there is anything to hold a figure against."""
        return self.min_bound is not None or bool(self.expected)

    def holds(self, observed: float) -> bool:
        """PERF 4: strictly within rtol, low and high values both fail; or at least the bound. All holds where nothing
        is stated."""
        if self.min_bound is not None:
            return observed >= self.min_bound
        return not self.expected or abs(observed - self.expected) < abs(self.rtol * self.expected)

    def __str__(self) -> str:
        if self.min_bound is not None:
            return f"at least {self.min_bound:g}"
        return "not stated" if not self.expected else f"{self.expected:g} within {100 * self.rtol:g} %"


@dataclass(frozen=True, slots=True)
class PerformanceCheck:
    """One configuration of the section. Only the first one that names an epoch is applied to it."""

    name: str
    graph: str
    program: str
    bounds: tuple[Bound, ...]
    target_cores: tuple[str, ...] = ()
    target_ops: tuple[str, ...] = ()
    target_inputs: tuple[int, ...] = (0,)
    test_group: str = ""
    test_name: str = ""

    def of(self, scope: str) -> tuple[Bound, ...]:
        """Bounds on metrics of an epoch, a core, or the run."""
        return tuple(bound for bound in self.bounds if METRICS[bound.metric][0] == scope)


def read_performance_checks(path: str, sections: Mapping[str, nodes.Node]) -> tuple[PerformanceCheck, ...]:
    """Every configuration, in document order; unknown keys are ignored (NETLIST 6). Raises NetlistError."""
    reader = _Reader(path, strict=True)
    checks = tuple(reader.all_checks(sections.get("performance-check")))
    errors = [finding for finding in reader.findings if finding.severity == "error"]
    if errors:
        raise NetlistError(render(errors), errors)
    return checks


def findings(path: str, sections: Mapping[str, nodes.Node], *, strict: bool) -> list[Diagnostic]:
    """What is wrong with the section."""
    reader = _Reader(path, strict)
    for _ in reader.all_checks(sections.get("performance-check")):
        pass
    return reader.findings


class _Reader(SectionReader):
    type_rule = "V205"

    def all_checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        try:
            yield from self._checks(node)
        except TooManyFindingsError as error:
            self.findings.append(error.last)

    def _checks(self, node: nodes.Node | None) -> Iterator[PerformanceCheck]:
        for name, _, value in self.entries(node, "performance-check"):
            pairs = list(self.entries(value, name))
            found = {key: item for key, _, item in pairs}
            for key, key_node, _ in pairs:
                if key not in METRICS and key not in _KEYS:
                    self._hint(key_node, f"{name}: {quoted(key)} is not a metric: it is ignored", near(key, METRICS))
            yield PerformanceCheck(
                name,
                self._word(found.get("graph-name")),
                self._word(found.get("program-name")),
                tuple(self._bound(f"{name}: {metric}", metric, found[metric]) for metric in METRICS if metric in found),
                self.names(found.get("target-cores"), f"{name}: target-cores"),
                self.names(found.get("target-ops"), f"{name}: target-ops"),
                self._inputs(found.get("target-inputs"), name),
                self._word(found.get("test-group")),
                self._word(found.get("test-name")),
            )

    def _bound(self, where: str, metric: str, node: nodes.Node) -> Bound:
        values: dict[str, float] = {}
        for key, _, item in self.entries(node, where):
            number = parse_float(item.text) if isinstance(item, nodes.Scalar) else None
            if key in ("expected", "rtol", "min_bound"):
                if number is None or not isfinite(number):
                    self._add("V205", item, f"{where}: {key} is a finite number")
                else:
                    values[key] = number
        if "min_bound" in values and len(values) > 1:
            self._add("V206", node, f"{where}: min_bound cannot be combined with expected or rtol")
        if not values.keys() & {"expected", "min_bound"}:
            self._add("V206", node, f"{where}: neither expected nor min_bound is given")
        return Bound(metric, **values)

    def _inputs(self, node: nodes.Node | None, name: str) -> tuple[int, ...]:
        if node is None:
            return (0,)
        numbers: list[int] = []
        for item in node.items if isinstance(node, nodes.Sequence) else [node]:
            number = parse_int(item.text) if isinstance(item, nodes.Scalar) else None
            if number is None:
                self._add("V205", item, f"{name}: target-inputs is a list of integers")
            else:
                numbers.append(number)
        return tuple(numbers)

    @staticmethod
    def _word(node: nodes.Node | None) -> str:
        return node.text if isinstance(node, nodes.Scalar) and not node.is_null else ""

    def _hint(self, node: nodes.Node, message: str, hint: str) -> None:
        if hint:  # a misspelt metric; anything else is someone's note (NETLIST 6: unknown keys are ignored)
            self._add("V207", node, message, hint)
