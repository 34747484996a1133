"""`buda-emu darwinn`: packages of the Edge TPU compiler. One file for each of its verbs."""

import argparse
from collections.abc import Mapping

from buda_emu.cli.parser import add_verbs

EXAMPLE = "buda-emu darwinn inspect model_edgetpu.tflite"
# One line for each verb. Its module has EXAMPLE, add_arguments and main.
VERBS: Mapping[str, str] = {
    "inspect": "Say what is in a package: what runs on the CPU, what is cached, layers, cost of a switch.",
    "check": "Check packages against the rules D001 to D086 and say what the driver does with them.",
    "run": "Replay requests on one device; with --reference, compute outputs, too.",
    "verify": "Say whether a package holds an uncompiled model's weights, biases, names and quantisation.",
    "link": "Write the instruction chunks with base addresses filled in.",
    "relayout": "Turn an output's bytes on the device into an array.",
    "example": "Write two small co-compiled packages with their models, to try things on.",
    "extract": "Write what a file holds: package, parameters, instruction chunks.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verbs of this room."""
    add_verbs(parser, __name__, VERBS)


def add_file(parser: argparse.ArgumentParser) -> None:
    """A package."""
    parser.add_argument("file", metavar="FILE", help="a compiled .tflite or a bare package")
