"""`buda-emu vpux check`: check every function against the X rules, as `check` does."""

import argparse

from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name

KIND = kind_by_name("vpux")


def main(args: argparse.Namespace) -> int:
    """Check every document against the rules and print the findings. Exit code 0 when none has errors, 2 otherwise."""
    return check.print_results(args, check.check_files(args, KIND), arch=args.arch)
