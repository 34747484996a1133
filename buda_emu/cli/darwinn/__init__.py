"""`buda-emu darwinn`: packages of the Edge TPU compiler. One file for each of its verbs."""

import argparse
from collections.abc import Mapping
from importlib import import_module

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
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", required=True)
    for name, line in VERBS.items():
        module = import_module(f"buda_emu.cli.darwinn.{name}")
        own = verbs.add_parser(name, help=line, description=line, example=module.EXAMPLE)  # type: ignore[call-arg]
        module.add_arguments(own)
        own.set_defaults(darwinn_verb=module.main)


def main(args: argparse.Namespace) -> int:
    """Run one verb."""
    return args.darwinn_verb(args)
