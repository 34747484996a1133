"""`buda-emu gemini slice`: cut a small schedule out of a large one."""

import argparse

from buda_emu.app.cli.output import say, write_json
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.slice import choose_layers, slice_layers
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit


def main(args: argparse.Namespace) -> int:
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
