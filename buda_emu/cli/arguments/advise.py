"""Arguments of `buda-emu advise`."""

import argparse
from pathlib import Path

from buda_emu.cli.shared_arguments import (
    add_arch,
    add_board,
    add_param,
    add_program,
    add_seed,
    add_workers,
    natural,
    positive,
)

EXAMPLE = "buda-emu advise netlists/attention.yaml --write faster.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist")
    add_program(parser, "make faster")
    add_param(parser)
    add_arch(parser)
    add_board(parser)
    parser.add_argument(
        "--move", action="append", default=[], metavar="NAME",
        help="kind of change to try, repeatable; default: all (docs/advise.md lists them)",
    )  # fmt: skip
    parser.add_argument(
        "--max-loss", type=float, default=1e-3, metavar="PCC",
        help="PCC against float32 that all changes together may cost the ops that they touch (default 0.001)",
    )  # fmt: skip
    parser.add_argument(
        "--tries", type=positive, default=160, metavar="N", help="epochs that are modelled, at most (default 160)"
    )
    add_seed(parser)
    add_workers(parser)
    parser.add_argument("--top", type=natural, default=10, metavar="N", help="rows of each table, 0: all (default 10)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the netlist with the changes, comments kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
