"""`buda-emu gemini check`: check schedules against the rules, as `check` does."""

import argparse

from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.support.errors import Exit

KIND = kind_by_name("schedule")


def main(args: argparse.Namespace) -> int:
    """Check every schedule against the rules and print the findings. Exit code 0 without errors, 1 with errors, 2
    where one is not a schedule (docs/run/run.md)."""
    results = check.check_files(args, KIND)
    code = check.print_results(args, results)
    readable = all(file.result.document is not None for file in results.values())
    return Exit.DIFFERS if code and readable else code
