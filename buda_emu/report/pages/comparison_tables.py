"""Tables of a comparison: programs, epochs, ops and units with their change of cycles, and what netlists say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from buda_emu.report.pages.engine import Cell, Column, Row, Table, figure, name_cell, search_box
from buda_emu.report.perf_against import EpochChange, FigureChange, OpChange, RunComparison, kind_of_change
from buda_emu.report.terminal.text import relative, whole

MOST_CHANGES: Final = 2_000
"""Rows of a table of changed fields."""
_PER_INPUT: Final = "of the cycles of one input"
_COLOURED: Final = 0.5
"""Per cent of change from which on a figure is coloured."""
_INFINITE: Final = 1e12
"""Figure by which the per cent of what only one run has are sorted."""
_ONE_SIDED: Final = ("added", "removed")


@dataclass(frozen=True, slots=True)
class FieldChangeRow:
    """A field of an object with different texts in two netlists, and the subject of the field."""

    kind: str
    name: str
    subject: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Structure:
    """Differences of two netlists in what they say: objects that only one has, as (kind, name), changed fields, and the
    lines of `diff -u` by program. `note` says why there are no cycles."""

    gone: Sequence[tuple[str, str]] = ()
    new: Sequence[tuple[str, str]] = ()
    changes: Sequence[FieldChangeRow] = ()
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    note: str = ""


def change_columns(subject: str = "") -> list[Column]:
    """Return the columns per cent, difference, before and after of cycles; a narrow screen shows the first ones.
    `subject` goes before the first heading.
    """
    if subject:
        first = Column(f"{subject} %", "number")
    else:
        first = Column("%", "number", tip=_PER_INPUT)
    return [first, Column("difference", "number"), Column("before", "number"), Column("after", "number")]


def change_cells(before: float | None, after: float | None) -> list[Cell]:
    """Return the cells per cent, difference, before and after under `change_columns`; slower is red, faster green.
    None is a side that does not have the subject.
    """
    difference = (after or 0.0) - (before or 0.0)
    if before is None or after is None:
        share = Cell("-", _INFINITE * (1 if difference > 0 else -1))
        return [share, Cell(_with_sign(difference), difference), figure(before), figure(after)]
    percent = 0.0
    if before:
        percent = 100 * difference / before
    css = ""
    if abs(percent) >= _COLOURED:
        css = kind_of_change(before, after)
    share = Cell(relative(before, after), percent, css=css)
    return [share, Cell(_with_sign(difference), difference, css=css), figure(before), figure(after)]


def _with_sign(difference: float) -> str:
    """Return a difference of cycles with its sign; 0 has none."""
    text = f"{difference:+,.0f}"
    if text in ("+0", "-0"):
        return "0"
    return text


def _side_css(kind: str) -> str:
    """Return the CSS class of a row whose kind of change is "added" or "removed", "" for any other."""
    if kind in _ONE_SIDED:
        return kind
    return ""


def _link(place: str | None) -> str:
    """Return the link to the part of the page with the anchor `place`, "" for none."""
    if place is None:
        return ""
    return f"#{place}"


def _before_and_after(before: str, after: str) -> str:
    """Return a text before and after; a single one where both are alike or only one exists."""
    if before == after or not before or not after:
        return after or before
    return f"{before} → {after}"


def programs_table(comparison: RunComparison) -> Table | None:
    """Return the table of programs; None for a single one, of which the page has a sentence."""
    if len(comparison.programs) < 2:
        return None
    rows = [Row([name_cell(name), *change_cells(*cycles)]) for name, cycles in comparison.programs.items()]
    return Table([Column("program", "name"), *change_columns("cycles:")], rows, search_box(rows, "find programs"))


def epochs_table(comparison: RunComparison, places: Mapping[str, str]) -> Table | None:
    """Return the table of epochs, those whose cycles changed most first, with links to their parts of the page;
    None for no epochs. `places` holds the anchors of these parts by the names of the graphs.
    """
    columns = [
        Column("graph", "name"),
        *change_columns("all runs"),
        *change_columns("steady"),
        Column("change", choose=True, tip="of the cycles of all runs"),
        Column("why", "words"),
    ]
    has_programs = len({epoch.program for epoch in comparison.epochs}) > 1
    if has_programs:
        columns.append(Column("program", choose=True))
    rows: list[Row] = []
    for epoch in sorted(comparison.epochs, key=lambda epoch: -abs(_epoch_difference(epoch))):
        kind = kind_of_change(epoch.before, epoch.after)
        if kind not in _ONE_SIDED and epoch.cycles_before is not None and epoch.cycles_after is not None:
            kind = kind_of_change(epoch.cycles_before, epoch.cycles_after)
        cells = [
            name_cell(epoch.graphs, _link(places.get(epoch.graphs))),
            *change_cells(epoch.cycles_before, epoch.cycles_after),
            *change_cells(epoch.before, epoch.after),
            Cell(kind, css=kind),
            Cell(epoch.reason),
        ]
        if has_programs:
            cells.append(Cell(epoch.program))
        rows.append(Row(cells, css=_side_css(kind)))
    if not rows:
        return None
    return Table(columns, rows, search_box(rows, "find epochs"))


def _epoch_difference(epoch: EpochChange) -> float:
    """Return the difference of the cycles of all runs, or of one input where they are not stated."""
    if epoch.cycles_before is None and epoch.cycles_after is None:
        return epoch.difference
    return (epoch.cycles_after or 0.0) - (epoch.cycles_before or 0.0)


def ops_table(ops: Sequence[OpChange], places: Mapping[str, str]) -> Table | None:
    """Return the table of ops in their order, with links to the parts of their epochs; None for no ops. `places` is
    as in `epochs_table`.
    """
    if not ops:
        return None
    columns = [
        Column("op", "name"),
        *change_columns(),
        Column("change", choose=True),
        Column("type", choose=True),
        Column("cores", "number", tip="before and after where they differ"),
        Column("epoch", "name", tip="before and after where they differ"),
    ]
    rows: list[Row] = []
    for op in ops:
        cores = _before_and_after(_count(op.cores_before), _count(op.cores_after))
        cells = [
            name_cell(op.name, _link(places.get(op.graphs_after or op.graphs_before))),
            *change_cells(op.before, op.after),
            Cell(op.kind, css=op.kind),
            Cell(op.type),
            Cell(cores, op.cores_after or op.cores_before or 0),
            name_cell(_before_and_after(op.graphs_before, op.graphs_after)),
        ]
        rows.append(Row(cells, css=_side_css(op.kind)))
    return Table(columns, rows, search_box(rows, "find ops"), tall=True)


def _count(value: int | None) -> str:
    """Return a number of cores, "" if it is not stated."""
    if value is None:
        return ""
    return whole(value)


def units_table(units: Sequence[FigureChange]) -> Table | None:
    """Return the table of the units of an epoch that changed; None if none did."""
    if not units:
        return None
    columns = [Column("what", "name"), *change_columns(), Column("kind", choose=True)]
    rows: list[Row] = []
    for unit in units:
        linked_name = ""
        if unit.kind == "op":
            linked_name = unit.name
        cells = [name_cell(unit.name), *change_cells(unit.before, unit.after), Cell(unit.kind)]
        rows.append(Row(cells, linked_name, _side_css(kind_of_change(unit.before, unit.after))))
    return Table(columns, rows, search_box(rows, "find units"), tall=True)


_SUBJECTS: Final = {"placement": "Placement", "formats": "Formats", "values": "Everything else"}


def structure_tables(structure: Structure) -> list[tuple[str, Table, int]]:
    """Return the tables of what differs in the netlists, each with a heading and the number of rows left out."""
    tables: list[tuple[str, Table, int]] = []
    objects = [*(("removed", *entry) for entry in structure.gone), *(("added", *entry) for entry in structure.new)]
    if objects:
        columns = [Column("change", choose=True), Column("kind", choose=True), Column("name", "name")]
        rows = [Row([Cell(css, css=css), Cell(kind), name_cell(name)], css=css) for css, kind, name in objects]
        tables.append(("Only in one of them", Table(columns, rows, search_box(rows, "find names"), tall=True), 0))
    for subject, heading in _SUBJECTS.items():
        changes = [change for change in structure.changes if change.subject == subject]
        if changes:
            tables.append((heading, _fields(changes[:MOST_CHANGES]), max(0, len(changes) - MOST_CHANGES)))
    return tables


def _fields(changes: Iterable[FieldChangeRow]) -> Table:
    """Return the table of changed fields."""
    columns = [
        Column("what", choose=True),
        Column("name", "name"),
        Column("field", choose=True),
        Column("before", "name"),
        Column("after", "name"),
    ]
    rows: list[Row] = []
    for change in changes:
        texts = [name_cell(text or "-") for text in (change.before, change.after)]
        rows.append(Row([Cell(change.kind), name_cell(change.name), Cell(change.field), *texts]))
    return Table(columns, rows, search_box(rows, "find changes"), tall=True)


def program_lines(structure: Structure) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the changed lines of each program by its name, each line with the CSS class of its colour."""
    classes = {"+": "added", "-": "removed", "@": "soft"}
    programs: list[tuple[str, list[tuple[str, str]]]] = []
    for name, lines in structure.programs.items():
        programs.append((name, [(classes.get(line[:1], ""), line) for line in lines]))
    return programs
