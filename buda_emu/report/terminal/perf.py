"""Modelled cycles as lines for a terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from buda_emu.netlist import nodes
from buda_emu.netlist.fields import LOW_EFFORT, LOW_EFFORT_LOSS
from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.checks import BoundResult
from buda_emu.performance.timing.epoch.critical import chain_sentence, critical_steps
from buda_emu.performance.timing.parts import EpochIntervals, program_intervals, run_intervals
from buda_emu.performance.timing.result import PerfRun, hypothetical
from buda_emu.report.terminal.epoch_columns import EPOCHS, OPS, EpochRow, OpRow, Sources
from buda_emu.report.terminal.text import column_table, number, percent, prose, relative, table, verdict, whole
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError

if TYPE_CHECKING:
    from buda_emu.performance.timing.figures import OpFigures
    from buda_emu.performance.timing.result import EpochReport
    from buda_emu.performance.timing.sensitivity import Sensitivity


Row: TypeAlias = "tuple[OpFigures, float]"
"""An op and the cycles that it costs."""

SORTS: Final[dict[str, Callable[[Row], Any]]] = {
    "cycles": lambda row: -row[1],
    "math": lambda row: -row[0].math,
    "input": lambda row: -row[0].waiting_for_input,
    "room": lambda row: -row[0].waiting_for_room,
    "cores": lambda row: -row[0].cores,
    "name": lambda row: row[0].op,
    "type": lambda row: (row[0].type, -row[1]),
}
"""Name of a sort order -> sort key of ops: figures from the greatest on, words from a to z."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The ops and epochs to print: of each epoch the `top` ops `by` a key of SORTS (None: the netlist's order), limited
    to certain `ops` and `epochs`.

    Names may be patterns with `*`; an epoch may be named by its number from 1 on.
    """

    top: int | None = None
    by: str | None = None
    ops: Sequence[str] = ()
    epochs: Sequence[str] = ()

    def select_epochs(self, epochs: "Sequence[EpochReport]") -> "list[tuple[int, EpochReport]]":
        """Return the selected epochs with their numbers, from 1 on; all if no epochs and ops are named. Raises
        HostError for a name that no epoch or op has."""
        numbered = list(enumerate(epochs, 1))
        for name in self.epochs:
            if not any(_is_epoch(name, number, epoch) for number, epoch in numbered):
                graphs = list(dict.fromkeys(chain.from_iterable(epoch.graphs for epoch in epochs)))
                hint = _name_hint(name, graphs)
                raise HostError(f"--epoch {name}: no such epoch{hint}; they have numbers from 1 on")
        ops = list(dict.fromkeys(chain.from_iterable(map(_op_names, epochs))))
        for name in self.ops:
            if not any(fnmatchcase(op, name) for op in ops):
                hint = _name_hint(name, ops)
                raise HostError(f"--op {name}: no such op{hint}; patterns such as '*norm*' are names, too")
        return [(number, epoch) for number, epoch in numbered if self._selects_epoch(number, epoch)]

    def select_ops(self, rows: "Iterable[Row]") -> "list[Row]":
        """Return the rows of the selected ops of an epoch, in the order to print them."""
        selected = [row for row in rows if self._selects_op(row[0].op)]
        by = self.by
        if by is None and self.top is not None:
            by = "cycles"
        if by is not None:
            selected.sort(key=SORTS[by])
        return selected[: self.top]

    def _selects_epoch(self, number: int, epoch: "EpochReport") -> bool:
        """Return whether an epoch is selected by its name or number, and has a selected op."""
        if self.epochs and not any(_is_epoch(name, number, epoch) for name in self.epochs):
            return False
        return not self.ops or any(map(self._selects_op, _op_names(epoch)))

    def _selects_op(self, op: str) -> bool:
        """Return whether an op is selected by name."""
        return not self.ops or any(fnmatchcase(op, name) for name in self.ops)


def _op_names(epoch: "EpochReport") -> list[str]:
    """Return the names of the ops of an epoch."""
    return [op.op for op in epoch.timing.ops]


def _is_epoch(name: str, index: int, epoch: "EpochReport") -> bool:
    """Return whether `name` selects an epoch: it is the epoch's number `index`, counted from 1, or a pattern that
    matches one of its graphs."""
    return name == str(index) or any(fnmatchcase(graph, name) for graph in (*epoch.graphs, " + ".join(epoch.graphs)))


def _name_hint(name: str, names: Sequence[str]) -> str:
    """Return a similar name in parentheses; "" if there is none."""
    hint = near(name, names)
    return f" ({hint})" if hint else ""


def epochs_table(netlist: Netlist, run: "PerfRun", epochs: "Sequence[tuple[int, EpochReport]]") -> str:
    """Return a table of epochs with their numbers, a row for each; the slowest is marked."""
    slowest = max((epoch.pace for _, epoch in epochs), default=0.0)
    marked: list[int] = []
    if len(epochs) > 1:
        marked = [row for row, (_, epoch) in enumerate(epochs) if epoch.pace == slowest]
    rows = [EpochRow(netlist, run, epoch, index=number) for number, epoch in epochs]
    return column_table(EPOCHS, rows, marked=marked)


def ops_lines(
    netlist: "Netlist", run: "PerfRun", epoch: "EpochReport", selection: Selection, sources: Sources
) -> Iterator[str]:
    """Yield the table of an epoch's selected ops, its bottleneck marked by a star, and the number of ops left out.
    Letters and flags that the table shows are added to `sources`, for the legend."""
    from buda_emu.performance.timing.figures import op_figures

    costs = (op.cost.cycles for op in epoch.timing.ops)
    selected = selection.select_ops(zip(op_figures(netlist, run, epoch), costs, strict=True))
    timings = {timing.op: timing for timing in epoch.timing.ops}
    epoch_row = EpochRow(netlist, run, epoch)
    rows = [
        OpRow(epoch_row, timings[figures.op], figures, letter=sources.letter(figures.provenance))
        for figures, _ in selected
    ]
    without: tuple[str, ...] = ("flags",)
    if any(row.figures.flags for row in rows):
        without = ()
    for row in rows:
        sources.note_flags(row.figures.flags)
    yield column_table(
        OPS, rows, without=without, marked=[number for number, row in enumerate(rows) if row.is_bottleneck]
    )
    yield from _ops_left_out(len(epoch.timing.ops) - len(rows), selection)


def _ops_left_out(count: int, selection: Selection) -> Iterator[str]:
    """Yield a line on the ops that a table leaves out; nothing if there are none."""
    hint = ""
    if selection.top is not None:
        hint = " (--top 0 shows all)"
    if count:
        yield f"... and {plural(count, 'more op')}{hint}"


_ALL = Selection()


def perf_lines(netlist: Netlist, run: PerfRun, selection: Selection = _ALL) -> Iterator[str]:
    """Yield a table of epochs, then sentences and a table of ops for each, as far as they are selected, and the legend.
    Raises HostError for a name of the selection that no epoch or op has."""
    epochs = selection.select_epochs(run.epochs)
    title = f"{run.netlist}: {run.chip.title}, {run.clock:g} MHz, modelled"
    if run.assumed:
        title += f", {hypothetical(run.assumed)}"
    yield title
    if netlist.effort == LOW_EFFORT:
        yield from prose(f"compiled with effort low, the first legal placement; {LOW_EFFORT_LOSS}")
    yield from _board_lines(netlist, run)
    yield ""
    yield epochs_table(netlist, run, epochs)
    yield ""
    intervals = run_intervals(run)
    for sentence in program_sentences(run, intervals):
        yield from prose(sentence)
    yield from memory_lines(run)
    sources = Sources()
    for index, epoch in epochs:
        yield ""
        yield from prose(f"{index} {epoch.program}: {' + '.join(epoch.graphs)}: {epoch.bottleneck.sentence}")
        yield from prose(_uncertainty_sentence(epoch, intervals[index - 1]))
        yield from prose(chain_sentence(critical_steps(epoch.timing), assumed=run.assumed))
        yield from ops_lines(netlist, run, epoch, selection, sources)
    meaning = list(sources.lines())
    if meaning:
        yield ""
        yield from meaning


def _board_lines(netlist: Netlist, run: PerfRun) -> Iterator[str]:
    """Yield the sentence on the board that a netlist was compiled for where a run models a chip that is on none."""
    if netlist.board and not run.chip.board:
        yield from prose(
            f"compiled for the chips of {netlist.board}; these figures are of another chip: --board {netlist.board} "
            "models it on them"
        )


def program_sentences(run: PerfRun, intervals: Sequence[EpochIntervals]) -> Iterator[str]:
    """Yield a sentence on the cycles of each program, and one on the inputs of the whole run; `intervals` are those of
    the epochs."""
    loads = run.program_loads()
    bounds = program_intervals(run, intervals)
    for program, cycles in run.programs().items():
        took = f"{whole(cycles)} cycles ({bounds[program]}), {_milliseconds_text(run.seconds(cycles))}"
        took += f", {percent(loads[program] / cycles)} loading epochs"
        yield f"program {program}: {took}{_host_link_clause(run, program, cycles)}"
    if run.inputs:
        yield _overall_sentence(run)


def _overall_sentence(run: PerfRun) -> str:
    """Return the sentence on how many inputs the whole run takes, and how fast."""
    figures = f"{number(run.overall_inputs_per_second)} inputs per second, {whole(run.overall_cycles_per_input)}"
    counted = "all epochs, loading and the host link counted"
    duration = _milliseconds_text(run.overall_seconds)
    return f"{plural(run.inputs, 'input')} in {duration}: {figures} cycles per input; {counted}"


def _uncertainty_sentence(epoch: "EpochReport", intervals: EpochIntervals) -> str:
    """Return the sentence on the cycles of a run of an epoch and of an input in its steady state (or of its only
    input), each with the interval in which silicon lies with a probability of 90 %."""
    run = f"a run takes {whole(epoch.cycles)} cycles ({intervals.run})"
    if epoch.timing.cycles_per_input is None:
        return f"{run}, its only input {whole(epoch.pace)} ({intervals.pace})"
    return f"{run}, an input in its steady state {whole(epoch.pace)} ({intervals.pace})"


def _milliseconds_text(seconds: float) -> str:
    """Return a time in milliseconds."""
    return f"{number(1e3 * seconds, 3)} ms"


def _host_link_clause(run: PerfRun, program: str, cycles: float) -> str:
    """Return a clause on how long the host link takes to push and pop for a program of `cycles`, and whether that
    bounds the program; "" if the program does not use the link."""
    host = run.host_seconds()[program]
    if not host:
        return ""
    text = f"; the host link takes {_milliseconds_text(host)} to push and pop"
    if host > run.seconds(cycles):
        return f"{text}, which bounds it"
    return f"{text}, which can go on meanwhile"


def memory_lines(run: PerfRun) -> Iterator[str]:
    """Yield a line on the use of L1 by the op that needs most, and one on the fullest DRAM channel."""
    if run.l1:
        op = max(run.l1, key=lambda name: run.l1[name])
        yield f"L1: at most {run.l1[op] >> 10:,} of {run.l1_capacity >> 10:,} KiB, by op {op}"
    if run.dram:
        use = max(run.dram, key=lambda channel: channel.share)
        size = f"{use.used / 2**20:,.1f} of {use.capacity >> 20:,} MiB"
        yield f"DRAM: at most {size} ({percent(use.share)}), in channel {use.channel} of chip {use.chip}"


def sensitivity_lines(run: PerfRun, study: "Sensitivity", top: int | None = None) -> Iterator[str]:
    """Yield a table of what each resource of the chip would bring if it were twice, and cost if it were half as fast,
    the greatest gain first; for several epochs also a table of the `top` longest (None: all) with each resource
    doubled."""
    base = study.base.cycles_per_input
    yield ""
    yield from prose(
        f"sensitivity: {whole(base)} cycles per input on the chips, loading included; each row is modelled again with "
        "one resource twice and half as fast"
    )
    if run.is_bound_by_host:
        yield from prose(
            f"  no row counts that the host link takes longer to push and pop: {whole(run.overall_cycles_per_input)} "
            "cycles per input"
        )
    yield table(
        ("resource", "twice", "%", "half", "%", "with twice it is limited by"),
        (
            (
                effect.title,
                whole(effect.doubled.cycles_per_input),
                relative(base, effect.doubled.cycles_per_input),
                whole(effect.halved.cycles_per_input),
                relative(base, effect.halved.cycles_per_input),
                effect.doubled.bottleneck,
            )
            for effect in study.resources
        ),
        right=(1, 2, 3, 4),
    )
    if len(run.epochs) > 1:
        yield ""
        yield from _sensitivity_of_epochs(run, study, top)
    for title, reason in study.unused:
        yield from prose(f"no row for {title}: {reason}")


def _sensitivity_of_epochs(run: PerfRun, study: "Sensitivity", top: int | None) -> Iterator[str]:
    """Yield the table of epochs, the longest first: their share of the cycles per input as they are, and with each
    resource doubled."""
    longest = sorted(range(len(run.epochs)), key=lambda number: -study.base.epochs[number])
    yield "cycles per input of each epoch, with twice"
    yield table(
        ("#", "graph", "as it is", *(effect.title for effect in study.resources)),
        (
            (
                str(number + 1),
                " + ".join(run.epochs[number].graphs),
                whole(study.base.epochs[number]),
                *(whole(effect.doubled.epochs[number]) for effect in study.resources),
            )
            for number in longest[:top]
        ),
        right=(0, *range(2, 3 + len(study.resources))),
    )
    if top is not None and len(longest) > top:
        yield f"... and {plural(len(longest) - top, 'more epoch')} (--top 0 shows all)"


def expectation_lines(sections: Mapping[str, nodes.Node], results: Sequence[BoundResult]) -> Iterator[str]:
    """Yield the section performance-check of a netlist with the modelled figures as expectations, to be pasted into it;
    entries that cannot be modelled stay as they are. Nothing if there is no such section."""
    section = sections.get("performance-check")
    if section is None:
        return
    observed = {(check.config, check.bound.metric): check.observed for check in results}
    yield "performance-check:"
    for config, value in _mapping_items(section):
        yield f"  {config}:"
        for key, node in _mapping_items(value):
            yield f"    {key}: {_expectation_text(node, observed.get((config, key)))}"


def _mapping_items(node: nodes.Node) -> Iterator[tuple[str, nodes.Node]]:
    """Yield keys and values of a mapping node; nothing for another node."""
    if isinstance(node, nodes.Mapping):
        for key, _, value in node.items():
            yield key, value


def _expectation_text(node: nodes.Node, modelled: float | None) -> str:
    """Return an entry of performance-check in flow style, with the modelled figure, if any, as its expectation."""
    if modelled is None or not isinstance(node, nodes.Mapping):
        return _node_text(node)
    fields = {name: _node_text(value) for name, value in _mapping_items(node)}
    for name in fields.keys() & {"expected", "min_bound"}:
        fields[name] = f"{modelled:.6g}"
    return f"{{{', '.join(f'{name}: {text}' for name, text in fields.items())}}}"


def _node_text(node: nodes.Node) -> str:
    """Return a YAML node in flow style."""
    if isinstance(node, nodes.Scalar):
        return node.text
    if isinstance(node, nodes.Sequence):
        return f"[{', '.join(_node_text(child) for child in node.items)}]"
    return f"{{{', '.join(f'{name}: {_node_text(child)}' for name, _, child in node.items())}}}"


def check_lines(results: Sequence[BoundResult]) -> Iterator[str]:
    """Yield the table of performance-check: what was expected, what is modelled, and the verdict; nothing without
    results."""
    if not results:
        return
    yield "performance-check"
    yield table(
        ("config", "verdict", "expected", "modelled", "metric", "graph", "target"),
        (
            (
                check.config,
                verdict(check.passed),
                str(check.bound),
                number(check.observed, 6),
                check.bound.metric,
                check.graph or "-",
                check.target or "-",
            )
            for check in results
        ),
        right=(3,),
        whole=(1, 2),
    )
    missed = sum(not check.passed for check in results)
    if missed:
        yield f"{plural(missed, 'figure')} missed"
    else:
        yield "every figure holds"
