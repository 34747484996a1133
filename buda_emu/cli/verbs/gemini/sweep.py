"""`buda-emu gemini sweep`: a schedule at several rates, buffers and meshes."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from buda_emu import gemini
from buda_emu.cli.arguments import add_workers, memory_size, workers_of
from buda_emu.cli.output import say, write_text
from buda_emu.cli.verbs.gemini.arguments import add_file, rate
from buda_emu.report.sweep import sweep_chart, sweep_csv
from buda_emu.report.terminal.text import number, table

EXAMPLE = "buda-emu gemini sweep schedule.json --dram-gibps 4,8,16,32 --buffersize 2M,4M --csv sweep.csv"
_AXES = ("mesh", "buffersize", "noc_bytes", "freq_ghz", "dram_gibps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    parser.add_argument("--dram-gibps", type=several(rate), default=[16.0], metavar="X,...", help="GiB/s; default: 16")
    parser.add_argument("--freq-ghz", type=several(rate), default=[1.0], metavar="X,...", help="GHz; default: 1")
    parser.add_argument(
        "--noc-bytes",
        type=several(rate),
        default=[32.0],
        metavar="X,...",
        help="bytes a cycle over a link; default: 32",
    )
    parser.add_argument(
        "--buffersize", type=several(memory_size), default=[None], metavar="SIZE,...",
        help="L2 of each core; a schedule without addresses is allocated in it",
    )  # fmt: skip
    parser.add_argument("--mesh", type=several(_mesh), default=[None], metavar="XxY,...", help="such as 2x2,4x1")
    add_workers(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a line for each point")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write cycles over the axis with most values as SVG")


def main(args: argparse.Namespace) -> int:
    """Time every combination. Exit code 0 also where points are infeasible, which the table says."""
    from buda_emu.gemini.sweep import sweep

    choices = {name: getattr(args, name) for name in _AXES}
    rows: list[dict[str, Any]] = []
    for point in sweep(gemini.load(args.file), **choices, workers=workers_of(args)):
        mesh = "-" if point.mesh is None else f"{point.mesh[0]}x{point.mesh[1]}"
        rows.append({
            "mesh": mesh, "buffersize": "-" if point.buffersize is None else str(point.buffersize),
            "noc_bytes": f"{point.noc_bytes:g}", "freq_ghz": f"{point.freq_ghz:g}",
            "dram_gibps": f"{point.dram_gibps:g}", "cycles": point.total, "milliseconds": point.milliseconds,
            "problem": point.problem,
        })  # fmt: skip
    axes = [name for name in _AXES if len(choices[name]) > 1] or ["dram_gibps"]
    lines = [
        (*(row[name] for name in axes), "-" if row["cycles"] is None else f"{row['cycles']:,}",
         number(row["milliseconds"]), row["problem"])
        for row in rows
    ]  # fmt: skip
    say(table((*axes, "cycles", "ms", "does not fit"), lines, range(len(axes) + 2), prose=(len(axes) + 2,)))
    say("every point is a model: transfers are fitted at 16 GiB/s and 1 GHz (docs/gemini.md)")
    if args.csv is not None:
        write_text(args.csv, sweep_csv(rows))
    if args.chart is not None:
        along = max(axes, key=lambda name: len(choices[name]))
        order = [name for name in axes if name != along] + [along]
        write_text(args.chart, sweep_chart(rows, order, str(args.file), "cycles", "cycles, a model"))
    return 0


def several(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """argparse type: a list with commas."""

    def read(text: str) -> list[Any]:
        return [kind(item) for item in text.split(",")]

    return read


def _mesh(text: str) -> tuple[int, int]:
    across, cross, down = text.partition("x")
    if not (
        cross and across.isdecimal() and down.isdecimal() and 0 < int(across) < 1 << 16 and 0 < int(down) < 1 << 16
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is no mesh such as 2x2")
    return int(across), int(down)
