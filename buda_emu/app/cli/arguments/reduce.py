"""Arguments of `buda-emu reduce`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_shared, netlist_output, positive, seconds

EXAMPLE = "buda-emu reduce big.yaml --check './my-backend {}' -o small.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `reduce`: the failing netlist, the command that shows the failure, and the output
    file."""
    add_shared(parser, "netlist")
    parser.add_argument(
        "--check",
        "--check-command",
        dest="command",
        required=True,
        metavar="COMMAND",
        help="shell command that fails on the netlist; {} stands for the file's name, which else follows the command",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=netlist_output,
        metavar="FILE",
        help="where the smallest netlist goes, each time one is found (default: FILE with .reduced before .yaml)",
    )
    add_shared(parser, "--arch")
    parser.add_argument(
        "--any-failure",
        action="store_true",
        help="a smaller netlist may fail in another way than FILE; by default with the same exit code or signal",
    )
    parser.add_argument(
        "--timeout",
        "--time-limit",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="no end within this time is a failure, too (default 60)",
    )
    parser.add_argument("-n", type=positive, dest="workers", metavar="N", help="commands at once; default: processors")
    parser.add_argument("--trials", type=positive, metavar="N", help="run the command N times at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    add_shared(parser, "--quiet")
