"""Modelled cycles as one page: checks, epochs, and of each what makes up its cycles, its steady state, its ops."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from markupsafe import Markup

from buda_emu.checker.text import plural
from buda_emu.netlist.model import Netlist
from buda_emu.report.pages.engine import as_script, packed, render
from buda_emu.report.pages.source_lines import entries
from buda_emu.report.pages.tables import Cell, Column, Row, Table, figure, named, status
from buda_emu.report.pages.timeline import timeline_data
from buda_emu.report.pictures.core_use import Uses, sentence, uses_by_core
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.report.pictures.perf_charts import roofline_chart
from buda_emu.report.pictures.steady_picture import steady_picture
from buda_emu.report.terminal.fit import cut
from buda_emu.report.terminal.perf_tables import Sources
from buda_emu.report.terminal.text import number, percent
from buda_emu.routing.epochs import RoutedEpoch, route_epochs
from buda_emu.timing.checks import BoundResult
from buda_emu.timing.epoch.critical import CAUSE_WORDS, CriticalStep, chain_sentence, critical_steps
from buda_emu.timing.epoch.result import EpochTiming
from buda_emu.timing.epoch.steady import at_work, filled, steady
from buda_emu.timing.figures import op_figures
from buda_emu.timing.result import EpochReport, PerfRun
from buda_emu.timing.transfers.rates import STREAM

MOST_EPOCHS: Final = 40
"""Epochs with pictures in the page; the tables have all."""
_MOST_NAMED: Final = 2  # streams and ops that a link of the critical path names
_SHORT: Final = 60  # characters of such a name
_MOST_BUSY: Final = 60
"""Units in the table of what limits an epoch."""


def perf_page(netlist: Netlist, run: PerfRun, checks: Sequence[BoundResult], command: str) -> str:
    """The page: checks, epochs, then pictures and ops of each, the slowest first."""
    order = sorted(run.epochs, key=lambda epoch: -epoch.cycles * epoch.runs)
    detailed = order[:MOST_EPOCHS]
    left_out = len(order) - len(detailed)
    places = {id(epoch): f"epoch-{index}" for index, epoch in enumerate(detailed)}
    routed = route_epochs(netlist, {_temporal(netlist, epoch) for epoch in detailed})
    uses = uses_by_core(one for one in routed.values() if not isinstance(one, str))
    parts = [
        (places[id(epoch)], _name(epoch), packed(_epoch(netlist, run, epoch, index, routed, uses)), index == 0)
        for index, epoch in enumerate(detailed)
    ]
    types = {name: op.type for name, op in netlist.ops.items()}
    found = [(op.op, types[op.op], places[id(epoch)], _name(epoch)) for epoch in detailed for op in epoch.timing.ops]
    return render(
        "perf.html",
        title=f"buda-emu perf: {PurePath(run.netlist).name}",
        command=command,
        checks=_checks(checks),
        epochs=parts,
        facts=f"{run.netlist}, buda-emu {run.version}, {run.arch}, {run.clock:g} MHz, modelled",
        index=as_script(found),
        assumed=run.assumed,
        table=_epochs(run, order, places),
        note=f"{plural(left_out, 'epoch')} without pictures here: perf.json has every figure." if left_out else "",
    )


def _name(epoch: EpochReport) -> str:
    return f"{epoch.program}: {' + '.join(epoch.graphs)}"


def _checks(checks: Sequence[BoundResult]) -> Table | None:
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
                status("passed" if item.passed else "failed"),
                Cell(item.config),
                Cell(item.graph or "-"),
                Cell(item.target or "-"),
                Cell(item.bound.metric),
                Cell(str(item.bound)),
                Cell(number(item.observed, 6), -1.0 if item.observed is None else item.observed),
            ]
        )
        for item in sorted(checks, key=lambda item: item.passed)
    ]
    return Table(columns, rows) if rows else None


def _epochs(run: PerfRun, order: Sequence[EpochReport], places: dict[int, str]) -> Table:
    whole = max(sum(epoch.cycles * epoch.runs for epoch in order), 1.0)
    columns = [
        Column("graph", "name"),
        Column("program", choose=True),
        Column("runs", "number"),
        Column("inputs", "number"),
        Column("cycles per input", "number"),
        Column("inputs per second", "number"),
        Column("first input", "number"),
        Column("cycles", "number", tip="of all runs, loading it each time included"),
        Column("share", "number"),
        Column("loading", "number", tip="share of its cycles in which blobs, binaries and queue headers are read"),
        Column("kind", choose=True, tip="of its bottleneck"),
        Column("held back by", "words"),
    ]
    rows: list[Row] = []
    for epoch in order:
        cycles = epoch.cycles * epoch.runs
        place = places.get(id(epoch))
        rate = 1 / run.seconds(epoch.pace) if epoch.pace else None
        rows.append(
            Row(
                [
                    named(" + ".join(epoch.graphs), f"#{place}" if place else ""),
                    Cell(epoch.program),
                    figure(epoch.runs),
                    figure(epoch.timing.inputs),
                    figure(epoch.pace),
                    Cell(number(rate), -1.0 if rate is None else rate),
                    figure(epoch.timing.first_input),
                    figure(cycles),
                    Cell(percent(cycles / whole), cycles, cycles / whole),
                    Cell(percent(epoch.load_share), epoch.load_share, epoch.load_share),
                    Cell(epoch.bottleneck.kind),
                    Cell(_held(epoch)),
                ]
            )
        )
    return Table(columns, rows, "find epochs" if len(rows) > 8 else "")


def _held(epoch: EpochReport) -> str:
    """In a few words; the sentence stands with the epoch."""
    found = epoch.bottleneck
    return f"{found.name}, {100 * found.share:.0f} % of an input" if found.name else found.sentence


def _temporal(netlist: Netlist, epoch: EpochReport) -> int:
    return next(item.id for item in netlist.temporal_graphs if item.graphs == epoch.graphs)


def _epoch(
    netlist: Netlist, run: PerfRun, epoch: EpochReport, index: int, routed: Mapping[int, RoutedEpoch | str], uses: Uses
) -> Markup:
    timing = epoch.timing
    full = filled(timing, epoch.bottleneck.name)
    steps = critical_steps(timing)
    ops = list(op_figures(netlist, run, epoch))
    busy = {item.op: min(item.active / timing.modelled / max(epoch.pace, 1.0), 1.0) for item in timing.ops}
    notes = {op.op: f"{100 * busy[op.op]:.0f} % of the time between two inputs; {op.provenance}" for op in ops}
    path = {name for step in steps if step.share >= _ON_PATH for name in (step.through or (step.name,))}
    sources = Sources()
    stream = run.what_if.get("noc_bytes", STREAM)
    temporal = _temporal(netlist, epoch)
    return render(
        "epoch.html",
        sentence=epoch.bottleneck.sentence,
        chain=chain_sentence(steps, assumed=run.assumed),
        path=_path(steps),
        limits=_limits(epoch),
        load=_load(epoch),
        steady=_steady(epoch, full),
        timeline=timeline_data(steady_picture(epoch, full)),
        picture=Markup(
            grid_svg(
                netlist,
                epochs=[temporal],
                heat=busy,
                notes=notes,
                mark=f"-{index}",
                red="busy",
                path=path,
                streams=None if isinstance(routed.get(temporal, ""), str) else uses,
            )
        ),
        streams=sentence(routed.get(temporal)),
        roofline=Markup(roofline_chart(ops, [op.cost.cycles for op in timing.ops], _bytes(epoch), stream)),
        ops=_ops(netlist, run, epoch, steps, sources),
        sources=sources.meanings,
        lines=entries(netlist, _names(netlist, epoch)),
    )


_ON_PATH: Final = 0.005
"""Share of the critical path from which on a step is drawn in the picture."""


def _names(netlist: Netlist, epoch: EpochReport) -> list[str]:
    """Ops of an epoch and the queues around them."""
    ops = [op.op for op in epoch.timing.ops]
    ends = (name for edge in epoch.edges for name in (edge.source, edge.target) if name in netlist.queues)
    return list(dict.fromkeys([*ops, *ends]))


def _bytes(epoch: EpochReport) -> dict[str, float]:
    """What a core of each op takes in for one input."""
    found: dict[str, float] = {}
    for edge in epoch.edges:
        if edge.operand >= 0 and not edge.once:
            found[edge.target] = found.get(edge.target, 0.0) + edge.core_bytes
    return found


def _steady(epoch: EpochReport, full: EpochTiming) -> str:
    stretch = steady(full, epoch.bottleneck.name)
    if stretch is None:
        return ""
    if stretch.last - stretch.first + 1 == full.modelled:
        return "Its only input." if epoch.timing.inputs == 1 else f"All of its {epoch.timing.modelled} inputs."
    which = f"Inputs {stretch.first} to {stretch.last} of {stretch.op}"
    if stretch.working < len(full.ops):
        away = f"the pipeline is filled so far: {at_work(full, stretch)}"
    else:
        away = f"away from filling and draining: {at_work(full, stretch)}"
    return f"{which}, {epoch.pace:,.0f} cycles each, {away}; {plural(epoch.timing.inputs, 'input')} in all."


def _load(epoch: EpochReport) -> str:
    """What is read before anything runs, by chip."""
    chips = "; ".join(
        f"chip {chip.chip}: {chip.bytes:,} bytes by {plural(chip.cores, 'core')}, {chip.kernels} with a kernel, "
        f"in {chip.cycles:,.0f}, then queue headers, {chip.headers:,.0f}"
        for chip in epoch.load.chips
    )
    return f"Loading it takes {epoch.load.cycles:,.0f} cycles each time, {percent(epoch.load_share)} of a run: {chips}"


def _path(steps: Sequence[CriticalStep]) -> Table:
    columns = [
        Column("share", "number"),
        Column("cycles", "number"),
        Column("kind", choose=True),
        Column("link", "words"),
        Column("its parts began when", "words"),
    ]
    rows: list[Row] = []
    for step in steps:
        through = f": {_some(step.through)}" if step.through else ""
        alike = f"; equally long: {_some(step.alike)}" if step.alike else ""
        share = Cell(percent(step.share), step.cycles, step.share)
        causes = ", ".join(f"{CAUSE_WORDS[cause]} {100 * part / step.cycles:.0f} %" for cause, part in step.waits)
        link = f"{cut(step.name, _SHORT)}{through}{alike}"
        cells = [share, figure(step.cycles), Cell(step.kind), Cell(link), Cell(causes)]
        rows.append(Row(cells, _chosen(step.through[0] if step.through else step.name)))
    return Table(columns, rows, "find links" if len(rows) > 8 else "", tall=True)


def _some(names: Sequence[str]) -> str:
    """The first of many names, which perf.json lists."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(cut(name, _SHORT) for name in names[:_MOST_NAMED])}{more}"


