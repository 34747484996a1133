"""Templates of pages, and the tables in them."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from buda_emu.report.terminal.plain_table import cut
from buda_emu.support.columns import Column as ResultColumn
from buda_emu.support.columns import Columns
from buda_emu.support.screen import UNPRINTED

T = TypeVar("T")
_ROOM: Final = "buda_emu.report"
_SCRIPTS: Final = (
    "names.js", "timeline_model.js", "timeline_rows.js", "timeline_arrows.js", "timeline_drawing.js",
    "timeline_pointed.js", "timeline_overview.js", "timeline_search.js", "timeline.js", "tables.js", "grid.js",
    "error_map.js", "page.js",
)  # fmt: skip
_CONTROL: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{UNPRINTED}\ud800-\udfff\ufffe\uffff]")


def render(template: str, **context: Any) -> Markup:
    """Fill a template of `templates/` with values, and return the page or part. Text is escaped, and its control
    characters become question marks; `Markup` is inserted unchanged. Raises jinja2's UndefinedError for a value that is
    missing."""
    parts = {"style": _read_part("style.css"), "scripts": Markup().join(map(_read_part, _SCRIPTS))}
    return Markup(_environment().get_template(template).render(context, **parts))


@cache
def _environment() -> Environment:
    """Return the environment of jinja2 that fills the templates."""
    return Environment(
        loader=PackageLoader(_ROOM, "pages/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


@cache
def _read_part(name: str) -> Markup:
    """Return the text of a style sheet or script of the package, to be inserted into pages unchanged."""
    return Markup(files(_ROOM).joinpath("pages", name).read_text("utf-8"))


@cache
def chart_style(scope: str) -> str:
    """Return the CSS rules of charts, light and dark, limited to elements of the class `scope`, for use in a
    notebook."""
    rules = [
        line
        for line in _read_part("style.css").splitlines()
        if line.startswith((":root", "--", "@media (prefers", "svg"))
    ]
    text = "".join(rules).replace(":root", f".{scope}")
    return re.sub(r"(?<![-\w.])svg(?=[ .])", f".{scope} svg", text)


def _printable(value: object) -> object:
    """Return text without control characters; any other value as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _CONTROL.sub("?", value)
    return value


def pack_part(part: Markup) -> Markup:
    """Return a part of a page as text for a `<script class="packed">`: compressed, for `page.js` to unpack when it is
    shown."""
    return Markup(base64.b64encode(gzip.compress(part.encode("utf-8", "replace"), mtime=0)).decode())


def as_script(data: Mapping[str, Any] | Sequence[Any]) -> Markup:
    """Return data as JSON that may stand in a script: no text in it can end the script."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


Kind = Literal["text", "number", "words", "name"]
_SHORT_TABLE: Final = 8  # rows of a table without a search box, at most
_LONGEST: Final = 96  # characters of a name in a table; the page has the whole name as the row's tooltip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Cells of kind "number" stand to the right and are sorted by value, "words" are sentences that wrap, and "name" is a
    name of any length, over two or three lines if it is long. With `choose` a menu restricts the table to the rows with
    one of the column's texts. `tip` is the tooltip of the heading.
    """

    title: str
    kind: Kind = "text"
    choose: bool = False
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text in a table, sorted by `by` or else by itself.

    `bar` is a share of 0 to 1 drawn behind it, `css` a class, `href` a link, `soft` grey text in front of it, and `tip`
    a tooltip.
    """

    text: str
    by: float | str | None = None
    bar: float | None = None
    css: str = ""
    href: str = ""
    soft: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row. `name` is the op, queue or transfer that a click on the row selects, `css` a class."""

    cells: Sequence[Cell]
    name: str = ""
    css: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `find` is the text in its search box; "" leaves the box out. A `tall` table scrolls on its own."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    find: str = ""
    tall: bool = False


