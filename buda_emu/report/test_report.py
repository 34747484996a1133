"""The report folder of a test: report.html with charts, report.md and report.json."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeVar

from markupsafe import Markup

from buda_emu.emulator.image.opened import check_file
from buda_emu.netlist.model import Netlist
from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.pages.engine import (
    Cell,
    Table,
    name_cell,
    pack_part,
    page_table,
    render,
    severity_rank,
    table,
)
from buda_emu.report.perf_against import describe_settings
from buda_emu.report.pictures.error_charts import ERROR_SCALE, heat_map, histogram, op_chart, op_heat
from buda_emu.report.pictures.grid_svg import grid_svg, html_legend
from buda_emu.report.terminal.case_columns import CASES, INPUTS, OPS, OUTPUTS, STATS
from buda_emu.report.terminal.text import correlation, number
from buda_emu.spec.test_config import Comparison
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column as ResultColumn
from buda_emu.support.columns import Columns
from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file
from buda_emu.support.options import as_list
from buda_emu.support.output_places import make_folder
from buda_emu.support.screen import lines_of, on_one_line, plain
from buda_emu.testing.verify.result import (
    STATUSES,
    CaseResult,
    OpResult,
    OutputResult,
    TestRun,
)

T = TypeVar("T")


def markdown(run: TestRun, detailed: Sequence[CaseResult]) -> str:
    """Return the content of report.md: the verdicts of all netlists, then sections on the `detailed` cases."""
    return plain("\n".join(_markdown_lines(run, detailed)) + "\n")


def _markdown_lines(run: TestRun, detailed: Sequence[CaseResult]) -> Iterator[str]:
    """Yield the lines of report.md: a summary, the table of verdicts, and a section for each of the `detailed`
    cases.
    """
    passed = sum(case.status == "passed" for case in run.cases)
    yield f"# buda-emu test: {passed} of {plural(len(run.cases), 'netlist')} passed"
    yield ""
    yield f"buda-emu {run.version}, {run.seconds:.1f} s, {describe_settings(run.settings)}"
    yield ""
    yield from _markdown_records(CASES, run.cases)
    for case in detailed:
        yield from _markdown_case(case)


def _markdown_case(case: CaseResult) -> Iterator[str]:
    """Yield the Markdown section on one netlist: command, warnings, message, outputs, and the first op past the
    threshold."""
    yield from (
        "",
        f"## {code(on_one_line(case.netlist))}: {case.status}",
        "",
        "```sh",
        on_one_line(case.command),
        "```",
    )
    remarks = (*case.warnings, *case.doubts)
    if remarks:
        yield from ("", *(f"* {_markdown_text(remark)}" for remark in remarks))
    if case.message:
        yield from ("", "```text", *lines_of(case.message.replace("```", "'''")), "```")
    if case.outputs:
        yield ""
        yield from _markdown_records(OUTPUTS, case.outputs)
    bad = case.first_bad
    if bad is not None:
        yield from (
            "",
            f"The first op past the threshold is {code(bad.op)}: {_markdown_text(bad.reason)}. Its inputs:",
            "",
        )
        yield from _markdown_records(STATS, bad.inputs)


def _markdown_records(columns: Columns[T], records: Iterable[T]) -> Iterator[str]:
    """Yield the lines of a Markdown table of records; names of things are in code type."""
    chosen = columns.seen_in("markdown")
    rows = ([_column_text(column, record) for column in chosen] for record in records)
    yield from _markdown_table([column.title for column in chosen], rows)


def _column_text(column: ResultColumn[T], record: T) -> str:
    """Return the text of a record in a column, escaped for Markdown."""
    if column.look == "verdict":
        return "passed" if column.get(record) else "failed"
    if column.look == "name":
        return code(column.cell(record))
    return _markdown_text(column.cell(record))


def _markdown_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield f"| {' | '.join(headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows:
        yield f"| {' | '.join(_markdown_cell(str(cell)) for cell in row)} |"


def code(text: str) -> str:
    """Return a name in code type for Markdown."""
    return f"`{text.replace('`', chr(39))}`"


def _markdown_cell(text: str) -> str:
    """Return text on one line, with `|` escaped, so that it stays in its cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _markdown_text(text: str) -> str:
    """Return text on one line in which Markdown finds no tags, links and pictures, whatever names it holds. Underscores
    stay: within words they mean nothing."""
    escaped = re.sub(r"[\\`*\[\]]", r"\\\g<0>", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


MOST_BYTES: Final = 3_500_000
"""Limit of the packed details in the page: a page about thousands of netlists must still open and be sent."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The grid picture of a netlist: SVG text, or "" and the reason why there is none in `note`."""

    svg: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Output:
    """An output of a netlist with its charts, as the template `case.html` reads it."""

    result: OutputResult
    judged: str
    cell: str
    heat: Markup
    histogram: Markup


def html_page(run: TestRun, pictures: Mapping[str, Picture | None]) -> str:
    """Return the content of report.html. Netlists have details as long as these stay below MOST_BYTES, those that did
    not pass first; `pictures` are by the path of the netlist."""
    counts = Counter(case.status for case in run.cases)
    threshold = float(run.settings.get("threshold", 0.0))
    cases = sorted(run.cases, key=lambda case: severity_rank(case.status))
    parts: list[tuple[str, str, Markup, bool]] = []
    places: dict[str, str] = {}
    size = 0
    for index, case in enumerate(cases):
        part = pack_part(_case_part(case, pictures.get(case.netlist), threshold))
        size += len(part)
        if size > MOST_BYTES:
            break
        places[case.netlist] = f"case-{index}"
        parts.append((f"case-{index}", f"{case.netlist}: {case.status}", part, index == 0))
    left_out = len(cases) - len(parts)
    prefix = common_prefix([case.netlist for case in cases])
    netlists = f"{plural(len(cases), 'netlist')} in {run.seconds:.1f} s"
    note = ""
    if left_out:
        note = f"{plural(left_out, 'netlist')} without details here: report.json has every figure."
    return render(
        "test.html",
        title=f"buda-emu test: {', '.join(f'{counts[word]} {word}' for word in STATUSES if counts[word])}",
        facts=f"buda-emu {run.version}, {netlists}, {describe_settings(run.settings)}",
        prefix=prefix,
        verdicts=_verdicts_table(cases, places, len(prefix)),
        cases=parts,
        note=note,
        settings=table(("setting", "value"), _settings_rows(run)),
    )


def common_prefix(paths: Sequence[str]) -> str:
    """Return the folder with which all paths begin, with its slash; "" for a single path."""
    if len(paths) < 2:
        return ""
    folders = [path.split("/")[:-1] for path in paths]
    same = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "".join(f"{names[0]}/" for names in same)


def _verdicts_table(cases: Sequence[CaseResult], places: Mapping[str, str], prefix: int) -> Table:
    """Return the table of verdicts, with links to the netlists that have details. `places` holds the anchors of these;
    the first `prefix` characters of each path, a folder that all share, are left out."""

    def name(case: CaseResult) -> Cell:
        """Return the cell with the name of a netlist."""
        place = places.get(case.netlist)
        return name_cell(case.netlist, f"#{place}" if place else "", text=case.netlist[prefix:])

    return page_table(CASES, cases, "find netlists", cells={"netlist": name}, tall=True)


def _case_part(case: CaseResult, picture: Picture | None, threshold: float) -> Markup:
    """Return the part of the page about one netlist; `threshold` is the PCC below which an op counts as bad."""
    bad = case.first_bad
    first_bad = None
    bad_op = None
    stats = None
    if bad is not None:
        first_bad = bad.index
        bad_op = case.ops[bad.index]
        stats = page_table(STATS, bad.inputs)
    not_compared = None
    if case.not_compared:
        not_compared = table(("queue", "why"), case.not_compared.items())
    return render(
        "case.html",
        case=case,
        meaning=STATUSES[case.status],
        outputs=_outputs_table(case) if case.outputs else None,
        charts=[_draw_output_errors(output) for output in case.outputs],
        picture=picture,
        svg=Markup(picture.svg) if picture is not None else "",
        legend=Markup(html_legend(ERROR_SCALE if op_heat(case.ops) else None)),
        not_compared=not_compared,
        bad=bad,
        bad_op=bad_op,
        stats=stats,
        chart=Markup(op_chart(case.ops, threshold, first_bad)),
        ops=_ops_table(case.ops),
        settings=table(("setting", "value"), _case_settings(case)),
        inputs=page_table(INPUTS, case.inputs) if case.inputs else None,
    )


def _outputs_table(case: CaseResult) -> Table:
    """Return the table of compared outputs, those that differ first."""
    return page_table(OUTPUTS, sorted(case.outputs, key=lambda output: output.passed), "find outputs")


def _draw_output_errors(output: OutputResult) -> _Output:
    """Return an output with the charts of its errors, which are empty if the run kept no errors of single elements."""
    judged = _comparison_text(output.comparison)
    detail = output.figures.detail
    if detail is None:
        return _Output(result=output, judged=judged, cell="", heat=Markup(), histogram=Markup())
    rows, cols = detail.cell
    cell = ""
    if (rows, cols) != (1, 1):
        cell = f"; a cell stands for {rows}x{cols} tiles"
    return _Output(
        result=output,
        judged=judged,
        cell=cell,
        heat=Markup(heat_map(detail, output.figures.first_bad_tile)),
        histogram=Markup(histogram(detail)),
    )


def _comparison_text(comparison: Comparison) -> str:
    """Return how an output was compared: type, tolerances and method."""
    text = f"{comparison.type}, atol {comparison.atol:g}, rtol {comparison.rtol:g}, check_pct {comparison.check_pct:g}"
    return f"{text}, check_pcc {comparison.check_pcc:g}, {comparison.method}"


def _ops_table(ops: Sequence[OpResult]) -> Table | None:
    """Return the table of every op, None without ops."""
    if not ops:
        return None
    return page_table(OPS, ops, "find ops", names=lambda op: op.name, tall=True)


def _case_settings(case: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield name and value of the settings of a case that are not empty."""
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


def _settings_rows(run: TestRun) -> Iterator[tuple[str, str]]:
    """Yield name and value of the settings of a run that are not empty."""
    for name, value in run.settings.items():
        if value not in (None, [], {}, ()):
            yield name, ", ".join(map(str, as_list(value)))


MOST_DETAILED: Final = 40
"""Netlists with a picture in the page and details in Markdown: to draw one its netlist is read again."""
MOST_PANELS: Final = 12
"""Chips and epochs in a picture of the page; one with more shows the epoch of the first bad op, else the first ones."""


def write_report(run: TestRun, directory: Path) -> None:
    """Write the three files into a folder, which is made if it is missing. Raises HostError if that fails."""
    detailed = _rank_cases(run.cases)
    pictures = {case.netlist: _draw_netlist(case, f"-{index}") for index, case in enumerate(detailed)}
    texts = {
        "report.html": html_page(run, pictures),
        "report.md": markdown(run, detailed),
        "report.json": json.dumps(as_json(run), indent=1, ensure_ascii=False) + "\n",
    }
    try:
        make_folder(directory)
        for name, text in texts.items():
            write_file(directory / name, lambda stream, text=text: stream.write(text.encode("utf-8", "replace")))
    except OSError as error:
        raise HostError(f"report: cannot write {error.filename}: {error.strerror}") from None


def _rank_cases(cases: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the cases that have details in the report, at most `MOST_DETAILED`: the worst first, else in the order
    of the run.
    """
    return sorted(cases, key=lambda case: severity_rank(case.status))[:MOST_DETAILED]


def _draw_netlist(case: CaseResult, mark: str) -> Picture | None:
    """Read a netlist again and draw it on its core grid, with ops reddened by their error. None for a netlist that was
    not run; a picture with only a note if it cannot be drawn. `mark` keeps its ids apart from those of other pictures
    on the page."""
    if not case.outputs and not case.ops:
        return None
    try:
        netlist = check_file(case.netlist, case.arch).netlist
    except HostError as error:
        return Picture("", f"no picture: {error}")
    if netlist is None:
        return Picture("", "no picture: the netlist has changed since it was tested and is no longer valid")
    notes = {
        op.name: f"PCC {correlation(op.pcc)}, max error {number(op.max_error)}, max ulp {number(op.max_ulp)}"
        for op in case.ops
    }
    epochs, note = _epochs_to_draw(netlist, case)
    return Picture(
        grid_svg(netlist, epochs=epochs, heat=op_heat(case.ops), notes=notes, mark=mark, scale=ERROR_SCALE), note
    )


def _epochs_to_draw(netlist: Netlist, case: CaseResult) -> tuple[list[int] | None, str]:
    """Return the numbers of the epochs to draw (None: all), and a note on what is left out, "" for nothing: of a
    netlist with many panels the epoch of the first bad op, else the first epochs."""
    temporal = netlist.temporal_graphs
    if len(netlist.graphs) <= MOST_PANELS:
        return None, ""
    note = f"this part of {plural(len(netlist.graphs), 'graph')}; the whole: buda-emu graph {case.netlist} -o FILE.svg"
    if case.first_bad is not None:
        graph = case.ops[case.first_bad.index].graph
        matching = [temporal_graph.id for temporal_graph in temporal if graph in temporal_graph.graphs]
        if matching:
            return matching, f"The epoch of op {case.first_bad.op}, {note}"
    shown: list[int] = []
    panels = 0
    for temporal_graph in temporal:
        panels += len(temporal_graph.graphs)
        if panels > MOST_PANELS and shown:
            break
        shown.append(temporal_graph.id)
    return shown, f"The first epochs, {note}"
