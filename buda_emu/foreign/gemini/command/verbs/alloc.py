"""`buda-emu gemini alloc`: give addresses to a schedule that has none."""

import argparse

from buda_emu.app.cli.output import say, write_json
from buda_emu.foreign import gemini
from buda_emu.support.errors import HostError


def main(args: argparse.Namespace) -> int:
    """Print the size of the fullest snapshot, and with --output give addresses to the schedule and write it. Exit
    code 4 where there is no room, 3 for what cannot be allocated."""
    if (args.buffersize is None) != (args.output is None):
        raise HostError("--buffersize and --output belong together")
    ir = gemini.load(args.file)
    size, core, workload = gemini.peak(ir)
    say(f"the fullest snapshot needs {size} bytes: core {core}, workload {workload} (ids of the addressed schedule)")
    if args.output is not None:
        write_json(args.output, gemini.allocate(ir, args.buffersize).to_json())
        say(f"wrote {args.output}: every tensor of int8 has its place in {args.buffersize} bytes")
    return 0
