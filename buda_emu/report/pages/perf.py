"""Modelled cycles as one page: checks, epochs, and of each what makes up its cycles, its steady state, its ops."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path, PurePath
from typing import Final

from markupsafe import Markup

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.routing.epochs import RoutedEpoch, route_epochs
from buda_emu.performance.timing.checks import BoundResult
from buda_emu.performance.timing.epoch.critical import CAUSE_WORDS, CriticalStep, chain_sentence, critical_steps
from buda_emu.performance.timing.epoch.pipeline import describe_fill, extend_until_full, steady
from buda_emu.performance.timing.epoch.result import EpochTiming
from buda_emu.performance.timing.figures import OpFigures, op_figures
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.report.pages.engine import Cell, Column, Row, Table, as_script, named, packed, render, status
from buda_emu.report.pages.engine import figure as cell_figure
from buda_emu.report.pages.timeline import timeline_data
from buda_emu.report.pictures.epoch_picture import steady_picture
from buda_emu.report.pictures.grid_svg import (
    Uses,
    clean,
    fit_text,
    grid_svg,
    open_chart,
    sentence,
    text,
    uses_by_core,
    width_of,
)
from buda_emu.report.pictures.grid_svg import number as svg_number
from buda_emu.report.terminal.perf import Sources
from buda_emu.report.terminal.plain_table import cut
from buda_emu.report.terminal.text import number, percent
from buda_emu.support.checker.text import plural

MOST_LINES: Final = 40
"""Of one entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An op or queue as it is written. `place`: file and line, to be pasted."""

    name: str
    place: str
    line: int
    text: str


def entries(netlist: Netlist, names: Iterable[str]) -> list[Entry]:
    """Of these ops and queues, in the order of the file; none where the file is gone or has no such lines any more."""
    try:
        lines = Path(netlist.path).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    ops = netlist.ops
    found = list[Entry]()
    for name in names:
        item = ops.get(name) or netlist.queues.get(name)
        if item is None:
            continue
        line = item.at().line
        text = list(_entry(lines, line, _written(item)))
        if text:
            found.append(Entry(name, f"{netlist.path}:{line}", line, "\n".join(text)))
    return sorted(found, key=lambda entry: (entry.line, entry.name))


def _written(item: Op | Queue) -> str:
    return getattr(item, "written_name", "") or item.name


def _entry(lines: list[str], line: int, name: str) -> Iterator[str]:
    """The line of a name, and what is indented below it."""
    if not 0 < line <= len(lines) or name not in lines[line - 1]:
        return
    inset = _indent(lines[line - 1])
    yield lines[line - 1][inset:]
    for source_line in lines[line : line + MOST_LINES]:
        if not source_line.strip() or _indent(source_line) <= inset:
            return
        yield source_line[inset:]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


_SMALL: Final = 11.0
_LEFT = 64.0
_TOP = 14.0
_WIDTH = 560.0
_HEIGHT = 300.0
_LABELLED: Final = 4
"""Of the slowest ops."""


def roofline_chart(
    ops: Sequence[OpFigures], cycles: Sequence[float], bytes_of: Mapping[str, float], stream: float
) -> str:
    """Share of the time in which the math unit works over its work for each byte that a core takes in, both axes
    logarithmic, under the roof of the math unit and of what the NoC brings into a core. The time is that of one input:
    `cycles` of the op, or that of its bytes where it is longer. The slowest ops bear their names. "" where no op takes
    bytes in and computes."""
    times = [max(time, bytes_of.get(op.op, 0.0) / stream, 1.0) for op, time in zip(ops, cycles, strict=True)]
    points = [
        (op, op.math / bytes_of[op.op], op.math / time, time)
        for op, time in zip(ops, times, strict=True)
        if bytes_of.get(op.op, 0) > 0 and op.math > 0
    ]
    if not points:
        return ""
    across = _Axis([value for _, value, _, _ in points] + [1 / stream], _LEFT, _WIDTH)
    up = _Axis([value for _, _, value, _ in points] + [1.0], _TOP + _HEIGHT, -_HEIGHT)
    parts = [open_chart(_LEFT + _WIDTH + 16, _TOP + _HEIGHT + 44, "roofline")]
    for decade in across.decades:
        x = svg_number(across(10.0**decade))
        parts.append(f'<path class="grid" d="M{x} {_TOP}V{_TOP + _HEIGHT}"/>')
        parts.append(text(float(x), _TOP + _HEIGHT + 16, _power(decade), _SMALL, "soft", "middle"))
    for decade in up.decades:
        y = up(10.0**decade)
        parts.append(f'<path class="grid" d="M{_LEFT} {svg_number(y)}H{_LEFT + _WIDTH}"/>')
        parts.append(text(_LEFT - 6, y + 4, f"{100 * 10.0**decade:g} %", _SMALL, "soft", "end"))
    corner = svg_number(across(1 / stream)), svg_number(up(1.0))
    start = max(10.0**up.low / stream, 10.0**across.low)
    path = f"M{svg_number(across(start))} {svg_number(up(start * stream))}L{' '.join(corner)}H{_LEFT + _WIDTH}"
    tip = f"{stream:g} bytes a cycle into one core, and all of the math unit"
    parts.append(f'<path class="limit" d="{path}"><title>{tip}</title></path>')
    points.sort(key=lambda item: item[3])
    for op, value, share, time in points:
        use = f"{number(value)} math cycles a byte, {100 * share:.2g} % math"
        words = f"{op.op} ({op.type}): {time:,.0f} cycles, {use}"
        place = f'cx="{svg_number(across(value))}" cy="{svg_number(up(share))}"'
        parts.append(
            f'<circle class="bar dot" data-name="{clean(op.op)}" {place} r="5"><title>{clean(words)}</title></circle>'
        )
    dots = [(across(value), up(share)) for _, value, share, _ in points]
    parts += _labels([op.op for op, *_ in points[: -_LABELLED - 1 : -1]], dots[::-1])
    below = "math cycles a byte taken in; up: share of the time in which the math unit works"
    parts.append(text(_LEFT, _TOP + _HEIGHT + 36, below, _SMALL, "soft"))
    return "".join([*parts, "</svg>"])


class _Axis:
    """Whole decades around some values, on pixels."""

    def __init__(self, values: Sequence[float], start: float, length: float) -> None:
        self.low = floor(log10(min(values)))
        self._high = max(ceil(log10(max(values)) - 1e-9), self.low + 1)
        self.decades = range(self.low, self._high + 1)
        self._each = length / (self._high - self.low)
        self._start = start

    def __call__(self, value: float) -> float:
        return self._start + self._each * (min(log10(value), self._high) - self.low)


def _labels(names: Sequence[str], dots: Sequence[tuple[float, float]]) -> list[str]:
    """Names beside the first of the dots: where they lie on least of what is drawn already."""
    parts: list[str] = []
    taken = [(x - 5, x + 5, y) for x, y in dots]
    for name, (x, y) in zip(names, dots, strict=False):
        short = fit_text(name, 260, _SMALL)
        wide = width_of(short, _SMALL)
        places = [(left, y + down) for down in (0, 15, -15, 30, -30, 45, -45) for left in (x + 10, x - 10 - wide)]

        def worth(place: tuple[float, float], wide: float = wide) -> int:
            left, line = place
            inside = left >= _LEFT and left + wide <= _LEFT + _WIDTH + 14 and _TOP <= line <= _TOP + _HEIGHT
            hidden = sum(abs(line - y) < 12 and left < end and begin < left + wide for begin, end, y in taken)
            return hidden + 100 * (not inside)

        left, line = min(places, key=worth)
        taken.append((left, left + wide, line))
        parts.append(text(left, line + 4, short, _SMALL))
    return parts


def _power(decade: int) -> str:
    return f"{10.0**decade:g}" if -4 < decade < 5 else f"1e{decade}"


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
                    cell_figure(epoch.runs),
                    cell_figure(epoch.timing.inputs),
                    cell_figure(epoch.pace),
                    Cell(number(rate), -1.0 if rate is None else rate),
                    cell_figure(epoch.timing.first_input),
                    cell_figure(cycles),
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
    full = extend_until_full(timing, epoch.bottleneck.name)
    steps = critical_steps(timing)
    ops = list(op_figures(netlist, run, epoch))
    busy = {item.op: min(item.active / timing.modelled / max(epoch.pace, 1.0), 1.0) for item in timing.ops}
    notes = {op.op: f"{100 * busy[op.op]:.0f} % of the time between two inputs; {op.provenance}" for op in ops}
    path = {name for step in steps if step.share >= _ON_PATH for name in (step.through or (step.name,))}
    sources = Sources()
    stream = run.what_if.get("noc_bytes", run.chip.stream_rate)
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
        away = f"the pipeline is filled so far: {describe_fill(full, stretch)}"
    else:
        away = f"away from filling and draining: {describe_fill(full, stretch)}"
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
        cells = [share, cell_figure(step.cycles), Cell(step.kind), Cell(link), Cell(causes)]
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
        cells = [Cell(percent(share), item.cycles, share), cell_figure(item.cycles), Cell(kind), named(item.name)]
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
                cell_figure(op.cores),
                cell_figure(item.cost.cycles, bar=min(item.cost.cycles / max(epoch.pace, 1.0), 1.0)),
                cell_figure(100 * op.math / max(epoch.pace, 1.0), 1),
                cell_figure(op.waiting_for_input),
                cell_figure(op.waiting_for_room),
                Cell(percent(shares.get(op.op, 0.0)), shares.get(op.op, 0.0)),
                cell_figure(ops[op.op].at().line),
                Cell(sources.letter(op.provenance), tip=op.provenance),
            ],
            op.op,
        )
        for op, item in sorted(pairs, key=lambda pair: -pair[1].cost.cycles)
    ]
    return Table(columns, rows, "find ops", tall=True)
