"""`buda-emu gemini run`: time a schedule."""

import argparse
from pathlib import Path
from typing import Final, Literal, NamedTuple

from buda_emu.app.cli.output import say, say_json, say_lines, write_picture
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.compare import TraceDifferences, trace_differences
from buda_emu.foreign.gemini.figures import RunFigures, run_figures
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.picture import timeline_picture
from buda_emu.foreign.gemini.report import difference_lines, run_lines
from buda_emu.foreign.gemini.time.timing import DramSpan, Link, NocSpan, Rates, Span, Timeline
from buda_emu.support.columns import Column, Columns


def main(args: argparse.Namespace) -> int:
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
    _draw(args, ir, timeline)
    if args.json:
        say_json(RUN.as_json(_Run(ir, timeline, figures, differences)))
        return 0
    say_lines(run_lines(ir, figures))
    if differences is not None:
        say()
        say_lines(difference_lines(differences))
    return 0


def _draw(args: argparse.Namespace, ir: IR, timeline: Timeline) -> None:
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
"""What `gemini run --json` prints."""