_NO_CELLS: Final[Mapping[str, Callable[[Any], Cell]]] = MappingProxyType({})


def table(columns: Iterable[Column | str], rows: Iterable[Sequence[Cell | str]], find: str = "") -> Table:
    """Return a table from texts and cells, row by row. `find` is the text in its search box, "" for none."""
    return Table(
        [Column(column) if isinstance(column, str) else column for column in columns],
        [Row([Cell(cell) if isinstance(cell, str) else cell for cell in row]) for row in rows],
        find,
    )


def page_table(
    columns: Columns[T],
    records: Sequence[T],
    find: str = "",
    *,
    cells: Mapping[str, Callable[[T], Cell]] = _NO_CELLS,
    names: Callable[[T], str] | None = None,
    tall: bool = False,
) -> Table:
    """Return the table of records under their columns. `find` is the text in its search box, which a table has if it is
    long, or `tall` and so scrolls on its own; `cells` makes the cells of some columns by the name of the column, and
    `names` gives the op, queue or transfer that a click on a row selects."""
    chosen = columns.seen_in("page")
    headings = [
        Column(column.title, _KINDS.get(column.look, "text"), choose=column.choose, tip=column.tip) for column in chosen
    ]
    rows: list[Row] = []
    for record in records:
        row = [
            cells[column.name](record) if column.name in cells else _record_cell(column, record) for column in chosen
        ]
        rows.append(Row(row, names(record) if names is not None else ""))
    if not tall:
        find = search_box(rows, find)
    return Table(headings, rows, find, tall)


_KINDS: Final[Mapping[str, Kind]] = {"figure": "number", "words": "words"}


def _record_cell(column: ResultColumn[T], record: T) -> Cell:
    """Return the cell of a record in a column, sorted by its value where that is a number."""
    value = column.get(record)
    if column.look == "verdict":
        return verdict_cell(value)
    if column.look == "status":
        return status(value)
    text = column.cell(record)
    if column.look == "figure":
        return number_cell(text, value, column.missing)
    return Cell(text)


def name_cell(name: str, href: str = "", *, text: str | None = None) -> Cell:
    """Return a cell with a name (or with `text` in its place), sorted by the whole name, and cut in the middle if it is
    very long."""
    shown = name if text is None else text
    short = cut(shown, _LONGEST)
    if short == shown:
        return Cell(short, name, href=href)
    return Cell(short, name, href=href, tip=shown)


def figure(value: float | None, digits: int = 0, bar: float | None = None) -> Cell:
    """Return a cell with a number and thousands separators, with `bar` (0 to 1) drawn behind it; None is shown as
    "-" and sorted below all numbers.
    """
    if value is None:
        return Cell("-", -1.0)
    return Cell(f"{value:,.{digits}f}", float(value), bar)


def number_cell(text: str, value: float | None, missing: float = -1.0) -> Cell:
    """Return a cell with the text of a number, sorted by its value; None is sorted as `missing`."""
    return Cell(text, missing if value is None else value)


def search_box(rows: Sequence[object], text: str) -> str:
    """Return the text of the search box of a table with these rows; "" for a table so short that it needs none."""
    return text if len(rows) > _SHORT_TABLE else ""


_WORST_FIRST = ("failed", "error", "crashed", "timeout", "stopped", "rejected", "unsupported", "skipped", "passed")


def severity_rank(status: str) -> int:
    """Return the rank of a verdict on a netlist, 0 for the worst ("failed"); tables are sorted by it."""
    return _WORST_FIRST.index(status)


def verdict_cell(passed: bool) -> Cell:
    """Return a cell with the verdict "passed" or "failed" on an output or a figure."""
    return status("passed" if passed else "failed")


def status(word: str) -> Cell:
    """Return a cell with the verdict `word` in its colour, sorted by `severity_rank`."""
    css = word if word in ("passed", "failed", "skipped") else "other"
    return Cell(word, severity_rank(word), css=css)
