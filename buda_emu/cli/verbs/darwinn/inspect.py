"""`buda-emu darwinn inspect`: a package on one screen."""

import argparse
from dataclasses import asdict

from buda_emu import darwinn
from buda_emu.cli.arguments import add_json
from buda_emu.cli.output import say, say_json
from buda_emu.cli.verbs.darwinn import add_file

_SHORT = ("rule", "severity", "where", "message")  # of a finding, in the JSON
EXAMPLE = "buda-emu darwinn inspect model_edgetpu.tflite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    add_file(parser)
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print the package. Exit code 2 for what cannot be read."""
    from buda_emu.darwinn.summary import summarise

    package = darwinn.load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        findings = [{name: getattr(item, name) for name in _SHORT} for item in report.diagnostics]
        content = {"path": args.file, "verdict": report.verdict, "findings": findings}
        content |= {"summary": asdict(summary), "tree": package.to_dict()}
        say_json(content)
        return 0
    from buda_emu.report.darwinn.inspect import inspect_lines

    for line in inspect_lines(summary, report):
        say(line)
    return 0
