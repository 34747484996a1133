"""Tables whose cells are plain words that fit, which nearly all are: drawn without the library that draws the others.

Importing that takes a fifth of the time of a small run. A test holds both equal.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from buda_emu.support.screen import Screen, Style

GAP: Final = 2  # blanks between columns
WORDS: Final[Mapping[str, tuple[Style, ...]]] = {
    "passed": ("green",), "FAILED": ("bold", "red"), "failed": ("red",), "error": ("red",), "warning": ("yellow",),
    "accepted": ("green",), "refused": ("red",),
}  # fmt: skip
"""Cells that are one of these words have its colour."""
MARKED: Final[tuple[Style, ...]] = ("bold", "yellow")


def plain(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int],
    marked: Collection[int],
    screen: Screen,
) -> str | None:
    """Lines without blanks at their ends; None for a table that is too wide, or has more than words in its cells."""
    columns = list(zip(headers, *rows, strict=True))
    if not columns or not all(map(_is_plain, (cell for column in columns for cell in column))):
        return None
    widths = [max(map(len, column)) for column in columns]
    if screen.columns is not None and sum(widths) + GAP * (len(widths) - 1) > screen.columns:
        return None

    def line(cells: Sequence[str], style: tuple[Style, ...], gap: str) -> str:
        padded = (
            screen.paint(cell.rjust(width) if number in right else cell.ljust(width), *(style or WORDS.get(cell, ())))
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return gap.join(padded).rstrip()

    blanks = " " * GAP
    head = line(headers, ("bold",), screen.paint(blanks, "bold"))
    return "\n".join((head, *(line(row, MARKED if at in marked else (), blanks) for at, row in enumerate(rows))))


def _is_plain(cell: str) -> bool:
    return cell.isascii() and cell.isprintable() and cell == cell.strip()


Kind = Literal["name", "prose", "whole"]
_LEAST_NAME: Final = 8
_LEAST_PROSE: Final = 20
_DOTS: Final = "..."


@dataclass(frozen=True, slots=True)
class Column:
    """What fitting has to know of a column.

    `cells`: the widest one; `heading`: the heading on one line, `word`: its longest word. A "name" may be cut in the
    middle, "prose" goes on on a further line, what is "whole" (figures, verdicts) is never cut.
    """

    kind: Kind
    cells: int
    heading: int
    word: int

    @property
    def least(self) -> int:
        """The narrowest that it may be."""
        room = {"name": _LEAST_NAME, "prose": _LEAST_PROSE, "whole": self.cells}[self.kind]
        return max(min(self.cells, room), self.word)

    @property
    def most(self) -> int:
        """The widest that is of use."""
        return max(self.cells, self.heading)


def fit(columns: Sequence[Column], total: int | None) -> list[dict[int, int]]:
    """Column -> width, for each table that the columns have to be split into: one where they fit into `total`.

    The first column that is not a figure begins each of them, so that every table says what its rows are.
    """
    if total is None:
        return [{number: column.most for number, column in enumerate(columns)}]
    key = next((number for number, column in enumerate(columns) if column.kind != "whole"), 0)
    groups: list[list[int]] = [[]]
    for number in range(len(columns)):
        own = [*groups[-1], number]
        needed = [*own, key] if key not in own and number > key else own
        if groups[-1] and _least(columns, needed) > total:
            own = sorted({key, number})
            groups.append(own)
        else:
            groups[-1] = sorted(needed)
    return [_widths(columns, group, total) for group in groups]


def _least(columns: Sequence[Column], numbers: Sequence[int]) -> int:
    return sum(columns[number].least for number in numbers) + GAP * (len(numbers) - 1)


def _widths(columns: Sequence[Column], numbers: Sequence[int], total: int) -> dict[int, int]:
    """From the least width of each the narrowest that is still cut grows first, then headings come back to one line."""
    width = {number: columns[number].least for number in numbers}
    room = total - _least(columns, numbers)
    for number in sorted(numbers, key=lambda number: -width[number]):  # not even the least has room: cut what is widest
        taken = min(max(-room, 0), max(width[number] - _LEAST_NAME, 0))
        width[number] -= taken
        room += taken
    for wanted in ([columns[number].cells for number in numbers], [columns[number].most for number in numbers]):
        while room > 0:
            short = [number for number, most in zip(numbers, wanted, strict=True) if width[number] < most]
            if not short:
                break
            width[min(short, key=lambda number: width[number])] += 1
            room -= 1
    return width


def cut(text: str, width: int) -> str:
    """The text within so many characters, its middle left out: what names differ in mostly stands at their ends."""
    if len(text) <= width:
        return text
    if width <= len(_DOTS) + 1:
        return text[:width]
    end = (width - len(_DOTS)) // 2
    return f"{text[: width - len(_DOTS) - end]}{_DOTS}{text[len(text) - end :]}"
