"""`buda-emu gemini slice`: a small schedule out of a large one."""

import argparse
from pathlib import Path

from buda_emu import gemini
from buda_emu.checker.text import plural
from buda_emu.cli.output import say, write_json
from buda_emu.cli.verbs.gemini.arguments import add_file
from buda_emu.errors import Exit

EXAMPLE = "buda-emu gemini slice schedule.json --layers Conv_3..Add_9 -o small.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    parser.add_argument(
        "--layers",
        required=True,
        metavar="NAME,...",
        help="layers by name, or FIRST..LAST in the order of the schedule",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the slice goes")


def main(args: argparse.Namespace) -> int:
    """Cut, check and write. Exit code 4 where a result that must be stored now has no room."""
    from buda_emu.gemini.slice import chosen_layers, slice_layers

    ir = gemini.load(args.file)
    layers = chosen_layers(ir, args.layers.split(","))
    small = slice_layers(ir, layers)
    write_json(args.output, small.to_json())
    errors = sum(item.severity == "error" for item in small.check())
    verdict = "checks clean" if not errors else f"{plural(errors, 'error')}: this is a bug of buda-emu"
    say(
        f"wrote {args.output}: {len(small.workloads())} of {plural(len(ir.workloads()), 'workload')}, {len(layers)} "
        f"layers, {verdict}"
    )
    return Exit.OK if not errors else Exit.INTERNAL
