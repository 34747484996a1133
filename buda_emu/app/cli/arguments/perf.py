"""Arguments of `buda-emu perf`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import ArgumentTarget, add_arch, add_group, add_shared, finite, natural
from buda_emu.emulator.options import Board, Programs, SharedWork
from buda_emu.report.terminal.perf import SORTS

EXAMPLE = "buda-emu perf netlists/attention.yaml --trace trace.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `perf`, in groups: what is modelled, comparisons, sweeps, files and printing."""
    add_shared(parser, "FILE")
    model_group = parser.add_argument_group("what is modelled")
    add_group(model_group, Programs, purpose="model")
    add_arch(model_group)
    add_group(model_group, Board)
    model_group.add_argument(
        "--model",
        choices=("fitted", "vendor"),
        default="fitted",
        help="cycles of ops; fitted: on measurements of real chips; vendor: the vendor's formulas",
    )
    model_group.add_argument(
        "--what-if",
        default="",
        metavar="NAME=VALUE,...",
        help="other speeds: clock (MHz), dram_gbps (one channel), host_gbps, eth_gbps (between two chips), noc_bytes, "
        "gather_bytes, link_bytes and port_bytes (a cycle), fpu and unpack_pack (times as fast), epoch_setup (cycles)",
    )
    model_group.add_argument("--grid", metavar="RxC", help="a chip with this number of rows and columns of cores")
    model_group.add_argument(
        "--harvest", metavar="ROWS", default="", help="a chip without these physical rows, such as 2,7"
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="model again with each resource (DRAM, NoC links and ports, unpack and pack, FPU, Ethernet, clock) twice "
        "and half as fast",
    )
    _add_comparison(parser.add_argument_group("before and after"))
    _add_sweep(parser.add_argument_group("many at once"))
    _add_files(parser.add_argument_group("files"))
    _add_printing(parser.add_argument_group("what is printed (files have everything)"))


def _add_comparison(group: ArgumentTarget) -> None:
    """Declare the options that compare the model with another netlist, an earlier run or a baseline."""
    group.add_argument(
        "--against",
        type=Path,
        metavar="OLD",
        help="compare with a netlist, modelled as it stands on the same chip, or with the JSON of an earlier run",
    )
    group.add_argument(
        "--fail-above",
        type=finite,
        metavar="PCT",
        help="with --against: exit code 1 when a program or epoch takes that many per cent more cycles; with "
        "--baseline: an epoch is worse when it does (default 0)",
    )
    add_shared(group, "--baseline")
    group.add_argument(
        "--update-expectations",
        action="store_true",
        help="print the performance-check section with the modelled figures; no file is changed",
    )


def _add_sweep(group: ArgumentTarget) -> None:
    """Declare the options that model the netlist at many settings."""
    group.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=a,b,c",
        help="model at every value: a speed of --what-if, board, grid, harvest (sets apart by ;) or a parameter; "
        "repeatable, all combinations",
    )
    add_group(group, SharedWork)
    group.add_argument("--chart", type=Path, metavar="FILE", help="draw a sweep as SVG, over its last axis")


def _add_files(group: ArgumentTarget) -> None:
    """Declare the options that name the files to write."""
    group.add_argument(
        "--csv",
        type=Path,
        metavar="FILE",
        help="write a line for each epoch, the vendor's columns; of a sweep one for each point; with --against one for "
        "each program, epoch and op",
    )
    add_shared(group, "--json FILE")
    group.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a trace for ui.perfetto.dev (.json, .json.gz), or a page with the same lanes (.html)",
    )
    group.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write perf.html, perf.json and the vendor's runtime_table.csv, perf_info_all_epochs.csv, "
        "op_perf_table.json there; with --against comparison.html (.json, .csv), with both core grids; with --sweep "
        "sweep.html (.json, .csv)",
    )


def _add_printing(group: ArgumentTarget) -> None:
    """Declare the options that choose which ops and epochs are printed, and in which order."""
    group.add_argument(
        "--top",
        type=natural,
        metavar="N",
        help="of each epoch the N ops that cost most, or the first by --sort; 0: all, in the netlist's order "
        "(default 10, with --op all of these)",
    )
    group.add_argument(
        "--sort", choices=tuple(SORTS), help="order of ops, figures from the greatest on; default: cycles"
    )
    group.add_argument(
        "--op", action="append", default=[], metavar="NAME", help="this op only, or those like '*norm*'; repeatable"
    )
    group.add_argument(
        "--epoch",
        action="append",
        default=[],
        metavar="NAME",
        help="the epoch of this graph only, by its name, its number, or a pattern; repeatable",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="only performance-check")
