"""Modelled cycles as one page: checks, epochs, and for each epoch its critical path, steady state and ops."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from markupsafe import Markup

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.routing.epochs import RoutedEpoch, route_epochs
from buda_emu.performance.timing.checks import BoundResult
from buda_emu.performance.timing.epoch.critical import CAUSE_WORDS, CriticalStep, chain_sentence, critical_steps
from buda_emu.performance.timing.epoch.pipeline import describe_fill, extend_until_full, steady
from buda_emu.performance.timing.epoch.result import EpochTiming
from buda_emu.performance.timing.figures import op_figures
from buda_emu.performance.timing.flags import MEANINGS
from buda_emu.performance.timing.parts import run_intervals
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.sensitivity import Sensitivity
from buda_emu.report.pages.engine import (
    Cell,
    Column,
    Row,
    Table,
    as_script,
    name_cell,
    number_cell,
    pack_part,
    page_table,
    render,
    search_box,
    verdict_cell,
)
from buda_emu.report.pages.engine import figure as cell_figure
from buda_emu.report.pages.timeline import timeline_data
from buda_emu.report.pictures.epoch_picture import steady_picture
from buda_emu.report.pictures.grid_svg import (
    HeatScale,
    Uses,
    grid_svg,
    html_legend,
    sentence,
    uses_by_core,
)
from buda_emu.report.pictures.roofline import roofline_chart
from buda_emu.report.terminal.epoch_columns import EPOCHS, OPS, EpochRow, OpRow, Sources, op_rows
from buda_emu.report.terminal.perf import memory_lines, program_sentences
from buda_emu.report.terminal.plain_table import cut
from buda_emu.report.terminal.text import number, percent, whole
from buda_emu.support.checker.text import list_first, plural

MOST_LINES: Final = 40
"""Lines shown of one entry of the netlist; a longer entry would push the figures off the screen."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An op or queue as the netlist writes it. `place` is the file and line, to be pasted."""

    name: str
    place: str
    line: int
    text: str


def read_entries(netlist: Netlist, names: Iterable[str]) -> list[Entry]:
    """Return the entries of the ops and queues `names` as the file writes them, in its order; none if the file is
    gone or has changed.
    """
    try:
        lines = Path(netlist.path).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    ops = netlist.ops
    collected = list[Entry]()
    for name in names:
        element = ops.get(name) or netlist.queues.get(name)
        if element is None:
            continue
        line = element.at().line
        text = list(_entry_lines(lines, line, _name_in_file(element)))
        if text:
            collected.append(Entry(name, f"{netlist.path}:{line}", line, "\n".join(text)))
    return sorted(collected, key=lambda entry: (entry.line, entry.name))


def _name_in_file(element: Op | Queue) -> str:
    """Return the name of an op or queue as the netlist writes it."""
    return getattr(element, "written_name", "") or element.name


def _entry_lines(lines: list[str], line: int, name: str) -> Iterator[str]:
    """Yield the line of the file at which the entry `name` should begin, and the lines indented below it, at most
    MOST_LINES; nothing if it is not there. `line` is counted from 1."""
    if not 0 < line <= len(lines) or name not in lines[line - 1]:
        return
    inset = _indent(lines[line - 1])
    yield lines[line - 1][inset:]
    for source_line in lines[line : line + MOST_LINES]:
        if not source_line.strip() or _indent(source_line) <= inset:
            return
        yield source_line[inset:]


def _indent(text: str) -> int:
    """Return the number of blanks at the beginning of a line."""
    return len(text) - len(text.lstrip())


MOST_EPOCHS: Final = 40
"""Number of epochs with pictures in the page; the tables have all epochs."""
_MOST_NAMED: Final = 2  # streams and ops that a link of the critical path names
_SHORT: Final = 60  # characters of such a name
_MOST_BUSY: Final = 60
"""Rows of the table of units that limit an epoch."""


