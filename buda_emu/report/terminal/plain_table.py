"""Tables of plain words that fit the screen, as nearly all tables do, drawn without rich.

The import of rich takes a fifth of the time of a small run. A test compares both ways of drawing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

from buda_emu.support.screen import Screen, Style

GAP: Final = 2  # blanks between columns
WORDS: Final[Mapping[str, tuple[Style, ...]]] = {
    "passed": ("green",), "FAILED": ("bold", "red"), "failed": ("red",), "error": ("red",), "warning": ("yellow",),
    "accepted": ("green",), "refused": ("red",),
}  # fmt: skip
"""Styles of cells that consist of one of these words."""
MARKED: Final[tuple[Style, ...]] = ("bold", "yellow")


def plain(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int],
    marked: Collection[int],
    screen: Screen,
) -> str | None:
    """Return the lines of a table without blanks at their ends; None for a table that is too wide, or has cells
    that are not plain words. `right` holds numbers of columns that are aligned right, `marked` those of rows in
    bold yellow.
    """
    columns = list(zip(headers, *rows, strict=True))
    if not columns or not all(map(_is_plain, chain.from_iterable(columns))):
        return None
    widths = [max(map(len, column)) for column in columns]
    if not _fits(widths, screen):
        return None

    def line(cells: Sequence[str], style: tuple[Style, ...], gap: str) -> str:
        """Return one line of the table. Cells have `style` or, if that is empty, the one that `WORDS` has for their
        text; `gap` stands between them.
        """
        painted: list[str] = []
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            padded = cell.rjust(width) if number in right else cell.ljust(width)
            painted.append(screen.paint(padded, *(style or WORDS.get(cell, ()))))
        return gap.join(painted).rstrip()

    blanks = " " * GAP
    lines = [line(headers, ("bold",), screen.paint(blanks, "bold"))]
    for index, row in enumerate(rows):
        lines.append(line(row, MARKED if index in marked else (), blanks))
    return "\n".join(lines)


def _fits(widths: Sequence[int], screen: Screen) -> bool:
    """Return whether columns of these widths fit side by side on the screen."""
    return screen.columns is None or sum(widths) + GAP * (len(widths) - 1) <= screen.columns


def _is_plain(cell: str) -> bool:
    """Return whether a cell is printable ASCII without blanks at its ends."""
    return cell.isascii() and cell.isprintable() and cell == cell.strip()


Kind = Literal["name", "prose", "whole"]
_LEAST_NAME: Final = 8  # characters to which a name may be cut
_LEAST_PROSE: Final = 20  # characters to which prose may be cut
_DOTS: Final = "..."


@dataclass(frozen=True, slots=True)
class Column:
    """The properties of a column that decide its width.

    `cells` is the width of its widest cell, `heading` that of the heading on one line, `word` that of the heading's
    longest word. A "name" may be cut in the middle, "prose" continues on a further line, and a "whole" cell
    (figures, verdicts) is never cut.
    """

    kind: Kind
    cells: int
    heading: int
    word: int

    @property
    def least(self) -> int:
        """The least width that the column may have."""
        room = {"name": _LEAST_NAME, "prose": _LEAST_PROSE, "whole": self.cells}[self.kind]
        return max(min(self.cells, room), self.word)

    @property
    def most(self) -> int:
        """The greatest useful width: that of the widest cell, or of the heading on one line."""
        return max(self.cells, self.heading)


def fit(columns: Sequence[Column], total: int | None) -> list[dict[int, int]]:
    """Distribute columns over as many tables as it takes to fit each into `total` characters (None: no limit), and
    return the widths of the columns of each table, by number of column. The first column that may be cut or wrapped,
    such as a name, is in each table, so that every table names its rows."""
    if total is None:
        return [{number: column.most for number, column in enumerate(columns)}]
    key = next((number for number, column in enumerate(columns) if column.kind != "whole"), 0)
    groups: list[list[int]] = [[]]
    for number in range(len(columns)):
        candidate = [*groups[-1], number]
        needed = candidate
        if key not in candidate and number > key:
            needed = [*candidate, key]
        if groups[-1] and _least_table_width(columns, needed) > total:
            candidate = sorted({key, number})
            groups.append(candidate)
        else:
            groups[-1] = sorted(needed)
    return [_share_width(columns, group, total) for group in groups]


def _least_table_width(columns: Sequence[Column], numbers: Sequence[int]) -> int:
    """Return the least width of a table with the columns of these numbers."""
    return sum(columns[number].least for number in numbers) + GAP * (len(numbers) - 1)


def _share_width(columns: Sequence[Column], numbers: Sequence[int], total: int) -> dict[int, int]:
    """Distribute `total` characters over columns and return their widths: from the least widths on, the narrowest
    column whose cells are still cut grows first; then headings grow to one line."""
    width = {number: columns[number].least for number in numbers}
    room = total - _least_table_width(columns, numbers)
    # The widest are cut if even the least widths do not fit.
    for number in sorted(numbers, key=lambda number: -width[number]):
        cut_width = min(max(-room, 0), max(width[number] - _LEAST_NAME, 0))
        width[number] -= cut_width
        room += cut_width
    for targets in ([columns[number].cells for number in numbers], [columns[number].most for number in numbers]):
        while room > 0:
            short = [number for number, target in zip(numbers, targets, strict=True) if width[number] < target]
            if not short:
                break
            width[min(short, key=lambda number: width[number])] += 1
            room -= 1
    return width


def cut(text: str, width: int) -> str:
    """Cut the middle out of a text that is longer than `width` characters: names mostly differ at their ends."""
    if len(text) <= width:
        return text
    if width <= len(_DOTS) + 1:
        return text[:width]
    end = (width - len(_DOTS)) // 2
    return f"{text[: width - len(_DOTS) - end]}{_DOTS}{text[len(text) - end :]}"
