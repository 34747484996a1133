"""The roofline of an epoch as inline SVG. Colours: pages/style.css."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Final

from buda_emu.report.pictures.svg import clean, fitted, number, open_chart, text, width_of
from buda_emu.report.terminal.text import number as figure
from buda_emu.timing.figures import OpFigures

_SMALL: Final = 11.0
_LEFT, _TOP, _WIDTH, _HEIGHT = 64.0, 14.0, 560.0, 300.0
_LABELLED: Final = 4
"""Of the slowest ops."""


def roofline_chart(
    ops: Sequence[OpFigures], cycles: Sequence[float], bytes_of: Mapping[str, float], stream: float
) -> str:
    """Share of the time in which the math unit works over its work for each byte that a core takes in, both axes
    logarithmic, under the roof of the math unit and of what the NoC brings into a core. The time is that of one input:
    `cycles` of the op, or that of its bytes where it is longer. The slowest ops bear their names. "" where no op takes
    bytes in and computes."""
    times = [max(time, bytes_of.get(op.op, 0.0) / stream, 1.0) for op, time in zip(ops, cycles, strict=True)]
    points = [
        (op, op.math / bytes_of[op.op], op.math / time, time)
        for op, time in zip(ops, times, strict=True)
        if bytes_of.get(op.op, 0) > 0 and op.math > 0
    ]
    if not points:
        return ""
    across = _Axis([value for _, value, _, _ in points] + [1 / stream], _LEFT, _WIDTH)
    up = _Axis([value for _, _, value, _ in points] + [1.0], _TOP + _HEIGHT, -_HEIGHT)
    parts = [open_chart(_LEFT + _WIDTH + 16, _TOP + _HEIGHT + 44, "roofline")]
    for decade in across.decades:
        x = number(across(10.0**decade))
        parts.append(f'<path class="grid" d="M{x} {_TOP}V{_TOP + _HEIGHT}"/>')
        parts.append(text(float(x), _TOP + _HEIGHT + 16, _power(decade), _SMALL, "soft", "middle"))
    for decade in up.decades:
        y = up(10.0**decade)
        parts.append(f'<path class="grid" d="M{_LEFT} {number(y)}H{_LEFT + _WIDTH}"/>')
        parts.append(text(_LEFT - 6, y + 4, f"{100 * 10.0**decade:g} %", _SMALL, "soft", "end"))
    corner = number(across(1 / stream)), number(up(1.0))
    start = max(10.0**up.low / stream, 10.0**across.low)
    path = f"M{number(across(start))} {number(up(start * stream))}L{' '.join(corner)}H{_LEFT + _WIDTH}"
    tip = f"{stream:g} bytes a cycle into one core, and all of the math unit"
    parts.append(f'<path class="limit" d="{path}"><title>{tip}</title></path>')
    points.sort(key=lambda item: item[3])
    for op, value, share, time in points:
        words = f"{op.op} ({op.type}): {time:,.0f} cycles, {figure(value)} math cycles a byte, {100 * share:.2g} % math"
        place = f'cx="{number(across(value))}" cy="{number(up(share))}"'
        parts.append(
            f'<circle class="bar dot" data-name="{clean(op.op)}" {place} r="5"><title>{clean(words)}</title></circle>'
        )
    dots = [(across(value), up(share)) for _, value, share, _ in points]
    parts += _labels([op.op for op, *_ in points[: -_LABELLED - 1 : -1]], dots[::-1])
    below = "math cycles a byte taken in; up: share of the time in which the math unit works"
    parts.append(text(_LEFT, _TOP + _HEIGHT + 36, below, _SMALL, "soft"))
    return "".join([*parts, "</svg>"])


class _Axis:
    """Whole decades around some values, on pixels."""

    def __init__(self, values: Sequence[float], start: float, length: float) -> None:
        self.low = floor(log10(min(values)))
        self._high = max(ceil(log10(max(values)) - 1e-9), self.low + 1)
        self.decades = range(self.low, self._high + 1)
        self._start, self._each = start, length / (self._high - self.low)

    def __call__(self, value: float) -> float:
        return self._start + self._each * (min(log10(value), self._high) - self.low)


def _labels(names: Sequence[str], dots: Sequence[tuple[float, float]]) -> list[str]:
    """Names beside the first of the dots: where they lie on least of what is drawn already."""
    parts: list[str] = []
    taken = [(x - 5, x + 5, y) for x, y in dots]
    for name, (x, y) in zip(names, dots, strict=False):
        short = fitted(name, 260, _SMALL)
        wide = width_of(short, _SMALL)
        places = [(left, y + down) for down in (0, 15, -15, 30, -30, 45, -45) for left in (x + 10, x - 10 - wide)]

        def worth(place: tuple[float, float], wide: float = wide) -> int:
            left, line = place
            inside = left >= _LEFT and left + wide <= _LEFT + _WIDTH + 14 and _TOP <= line <= _TOP + _HEIGHT
            hidden = sum(abs(line - y) < 12 and left < end and begin < left + wide for begin, end, y in taken)
            return hidden + 100 * (not inside)

        left, line = min(places, key=worth)
        taken.append((left, left + wide, line))
        parts.append(text(left, line + 4, short, _SMALL))
    return parts


def _power(decade: int) -> str:
    return f"{10.0**decade:g}" if -4 < decade < 5 else f"1e{decade}"
