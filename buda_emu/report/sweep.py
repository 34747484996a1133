"""A sweep: its columns, its table for a terminal, and its chart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import hypot, log10
from typing import Any, Final, NamedTuple, Protocol

from buda_emu.performance.timing.epoch.result import HOST_LINK
from buda_emu.report.pictures.axes import tick_text, value_ticks
from buda_emu.report.pictures.grid_svg import clean, fit_text, number, open_chart, text, width_of
from buda_emu.report.terminal.text import column_table, whole
from buda_emu.report.terminal.text import number as number_text
from buda_emu.support.columns import DATA, SHOWN, Column, Columns, figure

_WIDTH: Final = 760.0  # pixels of the picture, the width of a page of text
_HEIGHT: Final = 360.0  # pixels of the picture
_LEFT = 80.0  # pixels for the axis's labels
_RIGHT = 190.0  # pixels for the legend
_TOP = 40.0  # pixels for the titles
_BOTTOM = 50.0  # pixels for the axis below
_COLOURS: Final = ("#4269d0", "#b45309", "#15803d", "#b91c1c", "#7c3aed", "#0e7490", "#a21caf", "#57534e")
_SIZE: Final = 11.0  # pixels of the font
_RADIUS: Final = 4.0  # pixels of a point
_SAME: Final = 1e-9
"""Relative: paces that differ by less are equal."""
_HIDDEN: Final = 2.0
"""Distance below which a dot would hide another one."""
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
        """Cycles per input of the slowest epoch in its steady state."""
        ...

    @property
    def inputs_per_second(self) -> float | None:
        """Inputs per second of the slowest epoch in its steady state."""
        ...

    @property
    def inputs(self) -> int | None:
        """Inputs of the whole run."""
        ...

    @property
    def host_seconds(self) -> float | None:
        """Seconds that the host link takes for all programs at least."""
        ...

    @property
    def overall_seconds(self) -> float | None:
        """Seconds of the whole run: all epochs with their loading, or the host link where that takes longer."""
        ...

    @property
    def overall_cycles_per_input(self) -> float | None:
        """Cycles of the whole run over its inputs."""
        ...

    @property
    def overall_inputs_per_second(self) -> float | None:
        """Inputs over the seconds of the whole run."""
        ...

    @property
    def bottleneck(self) -> str:
        """The bottleneck of the slowest epoch."""
        ...

    @property
    def load_cycles(self) -> float | None:
        """Cycles of all programs in which epochs are loaded."""
        ...

    @property
    def problem(self) -> str:
        """The reason why the point has no figures, "" if it has."""
        ...


def milliseconds(point: PointFigures) -> float | None:
    """Return the time of the whole run, None for a point that could not be modelled."""
    if point.overall_seconds is None:
        return None
    return 1e3 * point.overall_seconds


def load_percent(point: PointFigures) -> float | None:
    """Return the share of the cycles of all programs in which epochs are loaded, in per cent; None for a point that
    could not be modelled."""
    if point.load_cycles is None or not point.cycles:
        return None
    return 100 * point.load_cycles / point.cycles


def bound_text(point: PointFigures) -> str:
    """Return what bounds the whole run of a point: the host link, or else the bottleneck of the slowest epoch; for a
    point without figures the reason why it has none."""
    if point.problem:
        return point.problem
    if (point.host_seconds or 0.0) > (point.seconds or 0.0):
        if point.bottleneck == HOST_LINK:
            return HOST_LINK
        return f"{HOST_LINK} (on the chips: {point.bottleneck})"
    return point.bottleneck


def interval_text(point: PointFigures) -> str:
    """Return the bounds between which the cycles of a point lie on silicon with a probability of 90 %, "-" for a point
    without figures."""
    if point.cycles_low is None:
        return "-"
    return f"{whole(point.cycles_low)} to {whole(point.cycles_high)}"


_INTERVAL: Final = "the cycles lie there on silicon with a probability of 90 %"
_REASON: Final = "the host link or that of the slowest epoch, or why the point has no figures"
_ON_CHIPS: Final = "of all programs on the chips, with loading"
_LOADING: Final = "share of the cycles in which epochs are loaded; the bottleneck has no part in it"
_OVERALL: Final = "of the whole run: all epochs with loading, or the host link where that takes longer"
_STEADY: Final = "of the slowest epoch alone, without loading, other epochs and the host link"
POINTS: Final = Columns[PointFigures](
    figure("cycles", "cycles", lambda point: point.cycles, whole, tip=_ON_CHIPS),
    figure("", "90 %", lambda point: point.cycles_low, shown=interval_text, views=SHOWN, tip=_INTERVAL),
    Column("seconds", float | None, lambda point: point.seconds, views=DATA),
    figure("", "ms", milliseconds, number_text, views=SHOWN, tip=_OVERALL),
    figure("", "cycles per input", lambda point: point.overall_cycles_per_input, whole, views=SHOWN, tip=_OVERALL),
    figure(
        "",
        "inputs per second",
        lambda point: point.overall_inputs_per_second,
        number_text,
        views=SHOWN,
        tip=_OVERALL,
    ),
    Column("cycles_per_input", float | None, lambda point: point.cycles_per_input, views=DATA),
    figure("", "load %", load_percent, number_text, views=SHOWN, tip=_LOADING),
    figure("inputs_per_second", "steady inputs/s", lambda point: point.inputs_per_second, number_text, tip=_STEADY),
    Column(
        "bottleneck",
        str,
        lambda point: point.bottleneck,
        title="bottleneck",
        shown=bound_text,
        look="words",
        tip=_REASON,
    ),
    Column("problem", str, lambda point: point.problem, views=DATA),
    Column("cycles_low", float | None, lambda point: point.cycles_low, views=DATA),
    Column("cycles_high", float | None, lambda point: point.cycles_high, views=DATA),
    Column("inputs", int | None, lambda point: point.inputs, views=DATA),
    Column("host_seconds", float | None, lambda point: point.host_seconds, views=DATA),
    Column("overall_seconds", float | None, lambda point: point.overall_seconds, views=DATA),
    Column("overall_cycles_per_input", float | None, lambda point: point.overall_cycles_per_input, views=DATA),
    Column("overall_inputs_per_second", float | None, lambda point: point.overall_inputs_per_second, views=DATA),
    Column("load_cycles", float | None, lambda point: point.load_cycles, views=DATA),
    Column("steady_cycles_per_input", float | None, lambda point: point.cycles_per_input, views=DATA),
    Column("steady_inputs_per_second", float | None, lambda point: point.inputs_per_second, views=DATA),
    name="Point",
)
"""A point of a sweep, without its axes."""


def axis_columns(axes: Iterable[str]) -> list[Column[PointFigures]]:
    """Return a column for each axis, with the axis's value at a point."""
    return [Column(axis, str, partial(_setting, axis), title=axis, look="figure") for axis in axes]


