"""`buda-emu darwinn inspect`: prints a summary of a package on one screen."""

import argparse
from typing import Any, Final, NamedTuple

from buda_emu.app.cli.output import say_json, say_lines
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.document import Report
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.report import inspect_lines
from buda_emu.foreign.darwinn.summary import Summary, summarise
from buda_emu.support.checker import Severity
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.columns import Column, Columns


class _Inspected(NamedTuple):
    """A package that was inspected."""

    path: str
    report: Report
    summary: Summary
    package: Package


_FINDING: Final = Columns[Diagnostic](
    Column("rule", str, lambda finding: finding.rule),
    Column("severity", Severity, lambda finding: finding.severity),
    Column("where", str, lambda finding: finding.where),
    Column("message", str, lambda finding: finding.message),
)
INSPECTED: Final = Columns[_Inspected](
    Column("path", str, lambda inspected: inspected.path),
    Column("verdict", str, lambda inspected: inspected.report.verdict),
    Column("findings", [_FINDING], lambda inspected: inspected.report.diagnostics),
    Column("summary", Summary, lambda inspected: inspected.summary),
    Column("tree", dict[str, Any], lambda inspected: inspected.package.to_dict()),
)
"""What `darwinn inspect --json` prints."""


def main(args: argparse.Namespace) -> int:
    """Print the package's summary and findings. Exit code 2 for a file that cannot be read."""
    package = darwinn.load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        say_json(INSPECTED.as_json(_Inspected(args.file, report, summary, package)))
        return 0
    say_lines(inspect_lines(summary, report))
    return 0
