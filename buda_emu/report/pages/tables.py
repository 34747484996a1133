"""What a table of a page is: `macros.html` writes it, `page.js` sorts, filters and searches it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from buda_emu.report.terminal.fit import cut

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
        [Column(item) if isinstance(item, str) else item for item in columns],
        [Row([Cell(cell) if isinstance(cell, str) else cell for cell in row]) for row in rows],
        find,
    )


def named(name: str, href: str = "", *, text: str | None = None) -> Cell:
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


def severity(status: str) -> int:
    """Of a verdict, the worst first."""
    return _WORST_FIRST.index(status)


def status(word: str) -> Cell:
    """A verdict in its colour, sorted by `severity`."""
    css = word if word in ("passed", "failed", "skipped") else "other"
    return Cell(word, severity(word), css=css)
