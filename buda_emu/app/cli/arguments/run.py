"""Arguments of `buda-emu run`."""

import argparse

from buda_emu.app.cli.shared_arguments import add_arch, add_group, add_shared, path
from buda_emu.emulator.options import Arithmetic, Board, Cache, Execution, Pickles, Programs, Seed

EXAMPLE = "buda-emu run net.yaml --program run_fwd --param p_loop_count=4 --outputs out/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `run`: the document, its inputs and outputs, and the emulator's precision."""
    add_shared(parser, "FILE")
    parser.add_argument(
        "--inputs",
        type=path,
        metavar="DIR",
        help="push [entries, t, rows, cols] for each queue from DIR: <queue>.npy, or by queue in .npz or .safetensors "
        "files, or one .npz file, for a compiled model with its inputs' own names; default: as the "
        "test-config says, else seeded random",
    )
    parser.add_argument(
        "-o", "--outputs", type=path, metavar="DIR", help="write <queue>.npy for every op-fed queue and ram"
    )
    add_arch(parser)
    add_group(parser, Board)
    add_group(parser, Programs)
    add_group(parser, Arithmetic)
    parser.add_argument(
        "--readout",
        choices=("host", "raw"),
        default="host",
        help="host: outputs as the host reads them, widened to float32; raw: as held",
    )
    for group in (Execution, Cache, Seed, Pickles):
        add_group(parser, group)
    parser.add_argument("--json", type=path, metavar="FILE", help="write the report as JSON")
    add_shared(parser, "--quiet")
