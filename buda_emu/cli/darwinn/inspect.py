"""`buda-emu darwinn inspect`: a package on one screen."""

import argparse
import json

from buda_emu.cli.output import say

EXAMPLE = "buda-emu darwinn inspect model_edgetpu.tflite"
SCHEMA_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="a compiled .tflite or a bare package")
    parser.add_argument("--json", action="store_true", help="print everything, the whole tree of tables too, as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the package. Exit code 2 for what cannot be read."""
    from buda_emu.darwinn import load
    from buda_emu.darwinn.summary import summarise
    from buda_emu.report.strict import strict

    package = load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        from dataclasses import asdict

        findings = [item._asdict() for item in report.findings]
        content = {"schema_version": SCHEMA_VERSION, "path": args.file, "verdict": report.verdict, "findings": findings}
        content |= {"summary": asdict(summary), "tree": package.to_dict()}
        say(json.dumps(strict(content), indent=1, allow_nan=False))
        return 0
    from buda_emu.report.darwinn.inspect_console import inspect_lines

    for line in inspect_lines(summary, report):
        say(line)
    return 0
