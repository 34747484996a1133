"""`buda-emu check`: hold netlists against the rules."""

import argparse
from typing import TYPE_CHECKING

from buda_emu.cli.arguments import add_arch, add_no_cache
from buda_emu.cli.output import say

if TYPE_CHECKING:
    from buda_emu.netlist.load import CheckResult

EXAMPLE = "buda-emu check net.yaml --strict"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="netlists and device images (.tti)")
    parser.add_argument("--strict", action="store_true", help="rules of the device are errors, not warnings")
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text", help="how findings are printed")
    add_arch(parser)
    add_no_cache(parser)


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when all are accepted, 2 otherwise."""
    results = {name: _check(name, args.arch, args.strict, args.cache) for name in args.file}
    text = _WRITERS[args.format](results)
    if text:
        say(text)
    return 0 if all(result.ok for result in results.values()) else 2


def _check(name: str, arch: str | None, strict: bool, cache: bool) -> "CheckResult":
    if name.lower().endswith(".tti"):
        from buda_emu.image.device_image import check_image

        return check_image(name, arch, strict=strict)
    from buda_emu.netlist.load import check

    return check(name, arch, strict=strict, cache=cache)


def _text(results: "dict[str, CheckResult]") -> str:
    from buda_emu.netlist.render import render

    found = [diagnostic for result in results.values() for diagnostic in result.diagnostics]
    files = f"{len(results)} file{'s' * (len(results) != 1)}"
    return f"{files}: {render(found)}" if not found else render(found)


def _json(results: "dict[str, CheckResult]") -> str:
    import json

    from buda_emu.netlist.render import as_json

    content = as_json([diagnostic for result in results.values() for diagnostic in result.diagnostics])
    files = [{"path": name, "accepted": result.ok} for name, result in results.items()]
    return json.dumps({**content, "files": files}, indent=1)


def _github(results: "dict[str, CheckResult]") -> str:
    from buda_emu.netlist.render import as_github

    return as_github([diagnostic for result in results.values() for diagnostic in result.diagnostics])


_WRITERS = {"text": _text, "json": _json, "github": _github}
