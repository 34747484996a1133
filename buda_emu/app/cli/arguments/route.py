"""Arguments of `buda-emu route`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_cluster, add_shared

EXAMPLE = "buda-emu route netlists/softmax.yaml -o streams"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `route`: the document, the folder for its streams, and the chips."""
    add_shared(parser, "FILE")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where to write epoch_N.yaml: streams by core with their pipes"
    )
    add_shared(parser, "--arch")
    add_cluster(parser)
