"""The results of a test as one page: all verdicts, those that did not pass first, and details of each netlist."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, cast

from markupsafe import Markup

from buda_emu.checker.text import plural
from buda_emu.report.pages.engine import packed, render
from buda_emu.report.pages.tables import Cell, Column, Row, Table, figure, named, severity, status, table
from buda_emu.report.pictures.charts import heat_map, histogram, op_chart
from buda_emu.report.sides import sides
from buda_emu.report.terminal.reason import reason
from buda_emu.report.terminal.text import correlation, number, percent, shape
from buda_emu.spec.comparison import Comparison
from buda_emu.verify.result import STATUSES, CaseResult, OpResult, OutputResult, TestRun, ValueStats

MOST_BYTES: Final = 3_500_000
"""Of packed details in the page: one for a folder of thousands must still open and be sent."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The grid picture of a netlist: SVG text, or "" and the reason why there is none in `note`."""

    svg: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Output:
    """An output with its charts."""

    result: OutputResult
    judged: str
    cell: str
    heat: Markup
    histogram: Markup


def html_page(run: TestRun, pictures: Mapping[str, Picture | None]) -> str:
    """The page. Netlists have details as long as there is room, those that did not pass first."""
    counts = Counter(case.status for case in run.cases)
    threshold = float(run.settings.get("threshold", 0.0))
    cases = sorted(run.cases, key=lambda case: severity(case.status))
    parts: list[tuple[str, str, Markup, bool]] = []
    places: dict[str, str] = {}
    size = 0
    for index, case in enumerate(cases):
        part = packed(_case(case, pictures.get(case.netlist), threshold))
        size += len(part)
        if size > MOST_BYTES:
            break
        places[case.netlist] = f"case-{index}"
        parts.append((f"case-{index}", f"{case.netlist}: {case.status}", part, index == 0))
    left_out = len(cases) - len(parts)
    prefix = common_prefix([case.netlist for case in cases])
    return render(
        "test.html",
        title=f"buda-emu test: {', '.join(f'{counts[word]} {word}' for word in STATUSES if counts[word])}",
        facts=f"buda-emu {run.version}, {plural(len(cases), 'netlist')} in {run.seconds:.1f} s, {sides(run.settings)}",
        prefix=prefix,
        verdicts=_verdicts(cases, places, len(prefix)),
        cases=parts,
        note=f"{plural(left_out, 'netlist')} without details here: report.json has every figure." if left_out else "",
        settings=table(("setting", "value"), _plain(run)),
    )


def common_prefix(paths: Sequence[str]) -> str:
    """The folder that all paths begin with, with its slash; "" of a single one."""
    if len(paths) < 2:
        return ""
    folders = [path.split("/")[:-1] for path in paths]
    same = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "".join(f"{names[0]}/" for names in same)


def _verdicts(cases: Sequence[CaseResult], places: Mapping[str, str], prefix: int) -> Table:
    columns = [
        Column("verdict", choose=True),
        Column("netlist", "name"),
        Column("outputs", "number"),
        Column("worst PCC", "number"),
        Column("seconds", "number"),
        Column("why", "words"),
    ]
    rows: list[Row] = []
    for case in cases:
        pcc = min((output.pcc for output in case.outputs if output.pcc is not None), default=None)
        place = places.get(case.netlist)
        name = named(case.netlist, f"#{place}" if place else "", text=case.netlist[prefix:])
        rows.append(
            Row(
                [
                    status(case.status),
                    name,
                    figure(len(case.outputs)),
                    _pcc(pcc),
                    figure(case.seconds, 2),
                    Cell(reason(case)),
                ]
            )
        )
    return Table(columns, rows, "find netlists", tall=True)


def _pcc(value: float | None) -> Cell:
    return Cell(correlation(value), 2.0 if value is None else value)


def _value(value: float | None) -> Cell:
    return Cell(number(value), -1.0 if value is None else value)


def _numbers(*titles: str) -> list[Column]:
    return [Column(title, "number") for title in titles]


