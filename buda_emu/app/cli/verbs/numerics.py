"""`buda-emu numerics`: explain why the chip's answer differs, op by op and cause by cause."""

import argparse

from buda_emu.app.cli.findings import print_findings
from buda_emu.app.cli.kernels import shown_kernels
from buda_emu.app.cli.output import Progress, say_lines, write_json
from buda_emu.app.cli.shared_arguments import read_workers
from buda_emu.emulator.image.opened import open_file
from buda_emu.emulator.inputs.entries import select_programs
from buda_emu.emulator.inputs.prepared import require_runnable
from buda_emu.emulator.memory.host import usable_processors
from buda_emu.emulator.op_errors.numerics import explain
from buda_emu.emulator.op_errors.numerics_result import Numerics
from buda_emu.report.terminal.numerics import numerics_lines
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
    """Attribute the errors of the netlist to causes, with progress and warnings on standard error."""
    progress.show(f"loading {args.file}")
    opened = open_file(args.file, args.arch, cache=args.cache, allow_pickle=args.allow_pickle)
    netlist = opened.to_run

    require_runnable(netlist, select_programs(netlist, args.program))
    if not args.quiet:
        progress.clear()
        print_findings(netlist.diagnostics, args.file)
    with rounding_warnings() as warned, shown_kernels(progress) as show:
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
            progress=show,
        )
    for text in warned:
        progress.say_above(f"buda-emu numerics: warning: {text}")
    return run
