"""Arguments of `buda-emu diff`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_shared

EXAMPLE = "buda-emu diff before.yaml after.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `diff`: both documents, and in which form their differences come."""
    parser.add_argument("before", metavar="BEFORE", help="netlist, or device image (.tti)")
    parser.add_argument("after", metavar="AFTER", help="the other one")
    parser.add_argument("--no-cycles", action="store_true", help="do not model both: quicker")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write diff.html, with both core grids side by side, and diff.json there",
    )
    add_shared(parser, "--arch")
