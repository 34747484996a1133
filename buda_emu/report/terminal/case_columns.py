"""The columns of the results of tests: one line for each column of each table (docs/contributing.md, "A column of a
result")."""

from collections.abc import Mapping
from typing import Any, Final

from buda_emu.emulator.inputs.input_used import InputUsed
from buda_emu.report.terminal.text import correlation, number, percent, shape, verdict
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import DATA, SHOWN, Column, Columns, View, figure
from buda_emu.support.screen import lines_of
from buda_emu.testing.verify.result import (
    CaseResult,
    OpResult,
    OutputResult,
    PerformanceResult,
    Status,
    ValueStats,
)

_ALL_FINITE: Final = "-"


def reason(case: CaseResult) -> str:
    """Return in one line why a netlist did not pass: the first output that differs and the number of others, else the
    first missed figure of performance-check, else the first line of the message; "" for one that passed."""
    if case.status == "passed":
        return ""
    failed = list(case.failed_outputs)
    if failed:
        text = f"{failed[0].queue}: {failed[0].reason}"
        if len(failed) > 1:
            text += f" (and {plural(len(failed) - 1, 'more output')})"
        return text
    missed = next((check for check in case.performance if not check.passed), None)
    if missed is not None:
        return f"performance-check {missed.config}: {missed.metric} is modelled as {number(missed.modelled, 6)}"
    return next(iter(lines_of(case.message)), "")


def worst_pcc(case: CaseResult) -> float | None:
    """Return the least PCC of a netlist's outputs, None where none has one."""
    return min((output.figures.pcc for output in case.outputs if output.figures.pcc is not None), default=None)


def worst_error(case: CaseResult) -> float | None:
    """Return the largest error of a netlist's outputs, None where none has one."""
    errors = (output.figures.max_error for output in case.outputs if output.figures.max_error is not None)
    return max(errors, default=None)


def _or_dash(name: str) -> str:
    """Return a name, "-" for an empty one."""
    return name or "-"


def _bad_tiles_text(output: OutputResult) -> str:
    """Return how many of the tiles of an output are bad."""
    return f"{output.figures.bad_tiles}/{output.figures.tiles}"


def _comparison_type(output: OutputResult) -> str:
    """Return the type of the comparison by which an output was judged."""
    return output.comparison.type


def _not_finite_values(output: OutputResult) -> str:
    """Return how many values of an output are infinite or NaN in the observed and in the expected run."""
    return f"{output.figures.not_finite_observed} ({output.figures.not_finite_expected} expected)"


def _not_finite_shares(op: OpResult) -> str:
    """Return the shares of an op's values that are infinite or NaN in the observed and in the expected run, as text;
    "-" if all are finite."""
    if all_finite(op):
        return _ALL_FINITE
    return f"{percent(op.not_finite_observed)} ({percent(op.not_finite_expected)} expected)"


def all_finite(op: OpResult) -> bool:
    """Return whether all values of an op are finite in both runs."""
    return not op.not_finite_expected and not op.not_finite_observed


_TABLES: Final[tuple[View, ...]] = ("rows", *SHOWN)
_PAGE: Final[tuple[View, ...]] = ("page", "json")

CASES: Final = Columns[CaseResult](
    Column("netlist", str, lambda case: case.netlist, title="netlist"),
    Column("status", Status, lambda case: case.status, title="verdict", look="status", choose=True),
    Column("arch", str, lambda case: case.arch, views=DATA),
    Column("precision", str, lambda case: case.precision, views=DATA),
    Column("expected", str, lambda case: case.expected, views=DATA),
    figure("outputs", "outputs", lambda case: len(case.outputs), kind=int),
    Column("failed_outputs", int, lambda case: len(case.failed_outputs), views=("rows",)),
    figure("pcc", "worst PCC", worst_pcc, correlation, missing=2.0, views=("rows", "page")),
    Column("max_error", float | None, worst_error, views=("rows",)),
    figure("seconds", "seconds", lambda case: case.seconds, "{:,.2f}".format, kind=float, views=("rows", *_PAGE)),
    Column("reason", str, reason, title="why", look="words", views=_TABLES),
)
"""A tested netlist. PCC and error are those of its worst output."""

