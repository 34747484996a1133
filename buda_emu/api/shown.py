"""How results show themselves in a notebook: a sentence and a table."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from buda_emu.report.terminal.text import number

MOST_ROWS = 60
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


def cell(value: object) -> str:
    """A value of a row as text."""
    return number(value) if isinstance(value, float) or value is None else str(value)
