"""Arguments of `buda-emu faults`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import (
    add_arch,
    add_group,
    add_shared,
    correlation,
    natural,
    nonnegative,
    number_below,
    positive,
    seconds,
)
from buda_emu.emulator.options import Memory, Programs, Seed, SharedWork

EXAMPLE = "buda-emu faults netlists/attention.yaml --count 2000 -o campaign/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `faults`: the document, how many faults of which kinds and where, and when to stop."""
    add_shared(parser, "FILE")
    parser.add_argument("--count", type=positive, default=1000, metavar="N", help="faults (default 1000)")
    parser.add_argument("--seconds", type=seconds, metavar="S", help="stop after so long, whatever --count says")
    parser.add_argument(
        "--width",
        type=_interval_width,
        metavar="W",
        help="stop when the interval of the failing share is no wider than W",
    )
    parser.add_argument(
        "--kind",
        default="flip",
        metavar="KIND,...",
        help="flip, burst, stuck, core, packet, entry, pointer, format, clock, link (default flip)",
    )
    parser.add_argument(
        "--place",
        default="",
        metavar="PLACE,...",
        help="where bits flip: dram, l1, operand, in precision device dst, sfpu and packer, too (default: all)",
    )
    parser.add_argument(
        "--stratify", default="", metavar="BY", help="as many faults of each: kind, place, op, tensor or bit"
    )
    parser.add_argument("--protect", default="", metavar="P,...", help="try protection: parity, ecc, range")
    parser.add_argument("--bits", type=positive, default=1, metavar="N", help="neighbouring bits of a flip (default 1)")
    parser.add_argument("--scatter", action="store_true", help="the --bits of a flip lie anywhere in the datum")
    parser.add_argument("--only", default="", metavar="NAME", help="hit this op or queue alone")
    parser.add_argument(
        "--pcc",
        type=correlation,
        default=0.99,
        metavar="X",
        help="PCC that an output must have to be tolerable (default 0.99)",
    )
    parser.add_argument("--top-1", action="store_true", help="tolerable keeps the largest element of each row, too")
    parser.add_argument(
        "--late",
        type=nonnegative,
        default=1.1,
        metavar="X",
        help="kinds clock and link: late is beyond X times the time of the clean run (default 1.1)",
    )
    parser.add_argument("--sites", type=Path, metavar="FILE", help="inject these faults: JSON lines, or a faults.json")
    parser.add_argument("--write-sites", type=Path, metavar="FILE", help="write the faults as --sites reads them")
    parser.add_argument(
        "--precision", choices=("format", "ideal", "device"), default="format", help="as in `run` (default format)"
    )
    parser.add_argument("--inputs", metavar="FILE.npz", help="inputs of the run; default: random, as with `run`")
    add_group(parser, Programs)
    add_arch(parser)
    for group in (Seed, Memory, SharedWork):
        add_group(parser, group)
    parser.add_argument("--replay", type=natural, metavar="N", help="fault N alone, in words")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="write report.html, faults.csv, faults.json; an interrupted campaign there goes on",
    )
    add_shared(parser, "--top", "--json FILE", "--quiet")


def _interval_width(text: str) -> float:
    """Parse the width of the interval of the failing share at which a campaign stops: above 0 and below 1. Raises
    ArgumentTypeError for another text."""
    return number_below(text, 1, "a share between 0 and 1, such as 0.02")
