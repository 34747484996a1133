"""Comparison of two modelled runs: the changes of each epoch and op, and the resource that caused them."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from buda_emu.performance.timing.uncertainty import (
    LISTED_LINKS,
    LOADING_UNIT,
    Interval,
    Part,
    interval_of_difference,
    total_cycles,
)
from buda_emu.report.terminal.text import number, relative, table, whole, wrap
from buda_emu.spec.boards import board
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError

_MOST: Final = 8  # units of an epoch that are listed
_SAME: Final = 1e-9  # relative: figures that differ by less are equal
_ADDED: Final = "not before"
_GONE: Final = "not any more"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The cycles that a unit works for each input, before and after; None where the run does not have the unit, or does
    not list it: of links a run lists only the busiest."""

    kind: str  # "op", "memory", "link", "transfer"
    name: str
    before: float | None
    after: float | None
    unlisted_at_most: float | None = None
    """The most cycles of a link in the run that does not list it: those of the last link that it lists."""

    @property
    def difference(self) -> float:
        """The cycles after less those before; of a link that one run does not list the least difference."""
        before = self.before
        after = self.after
        if before is None:
            before = self.unlisted_at_most or 0.0
        if after is None:
            after = self.unlisted_at_most or 0.0
        return after - before

    def figures(self) -> tuple[str, str, str, str]:
        """Return before, after, difference and per cent as texts; "-" for what is not known, and `<= 1,234` for a link
        that a run does not list."""
        before, after, difference, percent = _figure_cells(self.before, self.after)
        if self.unlisted_at_most is not None:
            bound = f"<= {whole(self.unlisted_at_most)}"
            if self.before is None:
                before = bound
            else:
                after = bound
        return before, after, difference, percent


Change = Literal["added", "removed", "slower", "faster", "same"]


def kind_of_change(before: float | None, after: float | None) -> Change:
    """Return the kind of a change of cycles; None stands for what a run does not have."""
    if before is None:
        return "added"
    if after is None:
        return "removed"
    if abs(after - before) <= _SAME * max(abs(before), abs(after)):
        return "same"
    return "slower" if after > before else "faster"


@dataclass(frozen=True, slots=True)
class OpChange:
    """An op of two runs, matched by its name: the cycles that it works for one input on each of its cores, the number
    of cores, and the graphs of its epoch. What a run does not have or does not state is None or empty."""

    name: str
    type: str
    before: float | None
    after: float | None
    cores_before: int | None
    cores_after: int | None
    graphs_before: str
    graphs_after: str

    @property
    def difference(self) -> float:
        """The cycles after less those before; an op that a run does not have takes none there."""
        return (self.after or 0.0) - (self.before or 0.0)

    @property
    def kind(self) -> Change:
        """The kind of the change."""
        return kind_of_change(self.before, self.after)


