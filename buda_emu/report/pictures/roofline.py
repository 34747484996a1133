"""The roofline of an epoch: how far each op uses the math unit, and what it could reach."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from buda_emu.performance.timing.figures import OpFigures
from buda_emu.report.pictures.axes import LogAxis, round_figure, tick_text
from buda_emu.report.pictures.grid_svg import clean, fit_text, open_chart, text, width_of
from buda_emu.report.pictures.grid_svg import number as svg_number
from buda_emu.report.terminal.text import number

_SMALL: Final = 11.0  # pixels of the font
_ACROSS: Final = "math cycles for each byte that a core takes in"
_UP: Final = "share of the time in which the math unit works"
_LEFT = 64.0  # pixels for the axis's labels
_TOP = 32.0  # pixels for the title
_WIDTH = 560.0  # pixels of the plot
_HEIGHT = 300.0  # pixels of the plot
_LABELLED: Final = 6
"""Number of places in the chart with a name: those of the slowest ops."""
_LABEL: Final = 260  # pixels of such a name


def roofline_chart(
    ops: Sequence[OpFigures], cycles: Sequence[float], bytes_of: Mapping[str, float], stream: float
) -> str:
    """Return an SVG chart: over each op's math work for each byte that a core takes in, the share of the time in
    which its math unit works, both axes logarithmic, under the roof of the math unit and of the NoC into a core
    (`stream` bytes per cycle). The time is that of one input: the `cycles` of the op, or those of its bytes
    (`bytes_of`) if they take longer. The slowest ops are named. "" if no op both takes bytes in and computes.
    """
    times = [max(time, bytes_of.get(op.op, 0.0) / stream, 1.0) for op, time in zip(ops, cycles, strict=True)]
    points = [
        (op, op.math / bytes_of[op.op], op.math / time, time)
        for op, time in zip(ops, times, strict=True)
        if bytes_of.get(op.op, 0) > 0 and op.math > 0
    ]
    if not points:
        return ""
    across = LogAxis([value for _, value, _, _ in points] + [1 / stream], _LEFT, _WIDTH)
    up = LogAxis([value for _, _, value, _ in points] + [1.0], _TOP + _HEIGHT, -_HEIGHT)
    parts = [open_chart(_LEFT + _WIDTH + 16, _TOP + _HEIGHT + 44, "roofline", " roofline")]
    parts += _roofline_grid(across, up)
    parts.append(_roof_svg(across, up, stream))
    points.sort(key=lambda point: point[3])
    for op, value, share, time in points:
        use = f"{number(value)} math cycles a byte, {100 * share:.2g} % math"
        words = f"{op.op} ({op.type}): {time:,.0f} cycles, {use}"
        place = f'cx="{svg_number(across(value))}" cy="{svg_number(up(share))}"'
        parts.append(
            f'<circle class="bar dot" data-name="{clean(op.op)}" {place} r="5" tabindex="-1">'
            f"<title>{clean(words)}</title></circle>"
        )
    names: dict[tuple[int, int], list[str]] = {}  # of the ops at each place, the slowest first
    dots: dict[tuple[int, int], tuple[float, float]] = {}
    for op, value, share, _ in reversed(points):
        dot = (across(value), up(share))
        pixel = (round(dot[0]), round(dot[1]))
        names.setdefault(pixel, []).append(op.op)
        dots.setdefault(pixel, dot)
    parts += _place_labels(list(map(_point_label, names.values()))[:_LABELLED], list(dots.values()))
    parts.append(text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 36, _ACROSS, _SMALL, "axis", "middle"))
    parts.append(text(_LEFT - 52, 14, _UP, _SMALL, "axis"))
    return "".join([*parts, "</svg>"])


def _point_label(names: Sequence[str]) -> str:
    """Return the label of the ops at one place: the slowest, and how many more there are."""
    if len(names) == 1:
        return names[0]
    return f"{fit_text(names[0], _LABEL - 80, _SMALL)} and {len(names) - 1} more"


def _roofline_grid(across: LogAxis, up: LogAxis) -> Iterator[str]:
    """Yield the SVG lines at round values of both axes, with their labels."""
    for value in across.ticks:
        x = svg_number(across(value))
        yield f'<path class="grid" d="M{x} {_TOP}V{_TOP + _HEIGHT}"/>'
        yield text(float(x), _TOP + _HEIGHT + 16, tick_text(value), _SMALL, "soft", "middle")
    for value in up.ticks:
        y = up(value)
        yield f'<path class="grid" d="M{_LEFT} {svg_number(y)}H{_LEFT + _WIDTH}"/>'
        yield text(_LEFT - 6, y + 4, f"{tick_text(round_figure(100 * value))} %", _SMALL, "soft", "end")


def _roof_svg(across: LogAxis, up: LogAxis, stream: float) -> str:
    """Return the SVG line of the roof: rising with the bytes that the NoC brings into a core (`stream` in a cycle),
    level where the math unit is busy.
    """
    corner = f"{svg_number(across(1 / stream))} {svg_number(up(1.0))}"
    start = max(10.0**up.low / stream, 10.0**across.low)
    path = f"M{svg_number(across(start))} {svg_number(up(start * stream))}L{corner}H{_LEFT + _WIDTH}"
    tip = f"{stream:g} bytes a cycle into one core, and all of the math unit"
    return f'<path class="limit" d="{path}"><title>{tip}</title></path>'


def _place_labels(names: Sequence[str], dots: Sequence[tuple[float, float]]) -> list[str]:
    """Return the SVG of names beside their dots, each where it covers as little as possible of what is drawn already.
    `dots` are x and y of all dots, those with names first."""
    parts: list[str] = []
    occupied = [(x - 5, x + 5, y) for x, y in dots]
    for name, (x, y) in zip(names, dots, strict=False):
        short = fit_text(name, _LABEL, _SMALL)
        wide = width_of(short, _SMALL)
        lines = [y + down for down in (0, 15, -15, 30, -30, 45, -45)]
        places = product(lines, (x + 10, x - 10 - wide))

        def cost(place: tuple[float, float], wide: float = wide) -> int:
            """Return how many dots and labels a label at `place` (baseline, left end) would cover, plus 100 outside of
            the chart. `wide` is its width."""
            line, left = place
            inside = left >= _LEFT and left + wide <= _LEFT + _WIDTH + 14 and _TOP <= line <= _TOP + _HEIGHT
            hidden = sum(abs(line - y) < 12 and left < end and begin < left + wide for begin, end, y in occupied)
            return hidden + 100 * (not inside)

        line, left = min(places, key=cost)
        occupied.append((left, left + wide, line))
        if line != y:  # a line leads to it
            end = min((left, left + wide), key=lambda side: abs(side - x))
            path = f"M{svg_number(x)} {svg_number(y)}L{svg_number(end)} {svg_number(line)}"
            parts.append(f'<path class="grid point" d="{path}"/>')
        parts.append(text(left, line + 4, short, _SMALL, "point"))
    return parts
