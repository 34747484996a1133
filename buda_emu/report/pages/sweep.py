"""A sweep of modelled cycles as one page: its chart, all points, and each of them beside the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from buda_emu.report.pages.comparison import change_cells, epochs_table, ops_table
from buda_emu.report.pages.engine import Cell, Column, Row, Table, name_cell, number_cell, pack_part, render, search_box
from buda_emu.report.pages.engine import figure as cell_figure
from buda_emu.report.perf_against import RunComparison, kind_of_change
from buda_emu.report.terminal.text import number, relative

MOST_OPS_OF_POINT: Final = 40
"""Rows of the table of ops of a point of a sweep."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A point of a sweep: its settings, its row of figures, and how it compares with the first point; None for the
    first, for one that could not be modelled and for one without all figures."""

    settings: str
    row: Mapping[str, Any]
    comparison: RunComparison | None = None


def sweep_page(netlist: str, axes: Sequence[str], points: Sequence[SweepPoint], *, chart: str, command: str) -> str:
    """Return the page of a sweep: its chart, all points, and how each compares with the first one."""
    places = {id(point): f"point-{index}" for index, point in enumerate(points) if point.comparison is not None}
    parts = [
        (places[id(point)], point.settings, pack_part(_point_part(point, points[0])), False)
        for point in points
        if point.comparison is not None
    ]
    note = ""
    if len(places) < len(points) - 1:
        note = f"Of {len(points) - 1} points, {len(places)} can be opened below: the first ones that were modelled."
    return render(
        "sweep.html",
        title=f"buda-emu perf --sweep: {netlist}",
        facts="",
        command=command,
        chart=Markup(chart),
        points=_points(axes, points, places),
        first=points[0].settings if points else "",
        parts=parts,
        note=note,
    )


def _points(axes: Sequence[str], points: Sequence[SweepPoint], places: Mapping[int, str]) -> Table:
    """Return the table of all points, each with its difference from the first one."""
    columns = [
        *(Column(axis) for axis in axes),
        Column("%", "number", tip="change of the time against the first point"),
        Column("ms", "number"),
        Column("cycles", "number"),
        Column("cycles per input", "number"),
        Column("inputs per second", "number"),
        Column("bottleneck", "name"),
    ]
    first = points[0].row["seconds"] if points else None
    rows: list[Row] = []
    for point in points:
        row = point.row
        place = places.get(id(point))
        settings = [Cell(str(row[axis]), _sort_key(row[axis])) for axis in axes]
        if place:
            settings[0] = Cell(str(row[axes[0]]), _sort_key(row[axes[0]]), href=f"#{place}")
        milliseconds = 1e3 * row["seconds"] if row["seconds"] is not None else None
        cells = [
            *settings,
            change_cells(first, row["seconds"])[0],
            number_cell(number(milliseconds), milliseconds),
            cell_figure(row["cycles"]),
            cell_figure(row["cycles_per_input"]),
            number_cell(number(row["inputs_per_second"]), row["inputs_per_second"]),
            name_cell(row["problem"] or row["bottleneck"]),
        ]
        rows.append(Row(cells))
    return Table(columns, rows, search_box(rows, "find points"))


def _sort_key(text: str) -> float | str:
    """Return the value by which settings are sorted: a number where the text is one."""
    try:
        return float(text)
    except ValueError:
        return text


def _point_part(point: SweepPoint, first: SweepPoint) -> Markup:
    """Return how a point compares with the first one."""
    comparison = point.comparison
    changed = [op for op in comparison.ops if op.kind != "same"] if comparison is not None else []
    return render(
        "sweep_point.html",
        lead=_time_sentence(first.row["seconds"], point.row["seconds"]),
        bottleneck=comparison.bottleneck if comparison is not None else "",
        epochs=epochs_table(comparison, {}),
        ops=ops_table(changed[:MOST_OPS_OF_POINT], {}),
        ops_left_out=max(0, len(changed) - MOST_OPS_OF_POINT),
    )


def _time_sentence(before: float | None, after: float | None) -> str:
    """Return the sentence about the time of a point and of the first one, whose clocks may differ."""
    if not before or after is None:
        return ""
    texts = [f"{number(1e3 * seconds)} ms" for seconds in (before, after)]
    if kind_of_change(before, after) == "same":
        return f"All programs take {texts[1]}, as at the first point."
    more = "more" if after > before else "less"
    share = relative(before, after).lstrip("+-")
    return f"All programs take {texts[1]}, {share} % {more} than at the first point ({texts[0]})."
