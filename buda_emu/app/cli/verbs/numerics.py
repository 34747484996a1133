"""`buda-emu numerics`: explain why the chip's answer differs, op by op and cause by cause."""

import argparse

from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.kernels import shown_kernels
from buda_emu.app.cli.output import Progress, say_lines, write_json
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.emulator.image.opened import open_file
from buda_emu.emulator.inputs.entries import select_programs
from buda_emu.emulator.inputs.prepared import require_runnable
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.emulator.op_errors.numerics_result import Numerics
from buda_emu.emulator.options import Document, Machine, Programs, Seed, SharedWork
from buda_emu.report.terminal.numerics import numerics_lines
from buda_emu.support.workers.job import workers_of
from buda_emu.testing.verify.result import rounding_warnings


def main(args: argparse.Namespace) -> int:
    """Run the netlist, attribute the errors to causes, and report. Exit code 0; failures are raised."""
    with Progress(args.quiet) as progress:
        run = _explain(args, progress)
    if args.json is not None:
        write_json(args.json, run.as_json())
    if not args.quiet:
        say_lines(numerics_lines(run, args.top))
    return 0


def _explain(args: argparse.Namespace, progress: Progress) -> Numerics:
    """Load the netlist and return the errors of its ops by their causes. Progress, findings and warnings go to standard
    error."""
    progress.show(f"loading {args.file}")
    opened = open_file(args.file, **read_options(args, Document))
    netlist = opened.to_run

    require_runnable(netlist, select_programs(netlist, args.program))
    if not args.quiet:
        progress.clear()
        print_findings(netlist.diagnostics, args.file)
    with rounding_warnings() as warned, shown_kernels(progress) as show:
        run = explain(
            netlist,
            image=opened.image,
            inputs=args.inputs,
            only=args.op,
            workers=workers_of(read_options(args, SharedWork)),
            progress=show,
            **read_options(args, Programs),
            **read_options(args, Seed),
            **read_options(args, Machine),
        )
    for text in warned:
        progress.say_above(f"buda-emu numerics: warning: {text}")
    return run
