"""HTML for results that a notebook displays: a sentence, a table, and maps of errors."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from buda_emu.report.terminal.text import number
from buda_emu.testing.verify.result import CaseResult, OutputResult

SCOPE: Final = "buda-emu"
"""The HTML class of elements that the style sheet of the charts applies to."""
MOST_MAPS: Final = 4
"""The largest number of error maps that a notebook shows."""
MOST_ROWS: Final = 60
"""The largest number of table rows that a notebook shows; the result object has all rows."""


def html_table(sentence: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence, and below it a table of rows under the names of their columns, as HTML. All rows have the
    columns of the first; rows beyond MOST_ROWS are only counted."""
    html = f"<p>{escape(sentence)}</p>"
    if not rows:
        return html
    columns = list(rows[0])
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in columns)
    body = "".join(f"<tr>{_html_cells(row, columns)}</tr>" for row in rows[:MOST_ROWS])
    html += f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if len(rows) > MOST_ROWS:
        html += f"<p>... and {len(rows) - MOST_ROWS:,} more rows</p>"
    return html


def _html_cells(row: Mapping[str, Any], columns: Iterable[str]) -> str:
    return "".join(f"<td>{escape(cell(row[column]))}</td>" for column in columns)


def error_maps(cases: Iterable[CaseResult]) -> str:
    """Return maps of the errors of failed outputs as HTML. Only outputs of runs with `detail` have the errors of each
    element; "" if there are none."""
    from buda_emu.report.pages.engine import chart_style  # only a notebook needs it
    from buda_emu.report.pictures.error_charts import heat_map

    failed: list[tuple[CaseResult, OutputResult]] = []
    for case in cases:
        failed += [(case, output) for output in case.outputs if not output.passed and output.figures.detail]
    maps: list[str] = []
    for case, output in failed[:MOST_MAPS]:
        if output.figures.detail is not None:
            maps.append(f"<p>{escape(case.netlist)}: {escape(output.queue)}: {escape(output.reason)}</p>")
            maps.append(heat_map(output.figures.detail, output.figures.first_bad_tile))
    if not maps:
        return ""
    html = f'<style>{chart_style(SCOPE)}</style><div class="{SCOPE}">{"".join(maps)}</div>'
    if len(failed) > MOST_MAPS:
        html += f"<p>... and {len(failed) - MOST_MAPS:,} more outputs that failed</p>"
    return html


def cell(value: object) -> str:
    """Return the text of a table cell; floats and None are written as in the tables of the command line."""
    if isinstance(value, float) or value is None:
        return number(value)
    return str(value)
