"""HTML for results that a notebook displays: a sentence, a table, and maps of errors."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from buda_emu.report.terminal.text import correlation, number
from buda_emu.support.html_table import html_table as text_table
from buda_emu.testing.verify.result import CaseResult, OutputResult

SCOPE: Final = "buda-emu"
"""The HTML class of elements that the style sheet of the charts applies to."""
MOST_MAPS: Final = 4
"""The largest number of error maps that a notebook shows; with more, its file would grow by a picture for each."""


def html_table(sentence: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence, and below it a table of rows under the names of their columns, as HTML. All rows have the
    columns of the first."""
    columns = list(rows[0]) if rows else []
    titles = [column.replace("_", " ") for column in columns]
    return text_table(sentence, titles, [[cell(column, row[column]) for column in columns] for row in rows])


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


def cell(column: str, value: object) -> str:
    """Return the text of a table cell; floats and None are written as in the tables of the command line, correlations
    with all their digits: 0.99996 is not 1."""
    if column.endswith("pcc") and (value is None or isinstance(value, float)):
        return correlation(value)
    if isinstance(value, float) or value is None:
        return number(value)
    return str(value)
