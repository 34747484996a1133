"""Arguments that several verbs below `darwinn` share, and JSON on standard output."""

import argparse
import json
from typing import Any

from buda_emu.cli.output import say

SCHEMA_VERSION = 1
"""Of everything that these verbs print with --json."""


def add_file(parser: argparse.ArgumentParser) -> None:
    """A package."""
    parser.add_argument("file", metavar="FILE", help="a compiled .tflite or a bare package")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def say_json(content: dict[str, Any]) -> None:
    """Strict JSON with a version of its form."""
    from buda_emu.report.machine_readable.strict import strict

    say(json.dumps({"schema_version": SCHEMA_VERSION, **strict(content)}, indent=1, allow_nan=False))
