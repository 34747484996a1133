"""`buda-emu darwinn example`: two small co-compiled packages to try things on."""

import argparse

from buda_emu.app.cli.output import say, write_output
from buda_emu.foreign.darwinn.example import example_files


def main(args: argparse.Namespace) -> int:
    """Write two packages and the models that they were compiled from."""
    args.output.mkdir(parents=True, exist_ok=True)
    for name, data in example_files().items():
        write_output(args.output / name, lambda stream, data=data: stream.write(data))
        say(f"{len(data):>8,}  {args.output / name}")
    return 0
