"""`buda-emu darwinn inspect`: a package on one screen."""

import argparse

from buda_emu.cli.darwinn.arguments import add_file, add_json, say_json
from buda_emu.cli.output import say

EXAMPLE = "buda-emu darwinn inspect model_edgetpu.tflite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print the package. Exit code 2 for what cannot be read."""
    from buda_emu.darwinn import load
    from buda_emu.darwinn.summary import summarise

    package = load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        from dataclasses import asdict

        findings = [item._asdict() for item in report.findings]
        content = {"path": args.file, "verdict": report.verdict, "findings": findings}
        content |= {"summary": asdict(summary), "tree": package.to_dict()}
        say_json(content)
        return 0
    from buda_emu.report.darwinn.inspect import inspect_lines

    for line in inspect_lines(summary, report):
        say(line)
    return 0
