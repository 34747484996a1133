"""`buda-emu numerics`: explain why the chip's answer differs, op by op and cause by cause."""

import argparse

from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.output import Progress, complain, say_lines, write_json
from buda_emu.app.cli.shared_arguments import read_workers
from buda_emu.emulator.image.opened import open_file
from buda_emu.emulator.inputs.entries import select_programs
from buda_emu.emulator.inputs.prepared import require_runnable
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.report.terminal.numerics import numerics_lines
from buda_emu.testing.verify.result import rounding_warnings


def main(args: argparse.Namespace) -> int:
    """Run the netlist, attribute the errors to causes, and report. Exit code 0; failures are raised."""
    progress = Progress(args.quiet)
    progress.show(f"loading {args.file}")
    opened = open_file(args.file, args.arch, cache=args.cache, allow_pickle=args.allow_pickle)
    netlist = opened.to_run

    require_runnable(netlist, select_programs(netlist, args.program))
    if not args.quiet:
        progress.clear()
        print_findings(netlist.diagnostics, args.file)
    try:
        with rounding_warnings() as warned:
            run = explain(
                netlist,
                args.program,
                dict(args.param),
                image=opened.image,
                inputs=args.inputs,
                seed=args.seed,
                only=args.op,
                threads=args.threads or usable_processors(),
                memory_limit=args.memory_limit,
                workers=read_workers(args),
                progress=progress.show,
            )
    finally:
        progress.clear()
    for text in warned:
        complain(f"buda-emu numerics: warning: {text}")
    if args.json is not None:
        write_json(args.json, run.as_json())
    if not args.quiet:
        say_lines(numerics_lines(run, args.top))
    return 0