OUTPUTS: Final = Columns[OutputResult](
    Column("output", str, lambda output: output.queue, title="output", views=_TABLES),
    Column("passed", bool, lambda output: output.passed, title="verdict", text=verdict, look="verdict", choose=True),
    figure("pcc", "PCC", lambda output: output.figures.pcc, correlation, missing=2.0),
    figure("match", "match", lambda output: output.figures.match, percent, kind=float),
    figure("max_error", "max error", lambda output: output.figures.max_error, number),
    figure("mean_error", "mean error", lambda output: output.figures.mean_error, number, views=("rows", *_PAGE)),
    figure("bad_tiles", "bad tiles", lambda output: output.figures.bad_tiles, shown=_bad_tiles_text, kind=int),
    Column("tiles", int, lambda output: output.figures.tiles, views=DATA),
    Column("", str, lambda output: str(output.figures.first_bad_tile or "-"), title="first bad tile", views=("page",)),
    Column("", str, _not_finite_values, title="not finite", views=("page",)),
    Column("format", str, lambda output: output.format, title="format", look="word"),
    Column("shape", tuple[int, ...], lambda output: output.shown_shape, title="shape", text=shape, look="word"),
    Column("comparison", str, _comparison_type, title="compared by", look="word", views=("rows", "terminal")),
    Column("expected_from", str, lambda output: output.expected_from, title="expected from", views=_PAGE),
    Column("reason", str, lambda output: output.reason, title="why", look="words", views=(*DATA, "markdown")),
)
"""A compared output."""

OPS: Final = Columns[OpResult](
    figure("index", "#", lambda op: op.index, kind=int, views=(*SHOWN, "json")),
    Column("op", str, lambda op: op.name, title="op", views=_TABLES),
    Column("type", str, lambda op: op.type, title="type", choose=True),
    Column("graph", str, lambda op: op.graph, views=DATA),
    Column("format", str, lambda op: op.format, title="format", look="word", choose=True),
    Column("shape", tuple[int, ...], lambda op: op.shape, views=DATA),
    figure("pcc", "PCC", lambda op: op.pcc, correlation, missing=2.0),
    figure("max_error", "max error", lambda op: op.max_error, number),
    figure("mean_error", "mean error", lambda op: op.mean_error, number),
    figure("max_ulp", "max ulp", lambda op: op.max_ulp, number),
    figure("mean_ulp", "mean ulp", lambda op: op.mean_ulp, number),
    figure("", "not finite", lambda op: op.not_finite_observed, shown=_not_finite_shares),
)
"""An op of a run that was compared op by op."""

STATS: Final = Columns[ValueStats](
    Column("name", str, lambda stats: stats.name, title="input"),
    Column("kind", str, lambda stats: stats.kind, title="kind", look="word"),
    Column("format", str, lambda stats: stats.format, title="format", look="word"),
    Column("shape", tuple[int, ...], lambda stats: stats.shape, title="shape", text=shape, look="word"),
    figure("min", "min", lambda stats: stats.min, number),
    figure("max", "max", lambda stats: stats.max, number),
    figure("mean", "mean", lambda stats: stats.mean, number),
    figure("std", "std", lambda stats: stats.std, number),
    figure("zeros", "zeros", lambda stats: stats.zeros, percent, kind=float),
    figure("not_finite", "not finite", lambda stats: stats.not_finite, percent, kind=float),
    figure("pcc", "PCC", lambda stats: stats.pcc, correlation, missing=2.0),
)
"""An input of the first op that goes wrong."""

CHECKS: Final = Columns[PerformanceResult](
    Column("config", str, lambda check: check.config, title="performance-check"),
    Column("passed", bool, lambda check: check.passed, title="verdict", text=verdict, look="verdict"),
    Column("expected", str, lambda check: check.expected, title="expected", look="word"),
    figure("modelled", "modelled", lambda check: check.modelled, lambda value: number(value, 6)),
    Column("metric", str, lambda check: check.metric, title="metric"),
    Column("graph", str, lambda check: check.graph, title="graph", text=_or_dash),
    Column("target", str, lambda check: check.target, title="target", text=_or_dash),
)
"""A figure of performance-check."""

INPUTS: Final = Columns[InputUsed](
    Column("queue", str, lambda given: given.queue, title="input"),
    Column("format", str, lambda given: given.format, title="format", look="word"),
    Column("shape", tuple[int, ...], lambda given: given.shape, title="shape", text=shape, look="word"),
    Column("source", str, lambda given: given.source, title="source"),
)
"""An input of a netlist."""

TABLES: Final[Mapping[type, Columns[Any]]] = {
    CaseResult: CASES,
    OutputResult: OUTPUTS,
    OpResult: OPS,
    ValueStats: STATS,
    PerformanceResult: CHECKS,
    InputUsed: INPUTS,
}
"""The columns of the records in the JSON of a test, which holds all fields of the records, too."""