@dataclass(frozen=True, slots=True)
class EpochChange:
    """One epoch before and after: its cycles per input, its units that differ, those with the greatest change first,
    and the reason of the change. `cycles_before` and `cycles_after` are those of all its runs, each with its loading;
    None where a run does not have the epoch or does not state them."""

    program: str
    graphs: str
    before: float | None
    after: float | None
    units: tuple[FigureChange, ...]
    reason: str
    interval: Interval | None
    """The interval of the difference; None if a run is without intervals, or has no such epoch."""
    cycles_before: float | None = None
    cycles_after: float | None = None

    @property
    def difference(self) -> float:
        """The cycles per input after less those before; None counts as 0."""
        return (self.after or 0.0) - (self.before or 0.0)

    @property
    def percent(self) -> float | None:
        """The difference in per cent of `before`, or None if the epoch is new or gone."""
        if not self.before or self.after is None:
            return None
        return 100 * self.difference / self.before


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs compared. `programs` holds the cycles before and after of each program that both have, `intervals` where
    their difference lies on silicon with a probability of 90 %; it is empty if a run is without intervals. `ops` holds
    all ops, those with the greatest change first, and `bottleneck` a sentence on what limits the slowest epoch."""

    before: str
    after: str
    conditions: tuple[str, ...]  # that differ beside the netlist: clock, chip, what-if
    programs: Mapping[str, tuple[float, float]]
    intervals: Mapping[str, Interval]
    epochs: tuple[EpochChange, ...]
    ops: tuple[OpChange, ...] = ()
    bottleneck: str = ""
    clocks_mhz: tuple[float, float] | None = None
    """The clocks of the chips before and after, if they differ: then cycles do not say which run takes longer."""
    host_bound_seconds: tuple[float, float] | None = None
    """The seconds of the whole run before and after, if the host link bounds one of them: then cycles of the chips do
    not say how long it takes."""
    shared_conditions: tuple[str, ...] = ()
    """What both runs have beside the netlist and unlike a plain run: board, grid, what-if. It makes no difference."""

    @property
    def changed_epochs(self) -> tuple[EpochChange, ...]:
        """The epochs whose pace or units differ."""
        return tuple(epoch for epoch in self.epochs if epoch.units or epoch.before != epoch.after)

    def worst_percent(self) -> float:
        """Return by how many per cent the slowed program or epoch that lost most is slower; 0 if none is slower."""
        lost = [100 * (after - before) / before for before, after in self.programs.values() if before]
        lost += [epoch.percent for epoch in self.epochs if epoch.percent is not None]
        return max([*lost, 0.0])


NO_COMPARISON: Final = RunComparison(before="", after="", conditions=(), programs={}, intervals={}, epochs=())
"""The comparison of netlists that were not modelled."""


def against(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "the earlier run") -> RunComparison:
    """Compare two results of `perf --json`, the earlier one first, which is from the file `path`. Raises HostError if
    one lacks a key or has a value of another kind."""
    try:
        old = _epochs_by_key(before)
        new = _epochs_by_key(after)
        keys = [*new, *(key for key in old if key not in new)]
        old_cycles = before["program_cycles"]
        new_cycles = after["program_cycles"]
        programs = {name: (old_cycles[name], new_cycles[name]) for name in new_cycles if name in old_cycles}
        return RunComparison(
            before=before["netlist"],
            after=after["netlist"],
            conditions=tuple(_conditions(before, after)),
            programs=programs,
            intervals=_program_intervals(before, after, programs),
            epochs=tuple(_epoch_change(key, old.get(key), new.get(key)) for key in keys),
            ops=tuple(sorted(_op_changes(old, new), key=lambda change: -abs(change.difference))),
            bottleneck=_bottleneck_sentence(old, new),
            clocks_mhz=_different_clocks(before, after),
            host_bound_seconds=_host_bound_seconds(before, after),
            shared_conditions=tuple(_shared_conditions(before, after)),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise HostError(f"{path}: it cannot be compared: {error!r}: write it again with `perf --json`") from None


def _different_clocks(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the clocks of both runs in MHz, None if they are the same."""
    if before["clock_mhz"] == after["clock_mhz"]:
        return None
    return float(before["clock_mhz"]), float(after["clock_mhz"])


