"""Arguments of `buda-emu route`."""

import argparse
from pathlib import Path

from buda_emu.cli.shared_arguments import add_arch, add_cluster

EXAMPLE = "buda-emu route netlists/softmax.yaml -o streams"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist, or device image (.tti)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where to write epoch_N.yaml: streams by core with their pipes"
    )
    add_arch(parser)
    add_cluster(parser)
