"""`buda-emu check`: hold documents of any kind against the rules."""

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from buda_emu.checker.text import plural
from buda_emu.cli.arguments import add_arch, add_baseline, add_no_cache
from buda_emu.cli.baseline import open_baseline, settle
from buda_emu.cli.documents import Checked, Findings, Options, check_stream, files_below, kind_of
from buda_emu.cli.findings import add_choice, told
from buda_emu.cli.output import complain, say
from buda_emu.screen import current

if TYPE_CHECKING:
    from buda_emu.report.baselines.verdict import Comparison

EXAMPLE = "buda-emu check net.yaml --strict"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="netlists, device images (.tti), ...: told apart by what they hold; a folder: what it has "
        "of these, and the folders below it; -: a netlist from standard input",
    )
    parser.add_argument("--strict", action="store_true", help="rules of the device are errors, not warnings")
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text", help="how findings are printed")
    add_choice(parser)
    add_arch(parser)
    add_baseline(parser)
    add_no_cache(parser)


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when all are accepted, 2 otherwise; with a baseline 1 for what is new or worse."""
    baseline = open_baseline(args, "check", {"strict": args.strict, "arch": args.arch})
    options = Options(args.strict, args.arch, args.cache)
    results: dict[str, Checked] = {}
    for name in files_below(args.file):
        found = check_stream(sys.stdin.buffer, options) if name == "-" else kind_of(name).judge(name, options)
        results[name] = Findings(tuple(told(found.diagnostics, args)))
    held = None
    if baseline is not None:
        from buda_emu.report.baselines.items import check_items

        held = baseline.against({name: check_items(result.diagnostics) for name, result in results.items()})
        results = {name: _without_known(name, result, held) for name, result in results.items()}
    text = _WRITERS[args.format](results)
    if text:
        say(text)
    if held is not None:
        return settle(held, updated=args.update_baseline, tell=say if args.format == "text" else complain)
    return 0 if all(result.ok for result in results.values()) else 2


def _without_known(name: str, result: Checked, held: "Comparison") -> Checked:
    """Only the findings that are new or worse."""
    from buda_emu.report.baselines.items import finding

    bad = {change.what for change in (*held.new, *held.worse) if change.file == name}
    return Findings(tuple(item for item in result.diagnostics if finding(item) in bad))


def _text(results: Mapping[str, Checked]) -> str:
    from buda_emu.checker.render import render

    found = [diagnostic for result in results.values() for diagnostic in result.diagnostics]
    files = plural(len(results), "file")
    return f"{files}: {render(found)}" if not found else render(found, current())


def _json(results: Mapping[str, Checked]) -> str:
    import json

    from buda_emu.checker.render import as_json

    content = as_json([diagnostic for result in results.values() for diagnostic in result.diagnostics])
    files = [{"path": name, "accepted": result.ok} for name, result in results.items()]
    return json.dumps({**content, "files": files}, indent=1)


def _github(results: Mapping[str, Checked]) -> str:
    from buda_emu.checker.render import as_github

    return as_github([diagnostic for result in results.values() for diagnostic in result.diagnostics])


def _sarif(results: Mapping[str, Checked]) -> str:
    import json

    from buda_emu.checker.render import as_sarif
    from buda_emu.cli.documents import rule_kind
    from buda_emu.version import __version__

    found = [diagnostic for result in results.values() for diagnostic in result.diagnostics]
    rules = {name: rule_kind(name).rules().rules[name] for name in {item.rule for item in found}}
    return json.dumps(as_sarif(found, rules, __version__), indent=1)


_WRITERS = {"text": _text, "json": _json, "github": _github, "sarif": _sarif}
