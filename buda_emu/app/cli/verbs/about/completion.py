"""`buda-emu completion`: the script that completes the command in a shell, made by shtab from the parsers."""

import argparse

from buda_emu.app.cli.output import say_data
from buda_emu.app.cli.parser import takes_path
from buda_emu.support.errors import HostError

EXAMPLE = "buda-emu completion bash > ~/.local/share/bash-completion/completions/buda-emu"
SHELLS = ("bash", "zsh", "tcsh")
_FOLDER = "DIR"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the only argument of `completion`, the shell."""
    parser.add_argument("shell", choices=SHELLS, help="its language; docs/netlists/ci.md says where the script goes")


def main(args: argparse.Namespace) -> int:
    """Print the script. Exit code 0."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise HostError("completion: shtab is not installed: pip install 'buda-emu[completion]'") from None

    from buda_emu.app.cli.main import VERBS, build_parser

    parser = build_parser(*VERBS)
    for leaf in parser.leaves():
        for action in leaf.arguments:
            if action.metavar == _FOLDER:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # where shtab looks for it
            elif takes_path(action) and "=" not in str(action.metavar):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    say_data(shtab.complete(parser, args.shell).rstrip("\n"))
    return 0
