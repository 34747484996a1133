"""`buda-emu vpux check`: hold every function against the X rules, as `check` does."""

import argparse

from buda_emu.cli.verbs import check
from buda_emu.cli.verbs.vpux import add_arch
from buda_emu.documents.kinds import kind_named

EXAMPLE = "buda-emu vpux check schedule.mlir --arch 40XX"
KIND = kind_named("vpux")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    check.add_options(parser, KIND)
    add_arch(parser)


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when none has errors, 2 otherwise."""
    return check.tell(args, check.judged(args, KIND), arch=args.arch)
