"""Fills the templates of pages, and describes their tables."""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from buda_emu.report.terminal.plain_table import cut
from buda_emu.support.screen import UNPRINTED

_ROOM: Final = "buda_emu.report"
_SCRIPTS: Final = (
    "timeline_model.js", "timeline_drawing.js", "timeline_pointed.js", "timeline.js", "tables.js", "grid.js", "page.js",
)  # fmt: skip
_CONTROL: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{UNPRINTED}\ud800-\udfff\ufffe\uffff]")


def render(template: str, **context: Any) -> Markup:
    """A template of `templates/` with all that it names. Texts are escaped, control characters become question marks;
    what is `Markup` stands as it is."""
    parts = {"style": _part("style.css"), "scripts": Markup().join(map(_part, _SCRIPTS))}
    return Markup(_environment().get_template(template).render(context, **parts))


@cache
def _environment() -> Environment:
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
def _part(name: str) -> Markup:
    return Markup(files(_ROOM).joinpath("pages", name).read_text("utf-8"))


@cache
def chart_style(scope: str) -> str:
    """The CSS rules of charts and their colours, light and dark, limited to elements of a class, as in a notebook."""
    rules = [line for line in _part("style.css").splitlines() if line.startswith((":root", "--", "@media", "svg"))]
    text = "".join(rules).replace(":root", f".{scope}")
    return re.sub(r"(?<![-\w.])svg(?=[ .])", f".{scope} svg", text)


def _printable(value: object) -> object:
    return _CONTROL.sub("?", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def pack_part(part: Markup) -> Markup:
    """The part as text for a `<script class="packed">`: compressed, for `page.js` to unpack when it is to be seen."""
    return Markup(base64.b64encode(gzip.compress(part.encode("utf-8", "replace"), mtime=0)).decode())


def as_script(data: Mapping[str, Any] | Sequence[Any]) -> Markup:
    """Data as JSON that may stand in a script: nothing in a text ends it."""
    return Markup(json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


Kind = Literal["text", "number", "words", "name"]
_LONGEST: Final = 96  # characters of a name in a table; the page has the whole name as the row's tooltip


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` "number" stands to the right and sorts by value, "words" holds sentences that wrap, "name" names of any
    length, over two or three lines where they are long; `choose`: a menu shows
    the rows of one of its texts only."""

    title: str
    kind: Kind = "text"
    choose: bool = False
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and what it sorts by where that is another. `bar`: a share of 0 to 1 that is drawn behind it; `css`: how
    it looks; `href`: where it leads; `soft`: what stands before it in grey; `tip`: what a pointer over it shows."""

    text: str
    by: float | str | None = None
    bar: float | None = None
    css: str = ""
    href: str = ""
    soft: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """`name`: the op, queue or transfer it stands for, which a click chooses."""

    cells: Sequence[Cell]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """`find`: what its search box says; without one the table has none. `tall`: it scrolls by itself."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    find: str = ""
    tall: bool = False


def table(columns: Iterable[Column | str], rows: Iterable[Sequence[Cell | str]], find: str = "") -> Table:
    """A table of plain texts and cells."""
    return Table(
        [Column(column) if isinstance(column, str) else column for column in columns],
        [Row([Cell(cell) if isinstance(cell, str) else cell for cell in row]) for row in rows],
        find,
    )


def name_cell(name: str, href: str = "", *, text: str | None = None) -> Cell:
    """A name (or `text`, what is shown of it), sorted by all of it, and cut in the middle where it is very long."""
    shown = name if text is None else text
    short = cut(shown, _LONGEST)
    return Cell(short, name, href=href, tip=shown if short != shown else "")


def figure(value: float | None, digits: int = 0, bar: float | None = None) -> Cell:
    """A number with thousands separators; none sorts below all."""
    if value is None:
        return Cell("-", -1.0)
    return Cell(f"{value:,.{digits}f}", float(value), bar)


_WORST_FIRST = ("failed", "error", "crashed", "timeout", "stopped", "rejected", "unsupported", "skipped", "passed")


def severity_rank(status: str) -> int:
    """Of a verdict, the worst first."""
    return _WORST_FIRST.index(status)


def status(word: str) -> Cell:
    """A verdict in its colour, sorted by `severity`."""
    css = word if word in ("passed", "failed", "skipped") else "other"
    return Cell(word, severity_rank(word), css=css)
