"""Verbs of `buda-emu gemini` that time, execute and count: `run`, `exec`, `stats`, `sweep`, and `diff` of two
schedules."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from buda_emu.app.cli.output import say, say_json, say_lines, write_picture, write_printable
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.options import SharedWork
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.command.arguments import parse_rates
from buda_emu.foreign.gemini.compare import TraceDifferences, compare, trace_differences
from buda_emu.foreign.gemini.execution import NO_SUCH_LAYER, Execution, Mismatch
from buda_emu.foreign.gemini.figures import RunFigures, run_figures
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.report import (
    comparison_lines,
    difference_lines,
    run_lines,
    statistics_lines,
    timeline_picture,
)
from buda_emu.foreign.gemini.statistics import Statistics, energy, statistics
from buda_emu.foreign.gemini.sweep import Point, sweep
from buda_emu.foreign.gemini.time.timing import DramSpan, Link, NocSpan, Rates, Span, Timeline
from buda_emu.report.sweep import sweep_chart
from buda_emu.report.terminal.text import column_table, number, whole
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns, csv_text
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import read_yaml
from buda_emu.support.workers.job import workers_of


def run_verb(args: argparse.Namespace) -> int:
    """Time a schedule, print the figures, and write the pictures that were asked for. Exit code 4 for a deadlock."""
    ir = gemini.load(args.file)
    timeline = gemini.simulate(
        ir, asm=args.asm, dram_gibps=args.dram_gibps, freq_ghz=args.freq_ghz, noc_bytes_per_cycle=args.noc_bytes
    )
    if args.trace is not None:
        differences = trace_differences(ir, timeline, args.asm, args.trace)
    else:
        differences = None
    figures = run_figures(ir, timeline)
    _write_pictures(args, ir, timeline)
    if args.json:
        say_json(RUN.as_json(_Run(ir, timeline, figures, differences)))
        return 0
    say_lines(run_lines(ir, figures))
    if differences is not None:
        say()
        say_lines(difference_lines(differences))
    return 0


def _write_pictures(args: argparse.Namespace, ir: IR, timeline: Timeline) -> None:
    """Write the trace and the page, which show the same picture, where they were asked for."""
    if args.perfetto is None and args.page is None:
        return
    drawn = timeline_picture(ir, timeline, f"{Path(args.file).name}: {timeline.total} cycles")
    for path, page in ((args.perfetto, False), (args.page, True)):
        if path is not None:
            write_picture(path, drawn, page)


class _Run(NamedTuple):
    """A timed schedule."""

    ir: IR
    timeline: Timeline
    figures: RunFigures
    differences: TraceDifferences | None


_WORK: Final = Columns[tuple[tuple[int, int], Span]](
    Column("core", int, lambda work: work[0][0]),
    Column("workload_id", int, lambda work: work[0][1]),
    Column("start", int, lambda work: work[1].start),
    Column("end", int, lambda work: work[1].end),
)
LINKS: Final = Columns[tuple[Link, int]](
    Column("from", list[int], lambda link: link[0][0]),
    Column("to", list[int], lambda link: link[0][1]),
    Column("bytes", int, lambda link: link[1]),
)
"""A link of the mesh between two cores, by column and row, and the bytes on it."""
RUN: Final = Columns[_Run](
    *Columns[RunFigures](RunFigures).within(_Run, lambda run: run.figures),
    Column("dialect", str, lambda run: run.ir.dialect),
    Column("mode", Literal["schedule", "assembler"], lambda run: run.timeline.mode),
    Column("rates", Rates, lambda run: run.timeline.rates),
    Column("workloads", [_WORK], lambda run: run.timeline.workloads.items()),
    Column("dram_items", [Columns[DramSpan](DramSpan)], lambda run: run.timeline.dram),
    Column("noc", list[NocSpan], lambda run: run.timeline.noc),
    Column("links", [LINKS], lambda run: run.timeline.links.items()),
    Column("trace", TraceDifferences | None, lambda run: run.differences),
)
"""The JSON of `gemini run --json`."""


_SHOWN = 20  # mismatches that are printed; more repeat themselves
_LISTED = 5  # layers that a line names
EXECUTED: Final = Columns[tuple[int, Execution]](
    Column("ok", bool, lambda executed: executed[1].ok),
    Column("seed", int, lambda executed: executed[0]),
    Column("seeded_weights", list[str], lambda executed: executed[1].seeded),
    Column("digests", dict[str, str], lambda executed: executed[1].digests),
    Column("mismatches", list[Mismatch], lambda executed: executed[1].mismatches),
)
"""The JSON of `gemini exec --json`: the seed, and the run."""


def exec_verb(args: argparse.Namespace) -> int:
    """Run a schedule on real bytes and compare it with the un-tiled run of its network. Exit code 1 where a
    workload or an output differs, or where nothing was compared."""
    execution = gemini.execute(gemini.load(args.file), args.frontend, seed=args.seed)
    if args.json:
        say_json(EXECUTED.as_json((args.seed, execution)))
        return Exit.OK if execution.ok else Exit.DIFFERS
    say_lines(_other_network_lines(execution))
    for mismatch in execution.mismatches[:_SHOWN]:
        say(f"mismatch: {mismatch}")
    if len(execution.mismatches) > _SHOWN:
        say(f"and {len(execution.mismatches) - _SHOWN} more")
    for name, digest in execution.digests.items():
        say(f"{name}: sha256 {digest}")
    if execution.seeded:
        say(f"weights of {plural(len(execution.seeded), 'layer')} are seeded (seed {args.seed}): none were published")
    if not execution.digests:
        say("DOUBTFUL: no output of the network reaches DRAM, so none was compared")
    say(_verdict(execution))
    return Exit.OK if execution.ok else Exit.DIFFERS


def _other_network_lines(execution: Execution) -> Iterator[str]:
    """Yield a line if the network lacks layers of the schedule: then it is probably that of another one, and the
    mismatches follow from that."""
    layers = sorted({mismatch.layer for mismatch in execution.mismatches if mismatch.message == NO_SUCH_LAYER})
    if layers:
        listed = ", ".join(layers[:_LISTED])
        yield (
            f"note: the network lacks {plural(len(layers), 'layer')} of the schedule, such as {listed}: it may belong "
            "to another schedule; `buda-emu gemini check FILE --frontend NETWORK` compares the two"
        )


def _verdict(execution: Execution) -> str:
    """Return the last line about a run: what was compared, or how much differs."""
    if execution.mismatches:
        return plural(len(execution.mismatches), "mismatch")
    if execution.is_vacuous:
        return "the schedule has no workload: nothing was compared"
    compared = "workload and output" if execution.digests else "workload"
    return f"every {compared} equals the un-tiled run"


_COUNTS: Final = Columns[Statistics](Statistics, Column("links", [LINKS], lambda counts: counts.links.items()))
COUNTED: Final = Columns[tuple[Statistics, dict[str, float] | None]](
    *_COUNTS.within(tuple[Statistics, dict[str, float] | None], lambda counted: counted[0]),
    Column("energy", dict[str, float] | None, lambda counted: counted[1]),
)
"""The JSON of `gemini stats --json`: the counts, and the energy by the user's table."""


