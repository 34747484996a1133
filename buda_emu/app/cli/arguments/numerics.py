"""Arguments of `buda-emu numerics`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_shared, add_workers, positive

EXAMPLE = "buda-emu numerics netlists/attention.yaml -n 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `numerics`: the document, its inputs, and which ops are listed."""
    add_shared(parser, "FILE")
    parser.add_argument("--op", metavar="NAME", help="look at this op only")
    parser.add_argument("-n", "--top", type=positive, metavar="N", help="the N ops with the largest error only")
    add_shared(parser, "--inputs", "--program", "--param", "--arch", "--seed", "--threads")
    add_workers(parser, short=False)  # -n is --top
    add_shared(parser, "--memory-limit", "--no-cache", "--allow-pickle", "--json FILE", "--quiet")
