"""A sweep of modelled cycles as one page: its chart, all points, and each of them beside the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from buda_emu.report.pages.comparison_tables import change_cells, epochs_table, ops_table
from buda_emu.report.pages.engine import Cell, Column, Row, Table, name_cell, number_cell, pack_part, render, search_box
from buda_emu.report.pages.engine import figure as cell_figure
from buda_emu.report.perf_against import NO_COMPARISON, RunComparison, kind_of_change
from buda_emu.report.sweep import interval_text
from buda_emu.report.terminal.text import number, relative

MOST_OPS: Final = 40
"""Rows of the table of ops of a point."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A point of a sweep: its settings, its row of figures, and how it compares with the first point; NO_COMPARISON for
    the first one, and where one of the two has not all figures."""

    settings: str
    row: Mapping[str, Any]
    comparison: RunComparison = NO_COMPARISON

    @property
    def milliseconds(self) -> float | None:
        """Return the time of all programs, None for a point that could not be modelled."""
        seconds = self.row["seconds"]
        if seconds is None:
            return None
        return 1e3 * seconds


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
    columns = [
        *(Column(axis) for axis in axes),
        Column("%", "number", tip="change of the time against the first point"),
        Column("ms", "number", tip="of all programs"),
        Column("cycles", "number", tip="of all programs"),
        Column("90 %", "number", tip="the cycles lie there on silicon with a probability of 90 %"),
        Column("cycles per input", "number", tip="of the slowest epoch"),
        Column("inputs per second", "number", tip="of the slowest epoch"),
        Column("bottleneck", "words", tip="of the slowest epoch, or why the point has no figures"),
    ]
    rows: list[Row] = []
    for index, point in enumerate(points):
        row = point.row
        link = ""
        if index in places:
            link = f"#{places[index]}"
        cells = [
            *(Cell(row[axis], _sort_key(row[axis]), href=link) for axis in axes),
            change_cells(points[0].milliseconds, point.milliseconds)[0],
            number_cell(number(point.milliseconds), point.milliseconds),
            cell_figure(row["cycles"]),
            number_cell(interval_text(row), row["cycles_low"]),
            cell_figure(row["cycles_per_input"]),
            number_cell(number(row["inputs_per_second"]), row["inputs_per_second"]),
            _reason_cell(row),
        ]
        rows.append(Row(cells))
    return Table(columns, rows, search_box(rows, "find points"))


def _reason_cell(row: Mapping[str, Any]) -> Cell:
    """Return the cell with the bottleneck of a point, or with the whole reason why the point has no figures."""
    if row["problem"]:
        return Cell(row["problem"], css="soft")
    return name_cell(row["bottleneck"])


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
        lead=_time_sentence(first.milliseconds, point.milliseconds),
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
