"""`buda-emu numerics`: why the chip's answer differs, op by op and cause by cause."""

import argparse
from pathlib import Path

from buda_emu.cli.arguments import (
    add_allow_pickle,
    add_arch,
    add_memory_limit,
    add_no_cache,
    add_param,
    add_program,
    add_seed,
    add_threads,
    add_workers,
    positive,
    workers_of,
)
from buda_emu.cli.findings import tell_findings
from buda_emu.cli.output import Progress, complain, say, write_json
from buda_emu.device.host_processors import usable_processors
from buda_emu.image.opened import open_file
from buda_emu.report.terminal.numerics import numerics_lines
from buda_emu.verify.inputs.entries import chosen_programs
from buda_emu.verify.observed import rounding_warnings

EXAMPLE = "buda-emu numerics netlists/attention.yaml -n 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist, or device image (.tti)")
    parser.add_argument("--op", metavar="NAME", help="look at this op only")
    parser.add_argument("-n", "--top", type=positive, metavar="N", help="the N ops with the largest error only")
    parser.add_argument(
        "--inputs", type=Path, metavar="DIR",
        help="push DIR/<queue>.npy, [entries, t, rows, cols], or one .npz file by queue, of a compiled model by its "
        "inputs' own names; what is not there is made up",
    )  # fmt: skip
    add_program(parser)
    add_param(parser)
    add_arch(parser)
    add_seed(parser)
    add_threads(parser)
    add_workers(parser, short=False)  # -n is --top
    add_memory_limit(parser)
    add_no_cache(parser)
    add_allow_pickle(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def main(args: argparse.Namespace) -> int:
    """Run, take apart and report. Exit code 0; failures are raised."""
    progress = Progress(args.quiet)
    progress.show(f"loading {args.file}")
    opened = open_file(args.file, args.arch, cache=args.cache, allow_pickle=args.allow_pickle)
    netlist = opened.to_run
    from buda_emu.verify.op_by_op.numerics import explain
    from buda_emu.verify.preflight import require_runnable

    require_runnable(netlist, chosen_programs(netlist, args.program))
    if not args.quiet:
        progress.clear()
        tell_findings(netlist.diagnostics, args.file)
    try:
        with rounding_warnings() as warned:
            run = explain(
                netlist, args.program, dict(args.param), image=opened.image, inputs=args.inputs,
                seed=args.seed, only=args.op, threads=args.threads or usable_processors(),
                memory_limit=args.memory_limit, workers=workers_of(args), progress=progress.show,
            )  # fmt: skip
    finally:
        progress.clear()
    for text in warned:
        complain(f"buda-emu numerics: warning: {text}")
    if args.json is not None:
        write_json(args.json, run.as_json())
    if not args.quiet:
        for line in numerics_lines(run, args.top):
            say(line)
    return 0
