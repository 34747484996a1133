"""Arguments that several verbs below `gemini` share, and JSON on standard output."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from buda_emu.cli.arguments import Taker
from buda_emu.cli.output import say

if TYPE_CHECKING:
    from buda_emu.gemini.durations import Rates

SCHEMA_VERSION = 1
"""Of everything that these verbs print with --json."""


def add_file(parser: Taker, name: str = "file", words: str = "schedule (.json or .json.gz)") -> None:
    """A schedule."""
    parser.add_argument(name, metavar=name.upper(), help=words)


def add_frontend(parser: Taker, *, required: bool) -> None:
    """--frontend."""
    parser.add_argument(
        "--frontend", required=required, metavar="FILE", help="the network's front-end IR (.json or .json.gz)"
    )


def add_json(parser: Taker) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


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


def rates_of(args: argparse.Namespace) -> "Rates":
    """What was given."""
    from buda_emu.gemini.durations import Rates

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


def say_json(content: dict[str, Any]) -> None:
    """Strict JSON with a version of its form."""
    say(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=1, allow_nan=False))