def _case(case: CaseResult, picture: Picture | None, threshold: float) -> Markup:
    bad = case.first_bad
    return render(
        "case.html",
        case=case,
        meaning=STATUSES[case.status],
        outputs=_outputs(case) if case.outputs else None,
        charts=[_output(output) for output in case.outputs],
        picture=picture,
        svg=Markup(picture.svg) if picture is not None else "",
        not_compared=table(("queue", "why"), case.not_compared.items()) if case.not_compared else None,
        bad=bad,
        bad_op=case.ops[bad.index] if bad is not None else None,
        stats=_stats(bad.inputs) if bad is not None else None,
        chart=Markup(op_chart(case.ops, threshold, bad.index if bad is not None else None)),
        ops=_ops(case.ops),
        settings=table(("setting", "value"), _facts(case)),
        inputs=table(
            ("input", "format", "shape", "source"),
            ((item.queue, item.format, shape(item.shape), item.source) for item in case.inputs),
        )
        if case.inputs
        else None,
    )


def _outputs(case: CaseResult) -> Table:
    rows = (
        (
            status("passed" if output.passed else "failed"),
            output.queue,
            output.format,
            shape(output.shape),
            _pcc(output.pcc),
            Cell(percent(output.match), output.match),
            _value(output.max_error),
            _value(output.mean_error),
            Cell(f"{output.bad_tiles}/{output.tiles}", float(output.bad_tiles)),
            str(output.first_bad_tile or "-"),
            f"{output.not_finite_observed} ({output.not_finite_expected} expected)",
            output.expected_from,
        )
        for output in sorted(case.outputs, key=lambda output: output.passed)
    )
    columns = (
        Column("verdict", choose=True),
        "output",
        "format",
        "shape",
        *_numbers("PCC", "match", "max error", "mean error", "bad tiles"),
        "first bad tile",
        "not finite",
        "expected from",
    )
    return table(columns, rows, "find outputs" if len(case.outputs) > 8 else "")


def _output(output: OutputResult) -> _Output:
    detail = output.detail
    rows, cols = detail.cell if detail is not None else (1, 1)
    cell = "" if (rows, cols) == (1, 1) else f"; a cell stands for {rows}x{cols} tiles"
    return _Output(
        output,
        _comparison(output.comparison),
        cell,
        Markup(heat_map(detail, output.first_bad_tile)) if detail is not None else Markup(),
        Markup(histogram(detail)) if detail is not None else Markup(),
    )


def _comparison(comparison: Comparison) -> str:
    text = f"{comparison.type}, atol {comparison.atol:g}, rtol {comparison.rtol:g}, check_pct {comparison.check_pct:g}"
    return f"{text}, check_pcc {comparison.check_pcc:g}, {comparison.method}"


def _ops(ops: Sequence[OpResult]) -> Table | None:
    columns = [
        Column("op"),
        Column("#", "number"),
        Column("type", choose=True),
        Column("format", choose=True),
        *_numbers("PCC", "max error", "mean error", "max ulp", "mean ulp", "not finite"),
    ]
    rows = [
        Row(
            [
                Cell(op.name),
                figure(op.index),
                Cell(op.type),
                Cell(op.format),
                _pcc(op.pcc),
                _value(op.max_error),
                _value(op.mean_error),
                _value(op.max_ulp),
                _value(op.mean_ulp),
                Cell(percent(op.not_finite_observed), op.not_finite_observed),
            ],
            op.name,
        )
        for op in ops
    ]
    return Table(columns, rows, "find ops" if len(rows) > 8 else "", tall=True) if rows else None


def _stats(inputs: Sequence[ValueStats]) -> Table:
    rows = (
        (
            stats.name,
            stats.kind,
            stats.format,
            shape(stats.shape),
            _value(stats.min),
            _value(stats.max),
            _value(stats.mean),
            _value(stats.std),
            percent(stats.zeros),
            percent(stats.not_finite),
            _pcc(stats.pcc),
        )
        for stats in inputs
    )
    titles = ("min", "max", "mean", "std", "zeros", "not finite", "PCC")
    return table(("input", "kind", "format", "shape", *_numbers(*titles)), rows)


def _facts(case: CaseResult) -> Iterator[tuple[str, str]]:
    facts = [
        ("architecture", case.arch),
        ("observed in precision", case.precision),
        ("expected", case.expected),
        ("compared as", case.compare),
        ("seed", str(case.seed)),
        ("programs", ", ".join(case.programs)),
        *case.parameters.items(),
    ]
    return ((name, value) for name, value in facts if value)


def _plain(run: TestRun) -> Iterator[tuple[str, str]]:
    for name, value in run.settings.items():
        if value not in (None, [], {}, ()):
            words = cast("list[object]", value) if isinstance(value, list) else [value]
            yield name, ", ".join(map(str, words))
