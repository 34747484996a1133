"""`buda-emu darwinn inspect`: a package on one screen."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.report import inspect_lines
from buda_emu.foreign.darwinn.summary import summarise

_SHORT = ("rule", "severity", "where", "message")  # of a finding, in the JSON


def main(args: argparse.Namespace) -> int:
    """Print the package. Exit code 2 for what cannot be read."""
    package = darwinn.load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        findings = [{name: getattr(item, name) for name in _SHORT} for item in report.diagnostics]
        content = {"path": args.file, "verdict": report.verdict, "findings": findings}
        content |= {"summary": asdict(summary), "tree": package.to_dict()}
        say_json(content)
        return 0
    say_lines(inspect_lines(summary, report))
    return 0