def perf_page(
    netlist: Netlist,
    run: PerfRun,
    checks: Sequence[BoundResult],
    command: str,
    study: Sensitivity | None = None,
) -> str:
    """Return the HTML page of a modelled run: checks, epochs, then pictures and ops of each epoch, the one with the
    most cycles in all its runs first. Routes these epochs for the streams of each core. `command` makes the page again;
    `study` adds its table."""
    order = sorted(run.epochs, key=lambda epoch: -epoch.cycles * epoch.runs)
    detailed = order[:MOST_EPOCHS]
    left_out = len(order) - len(detailed)
    places = {id(epoch): f"epoch-{index}" for index, epoch in enumerate(detailed)}
    routed = route_epochs(netlist, {_temporal_id(netlist, epoch) for epoch in detailed})
    uses = uses_by_core(routed_epoch for routed_epoch in routed.values() if not isinstance(routed_epoch, str))
    parts = [
        (
            places[id(epoch)],
            _epoch_name(epoch),
            pack_part(_epoch_part(netlist, run, epoch, index, routed, uses)),
            index == 0,
        )
        for index, epoch in enumerate(detailed)
    ]
    note = ""
    if left_out:
        note = f"{plural(left_out, 'epoch')} without pictures here: perf.json has every figure."
    sensitivity_base = ""
    if study is not None:
        sensitivity_base = whole(study.base.cycles_per_input)
    types = {name: op.type for name, op in netlist.ops.items()}
    op_index: list[tuple[str, str, str, str]] = []
    for epoch in detailed:
        op_index += [(op.op, types[op.op], places[id(epoch)], _epoch_name(epoch)) for op in epoch.timing.ops]
    return render(
        "perf.html",
        title=f"buda-emu perf: {PurePath(run.netlist).name}",
        command=command,
        checks=_checks_table(checks),
        epochs=parts,
        facts=f"{run.netlist}, buda-emu {run.version}, {run.arch}, {run.clock:g} MHz, modelled",
        index=as_script(op_index),
        assumed=run.assumed,
        table=_epochs_table(netlist, run, order, places),
        sensitivity=_sensitivity_table(study),
        sensitivity_base=sensitivity_base,
        totals=[*program_sentences(run, run_intervals(run)), *memory_lines(run)],
        note=note,
    )


def _epoch_name(epoch: EpochReport) -> str:
    """Return the name of an epoch: program and graphs."""
    return f"{epoch.program}: {' + '.join(epoch.graphs)}"


def _checks_table(checks: Sequence[BoundResult]) -> Table | None:
    """Return the table of the checks of performance-check, missed ones first; None if there are none."""
    columns = [
        Column("verdict", choose=True),
        Column("config"),
        Column("graph"),
        Column("target"),
        Column("metric", choose=True),
        Column("expected"),
        Column("modelled", "number"),
    ]
    rows = [
        Row(
            [
                verdict_cell(check.passed),
                Cell(check.config),
                Cell(check.graph or "-"),
                Cell(check.target or "-"),
                Cell(check.bound.metric),
                Cell(str(check.bound)),
                number_cell(number(check.observed, 6), check.observed),
            ]
        )
        for check in sorted(checks, key=lambda check: check.passed)
    ]
    return Table(columns, rows) if rows else None


def _epochs_table(netlist: Netlist, run: PerfRun, order: Sequence[EpochReport], places: dict[int, str]) -> Table:
    """Return the table of epochs in the given order, with links to the parts of the page about them. `places` holds the
    anchors of these parts by the id of the epoch object."""
    total_cycles = max(sum(epoch.cycles * epoch.runs for epoch in order), 1.0)

    def name(row: EpochRow) -> Cell:
        """Return the cell with the graphs of an epoch."""
        place = places.get(id(row.report))
        return name_cell(row.graphs, f"#{place}" if place else "")

    def share(row: EpochRow) -> Cell:
        """Return the cell with the epoch's share of all cycles."""
        part = row.all_cycles / row.total_cycles
        return Cell(percent(part), row.all_cycles, part)

    def loading(row: EpochRow) -> Cell:
        """Return the cell with the share of loading in the epoch's cycles."""
        return Cell(percent(row.report.load_share), row.report.load_share, row.report.load_share)

    rows = [EpochRow(netlist, run, epoch, total_cycles=total_cycles) for epoch in order]
    return page_table(EPOCHS, rows, "find epochs", cells={"graphs": name, "share": share, "load_share": loading})


def _sensitivity_table(study: Sensitivity | None) -> Table | None:
    """Return the table of what each resource of the chip would bring, the greatest gain first; None if it was not asked
    for."""
    if study is None:
        return None
    columns = [
        Column("resource"),
        Column("cycles with twice", "number", tip="cycles per input of all epochs, loading included"),
        Column("saves", "number", tip="share of the cycles as they are"),
        Column("cycles with half", "number"),
        Column("adds", "number", tip="share of the cycles as they are"),
        Column("with twice it is limited by", "words", tip="the bottleneck of the epoch that takes longest"),
    ]
    rows = [
        Row(
            [
                Cell(effect.title),
                cell_figure(effect.doubled.cycles_per_input),
                number_cell(f"{100 * effect.gain:.1f} %", effect.gain),
                cell_figure(effect.halved.cycles_per_input),
                number_cell(f"{100 * effect.loss:.1f} %", effect.loss),
                Cell(effect.doubled.bottleneck),
            ]
        )
        for effect in study.resources
    ]
    return Table(columns, rows)


