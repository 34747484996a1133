"""Arguments of `buda-emu fmt`."""

import argparse

EXAMPLE = "buda-emu fmt net.yaml netlists/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="netlist; a folder: the netlists in it and below it; -: from standard input to standard output",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a layout would change")
    form.add_argument("--diff", action="store_true", help="as --check, and print what would change")
