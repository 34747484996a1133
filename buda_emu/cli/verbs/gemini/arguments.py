"""Arguments that several verbs below `gemini` share."""

import argparse

from buda_emu.cli.arguments import Taker
from buda_emu.gemini.time.durations import Rates


def add_file(parser: Taker, name: str = "file", words: str = "schedule (.json or .json.gz)") -> None:
    """A schedule."""
    parser.add_argument(name, metavar=name.upper(), help=words)


def add_rates(parser: Taker) -> None:
    """--dram-gibps, --freq-ghz, --noc-bytes."""
    parser.add_argument(
        "--dram-gibps",
        type=rate,
        default=16.0,
        metavar="X",
        help="DRAM bandwidth in GiB/s; default: 16, as in the traces",
    )
    parser.add_argument("--freq-ghz", type=rate, default=1.0, metavar="X", help="clock in GHz; default: 1")
    parser.add_argument(
        "--noc-bytes", type=rate, default=32.0, metavar="X", help="bytes a cycle over a NoC link; default: 32"
    )


def rates_of(args: argparse.Namespace) -> Rates:
    """What was given."""
    return Rates(args.dram_gibps, args.freq_ghz, args.noc_bytes)


def rate(text: str) -> float:
    """argparse type: a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
