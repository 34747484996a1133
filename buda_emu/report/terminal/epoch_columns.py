"""The columns of modelled epochs (`EPOCHS`) and of their ops (`OPS`) in every output of `perf`: tables for a terminal,
pages, CSV and JSON. One line declares a column (docs/contributing.md, "A column of a result"); `Sources` is the legend
below such tables.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.epoch.critical import CriticalStep, critical_steps
from buda_emu.performance.timing.epoch.result import Busy, OpTiming
from buda_emu.performance.timing.figures import OpFigures, op_figures
from buda_emu.performance.timing.flags import MEANINGS, Flag
from buda_emu.performance.timing.parts import EpochIntervals, cost_interval, epoch_intervals
from buda_emu.performance.timing.result import Bottleneck, EpochReport, PerfRun
from buda_emu.performance.timing.transfers.loading import ChipLoad
from buda_emu.performance.timing.uncertainty import Interval, Part
from buda_emu.report.terminal.text import number, percent, whole, wrap
from buda_emu.support.columns import DATA, SHOWN, Column, Columns, View, figure

_JSON: Final[tuple[View, ...]] = ("json",)
_ROWS: Final[tuple[View, ...]] = ("rows",)
_PAGE: Final[tuple[View, ...]] = ("page",)
_TABLES: Final[tuple[View, ...]] = ("rows", *SHOWN)
# Tips, which explain the heading of a column in a page:
_CYCLES: Final = "of one input on each core"
_FROM: Final = "the source of the cycles; the letters are explained below"
_FLAGS: Final = "what the op wastes, or what holds it back; a tooltip says what each means"
_ON_SILICON: Final = "the steady cycles lie there on silicon with a probability of 90 %"
_STEADY: Final = "from one input to the next, of a single input its own"
_STEADY_INPUTS: Final = "of this epoch alone, without loading, other epochs and the host link"
_LOADING: Final = "share of its cycles in which blobs, binaries and queue headers are read"
_KIND: Final = "of its bottleneck"


@dataclass(frozen=True)
class EpochRow:
    """A modelled epoch of a run as a row of `EPOCHS`: `index` is its number from 1 on, for the terminal; `total_cycles`
    are those of all epochs, of which a page shows its share."""

    netlist: Netlist
    run: PerfRun
    report: EpochReport
    index: int = 0
    total_cycles: float = 1.0

    @cached_property
    def intervals(self) -> EpochIntervals:
        """The intervals in which silicon lies with a probability of 90 %."""
        return epoch_intervals(self.run, self.report)

    @property
    def graphs(self) -> str:
        """The graphs that run together, joined by " + "."""
        return " + ".join(self.report.graphs)

    @property
    def inputs_per_second(self) -> float | None:
        """The inputs per second in the steady state, None if the epoch has no pace."""
        if not self.report.pace:
            return None
        return 1 / self.run.seconds(self.report.pace)

    @property
    def all_cycles(self) -> float:
        """The cycles of all runs of the epoch."""
        return self.report.cycles * self.report.runs


def _interval_text(row: EpochRow) -> str:
    """Return the interval of the cycles of an input as text."""
    return f"{whole(row.intervals.pace.low)} to {whole(row.intervals.pace.high)}"


def _interval_width(row: EpochRow) -> float:
    """Return the width of the interval of the cycles per input, by which a page sorts."""
    return row.intervals.pace.high - row.intervals.pace.low


def _bottleneck_text(row: EpochRow) -> str:
    """Return the bottleneck of an epoch in a few words; the whole sentence stands with the epoch."""
    bottleneck = row.report.bottleneck
    if not bottleneck.name:
        return bottleneck.sentence
    return f"{bottleneck.name}, {100 * bottleneck.share:.0f} % of an input"


def _tenths(share: float) -> str:
    """Return a share in per cent with one digit after the point, without the sign."""
    return f"{100 * share:.1f}"


_STEPS: Final = Columns[CriticalStep](CriticalStep, Column("waits", dict[str, float], lambda step: dict(step.waits)))


@dataclass(frozen=True, slots=True)
class OpRow:
    """An op of a modelled epoch as a row of `OPS`: `letter` stands for the source of its cycles in the legend
    (`Sources`), `path_share` is its share of the critical path, `line` its line in the netlist."""

    epoch: EpochRow
    timing: OpTiming
    figures: OpFigures
    letter: str = ""
    path_share: float = 0.0
    line: int = 0

    @property
    def is_bottleneck(self) -> bool:
        """True where the op limits its epoch."""
        return self.figures.op == self.epoch.report.bottleneck.name

    @property
    def share_of_pace(self) -> float:
        """The cycles of an input in this op, as a share of those between two inputs of the epoch."""
        return self.timing.cost.cycles / max(self.epoch.report.pace, 1.0)

    @property
    def math_share(self) -> float:
        """The share of the pace that the math unit works."""
        return self.figures.math / max(self.epoch.report.pace, 1.0)

    @property
    def interval(self) -> Interval:
        """The interval of the cycles of an input."""
        return cost_interval(self.timing.cost)


def _star_bottleneck(row: OpRow) -> str:
    """Return the name of an op, with a star after that of the bottleneck."""
    return f"{row.figures.op} *" if row.is_bottleneck else row.figures.op


def _flags_text(row: OpRow) -> str:
    """Return the flags of an op as text."""
    return ", ".join(row.figures.flags)


def _or_dash(text: str) -> str:
    """Return a text, "-" for an empty one."""
    return text or "-"


def op_rows(epoch: EpochRow) -> list[OpRow]:
    """Return the ops of an epoch in the order of the netlist."""
    pairs = zip(epoch.report.timing.ops, op_figures(epoch.netlist, epoch.run, epoch.report), strict=True)
    return [OpRow(epoch, timing, figures) for timing, figures in pairs]


OPS: Final = Columns[OpRow](
    Column("program", str, lambda row: row.epoch.report.program, views=_ROWS),
    Column("graphs", str, lambda row: row.epoch.graphs, views=_ROWS),
    Column("op", str, lambda row: row.figures.op, title="op", shown=_star_bottleneck, views=_TABLES),
    Column("type", str, lambda row: row.figures.type, title="type", choose=True, views=_TABLES),
    Column("chip", int, lambda row: row.figures.chip, views=_ROWS),
    figure("cores", "cores", lambda row: row.figures.cores, whole, views=_TABLES),
    figure("cycles", "cycles", lambda row: row.timing.cost.cycles, whole, views=_TABLES, tip=_CYCLES),
    Column("cycles_low", float, lambda row: row.interval.low, views=_ROWS),
    Column("cycles_high", float, lambda row: row.interval.high, views=_ROWS),
    Column("math_cycles", float, lambda row: row.figures.math, views=_ROWS),
    Column("share_of_pace", float, lambda row: row.share_of_pace, views=_ROWS),
    figure("", "math %", lambda row: row.math_share, _tenths, tip="share of the pace that the math unit works"),
    figure("waiting_for_input", "waits for input", lambda row: row.figures.waiting_for_input, whole, views=_TABLES),
    figure("waiting_for_room", "waits for room", lambda row: row.figures.waiting_for_room, whole, views=_TABLES),
    figure("", "of the path", lambda row: row.path_share, percent, views=_PAGE, tip="share of the critical path"),
    figure("", "line", lambda row: row.line, views=_PAGE),
    Column("", str, lambda row: row.letter, title="from", look="word", choose=True, tip=_FROM),
    Column("provenance", str, lambda row: row.figures.provenance, views=_ROWS),
    Column(
        "flags", str, _flags_text, title="flags", text=_or_dash, look="words", views=_TABLES, choose=True, tip=_FLAGS
    ),
    *Columns[OpFigures](OpFigures).within(OpRow, lambda row: row.figures, _JSON),
    Column("cost_cycles", float, lambda row: row.timing.cost.cycles, views=_JSON),
    Column("cost_interval", Interval, lambda row: row.interval, views=_JSON),
)
"""The columns of an op of a modelled epoch."""

EPOCHS: Final = Columns[EpochRow](
    figure("", "#", lambda row: row.index, views=("terminal",)),
    Column("graphs", str, lambda row: row.graphs, title="graph", views=SHOWN),
    Column("program", str, lambda row: row.report.program, title="program", choose=True),
    Column("graphs", str, lambda row: row.graphs, views=_ROWS),
    Column("graphs", list[str], lambda row: row.report.graphs, views=_JSON),
    Column("chips", list[int], lambda row: row.report.chips, views=_JSON),
    figure("runs", "runs", lambda row: row.report.runs, whole, kind=int),
    figure("inputs", "inputs", lambda row: row.report.timing.inputs, whole, kind=int),
    Column("cycles_per_input", float, lambda row: row.report.timing.cycles_per_input, views=_JSON),
    figure("cycles_per_input", "steady cycles", lambda row: row.report.pace, whole, views=_TABLES, tip=_STEADY),
    Column("cycles_per_input_low", float, lambda row: row.intervals.pace.low, views=_ROWS),
    Column("cycles_per_input_high", float, lambda row: row.intervals.pace.high, views=_ROWS),
    figure("", "90 %", _interval_width, shown=_interval_text, views=_PAGE, tip=_ON_SILICON),
    figure(
        "inputs_per_second",
        "steady inputs/s",
        lambda row: row.inputs_per_second,
        number,
        views=_TABLES,
        tip=_STEADY_INPUTS,
    ),
    figure("first_input_cycles", "first input", lambda row: row.report.timing.first_input, whole, kind=float),
    Column("total_cycles", float, lambda row: row.report.timing.total, views=DATA),
    figure("", "cycles", lambda row: row.all_cycles, whole, views=_PAGE, tip="of all runs, with loading it each time"),
    figure("share", "share", lambda row: row.all_cycles / row.total_cycles, percent, views=_PAGE),
    Column("pace_interval", Interval, lambda row: row.intervals.pace, views=_JSON),
    Column("run_cycles", float, lambda row: row.report.cycles, views=_JSON),
    Column("run_interval", Interval, lambda row: row.intervals.run, views=_JSON),
    Column("parts", list[Part], lambda row: row.intervals.parts, views=_JSON),
    Column("bottleneck", Bottleneck, lambda row: row.report.bottleneck, views=_JSON),
    Column("critical_path", [_STEPS], lambda row: critical_steps(row.report.timing), views=_JSON),
    Column("ops", [OPS], op_rows, views=_JSON),
    Column("memory", list[Busy], lambda row: row.report.timing.shared.memory, views=_JSON),
    Column("transfers", list[Busy], lambda row: row.report.timing.shared.transfers, views=_JSON),
    Column("noc_links", list[Busy], lambda row: row.report.timing.shared.links, views=_JSON),
    Column("host_bytes", int, lambda row: row.report.host_bytes, views=_JSON),
    figure("load_cycles", "loading", lambda row: row.report.load.cycles, whole, kind=float, views=(*DATA, "terminal")),
    figure("load_share", "load %", lambda row: row.report.load_share, _tenths, kind=float, tip=_LOADING),
    Column("loads", list[ChipLoad], lambda row: row.report.load.chips, views=_JSON),
    Column("bottleneck_kind", str, lambda row: row.report.bottleneck.kind, views=_ROWS),
    Column("", str, lambda row: row.report.bottleneck.kind, title="kind", views=_PAGE, choose=True, tip=_KIND),
    Column("bottleneck", str, lambda row: row.report.bottleneck.name, title="bottleneck", views=("rows", "terminal")),
    Column("", str, _bottleneck_text, title="held back by", look="words", views=_PAGE),
    Column("bottleneck_share", float, lambda row: row.report.bottleneck.share, views=_ROWS),
)
"""The columns of a modelled epoch. Cycles are of the AI clock."""


class Sources:
    """The legend of tables of ops: a letter for each source of cycles, so that a row shows a letter and the legend
    spells the source out once, and the meanings of the flags that rows show."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}
        self._flags: set[Flag] = set()

    def note_flags(self, flags: Iterable[Flag]) -> None:
        """Add the flags of an op that a table shows to those that the legend explains."""
        self._flags.update(flags)

    def letter(self, provenance: str) -> str:
        """Return the letter of a source of cycles, a new one for a new source: a, b, ... z, a1, b1, ..."""
        count = len(self._letters)
        return self._letters.setdefault(provenance, f"{chr(ord('a') + count % 26)}{count // 26 or ''}")

    @property
    def meanings(self) -> list[tuple[str, str]]:
        """Each letter with its source, in the order in which the letters were given."""
        return [(letter, provenance) for provenance, letter in self._letters.items()]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the legend of the letters and flags; nothing if none was used."""
        if self._letters:
            yield "cycles are (from):"
            for letter, provenance in self.meanings:
                first, *others = provenance.split("; ")
                yield wrap(f"  {letter}  {first}", "     ")
                for other in others:
                    yield wrap(f"     {other}", "     ")
        if self._flags:
            yield "flags:"
            for flag, meaning in MEANINGS.items():
                if flag in self._flags:
                    yield wrap(f"  {flag}: {meaning}", "     ")
