"""A sweep of modelled cycles as one page: its chart, all points, and each of them beside the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from markupsafe import Markup

from buda_emu.report.pages.comparison_tables import change_cells, epochs_table, ops_table
from buda_emu.report.pages.engine import Cell, Table, name_cell, pack_part, page_table, render
from buda_emu.report.perf_against import NO_COMPARISON, RunComparison, kind_of_change
from buda_emu.report.sweep import POINTS, PointFigures, axis_columns, milliseconds
from buda_emu.report.terminal.text import number, relative
from buda_emu.support.columns import Column, Columns

MOST_OPS: Final = 40
"""Rows of the table of ops of a point."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A point of a sweep: its settings as text, its figures, and how it compares with the first point; NO_COMPARISON
    for the first one, and where one of the two has not all figures."""

    settings: str
    figures: PointFigures
    comparison: RunComparison = NO_COMPARISON


def sweep_page(netlist: str, axes: Sequence[str], points: Sequence[SweepPoint], *, chart: str, command: str) -> str:
    """Return the HTML page of a sweep: its chart, all points, and how each compares with the first one. `axes` are
    the names of what varies, `chart` is SVG, and `command` the command line that makes the page again.
    """
    first = points[0]
    places: dict[int, str] = {}
    parts: list[tuple[str, str, Markup, bool]] = []
    for index, point in enumerate(points):
        if point.comparison is not NO_COMPARISON:
            places[index] = f"point-{index}"
            parts.append((places[index], point.settings, pack_part(_point_part(point, first)), False))
    note = ""
    if len(parts) < len(points) - 1:
        note = f"Of {len(points) - 1} points, {len(parts)} can be opened below: the first ones that were modelled."
    return render(
        "sweep.html",
        title=f"buda-emu perf --sweep: {netlist}",
        facts="",
        command=command,
        chart=Markup(chart),
        points=_points_table(axes, points, places),
        first=first.settings,
        parts=parts,
        note=note,
    )


def _points_table(axes: Sequence[str], points: Sequence[SweepPoint], places: Mapping[int, str]) -> Table:
    """Return the table of all points, each with its difference from the first one. `places` holds the anchors of
    the points that have a part of the page, by their index.
    """
    place_of = {id(point.figures): places.get(number, "") for number, point in enumerate(points)}
    first = milliseconds(points[0].figures)

    def axis_cell(axis: str, point: PointFigures) -> Cell:
        """Return the cell of a setting, with a link to the part about its point."""
        place = place_of[id(point)]
        return Cell(point.settings[axis], _sort_key(point.settings[axis]), href=f"#{place}" if place else "")

    def change_cell(point: PointFigures) -> Cell:
        """Return the cell of the change of the time against the first point."""
        return change_cells(first, milliseconds(point))[0]

    change = Column[PointFigures](
        "", float, milliseconds, title="%", look="figure", tip="change of the time against the first point"
    )
    return page_table(
        Columns(*axis_columns(axes), change, *POINTS.listed),
        [point.figures for point in points],
        "find points",
        cells={"%": change_cell, "bottleneck": _reason_cell, **{axis: partial(axis_cell, axis) for axis in axes}},
    )


def _reason_cell(point: PointFigures) -> Cell:
    """Return the cell with the bottleneck of a point, or with the whole reason why the point has no figures."""
    if point.problem:
        return Cell(point.problem, css="soft")
    return name_cell(point.bottleneck)


def _sort_key(text: str) -> float | str:
    """Return the value by which the text of a setting is sorted: a number where it is one, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _point_part(point: SweepPoint, first: SweepPoint) -> Markup:
    """Return the part of the page on how a point compares with the first one."""
    changed_ops = [op for op in point.comparison.ops if op.kind != "same"]
    return render(
        "sweep_point.html",
        lead=_time_sentence(milliseconds(first.figures), milliseconds(point.figures)),
        bottleneck=point.comparison.bottleneck,
        epochs=epochs_table(point.comparison, {}),
        ops=ops_table(changed_ops[:MOST_OPS], {}),
        ops_left_out=max(0, len(changed_ops) - MOST_OPS),
    )


def _time_sentence(before: float | None, after: float | None) -> str:
    """Return the sentence about the milliseconds of a point and of the first one, whose clocks may differ."""
    if not before or after is None:
        return ""
    kind = kind_of_change(before, after)
    if kind == "same":
        return f"All programs take {number(after)} ms, as at the first point."
    word = {"slower": "more", "faster": "less"}[kind]
    share = relative(before, after).lstrip("+-")
    return f"All programs take {number(after)} ms, {share} % {word} than at the first point ({number(before)} ms)."