def _setting(axis: str, point: PointFigures) -> str:
    """Return the value, as text, of an axis of the sweep at a point."""
    return point.settings[axis]


def point_row(point: PointFigures) -> dict[str, Any]:
    """Return a point as a plain dict, with a column for each axis and each figure."""
    return {**point.settings, **POINTS.row(point)}


def sweep_table(points: Sequence[PointFigures], axes: Sequence[str], *, same_work: bool = True) -> str:
    """Return a table of a sweep for a terminal, a row for each point. The quickest points are marked if all have the
    same work to do (`same_work`): an axis such as a loop count would change how much there is."""
    notes: dict[int, str] = {}
    if same_work:
        notes = _notes_of_quickest(points)
    return column_table(Columns(*axis_columns(axes), *POINTS.listed), points, notes=notes)


def _notes_of_quickest(points: Sequence[PointFigures]) -> dict[int, str]:
    """Return a note for each point with the most inputs per second, by its index. The note is about the time if all
    points have equally many inputs; they need not, as a model that is placed for boards of several chips has more of
    them there."""
    paces = {
        number: point.overall_inputs_per_second
        for number, point in enumerate(points)
        if point.overall_inputs_per_second is not None
    }
    note = " (least ms)"
    if len({points[number].inputs for number in paces}) > 1:
        note = " (most inputs per second)"
    quickest = max(paces.values(), default=0.0)
    return {number: note for number, pace in paces.items() if pace >= quickest * (1 - _SAME)}


