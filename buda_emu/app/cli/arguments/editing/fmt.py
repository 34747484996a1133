"""Arguments of `buda-emu fmt`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_shared

EXAMPLE = "buda-emu fmt net.yaml netlists/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `fmt`: the netlists, and whether a new layout is written or only told of."""
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="netlist; a folder: the netlists in it and below it; -: from standard input to standard output",
    )
    add_shared(parser, "--only-documents")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a layout would change")
    form.add_argument("--diff", action="store_true", help="as --check, and print what would change")
