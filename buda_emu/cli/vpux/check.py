"""`buda-emu vpux check`: hold every function against the X rules."""

import argparse

from buda_emu.checker.text import plural
from buda_emu.cli.findings import add_choice, told
from buda_emu.cli.output import say
from buda_emu.cli.vpux import add_arch
from buda_emu.screen import current

EXAMPLE = "buda-emu vpux check schedule.mlir --arch 40XX"
FORMATS = ("text", "json", "github")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sub-verb's own arguments."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="MLIR text")
    parser.add_argument("--format", choices=FORMATS, default="text", help="how findings are printed")
    parser.add_argument("--strict", action="store_true", help="warnings, too, make the exit code 2")
    add_choice(parser)
    add_arch(parser)


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when none has errors, 2 otherwise."""
    from buda_emu.checker import render
    from buda_emu.vpux import load

    documents = [load(name) for name in args.file]
    found = told((item for document in documents for item in document.check(arch=args.arch)), args)
    if args.format == "text":
        functions = sum(len(document.functions) for document in documents)
        text = render.render(found, current())
        say(text if found else f"{plural(functions, 'function')}: {text}")
    elif args.format == "json":
        import json

        say(json.dumps({**render.as_json(found), "arch": args.arch}, indent=1))
    elif found:
        say(render.as_github(found))
    bad = ("error", "warning") if args.strict else ("error",)
    return 2 if any(item.severity in bad for item in found) else 0
