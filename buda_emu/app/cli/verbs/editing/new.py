"""`buda-emu new`: write a first netlist from a few words."""

import argparse

from buda_emu.app.api.new import new
from buda_emu.app.cli.output import complain, write_text
from buda_emu.support.errors import Exit, HostError


def main(args: argparse.Namespace) -> int:
    """Write the netlist. Exit code 0; failures are raised."""
    text = new(args.words, arch=args.arch or "wormhole_b0", inputs=args.count, df=args.df)
    if args.output.exists() and not args.force:
        raise HostError(f"new: {args.output} is there already: give another name, or --force")
    write_text(args.output, text)
    if str(args.output) != "-":
        complain(f"{args.output}: try `buda-emu run {args.output}`, and `buda-emu graph {args.output} -o grid.svg`")
    return Exit.OK
