"""`buda-emu gemini diff`: two schedules of one network."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.command.arguments import rates_of
from buda_emu.foreign.gemini.compare import compare
from buda_emu.foreign.gemini.report import comparison_lines


def main(args: argparse.Namespace) -> int:
    """Time both and print what differs."""
    found = compare(gemini.load(args.first), gemini.load(args.second), rates_of(args))
    if args.json:
        say_json(asdict(found))
        return 0
    say_lines(comparison_lines(found))
    return 0
