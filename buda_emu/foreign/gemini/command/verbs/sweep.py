"""`buda-emu gemini sweep`: time a schedule at several rates, buffers and meshes."""

import argparse
from typing import Final

from buda_emu.app.cli.output import say, write_printable
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.options import SharedWork
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.sweep import Point, sweep
from buda_emu.report.sweep import sweep_chart
from buda_emu.report.terminal.text import column_table, number, whole
from buda_emu.support.columns import Column, Columns, csv_text
from buda_emu.support.workers.job import workers_of

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


def main(args: argparse.Namespace) -> int:
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
        along = max(axes, key=lambda name: len(choices[name]))
        order = [name for name in axes if name != along] + [along]
        write_printable(args.chart, sweep_chart(rows, order, str(args.file), "cycles", "cycles, a model"))
    return 0
