"""Arguments of `buda-emu lsp`."""

import argparse

EXAMPLE = "buda-emu lsp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("--stdio", action="store_true", help="speak on standard input and output: always so")
