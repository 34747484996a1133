"""Two runs or netlists beside each other as one page: what limits them, their epochs and ops, and both core grids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.report.pages.engine import (
    Cell,
    Column,
    Row,
    Table,
    as_script,
    name_cell,
    pack_part,
    render,
    search_box,
)
from buda_emu.report.pages.engine import figure as cell_figure
from buda_emu.report.perf_against import EpochChange, FigureChange, OpChange, RunComparison, kind_of_change
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import relative, whole
from buda_emu.support.checker.text import plural

MOST_EPOCHS: Final = 24
"""Number of epochs with both pictures in the page; the tables have all epochs."""
MOST_OPS: Final = 3_000
"""Rows of the table of ops, those with the greatest change first."""
MOST_CHANGES: Final = 2_000
"""Rows of a table of changed fields."""
MOST_UNITS: Final = 100
"""Rows of the table of an epoch's units that changed."""
_PER_INPUT: Final = "of the cycles of one input"
_FEWER: Final = 0.5  # per cent: smaller changes are not coloured


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the name of its file, and its netlist, None if only its figures are known."""

    name: str
    netlist: Netlist | None = None


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


def comparison_page(
    before: Side,
    after: Side,
    comparison: RunComparison | None,
    *,
    title: str,
    command: str,
    structure: Structure | None = None,
) -> str:
    """Return the page of two runs or netlists. Without a comparison it has no figures; `structure` adds the differences
    of the netlists themselves."""
    pairs = _epoch_pairs(before.netlist, after.netlist)
    ops = comparison.ops if comparison is not None else ()
    changed = {epoch.graphs: epoch for epoch in comparison.epochs} if comparison is not None else {}
    order = sorted(pairs, key=lambda graphs: -_importance(changed.get(graphs)))
    shown = order[:MOST_EPOCHS]
    places = {graphs: f"epoch-{index}" for index, graphs in enumerate(shown)}
    marks = _marks(before.netlist, after.netlist)
    changes_by_op = {op.name: op for op in ops}
    parts: list[tuple[str, str, Markup, bool]] = []
    for index, graphs in enumerate(shown):
        pictures = [
            _picture(side, epoch, changes_by_op, marks, f"-{index}{letter}")
            for side, epoch, letter in zip((before, after), pairs[graphs], "ab", strict=True)
        ]
        parts.append((places[graphs], graphs, pack_part(_epoch_part(changed.get(graphs), pictures)), index == 0))
    left_out = len(order) - len(shown)
    return render(
        "comparison.html",
        title=title,
        facts="",
        command=command,
        sides=[("before", before.name), ("after", after.name)],
        lead=_lead_sentence(comparison),
        bottleneck=comparison.bottleneck if comparison is not None else "",
        conditions=comparison.conditions if comparison is not None else (),
        note=structure.note if structure is not None else "",
        programs=_programs(comparison),
        epochs=epochs_table(comparison, places),
        ops=ops_table(ops[:MOST_OPS], places),
        ops_left_out=max(0, len(ops) - MOST_OPS),
        structure=_structure_tables(structure) if structure is not None else (),
        unfolded=comparison is None,
        program_lines=_program_lines(structure),
        parts=parts,
        pictures_note=_pictures_note(before, after, left_out),
        index=as_script(_op_index((before, after), pairs, places)),
    )


def _importance(epoch: EpochChange | None) -> float:
    """Return the cycles by which epochs are ordered."""
    if epoch is None:
        return 0.0
    known = [cycles for cycles in (epoch.cycles_before, epoch.cycles_after) if cycles is not None]
    return max(known, default=max(epoch.before or 0.0, epoch.after or 0.0))


_Pair = tuple[TemporalGraph | None, TemporalGraph | None]


def _epoch_pairs(before: Netlist | None, after: Netlist | None) -> dict[str, _Pair]:
    """Return the temporal graphs of both netlists by the names of their graphs; None where a netlist lacks one."""
    left = {" + ".join(epoch.graphs): epoch for epoch in before.temporal_graphs} if before is not None else {}
    right = {" + ".join(epoch.graphs): epoch for epoch in after.temporal_graphs} if after is not None else {}
    return {graphs: (left.get(graphs), right.get(graphs)) for graphs in dict.fromkeys((*right, *left))}


def _marks(before: Netlist | None, after: Netlist | None) -> dict[str, str]:
    """Return which ops only one of two netlists has; none unless both are known."""
    if before is None or after is None:
        return {}
    marks = {name: "removed" for name in before.ops if name not in after.ops}
    return marks | {name: "added" for name in after.ops if name not in before.ops}


def _picture(
    side: Side, epoch: TemporalGraph | None, ops: Mapping[str, OpChange], marks: Mapping[str, str], mark: str
) -> Markup | None:
    """Draw an epoch of one side with the cycles of its ops; None if the side has no such epoch or no netlist."""
    if side.netlist is None or epoch is None:
        return None
    is_after = mark.endswith("b")
    names = [op.name for op in _ops_of(side.netlist, epoch)]
    changes = {name: ops[name] for name in names if name in ops}
    values = {name: _box_lines(change, is_after) for name, change in changes.items()}
    notes = {name: _note(change) for name, change in changes.items()}
    svg = grid_svg(side.netlist, epochs=[epoch.id], notes=notes, mark=mark, values=values, changes=marks)
    return Markup(svg)


def _box_lines(change: OpChange, is_after: bool) -> tuple[str, ...]:
    """Return the lines that a box has in place of shape and format: what changed, then the cycles."""
    cycles = change.after if is_after else change.before
    line = f"{whole(cycles)} cycles"
    if change.before is None or change.after is None:
        return change.kind, line
    if is_after and change.kind != "same":
        return f"{relative(change.before, change.after)} %", line
    return (line,)


def _note(change: OpChange) -> str:
    """Return the sentence of an op's tooltip."""
    parts = [f"{whole(change.before)} cycles before, {whole(change.after)} after"]
    if change.graphs_before and change.graphs_after and change.graphs_before != change.graphs_after:
        parts.append(f"moved from {change.graphs_before} to {change.graphs_after}")
    if change.cores_before != change.cores_after and change.cores_before and change.cores_after:
        parts.append(f"on {plural(change.cores_before, 'core')} before, {change.cores_after} after")
    return "; ".join(parts)


