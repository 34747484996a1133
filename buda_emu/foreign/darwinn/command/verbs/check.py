"""`buda-emu darwinn check`: packages against the rules, as `check` does."""

import argparse

from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_named
from buda_emu.foreign.darwinn.reading import RUNTIME

KIND = kind_named("package")


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when the verdict of all is ok and nothing was made an error, 2 otherwise."""
    runtime = RUNTIME if args.runtime is None else args.runtime
    return check.tell(args, check.check_files(args, KIND), runtime=runtime)
