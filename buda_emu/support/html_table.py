"""A table as HTML for notebooks, which call `_repr_html_` of what a cell returns."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import html
else:
    html = lazy("html")

MOST_ROWS: Final = 60
"""The largest number of table rows that a notebook shows; the object has all rows."""
_FRAME: Final = '<div style="overflow-x:auto;max-width:100%">'
"""A table wider than the notebook scrolls inside this frame and does not run off the page."""


def html_table(sentence: str, columns: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    """Return a sentence, and below it a table of texts as HTML; rows beyond MOST_ROWS are only counted."""
    text = f"<p>{html.escape(sentence)}</p>"
    if not rows:
        return text
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows[:MOST_ROWS])
    text += f"{_FRAME}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    if len(rows) > MOST_ROWS:
        text += f"<p>... and {len(rows) - MOST_ROWS:,} more rows</p>"
    return text


def _cells(row: Iterable[str]) -> str:
    """Return the cells of a row as HTML."""
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
