"""Arguments of `buda-emu graph`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_cluster, add_shared

EXAMPLE = "buda-emu graph netlists/attention.yaml -o attention.svg"
FORMATS = ("svg", "dot")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `graph`: the document, the picture's file and format, and the part that is drawn."""
    add_shared(parser, "FILE")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write; default: standard output")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="svg: a picture for browsers; dot: for graphviz; default: as FILE ends, else svg",
    )
    parser.add_argument("--epoch", type=int, action="append", metavar="N", help="only this epoch, repeatable")
    parser.add_argument("--chip", type=int, action="append", metavar="N", help="only this chip, repeatable")
    parser.add_argument("--streams", action="store_true", help="show on each core its use of streams and L1")
    add_shared(parser, "--arch")
    add_cluster(parser, "; with --streams")
