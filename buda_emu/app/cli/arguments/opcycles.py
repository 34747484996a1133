"""Arguments of `buda-emu opcycles`."""

import argparse
from pathlib import Path

EXAMPLE = "buda-emu opcycles sweep.csv -o predicted.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `opcycles`: the table of ops, the output file, and the model of their cycles."""
    parser.add_argument("file", metavar="TABLE", help="CSV with a header: op_type, ... (docs/timing/timing.md)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write; default: standard output")
    parser.add_argument(
        "--model",
        choices=("fitted", "vendor"),
        default="fitted",
        help="fitted: to measurements on silicon (default); vendor: the published linear formulas",
    )
