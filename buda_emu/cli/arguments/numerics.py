"""Arguments of `buda-emu numerics`."""

import argparse
from pathlib import Path

from buda_emu.cli.shared_arguments import (
    add_allow_pickle,
    add_arch,
    add_memory_limit,
    add_no_cache,
    add_param,
    add_program,
    add_seed,
    add_threads,
    add_workers,
    positive,
)

EXAMPLE = "buda-emu numerics netlists/attention.yaml -n 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist, or device image (.tti)")
    parser.add_argument("--op", metavar="NAME", help="look at this op only")
    parser.add_argument("-n", "--top", type=positive, metavar="N", help="the N ops with the largest error only")
    parser.add_argument(
        "--inputs", type=Path, metavar="DIR",
        help="push DIR/<queue>.npy, [entries, t, rows, cols], or one .npz file by queue, of a compiled model by its "
        "inputs' own names; what is not there is made up",
    )  # fmt: skip
    add_program(parser)
    add_param(parser)
    add_arch(parser)
    add_seed(parser)
    add_threads(parser)
    add_workers(parser, short=False)  # -n is --top
    add_memory_limit(parser)
    add_no_cache(parser)
    add_allow_pickle(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
