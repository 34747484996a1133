"""Arguments of `buda-emu new`."""

import argparse
from pathlib import Path

from buda_emu.app.api.new import FORMATS
from buda_emu.app.cli.shared_arguments import add_arch, netlist_output, positive

EXAMPLE = "buda-emu new 64x128 matmul:256 gelu add -o first.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `new`: shape and ops of the netlist to write, its file, chip and format."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="shape of the input in elements, 64x128 or 4x64x128; then op types in order: matmul:COLUMNS, gelu, ...",
    )
    parser.add_argument(
        "-o", "--output", type=netlist_output, default=Path("-"), metavar="FILE", help="default: standard output"
    )
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    add_arch(parser, "wormhole_b0")
    parser.add_argument("--count", type=positive, default=2, metavar="N", help="inputs that one run takes; default: 2")
    parser.add_argument("--df", choices=FORMATS, default="Float16_b", help="format of all tensors; default: Float16_b")
