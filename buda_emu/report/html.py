"""The results of a test as one HTML file that needs nothing else: no script, no font, no network."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import cast

from buda_emu.report.charts import heat_map, histogram, op_chart
from buda_emu.report.reason import reason
from buda_emu.report.sides import sides
from buda_emu.report.svg import clean
from buda_emu.report.text import correlation, number, percent, plural, shape
from buda_emu.spec.comparison import Comparison
from buda_emu.verify.result import STATUSES, CaseResult, OutputResult, TestRun, ValueStats


@dataclass(frozen=True, slots=True)
class Picture:
    """The grid picture of a netlist: SVG text, or "" and the reason why there is none in `note`."""

    svg: str
    note: str = ""


def html_page(run: TestRun, pictures: Mapping[str, Picture | None], detailed: Sequence[CaseResult]) -> str:
    """The page: all verdicts, then the `detailed` cases, those that did not pass open."""
    counts = Counter(case.status for case in run.cases)
    title = f"buda-emu test: {', '.join(f'{counts[status]} {status}' for status in STATUSES if counts[status])}"
    threshold = float(run.settings.get("threshold", 0.0))
    body = "\n".join(
        [
            f"<h1>{clean(title)}</h1>",
            f'<p class="soft">{_made_by(run)}</p>',
            _verdicts(run, {case.netlist for case in detailed}),
            _left_out(run, detailed),
            *(_case(case, index, pictures.get(case.netlist), threshold) for index, case in enumerate(detailed)),
            _settings(run),
        ]
    )
    return page(title, body)


def page(title: str, body: str) -> str:
    """A whole document around a body, with the style sheet inside."""
    style = files("buda_emu.report").joinpath("style.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{clean(title)}</title>\n<style>{style}</style></head>\n'
        f"<body><main>{body}</main></body></html>\n"
    )


def _made_by(run: TestRun) -> str:
    netlists = plural(len(run.cases), "netlist")
    return clean(f"buda-emu {run.version}, {netlists} in {run.seconds:.1f} s, {sides(run.settings)}")


def _status(status: str) -> str:
    css = status if status in ("passed", "failed", "skipped") else "other"
    return f'<span class="{css}">{status}</span>'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = (), words: int = -1) -> str:
    """A table that scrolls by itself where it is too wide. Cells are HTML; column `words` holds sentences."""
    numeric = frozenset(right)

    def css(column: int) -> str:
        return ' class="right"' if column in numeric else ' class="words"' if column == words else ""

    head = "".join(f"<th{css(i) if i in numeric else ''}>{clean(text)}</th>" for i, text in enumerate(headers))
    lines = ("".join(f"<td{css(i)}>{cell}</td>" for i, cell in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _anchor(case: CaseResult) -> str:
    return "case-" + "".join(f"{byte:02x}" for byte in case.netlist.encode("utf-8", "replace")[-40:])


def _verdicts(run: TestRun, linked: set[str]) -> str:
    def name(case: CaseResult) -> str:
        text = clean(case.netlist)
        return f'<a href="#{_anchor(case)}">{text}</a>' if case.netlist in linked else text

    rows = (
        (
            name(case), _status(case.status), str(len(case.outputs)), _worst_pcc(case), f"{case.seconds:.2f}",
            clean(reason(case)),
        )
        for case in run.cases
    )  # fmt: skip
    headers = ("netlist", "verdict", "outputs", "worst PCC", "seconds", "why")
    return f"<section><h2>Verdicts</h2>{table(headers, rows, right=(2, 3, 4), words=5)}</section>"


def _worst_pcc(case: CaseResult) -> str:
    return correlation(min((output.pcc for output in case.outputs if output.pcc is not None), default=None))


def _left_out(run: TestRun, detailed: Sequence[CaseResult]) -> str:
    count = len(run.cases) - len(detailed)
    if not count:
        return ""
    return f'<p class="soft">{plural(count, "netlist")} without details here: report.json has every figure.</p>'


def _case(case: CaseResult, index: int, picture: Picture | None, threshold: float) -> str:
    parts = [f"<p>How to run it again:</p><pre>{clean(case.command)}</pre>"]
    if case.message:
        parts.append(f"<p>{clean(STATUSES[case.status])}:</p><pre>{clean(case.message)}</pre>")
    if case.warnings:
        parts.append(f"<ul>{''.join(f'<li>{clean(text)}</li>' for text in case.warnings)}</ul>")
    if case.outputs:
        parts.append(f"<h2>Outputs</h2>{_outputs(case)}")
    parts += [_output(output) for output in case.outputs]
    if case.not_compared:
        rows = ((clean(name), clean(why)) for name, why in case.not_compared.items())
        parts.append(f"<h2>Not compared</h2>{table(('queue', 'why'), rows)}")
    if case.ops:
        parts.append(_ops(case, threshold))
    if picture is not None:
        note = f'<p class="soft">{clean(picture.note)}</p>' if picture.note else ""
        parts.append(f'<h2>Ops on the core grid</h2>{note}<div class="wide tall">{picture.svg}</div>')
    parts.append(_inputs(case))
    is_open = " open" if case.status != "passed" or index == 0 else ""
    return (
        f'<details class="case" id="{_anchor(case)}"{is_open}><summary>{clean(case.netlist)} '
        f"{_status(case.status)}</summary>{''.join(parts)}</details>"
    )


def _outputs(case: CaseResult) -> str:
    rows = (
        (
            clean(output.queue), _status("passed" if output.passed else "failed"), output.format, shape(output.shape),
            correlation(output.pcc), percent(output.match), number(output.max_error), number(output.mean_error),
            f"{output.bad_tiles}/{output.tiles}", str(output.first_bad_tile or "-"),
            f"{output.not_finite_observed} ({output.not_finite_expected} expected)", clean(output.expected_from),
        )
        for output in case.outputs
    )  # fmt: skip
    headers = (
        "output", "verdict", "format", "shape", "PCC", "match", "max error", "mean error", "bad tiles",
        "first bad tile", "not finite", "expected from",
    )  # fmt: skip
    return table(headers, rows, right=(4, 5, 6, 7, 8))


def _output(output: OutputResult) -> str:
    reason = f'<p class="failed">{clean(output.reason)}</p>' if output.reason else ""
    charts = ""
    if output.detail is not None:
        rows, cols = output.detail.cell
        cell = "" if (rows, cols) == (1, 1) else f"; a cell stands for {rows}x{cols} tiles"
        charts = (
            '<div class="charts">'
            f"<figure><figcaption>Largest error of each tile, each shade a tenth of the next{cell}</figcaption>"
            f"{heat_map(output.detail, output.first_bad_tile)}</figure>"
            f"<figure><figcaption>How many elements have which error</figcaption>{histogram(output.detail)}</figure>"
            "</div>"
        )
    judged = clean(_comparison(output.comparison))
    return f'<h3>{clean(output.queue)}</h3>{reason}<p class="soft">compared by {judged}</p>{charts}'


def _comparison(comparison: Comparison) -> str:
    text = f"{comparison.type}, atol {comparison.atol:g}, rtol {comparison.rtol:g}, check_pct {comparison.check_pct:g}"
    return f"{text}, check_pcc {comparison.check_pcc:g}, {comparison.method}"


def _ops(case: CaseResult, threshold: float) -> str:
    bad = case.first_bad
    parts = ["<h2>Error of every op, in execution order</h2>"]
    if bad is None:
        parts.append("<p>No op is past the threshold.</p>")
    else:
        op = case.ops[bad.index]
        parts.append(
            f"<p>The first op past the threshold is <b>{clean(bad.op)}</b> ({clean(op.type)}, "
            f"graph {clean(op.graph)}): {clean(bad.reason)}. Its inputs in the observed run:</p>{_stats(bad.inputs)}"
        )
    chart = op_chart(case.ops, threshold, bad.index if bad is not None else None)
    rows = (
        (
            str(op.index), clean(op.name), clean(op.type), op.format, correlation(op.pcc), number(op.max_error),
            number(op.mean_error), number(op.max_ulp), number(op.mean_ulp), percent(op.not_finite_observed),
        )
        for op in case.ops
    )  # fmt: skip
    headers = ("#", "op", "type", "format", "PCC", "max error", "mean error", "max ulp", "mean ulp", "not finite")
    figures = table(headers, rows, right=(0, 4, 5, 6, 7, 8, 9))
    parts.append(f'<div class="tall">{chart}</div><details><summary>Figures</summary>{figures}</details>')
    return "".join(parts)


def _stats(inputs: Sequence[ValueStats]) -> str:
    rows = (
        (
            clean(stats.name), stats.kind, stats.format, shape(stats.shape), number(stats.min), number(stats.max),
            number(stats.mean), number(stats.std), percent(stats.zeros), percent(stats.not_finite),
            correlation(stats.pcc),
        )
        for stats in inputs
    )  # fmt: skip
    headers = ("input", "kind", "format", "shape", "min", "max", "mean", "std", "zeros", "not finite", "PCC")
    return table(headers, rows, right=range(4, 11))


def _inputs(case: CaseResult) -> str:
    facts = [
        ("architecture", case.arch), ("observed in precision", case.precision), ("expected", case.expected),
        ("compared as", case.compare), ("seed", str(case.seed)), ("programs", ", ".join(case.programs)),
        *case.parameters.items(),
    ]  # fmt: skip
    rows = ((clean(name), clean(value)) for name, value in facts if value)
    found = f"<h2>Inputs and settings</h2>{table(('setting', 'value'), rows)}"
    if not case.inputs:
        return found
    used = ((clean(item.queue), item.format, shape(item.shape), clean(item.source)) for item in case.inputs)
    return found + table(("input", "format", "shape", "source"), used)


def _settings(run: TestRun) -> str:
    return f"<section><h2>Settings of the run</h2>{table(('setting', 'value'), _plain(run))}</section>"


def _plain(run: TestRun) -> Iterator[tuple[str, str]]:
    for name, value in run.settings.items():
        if value not in (None, [], {}, ()):
            words = cast("list[object]", value) if isinstance(value, list) else [value]
            yield clean(name), clean(", ".join(map(str, words)))
