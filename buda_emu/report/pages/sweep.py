"""A sweep of modelled cycles as one page: its chart, all points, and each of them beside the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from markupsafe import Markup

from buda_emu.report.pages.comparison import change_cells, epochs_table, ops_table
from buda_emu.report.pages.engine import Cell, Table, name_cell, pack_part, page_table, render
from buda_emu.report.perf_against import NO_COMPARISON, RunComparison, kind_of_change
from buda_emu.report.sweep import POINTS, PointFigures, axis_columns, bound_text, milliseconds
from buda_emu.report.terminal.text import number, relative, whole
from buda_emu.support.checker.text import plural
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
    return render(
        "sweep.html",
        title=f"buda-emu perf --sweep: {netlist}",
        facts="",
        command=command,
        chart=Markup(chart),
        points=_points_table(axes, points, places),
        first=first.settings,
        parts=parts,
        note=_missing_points_note(points, len(parts)),
    )


def _missing_points_note(points: Sequence[SweepPoint], opened: int) -> str:
    """Return sentences on points that could not be modelled, and on modelled ones that the page has no part for;
    `opened` is the number that it has. "" if it has all."""
    sentences: list[str] = []
    modelled = [point for point in points if not point.figures.problem]
    if len(modelled) < len(points):
        sentences.append(
            f"{len(points) - len(modelled)} of {plural(len(points), 'point')} could not be modelled: the table says "
            "why."
        )
    others = len(modelled) - 1
    if points[0].figures.problem:
        sentences.append("The first one is among them, so no point is compared with it.")
    elif opened < others:
        sentences.append(
            f"{opened} of the {others} other points that were modelled can be opened below, the first ones; sweep.csv "
            "has the figures of all."
        )
    return " ".join(sentences)


def _points_table(axes: Sequence[str], points: Sequence[SweepPoint], places: Mapping[int, str]) -> Table:
    """Return the table of all points, each with its difference from the first one. `places` holds the anchors of
    the points that have a part of the page, by their index.
    """
    place_of = {id(point.figures): places.get(number, "") for number, point in enumerate(points)}
    first = _milliseconds_per_input(points[0].figures)

    def axis_cell(axis: str, point: PointFigures) -> Cell:
        """Return the cell of a setting, with a link to the part about its point."""
        place = place_of[id(point)]
        return Cell(point.settings[axis], _sort_key(point.settings[axis]), href=f"#{place}" if place else "")

    def change_cell(point: PointFigures) -> Cell:
        """Return the cell of the change of the time for each input against the first point."""
        return change_cells(first, _milliseconds_per_input(point))[0]

    change = Column[PointFigures](
        "",
        float,
        _milliseconds_per_input,
        title="%",
        look="figure",
        tip="change of the time for each input against the first point",
    )
    return page_table(
        Columns(*axis_columns(axes), change, *POINTS.listed),
        [point.figures for point in points],
        "find points",
        cells={"%": change_cell, "bottleneck": _reason_cell, **{axis: partial(axis_cell, axis) for axis in axes}},
    )


def _reason_cell(point: PointFigures) -> Cell:
    """Return the cell with what bounds a point, or with the whole reason why the point has no figures."""
    if point.problem:
        return Cell(point.problem, css="soft")
    return name_cell(bound_text(point))


def _sort_key(text: str) -> float | str:
    """Return the value by which the text of a setting is sorted: a number if it is one, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _point_part(point: SweepPoint, first: SweepPoint) -> Markup:
    """Return the part of the page on how a point compares with the first one."""
    changed_ops = [op for op in point.comparison.ops if op.kind != "same"]
    return render(
        "sweep_point.html",
        lead=_time_sentence(first.figures, point.figures),
        bottleneck=point.comparison.bottleneck,
        epochs=epochs_table(point.comparison, {}),
        ops=ops_table(changed_ops[:MOST_OPS], {}),
        ops_left_out=max(0, len(changed_ops) - MOST_OPS),
    )


def _milliseconds_per_input(point: PointFigures) -> float | None:
    """Return the time of the whole run over its inputs, None for a point without figures."""
    if not point.overall_inputs_per_second:
        return None
    return 1e3 / point.overall_inputs_per_second


def _time_sentence(first: PointFigures, point: PointFigures) -> str:
    """Return the sentence that compares the time of the whole run at a point with that at the first one, for each input
    if they have different numbers of inputs; "" if one has no figures."""
    before = _milliseconds_per_input(first)
    after = _milliseconds_per_input(point)
    if before is None or after is None:
        return ""
    subject = f"The whole run takes {number(milliseconds(point))} ms"
    comparison_of = ""
    figures_before = f"{number(milliseconds(first))} ms"
    if first.inputs != point.inputs:
        subject = f"The whole run takes {number(milliseconds(point))} ms for {whole(point.inputs)} inputs"
        comparison_of = " for each input"
        figures_before = f"{whole(first.inputs)} inputs in {figures_before}"
    kind = kind_of_change(before, after)
    if kind == "same":
        return f"{subject}, as at the first point{comparison_of}."
    word = {"slower": "more", "faster": "less"}[kind]
    share = relative(before, after).lstrip("+-")
    return f"{subject}, {share} % {word}{comparison_of} than at the first point ({figures_before})."
