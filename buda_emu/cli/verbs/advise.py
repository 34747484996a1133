"""`buda-emu advise`: what would make a netlist faster, modelled, checked, with what it costs in accuracy."""

import argparse
from pathlib import Path

from buda_emu.cli.arguments import (
    add_arch,
    add_board,
    add_param,
    add_program,
    add_seed,
    add_workers,
    natural,
    positive,
)
from buda_emu.cli.output import Progress, say, write_json, write_output

EXAMPLE = "buda-emu advise netlists/attention.yaml --write faster.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist")
    add_program(parser, "make faster")
    add_param(parser)
    add_arch(parser)
    add_board(parser)
    parser.add_argument(
        "--move", action="append", default=[], metavar="NAME",
        help="kind of change to try, repeatable; default: all (docs/advise.md lists them)",
    )  # fmt: skip
    parser.add_argument(
        "--max-loss", type=float, default=1e-3, metavar="PCC",
        help="PCC against float32 that all changes together may cost the ops that they touch (default 0.001)",
    )  # fmt: skip
    parser.add_argument(
        "--tries", type=positive, default=160, metavar="N", help="epochs that are modelled, at most (default 160)"
    )
    add_seed(parser)
    add_workers(parser)
    parser.add_argument("--top", type=natural, default=10, metavar="N", help="rows of each table, 0: all (default 10)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the netlist with the changes, comments kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def main(args: argparse.Namespace) -> int:
    """Advise. Exit code 0, whether something was found or not."""
    from buda_emu.api.advise import advise
    from buda_emu.report.terminal.advice import advice_lines

    progress = Progress(args.quiet)
    found = advise(
        args.file, programs=args.program, parameters=dict(args.param), arch=args.arch, board=args.board,
        moves=args.move, most_loss=args.max_loss, tries=args.tries, seed=args.seed,
        workers=args.workers, dask=args.dask, progress=progress.show,
    )  # fmt: skip
    progress.clear()
    if not args.quiet:
        for line in advice_lines(found, args.top):
            say(line)
    if args.write is not None:
        write_output(args.write, lambda stream: stream.write(found.text))
        if found.reason and not args.quiet:
            say(f"{args.write}: the netlist as it is")
    if args.json is not None:
        write_json(args.json, found.to_json())
    return 0
