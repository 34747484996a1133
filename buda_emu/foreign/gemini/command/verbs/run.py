"""`buda-emu gemini run`: time a schedule."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from buda_emu.app.cli.output import say, say_json, say_lines, write_picture
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.compare import TraceDifferences, trace_differences
from buda_emu.foreign.gemini.figures import run_figures
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.picture import timeline_picture
from buda_emu.foreign.gemini.report import difference_lines, run_lines
from buda_emu.foreign.gemini.time.timing import Timeline


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
        say_json(_content(ir, timeline, asdict(figures), differences))
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


def _content(
    ir: IR, timeline: Timeline, figures: dict[str, Any], differences: TraceDifferences | None
) -> dict[str, Any]:
    """Return the JSON object of `gemini run --json`; `figures` are those of `run_figures` as a dict."""
    works = [
        {"core": core, "workload_id": number, "start": span.start, "end": span.end}
        for (core, number), span in timeline.workloads.items()
    ]
    return {
        **figures,
        "dialect": ir.dialect,
        "mode": timeline.mode,
        "rates": asdict(timeline.rates),
        "workloads": works,
        "dram_items": [span_record._asdict() for span_record in timeline.dram],
        "noc": [span_record._asdict() for span_record in timeline.noc],
        "links": [{"from": a, "to": b, "bytes": size} for (a, b), size in timeline.links.items()],
        "trace": asdict(differences) if differences is not None else None,
    }
