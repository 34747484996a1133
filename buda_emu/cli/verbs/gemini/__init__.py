"""`buda-emu gemini`: schedules of the Gemini scheduler, one file for each verb."""

import argparse
from collections.abc import Mapping
from typing import Final

from buda_emu.cli.parser import add_verbs

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
    """The verbs of this room."""
    add_verbs(parser, __name__, VERBS)
