"""Arguments of `buda-emu generate`."""

import argparse
from pathlib import Path

from buda_emu.app.cli.shared_arguments import add_arch, add_group, add_shared, natural, positive
from buda_emu.emulator.options import Seed
from buda_emu.spec.archs import DEFAULT_ARCH

EXAMPLE = "buda-emu generate -o netlists/ --count 100 --types matmul,exp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `generate`: where the random netlists go, how many, and how large."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where netlists are written")
    parser.add_argument("--count", type=positive, default=10, metavar="N", help="how many (default 10)")
    add_group(parser, Seed)
    add_arch(parser, f"{DEFAULT_ARCH}; with --for-coverage all")
    parser.add_argument("--types", metavar="OP,...", help="op types to draw from; default: all that run")
    parser.add_argument("--ops", type=positive, default=6, metavar="N", help="ops of a netlist, at most (default 6)")
    parser.add_argument("--graphs", type=positive, default=2, metavar="N", help="graphs, at most (default 2)")
    parser.add_argument("--tiles", type=positive, default=12, metavar="N", help="tiles of a result (default 12)")
    parser.add_argument("--microbatch", type=positive, default=3, metavar="N", help="inputs of an execute (default 3)")
    parser.add_argument("--first", type=natural, default=0, metavar="N", help="number of the first one (default 0)")
    parser.add_argument(
        "--for-coverage",
        type=Path,
        metavar="FILE",
        help="write netlists that have what this file of `test --coverage` lacks; a file that is not there lacks all",
    )
    parser.add_argument(
        "--break",
        dest="rule",
        metavar="RULE",
        help="write with each valid netlist another one that breaks this rule of the checker and no other",
    )
    add_shared(parser, "--quiet")
