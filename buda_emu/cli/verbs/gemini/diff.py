"""`buda-emu gemini diff`: two schedules of one network."""

import argparse
from dataclasses import asdict

from buda_emu import gemini
from buda_emu.cli.arguments import add_json
from buda_emu.cli.output import say, say_json
from buda_emu.cli.verbs.gemini.arguments import add_file, add_rates, rates_of

EXAMPLE = "buda-emu gemini diff before.json after.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser, "first")
    add_file(parser, "second", "another schedule of the same network")
    add_rates(parser)
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Time both and print what differs."""
    from buda_emu.gemini.compare import compare

    found = compare(gemini.load(args.first), gemini.load(args.second), rates_of(args))
    if args.json:
        say_json(asdict(found))
        return 0
    from buda_emu.report.terminal.gemini import comparison_lines

    for line in comparison_lines(found):
        say(line)
    return 0
