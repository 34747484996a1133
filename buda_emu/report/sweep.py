"""A sweep: its columns, its table for a terminal, and its chart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log10
from typing import Any, Final, Protocol

from buda_emu.report.pictures.axes import tick_text, value_ticks
from buda_emu.report.pictures.grid_svg import clean, fit_text, number, open_chart, text, width_of
from buda_emu.report.terminal.text import column_table, whole
from buda_emu.report.terminal.text import number as number_text
from buda_emu.support.columns import DATA, SHOWN, Column, Columns, figure

_WIDTH: Final = 760.0
_HEIGHT: Final = 360.0
_LEFT = 80.0
_RIGHT = 190.0
_TOP = 40.0
_BOTTOM = 50.0
_COLOURS: Final = ("#4269d0", "#b45309", "#15803d", "#b91c1c", "#7c3aed", "#0e7490", "#a21caf", "#57534e")
_SIZE: Final = 11.0
_TIME: Final = "seconds"
_SAME: Final = 1e-3
"""Relative: values that differ by less look the same in a chart."""
_FAR_MORE: Final = 3.0
"""How many times as much the time has to change as the pace to be drawn in its place."""
_STYLE: Final = (
    "text{font-family:ui-monospace,monospace;fill:#222}.soft{fill:#555}line{stroke:#ccc}"
    "@media (prefers-color-scheme:dark){svg{background:#16181c}text{fill:#eee}.soft{fill:#bbb}line{stroke:#444}}"
)


class PointFigures(Protocol):
    """The figures of a point of a sweep that tables show (`buda_emu.app.api.sweep.Point`)."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The value of each axis."""
        ...

    @property
    def cycles(self) -> float | None:
        """Cycles of all programs, None for a point that cannot be modelled."""
        ...

    @property
    def seconds(self) -> float | None:
        """Seconds of all programs."""
        ...

    @property
    def cycles_low(self) -> float | None:
        """The lower bound of the cycles on silicon, with a probability of 90 %."""
        ...

    @property
    def cycles_high(self) -> float | None:
        """The upper bound of the cycles on silicon."""
        ...

    @property
    def cycles_per_input(self) -> float | None:
        """Cycles per input of the slowest epoch."""
        ...

    @property
    def inputs_per_second(self) -> float | None:
        """Inputs per second of the slowest epoch."""
        ...

    @property
    def bottleneck(self) -> str:
        """The bottleneck of the slowest epoch."""
        ...

    @property
    def problem(self) -> str:
        """The reason why the point has no figures, "" if it has."""
        ...


def milliseconds(point: PointFigures) -> float | None:
    """Return the time of all programs, None for a point that could not be modelled."""
    if point.seconds is None:
        return None
    return 1e3 * point.seconds


def interval_text(point: PointFigures) -> str:
    """Return the bounds between which the cycles of a point lie on silicon with a probability of 90 %, "-" for a point
    without figures."""
    if point.cycles_low is None:
        return "-"
    return f"{whole(point.cycles_low)} to {whole(point.cycles_high)}"


_INTERVAL: Final = "the cycles lie there on silicon with a probability of 90 %"
_REASON: Final = "of the slowest epoch, or why the point has no figures"
_SLOWEST: Final = "of the slowest epoch"
POINTS: Final = Columns[PointFigures](
    figure("cycles", "cycles", lambda point: point.cycles, whole, tip="of all programs"),
    figure("", "90 %", lambda point: point.cycles_low, shown=interval_text, views=SHOWN, tip=_INTERVAL),
    Column("seconds", float | None, lambda point: point.seconds, views=DATA),
    figure("", "ms", milliseconds, number_text, views=SHOWN, tip="of all programs"),
    figure("cycles_per_input", "cycles per input", lambda point: point.cycles_per_input, whole, tip=_SLOWEST),
    figure("inputs_per_second", "inputs per second", lambda point: point.inputs_per_second, number_text, tip=_SLOWEST),
    Column(
        "bottleneck",
        str,
        lambda point: point.bottleneck,
        title="bottleneck",
        shown=lambda point: point.problem or point.bottleneck,
        look="words",
        tip=_REASON,
    ),
    Column("problem", str, lambda point: point.problem, views=DATA),
    Column("cycles_low", float | None, lambda point: point.cycles_low, views=DATA),
    Column("cycles_high", float | None, lambda point: point.cycles_high, views=DATA),
    name="Point",
)
"""A point of a sweep, without its axes."""


