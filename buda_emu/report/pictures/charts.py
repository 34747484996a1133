"""Charts of test results as inline SVG: colours come from the style sheet of the page (report/pages/style.css)."""

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import Final

from buda_emu.report.pictures.svg import clean, fitted, number, open_chart, text
from buda_emu.report.terminal.text import correlation, percent
from buda_emu.report.terminal.text import number as figure
from buda_emu.verify.result import OpResult, OutputDetail, TilePlace

SHADES: Final = 7  # of a heat map beside "equal", one for each decade below the largest error
_SIZE: Final = 11.0
_SMALL: Final = 10.0
_WIDTH: Final = 360
_BAR: Final = 13
_ROW: Final = 18
_PCC_DECADES: Final = 8  # 1 - PCC is drawn from 1e-8 to 1
_NAMES: Final = 168  # pixels for the names of ops


def heat_map(detail: OutputDetail, first_bad: TilePlace | None) -> str:
    """Largest absolute error of each tile position over all entries and t, in decades below the largest of all."""
    rows, cols = detail.tile_error.shape
    values: list[list[float]] = detail.tile_error.tolist()
    largest = max((value for row in values for value in row if isfinite(value)), default=0.0)
    side = max(4.0, min(28.0, (_WIDTH - 30) / cols, 320 / rows))
    left, top = 28.0, 18.0
    width, height = left + cols * side + 1, top + rows * side + 1
    parts = [open_chart(max(width, _WIDTH), height + 40, "largest error of each tile")]
    for row in range(rows):
        for col in range(cols):
            value = values[row][col]
            tip = f"tile [{_place(row, detail.cell[0])}, {_place(col, detail.cell[1])}]: max error {_error(value)}"
            box = _square(left + col * side, top + row * side, side)
            parts.append(f'<rect class="cell {_shade(value, largest)}" {box}><title>{clean(tip)}</title></rect>')
    parts += [
        text(left + col * side + side / 2, top - 5, str(col * detail.cell[1]), _SMALL, "soft", "middle")
        for col in _ticks(cols, side)
    ]
    parts += [
        text(left - 5, top + row * side + side / 2 + 4, str(row * detail.cell[0]), _SMALL, "soft", "end")
        for row in _ticks(rows, side)
    ]
    if first_bad is not None:
        x, y = left + first_bad.col // detail.cell[1] * side, top + first_bad.row // detail.cell[0] * side
        parts.append(f'<rect class="marked" {_square(x, y, side)}><title>first bad tile: {first_bad}</title></rect>')
    parts.append(_shade_legend(height + 8, largest))
    return "".join([*parts, "</svg>"])


def _square(x: float, y: float, side: float) -> str:
    return f'x="{number(x)}" y="{number(y)}" width="{number(side)}" height="{number(side)}"'


def _place(index: int, cell: int) -> str:
    first = index * cell
    return str(first) if cell == 1 else f"{first}..{first + cell - 1}"


def _error(value: float) -> str:
    return figure(value) if isfinite(value) else "none is finite"


def _ticks(count: int, side: float) -> range:
    """Positions that get a number: as many as do not touch."""
    step = 1
    while step * side < 22:
        step *= 2
    return range(0, count, step)


def _shade(value: float, largest: float) -> str:
    if not isfinite(value):
        return "lost"
    if value == 0 or largest == 0:
        return "h0"
    below = floor(log10(largest / value) + 1e-9)
    return f"h{max(SHADES - below, 1)}"


def _shade_legend(y: float, largest: float) -> str:
    if largest == 0:
        return text(28, y + 10, "every finite element is equal", _SMALL, "soft")
    parts = [text(28, y + 10, "0", _SMALL, "soft", "middle")]
    x = 38.0
    for shade in range(SHADES + 1):
        parts.append(f'<rect class="cell h{shade}" x="{number(x)}" y="{number(y)}" width="18" height="12"/>')
        x += 18
    parts.append(text(x + 6, y + 10, figure(largest), _SMALL, "soft"))
    return "".join(parts)


