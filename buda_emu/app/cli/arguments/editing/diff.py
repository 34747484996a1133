"""Arguments of `buda-emu diff`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_shared

EXAMPLE = "buda-emu diff before.yaml after.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help="netlist, or device image (.tti)")
    parser.add_argument("after", metavar="AFTER", help="the other one")
    parser.add_argument("--no-cycles", action="store_true", help="do not model both: quicker")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shared(parser, "--arch")
