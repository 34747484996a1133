"""Charts of errors: over the tiles of an output, by their size, and of every op in the order of execution."""

from collections.abc import Sequence
from itertools import chain
from math import floor, isfinite, log10
from typing import Final

from buda_emu.report.pictures.axes import open_wide_chart, text_at
from buda_emu.report.pictures.grid_svg import (
    HeatScale,
    clean,
    fit_text,
    open_chart,
    text,
)
from buda_emu.report.pictures.grid_svg import number as svg_number
from buda_emu.report.terminal.text import correlation, number, percent
from buda_emu.testing.verify.result import OpResult, OutputDetail, TilePlace

SHADES: Final = 7  # of a heat map beside "equal", one for each decade below the largest error
_SIZE: Final = 11.0  # pixels of a font for names
_SMALL: Final = 10.0  # and of one for figures: a smaller one is hard to read
_WIDTH: Final = 360  # pixels: a narrow screen has room for it
_BAR: Final = 13  # height of a bar of the histogram, the height of its figure
_ROW: Final = 18  # from one bar to the next, with a gap between them
_PCC_DECADES: Final = 8  # 1 - PCC is drawn from 1e-8 to 1
_NAMES: Final = 240  # pixels for the names of ops: a narrow screen has room for them
_AXIS: Final = 42  # height of the axis above the ops
_OP_ROW: Final = 28  # height for one op: its name above, its bar below, a gap
_THIN: Final = 8  # height of the bar of an op
_LEAST_BAR: Final = 0.004  # share of the width: a bar of 1.4 pixels in 360 can still be seen


def heat_map(detail: OutputDetail, first_bad: TilePlace | None) -> str:
    """Return the SVG map of an output's tiles, shaded by the largest absolute error at each position over all
    entries and t; the tile `first_bad` is framed. A shade is a decade below the largest error of all, or, if all
    errors are within one decade, one of equal steps from the smallest error to the largest. Each cell has its shades
    on both scales, between which `error_map.js` switches.
    """
    rows, cols = detail.tile_error.shape
    values: list[list[float]] = detail.tile_error.tolist()
    shades = _Shades(sorted(value for value in chain.from_iterable(values) if value > 0 and isfinite(value)))
    side = max(4.0, min(28.0, (_WIDTH - 30) / cols, 320 / rows))
    left = 28.0
    top = 18.0
    width = left + cols * side + 1
    height = top + rows * side + 1
    parts = [open_chart(max(width, _WIDTH), height + 40, "largest error of each tile", shades.css)]
    for row in range(rows):
        for col in range(cols):
            value = values[row][col]
            tiles = f"{_tile_numbers(row, detail.cell[0])}, {_tile_numbers(col, detail.cell[1])}"
            tip = f"tile [{tiles}]: max error {_error_text(value)}"
            box = _square_attributes(left + col * side, top + row * side, side)
            parts.append(f"<rect {shades.attributes(value)} {box}><title>{clean(tip)}</title></rect>")
    parts += [
        text(left + col * side + side / 2, top - 5, str(col * detail.cell[1]), _SMALL, "soft", "middle")
        for col in _numbered_cells(cols, side)
    ]
    parts += [
        text(left - 5, top + row * side + side / 2 + 4, str(row * detail.cell[0]), _SMALL, "soft", "end")
        for row in _numbered_cells(rows, side)
    ]
    if first_bad is not None:
        x = left + first_bad.col // detail.cell[1] * side
        y = top + first_bad.row // detail.cell[0] * side
        parts.append(
            f'<rect class="marked" {_square_attributes(x, y, side)}><title>first bad tile: {first_bad}</title></rect>'
        )
    parts.append(_shade_legend(height + 8, shades))
    return "".join([*parts, "</svg>"])


