"""`buda-emu gemini`: schedules of the Gemini scheduler, one file for each verb."""

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Final

VERBS: Final[Mapping[str, str]] = {
    "check": "Hold a schedule against the rules and print every finding with its place in the file.",
    "run": "Say when everything happens, and what each core waits for.",
    "exec": "Run a schedule on real bytes and compare with the network computed at once.",
    "stats": "Count what a schedule moves and computes.",
    "alloc": "Give addresses to a schedule that has none.",
    "sweep": "Time a schedule at several bandwidths, frequencies, buffers and meshes.",
    "diff": "Compare two schedules of one network, layer by layer.",
    "slice": "Cut a small schedule that checks clean out of a large one.",
}
EXAMPLE = "buda-emu gemini run schedule.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A parser for each verb below `gemini`."""
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", required=True)
    for name, line in VERBS.items():
        module = import_module(f"buda_emu.cli.gemini.{name}")
        own = verbs.add_parser(name, help=line, description=line, example=module.EXAMPLE)
        module.add_arguments(own)
        own.set_defaults(gemini=module.main)


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    return args.gemini(args)
