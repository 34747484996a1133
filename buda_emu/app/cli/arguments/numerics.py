"""Arguments of `buda-emu numerics`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_arch, add_group, add_shared, positive
from buda_emu.emulator.options import Execution, Loading, Programs, Seed

EXAMPLE = "buda-emu numerics netlists/attention.yaml -n 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `numerics`: the document, its inputs, and which ops are listed."""
    add_shared(parser, "FILE")
    parser.add_argument("--op", metavar="NAME", help="look at this op only")
    parser.add_argument("-n", "--top", type=positive, metavar="N", help="the N ops with the largest error only")
    add_shared(parser, "--inputs")
    add_group(parser, Programs)
    add_arch(parser)
    add_group(parser, Seed)
    add_group(parser, Execution, short=False)  # -n is --top
    add_group(parser, Loading)
    add_shared(parser, "--json FILE", "--quiet")
