"""Arguments of `buda-emu debug`."""

import argparse
from pathlib import Path

from buda_emu.cli.shared_arguments import (
    add_allow_pickle,
    add_arch,
    add_memory_limit,
    add_no_cache,
    add_param,
    add_precision,
    add_program,
    add_seed,
    add_threads,
    memory_size,
    natural,
)

EXAMPLE = "buda-emu debug netlists/attention.yaml -e 'break if nan(op:scores)' -e continue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="netlist, or device image (.tti)")
    parser.add_argument("-x", "--script", type=Path, metavar="FILE", help="do the commands in FILE first, one a line")
    parser.add_argument(
        "-e", "--command", action="append", default=[], metavar="COMMAND", help="do this command first, repeatable"
    )
    parser.add_argument(
        "--batch",
        action="store_true",
        help="end after these commands; exit code 2 where one is refused, 4 where the program has failed, 130 after "
        "Ctrl-C",
    )
    parser.add_argument("--json", action="store_true", help="print each answer as JSON, one a line")
    parser.add_argument("--dap", action="store_true", help="speak the Debug Adapter Protocol with an editor, on stdio")
    parser.add_argument(
        "--port", type=natural, metavar="N", help="with --dap: wait for editors on this port of 127.0.0.1 (0: any)"
    )
    parser.add_argument(
        "--inputs", type=Path, metavar="DIR",
        help="push DIR/<queue>.npy, [entries, t, rows, cols], or one .npz file by queue, of a compiled model by its "
        "inputs' own names; what is not there is made up",
    )  # fmt: skip
    add_program(parser)
    add_param(parser)
    add_arch(parser)
    add_precision(parser, "format")
    add_seed(parser)
    add_threads(parser)
    add_memory_limit(parser)
    parser.add_argument(
        "--history-limit", type=memory_size, metavar="SIZE",
        help="most memory of checkpoints for going back, beside the first; default: 512M",
    )  # fmt: skip
    add_no_cache(parser)
    add_allow_pickle(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print answers only, no greeting")