def _temporal_id(netlist: Netlist, epoch: EpochReport) -> int:
    """Return the number of the temporal graph that an epoch of the model runs."""
    return next(temporal.id for temporal in netlist.temporal_graphs if temporal.graphs == epoch.graphs)


def _epoch_part(
    netlist: Netlist, run: PerfRun, epoch: EpochReport, index: int, routed: Mapping[int, RoutedEpoch | str], uses: Uses
) -> Markup:
    """Return the part of the page about one epoch. `index` keeps the ids of its picture apart from those of others on
    the page; `routed` holds the streams of each temporal graph, or the reason why there are none, and `uses` the use of
    each core by them."""
    timing = epoch.timing
    full = extend_until_full(timing, epoch.bottleneck.name)
    steps = critical_steps(timing)
    ops = list(op_figures(netlist, run, epoch))
    busy = {
        op_timing.op: min(op_timing.active / timing.run.inputs / max(epoch.pace, 1.0), 1.0) for op_timing in timing.ops
    }
    notes = {op.op: f"{100 * busy[op.op]:.0f} % of the time between two inputs; {op.provenance}" for op in ops}
    path: set[str] = set()
    for step in steps:
        if step.share >= _ON_PATH:
            path.update(step.through or (step.name,))
    sources = Sources()
    stream = run.what_if.get("noc_bytes", run.chip.stream_rate)
    temporal = _temporal_id(netlist, epoch)
    is_routed = isinstance(routed.get(temporal), RoutedEpoch)
    return render(
        "epoch.html",
        sentence=epoch.bottleneck.sentence,
        chain=chain_sentence(steps, assumed=run.assumed),
        path=_path_table(steps),
        limits=_limits_table(epoch),
        load=_load_sentence(epoch),
        steady=_steady_sentence(epoch, full),
        timeline=timeline_data(steady_picture(epoch, full)),
        picture=Markup(
            grid_svg(
                netlist,
                epochs=[temporal],
                heat=busy,
                notes=notes,
                mark=f"-{index}",
                scale=_BUSY,
                path=path,
                streams=uses if is_routed else None,
            )
        ),
        legend=Markup(html_legend(_BUSY, path=bool(path))),
        streams=sentence(routed.get(temporal)),
        roofline=Markup(roofline_chart(ops, [op.cost.cycles for op in timing.ops], _bytes_taken_in(epoch), stream)),
        ops=_ops_table(netlist, run, epoch, steps, sources),
        sources=sources.meanings,
        lines=read_entries(netlist, _entry_names(netlist, epoch)),
    )


_BUSY: Final = HeatScale("busy", "0 %", "100 % of the time between two inputs")
"""The scale of the picture of ops: how busy each is."""
_ON_PATH: Final = 0.005
"""Share of the critical path from which on a step is drawn in the picture."""


def _entry_names(netlist: Netlist, epoch: EpochReport) -> list[str]:
    """Return the names of the ops of an epoch, and of the queues that they read and write."""
    names = [op.op for op in epoch.timing.ops]
    for edge in epoch.edges:
        names += [name for name in (edge.source, edge.target) if name in netlist.queues]
    return list(dict.fromkeys(names))


def _bytes_taken_in(epoch: EpochReport) -> dict[str, float]:
    """Return the bytes that a core of each op takes in for one input, by op; operands that are read only once do not
    count."""
    bytes_by_op: dict[str, float] = {}
    for edge in epoch.edges:
        if edge.operand >= 0 and not edge.once:
            bytes_by_op[edge.target] = bytes_by_op.get(edge.target, 0.0) + edge.core_bytes
    return bytes_by_op


def _steady_sentence(epoch: EpochReport, full: EpochTiming) -> str:
    """Return a sentence on the inputs that the picture of the steady state shows; "" if the epoch has no steady state.
    `full` is the timing with as many inputs as fill the pipeline."""
    stretch = steady(full, epoch.bottleneck.name)
    if stretch is None:
        return ""
    if stretch.last - stretch.first + 1 == full.run.inputs:
        if epoch.timing.inputs == 1:
            return "Its only input."
        return f"All of its {epoch.timing.run.inputs} inputs."
    inputs_text = f"Inputs {stretch.first} to {stretch.last} of {stretch.op}"
    if stretch.working < len(full.ops):
        fill_text = f"the pipeline is filled so far: {describe_fill(full, stretch)}"
    else:
        fill_text = f"away from filling and draining: {describe_fill(full, stretch)}"
    return f"{inputs_text}, {epoch.pace:,.0f} cycles each, {fill_text}; {plural(epoch.timing.inputs, 'input')} in all."


