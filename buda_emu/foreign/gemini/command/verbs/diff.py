"""`buda-emu gemini diff`: compare two schedules of one network."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.command.arguments import parse_rates
from buda_emu.foreign.gemini.compare import compare
from buda_emu.foreign.gemini.report import comparison_lines


def main(args: argparse.Namespace) -> int:
    """Time two schedules of one network at the same rates and print how cycles, bytes and prefetches differ."""
    comparison = compare(gemini.load(args.first), gemini.load(args.second), parse_rates(args))
    if args.json:
        say_json(asdict(comparison))
        return 0
    say_lines(comparison_lines(comparison))
    return 0