def _epoch_part(change: EpochChange | None, pictures: Sequence[Markup | None]) -> Markup:
    """Return the part of the page about one epoch: both pictures, and its units that changed."""
    return render(
        "compared_epoch.html",
        sentence=_epoch_sentence(change),
        pictures=list(zip(("before", "after"), pictures, strict=True)),
        units=_units(change.units) if change is not None and change.units else None,
        left_out=max(0, len(change.units) - MOST_UNITS) if change is not None else 0,
    )


def _epoch_sentence(change: EpochChange | None) -> str:
    """Return what changed in an epoch, and why."""
    if change is None:
        return ""
    if change.before is None or change.after is None:
        return change.reason
    figures = f"{whole(change.before)} cycles of an input before, {whole(change.after)} after"
    return f"{figures}: {change.reason}" if change.reason else f"{figures}: nothing changed"


def _lead_sentence(comparison: RunComparison | None) -> str:
    """Return the sentence about the cycles of all programs that both runs have."""
    if comparison is None or not comparison.programs:
        return ""
    before = sum(cycles for cycles, _ in comparison.programs.values())
    after = sum(cycles for _, cycles in comparison.programs.values())
    programs = "All programs take" if len(comparison.programs) > 1 else "The program takes"
    if kind_of_change(before, after) == "same":
        return f"{programs} {whole(after)} cycles, as before."
    more = "more" if after > before else "fewer"
    share = relative(before, after).lstrip("+-")
    return f"{programs} {whole(after)} cycles, {share} % {more} than before ({whole(before)})."


