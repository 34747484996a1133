"""Tables drawn by rich, in columns whose widths `fit` computes."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from buda_emu.report.terminal.plain_table import GAP, MARKED, WORDS, Column, Kind, cut, fit
from buda_emu.support.screen import Screen, escape_controls, lines_of

_WORDS: Final = {word: " ".join(styles) for word, styles in WORDS.items()}
_MARKED: Final = " ".join(MARKED)


def draw_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: frozenset[int],
    prose: frozenset[int],
    uncut: frozenset[int],
    marked: frozenset[int],
    screen: Screen,
) -> str:
    """Return the lines of a table without blanks at their ends; a table that is too wide is split into parts with an
    empty line between them. The sets hold numbers of columns: `right` are aligned to the right, `prose` wrapped,
    `uncut` never cut; `marked` holds numbers of rows that are coloured."""
    table = [tuple(map(escape_controls, row)) for row in rows]  # before it is laid out: what is escaped later is wider
    columns: list[Column] = []
    for number, header in enumerate(headers):
        cells = max((_widest_line(row[number]) for row in table), default=0)
        if number in right or number in uncut:
            kind: Kind = "whole"
        elif number in prose:
            kind = "prose"
        else:
            kind = "name"
        columns.append(Column(kind, cells, cell_len(header), max(map(cell_len, header.split()), default=0)))
    parts = fit(columns, screen.columns)
    return "\n\n".join(_draw_part(headers, table, widths, right, prose, marked, screen) for widths in parts)


def _draw_part(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: dict[int, int],
    right: frozenset[int],
    prose: frozenset[int],
    marked: frozenset[int],
    screen: Screen,
) -> str:
    """Return the lines of a part of a table: the columns that `widths` has, by number. The sets are as in
    `draw_table`."""
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_edge=False)
    heads = {number: textwrap.wrap(headers[number], max(width, 1)) for number, width in widths.items()}
    tallest = max(map(len, heads.values()))
    for number, width in widths.items():
        lines = [""] * (tallest - len(heads[number])) + heads[number]
        cells = max((_widest_line(row[number]) for row in rows), default=0)
        table.add_column(
            Text("\n".join(lines)),
            width=min(width, max(cells, *map(cell_len, lines))),
            justify="right" if number in right else "left",
            no_wrap=number not in prose,
            overflow="fold" if number in prose else "crop",
            header_style="bold" if screen.colour else "",
        )
    for index, row in enumerate(rows):
        style = _MARKED if index in marked else ""
        table.add_row(*_row_cells(row, widths, prose, style))
    return _render(table, sum(widths.values()) + GAP * len(widths), screen)


def _row_cells(row: Sequence[str], widths: dict[int, int], prose: frozenset[int], style: str) -> Iterator[Text]:
    """Yield the cells of a row: in `style` or, if that is "", in the style that `_WORDS` has for their text. Cells are
    cut to their column's width, but for those in the columns `prose`."""
    for number, width in widths.items():
        cell = row[number]
        content = cell if number in prose else _cut_cell(cell, width)
        yield Text(content, style or _WORDS.get(cell, ""))


def _render(table: Table, width: int, screen: Screen) -> str:
    """Return the lines of a table that rich draws in `width` columns, without blanks at their ends."""
    text = StringIO()
    console = Console(
        file=text,
        width=width,
        height=1,
        legacy_windows=False,
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
        no_color=not screen.colour,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    console.print(table)
    return "\n".join(line.rstrip() for line in lines_of(text.getvalue()))


def _widest_line(cell: str) -> int:
    """Return the width of the widest line of a cell."""
    return max(map(cell_len, cell.split("\n")))


def _cut_cell(cell: str, width: int) -> str:
    """Return a cell of at most `width` columns, its middle left out if it is wider."""
    if _widest_line(cell) <= width:
        return cell
    return cut(cell, width)
