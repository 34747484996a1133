"""Arguments of `buda-emu pack`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_shared

EXAMPLE = "buda-emu pack net.yaml --tensors weights/ -o image.tti"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pack`: the netlist, its tensors, and file, form and version of the image."""
    add_shared(parser, "netlist")
    parser.add_argument(
        "--tensors",
        type=Path,
        required=True,
        metavar="DIR",
        help="constants and parameters: DIR/<queue>.npy, or .npz files with arrays named by queue, "
        "[entries, t, rows, cols]",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where to write, *.tti")
    parser.add_argument(
        "--tilized", action="store_true", help="tensors as the device's tiles, rounded to the formats of their queues"
    )
    parser.add_argument("--zip", action="store_true", help="a zip instead of a tar")
    parser.add_argument(
        "--pybuda-version",
        metavar="V",
        help="the version of PyBUDA that is to read the image: it refuses any other; default: buda-emu and its version",
    )
    parser.add_argument("--name", metavar="NAME", help="of the image; default: that of the output file")
    add_shared(parser, "--arch", "--quiet")