def axis_columns(axes: Iterable[str]) -> list[Column[PointFigures]]:
    """Return a column for each axis."""
    return [Column(axis, str, partial(_setting, axis), title=axis, look="figure") for axis in axes]


def _setting(axis: str, point: PointFigures) -> str:
    """Return the value of an axis at a point."""
    return point.settings[axis]


def point_row(point: PointFigures) -> dict[str, Any]:
    """Return a point as a plain dict, with a column for each axis and each figure."""
    return {**point.settings, **POINTS.row(point)}


def sweep_table(points: Sequence[PointFigures], axes: Sequence[str], *, same_work: bool = True) -> str:
    """Return a table of a sweep for a terminal, a row for each point; that of the least time is marked, unless the
    points differ in how much there is to do (`same_work`). `axes` are the names of what varies.
    """
    best = None
    if same_work:
        best = min((point.seconds for point in points if point.seconds is not None), default=None)
    notes = {
        number: " (least ms)"
        for number, point in enumerate(points)
        if point.seconds is not None and point.seconds == best
    }
    return column_table(Columns(*axis_columns(axes), *POINTS.listed), points, notes=notes)


def sweep_chart(
    rows: Sequence[Mapping[str, Any]],
    axes: Sequence[str],
    title: str,
    measure: str = "inputs_per_second",
    words: str = "inputs per second of the slowest epoch, modelled",
    in_page: bool = False,
) -> str:
    """Return a chart in SVG: a measure over the last axis, with a line for each combination of the other axes.

    `words` describes the measure. If the time of all programs changes far more along the axis, it is drawn in its
    place. Rows without a value are left out. `in_page` leaves out colours, which a page has.
    """
    along = axes[-1]
    measure, words = _choose_measure(rows, axes, measure, words)
    ticks = list(dict.fromkeys(row[along] for row in rows))
    lines = _lines(rows, axes, measure)
    places = _places(ticks)
    drawn: list[float] = []
    for points in lines.values():
        drawn += [value for _, value in points]
    values = value_ticks(drawn)
    scale = _Scale(values[0], values[-1])
    parts = [open_chart(_WIDTH, _HEIGHT, title).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)]
    if not in_page:
        parts.append(f"<style>{_STYLE}</style>")
    parts.append(text(_LEFT, 18, fit_text(title, _WIDTH - _LEFT, 13), 13))
    parts.append(text(_LEFT, 32, words, _SIZE, "soft"))
    parts += _value_lines(values, scale)
    for tick, x in _readable(places).items():
        parts.append(text(x, _HEIGHT - _BOTTOM + 18, tick, _SIZE, "soft", "middle"))
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, along, 12, "", "middle"))
    unit = words.partition(" of ")[0].partition(",")[0]
    for index, (name, points) in enumerate(lines.items()):
        parts += _line(name, [(places[tick], scale.y(value), tick, value) for tick, value in points], index, unit)
    return "".join([*parts, "</svg>"])


def _lines(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], measure: str) -> dict[str, list[tuple[str, float]]]:
    """Return the points of each line of a chart by its name: value of the last axis and of the measure, a time in
    milliseconds."""
    factor = 1.0
    if measure == _TIME:
        factor = 1e3
    lines: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if row[measure]:
            name = ", ".join(f"{axis}={row[axis]}" for axis in axes[:-1])
            lines.setdefault(name, []).append((row[axes[-1]], factor * row[measure]))
    return lines


