"""A table as HTML for notebooks, which call `_repr_html_` of what a cell returns."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import html
else:
    html = lazy("html")

MOST_ROWS: Final = 60
"""The largest number of table rows that a notebook shows, as many as a table of pandas; the object has all rows."""
_FRAME: Final = '<div style="overflow-x:auto;max-width:100%">'
"""A table wider than the notebook scrolls inside this frame and does not run off the page."""

_FIGURE: Final = re.compile(r"[-+]?[\d,.]+(e[-+]\d+)?%?|-|")
"""Texts of cells that are figures, and those of missing ones."""
_LONG: Final = 24
"""Characters of a cell beyond which it is wrapped, at this width."""


def html_table(sentence: str, columns: Sequence[str], rows: Sequence[Iterable[str]]) -> str:
    """Return a sentence, and below it a table of texts as HTML; rows beyond MOST_ROWS are only counted."""
    text = f"<p>{html.escape(sentence)}</p>"
    if not rows:
        return text
    shown = [tuple(row) for row in rows[:MOST_ROWS]]
    words = [not all(map(_FIGURE.fullmatch, cells)) for cells in zip(*shown, strict=True)]
    head = _row("th", columns, words)
    body = "".join(_row("td", row, words) for row in shown)
    text += f"{_FRAME}<table><thead>{head}</thead><tbody>{body}</tbody></table></div>"
    if len(rows) > MOST_ROWS:
        text += f"<p>... and {len(rows) - MOST_ROWS:,} more rows</p>"
    return text


def _row(element: str, texts: Sequence[str], words: Sequence[bool]) -> str:
    """Return a row of cells as HTML; `words` says of each column whether it holds words, else figures."""
    return f"<tr>{''.join(_cell(element, *pair) for pair in zip(texts, words, strict=True))}</tr>"


def _cell(element: str, text: str, words: bool) -> str:
    """Return a cell as HTML. Notebooks align cells to the right, which suits figures: a cell in a column of `words` is
    aligned to the left, and a long text gets a minimum width, so that some words fit into a line."""
    styles: list[str] = []
    if words:
        styles.append("text-align:left")
    elif element == "td":
        styles.append("white-space:nowrap")
    if len(text) > _LONG:
        styles.append(f"min-width:{_LONG}em")
    style = f' style="{";".join(styles)}"' if styles else ""
    return f"<{element}{style}>{html.escape(text)}</{element}>"
