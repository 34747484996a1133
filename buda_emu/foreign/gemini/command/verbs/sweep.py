"""`buda-emu gemini sweep`: time a schedule at several rates, buffers and meshes."""

import argparse
from typing import Any

from buda_emu.app.cli.output import say, write_printable
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.options import SharedWork
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.sweep import sweep
from buda_emu.report.sweep import sweep_chart, sweep_csv
from buda_emu.report.terminal.text import number, table
from buda_emu.support.workers.job import workers_of

_AXES = ("mesh", "buffersize", "noc_bytes", "freq_ghz", "dram_gibps")


def main(args: argparse.Namespace) -> int:
    """Time a schedule at every combination of rates, buffers and meshes. Exit code 0 also where points are
    infeasible, which the table says."""
    choices = {name: getattr(args, name) for name in _AXES}
    ir = gemini.load(args.file)
    rows: list[dict[str, Any]] = []
    for point in sweep(ir, **choices, workers=workers_of(read_options(args, SharedWork))):
        if point.mesh is None:
            mesh = "-"
        else:
            mesh = f"{point.mesh[0]}x{point.mesh[1]}"
        rows.append(
            {
                "mesh": mesh,
                "buffersize": "-" if point.buffersize is None else str(point.buffersize),
                "noc_bytes": f"{point.noc_bytes:g}",
                "freq_ghz": f"{point.freq_ghz:g}",
                "dram_gibps": f"{point.dram_gibps:g}",
                "cycles": point.total,
                "milliseconds": point.milliseconds,
                "problem": point.problem,
            }
        )
    axes = [name for name in _AXES if len(choices[name]) > 1] or ["dram_gibps"]
    lines = [
        (
            *(row[name] for name in axes),
            "-" if row["cycles"] is None else f"{row['cycles']:,}",
            number(row["milliseconds"]),
            row["problem"],
        )
        for row in rows
    ]
    say(table((*axes, "cycles", "ms", "does not fit"), lines, range(len(axes) + 2), prose=(len(axes) + 2,)))
    say("every point is a model: transfers are fitted at 16 GiB/s and 1 GHz (docs/other-compilers/gemini.md)")
    if not ir.form.addressed and any(size is not None for size in choices["buffersize"]):
        say(
            "a buffer size allocates the schedule first, as `gemini alloc` does: then it has waits for room and queues "
            "that `gemini run` of the schedule as it stands does not have"
        )
    if args.csv is not None:
        write_printable(args.csv, sweep_csv(rows))
    if args.chart is not None:
        along = max(axes, key=lambda name: len(choices[name]))
        order = [name for name in axes if name != along] + [along]
        write_printable(args.chart, sweep_chart(rows, order, str(args.file), "cycles", "cycles, a model"))
    return 0
