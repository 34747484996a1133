"""Arguments of `buda-emu info`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_shared

EXAMPLE = "buda-emu info model.tti schedule.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `info`: documents and the form of the answer."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="documents of any kind, or folders that have some")
    add_shared(parser, "--json")
    parser.add_argument(
        "--timeline",
        type=Path,
        metavar="FILE",
        help="write when everything happens in the one document given: a page (.html), or a trace for ui.perfetto.dev",
    )
