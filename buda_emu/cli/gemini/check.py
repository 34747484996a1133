"""`buda-emu gemini check`: hold a schedule against the rules."""

import argparse
from typing import TYPE_CHECKING

from buda_emu.cli.findings import add_choice, told
from buda_emu.cli.gemini.arguments import add_file, add_frontend
from buda_emu.cli.output import say
from buda_emu.screen import current

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic

EXAMPLE = "buda-emu gemini check schedule.json --frontend network.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    add_frontend(parser, required=False)
    add_choice(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=("text", "json", "github", "sarif"), default="text", help="how findings are printed"
    )
    form.add_argument("--json", action="store_const", const="json", dest="format", help="as --format json")


def main(args: argparse.Namespace) -> int:
    """Print every finding. Exit code 0 without errors, 1 with errors, 2 for what is no schedule."""
    from buda_emu.gemini.judge import judge

    result = judge(args.file, args.frontend)
    found = tuple(told(result.diagnostics, args))
    say(_said(args.file, found, args.format))
    if not result.readable:
        return 2
    return 1 if any(item.severity == "error" for item in found) else 0


def _said(path: str, found: "tuple[Diagnostic, ...]", form: str) -> str:
    from buda_emu.checker import render

    if form == "text":
        return render.render(found, current()) if found else f"{path}: {render.render(found)}"
    if form == "github":
        return render.as_github(found)
    import json

    if form == "json":
        return json.dumps(render.as_json(found), indent=1)
    from buda_emu.gemini.rules import BOOK
    from buda_emu.version import __version__

    return json.dumps(render.as_sarif(found, BOOK.rules, __version__), indent=1)