def _change_columns(what: str = "") -> list[Column]:
    """Return the columns per cent, difference, before and after of cycles; a narrow screen shows the first ones."""
    return [
        Column(f"{what} %".strip(), "number", tip=_PER_INPUT if not what else ""),
        Column("difference", "number"),
        Column("before", "number"),
        Column("after", "number"),
    ]


def change_cells(before: float | None, after: float | None) -> list[Cell]:
    """Return the cells per cent, difference, before and after; slower is red, faster green."""
    cells = [cell_figure(before), cell_figure(after)]
    if before is None or after is None:
        known = (after or 0.0) - (before or 0.0)
        return [Cell("-", _signed_infinity(known)), Cell(_signed(known), known), *cells]
    difference = after - before
    share = 100 * difference / before if before else 0.0
    css = kind_of_change(before, after) if abs(share) >= _FEWER else ""
    return [Cell(relative(before, after), share, css=css), Cell(_signed(difference), difference, css=css), *cells]


def _signed(difference: float) -> str:
    """Return a difference of cycles with its sign; 0 has none."""
    text = f"{difference:+,.0f}"
    return "0" if text in ("+0", "-0") else text


def _signed_infinity(value: float) -> float:
    """Return a per cent figure for the sorting of what was added or removed."""
    return 1e12 if value > 0 else -1e12


def _programs(comparison: RunComparison | None) -> Table | None:
    """Return the table of programs, if there are several."""
    if comparison is None or len(comparison.programs) < 2:
        return None
    rows = [Row([name_cell(name), *change_cells(*cycles)]) for name, cycles in comparison.programs.items()]
    return Table([Column("program", "name"), *_change_columns("cycles:")], rows, search_box(rows, "find programs"))


def epochs_table(comparison: RunComparison | None, places: Mapping[str, str]) -> Table | None:
    """Return the table of epochs, those whose cycles changed most first."""
    if comparison is None:
        return None
    columns = [
        Column("graph", "name"),
        *_change_columns("all runs"),
        *_change_columns("per input"),
        Column("change", choose=True),
        Column("why", "words"),
    ]
    several = len({epoch.program for epoch in comparison.epochs}) > 1
    if several:
        columns.append(Column("program", choose=True))
    rows: list[Row] = []
    for epoch in sorted(comparison.epochs, key=lambda epoch: -abs(_epoch_difference(epoch))):
        kind = kind_of_change(epoch.before, epoch.after)
        href = f"#{places[epoch.graphs]}" if epoch.graphs in places else ""
        cells = [
            name_cell(epoch.graphs, href),
            *change_cells(epoch.cycles_before, epoch.cycles_after),
            *change_cells(epoch.before, epoch.after),
            Cell(kind, css=kind),
            Cell(epoch.reason),
            *([Cell(epoch.program)] if several else ()),
        ]
        rows.append(Row(cells, css=kind if kind in ("added", "removed") else ""))
    return Table(columns, rows, search_box(rows, "find epochs"))


def _epoch_difference(epoch: EpochChange) -> float:
    if epoch.cycles_before is None and epoch.cycles_after is None:
        return epoch.difference
    return (epoch.cycles_after or 0.0) - (epoch.cycles_before or 0.0)


def ops_table(ops: Sequence[OpChange], places: Mapping[str, str]) -> Table | None:
    """Return the table of ops, those whose cycles changed most first."""
    if not ops:
        return None
    columns = [
        Column("op", "name"),
        *_change_columns(),
        Column("change", choose=True),
        Column("type", choose=True),
        Column("cores", "number", tip="before and after where they differ"),
        Column("epoch", "name", tip="before and after where they differ"),
    ]
    rows: list[Row] = []
    for op in ops:
        graphs = op.graphs_after or op.graphs_before
        href = f"#{places[graphs]}" if graphs in places else ""
        cells = [
            name_cell(op.name, href),
            *change_cells(op.before, op.after),
            Cell(op.kind, css=op.kind),
            Cell(op.type),
            Cell(_both(_count(op.cores_before), _count(op.cores_after)), op.cores_after or op.cores_before or 0),
            name_cell(_both(op.graphs_before, op.graphs_after)),
        ]
        rows.append(Row(cells, css=op.kind if op.kind in ("added", "removed") else ""))
    return Table(columns, rows, search_box(rows, "find ops"), tall=True)


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _both(before: str, after: str) -> str:
    """Return a text before and after; one of them where they are alike or only one is known."""
    if before == after or not before or not after:
        return after or before
    return f"{before} → {after}"


