"""`buda-emu advise`: find changes that make a netlist faster, with their cost in accuracy."""

import argparse

from buda_emu.app.api.advise import AdviceOptions, advise
from buda_emu.app.cli.kernels import counted_kernels
from buda_emu.app.cli.output import Progress, say, say_lines, write_json, write_output
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.report.terminal.advice import advice_lines


def main(args: argparse.Namespace) -> int:
    """Print and write the advice. Exit code 0 whether or not a change was found."""
    with Progress(args.quiet) as progress, counted_kernels(progress):
        advice = advise(
            args.file,
            moves=args.move,
            most_loss=args.max_loss,
            tries=args.tries,
            progress=progress.report,
            **read_options(args, AdviceOptions),
        )
    if not args.quiet:
        say_lines(advice_lines(advice, args.top))
    if args.write is not None:
        write_output(args.write, lambda stream: stream.write(advice.text))
        if advice.reason and not args.quiet:
            say(f"{args.write}: the netlist as it is")
    if args.json is not None:
        write_json(args.json, advice.to_json())
    return 0
