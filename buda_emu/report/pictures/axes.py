"""Axes of charts: round values at which lines and labels stand, linear and logarithmic; and charts whose horizontal
axis is as wide as the page."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

from buda_emu.report.pictures.grid_svg import clean, number, text

_ROUND: Final = (1.0, 2.0, 5.0, 10.0)
"""Factors of a power of ten that make a round step."""
_SMALL_SPAN: Final = 0.3
"""Axes whose values span less than this share of the greatest one do not begin at 0."""
_NOISE: Final = 1e-6
"""Values whose span is a smaller share of the greatest one are the same."""
_FEW_DECADES: Final = 2
"""Logarithmic axes of up to so many decades have lines at 2 and 5 as well."""


def round_up(value: float) -> float:
    """Return the least number that is at least `value` and 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next(factor * power for factor in (*_ROUND, 20.0) if factor * power >= value * (1 - 1e-9))


def round_ticks(low: float, high: float, steps: int = 6) -> list[float]:
    """Return up to `steps` + 1 multiples of a step of 1, 2 or 5 times a power of ten, from one that is at most `low` to
    one that is at least `high`."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = round_up((high - low) / steps)
    while ceil(high / step - 1e-9) - floor(low / step + 1e-9) > steps:
        step = round_up(step * 1.5)
    first = floor(low / step + 1e-9)
    last = ceil(high / step - 1e-9)
    return [float(f"{count * step:.12g}") for count in range(first, last + 1)]


def value_ticks(values: Sequence[float], steps: int = 6) -> list[float]:
    """Return the values at which an axis for these values has lines, at most `steps` + 1: from 0, or around the
    values if they differ so little that lines from 0 would look flat.
    """
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    if low > 0 and _NOISE * high < high - low < _SMALL_SPAN * high:
        return round_ticks(low, high, steps)
    return round_ticks(min(low, 0.0), max(high, 0.0) or 1.0, steps)


class LogAxis:
    """A logarithmic axis of whole decades around some values, in pixels."""

    def __init__(self, values: Sequence[float], start: float, length: float) -> None:
        self.low = floor(log10(min(values)))
        self._high = max(ceil(log10(max(values)) - 1e-9), self.low + 1)
        self._each = length / (self._high - self.low)
        self._start = start

    def __call__(self, value: float) -> float:
        """Return the place of a value in pixels; a value beyond the end is placed at the end."""
        return self._start + self._each * (min(log10(value), self._high) - self.low)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten on the axis, and 2 and 5 times these on a short one."""
        factors: Sequence[float] = (1.0,)
        if self._high - self.low <= _FEW_DECADES:
            factors = (1.0, 2.0, 5.0)
        ticks: list[float] = []
        for decade in range(self.low, self._high):
            ticks += [round_figure(factor * 10.0**decade) for factor in factors]
        return [*ticks, 10.0**self._high]


def round_figure(value: float) -> float:
    """Return a value to three significant digits, without the noise of binary fractions."""
    return float(f"{value:.3g}")


def tick_text(value: float) -> str:
    """Return the label of a tick: as few digits as it has, thousands separated, very great and small ones by power."""
    if value and not 1e-4 < abs(value) < 1e7:
        return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 1000:
        return f"{value:,.10g}"
    return f"{value:.10g}"


def open_wide_chart(height: float, title: str, css: str = "") -> str:
    """Return the opening tag of an SVG chart as wide as there is room, in which every x and width is a percentage.
    `css` has further classes, after a blank.
    """
    size = f'width="100%" height="{number(height)}"'
    return f'<svg class="chart wide-chart{css}" role="img" aria-label="{clean(title)}" {size}>'


def text_at(share: float, y: float, content: str, size: float, css: str = "", anchor: str = "start") -> str:
    """Return the SVG of a line of text whose x is a share (0 to 1) of the width, for a chart of `open_wide_chart`.
    `css` and `anchor` are as in `grid_svg.text`.
    """
    return text(0, y, content, size, css, anchor).replace('x="0"', f'x="{number(100 * share)}%"', 1)
