"""`buda-emu vpux`: check, run and look into software-layer schedules of an NPU compiler. One file for each sub-verb."""

import argparse
from collections.abc import Mapping
from typing import Final

from buda_emu.cli.parser import add_verbs

EXAMPLE = "buda-emu vpux run schedule.mlir --function main --out outputs.npz"
VERBS: Final[Mapping[str, str]] = {
    "check": "Hold every function against the rules and print every finding with its place.",
    "run": "Run a function: outputs, when each task is done, barriers, races; compare two versions.",
    "args": "Show the argument buffers that kernels are called with.",
    "serialize": "Print kernels, invocations, tasks and runtime as JSON.",
    "layout": "Work out memory shape, strides and codes of a tensor layout.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verbs of this room."""
    add_verbs(parser, __name__, VERBS)


def add_document(parser: argparse.ArgumentParser) -> None:
    """The file, and which function of it."""
    parser.add_argument("file", metavar="FILE", help="MLIR text")
    parser.add_argument("--function", metavar="NAME", help="default: main, or the only one")
    parser.add_argument("--split", type=int, metavar="N", help="part of the file between lines '// -----', from 0")
    add_arch(parser)


def add_arch(parser: argparse.ArgumentParser) -> None:
    """The architecture."""
    parser.add_argument("--arch", default="37XX", choices=("37XX", "40XX"), help="whose limits hold (37XX)")