def _chosen(unit: str) -> str:
    """What a click on a unit chooses: an op itself, of a transfer the op or queue that it leads to."""
    return unit.rpartition(": ")[2].rpartition(" > ")[2].removesuffix(", once")


def _limits(epoch: EpochReport) -> Table:
    columns = [
        Column("of an input", "number"),
        Column("cycles", "number"),
        Column("kind", choose=True),
        Column("what", "name"),
    ]
    found = sorted(epoch.timing.busy(), key=lambda item: -item[1].cycles)[:_MOST_BUSY]
    rows: list[Row] = []
    for kind, item in found:
        share = min(item.cycles / max(epoch.pace, 1.0), 1.0)
        cells = [Cell(percent(share), item.cycles, share), figure(item.cycles), Cell(kind), named(item.name)]
        rows.append(Row(cells, "" if kind in ("memory", "link") else _chosen(item.name)))
    return Table(columns, rows, "find units" if len(rows) > 8 else "", tall=True)


def _ops(netlist: Netlist, run: PerfRun, epoch: EpochReport, steps: Sequence[CriticalStep], sources: Sources) -> Table:
    columns = [
        Column("op", "name"),
        Column("type", choose=True),
        Column("cores", "number"),
        Column("cycles", "number", tip="of one input on each core"),
        Column("math %", "number", tip="share of the pace that the math unit works"),
        Column("waits for input", "number"),
        Column("waits for room", "number"),
        Column("of the path", "number", tip="share of the critical path"),
        Column("line", "number"),
        Column("from", choose=True, tip="the source of the cycles; the letters are explained below"),
    ]
    shares = {step.name: step.share for step in steps}
    pairs = zip(op_figures(netlist, run, epoch), epoch.timing.ops, strict=True)
    ops = netlist.ops
    rows = [
        Row(
            [
                named(op.op),
                Cell(op.type),
                figure(op.cores),
                figure(item.cost.cycles, bar=min(item.cost.cycles / max(epoch.pace, 1.0), 1.0)),
                figure(100 * op.math / max(epoch.pace, 1.0), 1),
                figure(op.waiting_for_input),
                figure(op.waiting_for_room),
                Cell(percent(shares.get(op.op, 0.0)), shares.get(op.op, 0.0)),
                figure(ops[op.op].at().line),
                Cell(sources.letter(op.provenance), tip=op.provenance),
            ],
            op.op,
        )
        for op, item in sorted(pairs, key=lambda pair: -pair[1].cost.cycles)
    ]
    return Table(columns, rows, "find ops", tall=True)
