"""Two runs or netlists beside each other as one page: what limits them, their epochs and ops, and both core grids.
Its tables show programs, epochs, ops and units with their change of cycles, and what netlists say."""

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
    figure,
    name_cell,
    pack_part,
    render,
    search_box,
)
from buda_emu.report.perf_against import (
    NO_COMPARISON,
    EpochChange,
    FigureChange,
    OpChange,
    RunComparison,
    epoch_sentences,
    host_sentences,
    kind_of_change,
    program_sentences,
)
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.terminal.text import relative, whole
from buda_emu.support.checker.text import plural

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
    """Return the cells per cent, difference, before and after under `change_columns`; slower is red, faster green. None
    stands for a run without the epoch, op or program."""
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
    """Return a text of the first run, an arrow and that of the second; a single text if both are alike or only one
    exists."""
    if before == after or not before or not after:
        return after or before
    return f"{before} → {after}"


def programs_table(comparison: RunComparison) -> Table | None:
    """Return the table of programs; None for fewer than two, of which the page has a sentence."""
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
    """Return by how many cycles an epoch changed in all its runs, or for one input if those of all runs are not
    known."""
    if epoch.cycles_before is None and epoch.cycles_after is None:
        return epoch.difference
    return (epoch.cycles_after or 0.0) - (epoch.cycles_before or 0.0)


def ops_table(ops: Sequence[OpChange], places: Mapping[str, str]) -> Table | None:
    """Return the table of ops in their order, with links to the parts of their epochs; None for no ops. `places` holds
    the anchors of these parts by the names of the graphs."""
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
        cores = _before_and_after(_count_text(op.cores_before), _count_text(op.cores_after))
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


def _count_text(value: int | None) -> str:
    """Return a number of cores as text, "" for None."""
    if value is None:
        return ""
    return whole(value)


def _unit_cells(unit: FigureChange) -> list[Cell]:
    """Return the cells of a unit under `change_columns`. Of a link that one run does not list, the side says how long
    it works there at most."""
    cells = change_cells(unit.before, unit.after)
    if unit.unlisted_at_most is None:
        return cells
    before, after, difference, _ = unit.figures()
    return [
        cells[0],
        Cell(difference, unit.difference),
        Cell(before, unit.before or unit.unlisted_at_most),
        Cell(after, unit.after or unit.unlisted_at_most),
    ]


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
        cells = [name_cell(unit.name), *_unit_cells(unit), Cell(unit.kind)]
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
            tables.append((heading, _fields_table(changes[:MOST_CHANGES]), max(0, len(changes) - MOST_CHANGES)))
    return tables


def _fields_table(changes: Iterable[FieldChangeRow]) -> Table:
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