class _Shades:
    """The shades of a map of errors, from 0 to SHADES, on a logarithmic and on a linear scale."""

    def __init__(self, errors: Sequence[float]) -> None:
        """Choose the scales for these finite errors above 0, in ascending order."""
        self.smallest = 0.0
        self.largest = 0.0
        if errors:
            self.smallest = errors[0]
            self.largest = errors[-1]
        self.is_logarithmic = self.smallest * 10 <= self.largest

    @property
    def css(self) -> str:
        """The CSS classes of a map that is drawn with the chosen scale."""
        if self.is_logarithmic:
            return " error-map by-log"
        return " error-map by-linear"

    def attributes(self, value: float) -> str:
        """Return the SVG attributes of a cell: the class of its present shade, and its shades on both scales."""
        if not isfinite(value):
            return 'class="cell lost"'
        by_log = self._log_shade(value)
        by_linear = self._linear_shade(value)
        shade = by_linear
        if self.is_logarithmic:
            shade = by_log
        return f'class="cell h{shade}" data-log="{by_log}" data-linear="{by_linear}"'

    def _log_shade(self, value: float) -> int:
        """Return the shade of an error on the logarithmic scale: SHADES for the decade of the largest error, one less
        for each decade below, at least 1; 0 for no error."""
        if value == 0 or self.largest == 0:
            return 0
        below = floor(log10(self.largest / value) + 1e-9)
        return max(SHADES - below, 1)

    def _linear_shade(self, value: float) -> int:
        """Return the shade of an error by equal steps from the smallest error (1) to the largest (SHADES); 0 for no
        error."""
        if value == 0 or self.largest == 0:
            return 0
        if self.smallest == self.largest:
            return SHADES
        share = (value - self.smallest) / (self.largest - self.smallest)
        return 1 + min(floor(share * SHADES), SHADES - 1)


def _square_attributes(x: float, y: float, side: float) -> str:
    """Return the SVG attributes of a square with its upper left corner at x, y."""
    return f'x="{svg_number(x)}" y="{svg_number(y)}" width="{svg_number(side)}" height="{svg_number(side)}"'


def _tile_numbers(index: int, cell: int) -> str:
    """Return the numbers of the tile rows (or columns) that row `index` of the map's cells stands for, as text; a cell
    has `cell` of them."""
    first = index * cell
    if cell == 1:
        return str(first)
    return f"{first}..{first + cell - 1}"


def _error_text(value: float) -> str:
    """Return the largest error of a cell as text; "none is finite" where it is infinite or NaN."""
    return number(value) if isfinite(value) else "none is finite"


def _numbered_cells(count: int, side: float) -> range:
    """Return which of `count` rows or columns of cells are labelled with their number, so few that the labels do not
    touch. `side` is the size of a cell in pixels."""
    step = 1
    while step * side < 22:
        step *= 2
    return range(0, count, step)


def _shade_legend(y: float, shades: _Shades) -> str:
    """Return the SVG legend of a heat map at height `y`: the shades from 0 to the largest error, and for each scale
    what they mean.
    """
    if shades.largest == 0:
        return text(28, y + 10, "every finite element is equal", _SMALL, "soft")
    parts = [
        text(28, y + 26, f"0, then from {number(shades.smallest)} in equal steps", _SMALL, "soft of-linear"),
        text(28, y + 26, "0, then each shade ten times the one before", _SMALL, "soft of-log"),
        text(28, y + 10, "0", _SMALL, "soft", "middle"),
    ]
    x = 38.0
    for shade in range(SHADES + 1):
        parts.append(f'<rect class="cell h{shade}" x="{svg_number(x)}" y="{svg_number(y)}" width="18" height="12"/>')
        x += 18
    parts.append(text(x + 6, y + 10, number(shades.largest), _SMALL, "soft"))
    return "".join(parts)