def stats_verb(args: argparse.Namespace) -> int:
    """Print what a schedule moves and computes, with the energy of it by the user's table. Exit code 2 for an
    unusable table."""
    counts = statistics(gemini.load(args.file))
    if args.energy is not None:
        spent = energy(counts.accesses, _read_energy_table(args.energy))
    else:
        spent = None
    if args.json:
        say_json(COUNTED.as_json((counts, spent)))
        return 0
    say_lines(statistics_lines(counts, spent))
    return 0


def _read_energy_table(path: Path) -> dict[str, Any]:
    """Read a user's energy table, a map of names and numbers. Raises HostError for anything else."""
    content = read_yaml(path, "an energy table")
    if not isinstance(content, dict) or not content:
        raise HostError(f"{path}: an energy table is a map of names and numbers, such as `mac: 0.2`")
    return content  # pyright: ignore[reportUnknownVariableType]


_AXES = ("mesh", "buffersize", "noc_bytes", "freq_ghz", "dram_gibps")


def _mesh_text(point: Point) -> str:
    """Return the mesh of a point as text, "-" for that of the schedule."""
    if point.mesh is None:
        return "-"
    return f"{point.mesh[0]}x{point.mesh[1]}"


def _buffer_text(point: Point) -> str:
    """Return the size of the buffers as text, "-" for that of the schedule."""
    return "-" if point.buffersize is None else str(point.buffersize)


_POINTS: Final = Columns[Point](
    Column("mesh", str, _mesh_text, title="mesh", look="figure"),
    Column("buffersize", str, _buffer_text, title="buffersize", look="figure"),
    Column("noc_bytes", str, lambda point: f"{point.noc_bytes:g}", title="noc_bytes", look="figure"),
    Column("freq_ghz", str, lambda point: f"{point.freq_ghz:g}", title="freq_ghz", look="figure"),
    Column("dram_gibps", str, lambda point: f"{point.dram_gibps:g}", title="dram_gibps", look="figure"),
    Column("cycles", int | None, lambda point: point.total, title="cycles", text=whole, look="figure"),
    Column("milliseconds", float | None, lambda point: point.milliseconds, title="ms", text=number, look="figure"),
    Column("problem", str, lambda point: point.problem, title="does not fit", look="words"),
)
"""A point of the sweep."""


def sweep_verb(args: argparse.Namespace) -> int:
    """Time a schedule at every combination of rates, buffers and meshes. Exit code 0 also where points are
    infeasible, which the table says."""
    choices = {name: getattr(args, name) for name in _AXES}
    ir = gemini.load(args.file)
    points = list(sweep(ir, **choices, workers=workers_of(read_options(args, SharedWork))))
    rows = [_POINTS.row(point) for point in points]
    axes = [name for name in _AXES if len(choices[name]) > 1] or ["dram_gibps"]
    say(column_table(_POINTS, points, without=set(_AXES) - set(axes)))
    say("every point is a model: transfers are fitted at 16 GiB/s and 1 GHz (docs/other-compilers/gemini.md)")
    if not ir.form.addressed and any(size is not None for size in choices["buffersize"]):
        say(
            "a buffer size allocates the schedule first, as `gemini alloc` does: then it has waits for room and queues "
            "that `gemini run` of the schedule as it stands does not have"
        )
    if args.csv is not None:
        write_printable(args.csv, csv_text(rows))
    if args.chart is not None:
        order = _axes_of_chart(axes, choices)
        write_printable(args.chart, sweep_chart(rows, order, str(args.file), "cycles", "cycles, a model"))
    return 0


def _axes_of_chart(axes: Sequence[str], choices: Mapping[str, Sequence[object]]) -> list[str]:
    """Return the axes of a chart, at the end the one with the most values: points lie along it."""
    along = max(axes, key=lambda name: len(choices[name]))
    return [name for name in axes if name != along] + [along]


def diff_verb(args: argparse.Namespace) -> int:
    """Time two schedules of one network at the same rates and print how cycles, bytes and prefetches differ."""
    comparison = compare(gemini.load(args.first), gemini.load(args.second), parse_rates(args))
    if args.json:
        say_json(asdict(comparison))
        return 0
    say_lines(comparison_lines(comparison))
    return 0
