"""`buda-emu compile --ops`: the operators that models may have."""

import argparse

from buda_emu.cli.output import say
from buda_emu.compiler.support import HEADERS, rows
from buda_emu.report.terminal.text import table


def main(_args: argparse.Namespace) -> int:
    """Print them. Exit code 0."""
    say(table(HEADERS, rows(), prose=(3,), whole=(0,)))
    return 0
