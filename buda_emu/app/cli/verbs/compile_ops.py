"""`buda-emu compile --ops`: the operators that models may have."""

import argparse

from buda_emu.app.cli.output import say
from buda_emu.compiler.operator_list import COVERAGE_HEADERS, HEADERS, STANDARDS, rows
from buda_emu.report.terminal.text import table


def main(_args: argparse.Namespace) -> int:
    """Print front-end ops, and the operators of each standard with the place where they are computed. Exit code 0."""
    say(table(HEADERS, rows(), prose=(3,), whole=(0,)))
    for standard in STANDARDS:
        say(f"\n{standard.name}: where each operator is computed")
        if standard.is_installed:
            say(table(COVERAGE_HEADERS, standard.rows(), prose=(2,), whole=(0,)))
        else:
            say(f"needs the package {standard.package}: pip install 'buda-emu[{standard.package}]'")
    return 0