def _load_sentence(epoch: EpochReport) -> str:
    """Return a sentence on what each chip loads before the epoch runs, and the cycles of that."""
    chips = "; ".join(
        f"chip {chip.chip}: {chip.bytes:,} bytes by {plural(chip.cores, 'core')}, {chip.kernels} with a kernel, "
        f"in {chip.cycles:,.0f}, then queue headers, {chip.headers:,.0f}"
        for chip in epoch.load.chips
    )
    return f"Loading it takes {epoch.load.cycles:,.0f} cycles each time, {percent(epoch.load_share)} of a run: {chips}"


def _path_table(steps: Sequence[CriticalStep]) -> Table:
    """Return the table of the steps of an epoch's critical path."""
    columns = [
        Column("share", "number"),
        Column("cycles", "number"),
        Column("kind", choose=True),
        Column("link", "words"),
        Column("its parts began when", "words"),
    ]
    rows: list[Row] = []
    for step in steps:
        link = cut(step.name, _SHORT)
        unit = step.name
        if step.through:
            link += f": {_list_names(step.through)}"
            unit = step.through[0]
        if step.alike:
            link += f"; equally long: {_list_names(step.alike)}"
        share = Cell(percent(step.share), step.cycles, step.share)
        causes = ", ".join(f"{CAUSE_WORDS[cause]} {100 * part / step.cycles:.0f} %" for cause, part in step.waits)
        cells = [share, cell_figure(step.cycles), Cell(step.kind), Cell(link), Cell(causes)]
        rows.append(Row(cells, _linked_name(unit)))
    return Table(columns, rows, search_box(rows, "find links"), tall=True)


def _list_names(names: Sequence[str]) -> str:
    """Return the first names of a list as text, and the number of those left out, which perf.json lists."""
    return list_first([cut(name, _SHORT) for name in names], _MOST_NAMED)


def _linked_name(unit: str) -> str:
    """Return the name that a click on a unit selects: an op itself, or the op or queue to which a transfer leads."""
    return unit.rpartition(": ")[2].rpartition(" > ")[2].removesuffix(", once")


def _limits_table(epoch: EpochReport) -> Table:
    """Return the table of the busiest units of an epoch: ops, memory, links and transfers."""
    columns = [
        Column("of an input", "number"),
        Column("cycles", "number"),
        Column("kind", choose=True),
        Column("what", "name"),
    ]
    busiest = sorted(epoch.timing.busy(), key=lambda unit: -unit[1].cycles)[:_MOST_BUSY]
    rows: list[Row] = []
    for kind, unit in busiest:
        share = min(unit.cycles / max(epoch.pace, 1.0), 1.0)
        cells = [Cell(percent(share), unit.cycles, share), cell_figure(unit.cycles), Cell(kind), name_cell(unit.name)]
        linked = ""
        if kind not in ("memory", "link"):  # those are in no picture
            linked = _linked_name(unit.name)
        rows.append(Row(cells, linked))
    return Table(columns, rows, search_box(rows, "find units"), tall=True)


def _ops_table(
    netlist: Netlist, run: PerfRun, epoch: EpochReport, steps: Sequence[CriticalStep], sources: Sources
) -> Table:
    """Return the table of the ops of an epoch, the slowest first. `steps` are those of its critical path; `sources`
    gives the letters by which rows refer to the sources of their cycles."""
    shares = {step.name: step.share for step in steps}
    rows = [
        replace(
            row,
            letter=sources.letter(row.figures.provenance),
            path_share=shares.get(row.figures.op, 0.0),
            line=netlist.ops[row.figures.op].at().line,
        )
        for row in op_rows(EpochRow(netlist, run, epoch))
    ]
    rows.sort(key=lambda row: -row.timing.cost.cycles)
    return page_table(OPS, rows, "find ops", cells=_OP_CELLS, names=lambda row: row.figures.op, tall=True)


def _flags_cell(row: OpRow) -> Cell:
    """Return the cell with the flags of an op."""
    return Cell(", ".join(row.figures.flags) or "-", tip="; ".join(MEANINGS[flag] for flag in row.figures.flags))


_OP_CELLS: Final[Mapping[str, Callable[[OpRow], Cell]]] = {
    "op": lambda row: name_cell(row.figures.op),
    "cycles": lambda row: cell_figure(row.timing.cost.cycles, bar=min(row.share_of_pace, 1.0)),
    "flags": _flags_cell,
    "from": lambda row: Cell(row.letter, tip=row.figures.provenance),
}
"""Cells of the table of ops that are more than texts."""
