"""`buda-emu darwinn check`: checks packages against the rules, with the options of `buda-emu check`."""

import argparse

from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.foreign.darwinn.reading import RUNTIME

KIND = kind_by_name("package")


def main(args: argparse.Namespace) -> int:
    """Check every package against the rules and print the findings. Exit code 0 when all verdicts are ok and no
    finding was raised to an error, 2 otherwise."""
    if args.runtime is None:
        runtime = RUNTIME
    else:
        runtime = args.runtime
    return check.print_results(args, check.check_files(args, KIND), runtime=runtime)