def sweep_chart(
    rows: Sequence[Mapping[str, Any]],
    axes: Sequence[str],
    title: str,
    measure: str = "overall_inputs_per_second",
    words: str = "inputs per second of the whole run, modelled",
    in_page: bool = False,
) -> str:
    """Return a chart in SVG: the figure `measure` of each row over the last axis, with a line for each combination of
    the other axes. `words` describes the measure. Rows without a value are left out. A line that lies on another one is
    dashed and its name says so, and a dot that lies on another one is a ring around it. `in_page` leaves out colours,
    which a page has."""
    along = axes[-1]
    ticks = list(dict.fromkeys(row[along] for row in rows))
    lines = _points_by_line(rows, axes, measure)
    places = _x_of_values(ticks)
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
    for tick, x in _labels_that_fit(places).items():
        parts.append(text(x, _HEIGHT - _BOTTOM + 18, tick, _SIZE, "soft", "middle"))
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, along, 12, "", "middle"))
    unit = words.partition(" of ")[0].partition(",")[0]
    drawn_lines: list[_Line] = []
    for index, (name, points) in enumerate(lines.items()):
        line = _Line(name, [_Dot(places[tick], scale.y(value), tick, value) for tick, value in points])
        parts += _line_svg(line, drawn_lines, index, unit)
        drawn_lines.append(line)
    return "".join([*parts, "</svg>"])


def _points_by_line(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], measure: str
) -> dict[str, list[tuple[str, float]]]:
    """Return the points of each line of a chart, by the line's name ("" for a single one): value of the last axis, and
    value of the measure."""
    lines: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if row[measure]:
            name = ", ".join(f"{axis}={row[axis]}" for axis in axes[:-1])
            lines.setdefault(name, []).append((row[axes[-1]], row[measure]))
    return lines


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


def _labels_that_fit(places: Mapping[str, float]) -> dict[str, float]:
    """Return the places of those labels of the horizontal axis that do not touch the label to their left."""
    readable: dict[str, float] = {}
    end = -1.0
    for tick, x in sorted(places.items(), key=lambda place: place[1]):
        half = width_of(tick, _SIZE) / 2
        if x - half > end:
            readable[tick] = x
            end = x + half + 4
    return readable


def _x_of_values(ticks: Sequence[str]) -> dict[str, float]:
    """Return the x of each value of the horizontal axis. Numbers are spaced by their value, logarithmically if they
    span a factor of more than 8; other values evenly."""
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


class _Dot(NamedTuple):
    """A point of a line in the chart, with the value of the axis and that of the measure."""

    x: float
    y: float
    tick: str
    value: float

    def hides(self, other: "_Dot") -> bool:
        """Return whether this dot would hide another one."""
        return hypot(self.x - other.x, self.y - other.y) < _HIDDEN


class _Line(NamedTuple):
    """The line of one combination of axes; `name` is "" for a single one."""

    name: str
    dots: Sequence[_Dot]

    def covers(self, other: "_Line") -> bool:
        """Return whether this line would hide `other`: their dots lie at the same places."""
        return len(self.dots) == len(other.dots) and all(
            dot.hides(other_dot) for dot, other_dot in zip(self.dots, other.dots, strict=True)
        )


def _line_svg(line: _Line, earlier: Sequence[_Line], index: int, unit: str) -> list[str]:
    """Return the SVG of a line, of its points with tooltips, and of its entry in the legend. `earlier` are the lines
    that were drawn before; `index` chooses the colour; `unit` is that of the values."""
    colour = _COLOURS[index % len(_COLOURS)]
    path = " ".join(f"{number(dot.x)},{number(dot.y)}" for dot in sorted(line.dots))
    covered = next((other for other in earlier if line.covers(other)), None)
    dashes = ""
    name = line.name
    if covered is not None:
        dashes = ' stroke-dasharray="6 6"'
        name = f"{name} (as {covered.name.rpartition('=')[2]})"
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>']
    below = list(chain.from_iterable(other.dots for other in earlier))
    for dot in line.dots:
        tip = clean(f"{line.name} {dot.tick}: {number_text(dot.value)} {unit}".strip())
        parts.append(_dot_svg(dot, sum(dot.hides(other) for other in below), colour, tip))
    y = _TOP + 8 + 16 * index
    if name and y < _HEIGHT - _BOTTOM:
        left = _WIDTH - _RIGHT + 12
        parts.append(f'<rect x="{number(left)}" y="{number(y - 8)}" width="9" height="9" fill="{colour}"/>')
        parts.append(text(left + 14, y, fit_text(name, _RIGHT - 30, _SIZE), _SIZE))
    return parts


def _dot_svg(dot: _Dot, hidden: int, colour: str, tip: str) -> str:
    """Return the SVG of a dot with a tooltip; if it would hide `hidden` other dots, it is a ring around them."""
    look = f'r="{number(_RADIUS)}" fill="{colour}"'
    if hidden:
        look = f'r="{number(_RADIUS + 3 * hidden)}" fill="none" stroke="{colour}" stroke-width="2"'
    return f'<circle cx="{number(dot.x)}" cy="{number(dot.y)}" {look}><title>{tip}</title></circle>'