def histogram(detail: OutputDetail) -> str:
    """How many elements have an error of which size, in decades."""
    bins = detail.histogram
    total = sum(count for _, count in bins)
    most = max((count for _, count in bins), default=0)
    height = len(bins) * _ROW + 8
    parts = [open_chart(_WIDTH, height, "how many elements have which error")]
    room = _WIDTH - 112 - 74
    for position, (bound, count) in enumerate(bins):
        y = 4 + position * _ROW
        label = "equal" if bound == 0 else f"{bound:.0e}..{bound * 10:.0e}".replace("e-0", "e-").replace("e+0", "e")
        length = room * count / most if most else 0.0
        tip = f"{count} of {total} elements"
        parts.append(text(100, y + 11, label, _SMALL, "soft", "end"))
        parts.append(
            f'<rect class="bar" x="106" y="{y}" width="{number(max(length, 1.0 if count else 0.0))}" height="{_BAR}">'
            f"<title>{tip}</title></rect>"
        )
        parts.append(text(112 + length, y + 11, percent(count / total if total else 0.0), _SMALL))
    return "".join([*parts, "</svg>"])


def op_chart(ops: Sequence[OpResult], threshold: float, first_bad: int | None) -> str:
    """1 - PCC of every op in execution order on a logarithmic axis, and the threshold as a line."""
    height = 30 + len(ops) * _ROW
    width = 620
    left, right = _NAMES + 12, width - 92
    room = right - left

    def x_of(pcc: float) -> float:
        lost = max(1 - pcc, 10.0**-_PCC_DECADES)
        return left + room * min(1.0, (log10(lost) + _PCC_DECADES) / _PCC_DECADES)

    parts = [open_chart(width, height, "1 - PCC of every op", " fixed")]
    for decade in range(0, _PCC_DECADES + 1, 2):
        x = left + room * decade / _PCC_DECADES
        parts.append(f'<path class="grid" d="M{number(x)} 20V{height}"/>')
        label = "1" if decade == _PCC_DECADES else f"1e-{_PCC_DECADES - decade}"
        parts.append(text(x, 13, label, _SMALL, "soft", "middle"))
    parts.append(text(_NAMES - 24, 13, "1 - PCC", _SMALL, "soft", "end"))
    for position, op in enumerate(ops):
        y = 24 + position * _ROW
        css = "bar worst" if op.index == first_bad else "bar"
        tip = f"{op.name} ({op.type}): PCC {correlation(op.pcc)}, max error {figure(op.max_error)}"
        parts.append(text(_NAMES, y + 11, fitted(op.name, _NAMES - 4, _SIZE), _SIZE, "", "end"))
        if op.pcc is not None:
            length = max(x_of(op.pcc) - left, 2.0)
            box = f'x="{left}" y="{y}" width="{number(length)}" height="{_BAR}"'
            parts.append(f'<rect class="{css}" {box}><title>{clean(tip)}</title></rect>')
        label = "no PCC" if op.pcc is None else correlation(op.pcc)
        parts.append(text(right + 8, y + 11, label, _SMALL, "soft"))
    if 0 < threshold < 1:
        x = x_of(threshold)
        tip = f"threshold: PCC {threshold}"
        parts.append(f'<path class="limit" d="M{number(x)} 20V{height}"><title>{tip}</title></path>')
    return "".join([*parts, "</svg>"])


def op_heat(ops: Sequence[OpResult]) -> dict[str, float]:
    """How red each op is drawn on the grid: 1 - PCC, from 1e-4 (0) to 0.1 and more (1)."""
    heat: dict[str, float] = {}
    for op in ops:
        if op.pcc is not None:
            lost = max(1 - op.pcc, 1e-9)
            heat[op.name] = min(1.0, max(0.0, (log10(lost) + 4) / 3))
    return heat