def _choose_measure(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], measure: str, words: str
) -> tuple[str, str]:
    """Return the measure to draw and its description: the time of all programs if it changes far more along the last
    axis."""
    change = _largest_change(rows, axes, measure)
    change_of_time = _largest_change(rows, axes, _TIME)
    if change_of_time <= max(_SAME, _FAR_MORE * change):
        return measure, words
    pace = words.partition(" of ")[0]
    if change <= _SAME:
        return _TIME, f"ms of all programs, modelled ({pace}: the same for every {axes[-1]})"
    return _TIME, f"ms of all programs, modelled ({pace}: {100 * change:.1f} % apart at most)"


def _largest_change(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], measure: str) -> float:
    """Return by which share of its greatest value a measure differs at most along the last axis, while the other axes
    stay as they are."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row.get(measure):
            values.setdefault(tuple(row[axis] for axis in axes[:-1]), []).append(row[measure])
    return max(((max(line) - min(line)) / max(line) for line in values.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class _Scale:
    """The values at the lower and the upper end of the vertical axis."""

    low: float
    high: float

    def y(self, value: float) -> float:
        """Return the y at which a value stands in the chart."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - self.low) / (self.high - self.low)


def _value_lines(values: Sequence[float], scale: _Scale) -> Iterator[str]:
    """Yield a horizontal line at each of these values, with its label, and a note if the axis does not begin at 0."""
    for value in values:
        y = scale.y(value)
        yield f'<line x1="{number(_LEFT)}" x2="{number(_WIDTH - _RIGHT)}" y1="{number(y)}" y2="{number(y)}"/>'
        yield text(_LEFT - 6, y + 4, tick_text(value), _SIZE, "soft", "end")
    if scale.low:
        yield text(_WIDTH - _RIGHT + 12, scale.y(scale.low) + 4, "axis does not begin at 0", _SIZE, "soft")


def _readable(places: Mapping[str, float]) -> dict[str, float]:
    """Return the places of those labels of the horizontal axis that do not touch the one before."""
    readable: dict[str, float] = {}
    end = -1.0
    for tick, x in sorted(places.items(), key=lambda place: place[1]):
        half = width_of(tick, _SIZE) / 2
        if x - half > end:
            readable[tick] = x
            end = x + half + 4
    return readable


def _places(ticks: Sequence[str]) -> dict[str, float]:
    """Return the x of each value of an axis. Numbers are spaced by their value, logarithmically if they span a factor
    of more than 8; other values evenly."""
    width = _WIDTH - _LEFT - _RIGHT
    try:
        values = [float(tick) for tick in ticks]
    except ValueError:
        values = [float(index) for index in range(len(ticks))]
    if min(values) > 0 and max(values) / min(values) > 8:
        values = [log10(value) for value in values]
    low = min(values)
    span = (max(values) - min(values)) or 1.0
    return {tick: _LEFT + width * (value - low) / span for tick, value in zip(ticks, values, strict=True)}


def _line(name: str, points: Sequence[tuple[float, float, str, float]], index: int, unit: str) -> list[str]:
    """Return the SVG of the line of one combination of axes, its points with tooltips, and its entry in the legend.
    A point is x, y, the value of the axis and that of the measure; `index` chooses the colour.
    """
    colour = _COLOURS[index % len(_COLOURS)]
    path = " ".join(f"{number(x)},{number(y)}" for x, y, _, _ in sorted(points))
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for x, y, tick, value in points:
        tip = clean(f"{name} {tick}: {number_text(value)} {unit}".strip())
        parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="4" fill="{colour}"><title>{tip}</title></circle>')
    y = _TOP + 8 + 16 * index
    if name and y < _HEIGHT - _BOTTOM:
        left = _WIDTH - _RIGHT + 12
        parts.append(f'<rect x="{number(left)}" y="{number(y - 8)}" width="9" height="9" fill="{colour}"/>')
        parts.append(text(left + 14, y, fit_text(name, _RIGHT - 30, _SIZE), _SIZE))
    return parts
