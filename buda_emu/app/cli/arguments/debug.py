"""Arguments of `buda-emu debug`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_arch, add_group, add_shared, memory_size, natural
from buda_emu.emulator.options import Arithmetic, Loading, Machine, Programs, Seed

EXAMPLE = "buda-emu debug netlists/attention.yaml -e 'break if nan(op:scores)' -e continue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `debug`: the document, commands to begin with, and the protocol for editors."""
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
        "--port",
        type=natural,
        metavar="N",
        help="with --dap: wait for an editor on this port of 127.0.0.1 (0: any), and print the token that it needs",
    )
    add_shared(parser, "--inputs")
    add_group(parser, Programs)
    add_arch(parser)
    add_group(parser, Arithmetic)
    add_group(parser, Seed)
    add_group(parser, Machine)
    parser.add_argument(
        "--history-limit",
        type=memory_size,
        metavar="SIZE",
        help="most memory of checkpoints for going back, without the first; default: 512M",
    )
    add_group(parser, Loading)
    parser.add_argument("-q", "--quiet", action="store_true", help="print answers only, no greeting")
