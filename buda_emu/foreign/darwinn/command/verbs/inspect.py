"""`buda-emu darwinn inspect`: prints a summary of a package on one screen."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.report import inspect_lines
from buda_emu.foreign.darwinn.summary import summarise

_FINDING_FIELDS = ("rule", "severity", "where", "message")  # the fields of a finding that the JSON holds


def main(args: argparse.Namespace) -> int:
    """Print the package's summary and findings. Exit code 2 for a file that cannot be read."""
    package = darwinn.load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        findings = [{name: getattr(diagnostic, name) for name in _FINDING_FIELDS} for diagnostic in report.diagnostics]
        content = {"path": args.file, "verdict": report.verdict, "findings": findings}
        content |= {"summary": asdict(summary), "tree": package.to_dict()}
        say_json(content)
        return 0
    say_lines(inspect_lines(summary, report))
    return 0
