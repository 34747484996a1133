"""Arguments of `buda-emu advise`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_arch, add_group, add_shared, netlist_output, nonnegative, positive
from buda_emu.emulator.options import Board, Programs, Seed, SharedWork

EXAMPLE = "buda-emu advise netlists/attention.yaml --write faster.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `advise`: the netlist, which changes to try, and how much accuracy and time they may
    cost."""
    add_shared(parser, "netlist")
    add_group(parser, Programs, purpose="make faster")
    add_arch(parser)
    add_group(parser, Board)
    parser.add_argument(
        "--move",
        action="append",
        default=[],
        metavar="NAME",
        help="kind of change to try, repeatable; default: all (docs/timing/advise.md lists them)",
    )
    parser.add_argument(
        "--max-loss",
        type=nonnegative,
        default=1e-3,
        metavar="PCC",
        help="PCC against float32 that all changes together may cost the ops that they touch (default 0.001)",
    )
    parser.add_argument(
        "--tries", type=positive, default=160, metavar="N", help="epochs that are modelled, at most (default 160)"
    )
    add_group(parser, Seed)
    add_group(parser, SharedWork)
    add_shared(parser, "--top")
    parser.add_argument(
        "--write", type=netlist_output, metavar="FILE", help="write the netlist with the changes, comments kept"
    )
    add_shared(parser, "--json FILE", "--quiet")
