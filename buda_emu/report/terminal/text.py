"""Plain text for terminals: tables and figures."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from buda_emu.support.columns import Columns
from buda_emu.support.screen import current

T = TypeVar("T")
_NO_NOTES: Final[Mapping[int, str]] = MappingProxyType({})
MOST_LINES: Final = 20
"""Lines of a list that are printed where all of them would hide what stands around them."""
_ENORMOUS = 1e12  # from here on a number is written with an exponent
_LITTLE = 0.05  # per cent: with one digit it would be 0.0


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Iterable[int] = (),
    *,
    prose: Iterable[int] = (),
    whole: Iterable[int] = (),
    marked: Iterable[int] = (),
) -> str:
    """Return a table for a terminal with two blanks between columns, as wide as the terminal at most. `right`, `prose`
    and `whole` hold numbers of columns, from 0: `right` are aligned to the right, `prose` wrapped, `whole` never cut;
    cells of other columns are cut in the middle. `marked` holds numbers of rows that are coloured. Raises ValueError
    for a row of another length than the headings."""
    from buda_emu.report.terminal.plain_table import plain

    cells = [tuple(row) for row in rows]
    if any(len(row) != len(headers) for row in cells):
        raise ValueError(f"a row has not the {len(headers)} cells of the table's headings")
    sets = [frozenset(numbers) for numbers in (right, prose, whole, marked)]
    lines = plain(headers, cells, sets[0], sets[3], current())
    if lines is not None:
        return lines
    from buda_emu.report.terminal.drawn_table import draw_table  # rich is imported with the first table that needs it

    return draw_table(headers, cells, *sets, screen=current())


def column_table(
    columns: Columns[T],
    records: Iterable[T],
    *,
    without: Collection[str] = (),
    marked: Iterable[int] = (),
    notes: Mapping[int, str] = _NO_NOTES,
) -> str:
    """Return the table of records for a terminal, without the columns named in `without`. `marked` holds numbers of
    rows that are coloured, `notes` texts that are added to the words of a row, by its number."""
    chosen = columns.seen_in("terminal", without)
    looks = [column.look for column in chosen]
    rows: list[list[str]] = []
    for number, record in enumerate(records):
        note = notes.get(number, "")
        rows.append([column.cell(record) + (note if column.look == "words" else "") for column in chosen])
    return table(
        [column.title for column in chosen],
        rows,
        right=(place for place, look in enumerate(looks) if look == "figure"),
        prose=(place for place, look in enumerate(looks) if look == "words"),
        whole=(place for place, look in enumerate(looks) if look in ("word", "verdict", "status")),
        marked=marked,
    )


def wrap(text: str, indent: str = "  ") -> str:
    """Return a sentence over as many lines as it takes on a terminal, further ones beginning with `indent`; one
    line where there is no terminal.
    """
    columns = current().columns
    if columns is None or len(text) <= columns:
        return text
    import textwrap

    return textwrap.fill(text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


_UNBROKEN_PERCENT: Final = "\xa0%"
_PROSE: Final = 100
"""Columns of prose where lines may have any length."""


def prose(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence, which semicolons separate, each wrapped to the terminal's width (100 columns
    elsewhere); all but the first are indented."""
    import textwrap

    columns = current().columns or _PROSE
    indent = ""
    for clause in sentence.split("; "):
        lines = textwrap.fill(
            clause.replace(" %", _UNBROKEN_PERCENT),
            columns,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield lines.replace(_UNBROKEN_PERCENT, " %")
        indent = "  "


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure as text, "-" for None: `digits` significant ones, commas between thousands, and a power of
    ten if it is tiny or enormous.
    """
    if value is None:
        return "-"
    if 10**digits <= abs(value) < _ENORMOUS:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def whole(value: float | None) -> str:
    """Return a count or cycles, rounded, such as 12,345; "-" for None."""
    return "-" if value is None else f"{value:,.0f}"


def correlation(value: float | None) -> str:
    """Return a PCC with six digits as text, "1" for 1 and "-" for None."""
    if value is None:
        return "-"
    return f"{value:.6f}" if value < 1 else "1"


def percent(share: float) -> str:
    """Return a share (0 to 1) in per cent as text; only 1 is written as 100 %, and only 0 as 0 %."""
    text = f"{100 * share:.2f}"
    if (text == "100.00") != (share == 1):
        text = "99.99"
    if (text == "0.00") != (share == 0):
        text = "0.01"
    if share in (0, 1):
        return f"{float(text):g} %"
    return f"{text} %"


def relative(before: float, after: float) -> str:
    """Return a change in per cent with its sign, such as +12.3, -0.04 for a small one, or 0; "-" if `before` is 0."""
    if not before:
        return "-"
    change = 100 * (after - before) / before
    if change == 0:
        return "0"
    if abs(change) >= _LITTLE:
        return f"{change:+.1f}"
    return f"{change:+.1g}"


def verdict(passed: bool) -> str:
    """Return the word "passed" or "FAILED", which tables colour."""
    return "passed" if passed else "FAILED"


def shape(dims: Iterable[int]) -> str:
    """Return dimensions as text, such as 4x1x64x128."""
    return "x".join(map(str, dims))


def first_lines(lines: Sequence[str], kind: str = "") -> Iterator[str]:
    """Yield the first MOST_LINES lines of a list, and if there are more how many, such as `and 7 more new` (`kind` is
    "new")."""
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES} more {kind}".rstrip()