def histogram(detail: OutputDetail) -> str:
    """Return the SVG chart of how many elements of an output have an error of each decade."""
    bins = detail.histogram
    total = sum(count for _, count in bins)
    highest_count = max((count for _, count in bins), default=0)
    height = len(bins) * _ROW + 8
    parts = [open_chart(_WIDTH, height, "how many elements have which error")]
    room = _WIDTH - 112 - 74
    for position, (bound, count) in enumerate(bins):
        y = 4 + position * _ROW
        label = "equal"
        if bound != 0:
            label = f"{bound:.0e}..{bound * 10:.0e}".replace("e-0", "e-").replace("e+0", "e")
        length = room * count / max(highest_count, 1)
        width = length
        if count:
            width = max(length, 1.0)  # so that a single element is seen
        tip = f"{count} of {total} elements"
        parts.append(text(100, y + 11, label, _SMALL, "soft", "end"))
        parts.append(
            f'<rect class="bar" x="106" y="{y}" width="{svg_number(width)}" height="{_BAR}"><title>{tip}</title></rect>'
        )
        parts.append(text(112 + length, y + 11, percent(count / max(total, 1)), _SMALL))
    return "".join([*parts, "</svg>"])


def op_chart(ops: Sequence[OpResult], threshold: float, first_bad: int | None) -> str:
    """Return the SVG chart of 1 - PCC of every op in execution order, on a logarithmic axis with the threshold as a
    line. `first_bad` is the index of the op that is highlighted. Name and PCC of an op stand above its bar, so that
    names have room on a narrow screen.
    """
    height = _AXIS + len(ops) * _OP_ROW
    parts = [open_wide_chart(height, "1 - PCC of every op", " op-chart")]
    for decade in range(0, _PCC_DECADES + 1, 2):
        share = decade / _PCC_DECADES
        x = f"{svg_number(100 * share)}%"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_AXIS - 10}" y2="{height}"/>')
        label = "1" if decade == _PCC_DECADES else f"1e-{_PCC_DECADES - decade}"
        anchor = {0: "start", _PCC_DECADES: "end"}.get(decade, "middle")
        parts.append(text_at(share, _AXIS - 16, label, _SMALL, "soft", anchor))
    parts.append(text_at(0, 12, "1 - PCC", _SMALL, "axis"))
    for position, op in enumerate(ops):
        y = _AXIS + position * _OP_ROW
        css = "bar worst" if op.index == first_bad else "bar"
        tip = f"{op.name} ({op.type}): PCC {correlation(op.pcc)}, max error {number(op.max_error)}"
        parts.append(text_at(0, y + 11, fit_text(op.name, _NAMES, _SIZE), _SIZE))
        label = "no PCC"
        if op.pcc is not None:
            label = correlation(op.pcc)
            share = max(_lost_share(op.pcc), _LEAST_BAR)
            box = f'x="0" y="{y + 15}" width="{svg_number(100 * share)}%" height="{_THIN}"'
            parts.append(f'<rect class="{css}" {box}><title>{clean(tip)}</title></rect>')
        parts.append(text_at(1, y + 11, label, _SMALL, "soft", "end"))
    if 0 < threshold < 1:
        x = f"{svg_number(100 * _lost_share(threshold))}%"
        tip = f"threshold: PCC {threshold}"
        parts.append(
            f'<line class="limit" x1="{x}" x2="{x}" y1="{_AXIS - 10}" y2="{height}"><title>{tip}</title></line>'
        )
    return "".join([*parts, "</svg>"])


def _lost_share(pcc: float) -> float:
    """Return where 1 - PCC lies on the axis of the chart of ops, as a share of its width."""
    lost = max(1 - pcc, 10.0**-_PCC_DECADES)
    return min(1.0, (log10(lost) + _PCC_DECADES) / _PCC_DECADES)


ERROR_SCALE: Final = HeatScale(low="1 - PCC of 1e-4 or less", high="0.1 or more")
"""The scale of `op_heat`."""


def op_heat(ops: Sequence[OpResult]) -> dict[str, float]:
    """Return how red each op is drawn on the grid, by name: 0 where 1 - PCC is 1e-4 or less, 1 where it is 0.1 or
    more. Ops without a PCC are left out.
    """
    heat: dict[str, float] = {}
    for op in ops:
        if op.pcc is not None:
            lost = max(1 - op.pcc, 1e-9)
            heat[op.name] = min(1.0, max(0.0, (log10(lost) + 4) / 3))
    return heat