MOST_EPOCHS: Final = 24
"""Number of epochs with both pictures in the page; the tables have all epochs."""
MOST_OPS: Final = 3_000
"""Rows of the table of ops, those with the greatest change first."""
MOST_UNITS: Final = 100
"""Rows of the table of an epoch's units that changed."""
_WORDS: Final = ("before", "after")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the name of its file, and its netlist, None if only its figures are known."""

    name: str
    netlist: Netlist | None = None

    def epochs(self) -> dict[str, TemporalGraph]:
        """Return the temporal graphs by the names of their graphs; none without a netlist."""
        if self.netlist is None:
            return {}
        return {" + ".join(epoch.graphs): epoch for epoch in self.netlist.temporal_graphs}

    def ops(self, epoch: TemporalGraph | None) -> Iterator[Op]:
        """Yield the ops of an epoch; none if the side does not have it."""
        if self.netlist is None or epoch is None:
            return
        for graph in epoch.graphs:
            yield from self.netlist.graphs[graph].ops


_Pair = tuple[TemporalGraph | None, TemporalGraph | None]


def comparison_page(
    before: Side,
    after: Side,
    comparison: RunComparison = NO_COMPARISON,
    *,
    title: str,
    command: str,
    structure: Structure | None = None,
) -> str:
    """Return the HTML page of two runs or netlists beside each other. Without a comparison it has no figures;
    `structure` adds the differences of the netlists themselves, `command` is the command line that makes the page
    again.
    """
    sides = (before, after)
    changes = {epoch.graphs: epoch for epoch in comparison.epochs}
    pairs = _epoch_pairs(before, after)
    order = sorted(pairs, key=lambda graphs: -_importance(changes.get(graphs)))
    places = {graphs: f"epoch-{index}" for index, graphs in enumerate(order[:MOST_EPOCHS])}
    marks = _mark_one_sided_ops(before, after)
    ops = {op.name: op for op in comparison.ops}
    parts: list[tuple[str, str, Markup, bool]] = []
    for index, (graphs, place) in enumerate(places.items()):
        pictures = [
            _draw_epoch(side, epoch, word, ops, marks, f"-{index}-{word}")
            for side, epoch, word in zip(sides, pairs[graphs], _WORDS, strict=True)
        ]
        parts.append((place, graphs, pack_part(_epoch_part(changes.get(graphs), pictures)), index == 0))
    statements = structure or Structure()
    return render(
        "comparison.html",
        title=title,
        facts="",
        command=command,
        sides=list(zip(_WORDS, (before.name, after.name), strict=True)),
        lead=_cycles_sentence(comparison),
        bottleneck=comparison.bottleneck,
        certainty=_program_certainty(comparison),
        conditions=comparison.conditions,
        shared_conditions=comparison.shared_conditions,
        note=statements.note,
        programs=programs_table(comparison),
        epochs=epochs_table(comparison, places),
        ops=ops_table(comparison.ops[:MOST_OPS], places),
        ops_left_out=max(0, len(comparison.ops) - MOST_OPS),
        structure=structure_tables(statements),
        unfolded=comparison is NO_COMPARISON,
        program_lines=program_lines(statements),
        parts=parts,
        pictures_note=_pictures_note(sides, len(order) - len(places)),
        index=as_script(_op_index(sides, pairs, places)),
    )


def _program_certainty(comparison: RunComparison) -> list[str]:
    """Return the sentences about all programs that both runs have: how sure each difference is, and its times."""
    sentences: list[str] = []
    for program in comparison.programs:
        sentences += program_sentences(comparison, program)
    return [*sentences, *host_sentences(comparison)]


def _importance(epoch: EpochChange | None) -> float:
    """Return the cycles by which epochs are ordered: those of all runs of the epoch on its slower side, or of one input
    if the former are not known; 0 for an epoch without figures."""
    if epoch is None:
        return 0.0
    cycles = max(epoch.cycles_before or 0.0, epoch.cycles_after or 0.0)
    return cycles or max(epoch.before or 0.0, epoch.after or 0.0)


def _epoch_pairs(before: Side, after: Side) -> dict[str, _Pair]:
    """Return the temporal graphs of both sides by the names of their graphs; None for a side that lacks it."""
    left = before.epochs()
    right = after.epochs()
    return {graphs: (left.get(graphs), right.get(graphs)) for graphs in dict.fromkeys((*right, *left))}


def _mark_one_sided_ops(before: Side, after: Side) -> dict[str, str]:
    """Return for each op that only one of two netlists has whether it was "added" or "removed", by name; none
    unless both netlists are known.
    """
    if before.netlist is None or after.netlist is None:
        return {}
    old_ops = before.netlist.ops
    new_ops = after.netlist.ops
    marks = {name: "removed" for name in old_ops if name not in new_ops}
    return marks | {name: "added" for name in new_ops if name not in old_ops}


def _draw_epoch(
    side: Side, epoch: TemporalGraph | None, word: str, ops: Mapping[str, OpChange], marks: Mapping[str, str], mark: str
) -> Markup | None:
    """Draw an epoch of the side `word` ("before" or "after") on the core grid, with the cycles of its ops; None if the
    side has no such epoch or no netlist. `marks` says which ops were added or removed; `mark` keeps the ids of this
    picture apart from those of others on the page."""
    if side.netlist is None or epoch is None:
        return None
    changes = {op.name: ops[op.name] for op in side.ops(epoch) if op.name in ops}
    values = {name: _box_lines(change, word) for name, change in changes.items()}
    notes = {name: _op_tooltip(change) for name, change in changes.items()}
    svg = grid_svg(side.netlist, epochs=[epoch.id], notes=notes, mark=mark, values=values, changes=marks)
    return Markup(svg)


def _box_lines(change: OpChange, word: str) -> tuple[str, ...]:
    """Return the lines that an op's box on the side `word` has in place of shape and format: what changed, then the
    cycles.
    """
    cycles = {"before": change.before, "after": change.after}[word]
    line = f"{whole(cycles)} cycles"
    if change.before is None or change.after is None:
        return change.kind, line
    if word == "after" and change.kind != "same":
        return f"{relative(change.before, change.after)} %", line
    return (line,)


def _op_tooltip(change: OpChange) -> str:
    """Return the tooltip of an op: its cycles on both sides, and its epochs and cores if they differ."""
    parts = [f"{whole(change.before)} cycles before, {whole(change.after)} after"]
    if change.graphs_before and change.graphs_after and change.graphs_before != change.graphs_after:
        parts.append(f"moved from {change.graphs_before} to {change.graphs_after}")
    if change.cores_before and change.cores_after and change.cores_before != change.cores_after:
        parts.append(f"on {plural(change.cores_before, 'core')} before, {change.cores_after} after")
    return "; ".join(parts)


def _epoch_part(change: EpochChange | None, pictures: Sequence[Markup | None]) -> Markup:
    """Return the part of the page about one epoch: both pictures, and its units that changed."""
    units = ()
    certainty: list[str] = []
    if change is not None:
        units = change.units
        certainty = list(epoch_sentences(change))
    return render(
        "compared_epoch.html",
        sentence=_epoch_sentence(change),
        certainty=certainty,
        pictures=list(zip(_WORDS, pictures, strict=True)),
        units=units_table(units[:MOST_UNITS]),
        left_out=max(0, len(units) - MOST_UNITS),
    )


def _epoch_sentence(change: EpochChange | None) -> str:
    """Return what changed in an epoch, and why; "" if it was not modelled."""
    if change is None:
        return ""
    if change.before is None or change.after is None:
        return change.reason
    figures = f"{whole(change.before)} cycles of an input before, {whole(change.after)} after"
    return f"{figures}: {change.reason or 'nothing changed'}"


def _cycles_sentence(comparison: RunComparison) -> str:
    """Return the sentence about the cycles of all programs that both runs have; "" if there are none."""
    if not comparison.programs:
        return ""
    before = sum(cycles for cycles, _ in comparison.programs.values())
    after = sum(cycles for _, cycles in comparison.programs.values())
    subject = "All programs take"
    if len(comparison.programs) == 1:
        subject = "The program takes"
    kind = kind_of_change(before, after)
    if kind == "same":
        return f"{subject} {whole(after)} cycles, as before."
    word = {"slower": "more", "faster": "fewer"}[kind]
    share = relative(before, after).lstrip("+-")
    return f"{subject} {whole(after)} cycles, {share} % {word} than before ({whole(before)})."


def _pictures_note(sides: Sequence[Side], left_out: int) -> str:
    """Return the sentences on pictures that the page does not have: of sides without a netlist, and of `left_out`
    epochs.
    """
    names = [side.name for side in sides if side.netlist is None]
    notes = [f"{name} holds figures of a run and no placement: there is no picture of it." for name in names]
    if left_out:
        notes.append(f"{plural(left_out, 'epoch')} without pictures here: the tables have every figure.")
    return " ".join(notes)


def _op_index(
    sides: Sequence[Side], pairs: Mapping[str, _Pair], places: Mapping[str, str]
) -> list[tuple[str, str, str, str]]:
    """Return name, type, part of the page and epoch of each op of both sides, for the search. `pairs` and `places`
    hold temporal graphs and anchors by the names of their graphs.
    """
    index: dict[tuple[str, str], tuple[str, str, str, str]] = {}
    for graphs, place in places.items():
        for side, epoch in zip(sides, pairs[graphs], strict=True):
            for op in side.ops(epoch):
                index[op.name, graphs] = (op.name, op.type, place, graphs)
    return list(index.values())