def _host_bound_seconds(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the seconds of both whole runs if the host link bounds at least one of them; None if it bounds neither, or
    an earlier version wrote no such seconds."""
    if "overall_seconds" not in before or "overall_seconds" not in after:
        return None
    if not any(_is_bound_by_host(run) for run in (before, after)):
        return None
    return float(before["overall_seconds"]), float(after["overall_seconds"])


def _is_bound_by_host(run: Mapping[str, Any]) -> bool:
    """Return whether a run takes longer than its chips do, since the host link is slower."""
    seconds = sum(run["program_cycles"].values()) / (1e6 * float(run["clock_mhz"]))
    return float(run["overall_seconds"]) > seconds * (1 + _SAME)


def _program_intervals(
    before: Mapping[str, Any], after: Mapping[str, Any], programs: Mapping[str, tuple[float, float]]
) -> dict[str, Interval]:
    """Return the interval of the difference of each program's cycles, by name; {} if a run was written before there
    were intervals. Units that work equally long in both runs do not widen it."""
    old = _epochs_by_key(before)
    new = _epochs_by_key(after)
    if not all({"parts", "runs"} <= epoch.keys() for epoch in (*old.values(), *new.values())):
        return {}
    same: set[str] = set()
    for key in old.keys() & new.keys():
        same |= {f"{key[1]}: {unit}" for unit in _same_units(old[key], new[key])}
    intervals: dict[str, Interval] = {}
    for name, (cycles_before, cycles_after) in programs.items():
        parts_before = list(_program_parts(old, name))
        parts_after = list(_program_parts(new, name))
        apart = cycles_after - cycles_before - total_cycles(parts_after) + total_cycles(parts_before)  # epoch_setup
        intervals[name] = interval_of_difference(parts_before, parts_after, same).plus(apart)
    return intervals


def _program_parts(epochs: Mapping[tuple[str, str], Mapping[str, Any]], program: str) -> Iterator[Part]:
    """Yield the parts of the cycles of a program: those of its epochs, all runs of an epoch together."""
    for (of_program, graphs), epoch in epochs.items():
        if of_program == program:
            for part in epoch["parts"]:
                cycles = epoch["runs"] * float(part["cycles"])
                yield Part(f"{graphs}: {part['unit']}", part["family"], cycles)


def _pace_interval(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Interval | None:
    """Return the interval of the difference of an epoch's cycles per input; None if a run lacks the epoch or has no
    intervals.
    """
    if old is None or new is None or "parts" not in old or "parts" not in new:
        return None
    return interval_of_difference(_pace_parts(old), _pace_parts(new), _same_units(old, new))


def _pace_parts(epoch: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of the cycles of an input of an epoch: those of a run without its loading, in proportion."""
    pace = _pace(epoch) or 0.0
    for part in epoch["parts"]:
        if part["unit"] != LOADING_UNIT:
            cycles = float(part["cycles"]) * pace / max(float(epoch["total_cycles"]), 1.0)
            yield Part(part["unit"], part["family"], cycles)


def _same_units(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the units of an epoch, by the names that its parts have, that work equally long in both runs; loading is
    among them if it takes equally long."""
    changed = {(change.kind, change.name) for change in _unit_changes(_unit_cycles(old), _unit_cycles(new))}
    same: set[str] = set()
    for kind, name in (_unit_cycles(new).keys() & _unit_cycles(old).keys()) - changed:
        if kind == "op":
            same.add(f"op {name}")
        else:
            same.add(name)
    if old["load_cycles"] == new["load_cycles"]:
        same.add(LOADING_UNIT)
    return same


def _epochs_by_key(run: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the epochs of a run by the name of the program and the joined names of the graphs."""
    return {(epoch["program"], " + ".join(epoch["graphs"])): epoch for epoch in run["epochs"]}


def _conditions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions other than the netlist that differ: chip, clock, board, what-if, parameters."""
    for key, word in (("arch", "chip"), ("clock_mhz", "clock in MHz")):
        if before[key] != after[key]:
            yield f"{word}: {before[key]}, now {after[key]}"
    old_board = before.get("board") or "none"  # earlier versions wrote no board
    new_board = after.get("board") or "none"
    if old_board != new_board:
        yield f"board: {old_board}, now {new_board}"
    yield from _grid_change(before, after)
    yield from _mapping_changes("what-if", before["what_if"], after["what_if"])
    yield from _mapping_changes("parameter", before["parameters"], after["parameters"])


def _grid_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line if both runs are on one architecture and board but with different grids; nothing otherwise."""
    old_grid = _grid_of_run(before)
    new_grid = _grid_of_run(after)
    of_one_chip = _arch_and_board(before) == _arch_and_board(after)
    if of_one_chip and "" not in (old_grid, new_grid) and old_grid != new_grid:
        yield f"grid: {old_grid}, now {new_grid}"


def _arch_and_board(run: Mapping[str, Any]) -> tuple[str, str]:
    """Return the architecture and the board of a run, "" for no board."""
    return run["arch"], run.get("board") or ""


def _shared_conditions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield text on the board, grid and speeds that both runs have in common and that a run of the netlist without
    options would not have."""
    arch, name = _arch_and_board(after)
    if name and name == _arch_and_board(before)[1]:
        yield f"board {name}"
    grid = _grid_of_run(after)
    if grid == _grid_of_run(before) and grid not in ("", _usual_grid(arch, name)):
        yield f"grid {grid}"
    speeds = before["what_if"]
    yield from (f"{speed} {value:g}" for speed, value in after["what_if"].items() if speeds.get(speed) == value)


def _usual_grid(arch: str, name: str) -> str:
    """Return the grid of a board, or of an architecture if `name` is "", as text such as `8x8`."""
    if name:
        return _grid_text(board(name).grid)
    return _grid_text(device(arch).grid)


def _grid_of_run(run: Mapping[str, Any]) -> str:
    """Return the rows and columns of cores of a run's chip, "" for a run of an earlier version, which wrote none."""
    grid = run.get("grid")
    return _grid_text(grid) if grid else ""


def _grid_text(grid: Sequence[int]) -> str:
    """Return a grid as `--grid` takes it."""
    return f"{grid[0]}x{grid[1]}"


def _mapping_changes(word: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each name whose value differs between two mappings; `word` says what the values are, such as
    "parameter"."""
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"{word} {name}: {_or_none(old.get(name))}, now {_or_none(new.get(name))}"


def _or_none(value: object) -> str:
    """Return a value as text, "none" for None."""
    return "none" if value is None else str(value)


def _pace(epoch: Mapping[str, Any] | None) -> float | None:
    """Return the cycles per input of an epoch, or those of its first input if it has only one; None for no epoch."""
    if epoch is None:
        return None
    pace = epoch["cycles_per_input"]
    if pace is None:
        pace = epoch["first_input_cycles"]
    return float(pace)


def _epoch_change(key: tuple[str, str], old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> EpochChange:
    """Compare an epoch of two runs, either of which may lack it."""
    program, graphs = key
    units: tuple[FigureChange, ...] = ()
    if old is not None and new is not None:
        units = tuple(
            sorted(_unit_changes(_unit_cycles(old), _unit_cycles(new)), key=lambda change: -abs(change.difference))
        )
    return EpochChange(
        program=program,
        graphs=graphs,
        before=_pace(old),
        after=_pace(new),
        units=units,
        reason=_explain_change(old, new, units),
        interval=_pace_interval(old, new),
        cycles_before=_cycles_of_runs(old),
        cycles_after=_cycles_of_runs(new),
    )


def _cycles_of_runs(epoch: Mapping[str, Any] | None) -> float | None:
    """Return the cycles of all runs of an epoch, each with its loading; None for no epoch, and where an earlier version
    did not state them."""
    if epoch is None or not {"runs", "total_cycles", "load_cycles"} <= epoch.keys():
        return None
    return float(epoch["runs"] * (epoch["total_cycles"] + epoch["load_cycles"]))


_Epochs = Mapping[tuple[str, str], Mapping[str, Any]]


def _op_changes(old: _Epochs, new: _Epochs) -> Iterator[OpChange]:
    """Yield the change of every op of two runs, those of the later run first."""
    old_ops = _ops_by_name(old)
    new_ops = _ops_by_name(new)
    for name in dict.fromkeys([*new_ops, *old_ops]):
        graphs_before, before = old_ops.get(name, ("", _NO_OP))
        graphs_after, after = new_ops.get(name, ("", _NO_OP))
        yield OpChange(
            name=name,
            type=after.get("type") or before.get("type") or "",
            before=before.get("cost_cycles"),
            after=after.get("cost_cycles"),
            cores_before=before.get("cores"),
            cores_after=after.get("cores"),
            graphs_before=graphs_before,
            graphs_after=graphs_after,
        )


_NO_OP: Final[Mapping[str, Any]] = {}


def _ops_by_name(epochs: _Epochs) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return the graphs and the record of each op by its name; of several epochs in which it runs, the one where it
    takes most cycles.
    """
    ops: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for (_, graphs), epoch in epochs.items():
        for record in epoch["ops"]:
            name = record["op"]
            if name not in ops or record["cost_cycles"] > ops[name][1]["cost_cycles"]:
                ops[name] = graphs, record
    return ops


def _bottleneck_sentence(old: _Epochs, new: _Epochs) -> str:
    """Return a sentence on what limits the slowest epoch of both runs; "" if one of them has no epochs. The epochs
    are by program and graphs, the earlier run's first.
    """
    if not old or not new:
        return ""
    old_key = _slowest_epoch(old)
    new_key = _slowest_epoch(new)
    before = old[old_key]["bottleneck"]
    after = new[new_key]["bottleneck"]
    old_unit = _describe_bottleneck(before)
    new_unit = _describe_bottleneck(after)
    old_pace = f"{whole(_pace(old[old_key]))} cycles of an input"
    new_pace = f"{whole(_pace(new[new_key]))} cycles of an input"
    if old_key != new_key:
        return (
            f"The slowest epoch is {new_key[1]}, held by {new_unit} ({new_pace}); before it was {old_key[1]}, held by "
            f"{old_unit} ({old_pace})."
        )
    if (before["kind"], before["name"]) != (after["kind"], after["name"]):
        return (
            f"The slowest epoch, {new_key[1]}, was held by {old_unit} ({old_pace}) and is held by {new_unit} now "
            f"({new_pace})."
        )
    return f"The slowest epoch, {new_key[1]}, is held by {new_unit} as before: {old_pace}, now {new_pace}."


def _slowest_epoch(epochs: _Epochs) -> tuple[str, str]:
    """Return the key of the epoch with the most cycles for an input."""
    return max(epochs, key=lambda key: _pace(epochs[key]) or 0.0)


def _unit_cycles(epoch: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the cycles that each unit of an epoch works for one input, by kind ("op", "memory", "link", "transfer")
    and name."""
    cycles = {("op", record["op"]): float(record["cost_cycles"]) for record in epoch["ops"]}
    for kind, key in (("memory", "memory"), ("link", "noc_links"), ("transfer", "transfers")):
        for record in epoch[key]:
            place = (kind, record["name"])
            cycles[place] = max(cycles.get(place, 0.0), float(record["cycles"]))
    return cycles


def _unit_changes(old: Mapping[tuple[str, str], float], new: Mapping[tuple[str, str], float]) -> Iterator[FigureChange]:
    """Yield the units whose cycles differ by more than rounding and, with None for a side, those that only one of
    both has. The mappings hold cycles by kind and name (`_unit_cycles`). A link that one run does not list, and that
    may work as long there, is left out."""
    for kind, name in dict.fromkeys([*new, *old]):
        before = old.get((kind, name))
        after = new.get((kind, name))
        if before is not None and after is not None:
            if abs(after - before) > _SAME * max(abs(before), abs(after)):
                yield FigureChange(kind, name, before, after)
            continue
        bound = None
        if kind == "link" and before is None:
            bound = _least_listed_link(old)
        elif kind == "link":
            bound = _least_listed_link(new)
        if bound is None or bound < (before or after or 0.0):
            yield FigureChange(kind=kind, name=name, before=before, after=after, unlisted_at_most=bound)


def _least_listed_link(units: Mapping[tuple[str, str], float]) -> float | None:
    """Return the cycles of the last link that a run lists, which no other link exceeds; None if it lists all."""
    links = [cycles for (kind, _), cycles in units.items() if kind == "link"]
    if len(links) < LISTED_LINKS:
        return None
    return min(links)


def _explain_change(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, units: Sequence[FigureChange]) -> str:
    """Return why the pace of an epoch changed, in words: it is new or gone, another bottleneck holds it, the same one
    takes another time, or which unit (op, memory, link or transfer) changed most; "" if nothing changed. `units` are
    those that changed, the greatest change first."""
    if old is None:
        return _ADDED
    if new is None:
        return _GONE
    if not units and _pace(old) == _pace(new):
        return ""
    old_limit = old["bottleneck"]
    new_limit = new["bottleneck"]
    bottleneck = _describe_bottleneck(new_limit)
    if (old_limit["kind"], old_limit["name"]) != (new_limit["kind"], new_limit["name"]):
        return f"held by {_describe_bottleneck(old_limit)} before, by {bottleneck} now"
    for change in units:
        if (change.kind, change.name) == (new_limit["kind"], new_limit["name"]):
            return f"{bottleneck} holds it: {whole(change.before)} cycles of an input, now {whole(change.after)}"
    if not units:
        return "buffers or the order of ops changed, no unit works another time"
    largest = _describe_unit(units[0].kind, units[0].name)
    if _pace(old) == _pace(new):
        return f"{largest} changed, {bottleneck} holds it as before"
    return f"{largest} changed most"


def _describe_bottleneck(bottleneck: Mapping[str, Any]) -> str:
    """Return a bottleneck in words, such as "op a"."""
    return _describe_unit(bottleneck["kind"], bottleneck["name"])


def _describe_unit(kind: str, name: str) -> str:
    """Return a unit in words, such as "op a": its kind, and the name by which the model knows it."""
    words = {"op": f"op {name}", "transfer": f"the transfer {name}", "latency": f"the way of one input ({name} most)"}
    return words.get(kind, name or kind)


def against_lines(comparison: RunComparison) -> Iterator[str]:
    """Yield tables for a terminal: programs, epochs that changed, and the units of each that changed most."""
    yield f"before: {comparison.before}"
    yield f"after:  {comparison.after}"
    yield from comparison.conditions
    yield from _shared_lines(comparison)
    changed = comparison.changed_epochs
    if not changed and all(before == after for before, after in comparison.programs.values()):
        yield "no difference"
        return
    yield ""
    yield table(
        ("program", "before", "after", "difference", "%"),
        ((name, *_figure_cells(before, after)) for name, (before, after) in comparison.programs.items()),
        right=(1, 2, 3, 4),
    )
    for name in comparison.programs:
        yield from map(wrap, program_sentences(comparison, name))
    yield from map(wrap, host_sentences(comparison))
    for epoch in changed:
        yield ""
        yield wrap(f"{epoch.program}: {epoch.graphs}: {epoch.reason}")
        yield from map(wrap, epoch_sentences(epoch))
        rows = [("steady cycles", *_figure_cells(epoch.before, epoch.after))]
        rows += [(_describe_unit(unit.kind, unit.name), *unit.figures()) for unit in epoch.units[:_MOST]]
        yield table(("", "before", "after", "difference", "%"), rows, right=(1, 2, 3, 4))
        if len(epoch.units) > _MOST:
            yield f"... and {len(epoch.units) - _MOST} more that changed less"


def _shared_lines(comparison: RunComparison) -> Iterator[str]:
    """Yield a line on the conditions that both runs share and a run without options does not have; nothing if there are
    none."""
    if comparison.shared_conditions:
        shared = ", ".join(comparison.shared_conditions)
        yield wrap(f"both:   {shared} (the JSON of a run without it as OLD shows what it changes)")


def program_sentences(comparison: RunComparison, program: str) -> Iterator[str]:
    """Yield the sentences about a program that both runs have: whether the difference of its cycles is larger than the
    model's uncertainty, and its times where the clocks differ."""
    before, after = comparison.programs[program]
    yield from _certainty_sentence(f"program {program}", after - before, comparison.intervals.get(program))
    if comparison.clocks_mhz is not None:
        ms_before, ms_after = (
            1e-3 * cycles / clock for cycles, clock in zip((before, after), comparison.clocks_mhz, strict=True)
        )
        change = relative(ms_before, ms_after)
        yield f"program {program}: {number(ms_before)} ms, now {number(ms_after)} ms ({change} %); the clocks differ"


def host_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield the sentence on the time of the whole run where the host link bounds it before or after."""
    if comparison.host_bound_seconds is not None:
        before, after = comparison.host_bound_seconds
        yield (
            f"the whole run, which the host link bounds: {number(1e3 * before)} ms, now {number(1e3 * after)} ms "
            f"({relative(before, after)} %)"
        )


def epoch_sentences(epoch: EpochChange) -> Iterator[str]:
    """Yield the sentence that says whether the difference of an epoch's cycles per input is larger than the model's
    uncertainty; nothing if there is no difference, or a run lacks the epoch."""
    if epoch.before is not None and epoch.after is not None:
        yield from _certainty_sentence("steady cycles", epoch.difference, epoch.interval)


def _certainty_sentence(name: str, difference: float, interval: Interval | None) -> Iterator[str]:
    """Yield the sentence that says whether a difference of cycles is larger than the model's uncertainty; nothing if
    there is no difference. `name` says what differs; `interval` is where the difference lies on silicon, None if that
    is not known."""
    if not difference:
        return
    if interval is None:
        yield f"{name}: the earlier run has no intervals, so the uncertainty of the difference is not known"
    elif interval.low > 0 or interval.high < 0:
        yield f"{name}: {difference:+,.0f} ({interval}), more than the model's uncertainty"
    else:
        yield f"{name}: {difference:+,.0f} ({interval}), within the model's uncertainty"


def _figure_cells(before: float | None, after: float | None) -> tuple[str, str, str, str]:
    """Return the cells before, after, difference and per cent of a row of cycles; None becomes "-"."""
    if before is None or after is None:
        return whole(before), whole(after), "-", "-"
    return whole(before), whole(after), f"{after - before:+,.0f}", relative(before, after)


CSV_COLUMNS: Final = ("what", "name", "program", "epoch", "change", "before", "after", "difference", "percent")


def against_csv(comparison: RunComparison) -> str:
    """Return the comparison as CSV with a header: a line for the cycles of each program, two for each epoch (per input,
    and of all its runs), and one for each op."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, (before, after) in comparison.programs.items():
        writer.writerow(("program cycles", name, name, "", *_csv_figures(before, after)))
    for epoch in comparison.epochs:
        place = (epoch.graphs, epoch.program, epoch.graphs)
        writer.writerow(("cycles per input", *place, *_csv_figures(epoch.before, epoch.after)))
        writer.writerow(("epoch cycles", *place, *_csv_figures(epoch.cycles_before, epoch.cycles_after)))
    for op in comparison.ops:
        graphs = op.graphs_after or op.graphs_before
        writer.writerow(("op cycles", op.name, "", graphs, *_csv_figures(op.before, op.after)))
    return stream.getvalue()


def _csv_figures(before: float | None, after: float | None) -> tuple[str, ...]:
    """Return the cells change, before, after, difference and percent of a line; what is not known is empty."""
    texts = ["" if value is None else f"{value:.10g}" for value in (before, after)]
    if before is None or after is None:
        return (kind_of_change(before, after), *texts, "", "")
    percent = f"{100 * (after - before) / before:.6g}" if before else ""
    return (kind_of_change(before, after), *texts, f"{after - before:.10g}", percent)


def describe_settings(settings: Mapping[str, Any]) -> str:
    """Describe the settings of a test run: `precision device, expected ideal`; with reference tensors `..., expected
    DIR, else ideal`."""
    reference = settings.get("reference")
    expected = settings["expected"]
    if reference:
        expected = f"{reference}, else {expected}"
    return f"precision {settings['precision']}, expected {expected}"
