"""Arguments of `buda-emu run`."""

import argparse

from buda_emu.cli.shared_arguments import (
    add_allow_pickle,
    add_arch,
    add_board,
    add_memory_limit,
    add_no_cache,
    add_param,
    add_precision,
    add_program,
    add_seed,
    add_threads,
    add_workers,
    path,
)

EXAMPLE = "buda-emu run net.yaml --program run_fwd --param p_loop_count=4 --outputs out/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist, or device image (.tti)")
    parser.add_argument(
        "--inputs",
        type=path,
        metavar="DIR",
        help="push [entries, t, rows, cols] for each queue from DIR: <queue>.npy, or by queue in .npz or .safetensors "
        "files, or one .npz file, of a compiled model by its inputs' own names; "
        "default: as the test-config says, else seeded random",
    )
    parser.add_argument(
        "-o", "--outputs", type=path, metavar="DIR", help="write <queue>.npy for every op-fed queue and ram"
    )
    add_arch(parser)
    add_board(parser)
    add_program(parser)
    add_param(parser)
    add_precision(parser, "format")
    parser.add_argument(
        "--readout",
        choices=("host", "raw"),
        default="host",
        help="host: outputs as the host reads them, widened to float32; raw: as held",
    )
    add_threads(parser)
    add_workers(parser)
    add_memory_limit(parser)
    add_no_cache(parser)
    add_seed(parser)
    add_allow_pickle(parser)
    parser.add_argument("--json", type=path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
