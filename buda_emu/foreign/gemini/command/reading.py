"""Verbs of `buda-emu gemini` that read a schedule and run nothing: `check`, `alloc`, and `slice`."""

import argparse

from buda_emu.app.cli.output import say, write_json
from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.slice import choose_layers, slice_layers
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError

KIND = kind_by_name("schedule")


def check_verb(args: argparse.Namespace) -> int:
    """Check every schedule against the rules and print the findings. Exit code 0 without errors, 1 with errors, 2
    where one is not a schedule (docs/run/run.md)."""
    results = check.check_files(args, KIND)
    code = check.print_results(args, results)
    readable = all(file.result.document is not None for file in results.values())
    return Exit.DIFFERS if code and readable else code


def alloc_verb(args: argparse.Namespace) -> int:
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


def slice_verb(args: argparse.Namespace) -> int:
    """Cut the chosen layers out of a schedule, check the slice and write it. Exit code 4 where a result that must
    be stored now has no room."""
    ir = gemini.load(args.file)
    layers = choose_layers(ir, args.layers.split(","))
    small = slice_layers(ir, layers)
    write_json(args.output, small.to_json())
    errors = sum(finding.severity == "error" for finding in small.check())
    if not errors:
        verdict = "checks clean"
    else:
        verdict = f"{plural(errors, 'error')}: this is a bug of buda-emu"
    say(
        f"wrote {args.output}: {len(small.workloads())} of {plural(len(ir.workloads()), 'workload')}, {len(layers)} "
        f"layers, {verdict}"
    )
    return Exit.OK if not errors else Exit.INTERNAL
