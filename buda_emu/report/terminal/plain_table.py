"""Tables whose cells are plain words that fit, which nearly all are: drawn without the library that draws the others.

Importing that takes a fifth of the time of a small run. A test holds both equal.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from buda_emu.screen import Screen, Style

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