def _units(units: Sequence[FigureChange]) -> Table:
    """Return the table of the units of an epoch that changed."""
    columns = [Column("what", "name"), *_change_columns(), Column("kind", choose=True)]
    rows = [
        Row(
            [name_cell(unit.name), *change_cells(unit.before, unit.after), Cell(unit.kind)],
            unit.name if unit.kind == "op" else "",
            _css_of_unit(unit),
        )
        for unit in units[:MOST_UNITS]
    ]
    return Table(columns, rows, search_box(rows, "find units"), tall=True)


def _css_of_unit(unit: FigureChange) -> str:
    kind = kind_of_change(unit.before, unit.after)
    return kind if kind in ("added", "removed") else ""


def _pictures_note(before: Side, after: Side, left_out: int) -> str:
    """Return which pictures the page does not have, and why."""
    missing = [side.name for side in (before, after) if side.netlist is None]
    notes = [f"{name} holds figures of a run and no placement: there is no picture of it." for name in missing]
    if left_out:
        notes.append(f"{plural(left_out, 'epoch')} without pictures here: the tables have every figure.")
    return " ".join(notes)


def _op_index(
    sides: Sequence[Side], pairs: Mapping[str, _Pair], places: Mapping[str, str]
) -> list[tuple[str, str, str, str]]:
    """Return the ops of both sides with the part of the page that shows them, for the search."""
    index: dict[tuple[str, str], tuple[str, str, str, str]] = {}
    for graphs, place in places.items():
        for side, epoch in zip(sides, pairs[graphs], strict=True):
            for op in _ops_of(side.netlist, epoch):
                index[op.name, graphs] = (op.name, op.type, place, graphs)
    return list(index.values())


def _ops_of(netlist: Netlist | None, epoch: TemporalGraph | None) -> Iterator[Op]:
    """Yield the ops of an epoch; none if the side has no such epoch or no netlist."""
    if netlist is None or epoch is None:
        return
    for graph in epoch.graphs:
        yield from netlist.graphs[graph].ops


_SUBJECTS: Final = {"placement": "Placement", "formats": "Formats", "values": "Everything else"}


def _structure_tables(structure: Structure) -> list[tuple[str, Table, int]]:
    """Return the tables of what differs in the netlists, each with a heading and the number of rows left out."""
    tables: list[tuple[str, Table, int]] = []
    objects = [*(("removed", *entry) for entry in structure.gone), *(("added", *entry) for entry in structure.new)]
    if objects:
        columns = [Column("change", choose=True), Column("kind", choose=True), Column("name", "name")]
        rows = [
            Row([Cell(change, css=change), Cell(kind), name_cell(name)], css=change) for change, kind, name in objects
        ]
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
    rows = [
        Row(
            [
                Cell(change.kind),
                name_cell(change.name),
                Cell(change.field),
                name_cell(change.before or "-"),
                name_cell(change.after or "-"),
            ]
        )
        for change in changes
    ]
    return Table(columns, rows, search_box(rows, "find changes"), tall=True)


def _program_lines(structure: Structure | None) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the changed lines of each program, each with the class of its colour."""
    if structure is None:
        return []
    classes = {"+": "added", "-": "removed", "@": "soft"}
    return [(name, [(classes.get(line[:1], ""), line) for line in lines]) for name, lines in structure.programs.items()]
