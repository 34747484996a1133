"""How results are displayed in a notebook: a sentence and a table."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from buda_emu.report.terminal.text import number
from buda_emu.testing.verify.result import CaseResult

SCOPE: Final = "buda-emu"
"""Class of what has colours of its own in a notebook."""
MOST_MAPS: Final = 4
MOST_ROWS: Final = 60
"""Of a table in a notebook; the object has all."""


def html_table(sentence: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The sentence, and the rows under the names of their columns."""
    names = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(row[name]))}</td>" for name in names) + "</tr>" for row in rows[:MOST_ROWS]
    )
    rest = f"<p>... and {len(rows) - MOST_ROWS:,} more rows</p>" if len(rows) > MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<p>{escape(sentence)}</p>{table}{rest}"


def error_maps(cases: Iterable[CaseResult]) -> str:
    """Where the errors of outputs that failed are, for those whose run kept what a picture needs."""
    from buda_emu.report.pages.engine import chart_style  # what only a notebook shows
    from buda_emu.report.test_report import heat_map

    failed = [
        (case, output) for case in cases for output in case.outputs if not output.passed and output.figures.detail
    ]
    maps = [
        f"<p>{escape(case.netlist)}: {escape(output.queue)}: {escape(output.reason)}</p>"
        f"{heat_map(output.figures.detail, output.figures.first_bad_tile)}"
        for case, output in failed[:MOST_MAPS]
        if output.figures.detail is not None
    ]
    rest = f"<p>... and {len(failed) - MOST_MAPS:,} more outputs that failed</p>" if len(failed) > MOST_MAPS else ""
    style = f"<style>{chart_style(SCOPE)}</style>" if maps else ""
    return f'{style}<div class="{SCOPE}">{"".join(maps)}</div>{rest}' if maps else ""


def cell(value: object) -> str:
    """A value of a row as text."""
    return number(value) if isinstance(value, float) or value is None else str(value)
