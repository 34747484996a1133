"""Arguments of `buda-emu lsp`."""

import argparse

EXAMPLE = "buda-emu lsp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the only argument of `lsp`, --stdio, which editors pass and which changes nothing."""
    parser.add_argument("--stdio", action="store_true", help="speak on standard input and output: always so")
